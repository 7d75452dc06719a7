"""Counts more spread out than a Poisson's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from scipy.special import betaln, expit, gammaln

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inputs.likelihoods._likelihood import REACH, Targets, level, rate
from bayes_sparse.inputs.likelihoods.poisson import poisson
from bayes_sparse.problem.design import weighted_sd
from bayes_sparse.problem.likelihood_check import LikelihoodCheck

__all__ = ["negative_binomial"]

_LARGE = 30.0  # dispersion


@dataclass(frozen=True)
class negative_binomial:
    """``y ~ NegativeBinomial(mu=exp(eta), alpha=dispersion)``: counts more spread out than a Poisson's."""

    name: ClassVar[str] = "negative_binomial"
    targets: ClassVar[Targets] = "counts"
    normal: ClassVar[bool] = False
    nuisance: ClassVar[tuple[str, ...]] = ("dispersion",)
    scale_free: ClassVar[bool] = True
    log_concave: ClassVar[bool] = True

    def distribution(self, eta: Any, dispersion: Any) -> tuple[Any, dict[str, Any]]:
        """PyMC distribution and its arguments."""
        return pm.NegativeBinomial, {"mu": pt.exp(eta), "alpha": dispersion}

    def terms(self, eta: FloatArray, y: FloatArray, log_dispersion: Any, *, derivatives: int = 3) -> list[FloatArray]:
        """Log-probability of each target and its first three derivatives along the predictor, or none of them.

        By the shares of mean and dispersion in their sum, each to full accuracy: for counts of 1e10 a difference of
        gamma functions has no digit left to search by.
        """
        value = self._value(y, eta, log_dispersion)
        if not derivatives:
            return [value]
        dispersion, above = np.exp(log_dispersion), eta - log_dispersion
        share, rest = expit(above), expit(-above)
        bend = -(y + dispersion) * share * rest
        return [value, y * rest - dispersion * share, bend, bend * (rest - share)]

    def _value(self, y: FloatArray, eta: FloatArray, log_dispersion: Any) -> FloatArray:
        dispersion, above = np.exp(log_dispersion), eta - log_dispersion
        ways, bent = _log_ways(y, dispersion), np.log1p(np.exp(-np.abs(above)))  # of both logarithms, and taken once
        away = y * (np.maximum(-above, 0.0) + bent) + dispersion * (np.maximum(above, 0.0) + bent)
        return np.asarray(ways - away)

    def start(self, y: FloatArray, weights: FloatArray | None = None) -> FloatArray:
        """Dispersion by the method of moments, within reason."""
        mean, variance = float(np.average(y, weights=weights)), weighted_sd(y, weights) ** 2
        return np.array([np.clip(mean**2 / max(variance - mean, 1e-12), 0.1, 100.0)])

    def bounds(self, log_start: FloatArray) -> FloatArray:
        """Box of the log dispersion: counts so little over-dispersed are Poisson's, beyond it rounding errors speak."""
        return np.stack([log_start - REACH, np.minimum(log_start + REACH, float(np.log(1e5)))], axis=1)

    def bias_sd(self, y: FloatArray, weights: FloatArray | None = None) -> float:
        """Sd of the wide prior on the bias, in logs."""
        return 10.0

    def pseudo_sd(self, y: FloatArray, weights: FloatArray | None = None) -> float:
        """That of Poisson's counts."""
        return poisson().pseudo_sd(y, weights)

    def wrong(self, y: FloatArray) -> str | None:
        """What this likelihood cannot take, in words, or None."""
        return poisson().wrong(y)

    def check(self, y: FloatArray, eta: FloatArray, used: float, *nuisance: Any) -> LikelihoodCheck | None:
        """Nothing: its own dispersion takes up what there is."""
        return None

    def moments(self, eta: FloatArray, dispersion: float | FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of an observation at a given predictor."""
        mean = level(eta)
        return mean, mean + mean**2 / dispersion

    def log_density(self, y: FloatArray, eta: FloatArray, logs: FloatArray) -> FloatArray:
        """Log-probability of each target (S, n) at predictors (S, n) and logs of the dispersion (S, 1)."""
        return self._value(y, eta, logs)

    def draw(self, eta: FloatArray, rng: np.random.Generator, dispersion: FloatArray) -> FloatArray:
        """New observations at predictors (S, n) and dispersions (S, 1)."""
        return rng.poisson(rng.gamma(np.broadcast_to(dispersion, eta.shape), rate(eta) / dispersion)).astype(float)


def _log_ways(y: FloatArray, r: Any) -> FloatArray:
    """``log Gamma(y + r) / (Gamma(r) y!)``: where r is large by Stirling's series, whose large terms are gone."""
    plain = -np.log(y + r) - betaln(y + 1, r)
    if not np.any(r > _LARGE):
        return np.asarray(plain)
    series = (r + y - 0.5) * np.log1p(y / r) + y * np.log(r) - y + _rest(r + y) - _rest(r) - gammaln(y + 1)
    return np.asarray(np.where((r > _LARGE) & (y < r), series, plain))


def _rest(x: Any) -> Any:
    """What Stirling's formula lacks of log Gamma(x), below 1e-16 where x is large."""
    return (1 / 12 - (1 / 360 - (1 / 1260 - 1 / (1680 * x**2)) / x**2) / x**2) / x
