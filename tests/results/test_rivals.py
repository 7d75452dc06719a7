"""Columns that cannot be told apart are said to be alternatives: in the table, the picture and a warning."""

import warnings

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import bayes_sparse as bs

mpl.use("Agg")


def pair(seed, *, rho=0.95, n=100, p=5, weight=0.5, target=lambda rng, eta: eta + rng.standard_normal(len(eta))):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    X[:, 1] = rho * X[:, 0] + np.sqrt(1 - rho**2) * X[:, 1]
    return X, target(rng, weight * X[:, 0])


def yes_or_no(rng, eta):
    return np.where(rng.random(len(eta)) < 1 / (1 + np.exp(-3 * eta)), "yes", "no")


def counts(rng, eta):
    return rng.poisson(np.exp(eta))


FITS = {
    "normal": ("ard_gaussian", None, {}),
    "bernoulli": ("ard_gaussian", yes_or_no, {}),
    "poisson": ("ard_gaussian", counts, {"likelihood": "poisson"}),
    "mackay": ("ard_gaussian", None, {"method": "mackay", "smoothness": 1.5}),
}


@pytest.mark.quick
@pytest.mark.parametrize("name", FITS)
def test_wrong_picks_carry_the_true_column(name):
    model, target, settings = FITS[name]
    wrong, flagged, arbitrary = 0, 0, 0
    for seed in range(40):
        data = pair(seed) if target is None else pair(seed, target=target)
        table = bs.relevance(bs.fit(model, data, draws=0, **settings)).query("kept")
        if "x1" in table.index and "x0" not in table.index:
            wrong += 1
            flagged += "x0" in table.loc["x1", "rival"]
        elif "x0" in table.index and "x1" not in table.index:
            arbitrary += "x1" in table.loc["x0", "rival"]
    assert wrong >= 3
    assert flagged >= 0.95 * wrong - 1  # of a dozen one may be missed: bounds of a large sample are in `make slow`
    assert arbitrary > 10


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:No basis function pays")
def test_the_bars_of_many_data_sets():
    wrong, flagged, independent, alone = 0, 0, 0, 0
    for seed in range(600):
        table = bs.relevance(bs.fit("ard_gaussian", pair(seed), draws=0, progressbar=False)).query("kept")
        if "x1" in table.index and "x0" not in table.index:
            wrong, flagged = wrong + 1, flagged + ("x0" in table.loc["x1", "rival"])
        table = bs.relevance(bs.fit("ard_gaussian", pair(seed, rho=0.0), draws=0, progressbar=False)).query("kept")
        alone, independent = alone + len(table), independent + int((table["rival"].str.len() > 0).sum())
    assert wrong > 60
    assert flagged >= 0.95 * wrong
    assert independent <= 0.1 * alone


def test_the_table_the_picture_and_the_warning_say_it():
    X, y = pair(0)
    frame = pd.DataFrame(X, columns=["age", "years", "a", "b", "c"]).assign(y=y)
    with pytest.warns(bs.UndecidedWarning, match=r"do not decide between \w+ or \w+:.*less than 3 nats.*bs\.relevance"):
        tree = bs.fit("ard_gaussian", frame, target="y", draws=100, random_seed=0)
    table = bs.relevance(tree)
    first = table.iloc[0]
    assert f"do not decide between {first['alternatives']}" in bs.diagnose(tree).verdict
    assert {table.index[0], *first["rival"]} == {"age", "years"}
    assert first["alternatives"] == f"{table.index[0]} or {first['rival'][0]}"
    assert 0 < first["rival_loss"] < 3
    assert (table["rival"][1:].str.len() == 0).all()
    assert next(text.get_text() for text in bs.plot_relevance(tree).get_yticklabels()) == first["alternatives"]


def test_an_exchange_that_loses_more_is_no_alternative_but_has_its_loss():
    tree = bs.fit("ard_gaussian", pair(1, rho=0.6, weight=1.5), draws=0)
    first = bs.relevance(tree).iloc[0]
    assert first["rival"] == ()
    assert first["alternatives"] == ""
    assert first["rival_loss"] > 3


