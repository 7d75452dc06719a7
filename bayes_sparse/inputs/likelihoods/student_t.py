"""Noise with heavy tails, for regression that does not follow outliers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pymc as pm
from scipy.special import gammaln

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inputs.likelihoods._likelihood import REACH, Targets
from bayes_sparse.problem.design import weighted_sd
from bayes_sparse.problem.likelihood_check import LikelihoodCheck

__all__ = ["student_t"]


@dataclass(frozen=True)
class student_t:
    """``y ~ StudentT(nu, eta, sigma)``: regression that does not follow outliers.

    Attributes
    ----------
    nu : float
        Degrees of freedom, kept as given.
    """

    nu: float = 4.0
    name: ClassVar[str] = "student_t"
    targets: ClassVar[Targets] = "numbers"
    normal: ClassVar[bool] = False
    nuisance: ClassVar[tuple[str, ...]] = ("sigma",)
    scale_free: ClassVar[bool] = False
    log_concave: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not self.nu > 0:
            raise ValueError(f"student_t needs nu > 0, got {self.nu}.")

    def distribution(self, eta: Any, sigma: Any) -> tuple[Any, dict[str, Any]]:
        """PyMC distribution and its arguments."""
        return pm.StudentT, {"nu": np.float64(self.nu), "mu": eta, "sigma": sigma}  # PyTensor rounds a plain float

    def start(self, y: FloatArray, weights: FloatArray | None = None) -> FloatArray:
        """Spread of the targets by their quartiles, which outliers do not move."""
        low, high = _quantiles(y, [0.25, 0.75], weights)
        return np.array([(high - low) / 1.349 or weighted_sd(y, weights)])

    def bounds(self, log_start: FloatArray) -> FloatArray:
        """Box of the log noise: below a millionth of the spread of the targets it has collapsed."""
        return np.stack([log_start + np.log(1e-6), log_start + REACH], axis=1)

    def bias_sd(self, y: FloatArray, weights: FloatArray | None = None) -> float:
        """Sd of the wide prior on the bias."""
        middle = _quantiles(y**2, [0.5], weights)[0]
        return 10.0 * float(np.sqrt(middle or np.average(y**2, weights=weights)))

    def pseudo_sd(self, y: FloatArray, weights: FloatArray | None = None) -> float:
        """The noise where the search starts."""
        return float(self.start(y, weights)[0])

    def wrong(self, y: FloatArray) -> str | None:
        """What this likelihood cannot take, in words, or None."""
        return None

    def check(self, y: FloatArray, eta: FloatArray, used: float, *nuisance: Any) -> LikelihoodCheck | None:
        """Nothing: its tails are heavy already."""
        return None

    def moments(self, eta: FloatArray, sigma: float | FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of an observation; the variance is infinite for nu <= 2."""
        scale = self.nu / (self.nu - 2) if self.nu > 2 else np.inf
        return eta, np.broadcast_to(np.asarray(sigma) ** 2 * scale, eta.shape)

    def terms(self, eta: FloatArray, y: FloatArray, log_sigma: Any, *, derivatives: int = 3) -> list[FloatArray]:
        """Log density of each target and its first three derivatives along the predictor, or none of them.

        With ``z = (y - eta) / sigma = sqrt(nu) tan(phi)`` they are products of sines and cosines, and no square
        overflows.
        """
        nu = self.nu
        root = np.sqrt(nu)
        tangent = (y - eta) / (np.exp(log_sigma) * root)
        secant = np.hypot(1.0, tangent)
        constant = gammaln((nu + 1) / 2) - gammaln(nu / 2) - 0.5 * np.log(np.pi * nu)
        value = np.asarray(constant - log_sigma - (nu + 1) * np.log(secant))
        if not derivatives:
            return [value]
        unit = np.exp(-log_sigma) / root
        cosine, sine = 1 / secant, tangent / secant
        across = unit * cosine
        square = cosine**2
        return [
            value,
            (nu + 1) * across * sine,
            (nu + 1) * across**2 * (1 - 2 * square),
            2 * (nu + 1) * across**3 * sine * (1 - 4 * square),
        ]

    def log_density(self, y: FloatArray, eta: FloatArray, logs: FloatArray) -> FloatArray:
        """Log density of each target (S, n) at predictors (S, n) and logs of the scale (S, 1)."""
        return self.terms(eta, y, logs, derivatives=0)[0]

    def draw(self, eta: FloatArray, rng: np.random.Generator, sigma: FloatArray) -> FloatArray:
        """New observations (S, n) at predictors (S, n) and scales (S, 1)."""
        return np.asarray(eta + sigma * rng.standard_t(self.nu, eta.shape))


def _quantiles(values: FloatArray, at: list[float], weights: FloatArray | None) -> FloatArray:
    """Quantiles that are among the values, with each as often as its weight says."""
    counted = np.ones(len(values)) if weights is None else weights
    return np.quantile(values, at, weights=counted, method="inverted_cdf")
