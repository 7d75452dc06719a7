"""The table of relevance."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import bayes_sparse as bs

RNG = np.random.default_rng(31)
NAMES = [f"gene {i}" for i in range(12)]
X = pd.DataFrame(RNG.standard_normal((100, 12)), columns=NAMES)
Y = 3.0 * X["gene 7"] - 1.0 * X["gene 2"] + 0.5 * RNG.standard_normal(100)


@pytest.fixture(scope="module")
def tree():
    return bs.fit("ard_gaussian", (X, Y), draws=0)


def test_it_is_a_table_by_name_with_the_columns_of_the_contract(tree):
    table = bs.relevance(tree)
    assert isinstance(table, pd.DataFrame)
    assert table.index.name == "basis"
    assert set(table.index) == set(NAMES)
    assert list(table.columns) == ["precision", "mean", "sd", "gamma", "relevant"]


def test_the_most_relevant_come_first(tree):
    table = bs.relevance(tree)
    assert table.index[:2].tolist() == ["gene 7", "gene 2"]
    assert table["relevant"].is_monotonic_decreasing
    kept = table[table["relevant"]]
    assert (kept["mean"].abs() / kept["sd"]).is_monotonic_decreasing


def test_its_numbers_are_those_of_the_tree(tree):
    table, evidence = bs.relevance(tree), tree["evidence"]
    for name in ("mean", "sd", "gamma", "relevant"):
        np.testing.assert_array_equal(table.loc[NAMES, name], evidence[name])
    np.testing.assert_array_equal(table.loc[NAMES, "precision"], evidence["alpha"])


def test_pruned_means_not_relevant_zero_mean_and_infinite_precision(tree):
    table = bs.relevance(tree)
    pruned = table[~table["relevant"]]
    assert len(pruned) >= 8
    assert np.isposinf(pruned["precision"]).all()
    assert (pruned[["mean", "sd", "gamma"]] == 0).all().all()
    kept = table[table["relevant"]]
    assert kept["gamma"].between(0, 1).all()
    assert (kept["sd"] > 0).all()


def test_a_tree_read_back_gives_the_same_table(tree, tmp_path):
    tree.to_netcdf(tmp_path / "fit.nc")
    with xr.open_datatree(tmp_path / "fit.nc") as back:
        pd.testing.assert_frame_equal(bs.relevance(back), bs.relevance(tree), check_index_type=False)


def test_the_table_of_kernels_names_rows():
    table = bs.relevance(bs.fit("ard_gaussian", (X[["gene 7"]], Y), basis=bs.basis.rbf(width=1.0), draws=0))
    assert table.index[0].startswith("rbf(")
    assert len(table) == 100


def test_a_tree_without_evidence_is_refused(tree):
    bare = tree.drop_nodes("evidence")
    with pytest.raises(ValueError, match=r"no group 'evidence'.*az\.summary"):
        bs.relevance(bare)
