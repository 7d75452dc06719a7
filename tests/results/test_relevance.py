"""The table of relevance."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy.stats import chi2

import bayes_sparse as bs
from bayes_sparse.trees.read import stored
from tests.support import as_sampled

mpl.use("Agg")

RNG = np.random.default_rng(31)
NAMES = [f"gene {i}" for i in range(12)]
X = pd.DataFrame(RNG.standard_normal((100, 12)), columns=NAMES)
Y = 3.0 * X["gene 7"] - 1.0 * X["gene 2"] + 0.5 * RNG.standard_normal(100)


COLUMNS = ["precision", "mean", "sd", "gamma", "score", "chance", "kept", "relevant", "word"]
COLUMNS += ["rival", "rival_loss", "alternatives"]


@pytest.fixture(scope="module")
def tree():
    return bs.fit("ard_gaussian", (X, Y), draws=0)


def test_it_is_a_table_by_name_with_the_columns_of_the_contract(tree):
    table = bs.relevance(tree)
    assert isinstance(table, pd.DataFrame)
    assert table.index.name == "basis"
    assert set(table.index) == set(NAMES)
    assert list(table.columns) == COLUMNS


def test_the_most_relevant_come_first(tree):
    table = bs.relevance(tree)
    assert table.index[:2].tolist() == ["gene 7", "gene 2"]
    assert table["relevant"].is_monotonic_decreasing
    assert table["kept"].is_monotonic_decreasing
    assert (table["mean"].abs() / table["sd"])[table["relevant"]].is_monotonic_decreasing
    assert table.loc[~table["kept"], "score"].is_monotonic_decreasing


def test_its_numbers_are_those_of_the_tree(tree):
    table, evidence = bs.relevance(tree), tree["evidence"]
    for name in ("mean", "sd", "gamma", "score", "chance", "kept", "relevant"):
        np.testing.assert_array_equal(table.loc[NAMES, name], evidence[name])
    np.testing.assert_array_equal(table.loc[NAMES, "precision"], evidence["alpha"])


def test_of_what_was_pruned_the_score_is_known_and_no_sd(tree):
    table = bs.relevance(tree)
    pruned = table[~table["kept"]]
    assert len(pruned) >= 8
    assert np.isposinf(pruned["precision"]).all()
    assert (pruned[["mean", "gamma"]] == 0).all(axis=None)
    assert pruned["sd"].isna().all()
    assert pruned["score"].between(0, 1 + 2 * tree["evidence"].attrs["smoothness"]).all()
    assert not pruned["relevant"].any()
    kept = table[table["kept"]]
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
    with pytest.raises(ValueError, match=r"neither a group 'evidence'.*az\.summary"):
        bs.relevance(bare)


# --- one-step methods: directions beside weights ---------------------------------------------------------------------

DIRECTIONS = ["h", "u_expansion", "alpha", "u_mode", "u_mean", "u_sd", "gamma", "relevant"]
SOME = X[NAMES[:8]]


@pytest.fixture(scope="module", params=["ard_gaussian", "laplace_eigen"])
def turned(request):
    """With so much noise that some directions are lost in it."""
    noisy = Y + 4.0 * np.random.default_rng(2).standard_normal(100)
    return bs.fit(request.param, (SOME, noisy), method="revm", draws=0)


def test_the_table_of_directions(turned):
    table, evidence = bs.relevance(turned, space="eigen"), turned["evidence"]
    assert table.index.name == "direction"
    assert list(table.columns) == DIRECTIONS
    assert sorted(table.index) == list(range(1, 9))
    assert len(table) == evidence.attrs["directions"]
    assert int(table["relevant"].sum()) == evidence.attrs["directions_kept"]
    np.testing.assert_allclose(table["gamma"].sum(), evidence.attrs["degrees_of_freedom"])
    for name in DIRECTIONS:
        np.testing.assert_array_equal(table[name].sort_index(), evidence[name])


def test_the_most_relevant_directions_come_first(turned):
    table = bs.relevance(turned, space="eigen")
    assert 0 < table["relevant"].sum() < 8
    assert table["relevant"].is_monotonic_decreasing
    kept = table[table["relevant"]]
    assert (np.sqrt(kept["h"]) * kept["u_mode"].abs()).is_monotonic_decreasing
    pruned = table[np.isinf(table["alpha"])]
    assert (pruned["h"] * pruned["u_expansion"] ** 2 <= 1).all()
    assert (pruned[["u_mode", "u_mean", "u_sd", "gamma"]] == 0).all().all()


def test_the_weights_of_a_one_step_method_have_no_precision(turned):
    """Directions are pruned or relevant, weights are neither: each has a mean and an sd, and nothing else."""
    table = bs.relevance(turned)
    assert table.index.name == "basis"
    assert list(table.columns) == ["mean", "sd"]
    assert set(table.index) == set(NAMES[:8])
    assert table.index[0] == "gene 7"
    assert (table["mean"].abs() / table["sd"]).is_monotonic_decreasing
    np.testing.assert_array_equal(table.loc[NAMES[:8], "mean"], turned["evidence"]["mean"])
    pd.testing.assert_frame_equal(table, bs.relevance(turned, space="weights"))


def test_a_tree_read_back_gives_the_same_directions(turned, tmp_path):
    turned.to_netcdf(tmp_path / "fit.nc")
    with xr.open_datatree(tmp_path / "fit.nc") as back:
        pd.testing.assert_frame_equal(bs.relevance(back, space="eigen"), bs.relevance(turned, space="eigen"))


def test_spaces_that_are_not_there(tree, turned):
    with pytest.raises(ValueError, match=r"directions of a one-step method \(method='revm'\); this has none"):
        bs.relevance(tree, space="eigen")
    with pytest.raises(ValueError, match=r"`space` is 'weights' or 'eigen', got 'kernel'"):
        bs.relevance(turned, space="kernel")
    with pytest.raises(ValueError, match=r"neither a group 'evidence'.*az\.summary"):
        bs.relevance(turned.drop_nodes("evidence"), space="eigen")


def test_a_fit_that_kept_no_direction():
    wave = np.cos(2 * np.pi * np.arange(100)[:, None] / 100 * np.array([1, 2]))
    with pytest.warns(bs.FitWarning, match="No basis function pays"):
        empty = bs.fit("laplace_eigen", (wave, np.arange(100) % 4 + 0.5), draws=0)
    assert (bs.relevance(empty)["mean"] == 0).all()
    assert (bs.relevance(empty)["sd"] > 0).all()
    assert not bs.relevance(empty, space="eigen")["relevant"].any()


def test_weights_of_a_one_step_method_are_drawn(turned):
    ax = bs.plot_relevance(turned)
    assert [text.get_text() for text in ax.get_yticklabels()] == bs.relevance(turned).index.tolist()
    assert ax.get_title() == "8 weights, made of directions"
    assert bs.plot_relevance(turned, top=3).get_title().endswith("the first 3 shown")


def test_weights_that_the_data_do_not_determine_have_no_sd():
    """More columns than rows: in the order of the posterior's own |mean| / sd, which says nothing of each."""
    wide = bs.fit("ard_gaussian", (X.iloc[:9], Y[:9]), method="revm", draws=0)
    table = bs.relevance(wide)
    assert table["sd"].isna().all()
    fitted = np.abs(wide["evidence"]["mean"].to_series()) / stored(wide).posterior_sd
    assert fitted[table.index].is_monotonic_decreasing
    assert "not determined one by one" in bs.plot_relevance(wide).get_xlabel()
    assert len(bs.predict(wide, X)["mean"]) == 100


