"""Every product of a Design against the dense formula, kept and streamed, and no second copy of X."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import bayes_sparse as bs
from bayes_sparse.problem import design as module
from bayes_sparse.problem.design import Design, column_moments

N, M, Q = 331, 7, 2  # 331 rows: several blocks of 64 and a short last one

INPUTS = {
    "float64 C": lambda X: np.ascontiguousarray(X),
    "float64 Fortran": lambda X: np.asfortranarray(X),
    "float64 strided": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "float32": lambda X: X.astype(np.float32),
    "int64": lambda X: np.round(10 * X).astype(np.int64),
    "int8": lambda X: np.round(10 * X).astype(np.int8),
    "uint8": lambda X: np.round(10 * X - 10 * X.min()).astype(np.uint8),
    "bool": lambda X: X > 0,
}
STANDARDS = {
    "as it is": (False, False),
    "shift": (True, False),
    "scale": (False, True),
    "shift and scale": (True, True),
}


@pytest.fixture(params=["kept", "streamed"])
def streamed(request, monkeypatch):
    if request.param == "streamed":
        monkeypatch.setattr(module, "_BLOCK_BYTES", 1536)  # 192 rows of one column
    return request.param == "streamed"


def case(kind, standard, q):
    """A design and the dense matrix it stands for, computed independently."""
    rng = np.random.default_rng(7)
    X = INPUTS[kind](2 + 3 * rng.standard_normal((N, M)))
    shifted, scaled = STANDARDS[standard]
    shift = rng.standard_normal(M) if shifted else None
    scale = rng.uniform(0.5, 2.0, M) if scaled else None
    extra = rng.standard_normal((N, q)) if q else None
    dense = X.astype(float)
    dense = (dense - (shift if shifted else 0.0)) / (scale if scaled else 1.0)
    if q:
        dense = np.hstack([dense, extra])
    return X, Design(X, shift, scale, extra), dense


@pytest.mark.parametrize("q", [0, Q])
@pytest.mark.parametrize("standard", STANDARDS)
@pytest.mark.parametrize("kind", INPUTS)
def test_every_product_equals_the_dense_formula(streamed, kind, standard, q):
    X, design, dense = case(kind, standard, q)
    before = X.copy()
    rng = np.random.default_rng(8)
    weights, v, right = rng.uniform(0, 2, N), rng.standard_normal(N), rng.standard_normal((N, 3))
    index = np.array([5, 0, 3, *range(M, M + q)])
    # Sums of a few hundred terms of size ten to the second power at most.
    close = {"rtol": 1e-12, "atol": 1e-9}

    assert (design.n, design.M, design.q, design.width) == (N, M, q, M + q)
    taken = design.columns(index)
    assert taken.flags.f_contiguous
    assert taken.dtype == np.float64
    assert_allclose(taken, dense[:, index], rtol=1e-14, atol=1e-14)
    taken[:] = np.nan  # a matrix of its own
    w = rng.standard_normal(len(index))
    assert_allclose(design.times(w, index), dense[:, index] @ w, **close)
    assert_allclose(design.transposed_times(v), dense.T @ v, **close)
    assert_allclose(design.squares(), (dense**2).sum(axis=0), **close)
    assert_allclose(design.squares(weights), (weights[:, None] * dense**2).sum(axis=0), **close)
    assert_allclose(design.squares(), (dense**2).sum(axis=0), **close)  # the one with weights was not remembered
    assert_allclose(design.cross(right), dense.T @ right, **close)
    assert_allclose(design.cross(right, weights), dense.T @ (weights[:, None] * right), **close)
    assert_allclose(design.gram(), dense.T @ dense, **close)
    assert_allclose(design.gram(weights), dense.T @ (weights[:, None] * dense), **close)
    cross, squares, products = design.scan(right, weights, v)
    assert_allclose(cross, dense.T @ (weights[:, None] * right), **close)
    assert_allclose(squares, (weights[:, None] * dense**2).sum(axis=0), **close)
    assert_allclose(products, dense.T @ v, **close)
    assert np.array_equal(X, before)


@given(
    far=st.lists(st.floats(0, 8), min_size=4, max_size=4),
    spread=st.floats(-3, 3),
    seed=st.integers(0, 2**32 - 1),
    kind=st.sampled_from([np.float64, np.float32]),
    block=st.sampled_from([256, 4096]),
)
@settings(max_examples=60, deadline=None)
def test_products_keep_their_digits_however_far_a_column_is_from_zero(far, spread, seed, kind, block):
    """Against long doubles, with shifts of up to 1e8 spreads.

    What is taken off a product has an error of the shift in spreads times that of a float, and is taken off only where
    that is at most 1e3 (its square 30^2): 1e3 times 2.2e-16, times ten for the sums.
    """
    rng, n = np.random.default_rng(seed), 90
    X = ((rng.standard_normal((n, 4)) + 10.0 ** np.array(far)) * 10.0**spread).astype(kind)
    mean, sd = column_moments(X)
    scale = np.where(sd > 0, sd, 1.0)
    b, v, right, w = rng.uniform(size=n), rng.standard_normal(n), rng.standard_normal((n, 3)), rng.standard_normal(4)
    true = (X.astype(np.longdouble) - mean) / scale
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "_BLOCK_BYTES", block)  # below the 2880 bytes of the design, and above
        design = Design(X, mean, scale)
        cross, squares, products = design.scan(right, b, v)
        found = {
            "cross": (cross, true.T @ (b[:, None] * right)),
            "squares": (squares, b @ true**2),
            "products": (products, v @ true),
            "gram": (design.gram(b), true.T @ (b[:, None] * true)),
            "plain gram": (design.gram(), true.T @ true),
            "cross alone": (design.cross(right), true.T @ right),
            "times": (design.times(w, np.arange(4)), true @ w),
        }
    # In units of sqrt(n) times the length of what is multiplied; a column itself is known to the rounding of X.
    unit = np.sqrt(n) * max(1.0, float(np.linalg.norm(right)))
    for name, (got, truth) in found.items():
        assert float(np.abs(got - truth).max()) < 2e-12 * unit, name


@pytest.mark.parametrize("index", [[], [M], [2]])
def test_few_columns(streamed, index):
    _, design, dense = case("float64 C", "shift and scale", Q)
    index = np.array(index, dtype=np.intp)
    assert_allclose(design.columns(index), dense[:, index], rtol=1e-14, atol=1e-14)
    assert_allclose(design.times(np.ones(len(index)), index), dense[:, index].sum(axis=1), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_large_design_makes_no_second_copy(dtype):
    n, width = 60_000, 120
    X = np.random.default_rng(0).standard_normal((n, width)).astype(dtype)
    X.flags.writeable = False  # a write anywhere would raise
    assert X.size * 8 > module._BLOCK_BYTES
    tracemalloc.start()
    mean, sd = column_moments(X)
    design = Design(X, mean, sd, np.ones((n, 1)))
    index = np.array([1, 4, width])
    design.columns(index)
    design.times(np.ones(3), index)
    design.transposed_times(np.ones(n))
    design.squares()
    design.cross(np.ones((n, 2)))
    design.gram(np.ones(n))
    design.scan(np.ones((n, 2)), np.ones(n), np.ones(n))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 0.5 * X.nbytes  # blocks and a few columns; a copy of any kind takes all of it


def test_a_plain_design_works_on_the_users_own_array():
    X = np.random.default_rng(0).standard_normal((500, 4))
    assert np.shares_memory(Design(X)._X, X)


@pytest.mark.parametrize("kind", INPUTS)
def test_moments(kind, monkeypatch):
    monkeypatch.setattr(module, "_BLOCK_BYTES", 1)
    X = INPUTS[kind](2 + 3 * np.random.default_rng(7).standard_normal((N, M)))
    mean, sd = column_moments(X)
    assert_allclose(mean, X.astype(float).mean(axis=0), rtol=1e-13)
    assert_allclose(sd, X.astype(float).std(axis=0), rtol=1e-13)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e9 + 0.1, -1e-9])
def test_a_constant_column_has_no_spread(value):
    mean, sd = column_moments(np.full((1001, 1), value))
    assert sd[0] == 0
    assert_allclose(mean, value, rtol=1e-13)


def test_a_small_spread_about_a_large_mean_is_kept():
    x = 1e6 + 1e-3 * np.random.default_rng(0).standard_normal((2000, 1))
    # x itself is rounded to 1e-10, so its spread of 1e-3 is known to 1e-7 at best; both see the same x.
    assert_allclose(column_moments(x)[1], x.std(axis=0), rtol=1e-6)


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("likelihood", ["normal", "poisson"])
def test_a_fit_of_many_rows_makes_no_second_copy(likelihood, kind):
    rng = np.random.default_rng(0)
    n, width = 80_000, 100
    X = (rng.standard_normal((n, width)) + 1.0).astype(kind)
    y = X[:, 0] + rng.standard_normal(n) if likelihood == "normal" else rng.poisson(np.exp(0.3 * X[:, 0]))
    X.flags.writeable = False
    bs.fit("ard_gaussian", (X[:3000], y[:3000]), likelihood=likelihood, draws=0)  # compiling takes memory of its own
    tracemalloc.start()
    tree = bs.fit("ard_gaussian", (X, y), likelihood=likelihood, draws=0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert bool(tree["evidence"]["kept"][0])
    assert peak < 4 * X.size  # half of a copy in 64 bits
