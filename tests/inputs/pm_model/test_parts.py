"""The likelihoods of a model: several observed variables, potentials, correlated errors, classes."""

from itertools import product

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.special import log_softmax

from bayes_sparse.inputs import compiled
from bayes_sparse.inputs.pm_model import read_model
from bayes_sparse.inputs.pm_model.held import MovingCoefficients
from bayes_sparse.inputs.pm_model.parts import softmax_terms
from bayes_sparse.problem.problem import Problem
from bayes_sparse.problem.several_predictors import SeveralProblem
from tests.support import UNCOMPILED

from .user_models import COUNT, REAL, N, P, X, Z, sparse_weights

RNG = np.random.default_rng(4)
W = RNG.normal(size=P)
ROOT = np.tril(RNG.normal(size=(N, N))) / np.sqrt(N) + np.eye(N)
COVARIANCE = ROOT @ ROOT.T


@pytest.fixture(autouse=True)
def no_compiler(monkeypatch):
    monkeypatch.setattr(compiled, "elementwise_mode", lambda: UNCOMPILED)
    monkeypatch.setattr(compiled, "_cache", {})


def read(build):
    with pm.Model() as model:
        build()
    return read_model(model)


def predictors(found, w):
    problem = found.problem
    eta = problem.design.columns(np.arange(problem.design.width)) @ w
    return problem.offset + eta.reshape(problem.offset.shape)


def test_rows_of_two_observed_variables_are_one_after_the_other():
    def build():
        w = sparse_weights()
        pm.Normal("y", X @ w, 0.7, observed=REAL)
        pm.Poisson("count", pm.math.exp(0.3 + X[:20] @ w), observed=COUNT[:20])

    found = read(build)
    assert isinstance(found.problem, Problem)
    assert [part.output.name for part in found.parts] == ["y", "count"]
    assert (found.observed, found.describe, found.forecast) == ("y", "several", None)
    assert_array_equal(found.problem.y, np.concatenate([REAL, COUNT[:20]]))
    eta = predictors(found, W)
    assert_allclose(eta, np.concatenate([X @ W, 0.3 + X[:20] @ W]))
    values, slopes, *_ = found.problem.pointwise(eta, np.empty(0))
    assert_allclose(values[:N], stats.norm.logpdf(REAL, X @ W, 0.7), rtol=1e-9)
    assert_allclose(values[N:], stats.poisson.logpmf(COUNT[:20], np.exp(0.3 + X[:20] @ W)), rtol=1e-9)
    assert_allclose(slopes[N:], COUNT[:20] - np.exp(0.3 + X[:20] @ W), rtol=1e-9)


def test_rows_with_fewer_predictors_have_zeros_for_those_they_lack():
    def build():
        w, v = sparse_weights(), sparse_weights("v", 2)
        pm.Normal("y", X @ w, pm.math.exp(Z @ v), observed=REAL)
        pm.Normal("x", Z @ v, 1.5, observed=REAL[::-1])

    found = read(build)
    assert isinstance(found.problem, SeveralProblem)
    v = np.array([0.2, -0.4])
    eta = predictors(found, np.concatenate([W, v]))
    assert_allclose(eta[:, :N], [X @ W, Z @ v])
    assert_allclose(eta[:, N:], [Z @ v, np.zeros(N)])
    values, slopes, second, third = found.problem.pointwise(eta, np.empty(0))
    assert_allclose(values[:N], stats.norm.logpdf(REAL, X @ W, np.exp(Z @ v)), rtol=1e-9)
    assert_allclose(values[N:], stats.norm.logpdf(REAL[::-1], Z @ v, 1.5), rtol=1e-9)
    assert_allclose(slopes[:, N:], [(REAL[::-1] - Z @ v) / 1.5**2, np.zeros(N)], rtol=1e-9)
    assert_array_equal(second[1, :, N:], 0.0)
    assert_array_equal(third[:, 1, :, N:], 0.0)


@pytest.mark.parametrize("summed", [False, True])
def test_a_potential_of_rows_is_a_likelihood(summed):
    def build():
        density = pm.logp(pm.Normal.dist(X @ sparse_weights(), 0.7), REAL)
        pm.Potential("told", density.sum() if summed else density)

    found = read(build)
    eta = predictors(found, W)
    values, slopes, second, _ = found.problem.pointwise(eta, np.empty(0))
    assert_allclose(values, stats.norm.logpdf(REAL, X @ W, 0.7), rtol=1e-9)
    Phi = found.problem.design.columns(np.arange(P))  # of the residuals or of the mean, as the graph has it
    assert_allclose(Phi.T @ slopes, X.T @ (REAL - X @ W) / 0.49, rtol=1e-9)
    assert_allclose(second, -1 / 0.49, rtol=1e-9)
    assert found.describe == "potential"


def test_a_potential_of_one_number_is_a_row():
    def build():
        w = sparse_weights()
        pm.Normal("y", X @ w, 1.0, observed=REAL)
        pm.Potential("sum", -50.0 * w.sum() ** 2)

    found = read(build)
    eta = predictors(found, W)
    assert_allclose(eta[-1], W.sum())
    values, slopes, second, _ = found.problem.pointwise(eta, np.empty(0))
    assert_allclose([values[-1], slopes[-1], second[-1]], [-50 * W.sum() ** 2, -100 * W.sum(), -100.0], rtol=1e-9)


