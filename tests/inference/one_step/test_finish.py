"""From directions to the answer: exact evidences, invariances as they really hold, and the full matrix's optimum."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.stats import multivariate_normal, ortho_group

from bayes_sparse.inference.priors import Gaussian, Laplace
from bayes_sparse.methods.full_matrix import FullMatrix
from bayes_sparse.methods.revm import REVM
from bayes_sparse.problem.design import Design
from bayes_sparse.problem.problem import Problem
from bayes_sparse.problem.surfaces import Linear
from tests.support import bernoulli, quiet, student_t, target

BIAS_PRECISION = 0.01
PRIORS = {"gaussian": Gaussian(), "laplace": Laplace()}


POINTWISE = {"bernoulli": bernoulli, "student_t": student_t, "normal": None}


def make(name, n=50, M=5, seed=0, effect=1.0, noise=0.7):
    """A surface with a bias; the noise of a normal one is to be found."""
    rng = np.random.default_rng(seed)
    Phi = rng.standard_normal((n, M)) * rng.uniform(0.3, 1, M) * 0.9 ** np.arange(M)
    eta = 0.4 + effect * Phi[:, : (M + 1) // 2].sum(axis=1)
    y = target(name, eta, rng, noise)
    problem = Problem(
        design=Design(Phi, extra=np.ones((n, 1))),
        y=y,
        free=np.arange(M + 1) < M,
        fixed_precision=np.array([BIAS_PRECISION]),
        pointwise=lambda eta, theta: POINTWISE[name](y, eta),
        offset=np.zeros(n),
        theta=np.zeros(int(name == "normal")),
        theta_bounds=np.tile([-15.0, 15.0], (int(name == "normal"), 1)),
        normal=name == "normal",
    )
    return Linear(problem, scale_free=name == "bernoulli"), Phi


def mapped(surface, Phi, A):
    """The same data in other columns."""
    design = Design(Phi @ A, extra=surface.problem.design.extra)
    return Linear(replace(surface.problem, design=design), scale_free=surface.scale_free)


def run(surface, prior="gaussian", expansion="ridge", smoothness=0.0, **settings):
    return REVM(**settings)(surface, PRIORS[prior], expansion, smoothness, quiet)


def exact(surface, Phi, covariance, theta):
    """Log-density of y with normal noise, bias and weights of this covariance integrated out."""
    n = surface.n
    C = np.exp(2 * theta[0]) * np.eye(n) + np.ones((n, n)) / BIAS_PRECISION + Phi @ covariance @ Phi.T
    return float(multivariate_normal.logpdf(surface.problem.y, cov=C))


@pytest.mark.parametrize("shape", [(50, 5), (15, 40)])
@pytest.mark.parametrize("seed", range(3))
def test_both_evidences_of_a_normal_likelihood_are_exact(seed, shape):
    """At zero the quadratic is the likelihood; from elsewhere the one at the mode still is."""
    surface, Phi = make("normal", *shape, seed=seed)
    for expansion in ("zero", "ridge", "evidence", 2):
        out = run(surface, expansion=expansion)
        assert out.kept.any()
        assert_allclose(out.loadings @ out.loadings.T, np.eye(out.kept.sum()), atol=1e-12)
        covariance = (out.loadings.T / out.alpha[out.kept]) @ out.loadings
        truth = exact(surface, Phi, covariance, out.quadratic.theta)
        assert_allclose(out.log_evidence_mode, truth, rtol=1e-9)
        if expansion == "zero":
            assert_allclose(out.log_evidence, truth, rtol=1e-9)
            assert_allclose(out.history, [exact(surface, Phi, 0 * covariance, out.quadratic.theta), truth], rtol=1e-9)
    both = run(surface, "laplace", expansion="zero")
    assert_allclose(both.log_evidence_mode, both.log_evidence, rtol=1e-9)


@pytest.mark.parametrize("name", ["bernoulli", "student_t"])
def test_laplaces_evidence_at_the_mode(name):
    """``L + log p + (k/2) log 2 pi - (1/2) log det(H + A)`` at the mode that scipy finds, H the true curvature."""
    wrong = 0  # modes that only the prior makes one
    for seed in (0, 1, 2, 50, 52, 66):
        surface, Phi = make(name, seed=seed, n=25, noise=4.0)
        out = run(surface, expansion="ridge" if seed < 2 else "zero")
        columns = np.column_stack([Phi @ out.loadings.T, np.ones(25)])
        precision = np.append(out.alpha[out.kept], BIAS_PRECISION)

        def loss(v, columns=columns, precision=precision, y=surface.problem.y):
            value, slope, _, _ = POINTWISE[name](y, columns @ v)
            return 0.5 * precision @ v**2 - value.sum(), precision * v - columns.T @ slope

        v = minimize(loss, out.peak.v, jac=True, options={"gtol": 1e-9}).x
        assert_allclose(out.peak.v, v, atol=1e-6)
        H = (columns.T * -POINTWISE[name](surface.problem.y, columns @ v)[2]) @ columns
        truth = -loss(v)[0] + 0.5 * np.log(precision).sum() - 0.5 * np.linalg.slogdet(H + np.diag(precision))[1]
        assert_allclose(out.log_evidence_mode, truth, rtol=1e-8)
        wrong += np.linalg.eigvalsh(H)[0] < 0
    assert (wrong > 0) == (name == "student_t")


def test_correlated_directions_enter_the_evidence_at_a_laplace_priors_mode():
    """With plenty of data the corner at zero is out of sight, and Laplace's formula holds there too."""
    surface, Phi = make("bernoulli", n=1500, M=3, effect=1.5, seed=3)
    out = run(surface, "laplace", expansion="zero")
    assert out.kept.sum() == 2
    H, u, x, alpha = out.peak.look.curvature(), out.peak.v[:2], out.peak.v[2], out.alpha[out.kept]
    S = H[:2, :2] - np.outer(H[:2, 2], H[2, :2]) / (H[2, 2] + BIAS_PRECISION)
    assert np.min(np.abs(u) / np.sqrt(np.linalg.inv(S).diagonal())) > 5  # zero is five standard deviations away
    value = bernoulli(surface.problem.y, Phi @ out.loadings.T @ u + x)[0].sum()
    prior = np.sum(np.log(alpha / 4) - alpha * np.abs(u) / 2) + 0.5 * np.log(BIAS_PRECISION / (2 * np.pi))
    precision = H + np.diag([0, 0, BIAS_PRECISION])
    truth = (
        value + prior - 0.5 * BIAS_PRECISION * x**2 + 1.5 * np.log(2 * np.pi) - 0.5 * np.linalg.slogdet(precision)[1]
    )
    assert_allclose(out.log_evidence_mode, truth, atol=1e-5)
    assert np.linalg.slogdet(S)[1] < np.log(S.diagonal()).sum() - 1e-3  # what leaving them out would be off by


