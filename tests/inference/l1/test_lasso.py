"""One point of the L1 path: the conditions of a minimum in plain numpy, from warm and cold starts."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit
from scipy.stats import nbinom
from scipy.stats import norm as gauss
from scipy.stats import poisson as counts

from .problems import LIKELIHOODS, NONE, TERMS, case, draw

FINE, PARTS = 1e-10, (0.9, 0.5, 0.1, 0.01)
every = pytest.mark.parametrize("name", LIKELIHOODS)


def theta_of(name):
    return np.array([0.4]) if name == "negative_binomial" else NONE


def made(name, X, y, **more):
    """With known noise; the dispersion of counts is held at its own."""
    return case(name, X, y, sigma=0.7 if name == "normal" else None, **more)


def check(problem, parts=PARTS):
    """Cold, and from one price to the next: minima both, of the same height; the last one."""
    theta = theta_of(problem.name)
    lasso = problem.lasso(theta)
    warm = lasso.null()
    top = lasso.largest(warm)
    assert top > 0
    for part in parts:
        lam = part * top
        cold, warm = lasso.cold(lam, FINE), lasso.solve(lam, warm, FINE)
        for spot in (cold, warm):
            w = problem.full(spot)
            assert spot.residual <= FINE
            assert problem.violation(lam, w, theta) <= 1e-8
            assert_allclose(spot.eta, problem.problem.offset + problem.A @ w, atol=1e-9 * (1 + np.abs(spot.eta).max()))
            assert_allclose(spot.value, problem.likelihood(w, theta), rtol=1e-11)
            assert_allclose(spot.gradient, problem.slope(w, theta), atol=1e-9 * top)
            assert np.array_equal(np.sort(spot.index), np.flatnonzero((w != 0) | ~problem.problem.free))
        heights = [problem.objective(lam, problem.full(spot), theta) for spot in (cold, warm)]
        assert_allclose(*heights, rtol=1e-10)
    return cold, warm


def test_the_likelihoods_of_these_tests():
    """Those written out by hand, against scipy and finite differences."""
    rng = np.random.default_rng(0)
    eta, y, theta, h = rng.normal(0, 2, 50), rng.poisson(3, 50).astype(float), np.array([0.3]), 1e-5
    a, mean = np.exp(0.3), np.exp(eta)
    truth = {
        "bernoulli": np.log(np.where(y > 2, expit(eta), expit(-eta))),
        "poisson": counts.logpmf(y, mean),
        "normal": gauss.logpdf(y, eta, np.exp(0.3)),
        "negative_binomial": nbinom.logpmf(y, a, a / (a + mean)),
    }
    for name, terms in TERMS.items():
        target = (y > 2).astype(float) if name == "bernoulli" else y
        value, first, second, _ = terms(target, eta, theta)
        ahead, behind = terms(target, eta + h, theta), terms(target, eta - h, theta)
        assert_allclose(value, truth[name], rtol=1e-10, atol=1e-12)
        assert_allclose((ahead[0] - behind[0]) / (2 * h), first, rtol=1e-6, atol=1e-8)
        assert_allclose((ahead[1] - behind[1]) / (2 * h), second, rtol=1e-6, atol=1e-8)


@every
@pytest.mark.parametrize("seed", range(3))
def test_the_conditions_of_a_minimum(name, seed):
    problem = made(name, *draw(name, seed=seed))
    cold, warm = check(problem)
    assert_allclose(problem.full(cold), problem.full(warm), atol=1e-8)


@every
def test_sparse_and_dense_columns(name):
    X, y = draw(name, M=12, seed=3)
    X = np.where(np.abs(X) < 0.8, 0.0, X)
    for standardise in (False, True):
        dense, sparse = (made(name, X, y, sparse=kind, standardise=standardise) for kind in (False, True))
        (one, _), (other, _) = check(dense), check(sparse)
        assert_allclose(dense.full(one), sparse.full(other), atol=1e-8)


@every
def test_standardised_columns_in_other_units(name):
    X, y = draw(name, seed=4)
    unit = 10.0 ** np.linspace(-5, 5, 8)
    one, other = (made(name, Z, y, standardise=True) for Z in (X, X * unit + 7 * unit))
    assert_allclose(one.full(check(one)[0]), other.full(check(other)[0]), atol=1e-7)


@every
def test_an_offset(name):
    X, y = draw(name, seed=5)
    moved = made(name, X, y, offset=0.5 * np.random.default_rng(5).standard_normal(len(y)))
    plain = made(name, X, y)
    assert np.abs(moved.full(check(moved)[0]) - plain.full(check(plain)[0])).max() > 0.01


@every
def test_a_weight_of_two_is_the_row_twice(name):
    X, y = draw(name, seed=6)
    twice = np.arange(len(y)) % 3 == 0
    rows = np.append(np.arange(len(y)), np.flatnonzero(twice))
    weighted, repeated = made(name, X, y, weights=1.0 + twice), made(name, X[rows], y[rows])
    one, other = check(weighted)[0], check(repeated)[0]
    assert_allclose(one.lam, other.lam, rtol=1e-9)
    assert_allclose(weighted.full(one), repeated.full(other), atol=1e-7)
    halves = made(name, X, y, weights=np.random.default_rng(6).uniform(0.1, 3, len(y)))
    check(halves)


@every
@pytest.mark.parametrize("precision", [0.0, 2.0])
def test_columns_without_a_price(name, precision):
    """They have a normal prior or none, and are never zero."""
    X, y = draw(name, M=9, seed=7)
    problem = made(name, X, y, unpriced=(2, 5), precision=precision)
    cold, _ = check(problem)
    assert np.all(problem.full(cold)[[2, 5, 9]] != 0)
    check(made(name, X, y, bias=False, unpriced=(0,), precision=precision))
    check(made(name, X, y, bias=False))


@every
def test_more_columns_than_rows(name):
    for seed in range(3):
        problem = made(name, *draw(name, n=25, M=70, seed=seed, active=3))
        cold, _ = check(problem, (0.9, 0.3, 0.1, 0.03))
        assert np.count_nonzero(problem.full(cold)[:70]) <= 25


@every
def test_columns_that_depend_on_each_other(name):
    """Copies, opposites and sums: weights are open, the predictor and the height are not."""
    X, y = draw(name, M=6, seed=8)
    X = np.column_stack([X, X[:, 0], -X[:, 1], X[:, 0] + X[:, 1] - X[:, 2]])
    problem = made(name, X, y)
    cold, warm = check(problem, (0.9, 0.5, 0.1, 0.01, 0.001))
    assert_allclose(cold.eta, warm.eta, atol=1e-6)
    check(made(name, np.eye(5)[np.arange(60) % 5], y))  # one-hot, with a bias


def test_classes_that_can_be_separated():
    rng = np.random.default_rng(9)
    X = rng.standard_normal((30, 4))
    problem = made("bernoulli", X, (X[:, 0] + 0.3 * X[:, 1] > 0).astype(float))
    cold, _ = check(problem, (0.9, 0.1, 0.01, 1e-3, 1e-4))
    assert np.all((cold.eta > 0) == (problem.problem.y == 1))


@every
def test_the_largest_price_and_what_is_allowed(name):
    X, y = draw(name, seed=10)
    problem, theta = made(name, X, y), theta_of(name)
    lasso = problem.lasso(theta)
    null = lasso.null()
    assert_allclose(problem.slope(problem.full(null), theta)[-1], 0.0, atol=1e-7)
    top = np.abs(problem.slope(problem.full(null), theta)[:8]).max()
    assert_allclose(lasso.largest(null), top, rtol=1e-9)
    assert len(lasso.cold(top * (1 + 1e-6), FINE).index) == 1
    assert len(lasso.cold(top * (1 - 1e-4), FINE).index) == 2
    first = int(lasso.cold(0.9 * top, FINE).index.min())  # the bias comes last
    allowed = problem.problem.free & (np.arange(9) != first)
    without = problem.lasso(theta, allowed)
    spot = without.cold(0.1 * top, FINE)
    assert first not in spot.index
    fewer = made(name, np.delete(X, first, axis=1), y)
    assert_allclose(
        np.delete(problem.full(spot), first), fewer.full(fewer.lasso(theta).cold(spot.lam, FINE)), atol=1e-8
    )


def test_a_search_that_meets_a_weight_beside_zero():
    """Where the weight is taken for one of its own sign, no step along it is long enough to be seen."""
    check(made("bernoulli", *draw("bernoulli", n=12, M=14, seed=1158, active=3)), (0.01,))


@pytest.mark.parametrize(
    ("name", "n", "M", "effect", "part", "seed"),
    [
        ("poisson", 38, 100, 0.3, 0.1, 19),
        ("bernoulli", 31, 192, 3.0, 0.1, 41),
        ("negative_binomial", 39, 151, 1.0, 0.001, 18),
    ],
)
def test_columns_that_take_turns(name, n, M, effect, part, seed):
    """Wide, and nearly as many weights as rows: several enter and one leaves, by ever smaller steps."""
    check(made(name, *draw(name, n=n, M=M, seed=seed, effect=effect, active=5)), (part,))
