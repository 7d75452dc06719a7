"""The Gibbs sampler that is to judge others: against quadrature, its own prior and NUTS."""

import shutil

import numpy as np
import pymc as pm
import pytest
import xarray as xr
from scipy.special import expit
from scipy.stats import kstest

from tests.reference.polya_gamma import (
    ARD,
    Horseshoe,
    draw_prior,
    gibbs,
    largest_gap,
    moments_agree,
    simulate,
    sweep,
)

PRIORS = {
    "ard": ARD(1.0, 1.0, 2.0),
    "nearly flat ard": ARD(0.1, 0.01, 2.0),
    "horseshoe": Horseshoe(0.3, 2.0),
}
# numba takes most of a minute to compile a matrix product; a C++ compiler, where there is one, a few seconds.
COMPILING = {"compile_kwargs": {"mode": "CVM"}} if shutil.which("g++") else {}


def data(n, M, random_seed=0):
    """Two weights that matter, the rest do not."""
    rng = np.random.default_rng(random_seed)
    X = rng.standard_normal((n, M))
    return X, simulate(np.column_stack([X, np.ones(n)]), np.array([1.5, -1.0, *np.zeros(M - 2), 0.3]), rng)


def one_column(n=40):
    X, y = data(n, 2, random_seed=1)
    return X[:, :1], y


def density_of_one_weight(prior, w):
    """Its prior with the scales integrated out, on grids of their logarithms, up to a constant."""
    x = np.linspace(-25, 25, 1001)
    if isinstance(prior, ARD):
        weight, precision = np.exp(prior.a * x - prior.b * np.exp(x)), prior.precision(x)
    else:
        # 1 / ((1 + lambda^2) (1 + tau^2 / tau_0^2)) times the Jacobian of both logarithms
        t = x + np.log(prior.tau_0)
        x, t = (axis.ravel() for axis in np.meshgrid(x[::5], t[::5]))
        weight = np.exp(x + t) / (1 + np.exp(2 * x)) / (1 + np.exp(2 * t) / prior.tau_0**2)
        precision = prior.precision(x, t)
    return np.array([weight @ (np.sqrt(precision) * np.exp(-precision * v**2 / 2)) for v in w])


@pytest.mark.slow
@pytest.mark.parametrize("name", PRIORS)
def test_one_weight_and_a_bias_against_quadrature(name):
    prior, (X, y) = PRIORS[name], one_column()
    # Fine near zero, where the scales make a peak.
    w = 6 * np.linspace(-1, 1, 801) ** 3
    bias = np.linspace(-4, 4, 161)
    eta = X[:, 0][:, None, None] * w[:, None] + bias
    height = (y[:, None, None] * eta - np.logaddexp(0, eta)).sum(0) - bias**2 / (2 * 1.5**2)
    p = np.exp(height - height.max()) * (density_of_one_weight(prior, w) * np.gradient(w))[:, None]
    p /= p.sum()
    of_w, of_bias = p.sum(1), p.sum(0)
    draws = gibbs(X, y, prior, bias_sd=1.5, draws=5000, random_seed=2)
    # Quadrature has no Monte-Carlo error: its "draws" are independent ones, so many that they add nothing.
    rng = np.random.default_rng(3)
    exact = xr.Dataset(
        {
            "w": (("chain", "draw", "basis"), rng.choice(w, (4, 100_000, 1), p=of_w)),
            "bias": (("chain", "draw"), rng.choice(bias, (4, 100_000), p=of_bias)),
        }
    )
    assert moments_agree(draws, exact), largest_gap(draws, exact)


