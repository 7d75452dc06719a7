"""`bayes-sparse fit` is `bs.fit`, with what was asked for at a prompt, and says in a screenful what came out."""

import json
import re

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import bayes_sparse as bs
from bayes_sparse.command_line.files import read_tree
from bayes_sparse.common import registry


def same(tree, other):
    """Whether two trees have the same numbers."""
    assert set(tree.children) == set(other.children)
    for name in tree.children:
        xr.testing.assert_allclose(tree[name].to_dataset(), other[name].to_dataset(), rtol=1e-12)


def read(name):
    return pd.read_csv(name)


@pytest.mark.quick
def test_a_fit_is_that_of_python_and_is_summed_up(run, tmp_path):
    done = run("fit", "numbers.csv", "--target", "y", "--seed", 0, "--out", tmp_path / "fit.nc")
    tree = bs.fit("ard_gaussian", read("numbers.csv"), target="y", random_seed=0)
    same(read_tree(str(tmp_path / "fit.nc")), tree)
    timeless = re.compile(r"\n\w+ +[\d.]+ m?s\n")
    shown, summed_up = (timeless.sub("", text).partition("Next:") for text in (done.stdout, str(bs.summary(tree))))
    assert shown[0] == summed_up[0]
    assert "bs." not in shown[2]
    assert f"`bayes-sparse predict {tmp_path / 'fit.nc'} new.csv` predicts new rows" in " ".join(shown[2].split())
    assert done.stdout.startswith("Of 6 columns 2 are relevant (x1, x4)")
    assert done.stderr == ""


def test_quiet_shows_the_table_alone(run):
    assert "--out fit.nc keeps the fit" in run("fit", "numbers.csv", "-t", "y", "--draws", 0).stdout
    shown = run("fit", "numbers.csv", "-t", "y", "-q", "--draws", 0).stdout
    assert [line.split()[0] for line in shown.splitlines()[1:]] == ["x1", "x4"]


def test_words_are_categories_and_a_formula_does_for_a_target(run, home):
    frame = read("numbers.csv").assign(kind=np.tile(["up", "down"], 100)[: len(read("numbers.csv"))])
    frame["y"] += 3.0 * (frame["kind"] == "up")
    frame.loc[0, "x1"] = np.nan
    frame.to_csv(home / "words.csv", index=False)
    shown = run("fit", "words.csv", "-t", "y", "-q", "--draws", 0, "--missing", "drop").stdout
    assert "kind[up]" in shown
    formula = ["--formula", "y ~ x1 + C(kind)", "--missing", "drop"]
    assert "up" in run("fit", "words.csv", *formula, "-q", "--draws", 0).stdout
    assert "one of them" in run("fit", "words.csv", "-q", code=2).stderr


@pytest.mark.parametrize("name", ["numbers.tsv", "numbers.csv.gz", "numbers.parquet", "numbers.nc"])
def test_every_format_gives_the_same_fit(run, name):
    options = ["-t", "y", "-q", "--draws", 0]
    assert run("fit", name, *options).stdout == run("fit", "numbers.csv", *options).stdout


@pytest.mark.parametrize("form", ["csv", "parquet", "netcdf"])
def test_every_format_comes_through_a_pipe(run, home, form):
    content = (home / {"csv": "numbers.csv", "parquet": "numbers.parquet", "netcdf": "numbers.nc"}[form]).read_bytes()
    options = ["-t", "y", "-q", "--draws", 0]
    piped = run("fit", "-", *options, *([] if form == "csv" else ["--format", form]), given=content)
    assert piped.stdout == run("fit", "numbers.csv", *options).stdout


def test_options_arrive_where_they_belong(run, tmp_path):
    out = tmp_path / "fit.nc"
    run(
        *("fit", "data.csv", "-t", "y", "--drop", "kind", "--index", "id", "--weights", "weight", "--method", "mackay"),
        *("--hyper", "1,0.1", "--slab", 2.5, "--keep", "x0", "--keep", "x3", "--draws", 7, "--chains", 2, "--seed", 4),
        *("--set", "max_iterations=500", "--likelihood", "student_t", "--basis", "linear:standardise=false", "-o", out),
    )
    frame = read("data.csv").set_index("id").drop(columns="kind")
    tree = bs.fit(
        "ard_gaussian",
        frame,
        target="y",
        weights="weight",
        method="mackay",
        hyper=(1.0, 0.1),
        slab=2.5,
        keep=["x0", "x3"],
        draws=7,
        chains=2,
        random_seed=4,
        max_iterations=500,
        likelihood="student_t",
        basis=bs.basis.linear(standardise=False),
    )
    same(read_tree(str(out)), tree)
    asked = [json.loads(own.attrs["bayes_sparse"]) for own in (read_tree(str(out)), tree)]
    assert asked[0]["basis"] == asked[1]["basis"] == {"name": "linear", "bias": True, "standardise": False}


