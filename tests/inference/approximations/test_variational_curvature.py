"""The Hessian of Jaakkola's bound follows xi."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import bayes_sparse as bs
from bayes_sparse.inference.approximations import approximate
from bayes_sparse.inference.approximations.variational import _fall, _lam
from bayes_sparse.inference.evidence.state import Objective
from bayes_sparse.inputs.prepare import prepare


@pytest.mark.parametrize("p", [5, 30])
def test_against_differences_of_the_slope(p):
    """On the side of the columns and of the rows, with weights and an offset."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((25, p))
    y = (X[:, 0] + rng.logistic(size=25) > 0).astype(int)
    data = prepare((X, y), None, "bernoulli", bs.basis.linear(), None, rng.integers(1, 4, 25), 0.3 * X[:, 1])
    problem = bs.models.ARDGaussian().problem(data).searched
    fine = approximate(problem, Objective(a=1e-3, b=1e-2), "variational").roughly(1e-10)
    index, alpha, step = np.arange(p + 1), np.exp(rng.standard_normal(p + 1)), 1e-3
    state = fine.at(index, alpha, problem.theta)
    for i in range(3):
        move = np.where(index == i, step, 0.0)
        up, down = (fine.slope(fine.at(index, alpha * np.exp(m), problem.theta, state)) for m in (move, -move))
        assert_allclose(fine.curvature(state)[i], (up - down) / (2 * step), atol=2e-6)  # the part of xi is a thousandth


def test_the_slope_of_lam():
    s = np.array([1e-2, 0.5, 3.0, 50.0, 1e4])
    step = 1e-4 * s
    assert_allclose(_fall(s), (_lam(np.sqrt(s - step)) - _lam(np.sqrt(s + step))) / (2 * step), rtol=1e-7)
    assert_allclose(_fall(np.array([0.0, 0.999e-3])), [1 / 96, float(_fall(np.array(1.001e-3)))], rtol=1e-5)
