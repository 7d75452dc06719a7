"""BLogReg, one weight at a time: the points of `reweighted` where it settles, and a word where it does not."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import brentq

import bayes_sparse as bs
from bayes_sparse.inference.l1.path import Path
from bayes_sparse.inputs.prepare import prepare
from bayes_sparse.methods.coordinate_descent import _State
from bayes_sparse.models import JeffreysLaplace
from tests.support import fit_path as fit

from .l1_by_hand import TARGETS, N, X, assert_minimum, score

every_likelihood = pytest.mark.parametrize("likelihood", TARGETS)
DESCENT = {"method": "coordinate_descent"}


def assert_same_point(data, **settings):
    """Two searches that share the criterion and little else."""
    ours, other = fit(data, **DESCENT, **settings)["evidence"], fit(data, **settings)["evidence"]
    assert ours.attrs["status"] == other.attrs["status"] == "fixed-point"
    # Slopes are right to a millionth of lambda, and lambda is some way below the largest.
    for name in ("lambda", "R", "r", "mean", "sd"):
        assert_allclose(ours[name], other[name], rtol=1e-4, atol=1e-5 * np.abs(other[name]).max(), err_msg=name)
    assert_allclose(ours["criterion"], other["criterion"], rtol=1e-8)
    assert ours["N"] == other["N"]
    assert ours["kept"].equals(other["kept"])


@every_likelihood
def test_it_ends_where_reweighted_does(likelihood):
    assert_same_point((X, TARGETS[likelihood]), likelihood=likelihood)
    evidence = fit((X, TARGETS[likelihood]), likelihood=likelihood, **DESCENT)["evidence"]
    assert_minimum(evidence, likelihood, TARGETS[likelihood])
    assert_allclose(evidence["lambda"] * evidence["R"], evidence["N"], rtol=1e-10)


@pytest.mark.parametrize("name", ["heart_statlog", "pima", "bupa"])
def test_it_ends_where_reweighted_does_on_the_papers_data(name):
    try:
        frame = bs.datasets.load(name, download=False)
    except FileNotFoundError as error:
        pytest.skip(str(error))
    assert_same_point((frame.drop(columns="target").astype(float), frame["target"]), likelihood="bernoulli")


@pytest.mark.parametrize("seed", range(4))
@every_likelihood
def test_it_ends_where_reweighted_does_on_other_data(likelihood, seed):
    """Strong weights, so that a solution is exact."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((200, 3))
    eta = X @ np.array([1.0, -0.8, 0.6])
    y = {
        "normal": eta + rng.standard_normal(200),
        "bernoulli": (eta + rng.logistic(size=200) > 0).astype(int),
        "poisson": rng.poisson(np.exp(eta)),
        "negative_binomial": rng.poisson(rng.gamma(2.0, np.exp(eta) / 2.0)),
    }[likelihood]
    assert_same_point((X, y), likelihood=likelihood)


@pytest.mark.parametrize(
    "settings",
    [
        {"keep": "x5"},
        {"offset": 0.3 * np.sin(np.arange(N))},
        {"weights": np.linspace(0.5, 2.0, N)},
        {"bias_sd": 0.5},
    ],
    ids=lambda settings: next(iter(settings)),
)
@pytest.mark.parametrize("likelihood", ["normal", "bernoulli"])
def test_it_ends_where_reweighted_does_whatever_the_settings(likelihood, settings):
    """Targets of twice the size: a prior in the wrong units would show."""
    y = 2 * TARGETS["normal"] if likelihood == "normal" else TARGETS[likelihood]
    ours, other = (fit((X, y), **settings, **more)["evidence"] for more in (DESCENT, {}))
    if "jump" in (ours.attrs["status"], other.attrs["status"]):
        assert ours.attrs["status"] == other.attrs["status"]
        assert ours["N"] == other["N"]
    else:
        assert_same_point((X, y), **settings)