def after_some_sweeps(prior, renewing, chains=20_000, sweeps=15):
    """Prior draws and what ``sweeps`` steps make of them, given data simulated from each."""
    rng = np.random.default_rng(4)
    X = np.column_stack([1.5 * rng.standard_normal((8, 2)), np.ones(8)])
    scales, w = draw_prior(prior, 1.0, 2, chains, rng)
    y = simulate(X, w, rng)
    for _ in range(sweeps):
        scales, w = sweep(X, y, renewing, 1.0, scales, w, rng)
    fresh, w_fresh = draw_prior(prior, 1.0, 2, chains, np.random.default_rng(5))
    last = {**scales, "w": w}
    return min(
        kstest(last[name][:, j], values[:, j]).pvalue
        for name, values in {**fresh, "w": w_fresh}.items()
        for j in range(values.shape[1])
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", PRIORS)
def test_data_from_the_prior_leave_the_prior(name):
    # Averaged over data drawn from the model the posterior is the prior, whatever the number of steps (Geweke 2004).
    # Chains are independent, so p-values are exact; the least of about six is below 1e-4 once in 1,700 runs.
    assert after_some_sweeps(PRIORS[name], PRIORS[name]) > 1e-4


@pytest.mark.slow
@pytest.mark.parametrize(
    ("prior", "wrong"),
    [
        (ARD(1.0, 1.0, 2.0), ARD(1.0, 1.0, 4.0)),
        (ARD(1.0, 1.0, 2.0), ARD(1.5, 1.0, 2.0)),
        (Horseshoe(0.3, 2.0), Horseshoe(0.6, 2.0)),
    ],
)
def test_a_wrong_prior_is_noticed(prior, wrong):
    assert after_some_sweeps(prior, wrong) < 1e-4


def declared(X, y, prior, bias_sd):
    """The same model in PyMC, with logarithms of the scales and weights that are not centred."""
    M = X.shape[1]
    with pm.Model() as model:
        bias = pm.Normal("bias", 0.0, bias_sd)
        if isinstance(prior, ARD):
            alpha = pm.Gamma("alpha", prior.a, prior.b, shape=M)
            pm.Deterministic("log_alpha", pm.math.log(alpha))
            precision = alpha + prior.slab**-2
        else:
            scale, tau = pm.HalfCauchy("lambda", 1.0, shape=M), pm.HalfCauchy("tau", prior.tau_0)
            pm.Deterministic("log_lambda", pm.math.log(scale))
            pm.Deterministic("log_tau", pm.math.log(tau))
            precision = 1 / (tau * scale) ** 2 + prior.slab**-2
        w = pm.Deterministic("w", pm.Normal("z", shape=M) / pm.math.sqrt(precision))
        pm.Bernoulli("y", logit_p=bias + X @ w, observed=y)
    return model


def sampled(X, y, prior, bias_sd, draws, tune, target_accept):
    with declared(X, y, prior, bias_sd):
        tree = pm.sample(
            draws=draws,
            tune=tune,
            chains=4,
            cores=1,
            random_seed=6,
            progressbar=False,
            nuts_sampler="pymc",
            target_accept=target_accept,
            **COMPILING,
        )
    assert int(tree["sample_stats"]["diverging"].sum()) == 0
    return tree["posterior"].to_dataset()


@pytest.mark.slow
def test_nuts_says_the_same():
    (X, y), prior = data(60, 3), PRIORS["ard"]
    nuts = sampled(X, y, prior, 2.0, draws=1000, tune=500, target_accept=0.9)
    truth = gibbs(X, y, prior, bias_sd=2.0, draws=4000)
    assert set(nuts) & set(truth) == {"w", "bias", "log_alpha"}
    assert moments_agree(nuts, truth), largest_gap(nuts, truth)
    # The comparison can fail: a slab half as wide, or an intercept held more tightly, is seen.
    for other in (
        gibbs(X, y, ARD(1.0, 1.0, 1.0), bias_sd=2.0, draws=4000),
        gibbs(X, y, prior, bias_sd=0.3, draws=4000),
    ):
        assert not moments_agree(nuts, other)


@pytest.mark.slow
@pytest.mark.parametrize("prior", [ARD(0.5, 0.05, 2.0), Horseshoe(0.2, 2.0)], ids=["ard", "horseshoe"])
def test_nuts_says_the_same_of_more_columns(prior):
    X, y = data(150, 6, random_seed=7)
    nuts = sampled(X, y, prior, 5.0, draws=1000, tune=1000, target_accept=0.99)
    truth = gibbs(X, y, prior, bias_sd=5.0, draws=10_000)
    assert moments_agree(nuts, truth), largest_gap(nuts, truth)


def test_no_common_variable_is_refused():
    with pytest.raises(ValueError, match="no variable in common"):
        largest_gap({"a": np.zeros((2, 9))}, {"b": np.zeros((2, 9))})


def test_a_shift_is_measured_in_standard_errors():
    # Independent draws: the error of the difference of two means of N draws of variance 1 is sqrt(2 / N).
    rng = np.random.default_rng(8)
    a, b = rng.standard_normal((2, 4, 5000))
    shift = 10 * np.sqrt(2 / 20_000)
    name, size = largest_gap({"x": a + shift}, {"x": b})
    assert name == "mean of x"
    assert size == pytest.approx(10, abs=4.5 * 1.1)  # effective sizes are known to a few per cent


def test_probabilities_of_simulated_classes():
    rng = np.random.default_rng(9)
    X, w = np.array([[0.5, 1.0]]), np.tile([1.0, -0.2], (100_000, 1))
    p = expit(0.3)
    assert abs(simulate(X, w, rng).mean() - p) < 4.5 * np.sqrt(p * (1 - p) / 100_000)
