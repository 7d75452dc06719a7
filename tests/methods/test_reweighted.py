"""The Laplace prior with its scale integrated out, through the front door: what is found, checked in plain numpy."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import gammaln
from sklearn.linear_model import Lasso, LogisticRegression

import bayes_sparse as bs
from bayes_sparse.common import progress
from tests.support import fit_path as fit

from .l1_by_hand import (
    TARGETS,
    N,
    P,
    X,
    Z,
    assert_minimum,
    log_density,
    nuisance_of,
    predictor,
    score,
    standardised,
)

pytestmark = pytest.mark.quick

BARE = bs.basis.linear(standardise=False)
every_likelihood = pytest.mark.parametrize("likelihood", TARGETS)


@every_likelihood
def test_what_is_found_is_a_stationary_point_of_the_criterion(likelihood):
    y = TARGETS[likelihood]
    evidence = fit((X, y), likelihood=likelihood)["evidence"]
    size = np.abs(evidence["mean"].to_numpy() * X.std(axis=0))
    count, R = int(np.count_nonzero(size)), size.sum()
    log_likelihood = log_density(likelihood, y, predictor(evidence, X), nuisance_of(evidence)).sum()
    assert evidence["N"] == count == evidence["kept"].sum() > 2
    assert_allclose(evidence["R"], R, rtol=1e-10)
    assert_allclose(evidence["log_likelihood_mode"], log_likelihood, rtol=1e-9)
    assert_allclose(evidence["criterion"], -log_likelihood + count * np.log(R), rtol=1e-9)
    assert_allclose(evidence["log_prior"], gammaln(count) - count * np.log(2 * R), rtol=1e-10)
    assert np.isnan(evidence["log_evidence"])
    assert_minimum(evidence, likelihood, y)
    assert evidence.attrs["status"] in ("fixed-point", "jump")
    if evidence.attrs["status"] == "fixed-point":
        assert_allclose(evidence["lambda"], count / R, rtol=1e-8)
    assert (evidence.attrs["prior"], evidence.attrs["separable"], evidence.attrs["folded"]) == ("jeffreys", 0, "[]")
    assert evidence.attrs["violation"] < 1e-8
    assert evidence["r"] < 1


@every_likelihood
def test_r_is_how_fast_the_plain_update_contracts(likelihood):
    """d(N/R)/d lambda = -(N/R^2) dR/d lambda, by fits at two lambdas close to the one found."""
    evidence = fit((X, TARGETS[likelihood]), likelihood=likelihood)["evidence"]
    lam, count = float(evidence["lambda"]), int(evidence["N"])
    above, below = (
        fit((X, TARGETS[likelihood]), likelihood=likelihood, lam=lam * (1 + h))["evidence"] for h in (4e-4, 2e-4)
    )
    assert above["N"] == below["N"] == count
    slope = float(above["R"] - below["R"]) / (2e-4 * lam)
    assert_allclose(float(evidence["r"]), -count / float(evidence["R"]) ** 2 * slope, rtol=5e-3)


@pytest.mark.parametrize("lam", [2.0, 15.0])
def test_a_given_lambda_is_l1_regression_of_scikit_learn(lam):
    y = TARGETS["bernoulli"]
    evidence = fit((X, y), lam=lam)["evidence"]
    sklearn = LogisticRegression(C=1 / lam, l1_ratio=1.0, solver="saga", tol=1e-10, max_iter=100_000).fit(Z, y)
    assert_allclose(evidence["mean"] * X.std(axis=0), sklearn.coef_[0], atol=1e-5)
    assert evidence["N"] == np.count_nonzero(sklearn.coef_)
    assert (evidence.attrs["status"], evidence.attrs["prior"]) == ("converged", "laplace")
    assert_allclose(evidence["lambda"], lam)
    assert_allclose(evidence["log_prior"], evidence["N"] * np.log(lam / 2) - lam * evidence["R"], rtol=1e-10)
    y = TARGETS["normal"]
    evidence = fit((X, y), lam=lam)["evidence"]
    assert_minimum(evidence, "normal", y)  # both conditions: the weights' and the noise's
    assert_allclose(evidence["sigma"], np.sqrt(np.mean((y - predictor(evidence, X)) ** 2)), rtol=1e-8)
    lasso = Lasso(alpha=lam * float(evidence["sigma"]) ** 2 / N, tol=1e-12, max_iter=100_000).fit(Z, y)
    assert_allclose(evidence["mean"] * X.std(axis=0), lasso.coef_, atol=1e-6)


@pytest.mark.parametrize("likelihood", ["poisson", "negative_binomial"])
def test_a_given_lambda_of_counts_is_the_minimum_of_a_general_optimiser(likelihood):
    """Each weight as the difference of two that are not negative makes the problem smooth."""
    y, lam = TARGETS[likelihood], 8.0
    evidence = fit((X, y), likelihood=likelihood, lam=lam)["evidence"]
    nuisance = nuisance_of(evidence)

    def cost(v):
        eta = v[-1] + Z @ (v[:P] - v[P:-1])
        slope = Z.T @ score(likelihood, y, eta, nuisance)
        gradient = np.concatenate([lam - slope, lam + slope, [-score(likelihood, y, eta, nuisance).sum()]])
        return lam * v[:-1].sum() - log_density(likelihood, y, eta, nuisance).sum(), gradient

    start, bounds = np.append(np.zeros(2 * P), np.log(y.mean())), [(0, None)] * (2 * P) + [(None, None)]
    found = minimize(cost, start, jac=True, bounds=bounds, options={"ftol": 1e-15, "gtol": 1e-9, "maxiter": 10_000})
    assert_allclose(evidence["mean"] * X.std(axis=0), found.x[:P] - found.x[P:-1], atol=2e-5)
    assert float(lam * evidence["R"] - evidence["log_likelihood_mode"]) <= found.fun + 1e-8


@every_likelihood
def test_a_lambda_beyond_the_largest_leaves_nothing(likelihood):
    y = TARGETS[likelihood]
    constant = [np.std(y)] if likelihood == "normal" else [1.0]
    null = np.full(N, y.mean() if likelihood == "normal" else np.log(y.mean()))
    if likelihood == "bernoulli":
        null = np.full(N, np.log(y.mean() / (1 - y.mean())))
    if likelihood == "negative_binomial":
        with pytest.warns(bs.FitWarning, match="bias only"):
            constant = nuisance_of(fit((X, y), likelihood=likelihood, lam=1e6)["evidence"])
    top = np.abs(Z.T @ score(likelihood, y, null, constant)).max()
    with pytest.warns(bs.FitWarning, match="No basis function pays for itself: .*bias only"):
        tree = fit((X, y), likelihood=likelihood, lam=1.001 * top)
    assert (tree["evidence"].attrs["status"], int(tree["evidence"]["N"])) == ("null", 0)
    assert_allclose(predictor(tree["evidence"], X), null, rtol=1e-6)
    assert fit((X, y), likelihood=likelihood, lam=0.98 * top)["evidence"]["N"] >= 1


def test_classes_that_can_be_separated():
    rng = np.random.default_rng(4)
    wide = rng.standard_normal((40, 60))
    y = (wide[:, 0] + 0.3 * rng.standard_normal(40) > 0).astype(int)
    with pytest.warns(bs.FitWarning, match="separate the classes perfectly"):
        evidence = fit((wide, y))["evidence"]
    assert evidence.attrs["separable"] == 1
    assert 0 < evidence["N"] < 40
    assert_minimum(evidence, "bernoulli", y, X=wide, Z=(wide - wide.mean(axis=0)) / wide.std(axis=0))


@every_likelihood
def test_copies_are_folded_and_named(likelihood, messages):
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(P)])
    more = frame.assign(copy=X[:, 0], opposite=3.0 - 2.0 * X[:, 1])
    plain = fit((frame, TARGETS[likelihood]), likelihood=likelihood)
    messages.clear()
    tree = fit((more, TARGETS[likelihood]), likelihood=likelihood)
    assert [m for m in messages if "'copy' is 'x0', 'opposite' is minus 'x1'" in m and "folded" in m]
    assert tree["evidence"].attrs["folded"] == '["copy", "opposite"]'
    assert not tree["evidence"]["kept"].sel(basis=["copy", "opposite"]).any()
    for name in ("lambda", "N", "R", "criterion"):
        assert_allclose(tree["evidence"][name], plain["evidence"][name], rtol=1e-7)
    ours, other = bs.predict(tree, more.iloc[:20]), bs.predict(plain, frame.iloc[:20])
    for name in set(other.data_vars) - {"label"}:
        assert_allclose(ours[name], other[name], rtol=1e-6)


def test_a_wide_regression_whose_noise_collapses():
    rng = np.random.default_rng(5)
    wide = rng.standard_normal((30, 200))
    with pytest.warns(bs.FitWarning, match="until the noise collapses.*method='cv', give `lam`, or fit 'ard_gaussian'"):
        evidence = fit((wide, wide[:, 0] + rng.standard_normal(30)))["evidence"]
    assert (evidence.attrs["status"], int(evidence["N"])) == ("null", 0)
    assert not evidence["kept"].any()


@every_likelihood
def test_what_is_kept_has_no_price_and_is_not_counted(likelihood):
    evidence = fit((X, TARGETS[likelihood]), likelihood=likelihood, keep=["x5", "x7"])["evidence"]
    mean = evidence["mean"].to_numpy()
    assert np.all(mean[[5, 7]] != 0)
    assert evidence["kept"].to_numpy()[[5, 7]].all()
    assert evidence["N"] == np.count_nonzero(mean) - 2
    assert_allclose(evidence["R"], np.abs(mean * X.std(axis=0))[[0, 1, 2, 3, 4, 6]].sum(), rtol=1e-10)
    assert_minimum(evidence, likelihood, TARGETS[likelihood], kept=[5, 7])


@every_likelihood
def test_an_offset_and_weights(likelihood):
    y, offset = TARGETS[likelihood], 0.3 * np.sin(np.arange(N))
    weights = np.linspace(0.5, 2.0, N)
    evidence = fit((X, y), likelihood=likelihood, offset=offset, weights=weights)["evidence"]
    assert_minimum(evidence, likelihood, y, Z=standardised(X, weights), offset=offset, weights=weights)
    whole = 1 + np.arange(N) % 3
    settings = {"likelihood": likelihood, "basis": BARE}
    counted = fit((X, y), weights=whole, offset=offset, **settings)["evidence"]
    repeated = fit((np.repeat(X, whole, 0), np.repeat(y, whole)), offset=np.repeat(offset, whole), **settings)
    for name in ("lambda", "mean", "sd", "criterion", "r"):
        assert_allclose(counted[name], repeated["evidence"][name], rtol=1e-5, atol=1e-8)


@every_likelihood
def test_without_a_bias(likelihood):
    centred = X - X.mean(axis=0)
    y = TARGETS[likelihood] - 3.0 if likelihood == "normal" else TARGETS[likelihood]
    evidence = fit((centred, y), likelihood=likelihood, basis=bs.basis.linear(bias=False))["evidence"]
    assert "bias" not in evidence
    assert_minimum(evidence, likelihood, y, X=centred)


def test_the_prior_of_the_bias_is_that_of_the_other_methods():
    """The slope along the bias is that of its normal prior, whatever the noise."""
    y = 5.0 * TARGETS["normal"]
    for method in ("reweighted", "coordinate_descent", "fuzzy"):
        evidence = fit((X, y), method=method, bias_sd=2.0)["evidence"]
        slope = score("normal", y, predictor(evidence, X), nuisance_of(evidence)).sum()
        bias = float(evidence["bias"]) + X.mean(axis=0) @ evidence["mean"].to_numpy()  # of standardised columns
        assert_allclose(slope, bias / 2.0**2, rtol=1e-4, err_msg=method)


def test_counts_that_are_all_zero():
    """The path is one of penalties whose products are too small to be numbers."""
    X = np.random.default_rng(0).normal(size=(60, 1))
    with pytest.warns(bs.FitWarning, match="No basis function pays for itself"):
        tree = fit((X, np.zeros(60, dtype=int)), likelihood="negative_binomial")
    assert tree["evidence"].attrs["status"] == "null"


def test_kernels():
    kernel = np.exp(-((X[:60, None, :2] - X[None, :60, :2]) ** 2).sum(axis=2) / (2 * 1.5**2))
    y = TARGETS["bernoulli"][:60]
    tree = fit((X[:60, :2], y), basis=bs.basis.rbf(1.5))
    assert_minimum(tree["evidence"], "bernoulli", y, X=kernel, Z=kernel)
    assert_allclose(bs.predict(tree, X[:5, :2])["probability"].sum("class"), 1.0)


def test_nothing_is_shown_and_everything_comes_out_the_same(monkeypatch, capfd):
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    one, other = (fit((X, TARGETS["normal"]), draws=20, random_seed=1, all_points=True) for _ in range(2))
    assert capfd.readouterr() == ("", "")
    del one["evidence"].attrs["seconds"], other["evidence"].attrs["seconds"]
    assert one.identical(other)
