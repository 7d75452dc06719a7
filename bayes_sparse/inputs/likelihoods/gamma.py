"""Positive numbers whose spread grows with their mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from scipy.special import gammaln

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inputs.likelihoods._likelihood import REACH, Targets, level, rate
from bayes_sparse.problem.design import weighted_sd
from bayes_sparse.problem.likelihood_check import LikelihoodCheck

__all__ = ["gamma"]

_STEEP = 600.0  # logs of a target above its mean, beyond which exponentials are held so as not to overflow


@dataclass(frozen=True)
class gamma:
    """``y ~ Gamma(alpha=shape, beta=shape / exp(eta))``: positive numbers, the sd a fixed share of the mean."""

    name: ClassVar[str] = "gamma"
    targets: ClassVar[Targets] = "numbers"
    normal: ClassVar[bool] = False
    nuisance: ClassVar[tuple[str, ...]] = ("shape",)
    scale_free: ClassVar[bool] = True
    log_concave: ClassVar[bool] = True

    def distribution(self, eta: Any, shape: Any) -> tuple[Any, dict[str, Any]]:
        """PyMC distribution and its arguments."""
        return pm.Gamma, {"alpha": shape, "beta": shape * pt.exp(-eta)}

    def terms(self, eta: FloatArray, y: FloatArray, log_shape: Any, *, derivatives: int = 3) -> list[FloatArray]:
        """Log density of each target and its first three derivatives along the predictor, or none of them."""
        value = self._value(y, eta, log_shape)
        if not derivatives:
            return [value]
        shape = np.exp(log_shape)
        bend = shape * np.exp(np.minimum(np.log(y) - eta, _STEEP))
        return [value, bend - shape, -bend, bend]

    def start(self, y: FloatArray, weights: FloatArray | None = None) -> FloatArray:
        """Shape by the method of moments, within reason."""
        mean, sd = float(np.average(y, weights=weights)), weighted_sd(y, weights)
        return np.array([max(min(mean / max(sd, 1e-300), 100.0) ** 2, 0.1)])

    def bounds(self, log_start: FloatArray) -> FloatArray:
        """Box of the log shape: noise of less than a ten-thousandth of the mean is none, beyond it rounding speaks."""
        return np.stack([log_start - REACH, np.minimum(log_start + REACH, float(np.log(1e8)))], axis=1)

    def bias_sd(self, y: FloatArray, weights: FloatArray | None = None) -> float:
        """Sd of the wide prior on the bias: ten times the size of the logs of the targets, and of one."""
        return 10.0 * max(1.0, float(np.sqrt(np.average(np.log(y) ** 2, weights=weights))))

    def pseudo_sd(self, y: FloatArray, weights: FloatArray | None = None) -> float:
        """Of a log mean: the sd as a share of the mean, where the search starts."""
        return float(self.start(y, weights)[0] ** -0.5)

    def wrong(self, y: FloatArray) -> str | None:
        """What this likelihood cannot take, in words, or None."""
        return None if np.all(y > 0) else "positive numbers"

    def check(self, y: FloatArray, eta: FloatArray, used: float, *nuisance: Any) -> LikelihoodCheck | None:
        """Nothing: its own shape takes up what spread there is."""
        return None

    def moments(self, eta: FloatArray, shape: float | FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of an observation at a given predictor."""
        mean = level(eta)
        return mean, mean**2 / shape

    def log_density(self, y: FloatArray, eta: FloatArray, logs: FloatArray) -> FloatArray:
        """Log density of each target (S, n) at predictors (S, n) and logs of the shape (S, 1)."""
        return self._value(y, eta, logs)

    def draw(self, eta: FloatArray, rng: np.random.Generator, shape: FloatArray) -> FloatArray:
        """New observations at predictors (S, n) and shapes (S, 1)."""
        return rng.gamma(np.broadcast_to(shape, eta.shape), rate(eta) / shape)

    def _value(self, y: FloatArray, eta: FloatArray, log_shape: Any) -> FloatArray:
        # In terms of log(y / mean), so that large shapes multiply what is small.
        shape, log_y = np.exp(log_shape), np.log(y)
        away = np.minimum(log_y - eta, _STEEP)
        whole = shape * (log_shape - 1) - gammaln(shape)
        return np.asarray(whole - shape * (np.expm1(away) - away) - log_y)
