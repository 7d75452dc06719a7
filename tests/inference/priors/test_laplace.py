"""The double-exponential prior against 50-digit quadrature and roots, and against numerical distributions."""

import time
from itertools import cycle, pairwise, product

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath.calculus.quadrature import GaussLegendre
from numpy.testing import assert_allclose
from scipy.integrate import cumulative_simpson
from scipy.stats import kstest, laplace

from bayes_sparse.inference.priors import Gaussian, Laplace

EPS = np.finfo(float).eps
PRIOR = Laplace()
CURVATURES = (1e-12, 1.0, 1e12, 3e-5, 7e4)
Z = (0.0, 1e-3, 0.9, 1.5, 5.0, 40.0, 1e3)
NODES = GaussLegendre(mpmath.mp).calc_nodes(6, 180)  # 96 nodes, 54 digits
B = (1e-200, 1e-8, 1e-2, 1.0, 4.9, 20.0, 1e6)


def problem(pairs):
    """Coordinates with the given z = sqrt(h)|u| and b = alpha/(2 sqrt h), curvatures and signs in turn."""
    z, b = np.array(list(pairs)).T
    h = np.array([value for value, _ in zip(cycle(CURVATURES), z, strict=False)])
    signs = np.where(np.arange(len(z)) % 2, -1.0, 1.0)
    return h, signs * z / np.sqrt(h), 2 * np.sqrt(h) * b


def exponent(x, h, u, alpha):
    return -h / 2 * (x - u) ** 2 - alpha / 2 * abs(x)


def cuts(h, u, alpha):
    """Where the posterior's mass is: points between which each piece is smooth, 50 digits and more covered."""
    points = [h * 0]
    for side in (-1, 1):
        peak, slope = max(side * u - alpha / (2 * h), h * 0), max(alpha / 2 - side * u * h, h * 0)
        length = 1 / max(h**0.5, slope)
        points += [side * max(peak + k * length, h * 0) for k in (-16, -6, 0, 2, 6, 16, 40, 130)]
    return sorted(set(points))


def quadrature(h, u, alpha):
    """Log integral, mean and variance by the definition: Gauss-Legendre piece by piece, with 50 digits."""
    with mpmath.workdps(50):
        h, u, alpha = (mpmath.mpf(float(v)) for v in (h, u, alpha))
        top = max(exponent(x, h, u, alpha) for x in cuts(h, u, alpha))
        sums = [mpmath.mpf(0)] * 3
        for low, high in pairwise(cuts(h, u, alpha)):
            for node, weight in NODES:
                x = (low + high + (high - low) * node) / 2
                mass = weight * (high - low) / 2 * mpmath.exp(exponent(x, h, u, alpha) - top)
                sums = [total + mass * x**power for power, total in enumerate(sums)]
        mean = sums[1] / sums[0]
        return float(mpmath.log(alpha / 4 * sums[0]) + top), float(mean), float(sums[2] / sums[0] - mean**2)


def test_integral_and_moments_against_quadrature():
    h, u, alpha = problem(product(Z, B))
    truth = np.array([quadrature(*case) for case in zip(h, u, alpha, strict=True)])
    z, b = np.sqrt(h) * np.abs(u), alpha / (2 * np.sqrt(h))
    log_f, mean, variance = truth.T
    # Rounding of z and b moves the truncation point b - z by EPS (b + z); the rest are roundings of the terms.
    error = np.abs(PRIOR.log_integral(h, u, alpha) - log_f)
    assert np.all(error <= 8 * EPS * (1 + np.abs(log_f) + np.abs(np.log(b)) + z))
    got_mean, got_variance = PRIOR.moments(h, u, alpha)
    deviation = np.sqrt(variance)
    slack = 1 + np.sqrt(h) * deviation * (b + z)
    assert np.all(np.abs(got_mean - mean) <= 16 * EPS * (np.abs(mean) + deviation * slack))
    # The textbook form is used up to 3 deviations into the tail, where it costs two digits.
    assert np.all(np.abs(got_variance - variance) <= 256 * EPS * variance * slack)


def mills(x):
    return mpmath.sqrt(mpmath.pi / 2) * mpmath.erfc(x / mpmath.sqrt(2)) * mpmath.exp(x**2 / 2)


def slope(z, b):
    """d log f / d log b, from the paper's equation 13."""
    near, far = mills(b - z), mills(b + z)
    return 1 + b**2 - b * (2 + z * (near - far)) / (near + far)


