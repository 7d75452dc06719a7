"""Bayesian logistic regression by Gibbs sampling, as truth for priors with a slab: it shares nothing with the package.

Given Polya-Gamma variables, one per observation, the weights are normal (Polson, Scott & Windle 2013). Given the
weights, the logarithm of each scale has a density in one dimension, which slice sampling with stepping out (Neal 2003)
leaves alone whatever its shape. Chains, and scales within a chain, are drawn side by side.
"""

from dataclasses import dataclass

import numpy as np
import pytest
import xarray as xr
from arviz_stats.base import array_stats
from scipy.special import expit

polyagamma = pytest.importorskip("polyagamma", reason="polyagamma is not installed: it has no wheel for this Python")


@dataclass(frozen=True)
class ARD:
    """alpha_j ~ Gamma(a, rate b), w_j ~ N(0, 1 / (alpha_j + 1 / slab^2)); a scale is ``log_alpha``."""

    a: float
    b: float
    slab: float

    def draw(self, rng, chains, M):
        return {"log_alpha": np.log(rng.gamma(self.a, 1 / self.b, (chains, M)))}

    def precision(self, log_alpha):
        return np.exp(log_alpha) + self.slab**-2

    def renew(self, scales, w, rng):
        def density(x):
            return self.a * x - self.b * np.exp(x) + log_normal(w, self.precision(x))

        return {"log_alpha": slice_step(density, scales["log_alpha"], rng)}


@dataclass(frozen=True)
class Horseshoe:
    """lambda_j ~ HalfCauchy(1), tau ~ HalfCauchy(tau_0), w_j ~ N(0, 1 / (1 / (tau lambda_j)^2 + 1 / slab^2))."""

    tau_0: float
    slab: float

    def draw(self, rng, chains, M):
        angles = np.pi / 2 * rng.random((chains, M + 1))
        logs = np.log(np.tan(angles))
        return {"log_lambda": logs[:, 1:], "log_tau": logs[:, :1] + np.log(self.tau_0)}

    def precision(self, log_lambda, log_tau):
        return np.exp(-2 * (log_lambda + log_tau)) + self.slab**-2

    def renew(self, scales, w, rng):
        x, t, start = scales["log_lambda"], scales["log_tau"], np.log(self.tau_0)
        x = slice_step(lambda x: log_half_cauchy(x) + log_normal(w, self.precision(x, t)), x, rng)

        def of_tau(t):
            return log_half_cauchy(t - start) + log_normal(w, self.precision(x, t)).sum(1, keepdims=True)

        t = slice_step(of_tau, t, rng)

        # tau and the lambdas against each other, which the weights do not notice: without it tau hardly moves.
        def of_shift(d):
            return log_half_cauchy(t + d - start) + log_half_cauchy(x - d).sum(1, keepdims=True)

        shift = slice_step(of_shift, np.zeros_like(t), rng)
        return {"log_lambda": x - shift, "log_tau": t + shift}


def log_half_cauchy(x):
    """Log density of the logarithm of a standard half-Cauchy variable, up to a constant."""
    return -np.logaddexp(-x, x)


def log_normal(w, precision):
    return 0.5 * (np.log(precision) - precision * w**2)


def slice_step(log_density, x, rng, width=2.0):
    """One step of slice sampling for each element of x, whose log densities are independent of each other."""
    level = log_density(x) - rng.exponential(size=x.shape)
    left = x - width * rng.random(x.shape)
    right = left + width
    while (outside := log_density(left) > level).any():
        left = left - width * outside
    while (outside := log_density(right) > level).any():
        right = right + width * outside
    new = x.copy()
    waiting = np.ones(x.shape, dtype=bool)
    while waiting.any():
        tried = left + (right - left) * rng.random(x.shape)
        inside = waiting & (log_density(tried) > level)
        new = np.where(inside, tried, new)
        waiting &= ~inside
        left, right = np.where(waiting & (tried < x), tried, left), np.where(waiting & (tried >= x), tried, right)
    return new


