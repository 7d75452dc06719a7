"""Whether a likelihood is logistic, ``c + y eta - N log(1 + exp(eta))``, in whatever way it was declared.

Two classes, counts out of N: what has a closed form, or a quick one, is seen by values, not by names.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit, log_expit

from bayes_sparse.common.types import FloatArray
from bayes_sparse.problem.problem import Problem

__all__ = ["Logistic", "logistic"]

_LOOKS = np.array([[-1.0], [0.5], [2.0]])  # predictors that tell
_SAME = 1e-9


class Logistic(NamedTuple):
    """The numbers of each observation, with its weight."""

    constant: FloatArray
    y: FloatArray
    trials: FloatArray

    def terms(self, eta: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Log-likelihood, slope and curvature (not negative) at predictors (..., n)."""
        p = expit(eta)
        softplus = np.maximum(eta, 0.0) + np.log1p(np.exp(-np.abs(eta)))
        value = self.constant + self.y * eta - self.trials * softplus
        return value, self.y - self.trials * p, self.trials * p * (1 - p)


def logistic(problem: Problem) -> Logistic | None:
    """From the slopes at two predictors; None if a third one, values or curvatures contradict."""
    if problem.normal or problem.theta.size:
        return None
    looks = [problem.derivatives(np.full(problem.design.n, eta), problem.theta, 2) for eta in _LOOKS[:, 0]]
    seen = [np.array([look[order] for look in looks]) for order in range(3)]
    p = expit(_LOOKS)
    trials = (seen[1][0] - seen[1][2]) / (p[2] - p[0])
    y = seen[1][1] + trials * p[1]
    found = Logistic(seen[0][1] - y * _LOOKS[1] - trials * log_expit(-_LOOKS[1]), y, trials)
    value, slope, curvature = found.terms(_LOOKS)
    size = _SAME * np.abs(trials).max(initial=0.0)
    same = (np.allclose(a, b, rtol=_SAME, atol=size) for a, b in zip((value, slope, -curvature), seen, strict=True))
    return found if all(same) and trials.min(initial=0.0) >= -size else None
