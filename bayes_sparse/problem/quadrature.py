"""Averages over a normal predictor by Gauss-Hermite quadrature."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bayes_sparse.common.types import FloatArray

__all__ = ["average", "average_in_blocks"]

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(48)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
_BLOCK = 2**21  # numbers held at once

type Moments = Callable[[FloatArray], tuple[FloatArray, FloatArray]]


def average(moments: Moments, mean: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of observations whose predictors are normal with the given means and variances.

    ``moments(eta)`` gives mean and variance of an observation at a matrix of predictors (rows by nodes); it is called
    with all rows at once.
    """
    eta = mean[:, None] + np.sqrt(variance)[:, None] * _NODES
    level, spread = moments(eta)
    centre = level @ _WEIGHTS
    return centre, spread @ _WEIGHTS + ((level - centre[:, None]) ** 2) @ _WEIGHTS


def average_in_blocks(moments: Moments, mean: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The same for many rows, a block at a time, where ``moments`` does not depend on which row it is."""
    parts = max(1, len(mean) * len(_NODES) // _BLOCK)
    done = [
        average(moments, m, v)
        for m, v in zip(np.array_split(mean, parts), np.array_split(variance, parts), strict=True)
    ]
    return np.concatenate([d[0] for d in done]), np.concatenate([d[1] for d in done])