def true_best(h, u):
    """The root of the slope; 90 digits because near z = 1 it is of the order (z^2 - 1)^2 all along."""
    with mpmath.workdps(90):
        h, u = mpmath.mpf(float(h)), mpmath.mpf(float(u))
        z, over = mpmath.sqrt(h) * abs(u), h * u**2 - 1
        least = mpmath.log(1 / mpmath.sqrt(over))
        bracket = (least - mpmath.mpf("0.1"), least + mpmath.log(2) + mpmath.mpf("0.1"))
        log_b = mpmath.findroot(lambda v: slope(z, mpmath.exp(v)), bracket, solver="anderson", tol=1e-75, verify=False)
        return mpmath.exp(log_b) * 2 * mpmath.sqrt(h)


def test_best_against_roots_of_many_digits():
    offsets = [10.0**k for k in range(-12, -2)] + [0.01, 0.03, 0.1, 0.15, 0.16, 0.17, 0.2, 0.3, 0.41, 0.44, 0.6]
    offsets += [1.0, 1.5, 2.0, 3.0, 5.0, 9.0, 20.0, 36.0, 40.0, 99.0, 300.0, 999.0]
    h, u, _ = problem((1 + offset, 1.0) for offset in offsets)
    alpha = PRIOR.best(h, u)
    truth = [true_best(*case) for case in zip(h, u, strict=True)]
    error = np.array([float(abs(mpmath.mpf(a) / t - 1)) for a, t in zip(alpha, truth, strict=True)])
    square = h * u**2
    assert np.all(error <= 1e-12 + 4 * EPS * square / (square - 1))
    # h u^2 - 1 is computed with twice the digits, so in truth nothing is lost near 1 either.
    assert np.all(error <= 1e-13)


def test_best_at_the_last_digit_above_one():
    h = np.array([1.0, 1e-12, 7e4])
    u = 1 / np.sqrt(h)
    while np.any(np.isinf(PRIOR.best(h, u))):
        u = np.where(np.isinf(PRIOR.best(h, u)), np.nextafter(u, np.inf), u)
    with mpmath.workdps(60):
        over = np.array([float(mpmath.mpf(a) * mpmath.mpf(b) ** 2 - 1) for a, b in zip(h, u, strict=True)])
    assert np.all((over > 0) & (over < 1e-15))
    assert_allclose(PRIOR.best(h, u), 4 * np.sqrt(h / over), rtol=1e-14)  # the limit b* = 2/sqrt(z^2 - 1)


@given(
    square=st.one_of(st.floats(0, 2), st.floats(2, 1e6), st.floats(1 - 1e-12, 1 + 1e-12)),
    exponent=st.floats(-12, 12),
    sign=st.sampled_from([-1.0, 1.0]),
)
def test_prunes_what_the_gaussian_prunes(square, exponent, sign):
    h = np.array([10.0**exponent])
    u = sign * np.sqrt(square / h)
    ours, theirs = PRIOR.best(h, u), Gaussian().best(h, u)
    assert np.array_equal(np.isinf(ours), np.isinf(theirs))
    if abs(square - 1) > 1e-14:
        assert np.isinf(ours[0]) == (square < 1)
    assert ours[0] > 0


@given(offset=st.floats(-12, 3), exponent=st.floats(-6, 6), power=st.integers(-15, 15), c=st.floats(1e-3, 1e3))
def test_scale_law(offset, exponent, power, c):
    """Other units: alpha*(c^2 h, u/c) = c alpha*(h, u), to the last bit if c is a power of two."""
    h = np.array([10.0**exponent])
    u = (1 + 10.0**offset) / np.sqrt(h)
    alpha = PRIOR.best(h, u)
    assert np.array_equal(PRIOR.best(h * 4.0**power, u / 2.0**power), alpha * 2.0**power)
    over = h * u**2 - 1
    if over > 1e-9:  # c^2 h and u/c are rounded, which moves h u^2 by a few roundings
        assert_allclose(PRIOR.best(c**2 * h, u / c), c * alpha, rtol=float(1e-12 + 8 * EPS * (1 + over[0]) / over[0]))


