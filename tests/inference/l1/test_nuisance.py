"""Nuisance parameters along a path: the best ones by closed form and root finding, their curvature by mpmath."""

from dataclasses import replace

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from bayes_sparse.inference.l1.path import best_theta, theta_curvature
from bayes_sparse.problem.design import Design
from bayes_sparse.problem.problem import Problem

from .problems import NONE, case, draw

WEIGHTS = [None, np.random.default_rng(1).uniform(0.1, 3, 60)]
weighted = pytest.mark.parametrize("weights", WEIGHTS, ids=["plain", "weighted"])


def made(name, weights=None, seed=0):
    problem = case(name, *draw(name, seed=seed), weights=weights).problem
    eta = 0.3 + problem.design.columns(np.arange(2)) @ np.array([0.5, -0.2])
    return problem, eta, np.ones(60) if weights is None else weights


def pull(theta):
    """A prior on the log scale."""
    return float(-2.0 * (theta[0] - 0.7) ** 2)


def dispersed(problem, eta, repeats, prior=None):
    """Log-likelihood of negative binomial counts as a function of log dispersion, in mpmath."""

    def total(t):
        a, out = mpmath.exp(t), mpmath.mpf(0)
        for y, e, c in zip(problem.y, eta, repeats, strict=True):
            mean = mpmath.exp(float(e))
            choose = mpmath.loggamma(y + a) - mpmath.loggamma(a) - mpmath.loggamma(y + 1)
            out += float(c) * (choose + a * mpmath.log(a / (a + mean)) + y * mpmath.log(mean / (a + mean)))
        return out if prior is None else out - 2 * (t - mpmath.mpf("0.7")) ** 2

    return total


@weighted
def test_the_noise_in_closed_form(weights):
    problem, eta, repeats = made("normal", weights)
    best = best_theta(problem, eta, problem.theta)
    assert_allclose(np.exp(2 * best), [np.sum(repeats * (problem.y - eta) ** 2) / repeats.sum()], rtol=1e-12)


def test_bounds_hold():
    problem, eta, _ = made("normal")
    tight = replace(problem, theta_bounds=np.array([[1.5, 2.0]]))
    assert_allclose(best_theta(tight, eta, np.array([1.7])), [1.5])
    assert_allclose(best_theta(problem, problem.y, problem.theta), problem.theta_bounds[:, 0])
    counts, eta, _ = made("negative_binomial")
    tight = replace(counts, theta_bounds=np.array([[3.0, 4.0]]))
    assert_allclose(best_theta(tight, eta, np.array([3.5])), [3.0], atol=1e-6)


def rise(problem, eta, repeats, prior=None):
    """Its derivative, by hand."""

    def slope(t):
        a, out = mpmath.exp(t), mpmath.mpf(0)
        for y, e, c in zip(problem.y, eta, repeats, strict=True):
            mean = mpmath.exp(float(e))
            change = mpmath.digamma(y + a) - mpmath.digamma(a) + mpmath.log(a / (a + mean)) + (mean - y) / (a + mean)
            out += float(c) * a * change
        return out if prior is None else out - 4 * (t - mpmath.mpf("0.7"))

    return slope


@pytest.mark.parametrize("prior", [None, pull], ids=["flat", "prior"])
@weighted
def test_the_dispersion_by_root_finding(weights, prior):
    problem, eta, repeats = made("negative_binomial", weights)
    root = float(mpmath.findroot(rise(problem, eta, repeats, prior), (-2.0, 3.0), solver="anderson", tol=1e-15))
    for start in (-3.0, 0.5, 6.0):
        best = best_theta(replace(problem, log_prior=prior), eta, np.array([start]))
        assert_allclose(best, [root], atol=3e-7)  # the square root of the rounding error of the height


def test_the_noise_under_a_prior():
    """A root of ``sum r^2 / s^2 - n - 4 (log s - 0.7)``."""
    problem, eta, _ = made("normal")
    square = float(np.sum((problem.y - eta) ** 2))
    root = mpmath.findroot(lambda t: square * mpmath.exp(-2 * t) - 60 - 4 * (t - mpmath.mpf("0.7")), 0.2)
    best = best_theta(replace(problem, log_prior=pull), eta, problem.theta)
    assert_allclose(best, [float(root)], atol=1e-7)


