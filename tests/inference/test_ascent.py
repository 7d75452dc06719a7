"""Newton steps over the hyper-parameters."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from bayes_sparse.inference.approximations import LaplaceApproximation
from bayes_sparse.inference.evidence.ascent import Ascent
from bayes_sparse.inference.evidence.state import Objective
from bayes_sparse.problem.design import Design
from bayes_sparse.problem.problem import Problem

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