@pytest.mark.parametrize("seed", [8, 20, 28, 45])
def test_a_jump_is_noticed_and_said(seed, messages):
    """There is no point to settle at: N and N + 1 take turns, for ever if nobody looked."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((60, 6))
    X[:, 1] += 0.9 * X[:, 0]
    y = (X[:, 0] + 0.4 * X[:, 2] + rng.logistic(size=60) > 0).astype(int)
    points = fit((X, y), all_points=True)["evidence"]
    assert set(points["solution_status"].to_numpy()) == {"jump"}
    messages.clear()
    evidence = fit((X, y), **DESCENT, max_iterations=5000)["evidence"]
    assert evidence.attrs["status"] == "jump"
    assert evidence["N"].item() in points["solution_N"]
    assert [m for m in messages if "jumps past it" in m and "sparser side" in m and f"N = {int(evidence['N'])}" in m]


def test_too_few_updates_are_said():
    with pytest.warns(bs.FitWarning, match="did not converge within its limit .*method='reweighted' always ends"):
        evidence = fit((X, TARGETS["bernoulli"]), **DESCENT, max_iterations=3)["evidence"]
    assert (evidence.attrs["status"], evidence.attrs["n_iterations"]) == ("max_iterations", 3)


def test_the_tolerance_is_kept():
    exact = fit((X, TARGETS["poisson"]), likelihood="poisson")["evidence"]["mean"]
    rough, fine = (
        np.abs(fit((X, TARGETS["poisson"]), likelihood="poisson", **DESCENT, tolerance=t)["evidence"]["mean"] - exact)
        for t in (1e-2, 1e-9)
    )
    assert fine.max() < 1e-8 < rough.max() < 1e-2


def test_nothing_to_find():
    rng = np.random.default_rng(2)
    data = (rng.standard_normal((50, 3)), (rng.random(50) > 0.5).astype(int))
    with pytest.warns(bs.FitWarning, match="bias only"):
        evidence = fit(data, **DESCENT)["evidence"]
    assert (evidence.attrs["status"], int(evidence["N"])) == ("null", 0)


def state(likelihood, X, y, bias_sd=None):
    data = prepare((X, y), None, likelihood, bs.basis.linear(), None, None, None)
    path = Path(JeffreysLaplace(bias_sd=bias_sd).problem(data).problem)
    return _State(path, path.cold(0.05 * path.largest, 1e-3))


@pytest.mark.parametrize("at", ["here", -2.0, 0.0, 3.0])
@pytest.mark.parametrize("price", [0.0, 0.5, 5.0, 1e4])
@every_likelihood
def test_one_weight_goes_to_its_own_optimum(likelihood, price, at):
    """The root of its slope by Brent's method, from the place it has, from zero, and from either side."""
    y = TARGETS[likelihood].astype(float)
    of = state(likelihood, X, y)
    nuisance, precision = np.exp(of.theta), 0.3
    for j in (0, 1, 5):
        column = of._path.columns.take(np.array([j]))[0]
        away = of.eta - of.w[j] * column
        here = of.w[j] if at == "here" else at
        of.eta = away + here * column

        def slope(w, away=away, column=column):
            return column @ score(likelihood, y, away + w * column, nuisance) - precision * w

        side = np.sign(slope(0.0)) if abs(slope(0.0)) > price else 0.0
        truth = 0.0 if price and not side else brentq(lambda w: slope(w) - price * side, -30, 30, xtol=1e-13)  # noqa: B023
        assert_allclose(of._optimum(column, here, price, precision), truth, rtol=1e-8, atol=1e-10)
        of.eta = away + of.w[j] * column


def test_a_weight_whose_newton_step_overflows():
    """One count of a thousand among ones: the first step leads to a rate of exp(980)."""
    X, y = np.zeros((50, 2)), np.ones(50)
    X[0, 0], X[:, 1], y[0] = 1.0, np.sin(np.arange(50)), 1000
    of = state("poisson", X, y)
    column, of.eta = of._path.columns.take(np.array([0]))[0], np.zeros(50)
    truth = brentq(lambda w: column @ (y - np.exp(w * column)) - 1.0, 0, 5, xtol=1e-13)
    with np.errstate(over="ignore"):
        assert_allclose(of._optimum(column, 0.0, 1.0, 0.0), truth, rtol=1e-8)


def test_lambda_is_refreshed_after_each_weight():
    of = state("bernoulli", X, TARGETS["bernoulli"])
    for j in (3, 0, 6, len(of.w) - 1):
        of.update(j)
        priced = np.abs(of.w[:-1])
        assert np.count_nonzero(priced) == of.N
        assert_allclose(of.R, priced.sum(), rtol=1e-12)
        assert_allclose(of.lam, np.count_nonzero(priced) / priced.sum(), rtol=1e-12)
        assert_allclose(of.eta, of.w @ of._path.columns.take(np.arange(len(of.w))), atol=1e-12)
