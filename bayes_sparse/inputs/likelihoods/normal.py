"""Normal noise around the predictor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pymc as pm
from scipy.special import ndtr

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inputs.likelihoods._likelihood import REACH, Targets
from bayes_sparse.problem.design import weighted_sd
from bayes_sparse.problem.likelihood_check import LikelihoodCheck

__all__ = ["normal"]


_KURTOSIS, _CHANCE = 1.0, 0.01  # in excess of a normal's: that of Student-t noise with 10 degrees of freedom; by chance
_FEWEST = 20  # residuals, for the distribution of their kurtosis to be known


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

    def pseudo_sd(self, y: FloatArray, weights: FloatArray | None = None) -> float:
        """The noise where the search starts."""
        return float(self.start(y, weights)[0])

    def wrong(self, y: FloatArray) -> str | None:
        """What this likelihood cannot take, in words, or None."""
        return None

    def check(self, y: FloatArray, eta: FloatArray, used: float, *nuisance: Any) -> LikelihoodCheck | None:
        """Whether the residuals have heavier tails than a normal's: their kurtosis (Anscombe & Glynn 1983)."""
        residual = (y - eta) / nuisance[0]
        if len(y) - used < _FEWEST or not np.ptp(residual) > 0:
            return None
        residual = residual - residual.mean()
        excess = float(np.mean(residual**4) / np.mean(residual**2) ** 2) - 3.0
        p = _chance_of(excess, len(y))
        wrong = "The residuals have heavier tails than a normal's, so that a few rows decide much of the answer"
        found = excess > _KURTOSIS and p < _CHANCE
        return LikelihoodCheck("excess kurtosis", excess, p, wrong if found else "", "student_t")

    def moments(self, eta: FloatArray, sigma: float | FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of an observation at a given predictor."""
        return eta, np.broadcast_to(np.asarray(sigma) ** 2, eta.shape)

    def log_density(self, y: FloatArray, eta: FloatArray, logs: FloatArray) -> FloatArray:
        """Log density of each target (S, n) at predictors (S, n) and logs of the noise (S, 1)."""
        return np.asarray(-0.5 * ((y - eta) / np.exp(logs)) ** 2 - 0.5 * np.log(2 * np.pi) - logs)

    def draw(self, eta: FloatArray, rng: np.random.Generator, sigma: FloatArray) -> FloatArray:
        """New observations (S, n) at predictors (S, n) and noise (S, 1)."""
        return np.asarray(eta + sigma * rng.standard_normal(eta.shape))


def _chance_of(excess: float, n: int) -> float:
    """Of so much excess kurtosis or more among n normal numbers (scipy.stats has it too, but takes long to import)."""
    mean = 3.0 * (n - 1) / (n + 1)
    variance = 24.0 * n * (n - 2) * (n - 3) / ((n + 1) ** 2 * (n + 3) * (n + 5))
    x = (3.0 + excess - mean) / np.sqrt(variance)
    skew = 6.0 * (n * n - 5 * n + 2) / ((n + 7) * (n + 9)) * np.sqrt(6.0 * (n + 3) * (n + 5) / (n * (n - 2) * (n - 3)))
    a = 6.0 + 8.0 / skew * (2.0 / skew + np.sqrt(1 + 4.0 / skew**2))
    below = np.cbrt((1 - 2 / a) / (1 + x * np.sqrt(2 / (a - 4))))
    return float(ndtr(-(1 - 2 / (9 * a) - below) / np.sqrt(2 / (9 * a))))
