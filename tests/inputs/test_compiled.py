"""Compiling an element-wise log-density: derivatives right, checks gone, nothing compiled twice."""

from itertools import permutations

import mpmath
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from numpy.testing import assert_allclose

import bayes_sparse as bs
from bayes_sparse.inputs import compiled as module
from bayes_sparse.inputs.compiled import compile_pointwise, compile_several


def exponential():
    eta, y = pt.dvector("eta"), pt.dvector("y")
    return pm.logp(pm.Exponential.dist(scale=pt.exp(eta)), y), eta, [y]


@pytest.fixture
def cache(monkeypatch):
    monkeypatch.setattr(module, "_cache", {})
    monkeypatch.setattr(module, "_spread_cache", {})
    return module._cache


def test_a_density_of_ones_own(cache):
    f = compile_pointwise("exponential", exponential)
    rng = np.random.default_rng(0)
    eta, y = rng.standard_normal(7), rng.exponential(size=7)
    z = y * np.exp(-eta)
    for ours, truth in zip(f(eta, y), (-eta - z, z - 1, -z, z), strict=True):
        assert_allclose(ours, truth, rtol=1e-12, atol=1e-14)


def test_a_density_that_does_not_bend_has_zero_derivatives(cache):
    def build():
        eta = pt.dvector("eta")
        return 2 * eta, eta, []

    for ours, truth in zip(compile_pointwise("line", build)(np.ones(3)), (2.0, 2.0, 0.0, 0.0), strict=True):
        assert ours.shape == (3,)
        assert_allclose(ours, truth)


def test_one_key_is_compiled_once_for_data_of_any_shape(cache):
    calls = []

    def build():
        calls.append(1)
        return exponential()

    first = compile_pointwise("a", build)
    for n in (3, 3, 50, 1):
        again = compile_pointwise("a", build)
        assert again is first
        assert again(np.zeros(n), np.ones(n))[0].shape == (n,)
    assert (len(calls), len(cache)) == (1, 1)


def test_fits_of_new_data_compile_nothing(cache):
    rng = np.random.default_rng(0)
    sizes = []
    for n, p in ((40, 3), (40, 3), (60, 5)):
        X = rng.standard_normal((n, p))
        with pm.Model() as model:
            w = pm.Normal("w", 0.0, tau=pm.Gamma("alpha", 0.5, 0.005, shape=p), shape=p)
            pm.Exponential("y", scale=pm.math.exp(X @ w), observed=rng.exponential(np.exp(X[:, 0])))
        bs.fit(model, draws=0)
        sizes.append(len(cache))
    assert sizes == [1, 1, 1]


@pytest.mark.parametrize("likelihood", ["normal", "student_t", "bernoulli"])
def test_models_by_name_are_never_compiled(likelihood, cache):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3))
    y = X[:, 0] + rng.standard_normal(40)
    y = (y > 0).astype(int) if likelihood == "bernoulli" else y
    bs.fit("ard_gaussian", (X, y), likelihood=likelihood, draws=10, random_seed=0)
    assert not cache


def test_inputs_need_not_be_contiguous_or_aligned(cache):
    f = compile_pointwise("exponential", exponential)
    wide = np.random.default_rng(0).standard_normal((5, 4))
    buffer = np.zeros(41, dtype=np.uint8)
    odd = buffer[1:].view(np.float64)  # not aligned
    odd[:] = 2.0
    assert not odd.flags.aligned
    assert_allclose(f(wide[:, 1], odd)[0], -wide[:, 1] - 2 * np.exp(-wide[:, 1]), rtol=1e-13)


def test_parameter_checks_are_left_out(cache):
    """A trial step may leave a likelihood's range: the answer is then not finite, but nothing is raised."""

    def build():
        eta, y = pt.dvector("eta"), pt.dvector("y")
        return pm.logp(pm.Normal.dist(0.0, sigma=eta), y), eta, [y]

    density, *_ = compile_pointwise("checked", build)(np.array([1.0, -1.0]), np.zeros(2))
    assert_allclose(density[0], -0.5 * np.log(2 * np.pi))
    assert not np.isfinite(density[1])


def inflated():
    """A Poisson density with more zeros, along its log rate and the logit of what comes from it."""
    log_rate, logit, y = pt.dvector("log_rate"), pt.dvector("logit"), pt.dvector("y")
    rate, psi = pt.exp(log_rate), pt.sigmoid(logit)
    counted = pt.log(psi) + y * log_rate - rate - pt.gammaln(y + 1)
    return pt.switch(pt.eq(y, 0), pt.log(1 - psi + psi * pt.exp(-rate)), counted), [log_rate, logit], [y]


def test_two_predictors_with_forty_digits(cache):
    eta, y = np.array([[0.3, -1.0, 1.2, 0.5], [0.8, -0.4, 1.5, -2.0]]), np.array([0.0, 0.0, 3.0, 1.0])
    ours = compile_several("inflated", inflated)(eta, y)
    assert [term.shape for term in ours] == [(4,), (2, 4), (2, 2, 4), (2, 2, 2, 4)]
    with mpmath.workdps(40):
        for i, count in enumerate(y.astype(int).tolist()):

            def density(a, b, count=count):
                rate, psi = mpmath.exp(a), 1 / (1 + mpmath.exp(-b))
                if count == 0:
                    return mpmath.log(1 - psi + psi * mpmath.exp(-rate))
                return mpmath.log(psi) + count * a - rate - mpmath.loggamma(count + 1)

            for order in np.ndindex(4, 4):
                if sum(order) <= 3:
                    truth = float(mpmath.diff(density, tuple(map(float, eta[:, i])), order))
                    for place in {tuple(p) for p in permutations((0,) * order[0] + (1,) * order[1])}:
                        assert_allclose(ours[sum(order)][(*place, i)], truth, rtol=1e-11, atol=1e-13)


def test_a_predictor_that_is_not_in_the_density_has_zero_derivatives(cache):
    def build():
        eta, idle, y = pt.dvector("eta"), pt.dvector("idle"), pt.dvector("y")
        return pm.logp(pm.Exponential.dist(scale=pt.exp(eta)), y), [eta, idle], [y]

    rng = np.random.default_rng(0)
    eta, y = rng.standard_normal((2, 5)), rng.exponential(size=5)
    one = compile_pointwise("exponential", exponential)(eta[0], y)
    value, *rest = compile_several("exponential", build)(eta, y)  # the same key, and another function
    assert_allclose(value, one[0], rtol=1e-13)
    for count, term in enumerate(rest, start=1):
        assert_allclose(term[(0,) * count], one[count], rtol=1e-13)
        others = term.copy()
        others[(0,) * count] = 0.0
        assert not others.any()


def test_one_key_of_several_predictors_is_compiled_once(cache):
    calls = []

    def build():
        calls.append(1)
        return inflated()

    first = compile_several("a", build, derivatives=0)
    for n in (3, 50, 1):
        again = compile_several("a", build, derivatives=0)
        assert again is first
        [value] = again(np.zeros((2, n)), np.ones(n))
        assert_allclose(value, np.log(0.5) - 1)
    assert len(calls) == 1