def two_parameters(seed=0):
    """A normal likelihood whose noise differs between two groups: two nuisance parameters, known by closed form."""
    rng = np.random.default_rng(seed)
    group = np.arange(60) % 2
    y = rng.standard_normal(60) * np.where(group == 0, 0.5, 3.0)

    def pointwise(eta, theta):
        log_sigma = theta[group]
        z, precision = y - eta, np.exp(-2 * log_sigma)
        return -0.5 * z**2 * precision - log_sigma, z * precision, 0 * z - precision, NONE

    problem = Problem(
        design=Design(rng.standard_normal((60, 2))),
        y=y,
        free=np.ones(2, dtype=bool),
        fixed_precision=NONE,
        pointwise=pointwise,
        offset=np.zeros(60),
        theta=np.zeros(2),
        theta_bounds=np.tile([-10.0, 10.0], (2, 1)),
    )
    return problem, group


def test_two_parameters():
    problem, group = two_parameters()
    eta = 0.1 * np.arange(60) / 60
    square = np.array([np.mean((problem.y - eta)[group == g] ** 2) for g in (0, 1)])
    best = best_theta(problem, eta, problem.theta)
    assert_allclose(best, 0.5 * np.log(square), atol=1e-5)
    bend, mixed, own = theta_curvature(problem, eta, best)
    assert_allclose(bend, 1 / square[group], rtol=1e-4)
    assert_allclose(mixed, 2 * ((problem.y - eta) / square[group])[:, None] * np.eye(2)[group], rtol=1e-4, atol=1e-9)
    assert_allclose(own, 60 * np.eye(2), rtol=1e-4, atol=1e-4)  # twice the rows of a group


@weighted
def test_how_the_noise_curves(weights):
    """Second derivatives of ``sum c (r^2 / (2 s^2) + log s)`` with s at its best."""
    problem, eta, repeats = made("normal", weights)
    theta = best_theta(problem, eta, problem.theta)
    bend, mixed, own = theta_curvature(problem, eta, theta)
    precision = repeats.sum() / np.sum(repeats * (problem.y - eta) ** 2)
    assert_allclose(bend, repeats * precision, rtol=1e-12)
    assert_allclose(mixed[:, 0], 2 * repeats * (problem.y - eta) * precision, rtol=1e-12)
    assert_allclose(own, [[2 * repeats.sum()]], rtol=1e-12)


@pytest.mark.parametrize("prior", [None, pull], ids=["flat", "prior"])
@weighted
def test_how_the_dispersion_curves(weights, prior):
    problem, eta, repeats = made("negative_binomial", weights)
    theta = np.array([0.4])
    bend, mixed, own = theta_curvature(replace(problem, log_prior=prior), eta, theta)
    total = dispersed(problem, eta, repeats, prior)
    assert_allclose(own, [[-float(mpmath.diff(total, 0.4, 2))]], rtol=1e-5)
    assert_allclose(own, [[-float(mpmath.diff(rise(problem, eta, repeats, prior), 0.4))]], rtol=1e-5)
    a, mean = np.exp(0.4), np.exp(eta)
    assert_allclose(bend, repeats * (a + problem.y) * a * mean / (a + mean) ** 2, rtol=1e-12)
    # d/dlog a of the slope y - (a + y) mean / (a + mean)
    along = a * mean * (problem.y - mean) / (a + mean) ** 2
    assert_allclose(mixed[:, 0], -repeats * along, rtol=1e-6, atol=1e-8)


def test_a_prior_on_the_noise_curves_too():
    problem, eta, _ = made("normal")
    theta = np.array([0.2])
    own = theta_curvature(replace(problem, log_prior=pull), eta, theta)[2]
    assert_allclose(own, [[2 * np.sum((problem.y - eta) ** 2) * np.exp(-0.4) + 4.0]], rtol=1e-5)


def test_nothing_to_find():
    problem, eta, _ = made("bernoulli")
    assert best_theta(problem, eta, NONE).size == 0
    bend, mixed, own = theta_curvature(problem, eta, NONE)
    p = 1 / (1 + np.exp(-eta))
    assert_allclose(bend, p * (1 - p), rtol=1e-12)
    assert mixed.shape == (60, 0)
    assert own.shape == (0, 0)


def test_scipy_agrees_over_weights_and_dispersion_together():
    """One joint search over everything smooth: an L1 path whose only column has a price of zero is that."""
    problem = case("negative_binomial", *draw("negative_binomial", M=2, seed=4), unpriced=(0, 1))
    point = problem.path().null
    joint = minimize(
        lambda x: -problem.likelihood(x[:3], x[3:]), np.append(problem.full(point) + 0.1, 1.0), options={"gtol": 1e-8}
    )
    assert_allclose(np.append(problem.full(point), point.theta), joint.x, atol=1e-5)
