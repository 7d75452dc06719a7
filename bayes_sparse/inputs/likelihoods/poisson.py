"""Counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inputs.likelihoods._likelihood import Targets, by_draws, rate

__all__ = ["poisson"]


@dataclass(frozen=True)
class poisson:
    """``y ~ Poisson(exp(eta))``: counts; an exposure enters as ``offset=log(exposure)``."""

    name: ClassVar[str] = "poisson"
    targets: ClassVar[Targets] = "counts"
    normal: ClassVar[bool] = False
    nuisance: ClassVar[tuple[str, ...]] = ()
    scale_free: ClassVar[bool] = True
    log_concave: ClassVar[bool] = True

    def distribution(self, eta: Any) -> tuple[Any, dict[str, Any]]:
        """PyMC distribution and its arguments."""
        return pm.Poisson, {"mu": pt.exp(eta)}

    def start(self, y: FloatArray, weights: FloatArray | None = None) -> FloatArray:
        """No nuisance parameters."""
        return np.empty(0)

    def bounds(self, log_start: FloatArray) -> FloatArray:
        """No nuisance parameters."""
        return np.empty((0, 2))

    def bias_sd(self, y: FloatArray, weights: FloatArray | None = None) -> float:
        """Sd of the wide prior on the bias, in logs."""
        return 10.0

    def wrong(self, y: FloatArray) -> str | None:
        """What this likelihood cannot take, in words, or None."""
        return None if np.all((y >= 0) & (y == np.floor(y))) else "counts (0, 1, 2 ...)"

    def moments(self, eta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of an observation at a given predictor."""
        mean = np.exp(eta)
        return mean, mean

    def log_density(self, y: FloatArray, eta: FloatArray, logs: FloatArray) -> FloatArray:
        """Log-probability of each target (S, n) at predictors (S, n)."""
        return by_draws(self, y, eta, logs)

    def draw(self, eta: FloatArray, rng: np.random.Generator) -> FloatArray:
        """New observations at predictors (S, n)."""
        return rng.poisson(rate(eta)).astype(float)
