"""Two classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pymc as pm
from scipy.special import expit

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inputs.likelihoods._likelihood import Targets
from bayes_sparse.problem.likelihood_check import LikelihoodCheck

__all__ = ["bernoulli"]


@dataclass(frozen=True)
class bernoulli:
    """``y ~ Bernoulli(sigmoid(eta))``: two classes."""

    name: ClassVar[str] = "bernoulli"
    targets: ClassVar[Targets] = "two classes"
    normal: ClassVar[bool] = False
    nuisance: ClassVar[tuple[str, ...]] = ()
    scale_free: ClassVar[bool] = True
    log_concave: ClassVar[bool] = True

    def distribution(self, eta: Any) -> tuple[Any, dict[str, Any]]:
        """PyMC distribution and its arguments."""
        return pm.Bernoulli, {"logit_p": eta}

    def start(self, y: FloatArray, weights: FloatArray | None = None) -> FloatArray:
        """No nuisance parameters."""
        return np.empty(0)

    def bounds(self, log_start: FloatArray) -> FloatArray:
        """No nuisance parameters."""
        return np.empty((0, 2))

    def bias_sd(self, y: FloatArray, weights: FloatArray | None = None) -> float:
        """Sd of the wide prior on the bias, in logits."""
        return 10.0

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
        signed = np.where(y == 1, 1.0, -1.0) * eta
        return np.minimum(signed, 0.0) - np.log1p(np.exp(-np.abs(eta)))  # four times as fast as scipy's log_expit

    def draw(self, eta: FloatArray, rng: np.random.Generator) -> FloatArray:
        """New observations at predictors (S, n)."""
        return (rng.random(eta.shape) < expit(eta)).astype(float)
