"""Every likelihood against PyMC, and far out."""

import mpmath
import numpy as np
import pymc as pm
import pytest
from scipy import stats

from bayes_sparse.inputs.pm_model import read_model

from .against_pymc import check
from .user_models import (
    BINARY,
    EXPOSURE,
    FAMILIES,
    REAL,
    N,
    P,
    X,
    bernoulli_logit,
    bernoulli_probit,
    bernoulli_sigmoid,
    binomial,
    normal,
    normal_known,
    normal_rows,
    sparse_weights,
    with_likelihood,
)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.__name__)
def test_likelihood(family):
    declared = check(with_likelihood(family))
    assert declared.describe == FAMILIES[family]
    assert declared.precision == {"w": ("alpha_w",)}
    assert declared.observed == "y"
    assert declared.problem.free.tolist() == [True] * P + [False]
    expected = {normal, normal_known, normal_rows}
    assert declared.problem.normal == (family in expected)


def test_normal_noise():
    problem = read_model(with_likelihood(normal)).problem
    np.testing.assert_allclose(problem.theta, np.log(2.0))  # the log of the prior's support point
    problem = read_model(with_likelihood(normal_known)).problem
    assert problem.theta.size == 0
    assert problem.sigma == pytest.approx(0.7)
    problem = read_model(with_likelihood(normal_rows)).problem
    np.testing.assert_array_equal(problem.sigma, EXPOSURE)


@pytest.mark.parametrize("family", [bernoulli_logit, bernoulli_sigmoid, bernoulli_probit, binomial])
def test_far_out_nothing_overflows(family):
    declared = read_model(with_likelihood(family))
    for far in (-35.0, 35.0):
        density, first, second, third = declared.problem.pointwise(np.full(N, far), declared.problem.theta)
        assert all(np.isfinite(v).all() for v in (density, first, second, third))
        if family is bernoulli_probit:
            exact = stats.norm.logcdf(np.where(BINARY == 1, far, -far))
            np.testing.assert_allclose(density, exact, rtol=1e-6, atol=1e-15)
            wrong = (BINARY == 1) == (far < 0)
            np.testing.assert_allclose(second[wrong], -1.0, atol=2e-3)  # -1 + 1 / far^2 + ...


def test_one_predictor_used_twice_is_fine():
    with pm.Model() as model:
        eta = X @ sparse_weights()
        pm.Normal("y", eta, pm.math.exp(-0.5 * eta), observed=REAL)
    check(model)


FAR_OUT = (-30.0, -8.0, -1.0, 0.3, 2.0, 3.7, 6.0)
FAMILIES_FAR_OUT = {
    "complementary log-log": (
        lambda eta: pm.Bernoulli("y", p=1 - pm.math.exp(-pm.math.exp(eta)), observed=[0, 1]),
        lambda eta, y: mpmath.log(1 - mpmath.exp(-mpmath.exp(eta))) if y else -mpmath.exp(eta),
    ),
    "truncated": (
        lambda eta: pm.Truncated("y", pm.Normal.dist(eta, 1.0), lower=0, observed=[0.2, 1.5]),
        lambda eta, y: mpmath.log(mpmath.npdf(y - eta)) - mpmath.log(mpmath.ncdf(eta)),
    ),
    "truncated by row": (
        lambda eta: pm.TruncatedNormal("y", eta, 1.0, lower=[0, 0], upper=[np.inf, np.inf], observed=[0.2, 1.5]),
        lambda eta, y: mpmath.log(mpmath.npdf(y - eta)) - mpmath.log(mpmath.ncdf(eta)),
    ),
}


@pytest.mark.parametrize("name", FAMILIES_FAR_OUT)
def test_densities_with_branches_are_right_wherever_a_search_goes(name):
    """Value and derivatives with forty digits."""
    declare, truth = FAMILIES_FAR_OUT[name]
    with pm.Model() as model:
        declare(np.eye(2) @ sparse_weights(p=2))
    problem = read_model(model).problem
    for far in FAR_OUT:
        terms = problem.pointwise(np.full(2, far), problem.theta)
        with mpmath.workdps(40):
            for row, y in enumerate(problem.y):
                for order, term in enumerate(terms):
                    exact = mpmath.diff(lambda eta, y=y: truth(eta, y), far, order)
                    # PyMC has the root of two in single precision, of which the third derivative makes more.
                    np.testing.assert_allclose(term[row], float(exact), rtol=1e-5, atol=1e-7)


def _beyond(eta, distance):
    """Log-density of a standard normal at a distance from a bound that its mean lies below."""
    below = distance - eta
    return mpmath.log(mpmath.npdf(below)) - mpmath.log(mpmath.erfc(-eta / mpmath.sqrt(2)) / 2)


TAILS = {
    "above": (lambda eta: pm.Truncated("y", pm.Normal.dist(eta, 1.0), lower=0, observed=[0.2, 1.5]), _beyond),
    "below": (
        lambda eta: pm.Truncated("y", pm.Normal.dist(eta, 1.0), upper=0, observed=[-0.2, -1.5]),
        lambda eta, y: _beyond(-eta, -y),
    ),
}


@pytest.mark.parametrize("name", TAILS)
@pytest.mark.parametrize("far", [-7.0, -50.0, -1e7])
def test_densities_of_tails_keep_their_digits(name, far):
    """Where a square of 1e14 is in a density and in what normalises it."""
    declare, truth = TAILS[name]
    far = -far if name == "below" else far
    with pm.Model() as model:
        declare(np.eye(2) @ sparse_weights(p=2))
    problem = read_model(model).problem
    terms = problem.pointwise(np.full(2, far), problem.theta)
    with mpmath.workdps(60):
        for row, y in enumerate(problem.y):
            exact = mpmath.mpf(truth(mpmath.mpf(far), mpmath.mpf(float(y))))
            slope = mpmath.diff(lambda eta, y=float(y): truth(eta, mpmath.mpf(y)), mpmath.mpf(far))
            np.testing.assert_allclose([terms[0][row], terms[1][row]], [float(exact), float(slope)], rtol=1e-9)


@pytest.mark.parametrize("name", FAMILIES_FAR_OUT)
@pytest.mark.parametrize("derivatives", [0, 1, 2])
def test_fewer_derivatives_are_the_first_ones(name, derivatives):
    with pm.Model() as model:
        FAMILIES_FAR_OUT[name][0](np.eye(2) @ sparse_weights(p=2))
    problem, eta = read_model(model).problem, np.array([0.4, -1.2])
    few = problem.fewer(eta, problem.theta, derivatives)
    assert len(few) == derivatives + 1
    for one, other in zip(few, problem.pointwise(eta, problem.theta), strict=False):
        np.testing.assert_array_equal(one, other)
    draws = problem.log_densities(np.stack([eta, 2 * eta]), np.zeros((2, problem.theta.size)))
    np.testing.assert_array_equal(draws[1], problem.pointwise(2 * eta, problem.theta)[0])


def test_a_compiled_density_gives_fewer_derivatives_too():
    problem = read_model(with_likelihood(bernoulli_logit)).problem
    eta = np.linspace(-1, 1, N)
    value, first, second, _ = problem.pointwise(eta, problem.theta)
    for one, other in zip(problem.terms(eta, problem.theta), (value, first, second), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(problem.log_densities(eta[None], np.empty((1, 0)))[0], value)
