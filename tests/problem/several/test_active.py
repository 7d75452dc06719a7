"""Gradient, curvature and their changes over the weights of several predictors: from definitions and by differences."""

from dataclasses import replace

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csc_array

from bayes_sparse.problem.design import Design
from bayes_sparse.problem.gaussian import Dual, Primal
from bayes_sparse.problem.sparse_design import SparseDesign

from .problems import NONE, classes, log_density, make, mean_and_log_sd, several, stacked, stencil

pytestmark = pytest.mark.quick
either_weight = pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])


def subsets(design, seed=2):
    """All columns; a few of them in any order; one alone; the fixed ones; none at all."""
    mixed = np.random.default_rng(seed).permutation(design.width)
    yield np.arange(design.width)
    yield mixed[: design.width // 2]
    yield mixed[:1]
    yield np.arange(design.M, design.width)
    yield np.arange(0)


def some_weights(index, seed=3):
    return 0.4 * np.random.default_rng(seed).standard_normal(len(index))


def test_the_derivatives_by_hand_are_those_of_the_densities():
    """With 40 digits, so that the tests below may take them for the truth."""
    rng = np.random.default_rng(0)
    eta, y = rng.standard_normal((2, 5)), rng.standard_normal(5)
    theta = np.array([0.3])
    ours = mean_and_log_sd(y)(eta, theta)
    assert_allclose(ours[0], log_density(y, eta, theta), rtol=1e-13)
    with mpmath.workdps(40):
        for i in range(5):

            def density(m, s, i=i):
                s = mpmath.exp(0.3) * s
                return -((y[i] - m) ** 2) * mpmath.exp(-2 * s) / 2 - s

            for order in [(1, 0), (0, 1), (2, 0), (1, 1), (0, 2), (3, 0), (2, 1), (1, 2), (0, 3)]:
                truth = float(mpmath.diff(density, tuple(map(float, eta[:, i])), order))
                place = (0,) * order[0] + (1,) * order[1]
                assert_allclose(ours[sum(order)][(*place, i)], truth, rtol=1e-12, atol=1e-14)
    y = np.array([0, 2, 1, 2])
    eta = rng.standard_normal((3, 4))
    for count in (1, 2, 3):
        turned = stencil(lambda e, c=count: classes(y, 3)(e[:, None] + eta, NONE)[c - 1], np.zeros(3), 1e-3)
        # Truncation 1e-12 of a fifth derivative, rounding 1e-16 over 1e-3.
        assert_allclose(classes(y, 3)(eta, NONE)[count], np.moveaxis(turned, 0, -2), atol=1e-11)


@either_weight
def test_gradient_and_curvature_from_the_definition(weighted):
    c = make(weighted=weighted)
    for index in subsets(c.problem.design):
        w, alpha = some_weights(index), np.full(len(index), 200.0)
        active, terms = c.problem.active(index), c.terms(w, index)
        assert_allclose(c.problem.offset + active.predictor(w), c.eta(w, index), atol=1e-13)
        assert_allclose(terms[0].sum(), c.likelihood(w, index), rtol=1e-12)
        assert_allclose(active.pulled_back(terms[1]), c.gradient(w, index), atol=1e-11)
        posterior = active.posterior(alpha, terms, None)
        assert isinstance(posterior, Primal)
        P = c.hessian(w, index) + np.diag(alpha)
        assert_allclose(posterior.lower @ posterior.lower.T, P, rtol=1e-11, atol=1e-10)
        draws = np.stack([w, -w, 2 * w])
        assert_allclose(c.problem.predictor(draws, index), np.stack([c.eta(v, index) for v in draws]), atol=1e-13)


@either_weight
def test_gradient_and_curvature_by_differences_of_scipys_density(weighted):
    c = make(weighted=weighted)
    for index in subsets(c.problem.design):
        w = some_weights(index)
        active, terms = c.problem.active(index), c.terms(w, index)
        slope = stencil(lambda v, index=index: c.likelihood(v, index), w, 1e-3)
        # Rounding 1e-13 of a log-likelihood of 100 over 1e-3, and truncation of the same size.
        assert_allclose(active.pulled_back(terms[1]), slope, rtol=1e-8, atol=1e-7)
        turned = -stencil(lambda v, a=active, i=index: a.pulled_back(c.terms(v, i)[1]), w, 1e-3)
        assert_allclose(c.hessian(w, index), turned.reshape(len(w), len(w)), rtol=1e-8, atol=1e-7)


def cut(H):
    """A matrix without its negative eigenvalues, of one observation."""
    values, vectors = np.linalg.eigh(H)
    return (vectors * np.maximum(values, 0)) @ vectors.T


@pytest.mark.parametrize("n", [60, 4], ids=["by columns", "by rows"])
def test_steps_cut_off_the_curvature_of_each_observation(n):
    """Where the true one cannot be factorised, and by rows."""
    c = make(n=n)
    index = np.arange(c.problem.design.width)
    w, alpha = np.ones(len(index)), 10 ** np.random.default_rng(4).uniform(-1, 1, len(index))
    terms = c.terms(w, index)
    assert np.linalg.eigvalsh(c.hessian(w) + np.diag(alpha))[0] < -1
    single = [np.linalg.eigvalsh(-terms[2][:, :, i]).min() for i in range(n)]
    assert max(single) < 0  # a normal density is not log-concave along mean and log sd anywhere
    H = sum(J.T @ cut(-terms[2][:, :, i]) @ J for i, J in enumerate(c.J))
    active = c.problem.active(index)
    factor = active.steps(alpha, terms)
    assert isinstance(factor, Primal if n == 60 else Dual)
    assert active.posterior(alpha, terms, factor) is factor
    P, v = H + np.diag(alpha), np.cos(np.arange(len(index)))
    assert_allclose(factor.solve(v), np.linalg.solve(P, v), rtol=1e-8, atol=1e-11)
    assert_allclose(factor.log_determinant, np.linalg.slogdet(P)[1], rtol=1e-10)
    assert_allclose(factor.variance, np.linalg.inv(P).diagonal(), rtol=1e-8)
    # Random slopes have that H as their covariance, which so many know up to the sds of a Wishart's entries.
    rng = np.random.default_rng(5)
    drawn = np.array([active.pulled_back(active.noise(terms, rng)) for _ in range(5000)])
    spread = np.sqrt((H**2 + np.outer(H.diagonal(), H.diagonal())) / len(drawn))
    assert (np.abs(drawn.T @ drawn / len(drawn) - H) < 4.5 * spread).all()


@either_weight
def test_turning_is_the_gradient_of_a_trace(weighted):
    c = make(weighted=weighted)
    for index in subsets(c.problem.design):
        w, M = some_weights(index), np.random.default_rng(5).standard_normal((len(index), len(index)))
        M = M + M.T
        active = c.problem.active(index)
        leverages = active.leverages(lambda v, at, M=M: M[:, at] @ v)
        J = c.J[:, :, index]
        assert_allclose(leverages, np.einsum("iak,kl,ibl->abi", J, M, J), atol=1e-11)
        turned = stencil(lambda v, i=index, M=M: np.sum(M * c.hessian(v, i)), w, 1e-3)
        assert_allclose(active.turning(leverages, c.terms(w, index)), turned, rtol=1e-8, atol=1e-6)


@either_weight
def test_scan_from_the_definition(weighted):
    """Rows of the whole H and of the whole gradient, at weights that are zero off the active columns."""
    c = make(weighted=weighted)
    for index in subsets(c.problem.design):
        w, full = some_weights(index), np.zeros(c.problem.design.width)
        full[index] = w
        cross, squares, products = c.problem.active(index).scan(c.terms(w, index))
        H = c.hessian(full)
        assert_allclose(cross, H[:, index], atol=1e-10)
        assert_allclose(c.problem.active(index).cross_products(c.terms(w, index)), H[np.ix_(index, index)], atol=1e-10)
        assert_allclose(squares, H.diagonal(), atol=1e-10)
        assert_allclose(products, c.gradient(full), atol=1e-10)


def test_which_columns_are_in_which_predictor():
    c = make(p=4, q=3, shared=2)
    assert_allclose(c.problem.inside, [[1] * 4 + [0] * 3 + [1, 1, 1, 0], [0] * 4 + [1] * 3 + [1, 1, 0, 1]])
    assert_allclose(c.problem.owner, [0] * 4 + [1] * 3 + [0, 0, 0, 1])


def test_a_weight_of_two_is_the_observation_twice_and_of_zero_none():
    c = make()
    times = np.random.default_rng(4).integers(0, 3, 60)
    assert set(times) == {0, 1, 2}
    y = np.repeat(c.problem.y, times)
    longer = several(
        np.repeat(c.J, times, axis=0),
        y,
        mean_and_log_sd(y),
        offset=np.repeat(c.problem.offset, times, axis=1),
    )
    c = c.weighing(times.astype(float))
    index = np.random.default_rng(1).permutation(c.problem.design.width)[:7]
    w = some_weights(index)
    assert c.problem.count == longer.count == times.sum()
    one, other = c.problem.active(index), longer.active(index)
    here, there = c.terms(w, index), longer.derivatives(longer.offset + other.predictor(w), NONE)
    assert_allclose(here[0].sum(), there[0].sum(), rtol=1e-13)
    for a, b in zip(one.scan(here), other.scan(there), strict=True):
        assert_allclose(a, b, atol=1e-10)
    joint = [p.log_joint(p.predictor(w[None], index), np.empty((1, 0)))[0] for p in (c.problem, longer)]
    assert_allclose(joint, c.likelihood(w, index), rtol=1e-12)


def test_a_sparse_design_is_the_dense_one():
    c = make()
    rows, M = stacked(c.J), c.problem.design.M
    rows[:, :M] *= np.random.default_rng(6).random((len(rows), M)) < 0.4
    dense, sparse = (
        replace(c.problem, design=made)
        for made in (
            Design(np.ascontiguousarray(rows[:, :M]), extra=rows[:, M:]),
            SparseDesign(csc_array(rows[:, :M]), extra=rows[:, M:]),
        )
    )
    assert_allclose(dense.inside, sparse.inside)
    index = np.array([0, 5, M, 8, M + 1])
    w = some_weights(index)
    for a, b in zip(
        *(p.active(index).scan(p.derivatives(c.eta(w, index), NONE)) for p in (dense, sparse)), strict=True
    ):
        assert_allclose(a, b, atol=1e-11)
