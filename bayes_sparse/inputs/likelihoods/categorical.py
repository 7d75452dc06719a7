"""Any number of classes, a predictor each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pymc as pm

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inputs.likelihoods._likelihood import OnPredictor, Targets
from bayes_sparse.problem.classes import Link, log_probability
from bayes_sparse.problem.likelihood_check import LikelihoodCheck

__all__ = ["categorical"]


@dataclass(frozen=True)
class categorical(OnPredictor):
    """``y ~ Categorical(softmax(eta))``: any number of classes, a predictor each.

    Attributes
    ----------
    link : "softmax" or "one_vs_rest"
        How predictors become probabilities: by softmax, or, for ``method="one_vs_rest"``, as those of one logistic
        regression a class, divided by their sum.
    """

    link: Link = "softmax"
    name: ClassVar[str] = "categorical"
    targets: ClassVar[Targets] = "classes"
    log_concave: ClassVar[bool] = False  # not along one predictor

    def distribution(self, eta: Any) -> tuple[Any, dict[str, Any]]:
        """PyMC distribution and its arguments."""
        return pm.Categorical, {"logit_p": eta}

    def log_probability(self, eta: FloatArray) -> FloatArray:
        """Log-probability of each class, along the last axis."""
        return log_probability(eta, self.link)

    def pseudo_sd(self, y: FloatArray, weights: FloatArray | None = None) -> float:
        """Of a logit at even odds."""
        return 2.0

    def wrong(self, y: FloatArray) -> str | None:
        """What this likelihood cannot take, in words, or None."""
        return None

    def check(self, y: FloatArray, eta: FloatArray, used: float, *nuisance: Any) -> LikelihoodCheck | None:
        """Rows of classes, each by itself, cannot contradict any probability."""
        return None

    def moments(self, eta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Probabilities along the last axis of the predictors, and their variance as indicators."""
        p = np.exp(self.log_probability(eta))
        return p, p * (1 - p)

    def log_density(self, y: FloatArray, eta: FloatArray, logs: FloatArray) -> FloatArray:
        """Log-probability of each target's class at predictors (S, n, classes)."""
        return np.asarray(self.log_probability(eta)[:, np.arange(len(y)), y.astype(int)])

    def draw(self, eta: FloatArray, rng: np.random.Generator) -> FloatArray:
        """New observations at predictors (S, n, classes)."""
        upper = np.exp(self.log_probability(eta)).cumsum(axis=-1)
        return np.asarray((rng.random((*eta.shape[:-1], 1)) > upper[..., :-1]).sum(axis=-1), dtype=float)
