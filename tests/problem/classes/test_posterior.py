"""The posterior on the side of the observations against the dense one and against sixty digits; which is chosen."""

import tracemalloc

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import softmax

from bayes_sparse.problem.gaussian import Dual, Primal, Woodbury

from .problems import NONE, case, make

pytestmark = pytest.mark.quick

SHAPES = {
    "narrow blocks": {"kind": "shared", "n": 20, "M": 12},
    "wide blocks": {"kind": "own", "n": 10, "widths": [30, 25, 11]},
    "narrow and wide": {"kind": "own", "n": 20, "widths": [5, 60, 19, 22], "C": 4},
    "exactly as wide as high": {"kind": "own", "n": 12, "widths": [12, 12, 11], "q": 0},
    "a class without columns": {"kind": "own", "n": 10, "widths": [40, 0, 25], "q": 0},
    "two classes": {"kind": "shared", "n": 15, "M": 20, "C": 2, "q": 2},
}


def both(c, *, alpha=None, w=None, index=None):
    """By rows and by columns, at the same weights."""
    index = np.arange(c.problem.design.width) if index is None else index
    w = 0.5 * np.random.default_rng(1).standard_normal(len(index)) if w is None else w
    alpha = c.precisions()[index] if alpha is None else alpha
    design, terms = c.problem.design, c.terms(w, index)
    where = [design.own(k, index)[0] for k in range(design.classes)]
    Phi = [np.asfortranarray(c.J[:, k, index[at]]) for k, at in enumerate(where)]
    return Woodbury(Phi, where, terms[2], alpha), Primal(c.hessian(w, index), alpha)


@pytest.mark.parametrize("order", ["in order", "mixed"])
@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_same_as_dense(shape, weighted, order):
    c = make(weighted=weighted, **SHAPES[shape])
    rng = np.random.default_rng(2)
    width = c.problem.design.width
    index = np.arange(width) if order == "in order" else rng.permutation(width)[: width - 2]
    rows, columns = both(c, index=index, alpha=10 ** rng.uniform(-0.5, 1, len(index)))
    assert rows.exact
    if shape in ("wide blocks", "narrow and wide"):
        assert Dual in map(type, rows._blocks)
    # The difference of blocks multiplies rounding errors by (H / alpha)^2 or so.
    assert_allclose(rows.log_determinant, columns.log_determinant, rtol=1e-11, atol=1e-10)
    assert_allclose(rows.variance, columns.variance, rtol=1e-10)
    some = np.array([[0, len(index) - 1], [1, 0]])
    assert_allclose(rows.covariances(some), columns.covariances(some), rtol=1e-9, atol=1e-11)
    # A difference of nearly equal numbers in both.
    assert_allclose(rows.smoothing, columns.smoothing, rtol=1e-8, atol=1e-10 * columns.variance.max())
    for v in (rng.standard_normal(len(rows.alpha)), rng.standard_normal((len(rows.alpha), 3))):
        before = v.copy()
        assert_allclose(rows.solve(v), columns.solve(v), rtol=1e-9, atol=1e-11)
        assert_allclose(v, before, rtol=0)


def exactly(c, w, alpha, v):
    """``log det (H + A)`` and ``(H + A)^-1 v`` in sixty digits."""
    with mpmath.workdps(60):
        k = len(w)
        P = mpmath.diag([mpmath.mpf(a) for a in alpha])
        for J in c.J:
            e = [mpmath.exp(mpmath.fdot(row, w)) for row in J]
            mu = [x / sum(e) for x in e]
            own = mpmath.matrix(J.tolist())
            B = mpmath.matrix(len(mu), len(mu))
            for a in range(len(mu)):
                for b in range(len(mu)):
                    B[a, b] = mu[a] * ((a == b) - mu[b])
            P += own.T * B * own
        L = mpmath.cholesky(P)
        x = mpmath.cholesky_solve(P, mpmath.matrix(v.tolist()))
        return float(2 * sum(mpmath.log(L[j, j]) for j in range(k))), np.array([float(z) for z in x])


@pytest.mark.parametrize("alpha", [1e-4, 1e-6, 1e-9, 1e-11])
def test_tiny_precisions_fall_back_to_dense(alpha):
    """Along equal weights for all classes only the precisions count, and the difference of blocks loses them."""
    c = make("shared", n=6, M=8, C=2)
    rng = np.random.default_rng(3)
    w, v = 0.3 * rng.standard_normal(18), rng.standard_normal(18)
    precisions = np.full(18, alpha)
    active, terms = c.problem.active(np.arange(18)), c.terms(w, np.arange(18))
    rows, _ = both(c, w=w, alpha=precisions)
    assert len(w) > 2 * c.problem.design.n
    assert not rows.exact
    factor = active.steps(precisions, terms)
    assert isinstance(factor, Primal)
    log_determinant, x = exactly(c, w, precisions, v)
    # H has a rounding error of 1e-16 or so of its size, here about one, along the directions that only alpha holds.
    lost = max(1e-12, 1e-15 / alpha)
    assert lost <= 1e-6 or alpha < 1e-9
    assert_allclose(factor.log_determinant, log_determinant, atol=18 * lost)
    assert np.linalg.norm(factor.solve(v) - x) <= lost * np.linalg.norm(x)


