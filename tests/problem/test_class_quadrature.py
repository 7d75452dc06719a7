"""Class probabilities averaged over normal predictors: against dense quadrature, a million draws, and symmetries."""

import numpy as np
import pytest
from scipy.special import expit, softmax

from bayes_sparse.problem.class_quadrature import average_probabilities

CLOSE = 2e-3


def rows(count, C, sd, seed=0):
    """Means and covariances of predictors with so large a spread, some of them much less known than others."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((count, C, C)) * np.exp(rng.standard_normal((count, 1, C)))
    S = A @ A.transpose(0, 2, 1)
    S *= (sd**2 * C / np.trace(S, axis1=1, axis2=2))[:, None, None]
    return sd * rng.choice([0.2, 1.0], (count, 1)) * rng.standard_normal((count, C)), S


def grid(mean, covariance, f, size=801):
    """The average of f over the plane that two predictors, or three up to a shift, vary in, by the trapezoidal rule."""
    values, axes = np.linalg.eigh(covariance)
    t = np.linspace(-8, 8, size)
    weight = np.exp(-0.5 * t**2)
    weight /= weight.sum()
    F = (axes * np.sqrt(np.maximum(values, 0)))[:, -2:]
    eta = mean + t[:, None, None] * F[:, 0] + t[None, :, None] * F[:, 1]
    return np.einsum("i,j,ijc->c", weight, weight, f(eta))


@pytest.mark.parametrize("sd", [0.5, 3.0, 20.0])
def test_three_classes_by_dense_quadrature(sd):
    mean, S = rows(6, 3, sd)
    centre = np.eye(3) - 1 / 3
    exact = [grid(m, centre @ s @ centre, lambda eta: softmax(eta, axis=-1)) for m, s in zip(mean, S, strict=True)]
    np.testing.assert_allclose(average_probabilities(mean, S, "softmax"), exact, atol=CLOSE / 2)


@pytest.mark.parametrize("sd", [1.0, 10.0])
def test_ten_classes_by_many_draws(sd):
    mean, S = rows(3, 10, sd, seed=1)
    rng = np.random.default_rng(0)
    for m, s, found in zip(mean, S, average_probabilities(mean, S, "softmax"), strict=True):
        L, total, count = np.linalg.cholesky(s + 1e-12 * np.eye(10)), np.zeros(10), 20
        for _ in range(count):
            z = rng.standard_normal((50_000, 10))
            total += softmax(m + z @ L.T, axis=1).mean(axis=0) + softmax(m - z @ L.T, axis=1).mean(axis=0)
        np.testing.assert_allclose(found, total / (2 * count), atol=CLOSE)  # 2 million draws: 4e-4 at worst


def test_two_classes_one_against_the_rest():
    """Not by differences of predictors alone, so both of them vary."""
    mean, S = rows(5, 2, 3.0, seed=2)
    exact = [
        grid(m, s, lambda e: expit(e) / expit(e).sum(axis=-1, keepdims=True)) for m, s in zip(mean, S, strict=True)
    ]
    np.testing.assert_allclose(average_probabilities(mean, S, "one_vs_rest"), exact, atol=CLOSE / 2)


@pytest.mark.parametrize("link", ["softmax", "one_vs_rest"])
@pytest.mark.parametrize("C", [3, 6, 10])
def test_the_order_of_the_classes_and_of_the_rows_does_not_matter(C, link):
    mean, S = rows(8, C, 5.0, seed=3)
    found = average_probabilities(mean, S, link)
    order, back = np.random.default_rng(4).permutation(C), np.arange(8)[::-1]
    permuted = average_probabilities(mean[:, order], S[:, order][:, :, order], link)
    np.testing.assert_allclose(permuted, found[:, order], atol=1e-5)
    np.testing.assert_allclose(average_probabilities(mean[back], S[back], link)[back], found, atol=1e-6)
    np.testing.assert_allclose(average_probabilities(mean[:1], S[:1], link)[0], found[0], atol=1e-6)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)


def test_what_is_common_to_all_classes_does_not_matter():
    mean, S = rows(5, 4, 2.0)
    found = average_probabilities(mean, S, "softmax")
    np.testing.assert_allclose(average_probabilities(mean + 70.0, S + 900.0, "softmax"), found, atol=1e-5)


def test_known_predictors_and_rare_classes_keep_their_digits():
    mean = np.array([[0.0, 1.0, -1.0], [0.0, -300.0, 3.0]])
    found = average_probabilities(mean, np.zeros((2, 3, 3)), "softmax")
    np.testing.assert_allclose(np.log(found), np.log(softmax(mean, axis=1)), rtol=1e-6)
    assert average_probabilities(np.empty((0, 3)), np.empty((0, 3, 3)), "softmax").shape == (0, 3)