def test_what_is_told_of_nuisance_parameters_alone_is_part_of_their_prior():
    def build():
        sigma = pm.HalfNormal("sigma", 2.0)
        pm.Normal("y", X @ sparse_weights(), sigma, observed=REAL)
        pm.Normal("gauge", sigma, 0.1, observed=[0.9, 1.2])
        pm.Potential("limit", -3.0 * sigma**4)

    found = read(build)
    assert [part.output.name for part in found.parts] == ["y"]
    log_sigma = 0.2
    sigma = np.exp(log_sigma)
    prior = stats.halfnorm.logpdf(sigma, scale=2.0) + log_sigma
    told = stats.norm.logpdf([0.9, 1.2], sigma, 0.1).sum() - 3.0 * sigma**4
    assert_allclose(
        found.problem.log_prior(np.array([log_sigma])), prior + told, rtol=1e-7
    )  # 0.1 is in single precision


@pytest.mark.filterwarnings("ignore:Data in y contains missing values")
def test_missing_values_are_left_out():
    there = REAL < 1.0
    found = read(lambda: pm.Normal("y", X @ sparse_weights(), 0.7, observed=np.where(there, REAL, np.nan)))
    assert_allclose(predictors(found, W), X[there] @ W)
    values = found.problem.pointwise(predictors(found, W), np.empty(0))[0]
    assert_allclose(values, stats.norm.logpdf(REAL[there], X[there] @ W, 0.7), rtol=1e-9)


def whitened(found, theta):
    """Log-density of all rows, after a check of its derivatives along them."""
    eta, step = predictors(found, W), 1e-4
    terms, above, below = (found.problem.pointwise(eta + way * step, theta) for way in (0, 1, -1))
    for order in range(3):
        assert_allclose(terms[order + 1], (above[order] - below[order]) / (2 * step), rtol=1e-6, atol=1e-6)
    return terms[0].sum()


def test_correlated_errors_are_whitened():
    found = read(lambda: pm.MvNormal("y", 0.4 + X @ sparse_weights(), COVARIANCE, observed=REAL))
    truth = stats.multivariate_normal.logpdf(REAL, 0.4 + X @ W, COVARIANCE)
    assert_allclose(whitened(found, np.empty(0)), truth, rtol=1e-9)


def test_correlated_errors_of_unknown_size():
    found = read(
        lambda: pm.MvNormal("y", X @ sparse_weights(), pm.HalfNormal("s", 1.0) ** 2 * COVARIANCE, observed=REAL)
    )
    for log_s in (-0.3, 0.8):
        truth = stats.multivariate_normal.logpdf(REAL, X @ W, np.exp(2 * log_s) * COVARIANCE)
        assert_allclose(whitened(found, np.array([log_s])), truth, rtol=1e-9)


def test_a_covariance_of_unknown_form_is_held_between_fits():
    def build():
        covariance = COVARIANCE + pm.HalfNormal("nugget", 1.0) * np.eye(N)
        pm.MvNormal("y", X @ sparse_weights(), covariance, observed=REAL)

    with pytest.raises(MovingCoefficients, match="covariance of 'y' changes its form") as caught:
        read(build)
    assert caught.value.names == ("nugget",)


CLASSES = RNG.integers(0, 3, N)


def test_a_softmax_has_a_predictor_per_class():
    def build():
        w = pm.Normal("w", 0.0, pm.HalfNormal("s", 1.0, shape=(P, 3)))
        pm.Categorical("y", logit_p=pt.dot(X, w), observed=CLASSES)

    found = read(build)
    w = RNG.normal(size=(P, 3))
    eta = predictors(found, w.ravel())
    assert_allclose(eta, (X @ w).T)
    values = found.problem.pointwise(eta, np.empty(0))[0]
    assert_allclose(values, log_softmax(X @ w, axis=1)[np.arange(N), CLASSES], rtol=1e-10)


COUNTS = RNG.multinomial(7, [0.5, 0.3, 0.2], N)


@pytest.mark.parametrize("y", [CLASSES, COUNTS], ids=["classes", "counts"])
def test_derivatives_of_a_softmax(y):
    pointwise, eta = softmax_terms(y, 3), RNG.normal(size=(3, N))
    terms, step = pointwise(eta, np.empty(0)), 1e-5
    log_p = log_softmax(eta.T, axis=1)
    counts = np.eye(3)[y] if y.ndim == 1 else y
    truth = stats.multinomial.logpmf(counts, counts.sum(axis=1), np.exp(log_p))
    assert_allclose(terms[0], truth, rtol=1e-10)
    for k, order in product(range(3), range(3)):
        move = step * np.eye(3)[k][:, None]
        slope = (pointwise(eta + move, np.empty(0))[order] - pointwise(eta - move, np.empty(0))[order]) / (2 * step)
        assert_allclose(terms[order + 1][k], slope, rtol=1e-6, atol=1e-8)
