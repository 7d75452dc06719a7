"""Two classes by the normal distribution function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pymc as pm
from scipy.special import log_ndtr, ndtr

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inputs.likelihoods._likelihood import OnPredictor, Targets
from bayes_sparse.inputs.likelihoods.bernoulli import bernoulli
from bayes_sparse.inputs.normal_cdf import log_half_erfc, log_ndtr_terms
from bayes_sparse.problem.likelihood_check import LikelihoodCheck

__all__ = ["probit"]


@dataclass(frozen=True)
class probit(OnPredictor):
    """``y ~ Bernoulli(Phi(eta))``, Phi the normal distribution function: two classes, cut out of a normal variable."""

    name: ClassVar[str] = "probit"
    targets: ClassVar[Targets] = "two classes"
    log_concave: ClassVar[bool] = True

    def distribution(self, eta: Any) -> tuple[Any, dict[str, Any]]:
        """PyMC distribution and its arguments, by the logit, since a probability of 1 - 1e-20 is none."""
        x = eta / np.sqrt(2.0)
        return pm.Bernoulli, {"logit_p": log_half_erfc(-x) - log_half_erfc(x)}

    def terms(self, eta: FloatArray, y: FloatArray, *, derivatives: int = 3) -> list[FloatArray]:
        """Log-probability of each target and its first three derivatives along the predictor, or none of them."""
        sign = np.where(y == 1, 1.0, -1.0)
        if not derivatives:
            return [np.asarray(log_ndtr(sign * eta))]
        value, first, second, third = log_ndtr_terms(sign * eta)
        return [value, sign * first, second, sign * third]

    def pseudo_sd(self, y: FloatArray, weights: FloatArray | None = None) -> float:
        """At even odds."""
        return float(np.sqrt(np.pi / 2))

    def wrong(self, y: FloatArray) -> str | None:
        """What this likelihood cannot take, in words, or None."""
        return bernoulli().wrong(y)

    def check(self, y: FloatArray, eta: FloatArray, used: float, *nuisance: Any) -> LikelihoodCheck | None:
        """Rows of two classes, each by itself, cannot contradict any probability."""
        return None

    def moments(self, eta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of an observation at a given predictor."""
        return np.asarray(ndtr(eta)), np.asarray(ndtr(eta) * ndtr(-eta))

    def log_density(self, y: FloatArray, eta: FloatArray, logs: FloatArray) -> FloatArray:
        """Log-probability of each target, 0 or 1, at predictors (S, n)."""
        return np.asarray(log_ndtr(np.where(y == 1, eta, -eta)))

    def draw(self, eta: FloatArray, rng: np.random.Generator) -> FloatArray:
        """New observations at predictors (S, n)."""
        return (rng.random(eta.shape) < ndtr(eta)).astype(float)
