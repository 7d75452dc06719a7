"""The horseshoe's scale for all weights, where their precisions are known."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq

from bayes_sparse.common.types import FloatArray

__all__ = ["best_tau"]


def best_tau(alpha: FloatArray, tau0: float) -> float:
    """The tau of greatest density at given precisions: there is one, for its logarithm is concave in log tau."""
    half = 0.5 * np.log(np.maximum(alpha, np.finfo(float).tiny))  # at the slab's own precision nothing is left of it
    low_high = np.append(-half, np.log(tau0))

    def slope(log_tau: float) -> float:
        return float(-np.tanh(half + log_tau).sum() - np.tanh(log_tau - np.log(tau0)))

    return float(np.exp(brentq(slope, low_high.min() - 1.0, low_high.max() + 1.0, xtol=1e-12)))
