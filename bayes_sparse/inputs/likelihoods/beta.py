"""Shares, strictly between zero and one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from scipy.special import betaln, expit, logit, psi, zeta

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inputs.likelihoods._likelihood import REACH, Targets
from bayes_sparse.problem.design import weighted_sd
from bayes_sparse.problem.likelihood_check import LikelihoodCheck

__all__ = ["beta"]

_FAR = 80.0  # beyond such a logit the log density is a straight line, to the last digit


@dataclass(frozen=True)
class beta:
    """``y ~ Beta(mu=sigmoid(eta), nu=precision)``: shares, strictly between zero and one."""

    name: ClassVar[str] = "beta"
    targets: ClassVar[Targets] = "numbers"
    normal: ClassVar[bool] = False
    nuisance: ClassVar[tuple[str, ...]] = ("precision",)
    scale_free: ClassVar[bool] = True
    log_concave: ClassVar[bool] = False

    def distribution(self, eta: Any, precision: Any) -> tuple[Any, dict[str, Any]]:
        """PyMC distribution and its arguments, each its own sigmoid: one less the other has no digits far out."""
        return pm.Beta, {"alpha": precision * pt.sigmoid(eta), "beta": precision * pt.sigmoid(-eta)}

    def terms(self, eta: FloatArray, y: FloatArray, log_precision: Any, *, derivatives: int = 3) -> list[FloatArray]:
        """Log density of each target and its first three derivatives along the predictor, or none of them."""
        value = self._value(y, eta, log_precision)
        if not derivatives:
            return [value]
        near, precision = np.clip(eta, -_FAR, _FAR), np.exp(log_precision)
        p, q = expit(near), expit(-near)
        a, b = precision * p, precision * q
        # Along a, with b = precision - a, by trigamma(a) = zeta(2, a) and so on; then a along the predictor.
        f1, f2, f3 = logit(y) - psi(a) + psi(b), -zeta(2, a) - zeta(2, b), 2 * (zeta(3, a) - zeta(3, b))
        a1 = a * q
        a2, a3 = a1 * (q - p), a1 * (1 - 6 * p * q)
        return [value, f1 * a1, f2 * a1**2 + f1 * a2, f3 * a1**3 + 3 * f2 * a1 * a2 + f1 * a3]

    def start(self, y: FloatArray, weights: FloatArray | None = None) -> FloatArray:
        """Precision by the method of moments, within reason."""
        mean, variance = float(np.average(y, weights=weights)), weighted_sd(y, weights) ** 2
        return np.array([np.clip(mean * (1 - mean) / max(variance, 1e-300) - 1, 0.1, 1e4)])

    def bounds(self, log_start: FloatArray) -> FloatArray:
        """Box of the log precision: beyond it rounding errors speak."""
        return np.stack([log_start - REACH, np.minimum(log_start + REACH, float(np.log(1e8)))], axis=1)

    def bias_sd(self, y: FloatArray, weights: FloatArray | None = None) -> float:
        """Sd of the wide prior on the bias, in logits."""
        return 10.0

    def pseudo_sd(self, y: FloatArray, weights: FloatArray | None = None) -> float:
        """Of a logit at the mean share, with the precision where the search starts."""
        mean = float(np.average(y, weights=weights))
        return float((mean * (1 - mean) * (1 + self.start(y, weights)[0])) ** -0.5)

    def wrong(self, y: FloatArray) -> str | None:
        """What this likelihood cannot take, in words, or None."""
        return None if np.all((y > 0) & (y < 1)) else "shares strictly between 0 and 1"

    def check(self, y: FloatArray, eta: FloatArray, used: float, *nuisance: Any) -> LikelihoodCheck | None:
        """Nothing: its own precision takes up what spread there is."""
        return None

    def moments(self, eta: FloatArray, precision: float | FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of an observation at a given predictor."""
        return expit(eta), expit(eta) * expit(-eta) / (1 + np.asarray(precision))

    def log_density(self, y: FloatArray, eta: FloatArray, logs: FloatArray) -> FloatArray:
        """Log density of each target (S, n) at predictors (S, n) and logs of the precision (S, 1)."""
        return self._value(y, eta, logs)

    def draw(self, eta: FloatArray, rng: np.random.Generator, precision: FloatArray) -> FloatArray:
        """New observations at predictors (S, n) and precisions (S, 1)."""
        near = np.clip(eta, -_FAR, _FAR)
        return rng.beta(precision * expit(near), precision * expit(-near))

    def _value(self, y: FloatArray, eta: FloatArray, log_precision: Any) -> FloatArray:
        near, precision = np.clip(eta, -_FAR, _FAR), np.exp(log_precision)
        a, b = precision * expit(near), precision * expit(-near)
        return np.asarray((a - 1) * np.log(y) + (b - 1) * np.log1p(-y) - betaln(a, b) - np.abs(eta - near))
