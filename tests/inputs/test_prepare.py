"""From a table and a basis to basis functions: which likelihood, what is kept, what weights and offsets mean."""

import numpy as np
import pandas as pd
import pytest

import bayes_sparse as bs
from tests.support import assert_one_sentence

pytestmark = pytest.mark.quick

RNG = np.random.default_rng(8)
N = 70
X = RNG.standard_normal((N, 3))
Y = 1.5 * X[:, 0] + 0.4 * RNG.standard_normal(N)
CLASS = (1.5 * X[:, 0] + RNG.logistic(size=N) > 0).astype(int)
COUNT = RNG.poisson(np.exp(0.5 + 0.6 * X[:, 1]))


def fitted_likelihood(y, **settings):
    tree = bs.fit("ard_gaussian", (X, y), draws=0, **settings)
    return "bernoulli" if "class" in tree["constant_data"] else "normal" if "sigma" in tree["evidence"] else "other"


@pytest.mark.parametrize(
    ("y", "expected"),
    [
        (Y, "normal"),
        (Y.astype(np.float32), "normal"),
        (np.round(Y), "normal"),
        (CLASS, "bernoulli"),
        (CLASS == 1, "bernoulli"),
        (2 * CLASS - 1, "bernoulli"),
        (np.where(CLASS, "yes", "no"), "bernoulli"),
        (pd.Series(np.where(CLASS, "yes", "no")).astype("category"), "bernoulli"),
    ],
    ids=["float", "float32", "whole floats", "0/1", "bool", "-1/+1", "strings", "categorical"],
)
def test_auto_decides_where_there_is_no_doubt(y, expected):
    assert fitted_likelihood(y) == expected


@pytest.mark.parametrize(
    ("y", "asks"),
    [
        (COUNT, ["whole numbers", "'normal'", "'poisson'", "'negative_binomial'"]),
        (CLASS.astype(float), ["2 distinct values", "'bernoulli'", "'normal'"]),
        (np.array(["a", "b", "c"])[np.arange(N) % 3], ["3 labels", "'categorical'", "into two"]),
    ],
    ids=["counts", "two floats", "three strings"],
)
def test_auto_asks_where_there_is_doubt(y, asks):
    with pytest.raises(ValueError, match="say likelihood=") as error:
        bs.fit("ard_gaussian", (X, y))
    assert all(words in str(error.value) for words in asks)
    assert "'y'" in str(error.value)


def test_an_answer_settles_the_doubt():
    assert fitted_likelihood(COUNT, likelihood="normal") == "normal"
    assert fitted_likelihood(CLASS.astype(float), likelihood="bernoulli") == "bernoulli"
    assert fitted_likelihood(CLASS.astype(float), likelihood="normal") == "normal"


REPEATS = np.arange(N) % 3 + 1
REPEATED = np.repeat(np.arange(N), REPEATS)


@pytest.mark.parametrize(
    ("likelihood", "y"), [("normal", Y), ("bernoulli", CLASS), ("poisson", COUNT), ("student_t", Y)]
)
@pytest.mark.parametrize("method", ["sequential", "mackay"])
def test_a_weight_counts_a_row_that_often(likelihood, y, method):
    # The bias's prior and the centre of a standardised column would see the rows, not the weights: leave both out.
    settings = {
        "basis": bs.basis.linear(standardise=False),
        "likelihood": likelihood,
        "method": method,
        "smoothness": 0.5,
        "draws": 0,
        "tolerance": 1e-8,
    }
    model = bs.models.ARDGaussian(bias_sd=5.0)
    weighted = bs.fit(model, (X, y), weights=REPEATS, **settings)["evidence"]
    repeated = bs.fit(model, (X[REPEATED], np.asarray(y)[REPEATED]), **settings)["evidence"]
    np.testing.assert_allclose(weighted["log_evidence"], repeated["log_evidence"], rtol=1e-6)
    for name in ("mean", "sd", "bias", "bias_sd"):
        np.testing.assert_allclose(weighted[name], repeated[name], rtol=2e-3, atol=1e-6, err_msg=name)
    np.testing.assert_array_equal(weighted["kept"], repeated["kept"])


def test_a_row_of_weight_zero_is_not_there():
    weights = (np.arange(N) % 4 > 0).astype(float)
    there = weights > 0
    settings = {"basis": bs.basis.linear(standardise=False), "draws": 0}
    model = bs.models.ARDGaussian(bias_sd=5.0)
    weighted = bs.fit(model, (X, CLASS), weights=weights, **settings)["evidence"]
    fewer = bs.fit(model, (X[there], CLASS[there]), **settings)["evidence"]
    np.testing.assert_allclose(weighted["log_evidence"], fewer["log_evidence"], rtol=1e-8)


