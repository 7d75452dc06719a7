"""Every likelihood against PyMC, and far out."""

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
