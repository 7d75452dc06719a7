"""Parameters that the columns depend on: where they end, and how far about there they are drawn."""

import numpy as np
import pymc as pm
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

import bayes_sparse as bs
from bayes_sparse.fitting.held import _factor

N, RHO = 120, 0.6
RNG = np.random.default_rng(4)
X = RNG.normal(size=(N, 4))


def test_the_covariance_is_that_of_a_normal_density():
    C = np.array([[0.3, 0.1], [0.1, 0.2]])
    density = multivariate_normal([1.0, -2.0], C)
    F = _factor(lambda x: -float(density.logpdf(x)), np.array([1.0, -2.0]))
    assert_allclose(F @ F.T, C, rtol=1e-8)


def test_where_the_data_say_nothing_no_sd_is_longer_than_one():
    F = _factor(lambda x: 0.0, np.zeros(2))
    assert_allclose(F @ F.T, np.eye(2), rtol=1e-12)


def autoregressive():
    """Errors whose correlation is unknown: with independent normal steps their density is known in closed form."""
    errors = np.zeros(N)
    for t in range(1, N):
        errors[t] = RHO * errors[t - 1] + 0.3 * RNG.normal()
    y = 1.2 * X[:, 0] + errors
    with pm.Model() as model:
        w = pm.Normal("w", 0, pm.HalfCauchy("s", 1, shape=4))
        mu, rho = X @ w, pm.Uniform("rho", -1, 1)
        pm.Normal("y", mu[1:] + rho * (y[:-1] - mu[:-1]), pm.HalfNormal("sigma", 1), observed=y[1:])
    return model, y


@pytest.fixture(scope="module")
def fitted():
    model, y = autoregressive()
    return model, y, bs.fit(model, draws=500, random_seed=0, progressbar=False)


def test_the_correlation_of_errors_has_the_moments_of_its_likelihood(fitted):
    _, y, tree = fitted
    w = tree["posterior"]["w"].mean(("chain", "draw")).to_numpy()
    errors = y - X @ w
    best = errors[1:] @ errors[:-1] / (errors[:-1] @ errors[:-1])
    sd = 0.3 / np.sqrt(errors[:-1] @ errors[:-1])
    rho = tree["posterior"]["rho"].to_numpy()
    assert abs(rho.mean() - best) < 0.3 * sd
    assert 0.8 * sd < rho.std() < 1.3 * sd


def test_what_comes_back_is_taken(fitted):
    model, y, tree = fitted
    drawn = pm.sample_posterior_predictive(tree, model, random_seed=0, progressbar=False)
    mean = drawn["posterior_predictive"]["y"].mean(("chain", "draw")).to_numpy()
    assert np.sqrt(np.mean((mean - y[1:]) ** 2)) < 0.33
    assert abs(float(bs.predict(tree, model=model)["mean"].mean()) - mean.mean()) < 0.02
