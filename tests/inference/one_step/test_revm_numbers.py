"""Every number of a one-step fit, by hand."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.stats import multivariate_normal

import bayes_sparse as bs

from .by_hand import Hand, agrees, at_mode, counts, logistic
from .systems import BARE, BINARY, ETA, RNG, SMALL, SYSTEMS, TARGETS, N, Z, fit

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("system", ["GREVM", "LREVM"])
@pytest.mark.parametrize("n", [N, 3], ids=["n > M", "n < M"])
def test_logistic_regression_by_hand(system, n):
    """Also with more columns than rows, where the fit takes another road and the hand does not."""
    prior = {"GREVM": "gaussian", "LREVM": "laplace"}[system]
    Phi, y = (Z, BINARY) if n == N else (RNG.standard_normal((24, 40)) * 2, np.arange(24) % 3 == 0)
    hand = Hand(logistic, Phi, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bs.FitWarning)  # 40 columns separate 24 rows
        tree = fit(system, (Phi, y), basis=BARE, expansion="ridge")
    agrees(tree["evidence"], *hand.expand(hand.climb(1e-2 * np.mean(Phi**2)), keep_slope=False), prior)


@pytest.mark.parametrize("system", ["GREVM", "LREVM"])
@pytest.mark.parametrize("likelihood", ["bernoulli", "poisson"])
def test_the_last_step_is_the_mode_of_the_true_likelihood(system, likelihood):
    terms, y = (logistic, BINARY) if likelihood == "bernoulli" else (counts, TARGETS["poisson"])
    evidence = fit(system, (Z, y), likelihood=likelihood, basis=BARE)["evidence"]
    slope, u = at_mode(Hand(terms, Z, y), evidence)
    alpha = evidence["alpha"].to_numpy()[np.isfinite(evidence["alpha"])]
    assert_allclose(u, evidence["u_mode"].sel(direction=evidence["kept_direction"]), atol=1e-8)
    if system == "GREVM":
        assert_allclose(slope, alpha * u, atol=1e-5)
    else:  # the slope balances the price of |u|, or falls short of it where u is zero
        assert_allclose(slope[u != 0], (alpha / 2 * np.sign(u))[u != 0], atol=1e-5)
        assert np.all(np.abs(slope[u == 0]) <= alpha[u == 0] / 2)


@pytest.mark.parametrize("bias", [True, False])
def test_a_normal_likelihood_has_the_exact_evidence(bias):
    """With the centre kept (expansion at zero) nothing is approximated: the density of the targets, given the prior."""
    basis, y = bs.basis.precomputed(bias=bias), TARGETS["normal"] - (0.0 if bias else 7.0)
    evidence = fit("GREVM", (Z, y), basis=basis, expansion="zero")["evidence"]
    Q = evidence["loading"].to_numpy()
    alpha = evidence["alpha"].sel(direction=evidence["kept_direction"]).to_numpy()
    covariance = evidence["sigma"].item() ** 2 * np.eye(N) + (Z @ Q.T / alpha) @ (Z @ Q.T).T
    if bias:
        covariance += 100 * np.mean(y**2)
    expected = multivariate_normal(np.zeros(N), covariance).logpdf(y)
    assert_allclose(evidence["log_evidence"], expected, rtol=1e-9)
    assert_allclose(evidence["log_evidence_mode"], expected, rtol=1e-9)
    assert ("bias" in evidence) == bias


def test_the_noise_is_that_of_the_best_ridge():
    """One precision for all weights and the noise, by the exact density of the targets."""
    y = TARGETS["normal"]

    def lack(logs):
        ridge, noise = np.exp(logs)
        covariance = noise**2 * np.eye(N) + Z @ Z.T / ridge + 1e4 * np.mean(y**2)
        return -multivariate_normal(np.zeros(N), covariance).logpdf(y)

    found = minimize(lack, [0.0, np.log(0.5)], method="Nelder-Mead", options={"xatol": 1e-5, "fatol": 1e-7})
    evidence = fit("GREVM", (Z, y), basis=BARE)["evidence"]
    assert_allclose(np.log(evidence["sigma"]), found.x[1], atol=1e-3)
    assert_allclose(np.log(evidence["ridge"]), found.x[0], atol=2e-2)  # a flat maximum


@pytest.mark.filterwarnings("ignore:The quadratic:bayes_sparse.FitWarning")  # counts are far from quadratic at zero
def test_a_fixed_column_an_offset_and_weights_by_hand():
    """Poisson regression with an exposure, a column that is never pruned and rows that count more than once."""
    offset, repeats = np.linspace(-1, 1, N), np.arange(N) % 3 + 1.0
    y = RNG.poisson(np.exp(offset + ETA))
    middle = np.average(Z[:, 1], weights=repeats)
    free, size = [0, 2, 3], np.sqrt(np.average((Z[:, 1] - middle) ** 2, weights=repeats))
    hand = Hand(counts, Z[:, free], y, np.c_[Z[:, 1], np.ones(N)], [size**2 / 100, 0.01], offset, repeats)
    settings = {"likelihood": "poisson", "keep": "x1", "offset": offset, "weights": repeats, "basis": BARE}
    evidence = fit("GREVM", (Z, y), expansion="zero", **settings)["evidence"]
    agrees(evidence, *hand.expand(hand.best_fixed(np.zeros(3)), keep_slope=True))
    assert np.all(evidence["loading"].sel(basis="x1") == 0)
    assert evidence["mean"].sel(basis="x1") < 0
    tree = fit("GREVM", (Z, y), expansion="zero", **settings, **SMALL)
    assert_array_equal(bs.predict(tree, Z, offset=offset)["mean"] > 0, True)
    w = tree["posterior"]["w"].sel(basis="x1")
    assert w.std() > 0


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("likelihood", ["bernoulli", "poisson", "normal", "categorical"])
def test_a_weight_of_two_is_a_row_twice(system, likelihood):
    repeats = np.arange(N) % 3 + 1
    rows, y = np.repeat(np.arange(N), repeats), TARGETS[likelihood]
    model, own = SYSTEMS[system]
    settings = {"likelihood": likelihood, "basis": BARE, "draws": 0, "bias_sd": 10.0, **own}
    one = bs.fit(model, (Z, y), weights=repeats, **settings)["evidence"]
    two = bs.fit(model, (Z[rows], y[rows]), **settings)["evidence"]
    for name in ("log_evidence", "log_evidence_mode", "h", "gamma", "mean", "sd"):
        assert_allclose(one[name], two[name], rtol=1e-6, atol=1e-8, err_msg=name)