def draw_prior(prior, bias_sd, M, chains, rng):
    """Scales and weights, the bias last, one of each per chain."""
    scales = prior.draw(rng, chains, M)
    w = rng.standard_normal((chains, M)) / np.sqrt(prior.precision(**scales))
    return scales, np.column_stack([w, bias_sd * rng.standard_normal(chains)])


def sweep(X, y, prior, bias_sd, scales, w, rng):
    """Renew all that is unknown; X ends with a column of ones, y has one row per chain or is the same for all."""
    omega = polyagamma.random_polyagamma(1, w @ X.T, random_state=rng, method="devroye")
    precision = np.column_stack([prior.precision(**scales), np.full(len(w), bias_sd**-2)])
    P = (X.T * omega[:, None, :]) @ X
    P[:, range(X.shape[1]), range(X.shape[1])] += precision
    L = np.linalg.cholesky(P)
    forward = np.linalg.solve(L, ((y - 0.5) @ X * np.ones_like(w))[..., None]) + rng.standard_normal((*w.shape, 1))
    w = np.linalg.solve(L.mT, forward)[..., 0]
    return prior.renew(scales, w[:, :-1], rng), w


def gibbs(X, y, prior, *, bias_sd, chains=4, warmup=500, draws=2000, random_seed=0):
    """Draws of ``w``, ``bias`` and the logarithms of the prior's scales, (chain, draw, ...)."""
    rng = np.random.default_rng(random_seed)
    X = np.column_stack([X, np.ones(len(X))])
    scales, w = draw_prior(prior, bias_sd, X.shape[1] - 1, chains, rng)
    kept = []
    for number in range(warmup + draws):
        scales, w = sweep(X, y, prior, bias_sd, scales, w, rng)
        if number >= warmup:
            kept.append({"w": w[:, :-1], "bias": w[:, -1], **scales})
    stacked = {name: np.stack([one[name] for one in kept], axis=1) for name in kept[0]}
    if "log_tau" in stacked:
        stacked["log_tau"] = stacked["log_tau"][..., 0]
    return xr.Dataset(
        {name: (("chain", "draw", *(("basis",) if v.ndim == 3 else ())), v) for name, v in stacked.items()}
    )


def simulate(X, w, rng):
    """Classes, one row per row of w; X ends with a column of ones."""
    eta = w @ X.T
    return (rng.random(eta.shape) < expit(eta)).astype(float)


def largest_gap(draws_a, draws_b):
    """Name and size of the largest difference of two sets of draws, in Monte-Carlo standard errors.

    Compared are the means and the mean squares about a common centre, of each element of each variable that both have.
    A variable with heavy tails should be given as its logarithm: a mean square that does not exist has no error.
    """
    sizes = {}
    for name in set(draws_a) & set(draws_b):
        a, b = (_elements(draws[name]) for draws in (draws_a, draws_b))
        centre = (a.mean((0, 1)) + b.mean((0, 1))) / 2
        for what, x, y in (("mean", a, b), ("mean square", (a - centre) ** 2, (b - centre) ** 2)):
            error = np.sqrt(_squared_error(x) + _squared_error(y))
            sizes[f"{what} of {name}"] = float(np.max(np.abs(x.mean((0, 1)) - y.mean((0, 1))) / error))
    if not sizes:
        raise ValueError("The two sets of draws have no variable in common.")
    return max(sizes.items(), key=lambda item: item[1])


def moments_agree(draws_a, draws_b, limit=4.5):
    """Whether the largest difference is below ``limit`` standard errors; 4.5 is a false alarm in 150,000 per number."""
    return largest_gap(draws_a, draws_b)[1] < limit


def _elements(values):
    """Draws as (chain, draw, element)."""
    array = np.asarray(values, dtype=float)
    return array.reshape(*array.shape[:2], -1)


def _squared_error(x):
    ess = np.array([array_stats.ess(x[..., j], chain_axis=0, draw_axis=1, method="mean") for j in range(x.shape[2])])
    return x.var((0, 1)) / ess