def test_weights_are_recorded():
    tree = bs.fit("ard_gaussian", (X, Y), weights=REPEATS, draws=0)
    np.testing.assert_array_equal(tree["constant_data"]["weights"], REPEATS)


def test_an_offset_is_a_known_part_of_the_mean():
    offset = np.linspace(-3, 3, N)
    model = bs.models.ARDGaussian(bias_sd=5.0)
    shifted = bs.fit(model, (X, Y + offset), offset=offset, draws=0)["evidence"]
    plain = bs.fit(model, (X, Y), draws=0)["evidence"]
    for name in ("log_evidence", "mean", "sd", "sigma", "bias"):
        np.testing.assert_allclose(shifted[name], plain[name], rtol=1e-9, err_msg=name)


@pytest.mark.parametrize("likelihood", ["poisson", "negative_binomial", "bernoulli"])
def test_an_exposure_that_is_not_in_logs(likelihood):
    with pytest.raises(ValueError, match=r"np\.log\(exposure\)") as error:
        bs.fit("ard_gaussian", (X, (Y > 0).astype(int)), likelihood=likelihood, offset=np.full(N, 1e4))
    assert_one_sentence(str(error.value), "1e+04", likelihood)


@pytest.mark.parametrize(
    ("y", "offset"), [(Y * 1e-20, np.ones(N)), (Y, np.full(N, 1e20)), (Y, Y), (Y, Y + 1.0), (Y, np.full(N, 1e200))]
)
def test_an_offset_beside_which_nothing_is_left(y, offset):
    with pytest.raises(ValueError, match="offset") as error:
        bs.fit("ard_gaussian", (X, y), offset=offset)
    assert_one_sentence(str(error.value))


def test_an_exposure_is_an_offset_on_the_log_scale():
    exposure = RNG.uniform(1.0, 20.0, N)
    count = RNG.poisson(exposure * np.exp(0.4 + 0.7 * X[:, 2]))
    tree = bs.fit("ard_gaussian", (X, count), likelihood="poisson", offset=np.log(exposure), draws=0)
    assert tree["evidence"]["kept"].to_numpy().tolist() == [False, False, True]
    np.testing.assert_allclose(tree["evidence"]["mean"][2], 0.7, atol=4 * tree["evidence"]["sd"][2].item())
    np.testing.assert_allclose(tree["evidence"]["bias"], 0.4, atol=4 * tree["evidence"]["bias_sd"].item())
    once = bs.predict(tree, X[:5], offset=np.log(exposure[:5]))
    with pytest.warns(bs.FitWarning, match="The fit had an offset, and these rows have none"):
        unit = bs.predict(tree, X[:5])
    np.testing.assert_array_equal(bs.predict(tree, X[:5], offset=0)["mean"], unit["mean"])
    np.testing.assert_allclose(once["mean"], exposure[:5] * unit["mean"], rtol=1e-10)


def test_kept_columns_are_never_pruned():
    table = pd.DataFrame(X, columns=["signal", "dull", "duller"]).assign(y=Y)
    without = bs.fit("ard_gaussian", table, target="y", draws=0)["evidence"]
    assert without["kept"].to_numpy().tolist() == [True, False, False]
    for keep in ("dull", ["dull"], ("dull", "signal")):
        for method in ("sequential", "mackay", "em"):
            kept = bs.fit("ard_gaussian", table, target="y", keep=keep, method=method, draws=0)["evidence"]
            assert kept["kept"].sel(basis="dull")
            assert np.isfinite(kept["alpha"].sel(basis="dull"))
            assert kept["sd"].sel(basis="dull") > 0
            assert kept["gamma"].sel(basis="dull") > 0.9  # a wide prior: the data decide
            # What is never pruned has no price, and is none of the degrees of freedom that have one.
            chosen = [name for name in ("signal", "duller") if name not in keep]
            np.testing.assert_allclose(
                kept.attrs["degrees_of_freedom"], kept["gamma"].sel(basis=chosen).sum(), atol=1e-9
            )


def test_everything_kept_is_a_ridge_with_a_wide_prior():
    names = ["x0", "x1", "x2"]
    tree = bs.fit("ard_gaussian", (X, Y), keep=names, draws=0)["evidence"]
    least_squares = np.linalg.lstsq(np.column_stack([X, np.ones(N)]), Y, rcond=None)[0]
    np.testing.assert_allclose(tree["mean"], least_squares[:3], atol=1e-3)
    assert tree["kept"].all()
