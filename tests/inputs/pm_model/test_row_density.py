"""Log-densities of rows along several predictors: against scipy, finite differences, and rows that depend on others."""

from itertools import product

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.special import expit

from bayes_sparse.inputs.pm_model import read_model

from .user_models import COUNT, POSITIVE, REAL, N, P, X, Z, sparse_weights

pytestmark = pytest.mark.quick

SHARE = POSITIVE / (1 + POSITIVE)
RNG = np.random.default_rng(8)
W, V = 0.4 * RNG.normal(size=P), 0.4 * RNG.normal(size=2)


def two():
    return X @ sparse_weights(), Z @ sparse_weights("v", 2)


def normal():
    mu, log_sigma = two()
    pm.Normal("y", mu, pt.exp(log_sigma), observed=REAL)


def beta():
    mu, log_size = two()
    size = 2 + pt.exp(log_size)
    pm.Beta("y", pt.sigmoid(mu) * size, (1 - pt.sigmoid(mu)) * size, observed=SHARE)


def negative_binomial():
    log_mu, log_alpha = two()
    pm.NegativeBinomial("y", mu=pt.exp(log_mu), alpha=pt.exp(log_alpha), observed=COUNT)


def zero_inflated():
    log_mu, psi = two()
    pm.ZeroInflatedPoisson("y", psi=pt.sigmoid(psi), mu=pt.exp(log_mu), observed=COUNT)


def own():
    left, right = two()
    pm.CustomDist("y", left, right, logp=lambda y, a, b: -((y - a * b) ** 2) - pt.softplus(a - b), observed=REAL)


def log_zero_inflated(a, b):
    rate, psi = np.exp(a), expit(b)
    return np.log((COUNT == 0) * (1 - psi) + psi * stats.poisson.pmf(COUNT, rate))


TRUTHS = {
    normal: lambda a, b: stats.norm.logpdf(REAL, a, np.exp(b)),
    beta: lambda a, b: stats.beta.logpdf(SHARE, expit(a) * (2 + np.exp(b)), (1 - expit(a)) * (2 + np.exp(b))),
    negative_binomial: lambda a, b: stats.nbinom.logpmf(COUNT, np.exp(b), np.exp(b) / (np.exp(a) + np.exp(b))),
    zero_inflated: log_zero_inflated,
    own: lambda a, b: -((REAL - a * b) ** 2) - np.logaddexp(0, a - b),
}


def read(build):
    with pm.Model() as model:
        build()
    return read_model(model).problem


def predictors(problem, *w):
    eta = problem.design.columns(np.arange(problem.design.width)) @ np.concatenate(w)
    return problem.offset + eta.reshape(problem.offset.shape)


@pytest.mark.parametrize("build", TRUTHS, ids=lambda build: build.__name__)
def test_two_predictors(build):
    problem, step = read(build), 1e-5
    assert problem.predictors == 2
    eta = predictors(problem, W, V)
    terms = problem.pointwise(eta, np.empty(0))
    assert [term.shape for term in terms] == [(N,), (2, N), (2, 2, N), (2, 2, 2, N)]
    assert_allclose(terms[0], TRUTHS[build](X @ W, Z @ V), rtol=1e-9, atol=1e-12)
    for k, order in product(range(2), range(3)):
        move = step * np.eye(2)[k][:, None]
        above, below = (problem.pointwise(eta + way * move, np.empty(0))[order] for way in (1, -1))
        assert_allclose(terms[order + 1][k], (above - below) / (2 * step), rtol=1e-5, atol=1e-6)


def test_parameters_beside_the_predictors():
    def build():
        mu, log_sigma = two()
        pm.StudentT("y", nu=pm.HalfNormal("nu", 5.0), mu=mu, sigma=pt.exp(log_sigma), observed=REAL)

    problem = read(build)
    values = problem.pointwise(predictors(problem, W, V), np.log([3.0]))[0]
    assert_allclose(values, stats.t.logpdf(REAL, 3.0, X @ W, np.exp(Z @ V)), rtol=1e-9)


def test_new_values_of_the_observations_are_seen_by_what_was_made_before():
    first = read(normal)
    eta = predictors(first, W, V)
    first.pointwise(eta, np.empty(0))

    def other():
        mu, log_sigma = two()
        pm.Normal("y", mu, pt.exp(log_sigma), observed=2 * REAL)

    values = read(other).pointwise(eta, np.empty(0))[0]
    assert_allclose(values, stats.norm.logpdf(2 * REAL, X @ W, np.exp(Z @ V)), rtol=1e-9)
    assert_allclose(first.pointwise(eta, np.empty(0))[0], TRUTHS[normal](X @ W, Z @ V), rtol=1e-9)


def test_other_rows_of_a_model_that_was_read_before():
    """Nothing of the first one's number of rows is kept."""
    for rows in (slice(None), slice(12), slice(3, 28)):

        def build(rows=rows):
            mu, log_sigma = (table[rows] @ sparse_weights(name, k) for table, name, k in ((X, "w", P), (Z, "v", 2)))
            pm.Normal("y", mu, pt.exp(log_sigma), observed=REAL[rows])

        problem = read(build)
        values = problem.pointwise(predictors(problem, W, V), np.empty(0))[0]
        assert_allclose(values, TRUTHS[normal](X @ W, Z @ V)[rows], rtol=1e-9)


@pytest.mark.parametrize("lag", [1, 2, 3, 7, 13])
def test_a_row_that_depends_on_one_before_it_is_seen(lag):
    def build():
        rate = pt.exp(X @ sparse_weights())
        pm.Normal("y", rate + pt.dot(np.eye(N, k=-lag), rate), 1.0, observed=REAL)

    with pytest.raises(ValueError, match="'y' mixes observations after the linear predictor"):
        read(build)


@pytest.mark.parametrize(
    "made_of",
    [
        lambda eta: pt.exp(eta) / pt.exp(eta).sum(),
        lambda eta: np.eye(N)[::-1] @ pt.exp(eta),
        lambda eta: pt.cumsum(pt.exp(eta)),
    ],
    ids=["shares", "reversed", "sums"],
)
def test_rows_mixed_in_other_ways_are_seen(made_of):
    with pytest.raises(ValueError, match="'y' mixes observations after the linear predictor"):
        read(lambda: pm.Normal("y", made_of(X @ sparse_weights()), 1.0, observed=REAL))


def test_a_density_that_captures_a_variable_is_refused():
    def build():
        left, right = two()
        sigma = pm.HalfNormal("sigma", 1.0)
        pm.CustomDist("y", left, right, logp=lambda y, a, b: -((y - a * b) ** 2) / sigma, observed=REAL)

    with pytest.raises(ValueError, match="'y' uses 'sigma' without being given it"):
        read(build)


def test_one_predictor_of_any_density():
    """By potentials, where the distribution's parameters are not seen."""
    problem = read(lambda: pm.Potential("like", -pt.softplus(-X @ sparse_weights()) * POSITIVE))
    eta, step = predictors(problem, W), 1e-5
    terms = problem.pointwise(eta, np.empty(0))
    assert_allclose(terms[0], -np.logaddexp(0, -X @ W) * POSITIVE, rtol=1e-10)
    for order in range(3):
        above, below = (problem.pointwise(eta + way * step, np.empty(0))[order] for way in (1, -1))
        assert_allclose(terms[order + 1], (above - below) / (2 * step), rtol=1e-5, atol=1e-6)
