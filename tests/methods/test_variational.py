"""The variational relevance vector machine against textbook updates, quadrature and its own Gamma factors."""

import arviz as az
import numpy as np
import pymc as pm
import pytest
import xarray as xr
from numpy.testing import assert_allclose
from scipy.integrate import trapezoid
from scipy.special import expit, gammaln, logsumexp
from scipy.stats import multivariate_normal, norm, t

import bayes_sparse as bs
from bayes_sparse.inputs.likelihoods import resolve
from tests.methods.variational_by_hand import logistic_rvm, normal_rvm
from tests.support import refused

PLAIN = bs.basis.linear(standardise=False)
VAGUE = (1e-6, 1e-6)


def data(likelihood="normal", n=60, p=5, seed=3):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) * rng.uniform(0.5, 2, p)
    eta = 0.3 + X[:, 0] - 0.7 * X[:, 1]
    if likelihood == "bernoulli":
        return X, (rng.random(n) < expit(eta)).astype(int)
    return X, eta + 0.5 * rng.standard_normal(n)


def fit(X, y, likelihood="normal", **settings):
    given = {"method": "variational", "likelihood": likelihood, "draws": 0, "tolerance": 1e-11, "progressbar": False}
    return bs.fit("ard_gaussian", (X, y), **{**given, **settings})


def by_hand(X, y, likelihood, hyper, noise, tree, rounds):
    """The textbook's updates in the units that the fit has, from where it ended or from afar."""
    Phi = np.column_stack([X, np.ones(len(y))])
    fixed, unit = resolve(likelihood).bias_sd(np.asarray(y, dtype=float)) ** -2, tree["evidence"].attrs["hyper_unit"]
    a, b = hyper[0], hyper[1] * unit**2
    rate = (a + 0.5) / tree["evidence"]["alpha"].to_numpy() if rounds == 1 else np.full(X.shape[1], unit**2)
    if likelihood == "bernoulli":
        return logistic_rvm(Phi, y, fixed, (a, b), rate, rounds)
    return normal_rvm(Phi, y, fixed, (a, b), (noise[0], noise[1] * unit**2), rate, rounds)


@pytest.mark.quick
@pytest.mark.parametrize(("hyper", "noise"), [((0.5, 0.2), (2.0, 0.3)), (VAGUE, VAGUE)])
def test_the_textbook_ends_at_the_same_place(hyper, noise):
    """Newton steps and 5000 rounds of updates: bound, factors and all."""
    X, y = data()
    tree = fit(X, 30 * y, basis=PLAIN, hyper=hyper, noise=noise)
    hand = by_hand(X, 30 * y, "normal", hyper, noise, tree, 5000)
    evidence = tree["evidence"]
    assert np.diff(hand.bounds).min() > -1e-9
    assert_allclose(float(evidence["bound"]), hand.bounds[-1], rtol=1e-10)
    assert_allclose(evidence["mean"], hand.mean[:-1], rtol=1e-5, atol=1e-7)
    assert_allclose(evidence["sd"], np.sqrt(hand.covariance.diagonal()[:-1]), rtol=1e-5)
    assert_allclose(evidence["alpha"], (hyper[0] + 0.5) / hand.rate, rtol=1e-5)
    assert_allclose(float(evidence["sigma"]) ** -2, float(evidence["noise_shape"]) / hand.noise_rate, rtol=1e-6)
    assert_allclose(float(evidence["bias"]), hand.mean[-1], rtol=1e-6)


@pytest.mark.parametrize("kernels", [False, True])
def test_at_the_top_the_textbook_changes_nothing(kernels):
    """On kernels too, of which most are at precisions that hardly matter: there the updates would take very long."""
    X, y = data(n=80, p=2 if kernels else 5)
    tree = fit(X, y, **({"basis": bs.basis.rbf(1.0)} if kernels else {}))
    evidence, posterior = tree["evidence"], fit_state(tree)
    alpha, sigma, unit = evidence["alpha"].to_numpy(), float(evidence["sigma"]), evidence.attrs["hyper_unit"]
    square = (evidence["mean"] ** 2 + evidence["sd"] ** 2).to_numpy()
    scale = posterior["scale"]
    rate = 1e-6 * unit**2 + 0.5 * square * scale**2
    assert_allclose(alpha / scale**2, (1e-6 + 0.5) / rate, rtol=1e-4)
    noise_rate = 1e-6 * unit**2 + 0.5 * posterior["power"]
    assert_allclose(sigma**-2, (1e-6 + 0.5 * len(y)) / noise_rate, rtol=1e-6)


def fit_state(tree):
    """What standardised columns are divided by, and the mean squared residual in all, from the tree alone."""
    new = tree["constant_data"]["X"].to_numpy()
    mean, variance = (bs.predict(tree, new)[name].to_numpy() for name in ("mean", "sd"))
    y, sigma = tree["observed_data"]["y"].to_numpy(), float(tree["evidence"]["sigma"])
    return {"power": np.sum((y - mean) ** 2 + variance**2 - sigma**2), "scale": 1.0}
