"""Weights of draws that leave out one observation at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayes_sparse.problem.design import FloatArray
from bayes_sparse.results.log_target import log_densities
from bayes_sparse.trees.read import Fit

__all__ = ["left_out_weights"]

_LARGEST = 4_000_000  # weights computed


def left_out_weights(fit: Fit) -> FloatArray | None:
    """Pareto-smoothed weights (draws, rows) towards the posterior without each row; None where there are too many.

    The draws of an evidence fit are weighted towards the exact posterior at its hyper-parameters in the same go
    (Magnusson et al. 2019).
    """
    if fit.posterior is None or not fit.has_likelihood:
        return None
    pointwise = next(iter(fit.tree["log_likelihood"].to_dataset().data_vars.values()))
    values = pointwise.transpose("chain", "draw", ...).to_numpy()
    log_likelihood = values.reshape(values.shape[0] * values.shape[1], -1)
    if log_likelihood.size > _LARGEST:
        return None
    log_ratio = -log_likelihood
    if not fit.sampled:
        log_p, log_q = (part.to_numpy().reshape(-1, 1) for part in log_densities(fit.tree))
        log_ratio = log_ratio + (log_p - log_q)
    from arviz_stats.base.array import array_stats  # takes most of a second, and fitting does not need it

    arviz: Any = array_stats  # it takes the logarithms of 1/weight, and gives those of weights that sum to 1
    return np.exp(np.stack([arviz.psislw(-column)[0] for column in log_ratio.T], axis=1))
