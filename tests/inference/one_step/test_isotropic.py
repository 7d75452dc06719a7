"""The isotropic ridge: exact evidence of a normal likelihood by scipy, Laplace's of any other by hand."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, gammaln
from scipy.stats import multivariate_normal
from sklearn.linear_model import BayesianRidge

from bayes_sparse.inference.one_step.expansion import evidence_ridge
from bayes_sparse.problem.design import Design
from bayes_sparse.problem.problem import Problem
from bayes_sparse.problem.surfaces import Linear
from tests.support import bernoulli, quiet

FINE = 2e-3  # the search stops when the logarithm of the ridge is known to 1e-3


def normal_surface(n=40, M=6, *, kept=0, bias=True, wide=300.0, weights=None, seed=0, decay=1.0):
    """Normal noise, M free columns of falling size, some kept ones and a bias of prior sd ``wide``."""
    rng = np.random.default_rng(seed)
    Phi, Z = rng.standard_normal((n, M)) * decay ** np.arange(M), rng.standard_normal((n, kept))
    if bias:
        Z = np.column_stack([Z, np.ones(n)])
    offset = rng.standard_normal(n)
    y = offset + 1.5 + Phi @ rng.standard_normal(M) + Z.sum(axis=1) + 0.5 * rng.standard_normal(n)
    problem = Problem(
        design=Design(Phi, extra=Z),
        y=y,
        free=np.arange(M + Z.shape[1]) < M,
        fixed_precision=np.full(Z.shape[1], wide**-2.0),
        pointwise=lambda eta, theta: (),
        offset=offset,
        weights=weights,
        theta=np.zeros(1),
        theta_bounds=np.array([[-15.0, 15.0]]),
        normal=True,
    )
    return Linear(problem, scale_free=False), Phi, Z


def exact_evidence(surface, Phi, Z, log_ridge, log_sigma, wide=300.0):
    """Log-density of y under the covariance that noise, ridge and fixed columns make."""
    C = np.exp(2 * log_sigma) * np.eye(surface.n) + Phi @ Phi.T / np.exp(log_ridge) + wide**2 * Z @ Z.T
    return multivariate_normal.logpdf(surface.problem.y - surface.problem.offset, cov=C)


def best(function, start):
    found = minimize(lambda x: -function(*x), start, method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-10})
    return found.x


@pytest.mark.parametrize(("kept", "bias"), [(0, True), (0, False), (2, True)])
@pytest.mark.parametrize("seed", range(3))
def test_ridge_and_noise_maximise_the_exact_evidence(seed, kept, bias):
    """Fixed columns are projected out, which is the limit of a wide prior: at sd 300 the optimum differs by 1e-5."""
    surface, Phi, Z = normal_surface(kept=kept, bias=bias, seed=seed)
    found = evidence_ridge(surface, quiet)

    def evidence(log_ridge, log_sigma):
        return exact_evidence(surface, Phi, Z, log_ridge, log_sigma)

    log_ridge, log_sigma = best(evidence, [0.0, 0.0])
    assert_allclose(np.log(found.precision), log_ridge, atol=FINE)
    assert_allclose(found.theta, log_sigma, atol=FINE)
    assert_allclose(found.log_evidence, evidence(np.log(found.precision), found.theta[0]), rtol=1e-9)


def test_columns_outnumber_rows():
    surface, Phi, Z = normal_surface(n=15, M=30, seed=4, decay=0.7)
    found = evidence_ridge(surface, quiet)
    truth = best(lambda r, s: exact_evidence(surface, Phi, Z, r, s), [0.0, 0.0])
    assert_allclose([np.log(found.precision), found.theta[0]], truth, atol=FINE)
    reduced = evidence_ridge(surface.reduced()[0], quiet)
    assert_allclose([np.log(reduced.precision), reduced.theta[0]], truth, atol=FINE)
    assert_allclose(reduced.log_evidence, found.log_evidence, rtol=1e-6)


@pytest.mark.parametrize("M", [0, 1, 2])
def test_hardly_any_columns(M):
    """None at all: the noise is the residual variance over the observations that the bias leaves."""
    surface, Phi, Z = normal_surface(M=M, seed=2)
    found = evidence_ridge(surface, quiet)
    if M:
        truth = best(lambda r, s: exact_evidence(surface, Phi, Z, r, s), [0.0, 0.0])
        assert_allclose([np.log(found.precision), found.theta[0]], truth, atol=FINE)
    else:
        assert_allclose(np.exp(found.theta), np.std(surface.problem.y - surface.problem.offset, ddof=1), rtol=1e-6)


def test_the_noise_is_as_uncertain_as_the_evidence_says():
    """Curvature over log sigma with the ridge's ratio to the noise held: half of it moves both."""
    surface, Phi, Z = normal_surface(seed=3)
    found = evidence_ridge(surface, quiet)

    def evidence(step):
        return exact_evidence(surface, Phi, Z, np.log(found.precision) - 2 * step, found.theta[0] + step)

    h = 1e-3
    curvature = (evidence(h) - 2 * evidence(0) + evidence(-h)) / h**2
    assert_allclose(found.theta_sd, 1 / np.sqrt(-curvature), rtol=1e-3)


