"""What is maximised, from its parts."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from bayes_sparse.inference.evidence.state import Objective
from bayes_sparse.problem.gaussian import Dual, Primal

pytestmark = pytest.mark.quick

RNG = np.random.default_rng(0)
PHI, B, ALPHA = RNG.standard_normal((6, 4)), RNG.uniform(0.5, 2, 6), np.array([0.1, 1.0, 10.0, 3.0])
FREE = np.array([True, True, True, False])
THETA = np.array([0.3, -0.2])


@pytest.fixture(params=["primal", "dual"])
def posterior(request):
    return Primal(PHI.T @ (B[:, None] * PHI), ALPHA) if request.param == "primal" else Dual(PHI, B, ALPHA)


def test_alone_it_is_the_log_evidence(posterior):
    assert Objective().value(-12.5, posterior, FREE, THETA) == -12.5


def test_the_price_of_degrees_of_freedom(posterior):
    H = PHI.T @ (B[:, None] * PHI)
    DF = np.linalg.solve(H + np.diag(ALPHA), H).diagonal()[FREE].sum()  # of what is estimated: no price for the bias
    assert_allclose(Objective(smoothness=1.3).value(-12.5, posterior, FREE, THETA), -12.5 - 1.3 * DF, rtol=1e-12)


def test_the_gamma_prior_is_a_density_of_log_alpha_over_free_columns_only(posterior):
    added = Objective(a=0.5, b=0.3).value(0.0, posterior, FREE, THETA)
    assert_allclose(added, np.sum(0.5 * np.log(ALPHA[:3]) - 0.3 * ALPHA[:3]), rtol=1e-12)


def test_the_prior_that_makes_weights_laplace_has_a_reciprocal(posterior):
    added = Objective(a=-1.0, inverse=0.3).value(0.0, posterior, FREE, THETA)
    assert_allclose(added, np.sum(-np.log(ALPHA[:3]) - 0.3 / ALPHA[:3]), rtol=1e-12)


@pytest.mark.parametrize(("a", "b"), [(-1.0, 0.0), (0.5, 0.2), (-0.25, 0.1)])
def test_its_fixed_point_is_where_the_slope_vanishes(a, b):
    objective, top = Objective(a=a, b=b, inverse=0.3), np.array([0.0, 0.3, 1.0, 1.0])
    bottom = np.array([0.0, 1e-9, 0.7, 1e4])
    alpha = objective.fixed_point(ALPHA, top, bottom)
    terms = np.array([top / 2 + a, -(bottom / 2 + b) * alpha, 0.3 / alpha])
    assert_allclose(terms.sum(axis=0) / np.abs(terms).max(axis=0), 0.0, atol=1e-12)
    assert np.all(alpha > 0)


def test_the_prior_of_nuisance_parameters(posterior):
    objective = Objective(log_prior=lambda theta: float(-theta @ theta))
    assert_allclose(objective.value(1.0, posterior, FREE, THETA), 1 - THETA @ THETA)
    assert objective.prior(np.empty(0)) == 0
    assert Objective().prior(THETA) == 0
