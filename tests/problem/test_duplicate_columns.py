"""ColumnStore that are the same up to sign, against a comparison of every pair."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csc_array

from bayes_sparse.problem.design import Design, column_moments
from bayes_sparse.problem.duplicate_columns import duplicate_columns, in_words
from bayes_sparse.problem.sparse_design import SparseDesign

seeds = st.integers(0, 2**32 - 1)
some = settings(max_examples=60)


def brute_force(A, among):
    """Each column with the first one that it is, or is minus."""
    found, heads = [], []
    for j in among:
        if not A[:, j].any():
            continue
        for i in heads:
            sign = next(
                (s for s in (1, -1) if np.linalg.norm(A[:, j] - s * A[:, i]) < 1e-9 * np.linalg.norm(A[:, i])), 0
            )
            if sign:
                found.append((int(j), int(i), sign))
                break
        else:
            heads.append(j)
    return found


@st.composite
def tables(draw):
    """A few different columns, some of them again, unchanged or with the other sign, in any order."""
    rng = np.random.default_rng(draw(seeds))
    n, own = draw(st.integers(2, 20)), draw(st.integers(1, 6))
    whole = draw(st.booleans())
    X = rng.integers(-2, 3, (n, own)).astype(float) if whole else rng.standard_normal((n, own))
    again = draw(st.lists(st.tuples(st.integers(0, own - 1), st.sampled_from([1, -1])), max_size=8))
    X = np.column_stack([X, *(sign * X[:, i] for i, sign in again)]) * 10.0 ** draw(st.integers(-6, 6))
    return X[:, rng.permutation(X.shape[1])]


@some
@given(X=tables(), sparse=st.booleans())
def test_every_pair(X, sparse):
    """Small whole numbers also make columns of zeros, and twins by chance."""
    design = SparseDesign(csc_array(X)) if sparse else Design(X)
    among = np.arange(X.shape[1])
    assert duplicate_columns(design, among) == brute_force(X, among)
    part = among[::2]
    assert duplicate_columns(design, part) == brute_force(X, part)


@some
@given(
    seed=seeds,
    sparse=st.booleans(),
    factor=st.sampled_from([-50.0, -1.0, 1e-3, 3.0]),
    shift=st.sampled_from([-5.0, 0.0, 0.3]),
)
def test_standardised_columns_are_twins_of_their_affine_maps(seed, sparse, factor, shift):
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((30, 3)) < 0.3, rng.standard_normal((30, 3)), 0.0)
    X[:2] = rng.standard_normal((2, 3))
    X = np.column_stack([X, factor * X[:, 1] + shift])
    mean, sd = column_moments(X)
    design = SparseDesign(csc_array(X), mean, sd) if sparse else Design(X, mean, sd)
    assert duplicate_columns(design, np.arange(4)) == [(3, 1, int(np.sign(factor)))]
    plain = Design(X)
    same = abs(factor) == 1 and shift == 0
    assert duplicate_columns(plain, np.arange(4)) == ([(3, 1, int(factor))] if same else [])


@some
@given(seed=seeds, n=st.integers(2, 40), M=st.integers(1, 30))
def test_none(seed, n, M):
    X = np.random.default_rng(seed).standard_normal((n, M))
    assert duplicate_columns(Design(X), np.arange(M)) == []


def test_two_categories_and_three():
    """One-hot columns of two categories are opposite once centred; of three they are not."""
    for categories, truth in ((2, [(1, 0, -1)]), (3, [])):
        X = np.eye(categories)[np.arange(12) % categories]
        mean, sd = column_moments(X)
        assert duplicate_columns(Design(X, mean, sd), np.arange(categories)) == truth


@pytest.mark.parametrize(("off", "same"), [(1e-13, True), (1e-6, False)])
def test_nearly_the_same(off, same):
    rng = np.random.default_rng(0)
    x = rng.standard_normal(50)
    X = np.column_stack([x, x + off * rng.standard_normal(50)])
    assert bool(duplicate_columns(Design(X), np.arange(2))) == same


def test_columns_that_only_look_alike_in_one_direction():
    """ColumnStore with the same product with the probe are told apart by all their entries."""
    probe = np.cos(np.arange(1.0, 5.0))
    x, away = np.array([1.0, 2.0, -1.0, 0.5]), np.array([probe[1], -probe[0], 0.0, 0.0])
    X = np.column_stack([x, x + away, -x - away, x])
    assert duplicate_columns(Design(X), np.arange(4)) == [(2, 1, -1), (3, 0, 1)]


def test_extra_columns_and_nothing():
    X = np.random.default_rng(1).standard_normal((6, 2))
    design = Design(X, extra=X[:, :1])
    assert duplicate_columns(design, np.arange(3)) == [(2, 0, 1)]
    assert duplicate_columns(design, np.empty(0, dtype=np.intp)) == []
    assert duplicate_columns(design, np.array([1])) == []
    assert duplicate_columns(Design(np.zeros((6, 3))), np.arange(3)) == []  # nothing to be told apart


def test_in_words():
    names = ["a", "b", "c", "d", "e", "f"]
    assert in_words([(1, 0, 1)], names) == "'b' is 'a'"
    assert in_words([(2, 1, -1), (3, 0, 1)], names) == "'c' is minus 'b', 'd' is 'a'"
    assert (
        in_words([(j, 0, 1) for j in range(1, 6)], names) == "'b' is 'a', 'c' is 'a', 'd' is 'a', 'e' is 'a' and 1 more"
    )