def test_what_is_reported():
    surface, _ = make("bernoulli", n=80)
    for prior, price in (("gaussian", 0.0), ("gaussian", 0.7), ("laplace", 0.0)):
        out = run(surface, prior, smoothness=price)
        eigen = out.eigen
        rule = eigen.h * eigen.u**2 > 1 + 2 * price
        assert np.array_equal(out.kept, rule)
        assert out.loadings.shape == (rule.sum(), 5)
        assert_allclose(out.objective, out.log_evidence - price * out.gamma.sum(), rtol=1e-14)
        assert np.array_equal(out.relevant, out.kept if prior == "gaussian" else np.isin(np.arange(5), _nonzero(out)))
        assert np.all((out.gamma >= 0) & (out.gamma <= 1))
        assert np.array_equal(out.gamma > 0, out.kept)
        assert out.steps == out.quadratic.steps + out.peak.steps


def _nonzero(out):
    return np.flatnonzero(out.kept)[out.peak.v[:-1] != 0]


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("expansion", ["ridge", "evidence", "zero", 2])
@pytest.mark.parametrize("name", ["bernoulli", "normal"])
def test_rotations_and_units_of_the_columns_change_nothing(name, expansion, prior):
    for seed, shape in enumerate([(50, 5), (12, 20)]):
        surface, Phi = make(name, *shape, seed=seed)
        out = run(surface, prior, expansion)
        R = ortho_group.rvs(shape[1], random_state=seed)
        for A in (R, 1e-3 * np.eye(shape[1]), 1e4 * R):
            other = run(mapped(surface, Phi, A), prior, expansion)
            assert_allclose(other.log_evidence, out.log_evidence, rtol=1e-7)
            assert_allclose(other.log_evidence_mode, out.log_evidence_mode, rtol=1e-7)
            assert np.array_equal(other.kept, out.kept)
            assert np.array_equal(other.relevant, out.relevant)
            assert_allclose(other.gamma, out.gamma, atol=1e-5)
            fit, mean = (Phi @ (out.loadings.T @ v[:-1]) + v[-1] for v in (out.peak.v, out.posterior.mean))
            same = other.loadings.T
            assert_allclose(Phi @ A @ same @ other.peak.v[:-1] + other.peak.v[-1], fit, atol=1e-5)
            assert_allclose(Phi @ A @ same @ other.posterior.mean[:-1] + other.posterior.mean[-1], mean, atol=1e-5)


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("name", ["bernoulli", "normal"])
def test_a_general_linear_map_changes_the_answer(name, prior):
    """The columns span the same functions, but their eigenvectors are others: the papers claim too much."""
    surface, Phi = make(name, seed=1)
    A = np.eye(5)
    A[0, 1], A[2, 2] = 2.0, 0.1
    out, other = run(surface, prior), run(mapped(surface, Phi, A), prior)
    assert abs(out.log_evidence - other.log_evidence) > 0.1
    fits = [P @ o.loadings.T @ o.peak.v[:-1] + o.peak.v[-1] for P, o in ((Phi, out), (Phi @ A, other))]
    assert np.abs(fits[0] - fits[1]).max() > 0.05


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("posterior", ["mode", "quadratic"])
def test_nothing_kept_is_the_bias_alone(prior, posterior):
    surface, _ = make("bernoulli", effect=0.0, M=1, seed=1)
    out = run(surface, prior, posterior=posterior)
    assert not out.kept.any()
    assert out.loadings.shape == (0, 1)
    alone = minimize(
        lambda b: 0.5 * BIAS_PRECISION * b[0] ** 2 - bernoulli(surface.problem.y, b[0])[0].sum(), [0.0], tol=1e-10
    )
    assert_allclose(out.peak.v, alone.x, atol=1e-6)
    assert_allclose(out.posterior.mean, alone.x, atol=2e-2)  # of the quadratic: near enough
    assert out.posterior.factor.shape == (1, 1)


