"""Laplace's method along several predictors: mode, evidence and slope against scipy, quadrature and other problems."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import dblquad
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import t as student

from bayes_sparse.inference.approximations import LaplaceApproximation, approximate
from bayes_sparse.inference.evidence.exchanges import column_worth
from bayes_sparse.inference.evidence.state import Objective
from bayes_sparse.problem.design import Design
from bayes_sparse.problem.gaussian import Dual, Primal
from bayes_sparse.problem.problem import Problem
from tests.problem.classes.problems import make as make_classes

from .problems import NONE, classes, make, mean_and_log_sd, several, stencil

pytestmark = pytest.mark.quick
either_weight = pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])


@either_weight
def test_the_mode_and_the_evidence(weighted):
    c = make(weighted=weighted)
    width = c.problem.design.width
    laplace = approximate(c.problem, Objective())
    assert isinstance(laplace, LaplaceApproximation)
    for index in (np.arange(width), np.random.default_rng(2).permutation(width)[: width // 2]):
        alpha = c.precisions()[index]
        state = laplace.at(index, alpha, NONE)

        def negative(w, index=index, alpha=alpha):
            return 0.5 * alpha @ w**2 - c.likelihood(w, index), alpha * w - c.gradient(w, index)

        gradient = negative(state.mean)[1]
        assert gradient @ state.posterior.solve(gradient) < 1e-10
        found = minimize(negative, np.zeros(len(index)), jac=True, method="BFGS", options={"gtol": 1e-8})
        assert_allclose(state.mean, found.x, rtol=1e-5, atol=1e-5)
        assert_allclose(state.log_evidence, c.evidence(state.mean, alpha, index), rtol=1e-11)
        assert_allclose(state.log_likelihood, c.likelihood(state.mean, index), rtol=1e-12)
        assert_allclose(state.eta, c.eta(state.mean, index), atol=1e-11)
        covariance = np.linalg.inv(c.hessian(state.mean, index) + np.diag(alpha))
        assert_allclose(state.variance, covariance.diagonal(), rtol=1e-9)


@pytest.mark.parametrize("hyper", [(0.0, 0.0), (0.5, 0.3)])
@pytest.mark.parametrize("smoothness", [0.0, 1.3])
@pytest.mark.parametrize("nuisance", [False, True])
def test_the_slope_follows_the_mode(nuisance, smoothness, hyper):
    c = make(weighted=True, nuisance=nuisance)
    problem, M = c.problem, c.problem.design.M
    if nuisance:  # and a prior of the biases that depends on it, as in a declared model
        problem = replace(problem, fixed_precision=lambda theta: np.full(2, 0.01) * np.exp(theta[0]))
    prior = (lambda theta: float(-0.5 * np.sum((theta - 0.2) ** 2))) if nuisance and hyper[0] else None
    laplace = LaplaceApproximation(problem, Objective(smoothness, *hyper, prior)).polished()
    index, alpha = np.arange(problem.design.width), c.precisions()

    def objective(x):
        return laplace.at(index, np.append(np.exp(x[:M]), [1.0, 1.0]), x[M:]).objective

    x = np.append(np.log(alpha[:M]), problem.theta)
    state = laplace.at(index, alpha, problem.theta)
    # Rounding errors of the objective, 1e-13 of a hundred, over steps of 1e-3, and what a mode once polished leaves.
    assert_allclose(laplace.slope(state), stencil(objective, x, 1e-3), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("smoothness", [0.0, 1.3])
def test_more_columns_than_rows(smoothness):
    """A softmax, which is log-concave: the slope by rows is exact."""
    rng = np.random.default_rng(3)
    n, K, M = 5, 3, 30
    J, y = np.zeros((n, K, M)), np.array([0, 1, 2, 1, 0])
    for column in range(M):
        J[:, column % K, column] = rng.standard_normal(n)
    problem = several(J, y, classes(y, K), fixed=0)
    laplace = LaplaceApproximation(problem, Objective(smoothness, 0.5, 0.3)).polished()
    index, alpha = np.arange(M), 10 ** rng.uniform(-1, 1, M)
    state = laplace.at(index, alpha, NONE)
    assert isinstance(state.posterior, Dual)
    H = -np.einsum("iak,abi,ibl->kl", J, state.terms[2], J)
    sign, log_determinant = np.linalg.slogdet(H + np.diag(alpha))
    assert sign > 0
    height = state.terms[0].sum() + 0.5 * np.log(alpha).sum() - 0.5 * alpha @ state.mean**2
    assert_allclose(state.log_evidence, height - 0.5 * log_determinant, rtol=1e-10)
    numeric = stencil(lambda x: laplace.at(index, np.exp(x), NONE).objective, np.log(alpha), 1e-3)
    assert_allclose(laplace.slope(state), numeric, rtol=1e-7, atol=1e-8)


def test_scores_by_brute_force():
    """What a new column does to the evidence of the quadratic expansion, at any precision of that column."""
    c = make(n=150, weighted=True)
    M = c.problem.design.M
    laplace = LaplaceApproximation(c.problem, Objective()).polished()
    index = np.array([M, 1, M + 1, 5])
    alpha = c.precisions()[index]
    state = laplace.at(index, alpha, NONE)
    assert isinstance(state.posterior, Primal)
    scores, full = laplace.scores(state), np.zeros(M + 2)
    full[index] = state.mean
    H = c.hessian(full)
    pull = H @ full + c.gradient(full)

    def expanded(columns, precisions):
        Sigma = np.linalg.inv(H[np.ix_(columns, columns)] + np.diag(precisions))
        own = pull[columns]
        return 0.5 * (np.log(precisions).sum() + np.linalg.slogdet(Sigma)[1] + own @ Sigma @ own)

    for i in np.setdiff1d(np.arange(M), index):
        for precision in (1.0, 50.0):
            got = expanded(np.append(index, i), np.append(alpha, precision)) - expanded(index, alpha)
            assert_allclose(column_worth(precision, scores.S[i], scores.Q[i], 0.0), got, atol=1e-7)


def test_two_weights_by_quadrature():
    """A weight of the mean and one of the log sd: the error of the evidence falls like one over n."""
    rng = np.random.default_rng(6)
    x, z = 0.5 + rng.random(30), 0.5 + rng.random(30)
    y = 0.8 * x + np.exp(-0.4 * z) * rng.standard_normal(30)
    J, alpha, errors = np.zeros((30, 2, 2)), np.array([0.5, 0.8]), []
    J[:, 0, 0], J[:, 1, 1] = x, z
    for times in (1.0, 4.0, 16.0):
        problem = several(J, y, mean_and_log_sd(y), fixed=0, weights=np.full(30, times))
        state = LaplaceApproximation(problem, Objective()).polished().at(np.arange(2), alpha, NONE)
        L, top = state.posterior.factor, state.log_likelihood - 0.5 * alpha @ state.mean**2

        def density(v, u, L=L, top=top, times=times, state=state):
            a, b = state.mean + L @ np.array([u, v])
            height = times * np.sum(-0.5 * ((y - a * x) * np.exp(-b * z)) ** 2 - b * z - 0.5 * np.log(2 * np.pi))
            return np.exp(height - 0.5 * alpha @ np.array([a, b]) ** 2 - top)

        area, error = dblquad(density, -8, 8, -8, 8, epsabs=1e-7, epsrel=1e-7)
        assert error < 1e-5
        exact = top + np.log(area) + np.log(L.diagonal()).sum() + 0.5 * np.log(alpha / (2 * np.pi)).sum()
        errors.append(abs(state.log_evidence - exact))
    assert errors[0] < 0.1
    assert_allclose([errors[0] / errors[1], errors[1] / errors[2]], 4, rtol=0.3)


def bernoulli(y):
    def pointwise(eta, theta):
        p = expit(eta)
        return y * eta - np.logaddexp(0, eta), y - p, -p * (1 - p), -p * (1 - p) * (1 - 2 * p)

    return pointwise


def student_t(y, nu=4.0):
    """Not log-concave."""

    def pointwise(eta, theta):
        r = y - eta
        q = nu + r**2
        first, second = (nu + 1) * r / q, (nu + 1) * (r**2 - nu) / q**2
        return student.logpdf(r, nu), first, second, (nu + 1) * (2 * r * (r**2 - 3 * nu)) / q**3

    return pointwise


@pytest.mark.parametrize("M", [4, 30], ids=["tall", "wide"])
@pytest.mark.parametrize("family", [bernoulli, student_t])
def test_one_predictor_is_the_problem_of_one(family, M):
    rng = np.random.default_rng(0)
    X, weights = rng.standard_normal((20, M)), rng.uniform(0.5, 2, 20)
    signal = X[:, 0] - 0.4 + rng.standard_normal(20)
    y = (signal > 0).astype(float) if family is bernoulli else signal
    one = Problem(
        design=Design(X, extra=np.ones((20, 1))),
        y=y,
        free=np.arange(M + 1) < M,
        fixed_precision=np.array([0.1]),
        pointwise=family(y),
        offset=np.linspace(-0.2, 0.2, 20),
        weights=weights,
    )

    def pointwise(eta, theta):
        value, *rest = family(y)(eta[0], theta)
        return value, *(term.reshape((1,) * (i + 1) + (20,)) for i, term in enumerate(rest))

    given = {"offset": one.offset[None], "weights": weights, "fixed_precision": np.array([0.1])}
    same = several(np.hstack([X, np.ones((20, 1))])[:, None, :], y, pointwise, fixed=1, **given)
    index, alpha = np.arange(M + 1), np.append(10 ** rng.uniform(-1, 1, M), 0.1)
    states = []
    for problem in (one, same):
        laplace = LaplaceApproximation(problem, Objective(0.7)).polished()
        state = laplace.at(index, alpha, NONE)
        states.append((state.mean, state.log_evidence, state.objective, state.variance, laplace.slope(state)))
    for a, b in zip(*states, strict=True):
        assert_allclose(a, b, rtol=1e-10, atol=1e-12)
    assert type(laplace.at(index, alpha, NONE).posterior) is (Primal if M == 4 else Dual)


@either_weight
def test_a_softmax_is_the_problem_of_classes(weighted):
    c = make_classes("own", weighted=weighted)
    known, (_, K, width) = c.problem, c.J.shape
    given = {"weights": known.weights, "fixed_precision": known.fixed_precision}
    problem = several(c.J, known.y, classes(known.y, K), fixed=len(known.fixed_precision), **given)
    index, alpha = np.arange(width), c.precisions()
    ours, theirs = (LaplaceApproximation(p, Objective(0.7)).polished() for p in (problem, known))
    here, there = ours.at(index, alpha, NONE), theirs.at(index, alpha, NONE)
    assert_allclose(here.log_evidence, there.log_evidence, rtol=1e-8)
    assert_allclose(here.mean, there.mean, rtol=1e-8, atol=1e-8)
    assert_allclose(here.eta, there.eta.T, rtol=1e-8, atol=1e-8)
    assert_allclose(ours.slope(here), theirs.slope(there), rtol=1e-8, atol=1e-8)
    few = index[::2]
    here, there = ours.at(few, alpha[::2], NONE), theirs.at(few, alpha[::2], NONE)
    for a, b in zip(vars(ours.scores(here)).values(), vars(theirs.scores(there)).values(), strict=True):
        assert_allclose(a, b, rtol=1e-8, atol=1e-7)


def padded(problem, K):
    """The same problem with predictors that nothing is in."""
    k, n = problem.predictors, len(problem.y)

    def more(term):
        order = term.ndim - 1
        full = np.zeros((K,) * order + (n,))
        full[(slice(0, k),) * order] = term
        return full

    def pointwise(eta, theta):
        return tuple(more(term) for term in problem.pointwise(eta[:k], theta))

    design = problem.design
    rows = np.vstack([design.columns(np.arange(design.width)), np.zeros(((K - k) * n, design.width))])
    return replace(
        problem,
        design=Design(np.ascontiguousarray(rows[:, : design.M]), extra=rows[:, design.M :]),
        predictors=K,
        pointwise=pointwise,
        offset=np.vstack([problem.offset, np.zeros((K - k, n))]),
    )


def test_predictors_that_nothing_is_in_change_nothing():
    c = make(weighted=True, nuisance=True)
    index, alpha, theta = np.arange(c.problem.design.width), c.precisions(), c.problem.theta
    plain, wider = (LaplaceApproximation(p, Objective(0.7)).polished() for p in (c.problem, padded(c.problem, 4)))
    here, there = plain.at(index, alpha, theta), wider.at(index, alpha, theta)
    assert_allclose(there.mean, here.mean, rtol=1e-10, atol=1e-12)
    assert_allclose(there.log_evidence, here.log_evidence, rtol=1e-12)
    assert_allclose(wider.slope(there), plain.slope(here), rtol=1e-9, atol=1e-9)
    for a, b in zip(vars(plain.scores(here)).values(), vars(wider.scores(there)).values(), strict=True):
        assert_allclose(a, b, rtol=1e-9, atol=1e-9)


def test_observations_of_two_kinds_beneath_each_other():
    """Normal ones with two predictors, two-valued ones with one, and the same weights behind both."""
    c, m = make(), 25
    rng = np.random.default_rng(2)
    X, ones = rng.standard_normal((m, c.problem.design.width)), (rng.random(m) < 0.5).astype(float)
    n = len(c.problem.y)
    J = np.zeros((n + m, 2, X.shape[1]))
    J[:n], J[n:, 0] = c.J, X

    def pointwise(eta, theta):
        above, below = c.problem.pointwise(eta[:, :n], theta), bernoulli(ones)(eta[0, n:], theta)
        joined = []
        for order, (one, other) in enumerate(zip(above, below, strict=True)):
            padded = np.zeros((2,) * order + (m,))
            padded[(0,) * order] = other
            joined.append(np.concatenate([one, padded], axis=-1))
        return tuple(joined)

    offset = np.hstack([c.problem.offset, np.zeros((2, m))])
    problem = several(J, np.append(c.problem.y, ones), pointwise, offset=offset)
    index, alpha = np.arange(X.shape[1]), c.precisions()
    state = LaplaceApproximation(problem, Objective()).polished().at(index, alpha, NONE)
    w = state.mean
    value, slope, second, _ = bernoulli(ones)(X @ w, NONE)
    assert_allclose(c.gradient(w) + X.T @ slope, alpha * w, atol=1e-8)
    P = c.hessian(w) - X.T @ (second[:, None] * X) + np.diag(alpha)
    height = c.likelihood(w) + value.sum() + 0.5 * np.log(alpha).sum() - 0.5 * alpha @ w**2
    assert_allclose(state.log_evidence, height - 0.5 * np.linalg.slogdet(P)[1], rtol=1e-11)


def test_newton_climbs_where_the_curvature_is_not_negative_definite():
    """From points with an indefinite H + A every search ends at a mode above where it began."""
    c = make(n=80, shared=0)
    index, alpha = np.arange(c.problem.design.width), np.full(c.problem.design.width, 0.1)
    laplace, rng, ends = LaplaceApproximation(c.problem, Objective()), np.random.default_rng(8), []
    for _ in range(12):
        start = rng.standard_normal(len(index))
        assert np.linalg.eigvalsh(c.hessian(start) + np.diag(alpha))[0] < 0
        eta = c.eta(start)
        begin = start, eta, c.problem.derivatives(eta, NONE)
        w, *_, factor = laplace._mode(laplace._active(index), alpha, NONE, begin)
        height = c.likelihood(w) - 0.5 * alpha @ w**2
        assert height > c.likelihood(start) - 0.5 * alpha @ start**2
        assert factor is not None
        gradient = c.gradient(w) - alpha * w
        assert gradient @ factor.solve(gradient) < 1e-10
        assert np.linalg.eigvalsh(c.hessian(w) + np.diag(alpha))[0] > 0
        ends.append(height)
    assert_allclose(ends, max(ends), rtol=1e-9)