@given(z=st.one_of(st.floats(0, 1), st.floats(1.2, 3), st.floats(3, 1e3)), h=st.sampled_from(CURVATURES))
def test_integral_has_one_maximum_and_it_is_best(z, h):
    grid = np.exp(np.linspace(-20, 10, 301))
    wide = np.ones(301)
    h, u = h * wide, z / np.sqrt(h) * wide
    alpha = 2 * np.sqrt(h) * grid
    value = PRIOR.log_integral(h, u, alpha)
    noise = 32 * EPS * (20 + np.abs(value))  # of a difference of neighbours
    rise = np.diff(value)
    rises, falls = np.flatnonzero(rise > noise[1:]), np.flatnonzero(rise < -noise[1:])
    best = PRIOR.best(h[:1], u[:1])
    if z <= 1:
        assert not falls.size
        assert np.isinf(best[0])
        assert np.all(value <= PRIOR.log_integral(h[:1], u[:1], best) + noise)
    else:
        assert falls.size
        assert rises.max() < falls.min()
        assert np.all(value <= PRIOR.log_integral(h[:1], u[:1], best) + noise)
        nearby = best * np.array([0.99, 1.01])
        assert np.all(PRIOR.log_integral(h[:2], u[:2], nearby) < PRIOR.log_integral(h[:1], u[:1], best))


PAIRS = [(0.0, 1.0), (0.1, 1e4), (0.5, 1e9), (2.0, 1.4), (3.0, 0.5), (5.0, 5.0), (40.0, 1e6), (1e3, 1e-3), (6.0, 9.2)]


def numerical_posterior(h, u, alpha):
    """A grid over the posterior's mass and the unnormalised density on it, both halves apart at zero."""
    pieces = cuts(h, u, alpha)
    x = np.concatenate([np.linspace(a, b, 801)[:-1] for a, b in pairwise(pieces)])
    height = exponent(x, h, u, alpha)
    return x, np.exp(height - height.max())


def test_draws_have_the_posterior_distribution():
    h, u, alpha = problem(PAIRS)
    draws = PRIOR.draw(h, u, alpha, 5000, np.random.default_rng(11))
    assert draws.shape == (5000, len(PAIRS))
    for i in range(len(PAIRS)):
        x, density = numerical_posterior(h[i], u[i], alpha[i])
        cdf = cumulative_simpson(density, x=x / np.ptp(x), initial=0)
        assert draws[:, i].min() > x[0]
        assert draws[:, i].max() < x[-1]
        result = kstest(draws[:, i], lambda v, x=x, cdf=cdf: np.interp(v, x, cdf / cdf[-1]))
        assert result.pvalue > 1e-3
    mean, variance = PRIOR.moments(h, u, alpha)
    assert_allclose((draws.mean(axis=0) - mean) / np.sqrt(variance / 5000), 0, atol=4)
    off_diagonal = np.corrcoef(draws.T)[np.triu_indices(len(PAIRS), 1)]
    assert np.abs(off_diagonal).max() < 4.5 / np.sqrt(5000)


def test_density_integrates_to_one_and_follows_bayes():
    h, u, alpha = problem(PAIRS)
    for i in range(len(PAIRS)):
        one = h[i : i + 1], u[i : i + 1], alpha[i : i + 1]
        x, _ = numerical_posterior(*(v[0] for v in one))
        log_density = PRIOR.log_density(x[:, None], *one)
        assert_allclose(np.trapezoid(np.exp(log_density[:, 0]), x), 1, rtol=2e-4)  # the grid's own error
        bayes = -0.5 * one[0] * (x[:, None] - one[1]) ** 2 + PRIOR.log_prior(x[:, None], one[2])
        bayes = bayes - PRIOR.log_integral(*one)
        scale = np.abs(bayes) + h[i] * u[i] ** 2 + alpha[i] * np.abs(x[:, None]) + 50
        assert np.all(np.abs(log_density - bayes) <= 8 * EPS * scale)


def test_prior_is_scipys():
    alpha = np.array([1e-3, 1.0, 7e5])
    x = np.array([[-2.0, 0.0, 1e-6], [3.0, 0.5, -2e-5]])
    assert_allclose(PRIOR.log_prior(x, alpha), laplace.logpdf(x, scale=2 / alpha), rtol=1e-14, atol=1e-14)
    assert_allclose(PRIOR.log_prior(x[0], alpha), laplace.logpdf(x[0], scale=2 / alpha), rtol=1e-14, atol=1e-14)


