"""Named likelihoods: densities and moments against scipy.stats, derivatives against many digits, also far out."""

from types import SimpleNamespace

import mpmath
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from numpy.testing import assert_allclose
from pytensor import function, grad
from pytensor.compile.mode import Mode
from scipy import stats
from scipy.special import expit, gammaln

import bayes_sparse as bs
from bayes_sparse import likelihoods
from bayes_sparse.inputs import at_data
from bayes_sparse.inputs.at_data import LikelihoodAtData
from bayes_sparse.inputs.likelihoods import (
    bernoulli,
    beta,
    binomial,
    compiled,
    gamma,
    negative_binomial,
    normal,
    ordinal,
    poisson,
    probit,
    student_t,
)
from tests.support import refused

pytestmark = pytest.mark.quick


def log_density(name, nu=4.0):
    """The log-density of one observation in mpmath's own words."""
    log, exp, gamma = mpmath.log, mpmath.exp, mpmath.loggamma

    def sizes(eta, y, log_a):
        a = exp(log_a)
        return a * (log_a - eta) - gamma(a) + (a - 1) * log(y) - a * y * exp(-eta)

    def levels(eta, y, *logs):
        cuts = [
            -mpmath.inf,
            mpmath.mpf(0),
            *(mpmath.fsum(map(exp, logs[: k + 1])) for k in range(len(logs))),
            mpmath.inf,
        ]
        return log(1 / (1 + exp(eta - cuts[int(y) + 1])) - 1 / (1 + exp(eta - cuts[int(y)])))

    def shares(eta, y, log_nu):
        a, b = exp(log_nu) / (1 + exp(-eta)), exp(log_nu) / (1 + exp(eta))
        return gamma(a + b) - gamma(a) - gamma(b) + (a - 1) * log(mpmath.mpf(y)) + (b - 1) * log(1 - mpmath.mpf(y))

    def t(eta, y, log_sigma):
        z = (y - eta) / exp(log_sigma)
        constant = gamma((nu + 1) / 2) - gamma(nu / 2) - log(nu * mpmath.pi) / 2 - log_sigma
        return constant - (nu + 1) / 2 * log(1 + z**2 / nu)

    def negative(eta, y, log_r):
        r, mu = exp(log_r), exp(eta)
        return gamma(y + r) - gamma(r) - gamma(y + 1) + r * log(r / (r + mu)) + y * (eta - log(r + mu))

    return {
        "normal": lambda e, y, s: -(((y - e) / exp(s)) ** 2) / 2 - s - log(2 * mpmath.pi) / 2,
        "student_t": t,
        "bernoulli": lambda e, y: y * e - log(1 + exp(e)),
        "probit": lambda e, y: log(mpmath.erfc((1 - 2 * y) * e / mpmath.sqrt(2)) / 2),
        "binomial": lambda e, y: gamma(10) - gamma(y + 1) - gamma(10 - y) + y * e - 9 * log(1 + exp(e)),
        "ordinal": levels,
        "gamma": sizes,
        "beta": shares,
        "poisson": lambda e, y: y * e - exp(e) - gamma(y + 1),
        "negative_binomial": negative,
    }[name]


