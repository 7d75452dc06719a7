"""Replacing the moments of a fit: everything that repeats them follows."""

import numpy as np
import pymc as pm
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import bayes_sparse as bs
from bayes_sparse.trees.spread import sds
from bayes_sparse.trees.write import with_moments

pytestmark = pytest.mark.quick

RNG = np.random.default_rng(2)
X = RNG.standard_normal((60, 4))
Y = 1.0 + X @ [1.0, 0.0, -2.0, 0.0] + 0.3 * RNG.standard_normal(60)
KIND = np.argmax(np.stack([0 * Y, 2 * X[:, 0], 2 * X[:, 1]]) + RNG.gumbel(size=(3, 60)), axis=0)


def test_sds_of_any_size():
    """Also where variances overflow, or are too small to be told from zero."""
    factor = np.random.default_rng(3).standard_normal((4, 6))
    sizes = np.array([1e-200, 1.0, 1e155, 1e300])
    assert_allclose(sds(sizes[:, None] * factor), sizes * np.sqrt(np.sum(factor**2, axis=1)))
    assert_array_equal(sds(np.zeros((2, 3))), 0.0)


def replaced(tree):
    evidence = tree["evidence"].to_dataset()
    k = evidence.sizes["coordinate"]
    mean, factor = np.arange(1.0, k + 1), np.random.default_rng(1).standard_normal((k, k + 2))
    return evidence, mean, factor, with_moments(evidence, mean, factor)


@pytest.mark.parametrize("method", ["sequential", "revm"])
def test_every_place_of_a_moment(method):
    tree = bs.fit("ard_gaussian", (X, Y), method=method, draws=0)
    evidence, mean, factor, out = replaced(tree)
    sd = np.sqrt(np.diag(factor @ factor.T))
    assert_array_equal(out["coordinate_mean"], mean)
    assert_array_equal(out["covariance_factor"], factor)
    for label, m, s in zip(evidence["coordinate"].to_numpy(), mean, sd, strict=True):
        if label == "bias":
            assert_allclose([out["bias"].item(), out["bias_sd"].item()], [m, s])
        else:
            alone = out.sel(basis=label)
            if method == "revm":  # its sd is about what the data alone say
                s = np.hypot(alone["standard_error"], alone["estimate"] - m)
            assert_allclose([alone["mean"].item(), alone["sd"].item()], [m, s])
    left = ~np.isin(evidence["basis"], evidence["coordinate"])
    assert not out["mean"].to_numpy()[left].any()
    assert np.isnan(out["sd"].to_numpy()[left]).all()


def test_the_rest_is_as_it_was():
    tree = bs.fit("ard_gaussian", (X, Y), draws=0)
    before = tree["evidence"].to_dataset().copy(deep=True)
    evidence, _, _, out = replaced(tree)
    assert evidence.identical(before)
    moved = {"mean", "sd", "coordinate_mean", "covariance_factor", "bias", "bias_sd"}
    assert set(out.data_vars) == set(evidence.data_vars)
    for name in set(out.data_vars) - moved:
        assert out[name].identical(evidence[name])
    assert out.attrs == evidence.attrs


def test_a_bias_of_every_class():
    tree = bs.fit("student_multinomial", (X, KIND), draws=0)
    evidence, mean, factor, out = replaced(tree)
    at = [evidence["coordinate"].to_numpy().tolist().index(f"bias[{c}]") for c in range(3)]
    assert_array_equal(out["bias"], mean[at])
    assert_allclose(out["bias_sd"], np.sqrt(np.diag(factor @ factor.T))[at])


def test_names_of_the_user_s():
    with pm.Model() as model:
        w = pm.Normal("w", 0.0, tau=pm.Gamma("alpha", 1.0, 1.0, shape=4), shape=4)
        level = pm.Normal("level", 0.0, 10.0, shape=2)
        pm.Normal("y", level[np.arange(60) % 2] + X @ w, 0.3, observed=Y)
    evidence, mean, _, out = replaced(bs.fit(model, draws=0))
    at = [evidence["coordinate"].to_numpy().tolist().index(f"level[{i}]") for i in range(2)]
    assert_array_equal(out["level"], mean[at])
