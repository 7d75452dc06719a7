"""Newton's climb: the maximum against closed forms, scipy and scikit-learn, from near and from far."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from bayes_sparse.inference.newton import climb
from bayes_sparse.problem.design import Design
from bayes_sparse.problem.problem import Problem
from bayes_sparse.problem.surfaces import Linear
from tests.support import NONE, bernoulli, poisson, student_t, target

pytestmark = pytest.mark.quick


def normal(y, eta):
    return -0.5 * (y - eta) ** 2 - 0.5 * np.log(2 * np.pi), y - eta, -np.ones(len(y)), NONE


LIKELIHOODS = {"bernoulli": bernoulli, "poisson": poisson, "student_t": student_t, "normal": normal}


def make(name, n=80, M=5, seed=0, weighted=True):
    rng = np.random.default_rng(seed)
    Phi = np.column_stack([rng.standard_normal((n, M)), np.ones(n)])
    eta = Phi @ np.append(rng.standard_normal(M), 0.5)
    y = target(name, eta, rng, noise=4.0 if name == "student_t" else 1.0)
    problem = Problem(
        design=Design(Phi[:, :M], extra=Phi[:, M:]),
        y=y,
        free=np.arange(M + 1) < M,
        fixed_precision=np.zeros(1),
        pointwise=lambda eta, theta: LIKELIHOODS[name](y, eta),
        offset=np.zeros(n),
        weights=rng.uniform(0.5, 2, n) if weighted else None,
        normal=name == "normal",
    )
    return Linear(problem), Phi


def slope(surface, Phi, name, precision, v):
    """Gradient of what is climbed, by hand."""
    count = np.ones(surface.n) if surface.problem.weights is None else surface.problem.weights
    return Phi.T @ (count * LIKELIHOODS[name](surface.problem.y, Phi @ v)[1]) - precision * v


@pytest.mark.parametrize("start", [0.0, 1.0, -10.0])
@pytest.mark.parametrize("ridge", [1e-6, 0.3, 100.0])
@pytest.mark.parametrize("name", LIKELIHOODS)
def test_the_gradient_vanishes(name, ridge, start):
    """Also from far away, where curvatures are next to nothing or the rate of a Poisson is exp(60)."""
    surface, Phi = make(name)
    precision = np.append(np.full(5, ridge), 0.01)
    peak = climb(surface, precision, NONE, start * np.append(np.ones(5), 0.5))
    assert peak.converged
    assert_allclose(slope(surface, Phi, name, precision, peak.v), 0, atol=1e-6)
    assert_allclose(peak.look.value, surface.look(peak.v, NONE).value, rtol=0)


def test_ridge_regression_in_one_step():
    surface, Phi = make("normal")
    precision = np.append(np.full(5, 0.7), 0.01)
    peak = climb(surface, precision, NONE, surface.start())
    W = surface.problem.weights
    truth = np.linalg.solve((Phi.T * W) @ Phi + np.diag(precision), Phi.T @ (W * surface.problem.y))
    assert_allclose(peak.v, truth, rtol=1e-12)
    assert peak.steps <= 2  # the second finds nothing left to climb


def test_logistic_regression_is_that_of_scikit_learn():
    surface, Phi = make("bernoulli", weighted=False)
    peak = climb(surface, np.append(np.full(5, 0.25), 0.0), NONE, surface.start())
    theirs = LogisticRegression(C=4.0, tol=1e-12, max_iter=10_000, solver="newton-cholesky")
    theirs.fit(Phi[:, :5], surface.problem.y)
    assert_allclose(peak.v, np.append(theirs.coef_, theirs.intercept_), atol=1e-8)


@pytest.mark.parametrize("held", [1, 5, 6])
def test_held_weights_stay(held):
    surface, Phi = make("bernoulli")
    rng = np.random.default_rng(3)
    start, precision = rng.standard_normal(6), np.full(6, 0.3)
    peak = climb(surface, precision, NONE, start, held=held)
    assert np.array_equal(peak.v[:held], start[:held])
    assert peak.converged
    gradient = slope(surface, Phi, "bernoulli", precision, peak.v)
    assert_allclose(gradient[held:], 0, atol=1e-8)
    assert np.abs(gradient[:held]).min() > 1e-3  # these would move if they could


def test_a_number_of_steps_is_that_of_textbook_irls():
    """Few enough data and a strong enough prior that no step has to be shortened."""
    surface, Phi = make("bernoulli", weighted=False)
    precision, v = np.append(np.full(5, 0.5), 0.01), np.zeros(6)
    heights = []
    for steps in range(1, 5):
        p = expit(Phi @ v)
        working = Phi @ v + (surface.problem.y - p) / (p * (1 - p))
        v = np.linalg.solve((Phi.T * p * (1 - p)) @ Phi + np.diag(precision), Phi.T @ (p * (1 - p) * working))
        peak = climb(
            surface, precision, NONE, np.zeros(6), max_steps=steps, report=lambda *said: heights.append(said[1])
        )
        assert_allclose(peak.v, v, rtol=1e-10)
        assert (peak.steps, peak.converged) == (steps, False)
    assert np.all(np.diff(heights[-4:]) > 0)


def test_a_likelihood_with_several_maxima():
    """A likelihood that is not log-concave: from any start a point where scipy finds nothing better nearby."""
    surface, Phi = make("student_t", n=12, seed=4)
    precision = np.append(np.full(5, 1e-3), 1e-4)
    for seed in range(5):
        start = 3 * np.random.default_rng(seed).standard_normal(6)
        peak = climb(surface, precision, NONE, start)
        assert peak.converged
        height = peak.look.value - 0.5 * precision @ peak.v**2
        assert height >= surface.look(start, NONE).value - 0.5 * precision @ start**2
        near = minimize(
            lambda v: 0.5 * precision @ v**2 - surface.look(v, NONE).value,
            peak.v,
            jac=lambda v: -slope(surface, Phi, "student_t", precision, v),
            options={"gtol": 1e-9},
        )
        assert -near.fun - height < 1e-8
