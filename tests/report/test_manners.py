"""Bad input is refused in a sentence; nothing of the user's is changed."""

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest
import xarray as xr

from bayes_sparse.report import report


def test_no_trees(tmp_path):
    with pytest.raises(ValueError, match="nothing to report: the dict of trees is empty"):
        report({}, tmp_path / "report.html")


@pytest.mark.parametrize("thing", [None, 3, [1], "tree"])
def test_not_a_tree(tmp_path, thing):
    with pytest.raises(TypeError, match=f"not of type {type(thing).__name__}"):
        report(thing, tmp_path / "report.html")


def test_not_a_tree_in_a_dict(tmp_path, linear):
    with pytest.raises(TypeError, match="the tree 'b' is of type int"):
        report({"a": linear, "b": 3}, tmp_path / "report.html")


def test_two_of_the_same_name(tmp_path, linear):
    with pytest.raises(ValueError, match="Two trees have the name '1'"):
        report({1: linear, "1": linear}, tmp_path / "report.html")


def test_a_tree_without_a_fit(tmp_path):
    with pytest.raises(ValueError, match="neither a group 'evidence' nor a group 'posterior'"):
        report(xr.DataTree(), tmp_path / "report.html")


def test_a_folder_is_no_file(tmp_path, linear):
    with pytest.raises(ValueError, match="is a folder: name a file in it"):
        report(linear, tmp_path)


def test_missing_folders_are_made(tmp_path, linear):
    place = report(linear, str(tmp_path / "a" / "b" / "report.html"))
    assert place == tmp_path / "a" / "b" / "report.html"
    assert place.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_rows_that_cannot_be_predicted_are_said_on_the_page(written, linear):
    page = written(linear, data=3)
    assert "Held-out `data` are (X, y)" in page.section("predictive")


def test_settings_of_matplotlib_neither_matter_nor_change(tmp_path, linear, sampled_like):
    own = plt.figure()
    mine = plt.get_fignums()
    with mpl.rc_context({"text.usetex": True, "font.size": 3.0, "axes.titlesize": 30.0}):
        before, backend = dict(mpl.rcParams), mpl.get_backend()
        report({"evidence": linear, "nuts": sampled_like(linear)}, tmp_path / "report.html")
        assert dict(mpl.rcParams) == before
        assert mpl.get_backend() == backend
    assert plt.get_fignums() == mine
    plt.close(own)
