"""Expansion points: where they are, by closed form and scipy, and what is kept of the likelihood there."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize_scalar

from bayes_sparse.inference.one_step.eigen import eigen_coordinates
from bayes_sparse.inference.one_step.expansion import check_expansion, evidence_ridge, expand
from bayes_sparse.problem.design import Design
from bayes_sparse.problem.problem import Problem
from bayes_sparse.problem.surfaces import Linear
from tests.support import NU, bernoulli, quiet, student_t, target

BIAS_PRECISION = 0.01


def make(name, n=60, M=4, seed=0, noise=0.5):
    """A surface and its columns, the bias last; the noise of a normal one is to be found."""
    rng = np.random.default_rng(seed)
    Phi = np.column_stack([2 * rng.standard_normal((n, M)), np.ones(n)])
    eta = Phi @ np.append(rng.standard_normal(M), 0.5)
    y = target(name, eta, rng, noise=4.0 if name == "student_t" else noise)
    problem = Problem(
        design=Design(Phi[:, :M], extra=Phi[:, M:]),
        y=y,
        free=np.arange(M + 1) < M,
        fixed_precision=np.array([BIAS_PRECISION]),
        pointwise=lambda eta, theta: {"bernoulli": bernoulli, "student_t": student_t}[name](y, eta),
        offset=np.zeros(n),
        theta=np.zeros(int(name == "normal")),
        theta_bounds=np.tile([-15.0, 15.0], (int(name == "normal"), 1)),
        normal=name == "normal",
    )
    return Linear(problem, scale_free=name == "bernoulli"), Phi


def slope_and_curvature(surface, Phi, name, v, theta):
    """The likelihood's own gradient and H, by hand."""
    y, eta = surface.problem.y, Phi @ v
    if name == "normal":
        return Phi.T @ (y - eta) * np.exp(-2 * theta[0]), Phi.T @ Phi * np.exp(-2 * theta[0])
    _, first, second, _ = {"bernoulli": bernoulli, "student_t": student_t}[name](y, eta)
    return Phi.T @ first, (Phi.T * -second) @ Phi


@pytest.mark.parametrize("name", ["bernoulli", "normal", "student_t"])
@pytest.mark.parametrize("expansion", ["ridge", "evidence"])
def test_a_ridge_has_its_maximum_there(name, expansion):
    """The likelihood's slope is ``ridge * w``, and is dropped; the curvature is that of the likelihood alone."""
    surface, Phi = make(name)
    quadratic = expand(surface, expansion, 1e-2, quiet)
    slope, H = slope_and_curvature(surface, Phi, name, quadratic.v, quadratic.theta)
    if expansion == "evidence":
        size = evidence_ridge(surface, quiet).precision
    else:  # in units of the mean squared column, and of the curvature of an observation that fits
        unit = {"bernoulli": 1, "normal": np.exp(-2 * quadratic.theta.sum()), "student_t": (NU + 1) / NU}[name]
        size = 1e-2 * np.mean(Phi[:, :-1] ** 2) * unit
    assert_allclose(slope, np.append(np.full(4, size), BIAS_PRECISION) * quadratic.v, atol=1e-6)
    assert_allclose(quadratic.H, H, rtol=1e-10, atol=1e-10)
    assert_allclose(quadratic.value, surface.look(quadratic.v, quadratic.theta).value, rtol=1e-13)
    assert not quadratic.gradient.any()
    assert (quadratic.evidence is not None) == (expansion == "evidence" or name == "normal")


