"""Every product of a SparseDesign against the dense formula; nothing of the size of the dense matrix; X left alone."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import bayes_sparse as bs
from bayes_sparse.common import memory
from bayes_sparse.inputs.prepare import prepare
from bayes_sparse.problem import sparse_design as module
from bayes_sparse.problem.design import Design, column_moments
from bayes_sparse.problem.sparse_design import SparseDesign, as_csc, make_design, sparse_moments

FORMATS = ["bsr", "coo", "csc", "csr", "dia", "dok", "lil"]
DTYPES = [np.float64, np.float32, np.int64, np.int8, np.uint8, np.bool_]


def random_sparse(rng, n, M, density, dtype=np.float64):
    """Dense truth with exact zeros, and the same thing sparse."""
    dense = np.round(8 * rng.standard_normal((n, M))) * (rng.random((n, M)) < density)
    dense = np.abs(dense).astype(dtype) if np.dtype(dtype).kind in "ub" else dense.astype(dtype)
    return dense, sp.csc_array(dense)


def assert_products(design, Phi, extra, rng, rtol=1e-12):
    """All products against those of the dense standardised matrix, to so many digits of the size of their terms."""
    whole = np.hstack([Phi, extra])
    (n, width), M = whole.shape, Phi.shape[1]
    v, weights, right = rng.standard_normal(n), rng.uniform(0, 2, n), rng.standard_normal((n, 3))
    w, D = rng.standard_normal(width), rng.standard_normal((M, 2))
    index = rng.permutation(width)[: width // 2 + 1] if width else np.arange(0)
    size, W = np.abs(whole), weights[:, None]

    def close(found, truth, terms):
        assert found.shape == truth.shape
        assert np.all(np.abs(found - truth) <= rtol * (terms + 1.0))

    assert (design.n, design.M, design.q, design.width) == (n, M, extra.shape[1], width)
    taken = design.columns(index)
    assert taken.flags.f_contiguous
    assert taken.dtype == np.float64
    assert_array_equal(taken, whole[:, index])  # the very same numbers
    for mostly_zero in (False, True):
        used = np.where(rng.random(len(index)) < 0.7, 0.0, w[index]) if mostly_zero else w[index]
        close(design.times(used, index), whole[:, index] @ used, size[:, index] @ np.abs(used))
    close(design.transposed_times(v), whole.T @ v, size.T @ np.abs(v))
    for given_weights in (None, weights, None):
        row = np.ones((n, 1)) if given_weights is None else W
        close(design.squares(given_weights), (row * whole**2).sum(axis=0), (row * whole**2).sum(axis=0))
        close(design.cross(right, given_weights), whole.T @ (row * right), size.T @ (row * np.abs(right)))
        norms = np.sqrt((row * whole**2).sum(axis=0))
        close(design.gram(given_weights), whole.T @ (row * whole), np.outer(norms, norms))
    signed = rng.standard_normal(n)
    close(design.gram(signed), whole.T @ (signed[:, None] * whole), size.T @ (np.abs(signed)[:, None] * size))
    close(design.project(D), Phi @ D, np.abs(Phi) @ np.abs(D))
    cross, squares, products = design.scan(right, weights, v)
    close(cross, whole.T @ (W * right), size.T @ (W * np.abs(right)))
    close(squares, (W * whole**2).sum(axis=0), (W * whole**2).sum(axis=0))
    close(products, whole.T @ v, size.T @ np.abs(v))


@pytest.mark.parametrize("worth", [0, 100, 10**9], ids=["sparse gram", "either gram", "dense gram"])
@given(
    n=st.integers(1, 90),
    M=st.integers(0, 9),
    q=st.integers(0, 2),
    density=st.sampled_from([0.0, 0.05, 0.3, 1.0]),
    dtype=st.sampled_from(DTYPES),
    shifted=st.booleans(),
    scaled=st.booleans(),
    seed=st.integers(0, 2**20),
)
def test_every_product_equals_the_dense_formula(worth, n, M, q, density, dtype, shifted, scaled, seed):
    rng = np.random.default_rng(seed)
    X, sparse = random_sparse(rng, n, M, density, dtype)
    shift = rng.standard_normal(M) if shifted else None
    scale = rng.uniform(0.5, 2.0, M) if scaled else None
    extra = rng.standard_normal((n, q))
    Phi = (X.astype(float) - (shift if shifted else 0.0)) / (scale if scaled else 1.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_WORTH", worth)
        patch.setattr(module, "_BLOCK_BYTES", 1)  # several blocks of rows
        # Shifts of any size beside the columns: what is lost is a factor of a few.
        assert_products(SparseDesign(sparse, shift, scale, extra), Phi, extra, rng, rtol=1e-11)


def test_columns_far_from_zero_lose_no_digits():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 6)) * (rng.random((400, 6)) < 0.1)
    X[:, 1] = 1e7 + rng.standard_normal(400)
    X[:, 4] = 1e5 + rng.standard_normal(400)
    mean, sd = X.mean(axis=0), X.std(axis=0)
    extra = np.ones((400, 1))
    # With the shift taken off the products the squares would be off by 1e-16 * 1e14, one in a hundred.
    assert_products(SparseDesign(sp.csc_array(X), mean, sd, extra), (X - mean) / sd, extra, rng)


def test_a_far_column_may_have_a_few_zeros():
    rng = np.random.default_rng(0)
    X = np.where(rng.random((1000, 3)) < 0.002, 0.0, 50.0 + 0.1 * rng.standard_normal((1000, 3)))
    assert 0 < np.sum(X == 0) < 20
    mean, sd = X.mean(axis=0), X.std(axis=0)
    assert np.all(mean > module._FAR * sd)
    extra = np.empty((1000, 0))
    assert_products(SparseDesign(sp.csr_array(X), mean, sd, extra), (X - mean) / sd, extra, rng)


@pytest.mark.parametrize("index", [[], [7], [2], [3, 3]])
def test_few_columns(index):
    rng = np.random.default_rng(1)
    X, sparse = random_sparse(rng, 60, 7, 0.2)
    mean, sd = column_moments(X)
    design = SparseDesign(sparse, mean, sd, np.ones((60, 1)))
    dense = np.hstack([(X - mean) / sd, np.ones((60, 1))])
    index = np.array(index, dtype=np.intp)
    assert_array_equal(design.columns(index), dense[:, index])
    assert_allclose(design.times(np.ones(len(index)), index), dense[:, index].sum(axis=1), atol=1e-13)
    assert design.cross(design.columns(index)).shape == (8, len(index))


def test_times_touches_only_columns_with_a_weight():
    X, sparse = random_sparse(np.random.default_rng(2), 50, 40, 0.3)
    poisoned = sparse.copy()
    poisoned.data[sparse.indptr[3] :] = np.nan  # a product with all columns would spread it
    design = SparseDesign(poisoned, np.zeros(40), np.ones(40), np.ones((50, 1)))
    for index in (np.array([2, 0, 40]), np.arange(41)):
        w = np.where(np.isin(index, [0, 2]), 1.5, 0.0) + 2.0 * (index == 40)
        assert_allclose(design.times(w, index), 1.5 * (X[:, 0] + X[:, 2]) + 2.0, rtol=1e-15)


@pytest.mark.parametrize("kind", [f"{form}_{what}" for form in FORMATS for what in ("array", "matrix")])
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_format_and_dtype(kind, dtype):
    X, _ = random_sparse(np.random.default_rng(3), 30, 6, 0.3, dtype)
    found = as_csc(getattr(sp, kind)(X))
    assert isinstance(found, sp.csc_array)
    assert found.dtype == np.float64
    assert found.nnz == np.count_nonzero(X)
    assert_array_equal(found.toarray(), X.astype(float))


def untidy(kind):
    """Duplicate entries, entries that are zero or cancel, unsorted rows, room to spare; and what it means."""
    rows, cols = np.array([3, 0, 3, 1, 2, 2, 4, 0]), np.array([0, 0, 0, 1, 1, 1, 2, 2])
    values = np.array([1.0, 2.0, 4.0, 0.0, 5.0, -5.0, 7.0, 8.0])
    dense = np.zeros((5, 3))
    np.add.at(dense, (rows, cols), values)
    if kind == "coo":
        return sp.coo_array((values, (rows, cols)), shape=(5, 3)), dense
    if kind == "csc":
        spare = np.array([99.0, 99.0])
        arrays = (np.append(values, spare), np.append(rows, [0, 1]), np.array([0, 3, 6, 8]))
        return sp.csc_array(arrays, shape=(5, 3)), dense
    order = np.argsort(rows, kind="stable")
    indptr = np.searchsorted(rows[order], np.arange(6))
    return sp.csr_matrix((values[order], cols[order], indptr), shape=(5, 3)), dense


@pytest.mark.parametrize("kind", ["coo", "csc", "csr"])
def test_untidy_matrices_are_tidied_in_a_copy(kind):
    X, dense = untidy(kind)
    arrays = [X.data, X.row, X.col] if kind == "coo" else [X.data, X.indices, X.indptr]
    before = [array.copy() for array in arrays]
    for array in arrays:
        array.flags.writeable = False  # a write anywhere would raise
    found = as_csc(X)
    assert found.has_canonical_format
    assert found.nnz == np.count_nonzero(dense) == len(found.data)
    assert_array_equal(found.toarray(), dense)
    mean, sd = dense.mean(axis=0), np.array([2.0, 1.0, 3.0])
    assert_products(SparseDesign(X, mean, sd), (dense - mean) / sd, np.empty((5, 0)), np.random.default_rng(4), 1e-11)
    for array, old in zip(arrays, before, strict=True):
        assert_array_equal(array, old)


def test_repeated_booleans_are_not_counted():
    twice = sp.coo_array((np.array([True, True, True]), ([0, 0, 2], [1, 1, 0])), shape=(3, 2))
    assert_array_equal(as_csc(twice).toarray(), twice.toarray().astype(float))


def test_a_tidy_matrix_is_not_copied():
    _, sparse = random_sparse(np.random.default_rng(5), 30, 4, 0.5)
    assert np.shares_memory(as_csc(sparse).data, sparse.data)


def test_the_class_follows_the_matrix():
    X, sparse = random_sparse(np.random.default_rng(5), 30, 4, 0.5)
    assert isinstance(make_design(X, None, None, None), Design)
    assert isinstance(make_design(sparse, None, None, None), SparseDesign)


@given(n=st.integers(1, 60), M=st.integers(1, 6), density=st.sampled_from([0.0, 0.1, 1.0]), seed=st.integers(0, 2**20))
def test_moments(n, M, density, seed):
    X, sparse = random_sparse(np.random.default_rng(seed), n, M, density)
    mean, sd = sparse_moments(sparse)
    assert_allclose(mean, X.mean(axis=0), rtol=1e-13, atol=1e-14)
    assert_allclose(sd, X.std(axis=0), rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e9 + 0.1, -1e-9])
def test_a_constant_column_has_no_spread(value):
    mean, sd = sparse_moments(as_csc(sp.csc_array(np.full((100_001, 2), value))))
    assert_array_equal(sd, 0.0)
    assert_allclose(mean, value, rtol=1e-13)


def test_a_small_spread_about_a_large_mean_is_kept():
    x = 1e6 + 1e-3 * np.random.default_rng(0).standard_normal((2000, 1))
    # x itself is rounded to 1e-10, so its spread of 1e-3 is known to 1e-7 at best; both see the same x.
    assert_allclose(sparse_moments(sp.csc_array(x))[1], x.std(axis=0), rtol=1e-6)


@pytest.fixture(scope="module")
def large():
    """20,000 x 20,000 with ten entries a row, and a target made of three columns: dense it would be 3.2 GB."""
    n, rng = 20_000, np.random.default_rng(0)
    rows, cols = np.repeat(np.arange(n), 10), rng.integers(0, n, 10 * n)
    cols[::10], cols[1::10] = rng.integers(0, 3, n), np.arange(n)  # what matters is seen often, and all are seen
    X = sp.csr_array((rng.uniform(1, 2, 10 * n), (rows, cols)), shape=(n, n))
    return X, X[:, [0, 1, 2]] @ np.array([1.0, -2.0, 3.0]) + 0.1 * rng.standard_normal(n)


def test_a_large_matrix_is_never_dense(large):
    X, y = large
    n = len(y)
    tracemalloc.start()
    data = prepare((X, y), None, "normal", bs.basis.linear(), None, None, None)
    design = make_design(data.Phi, data.shift, data.scale, np.ones((n, 1)))
    v, index = np.ones(n), np.array([5, 17, n])
    columns = design.columns(index)
    design.times(np.ones(3), index)
    design.transposed_times(v)
    design.squares()
    design.squares(v)
    design.scan(columns, v, v)
    design.project(np.ones((n, 3)))
    tree = bs.fit("ard_gaussian", (X, y), method="sequential", likelihood="normal", draws=0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert tree["evidence"]["kept"].to_numpy().nonzero()[0].tolist() == [0, 1, 2]
    assert_allclose(tree["evidence"]["mean"][:3], [1.0, -2.0, 3.0], atol=5 * 0.1 / np.sqrt(n / 3))
    assert peak < 0.04 * 8 * n * n  # a few copies of the entries and of vectors


NEED_ALL_COLUMNS = [
    ("ard_gaussian", "em"),
    ("ard_gaussian", "mackay"),
    ("ard_gaussian", "variational"),
    ("ard_gaussian", "full_matrix"),
    ("ard_gaussian", "revm"),
    ("ard_gaussian", "nuts"),
    ("horseshoe", "global_local"),
    ("laplace_eigen", "revm"),
]


@pytest.mark.parametrize(("model", "method"), NEED_ALL_COLUMNS)
def test_columns_that_would_not_fit_are_refused_before_they_are_made(monkeypatch, model, method):
    X = sp.random_array((200, 500), density=0.1, rng=np.random.default_rng(0), format="csc")
    y = np.asarray(X[:, :3].sum(axis=1)).ravel() + np.random.default_rng(1).standard_normal(200)
    monkeypatch.setattr(memory, "physical_memory", lambda: 200 * 8 * 300)  # half of it holds 150 columns
    with pytest.raises(ValueError, match=r"makes 50[01] sparse columns of 200 rows dense, .*method='sequential'"):
        bs.fit(model, (X, y), method=method)


def test_what_fits_into_memory_is_fitted_all_the_same(monkeypatch):
    X = sp.random_array((200, 500), density=0.1, rng=np.random.default_rng(0), format="csc")
    y = np.asarray(X[:, :3].sum(axis=1)).ravel() + np.random.default_rng(1).standard_normal(200)
    monkeypatch.setattr(memory, "physical_memory", lambda: 200 * 8 * 300)
    assert bs.fit("ard_gaussian", (X, y), draws=0)["evidence"].attrs["status"] == "converged"


def test_products_of_columns_that_would_not_fit_are_refused(monkeypatch):
    X = sp.random_array((200, 50), density=0.1, rng=np.random.default_rng(0), format="csc")
    y = np.asarray(X[:, :3].sum(axis=1)).ravel() + np.random.default_rng(1).standard_normal(200)
    monkeypatch.setattr(memory, "physical_memory", lambda: 2 * 8 * 51**2 - 2)
    with pytest.raises(ValueError, match=r"products of 51 sparse columns with each other, .*method='sequential'"):
        bs.fit("ard_gaussian", (X, y), method="revm", draws=0)
