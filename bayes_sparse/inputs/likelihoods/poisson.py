"""Counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from scipy.special import gammaln, ndtr

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inputs.likelihoods._likelihood import OnPredictor, Targets, level, rate
from bayes_sparse.problem.likelihood_check import LikelihoodCheck

__all__ = ["poisson"]


_SPREAD, _CHANCE = 1.5, 0.01  # of Pearson's chi2 for each degree of freedom left; of a false alarm
_TABLE = gammaln(np.arange(1.0, 1025.0))


@dataclass(frozen=True)
class poisson(OnPredictor):
    """``y ~ Poisson(exp(eta))``: counts; an exposure enters as ``offset=log(exposure)``."""

    name: ClassVar[str] = "poisson"
    targets: ClassVar[Targets] = "counts"
    log_concave: ClassVar[bool] = True

    def distribution(self, eta: Any) -> tuple[Any, dict[str, Any]]:
        """PyMC distribution and its arguments."""
        return pm.Poisson, {"mu": pt.exp(eta)}

    def terms(self, eta: FloatArray, y: FloatArray, *, derivatives: int = 3) -> list[FloatArray]:
        """Log-probability of each target and its first three derivatives along the predictor, or none of them."""
        with np.errstate(over="ignore"):  # then the log-probability is minus infinity
            mean = np.exp(eta)
        value = y * eta
        value -= mean
        value -= _log_factorial(y)
        if not derivatives:
            return [value]
        slope = y - mean
        bend = np.negative(mean, out=mean)
        return [value, slope, bend, bend]

    def pseudo_sd(self, y: FloatArray, weights: FloatArray | None = None) -> float:
        """Of a log rate at the mean count."""
        return float(np.average(y, weights=weights)) ** -0.5 if y.any() else 1.0

    def wrong(self, y: FloatArray) -> str | None:
        """What this likelihood cannot take, in words, or None."""
        return None if np.all((y >= 0) & (y == np.floor(y))) else "counts (0, 1, 2 ...)"

    def check(self, y: FloatArray, eta: FloatArray, used: float, *nuisance: Any) -> LikelihoodCheck | None:
        """Whether the counts are more spread out than a Poisson's: Pearson's chi2 for each degree of freedom left.

        With small means chi2 is large by chance, for a single count where 0.01 was expected adds 100. So a score test
        must agree (Dean & Lawless 1989): ``((y - mu)^2 - y) / mu`` has mean 0 and variance 2 whatever the mean.
        """
        n, mean = len(y), np.exp(eta)
        if n - used < 1 or not (np.isfinite(mean).all() and (mean > 0).all()):
            return None
        square = (y - mean) ** 2
        ratio = float(np.sum(square / mean) / (n - used))
        score = float(np.sum((square * n / (n - used) - y) / mean) / np.sqrt(2 * n))
        p = float(ndtr(-score))
        wrong = (
            "The counts are more spread out around the means of this fit than a Poisson's, so that intervals are too "
            "narrow and terms are kept by chance"
        )
        found = ratio > _SPREAD and p < _CHANCE
        return LikelihoodCheck("Pearson chi2 / (n - k)", ratio, p, wrong if found else "", "negative_binomial")

    def moments(self, eta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of an observation at a given predictor."""
        mean = level(eta)
        return mean, mean

    def log_density(self, y: FloatArray, eta: FloatArray, logs: FloatArray) -> FloatArray:
        """Log-probability of each target (S, n) at predictors (S, n)."""
        return self.terms(eta, y, derivatives=0)[0]

    def draw(self, eta: FloatArray, rng: np.random.Generator) -> FloatArray:
        """New observations at predictors (S, n)."""
        return rng.poisson(rate(eta)).astype(float)


def _log_factorial(y: FloatArray) -> FloatArray:
    """Looked up for small counts: to compute it takes as long as all the rest."""
    if y.max(initial=0.0) < len(_TABLE):
        return np.asarray(_TABLE.take(y.astype(np.int32)))
    return np.asarray(gammaln(y + 1))