CASES = [
    (normal(), [-3.0, 0.0, 2.5], [-1.0, 0.0, 4.0], [0.4]),
    (normal(), [-1e6, 1e6], [0.0, 1.0], [-2.0]),
    (student_t(), [-3.0, 0.0, 2.5], [-1.0, 0.0, 4.0], [0.4]),
    (student_t(nu=2.5), [-1e5, 30.0, 1e5], [0.0, 1.0, 2.0], [-2.0]),
    (bernoulli(), [-3.0, -0.2, 0.0, 1.7], [0.0, 1.0], []),
    (bernoulli(), [-40.0, -20.0, 20.0, 40.0], [0.0, 1.0], []),
    (probit(), [-3.0, -0.2, 0.0, 1.7], [0.0, 1.0], []),
    (probit(), [-30.0, -4.001, -3.999, 3.999, 4.001, 30.0], [0.0, 1.0], []),
    (poisson(), [-3.0, 0.0, 2.0, 6.0], [0.0, 1.0, 7.0, 200.0], []),
    (poisson(), [-50.0, 20.0], [0.0, 3.0], []),
    (negative_binomial(), [-3.0, 0.0, 2.0, 6.0], [0.0, 1.0, 7.0, 200.0], [0.4]),
    (binomial(trials=9), [-40.0, -3.0, 0.0, 1.0, 40.0], [0.0, 1.0, 7.0, 9.0], []),
    (ordinal(levels=4), [-60.0, -3.0, 0.0, 0.7, 60.0], [0.0, 1.0, 2.0, 3.0], [-3.0, 0.8]),
    (gamma(), [-3.0, 0.0, 2.5, 30.0], [1e-3, 0.5, 7.0, 300.0], [0.4]),
    (gamma(), [-1.0, 0.0, 2.0], [0.5, 1.01, 7.0], [10.0]),
    (beta(), [-3.0, -0.2, 0.0, 1.7], [1e-3, 0.3, 0.97], [1.2]),
    (beta(), [-120.0, -70.0, 30.0, 81.0], [1e-3, 0.3, 0.97], [1.2]),
    (beta(), [-3.0, 0.0, 1.0], [0.01, 0.3, 0.9], [10.0]),
    (negative_binomial(), [-30.0, 30.0], [0.0, 3.0], [3.0]),
    (negative_binomial(), [-1.0, 0.0, 2.0], [0.0, 1.0, 30.0], [3.5]),
    (negative_binomial(), [-1.0, 0.0, 2.0], [0.0, 1.0, 7.0], [11.5]),
]


@pytest.mark.parametrize(("likelihood", "etas", "ys", "theta"), CASES)
def test_value_and_three_derivatives(likelihood, etas, ys, theta):
    eta, y = (np.ravel(g) for g in np.meshgrid(etas, ys))
    ours = np.array(compiled(likelihood)(eta, y, *theta))
    f = log_density(likelihood.name, *([likelihood.nu] if likelihood.name == "student_t" else []))
    with mpmath.workdps(80):
        exact = [
            [mpmath.diff(lambda e, y=yi: f(e, y, *theta), mpmath.mpf(ei), order) for ei, yi in zip(eta, y, strict=True)]
            for order in range(4)
        ]
        truth = np.array([[float(v) for v in row] for row in exact])
    assert np.isfinite(ours).all()
    # Terms of size |eta|, y and log-factorials are added: rounding relative to the largest of them.
    size = 1 + np.abs(eta) + np.abs(y) * np.log1p(np.abs(y)) + np.abs(truth[0])
    assert_allclose(ours[0], truth[0], rtol=1e-11, atol=1e-13 * size.max())
    for order in (1, 2, 3):
        assert_allclose(ours[order], truth[order], rtol=1e-9, atol=1e-13 * max(1.0, np.abs(truth[order]).max()))


def test_bernoulli_far_out():
    eta, y = np.array([-800.0, -800.0, 800.0, 800.0]), np.array([0.0, 1.0, 0.0, 1.0])
    density, first, second, third = compiled(bernoulli())(eta, y)
    assert_allclose(density, [0.0, -800.0, -800.0, 0.0], atol=1e-300)
    assert_allclose(first, [0.0, 1.0, -1.0, 0.0], atol=1e-15)
    assert_allclose(second, 0.0, atol=1e-300)
    assert_allclose(third, 0.0, atol=1e-300)


def test_probit_far_out():
    """Against the asymptotic series in 1/x: what it leaves out at x = 100 is below the tolerances."""
    x = np.array([100.0, 1e3, 1e6, 1e50])
    for sign, y in ((1.0, 0.0), (-1.0, 1.0)):
        density, first, second, third = compiled(probit())(sign * x, np.full(4, y))
        assert_allclose(density, -(x**2) / 2 - np.log(x * np.sqrt(2 * np.pi)) - x**-2.0 + 2.5 * x**-4.0, rtol=1e-13)
        assert_allclose(first, -sign * (x + 1 / x - 2 * x**-3.0 + 10 * x**-5.0), rtol=1e-13)
        assert_allclose(second, -1 + x**-2.0 - 6 * x**-4.0, rtol=1e-10)
        assert_allclose(third, -sign * (2 * x**-3.0 - 24 * x**-5.0 + 300 * x**-7.0), rtol=1e-8)
    assert not np.any(compiled(probit())(x, np.ones(4)))  # nothing is left on the right side
    assert not np.any(compiled(probit())(-x, np.zeros(4)))


