"""Chance, in closed form and by simulation; the price that the claims go by."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import chi2, norm

from bayes_sparse.inference.claims import chance_of, least_score, price_of, with_weaker_as_noise

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("columns", [1, 5, 1000])
def test_chance_is_the_tail_of_the_largest_of_so_many(columns):
    z = np.array([0.0, 1.0, 3.0, 4.5])
    assert_allclose(chance_of(z**2, columns), 1 - (1 - 2 * norm.sf(z)) ** columns, rtol=1e-9)
    assert chance_of(np.array([1e4]), columns)[0] == 0


def test_chance_keeps_its_digits_where_it_is_small():
    """1 - (1 - p)^M in plain arithmetic would be zero."""
    score = np.array([100.0])
    assert_allclose(chance_of(score, 7), 7 * chi2.sf(100, 1), rtol=1e-9)


def test_with_the_noise_estimated_it_is_uniform_under_the_null():
    """Each column's own t statistic has n - 2 degrees of freedom: the best of M has a uniform chance."""
    rng = np.random.default_rng(0)
    n, M, sets = 12, 6, 4000
    X, y = rng.standard_normal((sets, n, M)), rng.standard_normal((sets, n, 1))
    X, y = X - X.mean(axis=1, keepdims=True), y - y.mean(axis=1, keepdims=True)
    r2 = np.sum(X * y, axis=1) ** 2 / (np.sum(X**2, axis=1) * np.sum(y**2, axis=1))
    best = ((n - 2) * r2 / (1 - r2)).max(axis=1)
    chance = chance_of(best, M, n - 2)
    # The columns share one y, so their statistics are not quite independent.
    for level in (0.05, 0.2, 0.5):
        assert abs(np.mean(chance <= level) - level) < 4 * np.sqrt(level * (1 - level) / sets)
    assert np.mean(chance_of(best, M) <= 0.05) > 0.1  # as if the noise were known


def test_a_term_owes_nothing_to_weaker_ones():
    """The noise without them is what their squares leave behind: that of a regression on orthogonal columns."""
    rng = np.random.default_rng(1)
    n = 40
    Q = np.linalg.qr(rng.standard_normal((n, 3)))[0]
    y = Q @ [6.0, 3.0, 2.0] + rng.standard_normal(n)
    left = n - 3
    sigma2 = np.sum((y - Q @ (Q.T @ y)) ** 2) / left
    score = (Q.T @ y) ** 2 / sigma2
    judged = with_weaker_as_noise(score, left)
    order = np.argsort(-score)
    for rank, term in enumerate(order):
        inside, weaker = order[: rank + 1], order[rank + 1 :]
        rest = np.sum((y - Q[:, inside] @ (Q[:, inside].T @ y)) ** 2) - len(weaker) * sigma2
        assert_allclose(judged[term], (Q[:, term] @ y) ** 2 / (rest / left), rtol=1e-12)
    assert with_weaker_as_noise(np.empty(0), 10.0).size == 0


def test_the_price_grows_with_the_number_of_columns():
    assert_allclose([price_of(5), price_of(100)], [np.log(5) - 0.5 * np.log(np.log(5)), 3.8416], rtol=1e-4)
    assert price_of(1) == price_of(3)
    assert_allclose(least_score(100), 1 + 2 * price_of(100))