@pytest.mark.parametrize("name", ["bernoulli", "student_t"])
def test_at_zero_only_the_bias_is_fitted(name):
    surface, Phi = make(name)
    quadratic = expand(surface, "zero", 1e-2, quiet)
    best = minimize_scalar(
        lambda b: 0.5 * BIAS_PRECISION * b**2 - surface.look(np.append(np.zeros(4), b), np.empty(0)).value,
        bounds=(-5, 5),
        method="bounded",
        options={"xatol": 1e-10},
    )
    assert np.array_equal(quadratic.v[:4], np.zeros(4))
    assert_allclose(quadratic.v[4], best.x, atol=1e-6)
    slope, H = slope_and_curvature(surface, Phi, name, quadratic.v, np.empty(0))
    assert_allclose(quadratic.gradient, slope[:4], rtol=1e-10)
    assert_allclose(quadratic.H, H, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("expansion", ["zero", np.array([1.0, -2.0, 0.5, 3.0])], ids=["zero", "a point"])
def test_of_a_normal_likelihood_nothing_is_lost(expansion):
    """It is a quadratic, so where the slope is kept the expansion is the likelihood itself, anywhere."""
    surface, _ = make("normal")
    quadratic = expand(surface, expansion, 1e-2, quiet)
    slope = np.append(quadratic.gradient, BIAS_PRECISION * quadratic.v[4:])
    for seed in range(3):
        v = 3 * np.random.default_rng(seed).standard_normal(5)
        step = v - quadratic.v
        model = quadratic.value + slope @ step - 0.5 * step @ quadratic.H @ step
        assert_allclose(model, surface.look(v, quadratic.theta).value, rtol=1e-10)


def test_a_point_of_the_users():
    surface, Phi = make("bernoulli")
    w = np.array([0.3, -0.2, 0.1, 0.4])
    quadratic = expand(surface, w, 1e-2, quiet)
    assert np.array_equal(quadratic.v[:4], w)
    slope, _ = slope_and_curvature(surface, Phi, "bernoulli", quadratic.v, np.empty(0))
    assert_allclose(slope[4], BIAS_PRECISION * quadratic.v[4], atol=1e-7)
    assert_allclose(quadratic.gradient, slope[:4], rtol=1e-10)


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_a_number_of_newton_steps(steps):
    """Textbook IRLS from zero."""
    surface, Phi = make("bernoulli", seed=2)
    v = np.zeros(5)
    for _ in range(steps):
        slope, H = slope_and_curvature(surface, Phi, "bernoulli", v, np.empty(0))
        v = v + np.linalg.solve(H + np.diag([0, 0, 0, 0, BIAS_PRECISION]), slope - [0, 0, 0, 0, BIAS_PRECISION] * v)
    quadratic = expand(surface, steps, 1e-2, quiet)
    assert_allclose(quadratic.v, v, rtol=1e-6)  # a ridge of 1e-8 keeps the steps finite
    assert_allclose(quadratic.H, slope_and_curvature(surface, Phi, "bernoulli", v, np.empty(0))[1], rtol=1e-6)
    assert not quadratic.gradient.any()
    assert quadratic.steps == steps


def test_any_number_of_steps_leaves_a_bias_with_positive_curvature():
    """Of a likelihood that is not log-concave; else the bias cannot be integrated out."""
    for seed in range(60):
        surface, _ = make("student_t", n=20, M=6, seed=seed)
        quadratic = expand(surface, 1, 1e-2, quiet)
        assert quadratic.H[6, 6] + BIAS_PRECISION > 0
        assert np.isfinite(eigen_coordinates(quadratic, np.array([BIAS_PRECISION])).height)


def test_separable_classes_are_seen():
    surface, _ = make("bernoulli", n=10, M=15)
    assert expand(surface, "ridge", 1e-2, quiet).separates
    assert not expand(surface, "zero", 1e-2, quiet).separates
    together, _ = make("bernoulli")
    assert not expand(together, "ridge", 1e-2, quiet).separates


@pytest.mark.parametrize("wrong", ["Ridge", "ml", "", 0, -1, True, 1.5, None])
def test_what_is_no_expansion(wrong):
    with pytest.raises(ValueError, match="`expansion` is 'ridge'"):
        check_expansion(wrong)


@pytest.mark.parametrize("right", ["ridge", "evidence", "zero", 1, np.int64(7), np.zeros(3), [0.0, 1.0], {"w": 0.0}])
def test_what_is_one(right):
    check_expansion(right)


def test_the_ridge_of_greatest_evidence_to_five_digits():
    """Its slope, by Newton's method and differences here, is zero; the search itself stops at a thousandth."""
    surface, Phi = make("bernoulli", n=30, M=12, seed=2)
    y, M = surface.problem.y, 12

    def evidence(log_ridge):
        precision, v = np.append(np.full(M, np.exp(log_ridge)), BIAS_PRECISION), np.zeros(M + 1)
        for _ in range(50):
            value, first, second, _ = bernoulli(y, Phi @ v)
            H = (Phi.T * -second) @ Phi + np.diag(precision)
            v = v + np.linalg.solve(H, Phi.T @ first - precision * v)
        value = bernoulli(y, Phi @ v)[0]
        return value.sum() - 0.5 * precision @ v**2 + 0.5 * np.log(precision).sum() - 0.5 * np.linalg.slogdet(H)[1]

    best, h = np.log(evidence_ridge(surface, quiet).precision), 1e-2
    behind, here, ahead = (evidence(best + step) for step in (-h, 0.0, h))
    curvature = (ahead - 2 * here + behind) / h**2
    assert curvature < 0
    assert abs((ahead - behind) / (2 * h) / curvature) < 1e-5
