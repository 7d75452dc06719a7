"""Averages of class probabilities over normal predictors, one a class, by quasi-random points.

The points are in the space of the predictors of each row, along the principal axes of their covariance, the widest
first. Softmax does not notice a shift that is common to all classes, so that direction is left out. Sobol's sequence,
scrambled once and for all (Owen 1995), is 10 to 100 times as accurate as so many random numbers; a row whose predictors
are little known takes more points. Of 3 to 20 classes, with predictors whose sds are 0.5 to 30, no average was off by
more than 0.0022 (20 classes, sd 30), most by less than 0.001.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtri

from bayes_sparse.common.types import FloatArray
from bayes_sparse.problem.classes import Link, log_probability

__all__ = ["average_probabilities"]

_FEWEST, _MOST = 2**10, 2**15  # points a row
_POINTS = 30.0  # for each dimension and unit of the predictors' spread
_BLOCK = 2**18  # numbers held at once: a megabyte
_TINY = 1e-30  # below it single precision, which is several times as fast, would soon be zero


def average_probabilities(mean: FloatArray, covariance: FloatArray, link: Link) -> FloatArray:
    """Probabilities (m, C) of classes whose predictors are normal.

    Parameters
    ----------
    mean, covariance : array (m, C), (m, C, C)
        Of the predictors of each row.
    link : "softmax" or "one_vs_rest"
        How predictors become probabilities.
    """
    C = mean.shape[1]
    shift = link == "softmax"
    if shift:
        mean = mean - mean.mean(axis=1, keepdims=True)
        covariance = covariance - covariance.mean(axis=1, keepdims=True)
        covariance = covariance - covariance.mean(axis=2, keepdims=True)
    values, axes = np.linalg.eigh(covariance)
    values, d = np.maximum(values, 0.0), C - shift
    # The sign of an axis is arbitrary: by its cubes it does not depend on the order of the classes.
    sign = np.where(np.sum(axes**3, axis=1) < 0, -1.0, 1.0)
    factor = (axes * (sign * np.sqrt(values))[:, None, :])[:, :, ::-1][:, :, :d]
    spread = np.sqrt(values.sum(axis=1))
    level = np.ceil(np.log2(np.clip(_POINTS * d * spread, _FEWEST, _MOST))).astype(int)
    points = _points(d, 2 ** int(level.max(initial=1)))
    out = np.empty_like(mean)
    for n in np.unique(level).tolist():
        own = np.flatnonzero(level == n)
        for rows in np.array_split(own, max(1, len(own) * 2**n * C // _BLOCK)):
            out[rows] = _averaged(mean[rows], factor[rows], points[:, : 2**n], link)
    return np.asarray(out / out.sum(axis=1, keepdims=True))


def _averaged(mean: FloatArray, factor: FloatArray, points: FloatArray, link: Link) -> FloatArray:
    if link != "softmax":
        eta = _predictors(mean, factor, points).transpose(0, 2, 1)
        return np.asarray(np.exp(log_probability(eta, link)).mean(axis=1))
    single: Any = np.float32
    out = _softmax(mean.astype(single), factor.astype(single), points.astype(single))
    small = out.min(axis=1) < _TINY
    if small.any():
        out[small] = _softmax(mean[small], factor[small], points)
    return out


def _softmax(mean: FloatArray, factor: FloatArray, points: FloatArray) -> FloatArray:
    p = _predictors(mean, factor, points)
    p -= p.max(axis=1, keepdims=True)
    np.exp(p, out=p)
    p /= p.sum(axis=1, keepdims=True)
    return np.asarray(p.mean(axis=2), dtype=float)


def _predictors(mean: FloatArray, factor: FloatArray, points: FloatArray) -> FloatArray:
    """Of each row and class at each point, (m, C, points): sums over classes then run along whole rows of memory."""
    eta = factor @ points
    eta += mean[:, :, None]
    return np.asarray(eta)


def _points(d: int, n: int) -> FloatArray:
    """The first n normal points (d, n), n a power of 2; those of a smaller n are the first of them."""
    from scipy.stats.qmc import Sobol  # takes a while, and most predictions do not need it

    u = Sobol(d, rng=np.random.default_rng(0)).random(n)
    return np.ascontiguousarray(ndtri(np.clip(u, 1e-10, 1 - 1e-10)).T)