def test_weights_of_several_classes_are_drawn():
    kind = pd.Series(np.digitize(Y + RNG.standard_normal(100), [-2, 2]), name="kind")
    several = bs.fit("ard_gaussian", (SOME, kind), method="revm", likelihood="categorical", draws=0)
    ax = bs.plot_relevance(several)
    labels = [text.get_text() for text in ax.get_yticklabels()]
    assert len(labels) == 20
    assert all(label.startswith("gene ") and label.endswith(("[0]", "[1]", "[2]")) for label in labels)
    points = np.asarray(ax.containers[0][0].get_xdata(), dtype=float)
    pairs = [(label[:-3], int(label[-2])) for label in labels]
    mean = bs.relevance(several).loc[pairs, "mean"].to_numpy()
    scale = np.array([SOME[label[:6]].std(ddof=0) for label in labels])
    np.testing.assert_allclose(points, mean * scale)
    by_feature, table = bs.relevance(several, by="feature"), bs.relevance(several)
    assert list(by_feature.columns) == ["strength"]
    assert by_feature["strength"].is_monotonic_decreasing
    square = ((table["mean"] / table["sd"]) ** 2).groupby("basis").sum()
    np.testing.assert_allclose(by_feature["strength"] ** 2, square[by_feature.index])
    assert bs.plot_relevance(several, by="feature").get_title() == "8 features"


