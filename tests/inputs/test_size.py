"""Numbers beyond what can be squared: refused in a sentence, or fitted; never a warning of numpy's or "null"."""

import numpy as np
import pymc as pm
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

import bayes_sparse as bs
from bayes_sparse.inputs.table import _largest
from tests.support import assert_one_sentence, refused

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 3))
Y = X[:, 0] + 0.3 * RNG.standard_normal(40)
BASES = {
    "linear": lambda scale: bs.basis.linear(),
    "bare": lambda scale: bs.basis.linear(standardise=False),
    "rbf": lambda scale: bs.basis.rbf(1.0),
    "wide": lambda scale: bs.basis.rbf(scale),
    "standardised": lambda scale: bs.basis.rbf(1.0, standardise=True),
    "found": lambda scale: bs.basis.rbf("evidence"),
    "polynomial": lambda scale: bs.basis.polynomial(3),
    "inner": lambda scale: bs.basis.inner_product(),
}
SYSTEMS = [
    ("ard_gaussian", "sequential"),
    ("ard_gaussian", "mackay"),
    ("ard_gaussian", "revm"),
    ("jeffreys_laplace", "reweighted"),
]


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: system[1])
@pytest.mark.parametrize("basis", BASES)
@pytest.mark.parametrize("scale", [1e-200, 1e-160, 1e-60, 1e60, 1e100, 1e160, 1e300])
def test_a_size_beyond_all_measure(scale, basis, system):
    if basis == "found" and system[0] == "jeffreys_laplace":
        pytest.skip("the L1 path has no evidence to find a width by")
    if (scale, basis, system[1]) == (1e-60, "bare", "reweighted"):
        pytest.skip("the L1 path takes a column so small beside the bias for none: standardise it")
    kernels = BASES[basis](scale)
    try:
        tree = bs.fit(system[0], (scale * X, Y), method=system[1], basis=kernels, draws=0, progressbar=False)
    except ValueError as refusal:
        assert_one_sentence(str(refusal))
        assert basis not in ("linear", "standardised", "wide") or not 1e-150 < scale < 1e150
    else:
        assert tree["evidence"].attrs["status"] in ("converged", "fixed-point", "jump")
        assert np.corrcoef(bs.predict(tree, scale * X)["mean"], Y)[0, 1] > 0.8


def test_the_sentence_names_the_column():
    large = X * [1.0, 1e200, 1.0]
    for features in (large, csr_array(large)):
        refused(lambda features=features: bs.fit("ard_gaussian", (features, Y), draws=0), "'x1'", "units")
    refused(lambda: bs.fit("ard_gaussian", (X, 1e100 * Y), draws=0), "target", "'y'", "units")
    refused(lambda: bs.fit("ard_gaussian", (X, Y), basis=bs.basis.rbf(1e-4), draws=0), "width")
    refused(lambda: bs.fit("ard_gaussian", (X, Y), basis=bs.basis.rbf(1e12), draws=0), "width")


@pytest.mark.parametrize("squared", [True, False])
def test_distances_of_rows_many_widths_apart_keep_their_digits(squared):
    """Seconds since 1970 and a width of two: products of the numbers would lose all of it."""
    seconds = 1.7e9 + np.append(RNG.integers(0, 20, 30), RNG.integers(-(10**9), 10**9, 10)).astype(float)[:, None]
    kernels = bs.basis.rbf(2.0, squared=squared).matrix(seconds, seconds)
    apart = np.abs(seconds - seconds.T)
    assert_allclose(kernels, np.exp(-(apart**2 if squared else apart) / 8.0), rtol=1e-6, atol=1e-300)
    assert_allclose(kernels.diagonal(), 1.0)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(70_000, 1), (9_000, 37), (30, 4), (64, 0)])
def test_the_largest_number_of_each_column(shape, order):
    values = np.asarray(np.random.default_rng(0).standard_normal(shape), order=order)
    assert_array_equal(_largest(values), np.abs(values).max(axis=0))
    whole = np.rint(100 * values).astype(np.int8)
    assert_array_equal(_largest(whole), np.abs(whole.astype(float)).max(axis=0))
    if values.size:
        values[-1, -1] = np.nan
        assert np.isnan(_largest(values)[-1])
        assert not np.isnan(_largest(values)[:-1]).any()


def test_a_column_of_ones_own_model_too_large_to_be_squared_is_refused_by_name():
    with pm.Model() as model:
        w = pm.Normal("w", 0, pm.HalfNormal("scale", shape=3), shape=3)
        pm.Poisson("y", pm.math.exp(pm.math.dot(X * [1.0, 1e200, 1.0], w)), observed=RNG.poisson(1.0, 40))
    refused(lambda: bs.fit(model, draws=0, progressbar=False), "'w[1]'", "units")
