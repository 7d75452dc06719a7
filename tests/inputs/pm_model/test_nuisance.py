"""The variables behind theta: where they start, what they stand for, their log-density."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy.stats import halfnorm, multivariate_normal

from bayes_sparse.inference.approximations import approximate
from bayes_sparse.inference.evidence.state import Objective
from bayes_sparse.inputs.pm_model import read_model
from bayes_sparse.inputs.pm_model.variables import Nuisance, fixed_precision

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


def test_prior_sds_that_underflow_leave_the_evidence_as_it_is():
    """High frequencies of a process have no variance to any digit: the evidence is the normal density without them."""
    rng = np.random.default_rng(3)
    n, frequency = 40, np.arange(60.0)
    Phi, X = np.cos(np.linspace(0, 1, n)[:, None] * frequency), rng.standard_normal((n, 3))
    y = rng.standard_normal(n)
    with pm.Model() as model:
        w = pm.Normal("w", 0, pm.HalfCauchy("s", 1, shape=3), shape=3)
        size, length = pm.HalfNormal("size"), pm.HalfNormal("length")
        sd = size * pm.math.exp(-((length * frequency) ** 2) / 4)
        pm.Normal("y", X @ w + Phi @ (sd * pm.Normal("z", shape=60)), pm.HalfNormal("sigma"), observed=y)
    problem = read_model(model).problem
    theta = np.log([0.7, 1.3, 0.5])
    columns = np.flatnonzero(~problem.free)
    found = approximate(problem, Objective()).at(columns, np.ones(len(columns)), theta)
    known = Phi * 0.7 * np.exp(-((1.3 * frequency) ** 2) / 4)
    truth = multivariate_normal(np.zeros(n), known @ known.T + 0.25 * np.eye(n)).logpdf(y)
    np.testing.assert_allclose(found.log_evidence, truth, rtol=1e-10)


@pytest.mark.parametrize(
    ("sd", "precision"), [([2.0, 0.0], [0.25, 2.5e29]), ([0.0, 0.0], [1e140] * 2), (np.inf, [0.0] * 2)]
)
def test_a_prior_sd_of_zero_has_a_precision(sd, precision):
    with pm.Model() as model:
        nuisance = Nuisance(model, [])
    found = fixed_precision([pt.constant(np.asarray(sd, dtype=float))], [(2,)], nuisance)(np.empty(0))
    np.testing.assert_allclose(found, precision)


def test_what_is_remembered_is_that_of_its_own_theta():
    """Asked for more values than are remembered, there and back again."""
    with pm.Model() as model:
        sigma = pm.HalfNormal("sigma")
    nuisance, thetas = Nuisance(model, [sigma]), np.linspace(-2, 2, 100)[:, None]
    for theta in [*thetas, *thetas[::-1]]:
        assert nuisance.unpack(theta)["sigma"] == np.exp(theta[0])
        exact = halfnorm.logpdf(np.exp(theta[0])) + theta[0]
        np.testing.assert_allclose(nuisance.log_prior(theta), exact, rtol=1e-12)