def test_weights_of_a_sampled_tree_are_never_pruned():
    tree = as_sampled(bs.fit("ard_gaussian", (X, Y), draws=100, random_seed=0))
    table, w = bs.relevance(tree), tree["posterior"]["w"]
    assert list(table.columns) == ["mean", "sd", "low", "high", "sign", "score", "chance", "kept", "relevant", "word"]
    assert set(table.index) == set(NAMES)
    assert table.index[:2].tolist() == ["gene 7", "gene 2"]
    np.testing.assert_allclose(table.loc["gene 2", "mean"], w.sel(basis="gene 2").mean())
    np.testing.assert_allclose(table.loc["gene 2", "sd"], w.sel(basis="gene 2").to_numpy().std())
    assert table.loc["gene 2", "sign"] == 1.0
    assert table.loc[table["relevant"]].index.size < 12


def test_the_sign_is_a_share_of_the_draws():
    tree = as_sampled(bs.fit("ard_gaussian", (X, Y), draws=100, random_seed=0))
    posterior = tree["posterior"].to_dataset()
    drawn = RNG.standard_normal((4, 100)) + 1.5
    posterior["w"].loc[{"basis": "gene 0"}] = -drawn
    tree["posterior"] = xr.DataTree(posterior)
    row = bs.relevance(tree).loc["gene 0"]
    assert row["sign"] == np.mean(drawn > 0)
    assert row["word"] == ""  # the best of twelve is one and a half sds from zero more often than not
    np.testing.assert_allclose(row["chance"], 1 - chi2.cdf(drawn.mean() ** 2 / drawn.var(), 1) ** 12)


def test_classes_of_a_sampled_tree():
    kind = pd.Series(np.digitize(Y + RNG.standard_normal(100), [-2, 2]), name="kind")
    tree = as_sampled(bs.fit("student_multinomial", (SOME, kind), draws=50, random_seed=0))
    table = bs.relevance(tree)
    assert table.index.names == ["basis", "class"]
    w = tree["posterior"]["w"].sel(basis="gene 7[2]").to_numpy()
    np.testing.assert_allclose(table.loc[("gene 7", 2), ["mean", "sd"]].to_numpy(dtype=float), [w.mean(), w.std()])
    by_feature = bs.relevance(tree, by="feature")
    assert by_feature.index[0] == "gene 7"
    relevant = int(table["relevant"].sum())
    assert bs.plot_relevance(tree).get_title() == f"{relevant} of 24 terms relevant; 20 shown"
    with pytest.raises(ValueError, match="'forward' for a fit that prunes weights"):
        bs.relevance(tree, order="forward")


def test_a_curve_of_a_sampled_tree_circles_nothing():
    data = bs.datasets.sinc(n=30, random_seed=0)
    tree = as_sampled(bs.fit("ard_gaussian", (data.X, data.y), basis=bs.basis.rbf(2.0), draws=20, random_seed=0))
    ax = bs.plot_curve(tree)
    assert [line.get_label() for line in ax.lines] == ["data", "mean"]
    grid = np.asarray(ax.lines[1].get_xdata(), dtype=float)
    np.testing.assert_allclose(ax.lines[1].get_ydata(), bs.predict(tree, grid[:, None])["mean"])