FAR = [-1e5, -300.0, -40.0, -6.0, -0.8, -0.6, 0.0, 0.7, 0.75, 5.0, 39.0, 300.0, 1e5]
AS_DECLARED = [
    (probit(), FAR, [0.0, 1.0], []),
    (binomial(trials=9), FAR, [0.0, 4.0, 9.0], []),
    (ordinal(levels=4), FAR, [0.0, 1.0, 2.0, 3.0], [-3.0, 0.8]),
    (gamma(), [-6.0, 0.0, 5.0, 39.0, 600.0], [0.1, 3.0], [0.4]),
    (beta(), [-300.0, -40.0, -0.6, 5.0, 39.0, 300.0], [0.1, 0.7], [1.2]),
]


@pytest.mark.parametrize(("likelihood", "etas", "ys", "theta"), AS_DECLARED)
def test_what_pymc_sees_is_the_same_far_out(likelihood, etas, ys, theta):
    eta, y = (np.ravel(g) for g in np.meshgrid(etas, ys))
    at = pt.dvector("eta")
    distribution, arguments = likelihood.distribution(at, *(pt.constant(np.exp(log)) for log in theta))
    density = pm.logp(distribution.dist(**arguments), y)
    mode = Mode(linker="py", optimizer="fast_run").excluding("fusion")
    found, slope = function([at], [density, grad(density.sum(), at)], mode=mode)(eta)
    truth = compiled(likelihood)(eta, y, *theta)
    assert_allclose(found, truth[0], rtol=1e-12, atol=1e-13)
    assert_allclose(slope, truth[1], rtol=1e-10, atol=1e-13)


def test_poisson_far_out():
    eta, y = np.full(3, -700.0), np.array([0.0, 1.0, 5.0])
    density, first, second, third = compiled(poisson())(eta, y)
    assert_allclose(density, [0.0, -700.0, -3500.0 - np.log(120.0)], atol=1e-300)
    assert_allclose(first, y, atol=1e-300)
    assert_allclose(second, 0.0, atol=1e-300)
    assert_allclose(third, 0.0, atol=1e-300)


def test_negative_binomial_far_out():
    eta, y = np.array([-700.0, -700.0, 600.0]), np.array([0.0, 2.0, 2.0])
    values = compiled(negative_binomial())(eta, y, np.log(3.0))
    assert all(np.isfinite(v).all() for v in values)
    assert_allclose(values[0][0], 0.0, atol=1e-12)
    assert_allclose(values[1], [0.0, 2.0, -3.0], atol=1e-12)  # y, then -dispersion
    assert_allclose(values[2], 0.0, atol=1e-12)


def test_large_counts_leave_digits_to_search_by():
    """What the log density changes by along the predictor, where its own terms are of size 1e11."""
    y, theta, etas = 3e10, 0.4, [22.0, 24.0, 24.1, 27.0]
    values = compiled(negative_binomial())(np.array(etas), np.full(4, y), theta)
    with mpmath.workdps(60):
        f = log_density("negative_binomial")
        truth = [float(f(mpmath.mpf(eta), y, theta) - f(mpmath.mpf(etas[1]), y, theta)) for eta in etas]
        slopes = [float(mpmath.diff(lambda e: f(e, y, theta), mpmath.mpf(eta))) for eta in etas]
    assert_allclose(values[0] - values[0][1], truth, atol=1e-12)
    assert_allclose(values[1], slopes, rtol=1e-12)


@pytest.mark.parametrize(("likelihood", "etas", "ys", "theta"), [c for c in CASES if hasattr(c[0], "terms")])
def test_closed_forms_take_many_predictors_at_once(likelihood, etas, ys, theta):
    y = np.resize(ys, 5)
    eta = np.array([np.resize(etas[k:], 5) for k in range(len(etas))])
    one_by_one = [compiled(likelihood)(own, y, *theta) for own in eta]
    assert_allclose(compiled(likelihood)(eta, y, *theta), np.stack(one_by_one, axis=1), rtol=1e-14)


@pytest.mark.parametrize("likelihood", [c[0] for c in CASES if c[0].name != "normal"], ids=lambda own: own.name)
def test_likelihoods_by_name_compile_nothing(likelihood, monkeypatch):
    """A normal one is never called: what is computed of it comes from its residuals."""
    monkeypatch.setattr("bayes_sparse.inputs.likelihoods._likelihood.compile_pointwise", None)
    compiled(likelihood)


