"""A quadratic under an absolute-value price against every pattern of signs, tried one by one."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from bayes_sparse.inference.l1.quadratic import penalised_quadratic

seeds = st.integers(0, 2**32 - 1)
sizes = st.integers(1, 6)
some = settings(max_examples=60)


def height(H, gradient, v, price, x):
    step = x - v
    return gradient @ step - 0.5 * step @ H @ step - price @ np.abs(x)


def patterns(price, side):
    """Signs that a maximum may have; unpriced coordinates are marked by a 2."""
    choices = []
    for cost, only in zip(price, np.zeros(len(price)) if side is None else side, strict=True):
        choices.append((2,) if cost == 0 else (0, only) if only else (0, 1, -1))
    return product(*choices)


def brute_force(H, gradient, v, price, side=None):
    """The best of the points that are stationary for their own signs: the maximum is one of them."""
    best, at = -np.inf, None
    for pattern in patterns(price, side):
        sign = np.array(pattern, dtype=float)
        active, push = sign != 0, np.where(sign == 2, 0.0, price * sign)
        x = np.zeros(len(v))
        # slope at x is gradient - H (x - v): zero less the price where active
        wanted = (gradient + H @ v - push)[active]
        x[active] = np.linalg.lstsq(H[np.ix_(active, active)], wanted, rcond=1e-10)[0] if active.any() else []
        left = H[np.ix_(active, active)] @ x[active] - wanted
        signed = active & (sign != 2)
        if np.all(x[signed] * sign[signed] >= 0) and np.abs(left).max(initial=0.0) <= 1e-7 * (1 + np.abs(wanted).sum()):
            value = height(H, gradient, v, price, x)
            best, at = (value, x) if value > best else (best, at)
    return best, at


def make(seed, k, rank=None, free=0.0, zeros=0.4):
    """A quadratic that is bounded: where it is flat it does not slope."""
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((k, k if rank is None else rank)) * 10 ** rng.uniform(-1, 1, (k, 1))
    gradient = B @ rng.standard_normal(B.shape[1]) * 10 ** rng.uniform(-1, 1)
    v = np.where(rng.random(k) < zeros, 0.0, rng.standard_normal(k))
    price = np.where(rng.random(k) < free, 0.0, 10 ** rng.uniform(-2, 1, k))
    return B @ B.T, gradient, v, price


def compare(x, H, gradient, v, price, side=None):
    best, at = brute_force(H, gradient, v, price, side)
    start = height(H, gradient, v, price, v)
    assert best >= start - 1e-9
    assert_allclose(height(H, gradient, v, price, x), best, rtol=1e-9, atol=1e-9 * (1 + abs(start)))
    return at


@some
@given(seed=seeds, k=sizes, free=st.sampled_from([0.0, 0.4, 1.0]))
def test_it_is_the_best_of_all_signs(seed, k, free):
    """With every pattern of zeros in the start, and with coordinates that have no price."""
    H, gradient, v, price = make(seed, k, free=free)
    x = penalised_quadratic(H, gradient, v, price)
    at = compare(x, H, gradient, v, price)
    smallest = np.linalg.eigvalsh(H)[0]
    if smallest > 1e-6 * np.trace(H):  # else the top is flat and the point hangs on rounding
        assert_allclose(x, at, atol=1e-6 * (1 + np.abs(at).max()))
        clear = np.abs(at) > 1e-6
        assert np.array_equal(x[clear] != 0, np.ones(clear.sum(), dtype=bool))


@some
@given(seed=seeds, k=sizes)
def test_zeros_are_exact(seed, k):
    """A coordinate whose slope stays below its price is zero, not small."""
    H, gradient, v, price = make(seed, k)
    x = penalised_quadratic(H, gradient, v, price)
    slope = gradient - H @ (x - v)
    idle = np.abs(slope) < price * (1 - 1e-6)
    assert np.all(x[idle] == 0)
    assert_allclose(slope[x != 0], (price * np.sign(x))[x != 0], atol=1e-7 * (1 + np.abs(gradient).max()))


@some
@given(seed=seeds, k=sizes, free=st.sampled_from([0.0, 0.3]))
def test_sides(seed, k, free):
    """Confined to a sign, a coordinate never has the other one."""
    H, gradient, v, price = make(seed, k, free=free)
    rng = np.random.default_rng(seed)
    side = np.where(price == 0, 0.0, rng.choice([-1.0, 0.0, 1.0], k))
    v = np.where(side == 0, v, np.abs(v) * side)
    x = penalised_quadratic(H, gradient, v, price, side)
    assert np.all(x * side >= 0)
    compare(x, H, gradient, v, price, side)


@some
@given(seed=seeds, k=st.integers(2, 6), less=st.integers(1, 4), free=st.sampled_from([0.0, 0.3]))
def test_flat_directions(seed, k, less, free):
    """Collinear columns: which point is found is open, how high it is is not."""
    H, gradient, v, price = make(seed, k, rank=max(1, k - less), free=free)
    compare(penalised_quadratic(H, gradient, v, price), H, gradient, v, price)


def test_equal_columns_in_closed_form():
    """Two copies of one column: the sum of their weights is that of one, by soft-thresholding."""
    H, gradient = np.full((2, 2), 4.0), np.array([6.0, 6.0])
    x = penalised_quadratic(H, gradient, np.zeros(2), np.ones(2))
    assert_allclose(x.sum(), (6 - 1) / 4, rtol=1e-9)
    assert np.all(x >= 0)


@pytest.mark.parametrize("slope", [-5.0, -1.0, -0.2, 0.0, 0.9, 1.0, 1.1, 7.0])
@pytest.mark.parametrize("v", [-2.0, 0.0, 0.3])
def test_one_coordinate_is_soft_thresholding(slope, v):
    """The unpenalised top is at ``v + slope / h``."""
    h, price = 2.5, 1.7
    top = v + slope / h
    truth = np.sign(top) * max(abs(top) - price / h, 0.0)
    x = penalised_quadratic(np.array([[h]]), np.array([slope]), np.array([v]), np.array([price]))
    assert_allclose(x, [truth], atol=1e-14)


@pytest.mark.parametrize("k", [40, 120])
def test_many_coordinates(k):
    """Too many for brute force: the conditions of a maximum, which for a concave function are enough."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        B = rng.standard_normal((k, 2 * k))
        H, gradient, price = B @ B.T, B @ rng.standard_normal(2 * k), np.full(k, 0.3 * np.sqrt(k))
        x = penalised_quadratic(H, gradient, np.zeros(k), price)
        slope = gradient - H @ x
        assert 0 < np.count_nonzero(x) < k
        assert_allclose(slope[x != 0], (price * np.sign(x))[x != 0], rtol=1e-8)
        assert np.all(np.abs(slope[x == 0]) <= price[x == 0] * (1 + 1e-8))


def test_a_coordinate_that_is_zero_but_for_rounding():
    H, gradient, price = np.array([[9.0, -8.0], [-8.0, 11.0]]), np.array([1.0, 0.0]), np.ones(2)
    v = np.array([1e-17, 1.0])
    compare(penalised_quadratic(H, gradient, v, price), H, gradient, v, price)
