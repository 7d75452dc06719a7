"""Compiling an element-wise log-density: derivatives right, checks gone, nothing compiled twice."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from numpy.testing import assert_allclose

import bayes_sparse as bs
from bayes_sparse.inputs import compiled as module
from bayes_sparse.inputs.compiled import compile_pointwise
from bayes_sparse.inputs.likelihoods import bernoulli, compiled, poisson


def exponential():
    eta, y = pt.dvector("eta"), pt.dvector("y")
    return pm.logp(pm.Exponential.dist(scale=pt.exp(eta)), y), eta, [y]


@pytest.fixture
def cache(monkeypatch):
    monkeypatch.setattr(module, "_cache", {})
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
        y = rng.poisson(np.exp(X[:, 0]))
        bs.fit("ard_gaussian", (X, y), likelihood="poisson", draws=0)
        sizes.append(len(cache))
    assert sizes == [1, 1, 1]
    assert compiled(poisson()) is next(iter(cache.values()))
    assert compiled(bernoulli()) is not compiled(poisson())


def test_a_normal_likelihood_is_never_compiled(cache):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3))
    bs.fit("ard_gaussian", (X, X[:, 0] + rng.standard_normal(40)), draws=10, random_seed=0)
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
