"""Counts out of a known number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pymc as pm
from scipy.special import expit, gammaln, log_expit, ndtr

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inputs.likelihoods._likelihood import OnPredictor, Targets
from bayes_sparse.problem.likelihood_check import LikelihoodCheck

__all__ = ["binomial"]

_SPREAD, _CHANCE = 1.5, 0.01  # of Pearson's chi2 for each degree of freedom left; of a false alarm


@dataclass(frozen=True)
class binomial(OnPredictor):
    """``y ~ Binomial(trials, sigmoid(eta))``: counts out of a number that is the same for all rows.

    Attributes
    ----------
    trials : int
        How many trials a row has. Where that differs between rows, give each row twice to ``likelihood="bernoulli"``:
        of class 1 with its successes as `weights`, of class 0 with its failures. That is the same likelihood.
    """

    trials: int | None = None
    name: ClassVar[str] = "binomial"
    targets: ClassVar[Targets] = "counts"
    log_concave: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not isinstance(self.trials, int | np.integer) or self.trials < 1:
            raise ValueError(
                "A binomial likelihood needs one whole number of trials for all rows: "
                "likelihood=bs.likelihoods.binomial(trials=10); where it differs between rows, fit with "
                "likelihood='bernoulli' and each row twice, with its successes and its failures as weights."
            )
        object.__setattr__(self, "trials", int(self.trials))

    @property
    def _n(self) -> int:
        assert self.trials is not None
        return self.trials

    def distribution(self, eta: Any) -> tuple[Any, dict[str, Any]]:
        """PyMC distribution and its arguments."""
        return pm.Binomial, {"n": self._n, "logit_p": eta}

    def terms(self, eta: FloatArray, y: FloatArray, *, derivatives: int = 3) -> list[FloatArray]:
        """Log-probability of each target and its first three derivatives along the predictor, or none of them."""
        value = self.log_density(y, eta, np.empty(0))
        if not derivatives:
            return [value]
        p, q = expit(eta), expit(-eta)
        bend = -self._n * p * q
        return [value, y * q - (self._n - y) * p, bend, bend * (q - p)]

    def pseudo_sd(self, y: FloatArray, weights: FloatArray | None = None) -> float:
        """Of a logit at even odds."""
        return float(2.0 / np.sqrt(self._n))

    def wrong(self, y: FloatArray) -> str | None:
        """What this likelihood cannot take, in words, or None."""
        whole = np.all((y >= 0) & (y <= self._n) & (y == np.floor(y)))
        return None if whole else f"counts from 0 to {self._n}, its number of trials"

    def check(self, y: FloatArray, eta: FloatArray, used: float, *nuisance: Any) -> LikelihoodCheck | None:
        """Whether the counts are more spread out than a binomial's: Pearson's chi2 for each degree of freedom left.

        With probabilities near 0 or 1 chi2 is large by chance. So a score test must agree (Dean 1992): with residuals
        e, ``e^2 + (2p - 1) e - n p (1 - p)`` has mean 0 and variance ``2 n (n - 1) p^2 (1 - p)^2``.
        """
        n, p, left = self._n, expit(eta), len(y) - used
        variance = n * p * expit(-eta)
        if n < 2 or left < 1 or not (variance > 0).all():
            return None
        residual, more = y - n * p, len(y) / left
        ratio = float(np.sum(residual**2 / variance) / left)
        score = np.sum(residual**2 * more + (2 * p - 1) * residual - variance)
        p_value = float(ndtr(-score / np.sqrt(2 * (n - 1) / n * np.sum(variance**2))))
        wrong = (
            "The counts are more spread out around the means of this fit than a binomial's, so that intervals are too "
            "narrow and terms are kept by chance"
        )
        found = ratio > _SPREAD and p_value < _CHANCE
        return LikelihoodCheck("Pearson chi2 / (n - k)", ratio, p_value, wrong if found else "", "beta_binomial", False)

    def moments(self, eta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of an observation at a given predictor."""
        mean = self._n * expit(eta)
        return mean, mean * expit(-eta)

    def log_density(self, y: FloatArray, eta: FloatArray, logs: FloatArray) -> FloatArray:
        """Log-probability of each target (S, n) at predictors (S, n)."""
        n = self._n
        ways = gammaln(n + 1.0) - gammaln(y + 1) - gammaln(n - y + 1)
        return np.asarray(ways + y * log_expit(eta) + (n - y) * log_expit(-eta))

    def draw(self, eta: FloatArray, rng: np.random.Generator) -> FloatArray:
        """New observations at predictors (S, n)."""
        return rng.binomial(self._n, expit(eta)).astype(float)