def test_it_can_be_silenced_by_its_own_name():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", bs.UndecidedWarning)
        bs.fit("ard_gaussian", pair(0), draws=0)


def test_kernels_are_not_asked():
    """Which row a kernel sits on is no statement about the world."""
    data = bs.datasets.sinc(n=40, random_seed=0)
    tree = bs.fit("ard_gaussian", (data.X, data.y), basis=bs.basis.rbf(2.0), draws=0)
    assert tree["evidence"].sizes["exchange"] == 0
    assert bs.relevance(tree)["rival_loss"].isna().all()


def test_a_path_has_rivals_too():
    """Brute force: the log-likelihood with the support re-estimated without its penalty, and with the rival instead."""
    X, y = pair(5, rho=0.99, n=60)
    tree = bs.fit("jeffreys_laplace", (X, y), draws=0)
    evidence = tree["evidence"].to_dataset()
    kept = np.flatnonzero(evidence["kept"])
    table = bs.relevance(tree)
    sigma2 = float(evidence["sigma"]) ** 2

    def rest(columns):
        Z = np.column_stack([np.ones(len(y)), X[:, columns]])
        return float(np.sum((y - Z @ np.linalg.lstsq(Z, y, rcond=None)[0]) ** 2))

    for term in kept:
        without = [j for j in kept if j != term]
        np.testing.assert_allclose(evidence["score"][term], (rest(without) - rest(kept)) / sigma2, rtol=1e-4)
    found = zip(evidence["exchange_term"].values, evidence["exchange_rival"].values, strict=True)
    for (term, rival), loss in zip(found, evidence["exchange_loss"].values, strict=True):
        instead = [rival if j == term else j for j in kept]
        np.testing.assert_allclose(loss, (rest(instead) - rest(kept)) / (2 * sigma2), rtol=1e-4, atol=1e-6)
    assert evidence.sizes["exchange"] > 0
    assert {"x0", "x1"} <= set(table.index[table["alternatives"] != ""]) | {n for r in table["rival"] for n in r}


def test_the_same_feature_in_another_class_is_no_rival():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 3))
    X[:, 1] = 0.99 * X[:, 0] + 0.14 * X[:, 1]
    label = np.digitize(X[:, 0] + 0.3 * rng.standard_normal(150), [-0.5, 0.5])
    table = bs.relevance(bs.fit("student_multinomial", (X, label), hyper=(0, 0), draws=0))
    assert any(len(names) for names in table["rival"])
    for (feature, _), names in table["rival"].items():
        assert all(not str(name).startswith(f"{feature}[") for name in names)


def test_false_finds_is_a_setting():
    rng = np.random.default_rng(4)
    X = rng.standard_normal((100, 10))
    tree = bs.fit("ard_gaussian", (X, 0.3 * X[:, 0] + X[:, 3] + rng.standard_normal(100)), draws=0)
    table = bs.relevance(tree)
    weak = table.loc["x0"]
    assert weak["kept"]
    strict, lenient = (bs.relevance(tree, false_finds=weak["chance"] * factor).loc["x0"] for factor in (0.5, 2.0))
    assert (strict["word"], lenient["word"]) == ("perhaps", "relevant")
    assert not strict["relevant"]
    ax = bs.plot_relevance(tree, false_finds=weak["chance"] * 0.5)
    assert "of them relevant" in ax.get_title()
    assert [text.get_text() for text in ax.get_legend().get_texts()][1].startswith("perhaps")
    with pytest.raises(ValueError, match="`false_finds` is a probability"):
        bs.relevance(tree, false_finds=5)


def test_what_is_told_survives_storage(tmp_path):
    tree = bs.fit("ard_gaussian", pair(0), draws=0)
    tree.to_netcdf(tmp_path / "fit.nc")
    with xr.open_datatree(tmp_path / "fit.nc") as back:
        pd.testing.assert_frame_equal(bs.relevance(back), bs.relevance(tree), check_index_type=False)
