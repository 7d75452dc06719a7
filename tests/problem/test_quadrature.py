"""The average of a density over a normal predictor, against adaptive quadrature of many digits."""

import mpmath
import numpy as np
import pytest
from scipy.special import expit, gammaln, log_expit
from scipy.stats import norm
from scipy.stats import t as student

from bayes_sparse.problem import quadrature
from bayes_sparse.problem.quadrature import average_in_blocks, log_average

pytestmark = pytest.mark.quick


def truth(log_density, mean, sd, points):
    """Log of the integral, by mpmath over the panels that the points make."""
    with mpmath.workdps(30):
        value = mpmath.quad(
            lambda eta: mpmath.exp(log_density(eta)) * mpmath.npdf(eta, mean, sd), points, method="gauss-legendre"
        )
        return float(mpmath.log(value))


@pytest.mark.parametrize(
    ("mean", "sd"), [(0.3, 0.01), (0.3, 1.0), (-4.0, 2.0), (-30.0, 0.5), (-30.0, 6.0), (5.0, 20.0), (-50.0, 60.0)]
)
def test_two_classes(mean, sd):
    edges = sorted({mean + sd * k for k in range(-12, 13, 2)} | {mean + sd**2 * f for f in (0.5, 1.0)} | {-9, -3, 3, 9})
    exact = truth(lambda eta: -mpmath.log1p(mpmath.exp(-eta)), mean, sd, edges)
    found = log_average(lambda eta, rows: log_expit(eta), np.array([mean]), np.array([sd**2]))
    np.testing.assert_allclose(found, exact, rtol=1e-9)


@pytest.mark.parametrize(("mean", "sd"), [(-1e44, 3e21), (-1e9, 1e-9), (2.0, 1e-20), (2.0, 0.0)])
def test_a_predictor_known_to_more_digits_than_it_has(mean, sd):
    found = log_average(lambda eta, rows: log_expit(eta), np.array([mean]), np.array([sd**2]))
    np.testing.assert_allclose(found, log_expit(mean), rtol=1e-14)


@pytest.mark.parametrize(("y", "mean", "sd"), [(0, 1.0, 0.3), (3, 1.0, 0.3), (1000, 0.0, 0.1), (10**6, 13.0, 1.5)])
def test_counts_however_surprising(y, mean, sd):
    # With y so large the peak is a thousandth as wide as the normal, or far out in its tail.
    peak = mean
    for _ in range(200):
        peak -= (y - np.exp(peak) - (peak - mean) / sd**2) / (-np.exp(peak) - 1 / sd**2) * 0.5
    width = (np.exp(peak) + sd**-2) ** -0.5
    exact = truth(
        lambda eta: y * eta - mpmath.exp(eta) - mpmath.loggamma(y + 1),
        mean,
        sd,
        [peak + width * k for k in (-40, -20, -10, -5, -2, 0, 2, 5, 10, 20)],
    )
    found = log_average(lambda eta, rows: y * eta - np.exp(eta) - gammaln(y + 1), np.array([mean]), np.array([sd**2]))
    np.testing.assert_allclose(found, exact, rtol=1e-9)


@pytest.mark.parametrize(("y", "noise"), [(0.0, 1.0), (7.0, 0.2), (1000.0, 0.5), (0.3, 0.05)])
def test_heavy_tails(y, noise):
    edges = sorted({float(k) for k in range(-12, 13)} | {y + noise * k for k in (-9, -3, -1, 0, 1, 3, 9)})
    edges = [e for e in edges if abs(e) <= 12] if abs(y) > 20 else edges
    constant = float(student.logpdf(0, 4, scale=noise))
    exact = truth(lambda eta: constant - 2.5 * mpmath.log1p((y - eta) ** 2 / noise**2 / 4), 0.0, 1.0, edges)
    found = log_average(lambda eta, rows: student.logpdf(y, 4, eta, noise), np.zeros(1), np.ones(1))
    np.testing.assert_allclose(found, exact, rtol=1e-9, atol=1e-9)


def test_rows_keep_their_places_in_blocks(monkeypatch):
    monkeypatch.setattr(quadrature, "_BLOCK", 3 * 2048)
    rng = np.random.default_rng(0)
    y, mean, variance = rng.normal(size=20), rng.normal(size=20), rng.exponential(size=20)
    variance[[3, 8]] = 0.0
    found = log_average(lambda eta, rows: norm.logpdf(y[rows, None], eta, 0.5), mean, variance)
    np.testing.assert_allclose(found, norm.logpdf(y, mean, np.sqrt(0.25 + variance)), rtol=1e-12)
    assert len(log_average(lambda eta, rows: eta, np.empty(0), np.empty(0))) == 0


def test_what_cannot_be_has_no_probability():
    found = log_average(lambda eta, rows: np.full(eta.shape, -np.inf), np.zeros(2), np.ones(2))
    assert np.all(found == -np.inf)


@pytest.mark.parametrize("sd", [0.5, 2.9, 3.1, 10.0, 30.0, 100.0])
def test_probabilities_of_wide_predictors(sd):
    """To a wide normal a logistic function is nearly a step."""
    mean = np.array([-2.0 * sd, -0.5, 0.0, 3.0])
    found, spread = average_in_blocks(lambda eta: (expit(eta), expit(eta) * expit(-eta)), mean, np.full(4, sd**2))
    exact = np.exp(log_average(lambda eta, rows: log_expit(eta), mean, np.full(4, sd**2)))
    np.testing.assert_allclose(found, exact, atol=1e-6)
    np.testing.assert_allclose(spread, exact * (1 - exact), atol=1e-6)  # of a coin, whatever it was drawn by


@pytest.mark.parametrize("sd", [2.0, 4.0, 6.0])
def test_rates_of_wide_predictors(sd):
    found, _ = average_in_blocks(lambda eta: (np.exp(eta), np.exp(eta)), np.zeros(1), np.full(1, sd**2))
    np.testing.assert_allclose(found, np.exp(0.5 * sd**2), rtol=1e-6)


def test_few_nodes_are_enough_where_half_of_them_agree():
    """Whatever the spread, the answer is that of the many nodes."""
    rng = np.random.default_rng(3)
    mean, sd = rng.normal(0, 5, 300), np.exp(rng.uniform(-4, 6, 300))
    found = log_average(lambda eta, rows: log_expit(eta), mean, sd**2)
    exact, _ = quadrature._trapezoidal(lambda eta, rows: log_expit(eta), mean, sd, np.arange(300), quadrature._FINE)
    np.testing.assert_allclose(found, exact, atol=1e-11)
