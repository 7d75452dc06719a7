"""Newton steps over the hyper-parameters."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from bayes_sparse.inference.approximations import LaplaceApproximation
from bayes_sparse.inference.evidence.ascent import Ascent, delete_phantoms, delete_useless
from bayes_sparse.inference.evidence.state import Objective
from bayes_sparse.problem.design import Design
from bayes_sparse.problem.problem import Problem
from tests.inference.test_nearby import linear

pytestmark = pytest.mark.quick


def test_nuisance_parameters_that_go_together_are_found_in_few_steps():
    """Their curvature is looked at one at a time, and their prior lets them go along a narrow ridge only."""
    K = 1e3 * np.array([[1.0, 0.99], [0.99, 1.0]])

    def pointwise(eta, theta):
        return -0.5 * eta**2, -eta, -np.ones(3), np.zeros(3)

    start = np.array([1.0, -1.5])
    problem = Problem(
        Design(np.ones((3, 1))), np.zeros(3), np.zeros(1, dtype=bool), np.ones(1), pointwise, np.zeros(3), theta=start
    )
    objective = Objective(log_prior=lambda theta: float(-0.5 * theta @ K @ theta))
    laplace = LaplaceApproximation(problem, objective)
    state = laplace.at(np.arange(1), np.ones(1), start)
    top, reached = Ascent(laplace, np.array([[-9.0, 9.0]] * 2), 1e-7)(state, 20)
    assert reached
    assert_allclose(top.theta, 0.0, atol=1e-3)


@pytest.mark.parametrize("delete", [delete_useless, delete_phantoms])
def test_a_state_without_an_objective_loses_no_columns(delete):
    """Nor is it asked for ever whether it should: what comes of it has no objective either, and all its columns."""
    problem, _, _ = linear(40, 5, 2)
    laplace = LaplaceApproximation(problem, Objective())
    state = replace(laplace.at(np.arange(5), np.full(5, 1e9), problem.theta), objective=-np.inf)
    looks = []

    class Nowhere(LaplaceApproximation):
        def at(self, index, alpha, theta, near=None):
            looks.append(index)
            assert len(looks) < 50
            return replace(near, objective=-np.inf)

    assert len(delete(Nowhere(problem, Objective()), state).index) == 5
    assert looks
