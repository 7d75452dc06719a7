"""Laplace's method for several classes: mode, evidence, slope and scores against scipy, quadrature and definitions."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import dblquad
from scipy.optimize import minimize

from bayes_sparse.inference.approximations import LaplaceApproximation, approximate
from bayes_sparse.inference.evidence.exchanges import addition_gain, column_worth
from bayes_sparse.inference.evidence.state import Objective
from bayes_sparse.problem.gaussian import Woodbury

from .problems import NONE, case, draw_classes, make, stencil

both_kinds = pytest.mark.parametrize("kind", ["shared", "own"])
either_weight = pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])


@either_weight
@both_kinds
def test_the_mode_and_the_evidence(kind, weighted):
    c = make(kind, weighted=weighted)
    width = c.problem.design.width
    approximation = approximate(c.problem, Objective())
    assert isinstance(approximation, LaplaceApproximation)
    for index in (np.arange(width), np.random.default_rng(2).permutation(width)[: width // 2]):
        alpha = c.precisions()[index]
        state = approximation.at(index, alpha, NONE)

        def negative(w, index=index, alpha=alpha):
            return 0.5 * alpha @ w**2 - c.likelihood(w, index), alpha * w - c.gradient(w, index)

        gradient = negative(state.mean)[1]
        assert gradient @ state.posterior.solve(gradient) < 1e-10
        found = minimize(negative, np.zeros(len(index)), jac=True, method="BFGS", options={"gtol": 1e-8})
        assert_allclose(state.mean, found.x, rtol=1e-5, atol=1e-6)
        assert_allclose(state.log_evidence, c.evidence(state.mean, alpha, index), rtol=1e-11)
        assert_allclose(state.log_likelihood, c.likelihood(state.mean, index), rtol=1e-12)
        assert_allclose(state.eta, c.J[:, :, index] @ state.mean, atol=1e-12)
        covariance = np.linalg.inv(c.hessian(state.mean, index) + np.diag(alpha))
        assert_allclose(state.variance, covariance.diagonal(), rtol=1e-9)
        assert_allclose(state.gamma, 1 - alpha * covariance.diagonal(), atol=1e-10)


@pytest.mark.parametrize("smoothness", [0.0, 1.3])
@both_kinds
def test_more_columns_than_observations(kind, smoothness):
    """The same mode and evidence by rows as from the dense H."""
    c = make(kind, n=12, M=15, widths=[20, 4, 16])
    index, alpha = np.arange(c.problem.design.width), c.precisions()
    state = LaplaceApproximation(c.problem, Objective(smoothness, 0.5, 0.3)).at(index, alpha, NONE)
    assert isinstance(state.posterior, Woodbury)
    covariance = np.linalg.inv(c.hessian(state.mean) + np.diag(alpha))
    gradient = c.gradient(state.mean) - alpha * state.mean
    assert gradient @ covariance @ gradient < 1e-10
    assert_allclose(state.log_evidence, c.evidence(state.mean, alpha), rtol=1e-9)
    free = alpha[: c.problem.design.M]
    price = smoothness * np.sum((1 - alpha * covariance.diagonal())[: len(free)])
    assert_allclose(state.objective, state.log_evidence - price + np.sum(0.5 * np.log(free) - 0.3 * free), rtol=1e-8)


@pytest.mark.parametrize("hyper", [(0.0, 0.0), (0.5, 0.3)])
@pytest.mark.parametrize("smoothness", [0.0, 1.3])
@either_weight
@both_kinds
def test_the_slope_follows_the_mode(kind, weighted, smoothness, hyper):
    c = make(kind, weighted=weighted)
    width, M = c.problem.design.width, c.problem.design.M
    laplace = LaplaceApproximation(c.problem, Objective(smoothness, *hyper))
    index = np.random.default_rng(3).permutation(width)[:10]
    assert (index >= M).any()
    alpha = c.precisions()[index]
    free = index < M

    def objective(x):
        precisions = alpha.copy()
        precisions[free] = np.exp(x)
        return laplace.at(index, precisions, NONE).objective

    state = laplace.at(index, alpha, NONE)
    # The mode is found to a few 1e-6 of a posterior sd, and differences over 1e-2 make 1e-4 of that.
    assert_allclose(laplace.slope(state), stencil(objective, np.log(alpha[free]), 1e-2), rtol=1e-4, atol=1e-4)


def test_the_slope_leaves_nothing_out():
    """What follows the moving mode is no small part of it: without it the slope is wrong by far more than rounding."""
    c = make("shared")
    index, alpha = np.arange(15), c.precisions()
    state = LaplaceApproximation(c.problem, Objective()).at(index, alpha, NONE)
    held = 0.5 * (1 - alpha * (state.variance + state.mean**2))[:12]
    assert np.abs(LaplaceApproximation(c.problem, Objective()).slope(state) - held).max() > 1e-2


def test_the_curvature_over_precisions_with_h_held():
    """Second differences of the evidence of the quadratic expansion at the mode."""
    c = make("own")
    index, alpha = np.arange(c.problem.design.width), c.precisions()
    M = c.problem.design.M
    for objective in (Objective(), Objective(0.8, 0.4, 0.2)):
        laplace = LaplaceApproximation(c.problem, objective)
        state = laplace.at(index, alpha, NONE)
        H = c.hessian(state.mean)
        pull = H @ state.mean + c.gradient(state.mean)

        def expanded(x, H=H, pull=pull, objective=objective):
            full = np.append(np.exp(x), alpha[M:])
            Sigma = np.linalg.inv(H + np.diag(full))
            J = 0.5 * (np.log(full).sum() + np.linalg.slogdet(Sigma)[1] + pull @ Sigma @ pull)
            J -= objective.smoothness * np.sum(1 - full[:M] * Sigma.diagonal()[:M])
            return J + np.sum(objective.a * x - objective.b * np.exp(x))

        second = stencil(lambda x, f=expanded: stencil(f, x, 1e-2), np.log(alpha[:M]), 1e-2)
        assert_allclose(laplace.curvature(state), second, atol=1e-5)


@either_weight
@both_kinds
def test_scores_by_brute_force(kind, weighted):
    """What a new column does to the evidence of the quadratic expansion, at any precision of that column."""
    c = make(kind, weighted=weighted, q=1)
    width = c.problem.design.width
    laplace = LaplaceApproximation(c.problem, Objective())
    index = np.array([width - 1, 1, width - 3, 6, width - 2])
    alpha = c.precisions()[index]
    state = laplace.at(index, alpha, NONE)
    scores = laplace.scores(state)
    full = np.zeros(width)
    full[index] = state.mean
    H = c.hessian(full)
    pull = H @ full + c.gradient(full)  # slope of the expansion at no weights at all

    def expanded(columns, precisions):
        Sigma = np.linalg.inv(H[np.ix_(columns, columns)] + np.diag(precisions))
        own = pull[columns]
        return 0.5 * (np.log(precisions).sum() + np.linalg.slogdet(Sigma)[1] + own @ Sigma @ own)

    # Q leaves out what is left of the gradient at the mode: a few 1e-6 of a posterior sd.
    close = partial(assert_allclose, rtol=0, atol=5e-6)
    before = expanded(index, alpha)
    outside = np.setdiff1d(np.arange(c.problem.design.M), index)
    gain, best = addition_gain(scores.S, scores.Q, 0.0)
    for i in outside:
        for precision in (0.03, 1.0, 50.0):
            got = expanded(np.append(index, i), np.append(alpha, precision)) - before
            worth = column_worth(precision, scores.S[i], scores.Q[i], 0.0)
            close(worth, got)
        if gain[i] > 0:
            got = expanded(np.append(index, i), np.append(alpha, best[i])) - before
            close(gain[i], got)
    assert (gain[outside] > 0).any()
    # And without one of the active columns: what it does to those outside.
    rest = np.delete(np.arange(5), 1)
    S, Q = scores.without(state, 1)
    lower = expanded(index[rest], alpha[rest])
    for i in outside:
        got = expanded(np.append(index[rest], i), np.append(alpha[rest], 2.0)) - lower
        close(column_worth(2.0, S[i], Q[i], 0.0), got)
    s, q = state.left_out()
    close(column_worth(alpha[1], s[1], q[1], 0.0), before - lower)


@both_kinds
def test_the_start_does_not_matter(kind):
    c = make(kind, weighted=True)
    width = c.problem.design.width
    laplace = LaplaceApproximation(c.problem, Objective())
    index, alpha = np.arange(width), c.precisions()
    cold = laplace.at(index, alpha, NONE)
    few = np.random.default_rng(5).permutation(width)[:7]
    far = laplace.at(few, np.full(7, 1e-3), NONE)
    warm = laplace.at(index, alpha, NONE, far)
    assert_allclose(warm.log_evidence, cold.log_evidence, rtol=1e-7)
    assert_allclose(warm.mean, cold.mean, rtol=1e-4, atol=1e-5)


def integrand(c, alpha, state):
    """Likelihood times prior over two weights in units of their posterior, over its value at the mode."""
    L = np.linalg.cholesky(np.linalg.inv(c.hessian(state.mean) + np.diag(alpha)))
    X, y = c.J, c.problem.y
    top = state.log_likelihood - 0.5 * alpha @ state.mean**2

    def density(v, u):
        w = state.mean + L @ np.array([u, v])
        eta = X @ w
        likelihood = eta[np.arange(len(y)), y] - np.log(np.exp(eta).sum(axis=1))
        return np.exp(c.repeats @ likelihood - 0.5 * alpha @ w**2 - top)

    return density, top + np.log(L.diagonal()).sum() + 0.5 * np.log(alpha / (2 * np.pi)).sum()


def test_the_error_of_the_evidence_shrinks_like_one_over_n():
    """Three classes, the third without columns, and a weight for each of the others: an integral in two dimensions."""
    errors, alpha, rng = [], np.array([0.5, 0.8]), np.random.default_rng(6)
    a, b = 0.5 + rng.random((40, 1)), 0.5 + rng.random((40, 1))
    y = draw_classes(np.column_stack([0.9 * a, -0.6 * b, np.zeros(40)]), rng)
    for times in (4.0, 16.0, 64.0):
        c = case([a, b, np.empty((40, 0))], y, q=0, weights=np.full(40, times))
        state = LaplaceApproximation(c.problem, Objective()).at(np.arange(2), alpha, NONE)
        found = minimize(
            lambda w, c=c: (0.5 * alpha @ w**2 - c.likelihood(w), alpha * w - c.gradient(w)), np.zeros(2), jac=True
        )
        assert_allclose(state.mean, found.x, atol=1e-4)
        density, scale = integrand(c, alpha, state)
        area, error = dblquad(density, -8, 8, -8, 8, epsabs=1e-6, epsrel=1e-6)
        assert error < 1e-4
        errors.append(abs(state.log_evidence - scale - np.log(area)))
    assert errors[0] < 0.05
    # The same rows again and again: only the prior and terms of higher order spoil a four, ever less.
    assert_allclose(errors[0] / errors[1], 4, rtol=0.3)
    assert_allclose(errors[1] / errors[2], 4, rtol=0.1)


@pytest.mark.parametrize("C", [2, 3])
def test_one_feature_by_quadrature(C):
    """A shared feature: the evidence is an integral over all classes' weights, of which their mean falls out."""
    rng = np.random.default_rng(7)
    x = rng.standard_normal((200, 1))
    y = draw_classes(x * np.array([1.0, -1.0, 0.2])[:C], rng)
    c = case([x] * C, y, q=0)
    alpha = 1.3
    state = LaplaceApproximation(c.problem, Objective()).at(np.arange(C), np.full(C, alpha), NONE)
    # With equal precisions the weights along an orthonormal basis are independent; the last one is their mean.
    basis = np.linalg.svd(np.ones((1, C)))[2][1:]
    centre = basis @ state.mean
    spread = np.linalg.inv(basis @ c.hessian(state.mean) @ basis.T + alpha * np.eye(C - 1))
    L = np.linalg.cholesky(spread)

    def density(*z):
        u = centre + L @ np.array(z)
        eta = x * (basis.T @ u)
        likelihood = eta[np.arange(200), y] - np.log(np.exp(eta).sum(axis=1))
        return np.exp(likelihood.sum() - 0.5 * alpha * u @ u - top)

    top = state.log_likelihood - 0.5 * alpha * centre @ centre
    z = np.linspace(-8, 8, 161)  # the trapezium rule converges geometrically on a density that dies out
    grid = np.stack(np.meshgrid(*[z] * (C - 1)), axis=-1).reshape(-1, C - 1)
    area = sum(density(*point) for point in grid) * 0.1 ** (C - 1)
    truth = np.log(area) + top + np.log(L.diagonal()).sum() + 0.5 * (C - 1) * np.log(alpha / (2 * np.pi))
    # Laplace's error is of the order of the number of weights over that of the rows.
    assert abs(state.log_evidence - truth) < C / 200
    assert abs(state.log_evidence - truth) > 1e-6
