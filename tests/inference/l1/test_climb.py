"""The L1-penalised maximum: KKT conditions, scipy's and scikit-learn's solutions, octants, far starts, hard cases."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from sklearn.linear_model import Lasso, LogisticRegression

from bayes_sparse.inference.l1.quadratic import climb_l1
from bayes_sparse.inference.newton import climb
from bayes_sparse.inference.one_step.eigen import eigen_coordinates
from bayes_sparse.inference.one_step.expansion import expand
from bayes_sparse.inference.priors import Laplace
from bayes_sparse.problem.design import Design
from bayes_sparse.problem.problem import Problem
from bayes_sparse.problem.surfaces import Linear
from tests.support import NONE, bernoulli, poisson, student_t, target

LIKELIHOODS = {"bernoulli": bernoulli, "poisson": poisson, "student_t": student_t, "normal": None}


def surface_of(name, y, Phi, bias=True):
    Z = np.ones((len(y), int(bias)))
    problem = Problem(
        design=Design(Phi, extra=Z),
        y=y,
        free=np.arange(Phi.shape[1] + bias) < Phi.shape[1],
        fixed_precision=np.full(int(bias), 0.01),
        pointwise=lambda eta, theta: LIKELIHOODS[name](y, eta),
        offset=np.zeros(len(y)),
        normal=name == "normal",
    )
    return Linear(problem), np.column_stack([Phi, Z])


def make(name, n=60, M=6, seed=0, bias=True, alike=0.3, noise=1.0):
    """ColumnStore with correlation ``alike``, half of them without effect."""
    rng = np.random.default_rng(seed)
    Phi = np.sqrt(1 - alike) * rng.standard_normal((n, M)) + np.sqrt(alike) * rng.standard_normal((n, 1))
    eta = 0.3 * bias + Phi[:, : M // 2] @ rng.standard_normal(M // 2)
    return surface_of(name, target(name, eta, rng, noise), Phi, bias)


def gradient(surface, Phi, name, v):
    """Of the likelihood less the normal prior of the fixed weights, by hand."""
    eta, fixed = Phi @ v, np.zeros(len(v))
    fixed[surface.d :] = 0.01 * v[surface.d :]
    first = surface.problem.y - eta if name == "normal" else LIKELIHOODS[name](surface.problem.y, eta)[1]
    return Phi.T @ first - fixed


def violation(surface, Phi, name, penalty, v):
    """How far v is from the KKT conditions: slope = price * sign where not zero, |slope| <= price where zero."""
    slope, u = gradient(surface, Phi, name, v), v[: surface.d]
    free = slope[: surface.d]
    lack = np.where(u == 0, np.maximum(np.abs(free) - penalty, 0), np.abs(free - penalty * np.sign(u)))
    return np.append(lack, np.abs(slope[surface.d :])).max()


def solve(surface, penalty, start=None, **settings):
    fixed = surface.fixed_precision(NONE)
    return climb_l1(surface, penalty, fixed, NONE, surface.start() if start is None else start, **settings)


@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize("size", [0.01, 1.0, 8.0])
@pytest.mark.parametrize("name", LIKELIHOODS)
def test_kkt_conditions(name, size, bias):
    for seed in range(5):
        surface, Phi = make(name, seed=seed, bias=bias)
        penalty = size * np.random.default_rng(seed).uniform(0.5, 2, 6)
        peak = solve(surface, penalty)
        assert peak.converged
        # Steps of a likelihood that is not log-concave leave out part of its curvature: they converge, but linearly.
        assert violation(surface, Phi, name, penalty, peak.v) < (1e-6 if name == "student_t" else 1e-8)


@pytest.mark.parametrize("name", ["bernoulli", "poisson", "normal"])
def test_scipy_finds_the_same_with_bounds(name):
    """``u = a - b`` with a, b >= 0 makes the problem smooth."""
    surface, Phi = make(name, seed=1)
    penalty = np.linspace(1, 6, 6)
    peak = solve(surface, penalty)

    def loss(x):
        v = np.append(x[:6] - x[6:12], x[12:])
        slope = gradient(surface, Phi, name, v)
        value = surface.look(v, NONE).value - penalty @ (x[:6] + x[6:12]) - 0.005 * v[6] ** 2
        return -value, -np.concatenate([slope[:6] - penalty, -slope[:6] - penalty, slope[6:]])

    bounds = [(0, None)] * 12 + [(None, None)]
    found = minimize(loss, np.zeros(13), jac=True, method="L-BFGS-B", bounds=bounds, options={"ftol": 0, "gtol": 1e-10})
    truth = np.append(found.x[:6] - found.x[6:12], found.x[12:])
    assert_allclose(peak.v, truth, atol=1e-6)
    assert np.array_equal(peak.v == 0, truth == 0)
    assert 0 < np.sum(peak.v == 0) < 6


def test_it_is_the_lasso():
    surface, Phi = make("normal", bias=False, n=40, M=10, seed=2)
    theirs = Lasso(alpha=12.0 / 40, fit_intercept=False, tol=1e-14, max_iter=100_000).fit(Phi, surface.problem.y)
    peak = solve(surface, np.full(10, 12.0))
    assert_allclose(peak.v, theirs.coef_, atol=1e-9)
    assert 0 < np.sum(peak.v == 0) < 10


def test_it_is_l1_logistic_regression():
    surface, Phi = make("bernoulli", bias=False, n=80, M=10, seed=3)
    theirs = LogisticRegression(
        l1_ratio=1.0, C=0.5, solver="liblinear", fit_intercept=False, tol=1e-10, max_iter=10_000
    )
    theirs.fit(Phi, surface.problem.y)
    peak = solve(surface, np.full(10, 2.0))
    assert_allclose(peak.v, theirs.coef_[0], atol=1e-5)
    assert 0 < np.sum(peak.v == 0) < 10


def test_a_price_above_every_slope_leaves_exact_zeros():
    surface, Phi = make("bernoulli")
    null = solve(surface, np.full(6, 1e6))
    assert np.array_equal(null.v[:6], np.zeros(6))
    slope = np.abs(gradient(surface, Phi, "bernoulli", null.v)[:6]).max()
    assert np.array_equal(solve(surface, np.full(6, 1.0001 * slope)).v[:6], np.zeros(6))
    assert np.sum(solve(surface, np.full(6, 0.9999 * slope)).v[:6] != 0) == 1


@pytest.mark.parametrize("name", ["bernoulli", "poisson", "normal"])
def test_without_a_price_it_is_newtons_climb(name):
    surface, _ = make(name, seed=4)
    smooth = climb(surface, np.append(np.zeros(6), 0.01), NONE, surface.start())
    assert_allclose(solve(surface, np.zeros(6)).v, smooth.v, atol=1e-8)


@pytest.mark.parametrize("far", [-20.0, 3.0, 50.0])
@pytest.mark.parametrize("name", ["bernoulli", "normal"])
def test_the_start_does_not_matter(name, far):
    surface, Phi = make(name, seed=5)
    near = solve(surface, np.full(6, 2.0))
    rng = np.random.default_rng(0)
    peak = solve(surface, np.full(6, 2.0), far * rng.standard_normal(7))
    assert peak.converged
    assert violation(surface, Phi, name, np.full(6, 2.0), peak.v) < 1e-8
    assert_allclose(peak.v, near.v, atol=1e-7)


@pytest.mark.parametrize("alike", [0.999, 1.0], ids=["nearly equal", "equal"])
def test_columns_that_say_the_same(alike):
    """With equal columns the weights are not unique; their sum and the height are."""
    surface, Phi = make("bernoulli", alike=alike, seed=6)
    peak = solve(surface, np.full(6, 0.5))
    assert peak.converged
    assert violation(surface, Phi, "bernoulli", np.full(6, 0.5), peak.v) < 1e-8
    if alike == 1:
        single, _ = surface_of("bernoulli", surface.problem.y, Phi[:, :1])
        assert_allclose([peak.v[:6].sum(), peak.v[6]], solve(single, np.array([0.5])).v, atol=1e-8)


def test_more_columns_than_rows():
    surface, Phi = make("bernoulli", n=20, M=50, seed=7)
    peak = solve(surface, np.full(50, 0.3))
    assert peak.converged
    assert violation(surface, Phi, "bernoulli", np.full(50, 0.3), peak.v) < 1e-8
    assert np.sum(peak.v[:50] != 0) <= 20


def test_curvature_of_the_wrong_sign_everywhere():
    """Outliers of a Student-t: at the start all or most observations curve the wrong way."""
    for seed in range(4, 14):
        surface, Phi = make("student_t", n=12, noise=8.0, seed=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            peak = solve(surface, np.full(6, 0.2))
        assert peak.converged
        assert violation(surface, Phi, "student_t", np.full(6, 0.2), peak.v) < 1e-6


def test_the_octant_of_the_expansion_point_holds_the_maximum():
    """As the papers say and nobody proved: the same answer in all of 210 random problems, quadratic or not."""
    same = kept = 0
    for seed in range(210):
        name = ("bernoulli", "poisson", "normal")[seed % 3]
        surface, _ = make(name, n=20 + seed % 30, M=2 + seed % 7, seed=seed)
        quadratic = expand(surface, "ridge", 1e-2, lambda *_: None)
        eigen = eigen_coordinates(quadratic, np.array([0.01]))
        alpha = Laplace().best(eigen.h, eigen.u)
        chosen = np.isfinite(alpha)
        narrow, u = surface.along(eigen.Q[chosen]), eigen.u[chosen]
        start = np.append(u, quadratic.v[surface.d :])
        confined = solve(narrow, alpha[chosen] / 2, start, octant=True)
        assert np.all(confined.v[:-1] >= 0)
        same += np.allclose(confined.v, solve(narrow, alpha[chosen] / 2, start).v, atol=1e-7)
        kept += len(u)
    assert same == 210
    assert kept > 600


def test_an_octant_that_does_not_hold_it():
    """Started on the wrong side, a weight ends at zero; the KKT conditions hold for those that may move."""
    surface, Phi = make("bernoulli", seed=8)
    best = solve(surface, np.full(6, 0.5)).v
    wrong = int(np.argmax(np.abs(best[:6])))
    start = np.where(best == 0, 1e-9, best)
    start[wrong] *= -1
    peak = solve(surface, np.full(6, 0.5), start, octant=True)
    assert peak.v[wrong] == 0
    assert np.all(peak.v[:6] * np.sign(start[:6]) >= 0)
    slope = gradient(surface, Phi, "bernoulli", peak.v)
    moved = np.append(peak.v[:6] != 0, True)
    assert_allclose(slope[moved], np.append(0.5 * np.sign(peak.v[:6]), 0)[moved], atol=1e-8)
    stays = ~moved[:6]
    assert np.all((slope[:6] * np.sign(start[:6]))[stays] <= 0.5 + 1e-8)
