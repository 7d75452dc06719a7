"""Commands that read a fit: predict, relevance, compare, report; and the lists of what there is."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import bayes_sparse as bs
from bayes_sparse.command_line.files import read_tree


@pytest.mark.quick
def test_predictions_are_those_of_python_row_by_row(run, fitted):
    frame = pd.read_csv("data.csv", index_col="id")
    expected = bs.predict(read_tree(fitted), frame)
    done = run("predict", fitted, "data.csv", "--index", "id")
    rows = [line.split(",") for line in done.stdout.splitlines()]
    assert rows[0] == ["id", "mean", "sd"]
    assert [row[0] for row in rows[1:]] == list(frame.index)
    np.testing.assert_array_equal([float(row[1]) for row in rows[1:]], expected["mean"])  # to the last digit
    np.testing.assert_array_equal([float(row[2]) for row in rows[1:]], expected["sd"])


def test_predictions_from_a_pipe_into_every_format(run, fitted, tmp_path, home):
    expected = bs.predict(read_tree(fitted), pd.read_csv("numbers.csv"))["mean"].to_numpy()
    given = (home / "numbers.csv").read_bytes()
    readers = {
        "p.csv": lambda path: pd.read_csv(path)["mean"],
        "p.tsv": lambda path: pd.read_csv(path, sep="\t")["mean"],
        "p.json": lambda path: [row["mean"] for row in json.loads(path.read_text())],
        "p.parquet": lambda path: pd.read_parquet(path)["mean"],
        "p.nc": lambda path: xr.load_dataset(path)["mean"],
    }
    for name, read in readers.items():
        run("predict", fitted, "-", "-o", tmp_path / name, given=given)
        np.testing.assert_allclose(read(tmp_path / name), expected, rtol=1e-13, err_msg=name)
    assert sorted(own.name for own in tmp_path.iterdir()) == sorted(readers)


def test_an_offset_is_a_column(run, tmp_path):
    out = tmp_path / "fit.nc"
    run("fit", "data.csv", "-t", "y", "--offset", "weight", "--drop", "id", "--drop", "kind", "--draws", 0, "-o", out)
    with_it = run("predict", out, "data.csv", "--offset", "weight").stdout
    without = run("predict", out, "data.csv").stdout
    means = [np.array([float(line.split(",")[1]) for line in text.splitlines()[1:]]) for text in (with_it, without)]
    np.testing.assert_allclose(means[0] - means[1], pd.read_csv("data.csv")["weight"], rtol=1e-10)
    assert "no column 'height'" in run("predict", out, "data.csv", "--offset", "height", code=1).stderr


def test_relevance_is_a_table_in_every_format(run, fitted, tmp_path):
    expected = bs.relevance(read_tree(fitted))
    piped = run("relevance", fitted).stdout.splitlines()
    assert piped[0].split(",")[:3] == ["basis", "precision", "mean"]
    assert [line.split(",")[0] for line in piped[1:]] == list(expected.index)
    rows = json.loads(run("relevance", fitted, "--format", "json").stdout)
    assert [row["word"] for row in rows] == expected["word"].tolist()
    run("relevance", fitted, "-o", tmp_path / "r.nc")
    np.testing.assert_array_equal(xr.load_dataset(tmp_path / "r.nc")["score"], expected["score"])
    text = run("relevance", fitted, "--format", "text", "--kept").stdout.splitlines()
    assert [line.split()[0] for line in text[1:]] == ["x1", "x4"]
    assert len(run("relevance", fitted, "--top", 3).stdout.splitlines()) == 4


def test_compare_prints_what_python_prints(run, fitted):
    other = Path("o") / "fit.nc"
    other.parent.mkdir()
    run("fit", "numbers.csv", "-t", "y", "--method", "em", "--seed", 1, "-q", "-o", other)
    trees = {"fast": read_tree(fitted), "slow": read_tree(str(other))}
    rows = pd.read_csv("numbers.csv")
    shown = run("compare", fitted, other, "--names", "fast,slow", "--data", "numbers.csv", "-t", "y").stdout
    assert shown == f"{bs.compare(trees, rows, target='y')}\n"
    assert repr(str(other)) in run("compare", fitted, other).stdout  # two files of the same name go by their paths
    assert "1 names for 2 fits" in run("compare", fitted, other, "--names", "a", code=1).stderr
    assert "needs two trees" in run("compare", fitted, code=1).stderr


def test_a_report_of_several(run, fitted, tmp_path):
    page = tmp_path / "page.html"
    run("report", fitted, fitted, "--names", "one,two", "-o", page, "--title", "Both of them", "--quiet")
    text = page.read_text(encoding="utf-8")
    assert "Both of them" in text
    assert "two" in text
    assert run("report", fitted, "-o", "-", "-q").stdout.startswith("<!")


def test_models_lists_all_there_is(run):
    shown = run("models").stdout
    assert str(bs.models) in shown
    assert str(bs.methods) in shown
    assert "student_t" in shown
    assert "polynomial" in shown
