"""The softmax surface against scipy, the dense Hessian and finite differences; its invariance and its two forms."""

import itertools

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import log_softmax, softmax
from sklearn.linear_model import LogisticRegression

from bayes_sparse.inference.newton import climb
from bayes_sparse.problem import design as design_module
from bayes_sparse.problem.design import Design
from bayes_sparse.problem.surfaces import Softmax

pytestmark = pytest.mark.quick

C, NONE = 3, np.empty(0)


def make(*, n=150, M=4, q=1, weighted=False, seed=0):
    """A softmax with raw columns to be standardised, and its standardised columns followed by the extra ones."""
    rng = np.random.default_rng(seed)
    X = 2 + 3 * rng.standard_normal((n, M))
    shift, scale = X.mean(axis=0), X.std(axis=0)
    extra = np.column_stack([np.ones(n), rng.standard_normal(n)])[:, :q]
    weights = rng.uniform(0, 2, n) if weighted else None
    Phi = np.column_stack([(X - shift) / scale, extra])
    W = rng.standard_normal((C, M + q))
    y = np.array([rng.choice(C, p=p) for p in softmax(Phi @ W.T / 2, axis=1)])
    return Softmax(Design(X, shift, scale, extra), y, C, np.full(C * q, 0.01), weights), Phi


def jacobian(Phi, M):
    """d logits / d v, (n, C, d + q): W by classes then columns, the fixed weights by extra columns then classes."""
    n, width = Phi.shape
    q = width - M
    J = np.zeros((n, C, C * width))
    for c in range(C):
        J[:, c, c * M : (c + 1) * M] = Phi[:, :M]
        for j in range(q):
            J[:, c, C * M + j * C + c] = Phi[:, M + j]
    return J


def dense(surface, J, v):
    """Value, gradient and H by the textbook: slopes onehot - p, curvature diag(p) - p p' of each observation."""
    logits = J @ v
    count = np.ones(surface.n) if surface.weights is None else surface.weights
    P, onehot = softmax(logits, axis=1), np.eye(C)[surface.y]
    B = count[:, None, None] * (P[:, :, None] * np.eye(C) - P[:, :, None] * P[:, None, :])
    value = count @ np.sum(onehot * log_softmax(logits, axis=1), axis=1)
    H = np.einsum("nci,nck,nkj->ij", J, B, J, optimize=True)
    return value, np.einsum("n,nc,nci->i", count, onehot - P, J), H


@pytest.mark.parametrize("streamed", [False, True], ids=["in memory", "streamed"])
@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("q", [0, 1, 2])
def test_value_gradient_and_curvature(q, weighted, streamed, monkeypatch):
    if streamed:
        monkeypatch.setattr(design_module, "_BLOCK_BYTES", 0)
        monkeypatch.setattr(design_module, "_BLOCK_BYTES", 1)
    surface, Phi = make(q=q, weighted=weighted)
    assert (surface.d, surface.q, surface.n) == (12, C * q, 150)
    v = np.random.default_rng(1).standard_normal(12 + C * q)
    look = surface.look(v, NONE)
    value, gradient, H = dense(surface, jacobian(Phi, 4), v)
    assert_allclose(look.value, value, rtol=1e-12)
    assert_allclose(look.gradient, gradient, atol=1e-11)
    assert_allclose(look.curvature(), H, atol=1e-11)
    assert_allclose(look.steps(), H, atol=1e-11)


def test_derivatives_are_those_of_the_value():
    surface, _ = make(weighted=True, q=2)
    v = np.random.default_rng(2).standard_normal(surface.d + surface.q) / 3

    def slope(f, e):
        return (8 * (f(v + e) - f(v - e)) - (f(v + 2 * e) - f(v - 2 * e))) / 12e-3

    steps = 1e-3 * np.eye(len(v))
    look = surface.look(v, NONE)
    assert_allclose(look.gradient, [slope(lambda x: surface.look(x, NONE).value, e) for e in steps], atol=1e-7)
    hessian = [slope(lambda x: surface.look(x, NONE).gradient, e) for e in steps]
    assert_allclose(look.curvature(), -np.array(hessian), atol=1e-7)


def test_the_same_vector_added_to_every_class_changes_nothing():
    surface, _ = make(weighted=True)
    rng = np.random.default_rng(3)
    v, shift = rng.standard_normal(15), np.append(np.tile(rng.standard_normal(4), C), np.full(C, 1.7))
    here, there = surface.look(v, NONE), surface.look(v + shift, NONE)
    assert_allclose(there.value, here.value, rtol=1e-13)
    assert_allclose(there.curvature(), here.curvature(), atol=1e-12)
    assert_allclose(here.curvature() @ shift, 0, atol=1e-11)
    assert_allclose(here.gradient @ shift, 0, atol=1e-11)
    h = np.linalg.eigvalsh(here.curvature())
    assert np.sum(np.abs(h) < 1e-12 * h[-1]) == 5  # one a column and one for the bias
    assert h[5] > 0


