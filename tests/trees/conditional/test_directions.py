"""p(u | alpha*, data) after a one-step method, written out with scipy's densities."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.special import expit, log_softmax

import bayes_sparse as bs
from bayes_sparse.trees.description import moments_of

from .fits import MIDDLE, OFFSET, TARGETS, WEIGHTS, ZW, X, Z, fitted, points, slopes

pytestmark = pytest.mark.quick

LAPLACE, GAUSSIAN = bs.models.LaplaceEigen(), bs.models.GaussianEigen()


def log_likelihood(likelihood, eta, theta):
    y = TARGETS[likelihood]
    if likelihood == "normal":
        return stats.norm.logpdf(y, eta, np.exp(theta[0]))
    if likelihood == "bernoulli":
        return stats.bernoulli.logpmf(y, expit(eta))
    return stats.poisson.logpmf(y, np.exp(eta))


def log_prior(name, u, alpha):
    scale = 2 / alpha if name == "laplace" else alpha**-0.5
    return (stats.laplace if name == "laplace" else stats.norm).logpdf(u, scale=scale).sum()


def agrees(found, truth):
    """At points about the mean, along the gradient, and at the draws of the evidence tree."""
    density = found.density
    for x in points(density):
        value, gradient = density.evaluate(x)
        assert_allclose(value, truth(x), rtol=1e-10)
        assert_allclose(gradient, slopes(density.evaluate, x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("model", [LAPLACE, GAUSSIAN], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("likelihood", ["normal", "bernoulli", "poisson"])
def test_one_predictor(model, likelihood):
    given = {"weights": WEIGHTS, "offset": OFFSET}
    _, found = fitted(model, (X, TARGETS[likelihood]), likelihood, **given)
    outcome = found.outcome
    k, alpha, theta = int(outcome.kept.sum()), outcome.alpha[outcome.kept], outcome.quadratic.theta
    y = TARGETS[likelihood]
    wide = 10 * np.sqrt(np.average((y - OFFSET) ** 2, weights=WEIGHTS)) if likelihood == "normal" else 10.0
    assert k > 0

    def truth(x):
        u, bias = x[:k], x[k]
        eta = OFFSET + ZW @ (outcome.loadings.T @ u) + bias
        terms = WEIGHTS @ log_likelihood(likelihood, eta, theta)
        return terms + log_prior(model.prior, u, alpha) + stats.norm.logpdf(bias, scale=wide)

    agrees(found, truth)
    tree = found.tree(3, 2, np.random.default_rng(1))
    posterior = tree["posterior"].to_dataset()
    w = posterior["w"].to_numpy().reshape(6, -1)
    x = np.column_stack([posterior["u"].to_numpy().reshape(6, k), posterior["bias"].to_numpy().ravel() + w @ MIDDLE])
    values = [found.density.evaluate(row)[0] for row in x]
    assert_allclose(values, tree["sample_stats"]["log_p"].to_numpy().ravel(), rtol=1e-9)


def test_a_column_kept_has_the_prior_of_the_bias():
    _, found = fitted(LAPLACE, (X, TARGETS["poisson"]), "poisson", keep=["x2"])
    outcome = found.outcome
    k, alpha = int(outcome.kept.sum()), outcome.alpha[outcome.kept]

    def truth(x):
        eta = Z[:, :2] @ (outcome.loadings.T @ x[:k]) + Z[:, 2] * x[k] + x[k + 1]
        terms = log_likelihood("poisson", eta, None).sum()
        return terms + log_prior("laplace", x[:k], alpha) + stats.norm.logpdf(x[k:], scale=10.0).sum()

    agrees(found, truth)


def test_several_classes():
    y = TARGETS["categorical"]
    _, found = fitted(LAPLACE, (X, y), "categorical")
    outcome = found.outcome
    k, alpha = int(outcome.kept.sum()), outcome.alpha[outcome.kept]

    def truth(x):
        w = (outcome.loadings.T @ x[:k]).reshape(3, 3)
        terms = log_softmax(Z @ w.T + x[k:], axis=1)[np.arange(len(y)), y].sum()
        return terms + log_prior("laplace", x[:k], alpha) + stats.norm.logpdf(x[k:], scale=10.0).sum()

    agrees(found, truth)


def test_more_moments_of_the_directions():
    _, found = fitted(LAPLACE, (X, TARGETS["bernoulli"]), "bernoulli")
    density, kept = found.density, found.outcome.kept
    v = density.x(np.random.default_rng(0).standard_normal((50, len(density.mean))))
    more = found.description.more(v)
    k = int(kept.sum())
    assert_allclose(more["u_mean"][1][kept], v[:, :k].mean(axis=0))
    assert_allclose(more["u_sd"][1][kept], v[:, :k].std(axis=0))
    assert not more["u_mean"][1][~kept].any()
    mean, factor = moments_of(found.description, v)
    reported = found.description.reported(v)
    assert_allclose(mean, reported.mean(axis=0))
    assert_allclose(factor @ factor.T, np.cov(reported, rowvar=False), atol=1e-12 * np.abs(reported).max() ** 2)