def test_it_is_bayesian_ridge():
    """Without an intercept, which scikit-learn takes out by centring and counts as no parameter."""
    surface, Phi, _ = normal_surface(bias=False, seed=5)
    t = surface.problem.y - surface.problem.offset
    found = evidence_ridge(surface, quiet)
    flat = dict.fromkeys(("alpha_1", "alpha_2", "lambda_1", "lambda_2"), 0.0)
    theirs = BayesianRidge(fit_intercept=False, tol=1e-10, max_iter=10_000, compute_score=True, **flat).fit(Phi, t)
    assert_allclose(
        np.log([found.precision, np.exp(-2 * found.theta[0])]), np.log([theirs.lambda_, theirs.alpha_]), atol=FINE
    )
    assert_allclose(found.log_evidence, theirs.scores_[-1], atol=1e-5)


def test_a_weight_of_two_counts_a_row_twice():
    weights = np.random.default_rng(7).integers(1, 4, 40).astype(float)
    surface, Phi, Z = normal_surface(weights=weights, kept=1, seed=6)
    found = evidence_ridge(surface, quiet)
    rows = np.repeat(np.arange(40), weights.astype(int))
    t = (surface.problem.y - surface.problem.offset)[rows]

    def evidence(log_ridge, log_sigma):
        C = np.exp(2 * log_sigma) * np.eye(len(rows))
        C += (Phi @ Phi.T / np.exp(log_ridge) + 9e4 * Z @ Z.T)[np.ix_(rows, rows)]
        return multivariate_normal.logpdf(t, cov=C)

    truth = best(evidence, [0.0, 0.0])
    assert_allclose([np.log(found.precision), found.theta[0]], truth, atol=FINE)
    assert_allclose(found.log_evidence, evidence(np.log(found.precision), found.theta[0]), rtol=1e-8)


def student_t(y, eta, theta):
    s, nu = np.exp(theta[0]), 4.0
    r, tail = y - eta, nu * s**2 + (y - eta) ** 2
    constant = gammaln((nu + 1) / 2) - gammaln(nu / 2) - 0.5 * np.log(nu * np.pi) - theta[0]
    value = constant - 0.5 * (nu + 1) * np.log1p(r**2 / (nu * s**2))
    return value, (nu + 1) * r / tail, -(nu + 1) * (nu * s**2 - r**2) / tail**2, np.empty(0)


