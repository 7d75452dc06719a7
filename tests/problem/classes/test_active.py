"""Gradient, curvature and their changes over the weights: from the definition, by differences, with exact digits."""

from dataclasses import replace

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import softmax

from .problems import NONE, case, make, stencil

both_kinds = pytest.mark.parametrize("kind", ["shared", "own"])
either_weight = pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])


def subsets(design, seed=2):
    """All columns; a few of them in any order; none of class 1; one alone; the extra ones; none at all."""
    rng = np.random.default_rng(seed)
    mixed = rng.permutation(design.width)
    yield np.arange(design.width)
    yield mixed[: design.width // 2]
    yield mixed[design.owner[mixed] != 1]
    yield mixed[:1]
    yield np.arange(design.M, design.width)
    yield np.arange(0)


@either_weight
@both_kinds
@pytest.mark.parametrize("q", [0, 1, 2])
def test_gradient_and_curvature_from_the_definition(kind, weighted, q):
    c = make(kind, q=q, weighted=weighted)
    for index in subsets(c.problem.design):
        w = np.random.default_rng(3).standard_normal(len(index))
        active, terms = c.problem.active(index), c.terms(w, index)
        assert_allclose(active.predictor(w), c.J[:, :, index] @ w, atol=1e-13)
        assert_allclose(terms[0].sum(), c.likelihood(w, index), rtol=1e-13)
        assert_allclose(active.pulled_back(terms[1]), c.gradient(w, index), atol=1e-12)
        H = active.curvature(terms[2])
        assert_allclose(H, c.hessian(w, index), atol=1e-12)
        assert_allclose(H, H.T, atol=1e-13)


@either_weight
@both_kinds
def test_gradient_and_curvature_by_differences(kind, weighted):
    c = make(kind, weighted=weighted)
    for index in subsets(c.problem.design):
        w = np.random.default_rng(3).standard_normal(len(index))
        active, terms = c.problem.active(index), c.terms(w, index)
        # Fourth order at 1e-3: truncation 1e-12 of a fifth derivative, rounding 1e-13 of a log-likelihood of 100.
        slope = stencil(lambda v, index=index: c.likelihood(v, index), w, 1e-3)
        assert_allclose(active.pulled_back(terms[1]), slope, atol=1e-8)

        def gradient(v, active=active, index=index):
            return active.pulled_back(c.terms(v, index)[1])

        turned = -stencil(gradient, w, 1e-3)
        assert_allclose(active.curvature(terms[2]), turned.reshape(len(w), len(w)), atol=1e-9)


def test_shared_features_make_a_kronecker_sum():
    """``H = sum_i (diag(mu_i) - mu_i mu_i') (x) x_i x_i'`` without extra columns."""
    c = make("shared", C=4, q=0)
    X, w = c.J[:, 0, :4], np.random.default_rng(3).standard_normal(16)
    mu = softmax(X @ w.reshape(4, 4).T, axis=1)
    H = sum(np.kron(np.diag(p) - np.outer(p, p), np.outer(x, x)) for p, x in zip(mu, X, strict=True))
    index = np.arange(16)
    assert_allclose(c.problem.active(index).curvature(c.terms(w, index)[2]), H, atol=1e-12)


@both_kinds
def test_a_weight_of_two_is_the_row_twice_and_of_zero_no_row(kind):
    c = make(kind)
    rng = np.random.default_rng(4)
    times = rng.integers(0, 3, 40)
    assert set(times) == {0, 1, 2}
    owner = c.problem.design.owner
    M = c.problem.design.M
    columns = [np.repeat(c.J[:, k, :M][:, owner[:M] == k], times, axis=0) for k in range(3)]
    longer = case(columns if kind == "own" else [columns[0]] * 3, np.repeat(c.problem.y, times))
    c = c.weighing(times.astype(float))
    index = rng.permutation(M + 3)[:9]
    w = rng.standard_normal(9)
    one, other = (x.problem.active(index) for x in (c, longer))
    here, there = c.terms(w, index), longer.terms(w, index)
    M9 = rng.standard_normal((9, 9))
    M9 = M9 + M9.T
    assert_allclose(here[0].sum(), there[0].sum(), rtol=1e-13)
    assert_allclose(one.pulled_back(here[1]), other.pulled_back(there[1]), atol=1e-12)
    assert_allclose(one.curvature(here[2]), other.curvature(there[2]), atol=1e-12)
    turned = [a.turning(a.leverages(lambda v, at: M9[:, at] @ v), t) for a, t in ((one, here), (other, there))]
    assert_allclose(*turned, atol=1e-11)
    for a, b in zip(one.scan(here), other.scan(there), strict=True):
        assert_allclose(a, b, atol=1e-11)


@either_weight
@both_kinds
def test_turning_is_the_gradient_of_a_trace(kind, weighted):
    c = make(kind, weighted=weighted, q=2)
    for index in subsets(c.problem.design):
        k = len(index)
        rng = np.random.default_rng(5)
        w, M = rng.standard_normal(k), rng.standard_normal((k, k))
        M = M + M.T  # those that occur are symmetric
        active = c.problem.active(index)

        def trace(v, index=index, M=M):
            return np.sum(M * c.hessian(v, index))

        leverages = active.leverages(lambda v, at, M=M: M[:, at] @ v)
        assert_allclose(active.turning(leverages, c.terms(w, index)), stencil(trace, w, 1e-3), rtol=1e-8, atol=1e-8)


@either_weight
@both_kinds
def test_scan_from_the_definition(kind, weighted):
    """Rows of the whole H and of the whole gradient, at weights that are zero off the active columns."""
    c = make(kind, weighted=weighted, q=2)
    for index in subsets(c.problem.design):
        w = np.random.default_rng(6).standard_normal(len(index))
        full = np.zeros(c.problem.design.width)
        full[index] = w
        cross, squares, products = c.problem.active(index).scan(c.terms(w, index))
        H = c.hessian(full)
        assert_allclose(cross, H[:, index], atol=1e-12)
        assert_allclose(squares, H.diagonal(), atol=1e-12)
        assert_allclose(products, c.gradient(full), atol=1e-12)


def test_a_constant_for_all_classes_changes_nothing():
    c = make("shared", weighted=True)
    rng = np.random.default_rng(7)
    eta = rng.standard_normal((40, 3))
    for got, expected in zip(
        c.problem.derivatives(eta + rng.uniform(-50, 50, (40, 1)), NONE), c.problem.derivatives(eta, NONE), strict=True
    ):
        assert_allclose(got, expected, rtol=1e-11, atol=1e-13)
    index = np.arange(c.problem.design.width)
    H = c.problem.active(index).curvature(c.problem.derivatives(eta, NONE)[2])
    shift = np.tile(rng.standard_normal(4), 3)  # the same weights for every class
    assert_allclose(H @ np.append(shift, np.full(3, 1.7)), 0, atol=1e-12)
    assert_allclose(np.linalg.eigvalsh(H)[:5], 0, atol=1e-12)  # one a column and one for the bias
    assert np.linalg.eigvalsh(H)[5] > 1e-3


def test_probabilities_sum_to_one_and_slopes_to_zero():
    c = make("own", weighted=True)
    eta = 100 * np.random.default_rng(8).standard_normal((40, 3))
    value, slopes, P = c.problem.derivatives(eta, NONE)
    assert np.isfinite(value).all()
    assert_allclose(P.sum(axis=1), c.problem.weights, rtol=1e-14)
    assert_allclose(slopes.sum(axis=1), 0, atol=1e-14)
    once = replace(c.problem, weights=None).derivatives(eta, NONE)[2]
    assert_allclose(once.sum(axis=1), 1, rtol=1e-14)


@pytest.mark.parametrize("gap", [5.0, 30.0, 60.0])
def test_where_a_class_is_certain_no_digits_are_lost(gap):
    """``mu (1 - mu)`` of a certain class as accurate as that of the others; 1 - mu by subtraction would be zero."""
    c = case([np.array([[1.0]])] * 3, [0], q=0)
    w = np.array([gap, 0.0, 1.0])
    H = c.problem.active(np.arange(3)).curvature(c.terms(w, np.arange(3))[2])
    with mpmath.workdps(60):
        e = [mpmath.exp(v) for v in w]
        mu = [v / sum(e) for v in e]
        truth = [[float(mu[a] * ((a == b) - mu[b])) for b in range(3)] for a in range(3)]
    assert_allclose(H, truth, rtol=1e-13)