@pytest.mark.parametrize("q", [0, 1, 2])
def test_along_directions(q):
    """The form by tensors against the form by blocks, and a second restriction on top of the first."""
    surface, _ = make(q=q, weighted=True)
    rng = np.random.default_rng(4)
    R, Q = rng.standard_normal((12, 12)), rng.standard_normal((5, 12))
    for narrow, rows in ((surface.along(R), R), (surface.along(Q), Q), (surface.along(R).along(Q), Q @ R)):
        k = len(rows)
        assert (narrow.d, narrow.q) == (k, C * q)
        whole = np.block([[rows, np.zeros((k, C * q))], [np.zeros((C * q, 12)), np.eye(C * q)]])
        u = rng.standard_normal(k + C * q) / 4
        here, there = narrow.look(u, NONE), surface.look(whole.T @ u, NONE)
        assert_allclose(here.value, there.value, rtol=1e-12)
        assert_allclose(here.gradient, whole @ there.gradient, atol=1e-10)
        assert_allclose(here.curvature(), whole @ there.curvature() @ whole.T, atol=1e-10)


def test_reduced_where_columns_outnumber_rows():
    surface, Phi = make(n=10, M=25, weighted=True)
    narrow, T = surface.reduced()
    assert (narrow.d, narrow.q, T.shape) == (30, 3, (30, 75))
    assert_allclose(T @ T.T, np.eye(30), atol=1e-13)
    assert_allclose(narrow.unit(NONE), surface.unit(NONE), rtol=1e-14)
    mean = np.average(np.mean(Phi[:, :25] ** 2, axis=1), weights=surface.weights)  # a weight counts a row so often
    assert_allclose(surface.unit(NONE), mean, rtol=1e-12)
    v = np.random.default_rng(5).standard_normal(78) / 5
    here, there = narrow.look(np.append(T @ v[:75], v[75:]), NONE), surface.look(v, NONE)
    assert_allclose(here.value, there.value, rtol=1e-12)
    assert_allclose(np.append(T.T @ here.gradient[:30], here.gradient[30:]), there.gradient, atol=1e-11)
    small, large = (np.linalg.eigvalsh(look.curvature()[:m, :m])[::-1] for look, m in ((here, 30), (there, 75)))
    assert_allclose(small, large[:30], atol=1e-12 * large[0])
    assert_allclose(large[30:], 0, atol=1e-12 * large[0])
    assert narrow.reduced()[1] is None


def test_pointwise_densities_and_separation():
    surface, Phi = make()
    draws = np.random.default_rng(6).standard_normal((3, 15))
    J = jacobian(Phi, 4)
    truth = [log_softmax(J @ v, axis=1)[np.arange(150), surface.y] for v in draws]
    assert_allclose(surface.log_densities(draws, np.empty((3, 0))), truth, rtol=1e-12)
    assert not surface.look(draws[0], NONE).separates
    few, columns = make(n=8, M=20)
    W = np.linalg.lstsq(columns, np.eye(C)[few.y], rcond=None)[0]
    v = np.append(W[:20].T.ravel(), W[20])
    assert few.look(v, NONE).separates
    assert not few.look(-v, NONE).separates


def test_the_ridge_maximum_is_that_of_scikit_learn():
    """An intercept without a prior is fixed only up to a constant for all classes; W is not."""
    surface, Phi = make()
    ours = climb(surface, np.append(np.full(12, 0.5), np.full(3, 1e-9)), NONE, surface.start())
    assert ours.converged
    theirs = LogisticRegression(C=2.0, tol=1e-12, max_iter=10_000, solver="newton-cg").fit(Phi[:, :4], surface.y)
    assert_allclose(ours.v[:12].reshape(C, 4), theirs.coef_, atol=1e-6)
    assert_allclose(ours.v[12:] - ours.v[12:].mean(), theirs.intercept_ - theirs.intercept_.mean(), atol=1e-6)


@pytest.mark.parametrize("narrow", [False, True], ids=["blocks", "directions"])
def test_the_curvature_keeps_its_digits_where_a_class_is_certain(narrow):
    """At logits of 40 what is left of a class is 4e-18: as 1 - p it would be nothing. Truth with fifty digits."""
    rng = np.random.default_rng(4)
    n, M, C = 6, 2, 3
    X, y = rng.standard_normal((n, M)), np.arange(n) % C
    logits = np.zeros((n, C))
    logits[np.arange(n), rng.integers(C, size=n)] = 40.0
    surface = Softmax(Design(X, extra=np.ones((n, 1))), y, C, np.full(C, 0.1))
    if narrow:
        surface = surface.along(np.eye(surface.d))
    with mpmath.workdps(50):
        truth = mpmath.zeros((M + 1) * C)
        for row, own in zip(logits, X, strict=True):
            odds = [mpmath.e ** mpmath.mpf(float(value)) for value in row]
            p = [value / sum(odds) for value in odds]
            features = [*map(mpmath.mpf, own.tolist()), mpmath.mpf(1)]
            for a, b in itertools.product(range(C), repeat=2):
                at, to = ([*range(c * M, (c + 1) * M), C * M + c] for c in (a, b))
                for (i, f), (j, g) in itertools.product(zip(at, features, strict=True), zip(to, features, strict=True)):
                    truth[i, j] += p[a] * ((a == b) - p[b]) * f * g
        truth = np.array(truth.tolist(), dtype=float)
    found = surface.hessian(softmax(logits, axis=1))
    assert_allclose(found, truth, rtol=1e-12, atol=1e-14 * np.abs(truth).max())
    assert np.linalg.matrix_rank(found) > 0