def test_classes_and_kernels(run, tmp_path):
    out = tmp_path / "fit.nc"
    drop = ["--drop", "id", "--drop", "weight", "--drop", "y"]
    run("fit", "data.csv", "-t", "kind", *drop, "--basis", "rbf:2.5", "--draws", 0, "-q", "-o", out)
    frame = read("data.csv").drop(columns=["id", "weight", "y"])
    predicted = bs.predict(bs.fit("ard_gaussian", frame, target="kind", basis=bs.basis.rbf(2.5), draws=0), frame)
    done = run("predict", out, "data.csv", "-o", tmp_path / "p.csv")
    assert done.stdout == ""
    written = pd.read_csv(tmp_path / "p.csv")
    assert list(written) == ["obs", "label", "far", "probability_high", "probability_low"]
    assert written["label"].tolist() == predicted["label"].to_numpy().tolist()
    np.testing.assert_allclose(written["probability_low"], predicted["probability"].sel({"class": "low"}), rtol=1e-12)


@pytest.mark.parametrize("model", registry.options("bayes_sparse.models"))
def test_a_fit_of_every_model_is_summed_up(run, model):
    drop = [word for name in ("id", "weight", "y") for word in ("--drop", name)]
    shown = run("fit", "data.csv", "-t", "kind", *drop, "--model", model, "--draws", 100, "--seed", 0).stdout
    assert re.search(rf"\nmodel +{model}, ", shown)
    assert re.search(r"\nstatus +(converged|fixed-point)\n", shown)
    assert "x2" in shown


def test_a_fit_through_a_pipe_is_the_file_and_words_go_elsewhere(run, fitted, home):
    options = ["-t", "y", "--index", "id", "--drop", "kind", "--drop", "weight", "--seed", 0]
    done = run("fit", "data.csv", *options, "-o", "-")
    assert done.stdout_bytes.startswith(b"\x89HDF")
    assert "Of 6 columns 2 are relevant" in done.stderr
    again = run("predict", "-", "numbers.csv", given=done.stdout_bytes)
    assert again.stdout == run("predict", fitted, "numbers.csv").stdout


def test_a_fit_that_ends_badly_is_written_and_says_so(run, tmp_path):
    out = tmp_path / "fit.nc"
    done = run(
        *("fit", "numbers.csv", "-t", "y", "--method", "mackay", "--set", "max_iterations=2", "--draws", 0, "-o", out),
        code=3,
    )
    assert read_tree(str(out))["evidence"].attrs["status"] == "max_iterations"
    warned, ended = done.stderr.splitlines()
    assert warned.startswith("Warning: The method 'mackay' did not converge within its limit of iterations")
    assert ended == "Error: The fit ended as 'max_iterations', and is not to be used as it is."


def test_chains_that_do_not_agree_end_badly_too(run, monkeypatch):
    """Draws of an evidence fit, called NUTS's, with the second chain moved."""
    made = bs.fit

    def fit(*args, **kwargs):
        tree = made(*args, **kwargs)
        posterior = tree["posterior"].to_dataset()
        tree["posterior"] = posterior + xr.DataArray([0.0, 100.0], dims="chain")
        tree["posterior"].attrs = {**posterior.attrs, "method": "nuts", "condition": "alpha"}
        return tree

    monkeypatch.setattr(bs, "fit", fit)
    done = run("fit", "numbers.csv", "-t", "y", "--chains", 2, "--seed", 1, code=3)
    assert done.stderr.startswith("Error: Not to be trusted yet: the chains disagree")


def test_a_report_is_written_beside_the_fit(run, tmp_path):
    run("fit", "numbers.csv", "-t", "y", "--draws", 50, "--report", tmp_path / "new" / "page.html")
    assert "x4" in (tmp_path / "new" / "page.html").read_text(encoding="utf-8")
    assert [own.name for own in (tmp_path / "new").iterdir()] == ["page.html"]
