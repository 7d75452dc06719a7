"""A problem in an order of its own: the same to the last bit, and the same problem."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import bayes_sparse as bs
from bayes_sparse.inputs.prepare import prepare
from bayes_sparse.models import ARDGaussian
from bayes_sparse.problem.canonical import in_own_order

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((40, 6)) * 10.0 ** np.arange(-3, 3), RNG.poisson(2.0, 40).astype(float)
WEIGHTS, OFFSET = RNG.uniform(0.5, 2.0, 40), RNG.standard_normal(40)


def problem(likelihood, rows, columns):
    table = (X[rows][:, columns], Y[rows])
    keep = [f"x{columns.tolist().index(2)}"]
    given = prepare(table, None, likelihood, bs.basis.linear(), keep, WEIGHTS[rows], OFFSET[rows])
    return ARDGaussian().problem(given).problem


@pytest.mark.parametrize("likelihood", ["normal", "poisson", "negative_binomial"])
def test_any_order_becomes_the_same(likelihood):
    rows, columns = RNG.permutation(40), RNG.permutation(6)
    plain = problem(likelihood, np.arange(40), np.arange(6))
    (one, first), (other, second) = in_own_order(plain), in_own_order(problem(likelihood, rows, columns))
    index, w = np.arange(7), RNG.standard_normal(7)
    for name in ("y", "offset", "weights", "free", "theta", "theta_bounds"):
        assert_array_equal(getattr(other, name), getattr(one, name), err_msg=name)
    assert_array_equal(other.design.columns(index), one.design.columns(index))
    assert_allclose(other.fixed_precision, one.fixed_precision, rtol=1e-12)
    assert_array_equal(columns[second[:6]], first[:6])
    # and it is the problem that it was
    eta = one.offset + one.design.times(w, index)
    own = plain.offset + plain.design.times(w[np.argsort(first)], index)
    assert_allclose(np.sort(own), np.sort(eta), rtol=1e-7, atol=1e-7)
    for ours, theirs in zip(one.terms(eta, one.theta), plain.terms(own, plain.theta), strict=True):
        assert_allclose(ours.sum(), theirs.sum(), rtol=1e-6)
