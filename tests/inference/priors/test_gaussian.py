"""The normal prior against scipy's normal distribution, 50-digit closed forms and numerical maximisation."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import minimize_scalar
from scipy.stats import kstest, norm

from bayes_sparse.common.registry import lookup, options
from bayes_sparse.inference.priors import Gaussian
from bayes_sparse.inference.priors.gaussian import excess

pytestmark = pytest.mark.quick

EPS = np.finfo(float).eps
PRIOR = Gaussian()


def cases():
    rng = np.random.default_rng(0)
    h, alpha = 10 ** rng.uniform(-3, 3, 40), 10 ** rng.uniform(-3, 3, 40)
    return h, rng.standard_normal(40) * 3 / np.sqrt(h), alpha


def test_the_folder_is_the_registry():
    assert {"gaussian", "laplace"} <= set(options("bayes_sparse.inference.priors"))
    for name in options("bayes_sparse.inference.priors"):
        assert lookup("bayes_sparse.inference.priors", name, "prior")().name == name


def test_integral_is_the_density_of_the_centre():
    """u is the coordinate plus noise of variance 1/h; the likelihood lacks the factor sqrt(h/(2 pi))."""
    h, u, alpha = cases()
    truth = norm.logpdf(u, 0, np.sqrt(1 / h + 1 / alpha)) + 0.5 * np.log(2 * np.pi / h)
    assert_allclose(PRIOR.log_integral(h, u, alpha), truth, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("alpha", [1e-300, 1e-20, 1.0, 1e20, 1e300])
@pytest.mark.parametrize("h", [1e-12, 1.0, 1e12])
def test_extreme_precisions(h, alpha):
    u = 3 / np.sqrt(h)
    with mpmath.workdps(50):
        H, U, A = (mpmath.mpf(float(v)) for v in (h, u, alpha))
        log_f = (mpmath.log(A) - mpmath.log(A + H) - H * A * U**2 / (H + A)) / 2
        truth = float(log_f), float(H * U / (H + A)), float(1 / (H + A)), float(H / (H + A))
    h, u, alpha = (np.array([v]) for v in (h, u, alpha))
    mean, variance = PRIOR.moments(h, u, alpha)
    got = PRIOR.log_integral(h, u, alpha), mean, variance, PRIOR.degrees_of_freedom(h, u, alpha)
    # log h - log alpha is as large as 700, so the logarithm's error can be that many roundings of 1.
    assert_allclose(np.array(got)[:, 0], truth, rtol=1e-13, atol=1e-320)


def test_spike_and_flat_limits():
    h, u, alpha = np.array([2.0, 2.0]), np.array([-1.5, 1.5]), np.array([np.inf, 0.0])
    assert_allclose(PRIOR.log_integral(h, u, alpha), [-0.5 * 2 * 1.5**2, -np.inf])
    mean, variance = PRIOR.moments(h, u, alpha)
    assert_allclose(mean, [0, 1.5])
    assert_allclose(variance, [0, 0.5])
    assert_allclose(PRIOR.mode(h, u, alpha), [0, 1.5])
    assert_allclose(PRIOR.degrees_of_freedom(h, u, alpha), [0, 1])
    draws = PRIOR.draw(h, u, alpha, 5, np.random.default_rng(0))
    assert draws.shape == (5, 2)
    assert np.all(draws[:, 0] == 0)
    x = np.array([[0.0, 1.5], [0.1, 1.5]])
    top = norm.logpdf(0, 0, 0.5**0.5)
    assert_allclose(PRIOR.log_density(x, h, u, alpha), [[0, top], [-np.inf, top]])
    assert_allclose(PRIOR.log_prior(x, alpha), [[0, -np.inf], [-np.inf, -np.inf]])


def test_posterior_against_scipy():
    h, u, alpha = cases()
    mean, variance = PRIOR.moments(h, u, alpha)
    assert_allclose(mean, u / (1 + alpha / h), rtol=1e-14)
    assert_allclose(1 / variance, h + alpha, rtol=1e-14)
    x = mean + np.sqrt(variance) * np.linspace(-3, 3, 7)[:, None]
    assert_allclose(PRIOR.log_density(x, h, u, alpha), norm.logpdf(x, mean, np.sqrt(variance)), rtol=1e-12, atol=1e-12)
    assert_allclose(PRIOR.log_prior(x, alpha), norm.logpdf(x, 0, 1 / np.sqrt(alpha)), rtol=1e-12, atol=1e-12)
    assert_allclose(PRIOR.log_prior(x[2], alpha), PRIOR.log_prior(x, alpha)[2], rtol=0)
    bayes = -0.5 * h * (x - u) ** 2 + PRIOR.log_prior(x, alpha) - PRIOR.log_integral(h, u, alpha)
    assert_allclose(PRIOR.log_density(x, h, u, alpha), bayes, rtol=1e-10, atol=1e-10)


def test_draws_have_the_posterior_distribution():
    h, u, alpha = (v[:6] for v in cases())
    draws = PRIOR.draw(h, u, alpha, 4000, np.random.default_rng(3))
    mean, variance = PRIOR.moments(h, u, alpha)
    for i in range(6):
        assert kstest(draws[:, i], norm(mean[i], variance[i] ** 0.5).cdf).pvalue > 1e-3
    off_diagonal = np.corrcoef(draws.T)[np.triu_indices(6, 1)]
    assert np.abs(off_diagonal).max() < 4 / np.sqrt(4000)


@pytest.mark.parametrize("smoothness", [0.0, 0.3, 2.5])
def test_best_is_the_maximum(smoothness):
    h = np.array([1e-12, 0.7, 1e12, 2.0, 5.0])
    u = np.sqrt(np.array([7.0, 9.0, 1e6, 30.0, (1 + 2 * smoothness) * 0.999]) / h) * [1, -1, 1, -1, 1]
    alpha = PRIOR.best(h, u, smoothness)
    assert np.array_equal(np.isinf(alpha), [False, False, False, False, True])

    def loss(log_ratio, i):
        a = h[i : i + 1] * np.exp(log_ratio)
        J = PRIOR.log_integral(h[i : i + 1], u[i : i + 1], a) - smoothness * h[i] / (a + h[i])
        return -J[0]

    for i in range(4):
        found = minimize_scalar(loss, bounds=(-20, 10), args=(i,), method="bounded", options={"xatol": 1e-9})
        # A flat top in double precision fixes its place to about the square root of a rounding.
        assert_allclose(np.log(alpha[i] / h[i]), found.x, atol=1e-5)


@given(
    h=st.floats(1e-12, 1e12),
    near=st.integers(-6, 6),
    target=st.sampled_from([1.0, 0.5, 3.0, 1 + 1e-9]),
    sign=st.sampled_from([-1.0, 1.0]),
)
def test_rule_is_that_of_exact_arithmetic(h, near, target, sign):
    """Around h u^2 = 1, to the last digit of u, against rational numbers."""
    u = np.sqrt(target / h)
    u = sign * (u + near * np.spacing(u))
    exact = Fraction(h) * Fraction(float(u)) ** 2 - 1
    assert_allclose(excess(np.array([h]), np.array([u])), float(exact), rtol=4 * EPS, atol=EPS**2)
    alpha = PRIOR.best(np.array([h]), np.array([u]))[0]
    assert np.isinf(alpha) == (exact <= 0)
    if exact > 0:
        assert_allclose(alpha, float(Fraction(h) / exact), rtol=1e-14)


def test_exactly_one_and_zero():
    h, u = np.array([4.0, 1e-12, 1.0, 4.0]), np.array([0.5, 0.0, -1.0, np.nextafter(0.5, 1)])
    assert np.array_equal(np.isinf(PRIOR.best(h, u)), [True, True, True, False])
    assert np.isinf(PRIOR.best(h, u, 0.1)).all()
