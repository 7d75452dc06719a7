"""A linear surface against scipy's densities, the dense closed form and finite differences; its laws of rotation."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.special import expit

from bayes_sparse.inputs.likelihoods import bernoulli, compiled, negative_binomial, normal, poisson, student_t
from bayes_sparse.problem import design as design_module
from bayes_sparse.problem.design import Design
from bayes_sparse.problem.problem import Problem
from bayes_sparse.problem.surfaces import Linear

pytestmark = pytest.mark.quick

SIGMA, NU, SIZE = 0.7, 4.0, 3.0
THETA = {"normal": [np.log(SIGMA)], "student_t": [np.log(SIGMA)], "negative_binomial": [np.log(SIZE)]}
LIKELIHOODS = {
    "normal": normal(),
    "student_t": student_t(NU),
    "bernoulli": bernoulli(),
    "poisson": poisson(),
    "negative_binomial": negative_binomial(),
}
LAYOUTS = {
    "all free": [True] * 4,
    "first kept": [False, True, True, True],
    "one kept": [True, False, True, True],
    "last kept": [True, True, True, False],
}


def log_density(name, y, eta):
    """Log-density of every observation, by scipy."""
    return {
        "normal": lambda: stats.norm.logpdf(y, eta, SIGMA),
        "student_t": lambda: stats.t.logpdf(y, NU, eta, SIGMA),
        "bernoulli": lambda: stats.bernoulli.logpmf(y, expit(eta)),
        "poisson": lambda: stats.poisson.logpmf(y, np.exp(eta)),
        "negative_binomial": lambda: stats.nbinom.logpmf(y, SIZE, SIZE / (SIZE + np.exp(eta))),
    }[name]()


def slope_and_curvature(name, y, eta):
    """First derivative along eta and minus the second, by hand."""
    r, mean, p = y - eta, np.exp(eta), expit(eta)
    tail = NU * SIGMA**2 + r**2
    return {
        "normal": (r / SIGMA**2, np.full(len(y), SIGMA**-2)),
        "student_t": ((NU + 1) * r / tail, (NU + 1) * (NU * SIGMA**2 - r**2) / tail**2),
        "bernoulli": (y - p, p * (1 - p)),
        "poisson": (y - mean, mean),
        "negative_binomial": (SIZE * (y - mean) / (SIZE + mean), SIZE * mean * (SIZE + y) / (SIZE + mean) ** 2),
    }[name]


def targets(name, eta, rng):
    return {
        "normal": lambda: eta + SIGMA * rng.standard_normal(len(eta)),
        "student_t": lambda: eta + 3 * rng.standard_cauchy(len(eta)),
        "bernoulli": lambda: (rng.random(len(eta)) < expit(eta)).astype(float),
        "poisson": lambda: rng.poisson(np.exp(eta)).astype(float),
        "negative_binomial": lambda: rng.poisson(np.exp(eta) * rng.gamma(SIZE, 1 / SIZE, len(eta))).astype(float),
    }[name]()


def make(name, *, n=150, free=(True,) * 4, weighted=False, seed=0, bias=True):
    """A surface with raw columns to be standardised, an offset and a bias; and its columns, free ones first."""
    rng = np.random.default_rng(seed)
    M = len(free)
    X = 2 + 3 * rng.standard_normal((n, M))
    shift, scale = X.mean(axis=0), X.std(axis=0)
    extra = np.ones((n, 1)) if bias else None
    offset = np.linspace(-0.3, 0.3, n)
    Phi = (X - shift) / scale
    y = targets(name, offset + 0.4 + Phi[:, :2].sum(axis=1) / 2, rng)
    likelihood = LIKELIHOODS[name]
    m = len(likelihood.nuisance)
    problem = Problem(
        design=Design(X, shift, scale, extra),
        y=y,
        free=np.append(free, [False] * bias),
        fixed_precision=0.01 * (1 + np.arange(M - sum(free) + bias)),
        pointwise=lambda eta, theta: tuple(compiled(likelihood)(eta, y, *theta)),
        offset=offset,
        weights=rng.uniform(0, 2, n) if weighted else None,
        theta=np.array(THETA.get(name, [])),
        theta_bounds=np.tile([-20.0, 20.0], (m, 1)),
        normal=name == "normal",
    )
    surface = Linear.of_problem(problem, scale_free=likelihood.scale_free)
    columns = [Phi[:, list(free)], Phi[:, ~np.array(free)], np.ones((n, int(bias)))]
    return surface, np.column_stack(columns)


@pytest.mark.parametrize("streamed", [False, True], ids=["in memory", "streamed"])
@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", LIKELIHOODS)
def test_value_gradient_and_curvature(name, layout, weighted, streamed, monkeypatch):
    if streamed:
        monkeypatch.setattr(design_module, "_BLOCK_BYTES", 0)
        monkeypatch.setattr(design_module, "_BLOCK_BYTES", 1)  # row blocks as short as they get, 64 of 150
    surface, Phi = make(name, free=LAYOUTS[layout], weighted=weighted)
    assert (surface.d, surface.q, surface.n) == (sum(LAYOUTS[layout]), 5 - sum(LAYOUTS[layout]), 150)
    v = np.random.default_rng(1).standard_normal(5)
    problem = surface.problem
    eta, count = problem.offset + Phi @ v, np.ones(150) if problem.weights is None else problem.weights
    slope, curvature = slope_and_curvature(name, problem.y, eta)
    look = surface.look(v, surface.theta)
    assert_allclose(look.value, count @ log_density(name, problem.y, eta), rtol=1e-12)
    assert_allclose(look.gradient, Phi.T @ (count * slope), rtol=1e-10, atol=1e-10)
    assert_allclose(look.curvature(), (Phi.T * (count * curvature)) @ Phi, rtol=1e-10, atol=1e-10)
    assert_allclose(look.steps(), (Phi.T * (count * np.maximum(curvature, 0))) @ Phi, rtol=1e-10, atol=1e-10)
    assert np.any(curvature < 0) == (name == "student_t")


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_derivatives_are_those_of_the_value(name):
    """Five-point differences, with an error of about 1e-3^4 and a rounding of 1e-13 / 1e-3."""
    surface, _ = make(name, weighted=True)
    v = np.random.default_rng(2).standard_normal(5) / 3
    look = surface.look(v, surface.theta)

    def slope(f, e):
        return (8 * (f(v + e) - f(v - e)) - (f(v + 2 * e) - f(v - 2 * e))) / 12e-3

    steps = 1e-3 * np.eye(5)
    gradient = [slope(lambda x: surface.look(x, surface.theta).value, e) for e in steps]
    hessian = [slope(lambda x: surface.look(x, surface.theta).gradient, e) for e in steps]
    assert_allclose(look.gradient, gradient, rtol=1e-7, atol=1e-7)
    assert_allclose(look.curvature(), -np.array(hessian), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_pointwise_densities_of_draws(name):
    surface, Phi = make(name, free=LAYOUTS["last kept"], weighted=True)
    draws = np.random.default_rng(3).standard_normal((3, 5))
    theta = np.tile(surface.theta, (3, 1))
    truth = [log_density(name, surface.problem.y, surface.problem.offset + Phi @ v) for v in draws]
    assert_allclose(surface.log_densities(draws, theta), truth, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", LIKELIHOODS)
def test_along_directions(name, layout):
    """Confined to ``w = Q' u``: the same values, gradient Q g and curvature Q H Q'; the fixed weights stay."""
    surface, _ = make(name, free=LAYOUTS[layout], weighted=True)
    d, q = surface.d, surface.q
    rng = np.random.default_rng(4)
    Q = rng.standard_normal((2, d))
    whole = np.block([[Q, np.zeros((2, q))], [np.zeros((q, d)), np.eye(q)]])
    narrow = surface.along(Q)
    assert (narrow.d, narrow.q, narrow.n) == (2, q, surface.n)
    assert_allclose(narrow.fixed_precision(surface.theta), surface.fixed_precision(surface.theta))
    u = rng.standard_normal(2 + q)
    here, there = narrow.look(u, surface.theta), surface.look(whole.T @ u, surface.theta)
    assert_allclose(here.value, there.value, rtol=1e-12)
    assert_allclose(here.gradient, whole @ there.gradient, rtol=1e-10, atol=1e-10)
    assert_allclose(here.curvature(), whole @ there.curvature() @ whole.T, rtol=1e-10, atol=1e-10)
    theta = surface.theta[None]
    assert_allclose(narrow.log_densities(u[None], theta), surface.log_densities((whole.T @ u)[None], theta), atol=1e-10)


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_reduced_where_columns_outnumber_rows(name):
    free = [True] * 40 + [False]
    surface, Phi = make(name, n=15, free=free, weighted=True)
    narrow, T = surface.reduced()
    assert (narrow.d, narrow.q, T.shape) == (15, 2, (15, 40))
    assert_allclose(T @ T.T, np.eye(15), atol=1e-13)
    assert_allclose(narrow.unit(surface.theta), surface.unit(surface.theta), rtol=1e-14)
    v = np.random.default_rng(5).standard_normal(42) / 5
    # Standardised columns have no constant part, so the rows of Phi span one dimension less than there are rows.
    w = T.T @ (T @ v[:40])
    assert_allclose(Phi[:, :40] @ w, Phi[:, :40] @ v[:40], atol=1e-12)
    here, there = narrow.look(np.append(T @ v[:40], v[40:]), surface.theta), surface.look(v, surface.theta)
    assert_allclose(here.value, there.value, rtol=1e-12)
    assert_allclose(np.append(T.T @ here.gradient[:15], here.gradient[15:]), there.gradient, atol=1e-9)
    small, large = (np.linalg.eigvalsh(look.curvature()[:m, :m]) for look, m in ((here, 15), (there, 40)))
    b = surface.problem.weights * slope_and_curvature(name, surface.problem.y, surface.problem.offset + Phi @ v)[1]
    dense = np.linalg.eigvalsh((Phi[:, :40].T * b) @ Phi[:, :40])
    assert_allclose(large, dense, atol=1e-11 * np.abs(dense).max())
    order = np.argsort(-np.abs(dense))[:15]  # the other 25 are zero
    assert_allclose(small, np.sort(dense[order]), atol=1e-11 * np.abs(dense).max())


def test_nothing_to_reduce():
    surface, _ = make("bernoulli")
    assert surface.reduced() == (surface, None)


@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("name", LIKELIHOODS)
def test_the_unit_of_a_ridge(name, weighted):
    """Mean squared column; where the predictor has units, times the curvature of an observation that fits exactly."""
    surface, Phi = make(name, free=LAYOUTS["one kept"], weighted=weighted)
    scale = {"normal": SIGMA**-2, "student_t": (NU + 1) / (NU * SIGMA**2)}.get(name, 1.0)
    mean = np.average(np.mean(Phi[:, :3] ** 2, axis=1), weights=surface.problem.weights)
    assert_allclose(surface.unit(surface.theta), mean * scale, rtol=1e-12)


def test_separation_is_seen():
    surface, Phi = make("bernoulli", n=12, free=[True] * 20)
    side = 2 * surface.problem.y - 1
    w = np.linalg.lstsq(Phi, side - surface.problem.offset, rcond=None)[0]
    assert surface.look(w, surface.theta).separates
    assert not surface.look(-w, surface.theta).separates
    assert not surface.look(0 * w, surface.theta).separates
    other, _ = make("normal", n=12, free=[True] * 20)
    assert not other.look(w, other.theta).separates