def test_whenever_it_says_exact_it_is():
    """Random shapes and precisions over many orders of magnitude; some of them lose digits and some do not."""
    said = []
    for trial in range(60):
        rng = np.random.default_rng(trial)
        n, low = int(rng.integers(6, 20)), rng.uniform(-9, 1)
        c = make(["shared", "own"][trial % 2], n=n, C=2 + trial % 3, M=int(rng.integers(n // 2 + 3, 2 * n)), seed=trial)
        w = 10 ** rng.uniform(-2, 1) * rng.standard_normal(c.problem.design.width)
        rows, columns = both(c, w=w, alpha=10 ** rng.uniform(low, low + rng.uniform(0, 6), len(w)))
        said.append(rows.exact)
        if not rows.exact:
            continue
        # The residual is held to 1e-9; errors of the parts may add up to some times that.
        v = rng.standard_normal(len(w))
        assert_allclose(rows.log_determinant, columns.log_determinant, rtol=1e-9, atol=1e-8)
        assert_allclose(rows.variance, columns.variance, rtol=1e-8)
        x = columns.solve(v)
        assert np.linalg.norm(rows.solve(v) - x) <= 1e-8 * np.linalg.norm(x)
    assert 15 < sum(said) < 45


SIDES = [(60, 10, 600, True), (60, 10, 60, True), (20, 3, 20, True), (60, 3, 20, False), (60, 3, 22, False)]


@pytest.mark.parametrize(("n", "C", "M", "by_rows"), [*SIDES, (200, 3, 10, False), (10, 2, 4, False)])
def test_which_side(n, C, M, by_rows):
    """By rows only for more columns than rows, and then by a margin that pays for a factor a class."""
    c = make("shared", n=n, C=C, M=M, q=0)
    index = np.arange(C * M)
    factor = c.problem.active(index).steps(np.full(C * M, 10.0), c.problem.derivatives(np.zeros((n, C)), NONE))
    assert isinstance(factor, Woodbury if by_rows else Primal)


def peak(action):
    tracemalloc.start()
    action()
    top = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return top


def wide(n=60, M=600):
    c = make("shared", n=n, C=10, M=M)
    index = np.arange(c.problem.design.width)
    terms = c.problem.derivatives(np.random.default_rng(4).standard_normal((n, 10)), NONE)
    return c.problem.active(index), np.full(len(index), 300.0), terms


def test_memory_of_the_size_of_the_columns():
    """6010 columns by 60 rows are 2.9 MB; a dense H would be a hundred times that."""
    active, alpha, terms = wide()
    columns = 60 * len(alpha) * 8
    assert peak(lambda: active.steps(alpha, terms)) < 4 * columns
    factor = active.steps(alpha, terms)
    assert isinstance(factor, Woodbury)
    assert peak(lambda: factor.log_determinant) < columns
    assert peak(lambda: factor.solve(alpha)) < columns
    assert peak(lambda: factor.variance) < 4 * columns
    assert np.all((factor.variance > 0) & (factor.variance <= 1 / alpha))


def test_memory_of_the_smoothing():
    active, alpha, terms = wide(20, 200)
    factor = active.steps(alpha, terms)
    assert peak(lambda: factor.smoothing) < 6 * 20 * len(alpha) * 8


def test_flat_probabilities_in_closed_form():
    """Equal probabilities and orthonormal rows: ``H + A = a + (I - 11'/C) / C`` along each row, a elsewhere."""
    n, C, M, a = 4, 3, 9, 0.7
    X = np.linalg.qr(np.random.default_rng(5).standard_normal((M, n)))[0].T
    c = case([X] * C, np.arange(n) % C, q=0)
    rows, _ = both(c, w=np.zeros(C * M), alpha=np.full(C * M, a))
    assert_allclose(softmax(np.zeros(C)), 1 / C)
    moved = n * (C - 1)
    expected = moved * np.log(a + 1 / C) + (C * M - moved) * np.log(a)
    assert_allclose(rows.log_determinant, expected, rtol=1e-12)
    assert_allclose(rows.variance.sum(), moved / (a + 1 / C) + (C * M - moved) / a, rtol=1e-12)
    assert_allclose(rows.smoothing.sum(), moved / C / (a + 1 / C) ** 2, rtol=1e-11)