def other_surface(pointwise, theta, log_prior=None, n=100, M=5, seed=0):
    rng = np.random.default_rng(seed)
    Phi = rng.standard_normal((n, M))
    eta = 0.4 + Phi @ rng.standard_normal(M)
    y = eta + 0.5 * rng.standard_t(4, n) if theta else (rng.random(n) < expit(eta)).astype(float)
    problem = Problem(
        design=Design(Phi, extra=np.ones((n, 1))),
        y=y,
        free=np.arange(M + 1) < M,
        fixed_precision=np.array([0.01]),
        pointwise=lambda eta, theta: pointwise(y, eta, theta),
        offset=np.zeros(n),
        theta=np.array(theta),
        theta_bounds=np.tile([-10.0, 10.0], (len(theta), 1)),
        log_prior=log_prior,
    )
    return Linear(problem, scale_free=not theta), np.column_stack([Phi, np.ones(n)])


def laplace_evidence(surface, pointwise, Phi, log_ridge, theta):
    """``L + log p + (M/2) log 2 pi - (1/2) log det(H + P)`` at the mode that scipy finds."""
    y, precision = surface.problem.y, np.append(np.full(surface.d, np.exp(log_ridge)), 0.01)

    def loss(v):
        value, slope, _, _ = pointwise(y, Phi @ v, theta)
        return 0.5 * precision @ v**2 - value.sum(), precision * v - Phi.T @ slope

    v = minimize(loss, np.zeros(len(precision)), jac=True, method="BFGS", options={"gtol": 1e-7}).x
    H = (Phi.T * -pointwise(y, Phi @ v, theta)[2]) @ Phi
    return -loss(v)[0] + 0.5 * np.log(precision).sum() - 0.5 * np.linalg.slogdet(H + np.diag(precision))[1]


@pytest.mark.parametrize("seed", range(3))
def test_bernoulli(seed):
    surface, Phi = other_surface(bernoulli, [], seed=seed)
    found = evidence_ridge(surface, quiet)

    def evidence(log_ridge):
        return laplace_evidence(surface, bernoulli, Phi, log_ridge, np.empty(0))

    here, h = np.log(found.precision), 0.1
    assert_allclose(found.log_evidence, evidence(here), rtol=1e-9)
    slope = (8 * (evidence(here + h) - evidence(here - h)) - (evidence(here + 2 * h) - evidence(here - 2 * h))) / (
        12 * h
    )
    assert abs(slope) < FINE * surface.d  # the slope of a log evidence in a log precision changes by at most d/2
    truth = minimize_scalar(lambda x: -evidence(x), bounds=(-8, 8), method="bounded", options={"xatol": 1e-6})
    assert_allclose(here, truth.x, atol=FINE)
    assert found.theta.shape == found.theta_sd.shape == (0,)


@pytest.mark.parametrize("pulled", [False, True], ids=["flat", "prior on theta"])
def test_nuisance_parameters_of_any_likelihood(pulled):
    def prior(theta):
        return float(-0.5 * (theta[0] / 0.1) ** 2) if pulled else 0.0

    surface, Phi = other_surface(student_t, [-0.3], prior)
    found = evidence_ridge(surface, quiet)

    def objective(log_ridge, log_sigma):
        return laplace_evidence(surface, student_t, Phi, log_ridge, np.array([log_sigma])) + prior([log_sigma])

    log_ridge, log_sigma = minimize(
        lambda x: -objective(*x), [0.0, -0.5], method="Nelder-Mead", options={"xatol": 1e-4, "fatol": 1e-8}
    ).x
    assert_allclose(found.theta, log_sigma, atol=FINE)
    assert_allclose(np.log(found.precision), log_ridge, atol=10 * FINE)  # stops when the evidence is good to 1e-4
    assert_allclose(found.log_evidence, objective(log_ridge, log_sigma) - prior([log_sigma]), atol=2e-3)
    h = 0.02
    bend = [objective(np.log(found.precision), found.theta[0] + step) for step in (-h, 0, h)]
    assert_allclose(found.theta_sd, 1 / np.sqrt(-(bend[0] - 2 * bend[1] + bend[2]) / h**2), rtol=0.02)
