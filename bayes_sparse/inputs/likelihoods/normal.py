"""Normal noise around the predictor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pymc as pm

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inputs.likelihoods._likelihood import REACH, Targets
from bayes_sparse.problem.design import weighted_sd

__all__ = ["normal"]


@dataclass(frozen=True)
class normal:
    """``y ~ Normal(eta, sigma)``."""

    name: ClassVar[str] = "normal"
    targets: ClassVar[Targets] = "numbers"
    normal: ClassVar[bool] = True
    nuisance: ClassVar[tuple[str, ...]] = ("sigma",)
    scale_free: ClassVar[bool] = False
    log_concave: ClassVar[bool] = True

    def distribution(self, eta: Any, sigma: Any) -> tuple[Any, dict[str, Any]]:
        """PyMC distribution and its arguments."""
        return pm.Normal, {"mu": eta, "sigma": sigma}

    def start(self, y: FloatArray, weights: FloatArray | None = None) -> FloatArray:
        """Where the search over nuisance parameters starts."""
        return np.array([weighted_sd(y, weights)])

    def bounds(self, log_start: FloatArray) -> FloatArray:
        """Box of the log noise: below a millionth of the spread of the targets it has collapsed."""
        return np.stack([log_start + np.log(1e-6), log_start + REACH], axis=1)

    def bias_sd(self, y: FloatArray, weights: FloatArray | None = None) -> float:
        """Sd of the wide prior on the bias: ten times the size of the targets."""
        return 10.0 * float(np.sqrt(np.average(y**2, weights=weights)))

    def wrong(self, y: FloatArray) -> str | None:
        """What this likelihood cannot take, in words, or None."""
        return None

    def moments(self, eta: FloatArray, sigma: float | FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of an observation at a given predictor."""
        return eta, np.broadcast_to(np.asarray(sigma) ** 2, eta.shape)

    def log_density(self, y: FloatArray, eta: FloatArray, logs: FloatArray) -> FloatArray:
        """Log density of each target (S, n) at predictors (S, n) and logs of the noise (S, 1)."""
        return np.asarray(-0.5 * ((y - eta) / np.exp(logs)) ** 2 - 0.5 * np.log(2 * np.pi) - logs)

    def draw(self, eta: FloatArray, rng: np.random.Generator, sigma: FloatArray) -> FloatArray:
        """New observations (S, n) at predictors (S, n) and noise (S, 1)."""
        return np.asarray(eta + sigma * rng.standard_normal(eta.shape))