def test_sizes_and_shares_far_out():
    """Nothing overflows; a share's log density ends in straight lines."""
    eta = np.array([-1e4, -1e3, 1e3, 1e4])
    for likelihood in (gamma(), beta(), binomial(trials=9)):
        assert np.isfinite(compiled(likelihood)(eta, np.full(4, 0.5), *[0.3] * len(likelihood.nuisance))).all()
    assert_allclose(compiled(beta())(eta, np.full(4, 0.5), 0.3)[1], [1, 1, -1, -1])


ETA = np.array([-2.0, 0.0, 1.5])


def levels(eta, gap):
    """Three ordered levels, a distribution of its own at each predictor."""
    edges = np.array([expit(cut - eta) for cut in (-np.inf, 0.0, gap, np.inf)])
    own = [stats.rv_discrete(values=(range(3), p)) for p in np.diff(edges, axis=0).T]
    return SimpleNamespace(
        dist=own[0],
        mean=lambda: np.array([one.mean() for one in own]),
        var=lambda: np.array([one.var() for one in own]),
        logpmf=lambda y: np.array([one.logpmf(k) for one, k in zip(own, y, strict=True)]),
    )


SCIPY = [
    (normal(), (0.7,), lambda e: stats.norm(e, 0.7)),
    (student_t(nu=5.0), (0.7,), lambda e: stats.t(5.0, e, 0.7)),
    (bernoulli(), (), lambda e: stats.bernoulli(expit(e))),
    (probit(), (), lambda e: stats.bernoulli(stats.norm.cdf(e))),
    (poisson(), (), lambda e: stats.poisson(np.exp(e))),
    (binomial(trials=9), (), lambda e: stats.binom(9, expit(e))),
    (ordinal(levels=3), (0.7,), lambda e: levels(e, 0.7)),
    (gamma(), (2.5,), lambda e: stats.gamma(2.5, scale=np.exp(e) / 2.5)),
    (beta(), (2.5,), lambda e: stats.beta(2.5 * expit(e), 2.5 * expit(-e))),
    (negative_binomial(), (2.5,), lambda e: stats.nbinom(2.5, 2.5 / (2.5 + np.exp(e)))),
]


@pytest.mark.parametrize(("likelihood", "nuisance", "truth"), SCIPY)
def test_moments_and_densities_are_scipys(likelihood, nuisance, truth):
    mean, variance = likelihood.moments(ETA, *nuisance)
    reference = truth(ETA)
    assert_allclose(mean, reference.mean(), rtol=1e-12, atol=1e-15)
    assert_allclose(variance, reference.var(), rtol=1e-12)
    y = np.array([0.2, 0.9, 0.4]) if likelihood.name in ("gamma", "beta") else np.array([0.0, 1.0, 1.0])
    density = reference.logpmf(y) if hasattr(reference.dist, "pmf") else reference.logpdf(y)
    assert_allclose(compiled(likelihood)(ETA, y, *np.log(nuisance))[0], density, rtol=1e-10)
    logs = np.log([nuisance])
    assert_allclose(likelihood.log_density(y, ETA[None], logs)[0], density, rtol=1e-10)
    drawn = likelihood.draw(np.tile(ETA, (20000, 1)), np.random.default_rng(0), *np.array(nuisance)[:, None, None])
    assert np.all(np.abs(drawn.mean(axis=0) - mean) < 5 * np.sqrt(variance / 20000))


def test_a_student_t_of_few_degrees_has_no_variance():
    assert np.isinf(student_t(nu=2.0).moments(ETA, 1.0)[1]).all()
    with pytest.raises(ValueError, match="nu > 0"):
        student_t(nu=0.0)


@pytest.mark.parametrize("likelihood", [normal(), student_t(), bernoulli(), probit(), poisson(), negative_binomial()])
def test_starts_are_usable(likelihood):
    y = np.array([0.0, 1.0, 1.0, 0.0, 1.0])
    start = likelihood.start(y)
    assert start.shape == (len(likelihood.nuisance),)
    assert np.isfinite(np.log(start)).all()
    assert np.isfinite(likelihood.bias_sd(y))
    assert likelihood.bias_sd(y) > 0
    assert 0 < likelihood.pseudo_sd(y) < np.inf
    assert likelihood.wrong(y) is None


