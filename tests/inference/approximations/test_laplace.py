"""Laplace's method: mode against scipy, evidence against formula and quadrature, slopes against differences."""

from dataclasses import replace

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import expit

from bayes_sparse.inference.approximations import Exact, LaplaceApproximation, approximate
from bayes_sparse.inference.evidence import ascent
from bayes_sparse.inference.evidence.state import Objective
from bayes_sparse.inputs.likelihoods import bernoulli, compiled, negative_binomial, normal, poisson, student_t
from bayes_sparse.problem.design import Design
from bayes_sparse.problem.gaussian import Dual, Primal
from bayes_sparse.problem.problem import Problem

pytestmark = pytest.mark.quick

BIAS_PRECISION = 0.01
LIKELIHOODS = {
    "bernoulli": bernoulli(),
    "poisson": poisson(),
    "negative_binomial": negative_binomial(),
    "student_t": student_t(),
}


def targets(likelihood, eta, rng):
    n = len(eta)
    return {
        "normal": lambda: eta + 0.5 * rng.standard_normal(n),
        "student_t": lambda: eta + 0.5 * rng.standard_t(4, n),
        "bernoulli": lambda: (rng.random(n) < expit(eta)).astype(float),
        "poisson": lambda: rng.poisson(np.exp(eta)).astype(float),
        "negative_binomial": lambda: rng.negative_binomial(3, 3 / (3 + np.exp(eta))).astype(float),
    }[likelihood.name]()


def make(likelihood, n=40, M=4, *, seed=0, weights=None):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, M))
    offset = np.linspace(-0.2, 0.2, n)
    y = targets(likelihood, 0.5 + X[:, : min(M, 2)].sum(axis=1) + offset, rng)
    m = len(likelihood.nuisance)
    return Problem(
        design=Design(X, extra=np.ones((n, 1))),
        y=y,
        free=np.append(np.ones(M, dtype=bool), False),
        fixed_precision=lambda theta: np.array([BIAS_PRECISION]),
        pointwise=lambda eta, theta: tuple(compiled(likelihood)(eta, y, *theta)),
        offset=offset,
        weights=weights,
        theta=np.full(m, np.log(0.6 if likelihood.name in ("normal", "student_t") else 2.0)),
        theta_bounds=np.tile([-20.0, 20.0], (m, 1)),
        normal=likelihood.name == "normal",
    )


def everything(problem, seed=1):
    width = problem.design.width
    index = np.arange(width)
    alpha = 10 ** np.random.default_rng(seed).uniform(-1, 1, width)
    alpha[-1] = BIAS_PRECISION
    return index, alpha, problem.design.columns(index)


def stencil(f, x, j, h):
    step = np.zeros(len(x))
    step[j] = h
    return (8 * (f(x + step) - f(x - step)) - (f(x + 2 * step) - f(x - 2 * step))) / (12 * h)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", LIKELIHOODS)
def test_the_mode_and_the_evidence(name, weighted):
    weights = np.random.default_rng(9).uniform(0, 2, 40) if weighted else None
    problem = make(LIKELIHOODS[name], weights=weights)
    index, alpha, Phi = everything(problem)
    state = LaplaceApproximation(problem, Objective()).at(index, alpha, problem.theta)
    count = np.ones(40) if weights is None else weights

    def negative(w):
        height, first, _, _ = problem.pointwise(problem.offset + Phi @ w, problem.theta)
        return -(count @ height - 0.5 * alpha @ w**2), -(Phi.T @ (count * first) - alpha * w)

    # Stationary: the gradient, measured in posterior sds, is what a Newton decrement of 1e-11 leaves.
    gradient = negative(state.mean)[1]
    assert gradient @ state.posterior.solve(gradient) < 1e-10
    found = minimize(negative, np.zeros(len(index)), jac=True, method="BFGS", options={"gtol": 1e-9})
    assert_allclose(state.mean, found.x, rtol=1e-5, atol=1e-6)

    height, _, second, _ = problem.pointwise(problem.offset + Phi @ state.mean, problem.theta)
    P = -(Phi.T @ ((count * second)[:, None] * Phi)) + np.diag(alpha)
    log_prior = 0.5 * np.sum(np.log(alpha / (2 * np.pi))) - 0.5 * alpha @ state.mean**2
    k = len(index)
    formula = count @ height + log_prior + 0.5 * k * np.log(2 * np.pi) - 0.5 * np.linalg.slogdet(P)[1]
    assert_allclose(state.log_evidence, formula, rtol=1e-10)
    assert_allclose(state.posterior.covariance, np.linalg.inv(P), rtol=1e-9, atol=1e-13)
    assert_allclose(state.eta, problem.offset + Phi @ state.mean, rtol=1e-10)
    assert_allclose(state.log_likelihood, count @ height, rtol=1e-10)


