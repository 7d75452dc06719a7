"""Both forms of the Gaussian posterior against numpy's inverse and against each other."""

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from bayes_sparse.problem.gaussian import Dual, Primal, cholesky, weighted_gram

pytestmark = pytest.mark.quick


def problem(n, k, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, k)), rng.uniform(0.1, 3.0, n), 10 ** rng.uniform(-1, 1, k)


def both(Phi, b, alpha):
    return Primal(Phi.T @ (b[:, None] * Phi), alpha), Dual(Phi, b, alpha)


@pytest.mark.parametrize(("n", "k"), [(30, 5), (12, 12), (6, 20), (1, 3), (3, 1)])
def test_both_equal_numpys_inverse(n, k):
    Phi, b, alpha = problem(n, k)
    P = Phi.T @ (b[:, None] * Phi) + np.diag(alpha)
    Sigma = np.linalg.inv(P)
    H = P - np.diag(alpha)
    rng = np.random.default_rng(1)
    v, V = rng.standard_normal(k), rng.standard_normal((k, 4))
    for form in both(Phi, b, alpha):
        # The condition number is about 1e3, so 1e-12 leaves a hundred roundings.
        assert_allclose(form.log_determinant, np.linalg.slogdet(P)[1], rtol=1e-12)
        assert_allclose(form.solve(v), Sigma @ v, rtol=1e-11, atol=1e-12)
        assert_allclose(form.solve(V), Sigma @ V, rtol=1e-11, atol=1e-12)
        assert_allclose(form.variance, Sigma.diagonal(), rtol=1e-11)
        some = np.array([[0, k - 1], [k // 2, 0]] if k > 1 else [[0]])
        expected = [Sigma[np.ix_(own, own)] for own in some]
        assert_allclose(form.covariances(some), expected, rtol=1e-11, atol=1e-12)
        assert_allclose(form.factor @ form.factor.T, Sigma, rtol=1e-11, atol=1e-12)
        assert_allclose(form.covariance, Sigma, rtol=1e-11, atol=1e-12)
        assert_allclose(form.lower @ form.lower.T, P, rtol=1e-11, atol=1e-12)
        assert_allclose(form.smoothing, (Sigma @ H @ Sigma).diagonal(), rtol=1e-9, atol=1e-12)
    primal, dual = both(Phi, b, alpha)
    assert_allclose(primal.spread(v), primal.factor @ v, rtol=1e-11, atol=1e-12)
    half, t = np.sqrt(b)[:, None] * Phi, rng.standard_normal(n)
    w, left = dual.regression(t)
    assert_allclose(w, Sigma @ half.T @ t, rtol=1e-10, atol=1e-12)
    assert_allclose(left, t - half @ w, rtol=1e-10, atol=1e-11)
    assert_allclose(primal.covariance, Sigma, rtol=1e-11, atol=1e-13)
    assert_allclose(primal.covariance, primal.covariance.T, rtol=0, atol=0)
    assert_allclose(np.tril(primal.factor, -1), 0.0, atol=0)


@pytest.mark.parametrize("lowest", [0.0, -1.0], ids=["not negative", "some negative"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(("n", "k"), [(5, 0), (7, 3), (7, 40), (3000, 3), (9000, 40), (140_000, 1)])
def test_weighted_products_of_columns(n, k, order, lowest):
    """Few columns and many, one block of rows and several, in both memory orders."""
    rng = np.random.default_rng(2)
    Phi, b = np.asarray(rng.standard_normal((n, k)), order=order), rng.uniform(lowest, 1.0, n)
    kept = Phi.copy(), b.copy()
    found = weighted_gram(Phi, b)
    # Fifty roundings of the sum of the terms' sizes; a block left out or counted twice is more than 1e-2 of it.
    size = np.einsum("ni,n,nj->ij", abs(Phi), abs(b), abs(Phi))
    assert np.all(abs(found - np.einsum("ni,n,nj->ij", Phi, b, Phi)) <= 1e-14 * size)
    assert found.shape == (k, k)
    assert_allclose(Phi, kept[0], rtol=0, atol=0)
    assert_allclose(b, kept[1], rtol=0, atol=0)


@given(
    n=st.integers(1, 8),
    k=st.integers(1, 8),
    seed=st.integers(0, 10_000),
    exponents=st.lists(st.floats(-12, 12), min_size=8, max_size=8),
)
def test_precisions_of_any_size(n, k, seed, exponents):
    """Primal against an inverse of the same matrix scaled to a unit diagonal, with 50 digits."""
    mpmath = pytest.importorskip("mpmath")
    Phi, b, _ = problem(n, k, seed)
    alpha = 10 ** np.array(exponents[:k])
    with mpmath.workdps(60):
        wide = mpmath.matrix(Phi.tolist())
        P = wide.T * mpmath.diag([mpmath.mpf(x) for x in b]) * wide + mpmath.diag([mpmath.mpf(x) for x in alpha])
        Sigma = P**-1
        truth = np.array([float(Sigma[i, i]) for i in range(k)])
        log_determinant = float(mpmath.log(mpmath.det(P)))
        unit = np.array([[float(P[i, j] / mpmath.sqrt(P[i, i] * P[j, j])) for j in range(k)] for i in range(k)])
    primal, dual = both(Phi, b, alpha)
    # Rounding H to doubles moves the answer by its condition number, the one thing no algorithm can help.
    condition = np.linalg.cond(unit)
    if condition < 1e12:  # beyond that the jitter may step in
        assert_allclose(primal.variance, truth, rtol=1e-14 * condition)
        assert abs(primal.log_determinant - log_determinant) <= 1e-14 * condition + 1e-12 * (1 + abs(log_determinant))
    # The dual form is bounded by the posterior's contraction instead: alpha * variance is a difference from one.
    spread = (Phi**2 / alpha * b[:, None]).sum()
    assert np.all(np.abs(dual.variance - truth) <= 1e-13 * (1 + spread) / alpha)
    assert abs(dual.log_determinant - log_determinant) <= 1e-13 * (1 + spread) + 1e-12 * abs(log_determinant)


def test_a_flat_prior_is_allowed_on_the_primal_side():
    Phi, b, alpha = problem(30, 4)
    alpha[2] = 0.0
    primal = Primal(Phi.T @ (b[:, None] * Phi), alpha)
    P = Phi.T @ (b[:, None] * Phi) + np.diag(alpha)
    assert_allclose(primal.covariance, np.linalg.inv(P), rtol=1e-11)
    assert_allclose(primal.log_determinant, np.linalg.slogdet(P)[1], rtol=1e-12)


def test_an_empty_model():
    empty = Primal(np.empty((0, 0)), np.empty(0))
    assert empty.log_determinant == 0
    assert empty.solve(np.empty(0)).shape == (0,)
    assert empty.covariance.shape == empty.factor.shape == (0, 0)
    assert empty.variance.shape == empty.smoothing.shape == (0,)


def test_inputs_are_left_alone():
    Phi, b, alpha = problem(10, 4)
    H = Phi.T @ (b[:, None] * Phi)
    kept = H.copy(), Phi.copy(), b.copy(), alpha.copy()
    for form in (Primal(H, alpha), Dual(Phi, b, alpha)):
        v = np.ones(4)
        form.solve(v)
        assert np.array_equal(v, np.ones(4))
    assert all(np.array_equal(x, y) for x, y in zip((H, Phi, b, alpha), kept, strict=True))


def rebuilt(P):
    L = np.tril(cholesky(P))
    return L @ L.T


def test_no_jitter_where_none_is_needed():
    Phi, _, _ = problem(20, 5)
    P = Phi.T @ Phi * np.outer(10.0 ** np.arange(-10, 11, 5), 10.0 ** np.arange(-10, 11, 5))
    assert_allclose(rebuilt(P), P, rtol=1e-14)


def test_a_singular_matrix_gets_the_smallest_jitter_that_works():
    x = np.random.default_rng(0).standard_normal(40)
    P = np.array([[x @ x, x @ x], [x @ x, x @ x]])
    extra = rebuilt(P) / P - 1
    assert 0 <= extra.diagonal().max() <= 2e-14
    assert_allclose(rebuilt(P), P, rtol=1e-13)


@pytest.mark.parametrize("deficit", [1e-13, 1e-11, 1e-9, 1e-7])
def test_the_jitter_grows_with_the_deficit_and_no_further(deficit):
    P = np.array([[1.0, 1.0 + deficit], [1.0 + deficit, 1.0]])
    added = rebuilt(P)[1, 1] - 1
    assert deficit < added <= 101 * deficit


@pytest.mark.parametrize(
    "P",
    [
        np.array([[1.0, 1.1], [1.1, 1.0]]),
        np.array([[1.0, 0.0], [0.0, -1.0]]),
        np.array([[1.0, 0.0], [0.0, 0.0]]),
        np.array([[1.0, 0.0], [0.0, np.nan]]),
    ],
)
def test_what_is_not_positive_definite_is_refused(P):
    with pytest.raises(np.linalg.LinAlgError, match="posterior precision"):
        cholesky(P)


def test_the_variance_of_predictors_whatever_their_observations_tell():
    """Curvatures over eighteen orders of magnitude and none at all, against fifty digits."""
    rng = np.random.default_rng(2)
    Phi, b, alpha = rng.standard_normal((12, 15)), 10 ** rng.uniform(-14, 4, 12), 10 ** rng.uniform(-3, 5, 15)
    b[:2] = 0.0
    with mpmath.workdps(50):
        columns = mpmath.matrix(Phi.tolist())
        Sigma = (columns.T * mpmath.diag(b.tolist()) * columns + mpmath.diag(alpha.tolist())) ** -1
        exact = np.array((columns * Sigma * columns.T).tolist(), dtype=float).diagonal()
    assert_allclose(Dual(Phi, b, alpha).leverages, exact, rtol=1e-8)