@pytest.mark.parametrize("prior", PRIORS)
def test_likelihoods_that_curve_the_wrong_way(prior):
    """Heavy outliers, few data: all is finite, and nothing warns."""
    dropped = 0
    for seed in range(8):
        surface, _ = make("student_t", n=8, M=4, noise=8.0, seed=seed)
        for expansion in ("zero", "evidence", 1):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                out = run(surface, prior, expansion)
            dropped += out.eigen.dropped
            numbers = [out.log_evidence, out.log_evidence_mode, *out.posterior.mean, *out.posterior.factor.ravel()]
            assert np.isfinite(numbers).all()
    assert dropped > 10


def full(surface, expansion):
    return FullMatrix()(surface, Gaussian(), expansion, 0.0, quiet)


@pytest.mark.parametrize("M", [2, 3])
def test_no_covariance_does_better_than_the_full_matrix(M):
    """The exact evidence of a normal likelihood, maximised by scipy over all covariances ``L L'``."""
    for seed in range(2):
        surface, Phi = make("normal", n=10, M=M, seed=seed)
        out = full(surface, "zero")
        theta, rows = out.quadratic.theta, np.tril_indices(M)

        def covariance(x, rows=rows):
            L = np.zeros((M, M))
            L[rows] = x
            return L @ L.T

        def loss(x, surface=surface, Phi=Phi, theta=theta, covariance=covariance):
            return -exact(surface, Phi, covariance(x), theta)

        starts = np.random.default_rng(seed).standard_normal((2, len(rows[0])))
        found = min((minimize(loss, x) for x in starts), key=lambda result: result.fun)
        assert_allclose(out.log_evidence, -found.fun, atol=1e-5)
        whole = np.column_stack([Phi, np.ones(10)])
        H = whole.T @ whole / np.exp(2 * theta[0]) + np.diag(np.append(np.zeros(M), BIAS_PRECISION))
        ml = np.linalg.solve(H, whole.T @ surface.problem.y / np.exp(2 * theta[0]))[:M]
        s = ml @ (H[:M, :M] - np.outer(H[:M, M], H[M, :M]) / H[M, M]) @ ml
        ours = (out.loadings.T / out.alpha) @ out.loadings
        assert_allclose(ours, (1 - 1 / s) * np.outer(ml, ml), rtol=1e-9, atol=1e-12)
        assert_allclose(covariance(found.x), ours, atol=1e-2)  # the top is flat: 1e-5 nats are this far
        assert_allclose(out.posterior.mean[:1] @ out.loadings, (1 - 1 / s) * ml, rtol=1e-9)


def test_the_full_matrix_keeps_the_signs_of_maximum_likelihood():
    surface, Phi = make("bernoulli", n=60)
    out = full(surface, "ridge")
    w0 = out.quadratic.v[:5]
    s = out.eigen.h[0] * out.eigen.u[0] ** 2
    mean = out.loadings.T @ out.posterior.mean[:1]
    assert_allclose(mean, (1 - 1 / s) * w0, rtol=1e-9)
    # Without a bias: with one, it moves to make up for the smaller weights.
    assert np.array_equal(np.sign(Phi @ mean), np.sign(Phi @ w0))
    weak, _ = make("bernoulli", n=30, M=1, effect=0.0, seed=2)
    none = full(weak, "ridge")
    assert none.eigen.h[0] * none.eigen.u[0] ** 2 < 1
    assert not none.kept.any()