@pytest.mark.parametrize("hyper", [(0.0, 0.0), (0.5, 0.3)])
@pytest.mark.parametrize("smoothness", [0.0, 1.3])
@pytest.mark.parametrize("name", LIKELIHOODS)
def test_the_slope_follows_the_mode(name, smoothness, hyper):
    problem = make(LIKELIHOODS[name])
    index, alpha, _ = everything(problem)
    prior = (lambda theta: float(-0.5 * np.sum((theta - 0.2) ** 2))) if problem.theta.size and hyper[0] else None
    laplace = LaplaceApproximation(problem, Objective(smoothness, *hyper, prior))
    k = 4

    def objective(x):
        return laplace.at(index, np.append(np.exp(x[:k]), alpha[-1]), x[k:]).objective

    x = np.append(np.log(alpha[:k]), problem.theta)
    state = laplace.at(index, alpha, problem.theta)
    slope = laplace.slope(state)
    numeric = np.array([stencil(objective, x, j, 1e-2) for j in range(len(x))])
    # The mode is found to a few 1e-6 of a posterior sd, which moves the log-determinant by about as much; differences
    # over 1e-2 turn that into 1e-4.
    assert_allclose(slope, numeric, rtol=1e-4, atol=2e-4)
    curvature = laplace.curvature(state)
    assert_allclose(curvature, curvature.T, atol=1e-12)
    assert curvature.shape == (len(x), len(x))
    if problem.theta.size:
        assert laplace.theta_step(state)[0] * slope[-1] >= 0


@pytest.mark.parametrize(
    ("smoothness", "hyper"), [(0.0, (0.5, 0.3, 0.0)), (1.3, (0.5, 0.3, 0.0)), (1.3, (-1.0, 0.0, 0.4))]
)
@pytest.mark.parametrize("M", [4, 30])
@pytest.mark.parametrize("name", ["bernoulli", "poisson", "negative_binomial"])
def test_at_a_polished_mode_the_slope_is_exact_with_any_number_of_columns(name, M, smoothness, hyper):
    problem = make(LIKELIHOODS[name], n=15, M=M, weights=np.random.default_rng(9).uniform(0.5, 2, 15))
    # A prior of the bias that depends on the nuisance parameter, as in a declared model.
    problem = replace(problem, fixed_precision=lambda theta: np.array([BIAS_PRECISION * np.exp(theta.sum())]))
    index, alpha, _ = everything(problem)
    laplace = LaplaceApproximation(problem, Objective(smoothness, *hyper[:2], inverse=hyper[2])).polished()

    def objective(x):
        return laplace.at(index, np.append(np.exp(x[:M]), 1.0), x[M:]).objective

    x = np.append(np.log(alpha[:M]), problem.theta)
    numeric = np.array([stencil(objective, x, j, 1e-3) for j in range(len(x))])
    state = laplace.at(index, alpha, problem.theta)
    assert isinstance(state.posterior, Dual if M > 15 else Primal)
    # Rounding errors of the objective, 1e-13 of a hundred, over steps of 1e-3; the fourth power of the step is less.
    assert_allclose(laplace.slope(state), numeric, rtol=1e-8, atol=1e-8)


