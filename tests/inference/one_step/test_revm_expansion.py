"""Where the likelihood is expanded, through the front door."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize_scalar

import bayes_sparse as bs

from .by_hand import Hand, agrees, logistic
from .systems import BARE, BINARY, SYSTEMS, TARGETS, P, X, Z, fit


def test_zero_keeps_the_slope_there():
    hand = Hand(logistic, Z, BINARY)
    evidence = fit("GREVM", (Z, BINARY), basis=BARE, expansion="zero")["evidence"]
    agrees(evidence, *hand.expand(hand.best_fixed(np.zeros(P)), keep_slope=True))
    assert evidence.attrs["expansion"] == "zero"


@pytest.mark.parametrize("steps", [1, 2, 5, np.int64(3)])
def test_a_number_of_newton_steps(steps):
    hand = Hand(logistic, Z, BINARY)
    evidence = fit("GREVM", (Z, BINARY), basis=BARE, expansion=steps)["evidence"]
    agrees(evidence, *hand.expand(hand.climb(1e-8 * np.mean(Z**2), int(steps)), keep_slope=False))
    assert evidence.attrs["expansion"] == str(steps)


def test_the_number_of_steps_may_be_numpys_with_more_columns_than_rows():
    rng = np.random.default_rng(0)
    wide = rng.standard_normal((20, 30))
    y = wide[:, 0] + rng.standard_normal(20)
    one, two = (fit("GREVM", (wide, y), expansion=k)["evidence"] for k in (2, np.int64(2)))
    assert one.to_dataset().equals(two.to_dataset())


@pytest.mark.parametrize("form", [np.asarray, list, lambda w: {"w": w}], ids=["array", "list", "dict"])
def test_a_point_of_the_users_keeps_its_slope(form):
    """The ridge's own solution, given as a point: the same quadratic but for the slope."""
    hand = Hand(logistic, Z, BINARY)
    v = hand.climb(1e-2 * np.mean(Z**2))
    evidence = fit("GREVM", (Z, BINARY), basis=BARE, expansion=form(v[:P]))["evidence"]
    agrees(evidence, *hand.expand(v, keep_slope=True))
    ridge = fit("GREVM", (Z, BINARY), basis=BARE, expansion="ridge")["evidence"]
    assert_allclose(evidence["h"], ridge["h"], rtol=1e-6)
    assert np.all(evidence["u_expansion"] > ridge["u_expansion"])  # the ridge had drawn them all towards zero


def test_a_point_is_in_the_users_units():
    w = np.array([1.0, -0.1, 0.5, 0.0])
    point = fit("GREVM", (X, BINARY), expansion=w)["evidence"]
    bare = fit("GREVM", (Z, BINARY), expansion=w * X.std(axis=0), basis=BARE)["evidence"]
    for name in ("log_evidence", "h", "alpha", "u_mode"):
        assert_allclose(point[name], bare[name], rtol=1e-6)
    assert_allclose(point["mean"] * X.std(axis=0), bare["mean"], rtol=1e-6)


def test_the_ridge_of_greatest_evidence():
    hand = Hand(logistic, Z, BINARY)
    evidence = fit("GREVM", (Z, BINARY), basis=BARE, expansion="evidence")["evidence"]

    def lack(log_ridge):
        ridge = np.exp(log_ridge)
        v = hand.climb(ridge)
        value, _, H = hand.look(v)
        prior = np.append(np.full(P, ridge), 0.01)
        inside = 0.5 * np.sum(np.log(prior)) - 0.5 * prior @ v**2 - 0.5 * np.linalg.slogdet(H + np.diag(prior))[1]
        return -(value + inside)

    found = minimize_scalar(lack, bounds=(-6, 6), method="bounded")
    assert_allclose(np.log(evidence["ridge"]), found.x, atol=0.01)
    assert_allclose(evidence["ridge_log_evidence"], -found.fun, atol=1e-5)
    agrees(evidence, *hand.expand(hand.climb(evidence["ridge"].item()), keep_slope=False))


def test_the_size_of_the_small_ridge_is_a_setting():
    hand = Hand(logistic, Z, BINARY)
    evidence = fit("LREVM", (Z, BINARY), basis=BARE, ridge=0.5)["evidence"]
    assert evidence.attrs["expansion"] == "ridge"
    agrees(evidence, *hand.expand(hand.climb(0.5 * np.mean(Z**2)), keep_slope=False), "laplace")


@pytest.mark.parametrize("system", SYSTEMS)
def test_classes_are_expanded_at_the_ridge_of_greatest_evidence(system):
    """By default; anything else, and what has no linear predictor, at the small ridge."""
    for likelihood in ("bernoulli", "categorical"):
        data = (X, TARGETS[likelihood])
        free, told = (fit(system, data, likelihood=likelihood, **own) for own in ({}, {"expansion": "evidence"}))
        assert free["evidence"].to_dataset().equals(told["evidence"].to_dataset())
    for likelihood in ("normal", "poisson"):
        assert fit(system, (X, TARGETS[likelihood]), likelihood=likelihood)["evidence"].attrs["expansion"] == "ridge"


def test_the_model_may_say_where():
    by_model = bs.fit(bs.models.LaplaceEigen(expansion="zero"), (X, BINARY), draws=0)["evidence"]
    by_name = fit("LREVM", (X, BINARY), expansion="zero")["evidence"]
    by_method = bs.fit("laplace_eigen", (X, BINARY), method=bs.methods.REVM(expansion="zero"), draws=0)["evidence"]
    assert by_model.to_dataset().equals(by_name.to_dataset())
    assert by_model.to_dataset().equals(by_method.to_dataset())
    assert by_model.attrs["expansion"] == "zero"


@pytest.mark.parametrize("system", ["GREVM", "LREVM"])
def test_the_posterior_of_a_normal_likelihood_is_that_of_the_quadratic_where_the_centre_is_kept(system):
    settings = {"likelihood": "normal", "expansion": "zero"}
    one, two = (fit(system, (X, TARGETS["normal"]), posterior=p, **settings)["evidence"] for p in ("mode", "quadratic"))
    for name in ("mean", "sd", "bias", "bias_sd", "u_mean", "u_sd"):
        assert_allclose(one[name], two[name], rtol=1e-6, atol=1e-9)


def test_the_octant_of_the_papers_has_the_same_mode():
    one, two = (fit("LREVM", (X, TARGETS["poisson"]), likelihood="poisson", octant=o)["evidence"] for o in (0, 1))
    assert_allclose(one["mode"], two["mode"], rtol=1e-6)
