"""Two classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pymc as pm
from scipy.special import expit

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inputs.likelihoods._likelihood import OnPredictor, Targets
from bayes_sparse.problem.likelihood_check import LikelihoodCheck

__all__ = ["bernoulli"]

_FAR = 700.0  # of a logit on the wrong side: the exponential function overflows soon after


@dataclass(frozen=True)
class bernoulli(OnPredictor):
    """``y ~ Bernoulli(sigmoid(eta))``: two classes."""

    name: ClassVar[str] = "bernoulli"
    targets: ClassVar[Targets] = "two classes"
    log_concave: ClassVar[bool] = True

    def distribution(self, eta: Any) -> tuple[Any, dict[str, Any]]:
        """PyMC distribution and its arguments."""
        return pm.Bernoulli, {"logit_p": eta}

    def terms(self, eta: FloatArray, y: FloatArray, *, derivatives: int = 3) -> list[FloatArray]:
        """Log-probability of each target and its first three derivatives along the predictor, or none of them.

        By the odds of the other class, which keep their digits on both sides.
        """
        sign = 2 * y - 1
        logit = -sign * eta
        odds = np.minimum(logit, _FAR)
        value = odds - logit  # nothing but far out, where the odds are all there is
        np.exp(odds, out=odds)
        value -= np.log1p(odds)
        if not derivatives:
            return [value]
        right = 1 / (1 + odds)
        wrong = odds * right
        spread = wrong * right
        return [value, sign * wrong, -spread, sign * spread * (right - wrong)]

    def pseudo_sd(self, y: FloatArray, weights: FloatArray | None = None) -> float:
        """Of a logit at even odds."""
        return 2.0

    def wrong(self, y: FloatArray) -> str | None:
        """What this likelihood cannot take, in words, or None."""
        return None if np.isin(y, (0.0, 1.0)).all() else "two classes"

    def check(self, y: FloatArray, eta: FloatArray, used: float, *nuisance: Any) -> LikelihoodCheck | None:
        """Rows of two classes, each by itself, cannot contradict any probability."""
        return None

    def moments(self, eta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of an observation at a given predictor."""
        p = expit(eta)
        return p, p * (1 - p)

    def log_density(self, y: FloatArray, eta: FloatArray, logs: FloatArray) -> FloatArray:
        """Log-probability of each target, 0 or 1, at predictors (S, n)."""
        return self.terms(eta, y, derivatives=0)[0]

    def draw(self, eta: FloatArray, rng: np.random.Generator) -> FloatArray:
        """New observations at predictors (S, n)."""
        return (rng.random(eta.shape) < expit(eta)).astype(float)