def test_a_polished_value_does_not_depend_on_where_the_search_began():
    problem = make(LIKELIHOODS["poisson"])
    index, alpha, _ = everything(problem)
    laplace = LaplaceApproximation(problem, Objective()).polished()
    cold = laplace.at(index, alpha, problem.theta)
    for factor in (1e-3, 0.5, 1e3):
        near = laplace.at(index, factor * alpha, problem.theta)
        assert abs(laplace.at(index, alpha, problem.theta, near).log_evidence - cold.log_evidence) < 1e-10


@pytest.mark.parametrize("smoothness", [0.0, 1.3])
def test_a_normal_likelihood_through_laplace_is_exact(smoothness):
    problem = make(normal())
    index, alpha, _ = everything(problem)
    objective = Objective(smoothness, 0.5, 0.3)
    assert isinstance(approximate(problem, objective), Exact)
    assert isinstance(approximate(replace(problem, normal=False), objective), LaplaceApproximation)
    exact, laplace = Exact(problem, objective), LaplaceApproximation(replace(problem, normal=False), objective)
    one, other = exact.at(index, alpha, problem.theta), laplace.at(index, alpha, problem.theta)
    assert_allclose(other.log_evidence, one.log_evidence, rtol=1e-11)
    assert_allclose(other.objective, one.objective, rtol=1e-11)
    assert_allclose(other.mean, one.mean, rtol=1e-9)
    assert_allclose(laplace.slope(other), exact.slope(one), rtol=1e-8, atol=1e-8)
    assert_allclose(laplace.curvature(other)[:4, :4], exact.curvature(one)[:4, :4], rtol=1e-8, atol=1e-9)
    few = np.array([0, 4])
    one, other = (a.at(few, alpha[few], problem.theta) for a in (exact, laplace))
    assert_allclose(laplace.scores(other).S, exact.scores(one).S, rtol=1e-9)
    assert_allclose(laplace.scores(other).Q, exact.scores(one).Q, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("name", ["bernoulli", "poisson"])
def test_more_columns_than_observations(name):
    problem = make(LIKELIHOODS[name], n=8, M=20)
    index, alpha, Phi = everything(problem)
    state = LaplaceApproximation(problem, Objective()).at(index, alpha, problem.theta)
    height, first, second, _ = problem.pointwise(problem.offset + Phi @ state.mean, problem.theta)
    gradient = Phi.T @ first - alpha * state.mean
    P = Phi.T @ (-second[:, None] * Phi) + np.diag(alpha)
    assert gradient @ np.linalg.solve(P, gradient) < 1e-10
    formula = height.sum() + 0.5 * np.sum(np.log(alpha)) - 0.5 * alpha @ state.mean**2 - 0.5 * np.linalg.slogdet(P)[1]
    assert_allclose(state.log_evidence, formula, rtol=1e-9)


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_the_start_does_not_matter(name):
    problem = make(LIKELIHOODS[name])
    index, alpha, _ = everything(problem)
    laplace = LaplaceApproximation(problem, Objective())
    cold = laplace.at(index, alpha, problem.theta)
    far = laplace.at(index[::-1].copy(), np.full(5, 1e-3), problem.theta + 0.5)
    warm = laplace.at(index, alpha, problem.theta, far)
    assert_allclose(warm.log_evidence, cold.log_evidence, rtol=1e-7)
    assert_allclose(warm.mean, cold.mean, rtol=1e-4, atol=1e-5)


def test_a_start_out_of_range_is_left():
    problem = make(poisson())
    index, alpha, _ = everything(problem)
    laplace = LaplaceApproximation(problem, Objective())
    cold = laplace.at(index, alpha, problem.theta)
    absurd = replace(cold, mean=np.full(5, 1e4), eta=None, terms=None)
    assert_allclose(laplace.at(index, alpha, problem.theta, absurd).log_evidence, cold.log_evidence, rtol=1e-9)


def one_dimensional(n, name):
    """One column, no bias: the evidence is an integral over one weight."""
    problem = make(LIKELIHOODS[name], n=n, M=1, seed=3)
    return replace(problem, design=Design(np.abs(problem.design.columns(np.array([0]))) + 0.5), free=np.array([True]))


@pytest.mark.parametrize("name", ["bernoulli", "poisson"])
def test_the_error_of_the_evidence_shrinks_like_one_over_n(name):
    errors = []
    for n in (25, 100, 400):
        problem = one_dimensional(n, name)
        state = LaplaceApproximation(problem, Objective()).at(np.array([0]), np.array([0.5]), problem.theta)
        x, w0, sd = problem.design.columns(np.array([0]))[:, 0], state.mean[0], np.sqrt(state.variance[0])

        def density(z, problem=problem, x=x, w0=w0, sd=sd, top=state.log_likelihood):
            w = w0 + sd * float(z)
            return np.exp(problem.pointwise(problem.offset + x * w, problem.theta)[0].sum() - top - 0.25 * w**2)

        area = float(mpmath.quad(density, [-12, -6, -3, 0, 3, 6, 12])) * sd
        truth = np.log(area) + state.log_likelihood + 0.5 * np.log(0.5 / (2 * np.pi))
        errors.append(abs(state.log_evidence - truth))
    assert errors[-1] < 2e-3
    # Two factors of four in n; random data of each size make the ratio vary by a factor of two or so.
    assert 5 < errors[0] / errors[2] < 60


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_scores_are_the_textbooks(name):
    problem = make(LIKELIHOODS[name], M=6)
    laplace = LaplaceApproximation(problem, Objective())
    index = np.array([1, 6])
    state = laplace.at(index, np.array([0.5, BIAS_PRECISION]), problem.theta)
    Phi = problem.design.columns(np.arange(7))
    _, first, second, _ = problem.pointwise(state.eta, problem.theta)
    b = np.maximum(-second, 0)
    C = np.diag(b) - (b[:, None] * Phi[:, index]) @ state.posterior.covariance @ (b[:, None] * Phi[:, index]).T
    scores = laplace.scores(state)
    # Of active columns only a sum not below zero is promised: `left_out` speaks of those.
    assert_allclose(scores.S, np.maximum(np.einsum("ij,ik,kj->j", Phi, C, Phi), 0), rtol=1e-9)
    assert_allclose(scores.Q, Phi.T @ first, rtol=1e-9, atol=1e-10)
    assert_allclose(scores.overlap, (Phi.T * b) @ Phi[:, index] @ state.posterior.covariance, rtol=1e-9, atol=1e-11)


def test_a_likelihood_that_is_not_log_concave_keeps_a_proper_posterior():
    """Two clusters of outliers: the true curvature is indefinite along some directions unless the prior holds it."""
    problem = make(student_t(nu=1.0))
    y = problem.y.copy()
    y[::2] += 50
    problem = replace(problem, y=y, pointwise=lambda eta, theta: tuple(compiled(student_t(nu=1.0))(eta, y, *theta)))
    index, alpha, Phi = everything(problem)
    state = LaplaceApproximation(problem, Objective()).at(index, alpha, problem.theta)
    assert np.linalg.eigvalsh(state.posterior.covariance).min() > 0
    assert np.isfinite(state.log_evidence)
    _, first, _, _ = problem.pointwise(state.eta, problem.theta)
    gradient = Phi.T @ first - alpha * state.mean
    assert gradient @ state.posterior.solve(gradient) < 1e-9


@pytest.mark.parametrize("kind", [Exact, LaplaceApproximation])
def test_a_flat_prior_is_the_limit_of_wide_ones_with_any_number_of_columns(kind):
    """The evidence is that of a prior of precision eps, without its normaliser, up to terms of the size of eps."""
    problem, eps = make(normal(), n=12, M=30), 1e-9
    index, alpha, _ = everything(problem)
    flat, wide = (
        kind(replace(problem, fixed_precision=np.array([p])), Objective()).at(index, alpha, problem.theta)
        for p in (0.0, eps)
    )
    assert_allclose(flat.log_evidence, wide.log_evidence - 0.5 * np.log(eps / (2 * np.pi)), rtol=1e-6)
    assert_allclose(flat.mean, wide.mean, rtol=1e-5, atol=1e-7)


def test_a_mode_without_some_columns_is_searched_where_they_leave_the_others():
    """With a normal likelihood the Gaussian is the posterior itself: the search begins at its end."""
    problem = make(normal(), M=4, seed=3)
    seen = []

    def pointwise(eta, theta):
        seen.append(eta)
        z = (problem.y - eta) * np.exp(-theta[0])
        scale = np.exp(-2 * theta[0])
        return -0.5 * z**2, (problem.y - eta) * scale, np.full_like(eta, -scale), np.zeros_like(eta)

    laplace = LaplaceApproximation(replace(problem, normal=False, pointwise=pointwise), Objective())
    alpha = np.array([0.3, 2.0, 0.1, 1.0, BIAS_PRECISION])
    whole = laplace.at(np.arange(5), alpha, problem.theta)
    seen.clear()
    rest = laplace.at(np.array([4, 0, 2]), alpha[[4, 0, 2]], problem.theta, whole)
    assert len(seen) == 1
    assert_allclose(rest.mean, laplace.at(np.array([4, 0, 2]), alpha[[4, 0, 2]], problem.theta).mean, rtol=1e-9)


@pytest.mark.parametrize("seed", [2, 8, 10])
def test_a_climb_learns_what_the_curvature_leaves_out(seed, monkeypatch):
    """With few rows of two classes the mode moves the curvature as much as the precisions do."""
    problem = make(bernoulli(), n=25, seed=seed)

    def climbed():
        laplace, slopes = LaplaceApproximation(problem, Objective()), []
        monkeypatch.setattr(LaplaceApproximation, "slope", lambda *given: slopes.append(0) or slope(*given))
        start = laplace.at(np.arange(5), np.append(np.ones(4), BIAS_PRECISION), problem.theta)
        top, there = ascent.Ascent(laplace, problem.theta_bounds, 1e-9)(start, 100)
        assert there
        return top.objective, len(slopes)

    slope = LaplaceApproximation.slope
    objective, steps = climbed()
    monkeypatch.setattr(ascent, "_OTHERWISE", np.inf)
    plain, more = climbed()
    assert_allclose(objective, plain, atol=1e-7)
    assert steps <= 0.75 * more


def test_a_mode_among_observations_that_curve_upwards_takes_few_steps():
    """One of two observations curves upwards by most of what the other curves downwards."""
    asked = []

    def pointwise(eta, theta):
        asked.append(eta)
        hill = eta[0] - 0.05
        value, first = np.array([-(hill**2) / 2, -0.9 * np.cos(eta[1])]), np.array([-hill, 0.9 * np.sin(eta[1])])
        return value, first, np.array([-1.0, 0.9 * np.cos(eta[1])]), np.array([0.0, -0.9 * np.sin(eta[1])])

    problem = Problem(Design(np.ones((2, 1))), np.zeros(2), np.ones(1, dtype=bool), np.empty(0), pointwise, np.zeros(2))
    state = LaplaceApproximation(problem, Objective()).at(np.arange(1), np.array([1e-3]), np.empty(0))
    w = float(state.mean[0])
    assert_allclose(0.05 - w + 0.9 * np.sin(w) - 1e-3 * w, 0.0, atol=2e-6)
    assert len(asked) < 20


def test_a_mode_within_the_rounding_errors_of_predictors_is_left():
    """Noise of 1e-13 makes nats of the last digits of a predictor."""
    asked, rng = [], np.random.default_rng(0)
    X, sigma = rng.standard_normal((20, 2)), 1e-13
    y = X @ [1.3, -0.7]

    def pointwise(eta, theta):
        asked.append(eta)
        z = (y - eta) / sigma
        return -(z**2) / 2, z / sigma, np.full(20, -(sigma**-2.0)), np.zeros(20)

    problem = Problem(Design(X), y, np.ones(2, dtype=bool), np.empty(0), pointwise, np.zeros(20))
    state = LaplaceApproximation(problem, Objective()).at(np.arange(2), np.ones(2), np.empty(0))
    assert_allclose(state.eta, y, atol=1e-14)
    assert len(asked) < 20
