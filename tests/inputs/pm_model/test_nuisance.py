"""The variables behind theta: where they start, what they stand for, their log-density."""

import numpy as np
import pymc as pm
import pytest

from bayes_sparse.inputs.pm_model import read_model

from .against_pymc import check
from .user_models import GROUP, REAL, X, poisson_model, sparse_weights


def test_start_is_the_models_initial_point():
    with pm.Model() as model:
        scale = pm.Gamma("scale", 3.0, 2.0)
        sigma = pm.HalfNormal("sigma", scale)
        bounded = pm.Uniform("bounded", -1.0, 2.0, initval=0.25)
        pm.StudentT("y", nu=4 + bounded, mu=X @ sparse_weights(), sigma=sigma, observed=REAL)
    declared = read_model(model)
    initial = model.initial_point()
    expected = [initial["scale_log__"], initial["sigma_log__"], initial["bounded_interval__"]]
    np.testing.assert_allclose(declared.problem.theta, expected)
    values = declared.unpack(declared.problem.theta)
    assert values["bounded"] == pytest.approx(0.25)
    assert values["sigma"] == pytest.approx(np.exp(initial["sigma_log__"]))
    check(model)


def test_random_intercepts():
    def build():
        u = pm.Normal("u", 0.0, pm.HalfNormal("tau", 1.0), dims="group")
        return X @ sparse_weights() + u[GROUP]

    declared = check(poisson_model(build))
    assert declared.nuisance == ("tau",)
    np.testing.assert_allclose(declared.problem.fixed_precision(np.array([np.log(0.5)])), np.full(3, 4.0))
    np.testing.assert_array_equal(declared.problem.design.extra, np.eye(3)[GROUP])
    [block] = declared.fixed
    assert block.dims == ("group",)
    assert block.coords["group"].tolist() == ["g0", "g1", "g2"]


def test_nuisance_priors_are_not_confused():
    """The compiled log-density of a prior is shared too: other numbers, shapes and families must not be."""
    for prior in (
        lambda: pm.HalfNormal("sigma", 1.0, shape=3),
        lambda: pm.HalfNormal("sigma", 2.0, shape=3),
        lambda: pm.HalfNormal("sigma", 2.0, shape=4),
        lambda: pm.HalfCauchy("sigma", 2.0, shape=4),
        lambda: pm.HalfNormal("sigma", np.array([1.0, 2.0, 3.0])),
        lambda: pm.HalfNormal("sigma", np.array([3.0, 2.0, 3.0])),
        lambda: pm.HalfNormal("sigma", pm.Exponential("scale", 1.0), shape=3),
    ):
        with pm.Model() as model:
            pm.Normal("y", X @ sparse_weights(), prior()[GROUP], observed=REAL)
        check(model)
