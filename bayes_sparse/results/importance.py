"""Importance sampling: what the weights of draws say of the density they come from, and of the one they stand for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp

from bayes_sparse.problem.design import FloatArray

__all__ = ["Importance", "importance"]

_FEWEST = 25  # draws: a Pareto distribution is fitted to the largest fifth of so few, and needs five values
_ROUNDING = 1e-10  # log weights that differ by less than this, relative to the log densities, are the same


@dataclass(frozen=True, eq=False)
class Importance:
    """Pareto-smoothed weights of draws, and what the raw ones say about the normalising constant.

    Attributes
    ----------
    log_weights : array (S,)
        Smoothed and normalised: the weights sum to 1.
    k_hat : float
        Shape of the Pareto distribution fitted to the largest raw weights: above 0.5 their variance is infinite, above
        1 their mean too. Zero where all weights are the same, infinite where no shape can be fitted.
    threshold : float
        What k-hat should stay below: ``min(1 - 1/log10(S), 0.7)``.
    effective_draws : float
        ``1 / sum(weight^2)`` of the smoothed weights.
    log_mean : float
        Log of the mean raw weight: the mean is unbiased for the normalising constant, its logarithm is not.
    log_mean_se : float
        Its standard error by the delta method. With k-hat above 0.5 it is not to be trusted, and above the threshold
        both the value and the error tend to be too small.
    """

    log_weights: FloatArray
    k_hat: float
    threshold: float
    effective_draws: float
    log_mean: float
    log_mean_se: float


def importance(log_p: FloatArray, log_q: FloatArray) -> Importance:
    """Weights ``p / q`` of draws from q, smoothed (Vehtari et al. 2024).

    Parameters
    ----------
    log_p, log_q : array
        Log densities at the draws, of the target (normalised or not) and of what they were drawn from (normalised).
    """
    log_p, log_q = np.ravel(log_p).astype(float), np.ravel(log_q).astype(float)
    S, raw = len(log_p), log_p - log_q
    if S < _FEWEST:
        raise ValueError(f"k-hat needs at least {_FEWEST} draws, and there are {S}: fit with more.")
    if np.isnan(raw).any() or not np.isfinite(raw.max()):
        raise ValueError("The log target is not a number at some of the draws, or zero at all of them.")
    log_mean = float(logsumexp(raw) - np.log(S))
    relative = np.exp(raw - log_mean)
    se = float(np.std(relative, ddof=1) / np.sqrt(S))
    threshold = min(1 - 1 / float(np.log10(S)), 0.7)
    if np.ptp(raw) <= _ROUNDING * (1 + np.abs(log_p).max()):
        return Importance(np.full(S, -np.log(S)), 0.0, threshold, float(S), log_mean, se)
    from arviz_stats.base.array import array_stats  # takes most of a second, and fitting does not need it

    arviz: Any = array_stats
    weights, k_hat = arviz.psislw(-raw)  # it takes the logarithms of 1/weight
    effective = float(np.exp(-logsumexp(2 * weights)))
    shape = float(k_hat) if np.isfinite(k_hat) else np.inf
    return Importance(np.asarray(weights), shape, threshold, effective, log_mean, se)