@pytest.mark.parametrize("likelihood", [bernoulli(), probit(), poisson(), negative_binomial()])
def test_targets_a_likelihood_cannot_take(likelihood):
    assert likelihood.wrong(np.array([0.0, 0.5])) is not None
    assert likelihood.wrong(np.array([0.0, -1.0])) is not None


@pytest.mark.parametrize("name", ["normal", "student_t", "bernoulli", "probit", "poisson", "negative_binomial"])
def test_names_and_settings_come_back(name):
    found = likelihoods.resolve(name)
    assert found.name == name
    assert likelihoods.resolve(found) is found
    stored = {"name": name, **({"nu": 7.0} if name == "student_t" else {})}
    assert likelihoods.from_settings(stored) == (student_t(nu=7.0) if name == "student_t" else found)


def test_an_unknown_likelihood_lists_the_real_ones():
    with pytest.raises(ValueError, match=r"no likelihood 'poison'.*bernoulli.*pm.Model.*Did you mean 'poisson'"):
        likelihoods.resolve("poison")


def test_names_that_other_packages_have():
    refused(lambda: likelihoods.resolve("gaussian"), "called 'normal' here")
    refused(lambda: bs.fit("ard_gaussian", (np.eye(4), np.arange(4.0)), likelihood="quantile"), "pm.Model", "student_t")


@pytest.mark.parametrize(("q", "share"), [(0.5, 0.80), (0.9, 0.58)])
def test_why_there_is_none_for_quantiles(q, share):
    """Sds by its curvature beside those of quantiles, of normal noise with the scale that fits best.

    The curvature of an asymmetric Laplace density is f / scale on average, f the density of the noise at the quantile,
    and the best scale the mean of its loss. The sd of a quantile is sqrt(q (1 - q)) / f (Koenker 2005).
    """
    noise = np.random.default_rng(0).standard_normal(1_000_000) - stats.norm.ppf(q)
    scale, f = np.mean(noise * (q - (noise < 0))), stats.norm.pdf(stats.norm.ppf(q))
    assert_allclose(np.sqrt(scale / f) / (np.sqrt(q * (1 - q)) / f), share, atol=0.006)


@pytest.mark.parametrize("name", ["student_t", "bernoulli", "probit", "poisson", "negative_binomial"])
def test_the_value_alone_is_that_of_the_whole(name):
    """Many draws are judged by the value without its derivatives, by formulas of its own."""
    likelihood, rng = likelihoods.resolve(name), np.random.default_rng(0)
    y = rng.integers(0, 2, size=50).astype(float)
    pointwise = LikelihoodAtData(likelihood, y)
    eta, theta = 3 * rng.standard_normal((7, 50)), rng.standard_normal((7, len(likelihood.nuisance)))
    expected = np.stack([pointwise(*draw)[0] for draw in zip(eta, theta, strict=True)])
    assert_allclose(pointwise.many(eta, theta), expected, rtol=1e-12, atol=1e-14)
    assert_allclose(pointwise.many(eta, theta[:1])[0], expected[0], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", ["poisson", "student_t", "bernoulli", "negative_binomial"])
def test_very_many_rows_are_judged_block_by_block(name, monkeypatch):
    """What is one array, as the last two derivatives of a Poisson are, stays one."""
    likelihood, rng = likelihoods.resolve(name), np.random.default_rng(0)
    pointwise = LikelihoodAtData(likelihood, rng.integers(0, 2, size=50).astype(float))
    eta, theta = rng.standard_normal(50), rng.standard_normal(len(likelihood.nuisance))
    whole = pointwise(eta, theta)
    monkeypatch.setattr(at_data, "_ROWS", 16)
    blocks = pointwise(eta, theta)
    assert_allclose(blocks, whole, rtol=1e-14)
    assert (blocks[3] is blocks[2]) == (whole[3] is whole[2])


def test_an_outlier_beyond_what_can_be_squared_has_a_density():
    far = likelihoods.student_t().log_density(np.zeros(1), np.full((1, 1), 1e200), np.zeros((1, 1)))
    log_pi_nu = np.log(np.pi * 4.0)
    expected = gammaln(2.5) - gammaln(2.0) - 0.5 * log_pi_nu - 5 * (np.log(1e200) - np.log(2.0))
    assert_allclose(far, expected, rtol=1e-12)