def test_spike_and_flat_limits():
    h, u, alpha = np.array([2.0, 2.0]), np.array([-1.5, 1.5]), np.array([np.inf, 0.0])
    assert_allclose(PRIOR.log_integral(h, u, alpha), [-0.5 * 2 * 1.5**2, -np.inf])
    mean, variance = PRIOR.moments(h, u, alpha)
    assert_allclose(mean, [0, 1.5], rtol=1e-14)
    assert_allclose(variance, [0, 0.5], rtol=1e-14)
    assert_allclose(PRIOR.mode(h, u, alpha), [0, 1.5])
    assert_allclose(PRIOR.degrees_of_freedom(h, u, alpha), [0, 1], rtol=1e-14)
    assert np.all(PRIOR.draw(h, u, np.full(2, np.inf), 3, np.random.default_rng(0)) == 0)
    mixed = PRIOR.draw(h, u, np.array([np.inf, 1.0]), 3, np.random.default_rng(0))
    assert np.all(mixed[:, 0] == 0)
    assert np.all(mixed[:, 1] != 0)
    x = np.array([[0.0, 1.0], [0.1, 1.0]])
    assert np.array_equal(PRIOR.log_density(x, h, u, alpha)[:, 0], [0, -np.inf])
    assert np.array_equal(PRIOR.log_prior(x, alpha), [[0, -np.inf], [-np.inf, -np.inf]])


@pytest.mark.parametrize("alpha", [1e-300, 1e-30, 1e30, 1e300])
@pytest.mark.parametrize("h", [1e-12, 1e12])
def test_no_overflow(h, alpha):
    """Very wide: the likelihood's own integral times the prior's height; very narrow: the likelihood at zero."""
    u = 3 / np.sqrt(h)
    one = np.array([h]), np.array([u]), np.array([alpha])
    wide = np.log(alpha) - np.log(4) + 0.5 * np.log(2 * np.pi / h)
    assert_allclose(PRIOR.log_integral(*one), wide if alpha < 1 else -4.5, rtol=1e-12)
    mean, variance = PRIOR.moments(*one)
    # Narrow: the prior's own variance, and the mean follows the gradient at zero; both may be below all doubles.
    assert_allclose(mean, u if alpha < 1 else 8 * h * u / alpha / alpha, rtol=1e-12, atol=4 * EPS / alpha)
    assert_allclose(variance, 1 / h if alpha < 1 else 8 / alpha / alpha, rtol=1e-12)


@given(z=st.floats(0, 50), b=st.floats(1e-6, 1e3))
def test_degrees_of_freedom_are_the_slope_of_the_mean(z, b):
    step = 1e-4
    h, u, alpha = np.ones(3), z + step * np.array([-1.0, 0, 1]), np.full(3, 2 * b)
    mean, variance = PRIOR.moments(h, u, alpha)
    gamma = PRIOR.degrees_of_freedom(h, u, alpha)
    assert np.all((gamma > 0) & (gamma <= 1))
    assert np.all(variance <= 1 + 8 * EPS)  # a log-concave prior cannot widen a likelihood of variance 1
    # The third derivative is of order 1 here, so the difference is right to step^2, and rounding adds EPS z/step.
    assert_allclose(gamma[1], (mean[2] - mean[0]) / (2 * step), atol=2 * step**2 + 2 * EPS * (z + 1) / step)


def test_mode_minimises_the_penalised_square():
    rng = np.random.default_rng(5)
    h, u, alpha = 10 ** rng.uniform(-3, 3, 200), rng.standard_normal(200), 10 ** rng.uniform(-4, 4, 200)
    mode = PRIOR.mode(h, u, alpha)
    kept = mode != 0
    assert 20 < kept.sum() < 180
    assert_allclose((h * (mode - u) + 0.5 * alpha * np.sign(mode))[kept] / (h * np.abs(u))[kept], 0, atol=1e-14)
    assert np.all((h * np.abs(u))[~kept] <= 0.5 * alpha[~kept])


def test_when_the_mode_at_the_best_alpha_is_not_zero():
    """At the threshold b* = z; METHODS: z^2 = 2.0637."""
    with mpmath.workdps(30):
        threshold = float(mpmath.findroot(lambda z: slope(z, z), 1.4) ** 2)
    assert round(threshold, 4) == 2.0637
    h = np.full(4, 3e-5)
    u = np.sqrt(threshold * np.array([0.5, 1 - 1e-9, 1 + 1e-9, 3]) / h)
    assert np.array_equal(PRIOR.mode(h, u, PRIOR.best(h, u)) > 0, [False, False, True, True])


def test_a_price_is_refused():
    with pytest.raises(ValueError, match=r"no price for a degree of freedom, but smoothness is 0\.5"):
        PRIOR.best(np.ones(2), np.ones(2), 0.5)


def test_two_thousand_coordinates_are_quick():
    rng = np.random.default_rng(7)
    h = 10 ** rng.uniform(-12, 12, 2000)
    u = np.sqrt((1 + 10 ** rng.uniform(-12, 6, 2000)) / h)

    def seconds():
        start = time.perf_counter()
        assert np.isfinite(PRIOR.best(h, u)).all()
        return time.perf_counter() - start

    assert min(seconds() for _ in range(10)) < 0.02
