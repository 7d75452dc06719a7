"""How well nuisance parameters are known and how the weights follow them: a linear model, where all is normal."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from bayes_sparse.inference.approximations import LaplaceApproximation
from bayes_sparse.inference.evidence.nearby import nearby
from bayes_sparse.inference.evidence.state import Objective
from bayes_sparse.problem.design import Design
from bayes_sparse.problem.problem import Problem

pytestmark = pytest.mark.quick

SIGMA = 0.7


def linear(n, M, m, prior=0.5):
    """A regression with m of its slopes called nuisance parameters; its design, and the precision of all slopes."""
    rng = np.random.default_rng(n)
    X, T = rng.standard_normal((n, M)), rng.standard_normal((n, m))
    T += X[:, :m] + 0.5 * T[:, -1:]  # correlated with weights and with each other
    y = X[:, 0] + rng.standard_normal(n)

    def pointwise(eta, theta):
        r, flat = (y - eta - T @ theta) / SIGMA, np.zeros(n)
        return -0.5 * r**2, r / SIGMA, flat - SIGMA**-2, flat

    problem = Problem(
        design=Design(X),
        y=y,
        free=np.ones(M, dtype=bool),
        fixed_precision=np.empty(0),
        pointwise=pointwise,
        offset=np.zeros(n),
        theta=np.zeros(m),
        theta_bounds=np.tile([-30.0, 30.0], (m, 1)),
        log_prior=lambda theta: -0.5 * prior * float(theta @ theta),
    )
    alpha = np.linspace(0.5, 2.0, M)
    both = np.hstack([X, T])
    return problem, alpha, both.T @ both / SIGMA**2 + np.diag([*alpha, *[prior] * m])


@pytest.mark.parametrize(("n", "M", "m"), [(40, 5, 1), (40, 5, 3), (12, 20, 2)])
def test_the_normal_is_that_of_the_joint_posterior(n, M, m):
    """With more columns than rows too. The precisions of theta are those of the Schur complement."""
    problem, alpha, P = linear(n, M, m)
    laplace = LaplaceApproximation(problem, Objective(log_prior=problem.log_prior))
    found = nearby(laplace, laplace.at(np.arange(M), alpha, problem.theta))
    covariance = np.linalg.inv(P)
    assert_allclose(found.factor @ found.factor.T, covariance[M:, M:], rtol=1e-5, atol=1e-6)
    if m > 1:
        assert_allclose(found.drift, -np.linalg.solve(P[:M, :M], P[:M, M:]), rtol=1e-5, atol=1e-6)


def test_without_a_maximum_the_diagonal_is_taken():
    """A prior that pulls apart: along one direction no top, along each parameter one."""
    problem, alpha, P = linear(40, 5, 2)
    schur = np.linalg.inv(np.linalg.inv(P)[5:, 5:])
    pull = 2 * np.sqrt(schur[0, 0] * schur[1, 1])
    laplace = LaplaceApproximation(problem, Objective(log_prior=lambda t: problem.log_prior(t) - pull * t[0] * t[1]))
    found = nearby(laplace, laplace.at(np.arange(5), alpha, problem.theta))
    assert_allclose(found.factor, np.diag(1 / np.sqrt(schur.diagonal())), rtol=1e-5)


def test_nothing_is_drawn_along_what_leads_out_of_the_likelihood():
    """A prior with an edge right beside the point: its derivatives there are no numbers."""
    problem, alpha, _ = linear(40, 5, 2)
    edge = problem.theta[0] + 1e-9
    laplace = LaplaceApproximation(
        problem, Objective(log_prior=lambda t: np.nan if t[0] > edge else problem.log_prior(t))
    )
    found = nearby(laplace, laplace.at(np.arange(5), alpha, problem.theta))
    assert np.isfinite(found.factor).all()
    assert np.isfinite(found.drift).all()
    assert found.factor[0, 0] == 0.0
    assert found.factor[1, 1] > 0.0
