"""Averages over a normal predictor: of moments by Gauss-Hermite quadrature, of a density by the trapezoidal rule.

The trapezoidal rule is exact to rounding for what is smooth and dies away at both ends. A density of one observation is
that, but may have its peak far out in the normal's tail, or one much narrower than the normal: so the nodes go to where
the product is.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bayes_sparse.common.types import FloatArray, IntArray

__all__ = ["average", "average_in_blocks", "log_average"]

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(48)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
_STEEP = 3.0  # sds above which the trapezoidal rule takes over
_MANY_NODES = np.linspace(-14.0, 14.0, 4096)  # wide enough for the exponential function at an sd of 6
_MANY_WEIGHTS = np.exp(-0.5 * _MANY_NODES**2)
_MANY_WEIGHTS = _MANY_WEIGHTS / _MANY_WEIGHTS.sum()
_BLOCK = 2**21  # numbers held at once

type Moments = Callable[[FloatArray], tuple[FloatArray, FloatArray]]


def average(moments: Moments, mean: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of observations whose predictors are normal with the given means and variances.

    ``moments(eta)`` gives mean and variance of an observation at a matrix of predictors (rows by nodes); it is called
    with all rows at once.
    """
    return _by_rule(moments, mean, variance, _NODES, _WEIGHTS)


def average_in_blocks(moments: Moments, mean: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The same for many rows, a block at a time, where ``moments`` does not depend on which row it is.

    Predictors with a large sd take another rule: to them a logistic function is nearly a step, which Gauss-Hermite
    nodes jump over (off by 0.04 at an sd of 30).
    """
    centre, spread = np.empty(len(mean)), np.empty(len(mean))
    flat = variance > _STEEP**2
    for own, nodes, weights in ((~flat, _NODES, _WEIGHTS), (flat, _MANY_NODES, _MANY_WEIGHTS)):
        rows = np.flatnonzero(own)
        for some in np.array_split(rows, max(1, len(rows) * len(nodes) // _BLOCK)):
            centre[some], spread[some] = _by_rule(moments, mean[some], variance[some], nodes, weights)
    return centre, spread


def _by_rule(
    moments: Moments, mean: FloatArray, variance: FloatArray, nodes: FloatArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    level, spread = moments(mean[:, None] + np.sqrt(variance)[:, None] * nodes)
    centre = level @ weights
    return centre, spread @ weights + ((level - centre[:, None]) ** 2) @ weights


_COARSE = 256  # nodes of the trapezoidal rule that are tried first
_FINE = 2048  # nodes where those do not do: with fewer a logistic function would look like a step to a wide normal
_AGREE = 1e-11  # nats between all nodes and every other one: then what is smooth is exact to rounding
_DEEP = 40.0  # nats below its peak from where on the product counts for nothing
_WIDE = 12.0  # sds around the mean where the nodes are put first
_MOVES = 60  # of the nodes; each at least doubles the range, or halves it

type LogDensity = Callable[[FloatArray, IntArray], FloatArray]


def log_average(log_density: LogDensity, mean: FloatArray, variance: FloatArray) -> FloatArray:
    """Log of the average density of each observation, whose predictor is normal with the given mean and variance.

    ``log_density(eta, rows)`` gives that of some of the observations at a matrix of predictors (rows by nodes).
    """
    out = np.empty(len(mean))
    narrow = _WIDE * np.sqrt(variance) <= _FINE * np.spacing(np.abs(mean))  # all nodes would be the same few numbers
    sure, spread = np.flatnonzero(narrow), np.flatnonzero(~narrow)
    out[sure] = log_density(mean[sure, None], sure)[:, 0]
    for rows in np.array_split(spread, -(-len(spread) * _FINE // _BLOCK)) if len(spread) else []:
        out[rows], apart = _trapezoidal(log_density, mean[rows], np.sqrt(variance[rows]), rows, _COARSE)
        again = rows[~(apart <= _AGREE)]
        if len(again):
            out[again], _ = _trapezoidal(log_density, mean[again], np.sqrt(variance[again]), again, _FINE)
    return out


def _trapezoidal(
    log_density: LogDensity, mean: FloatArray, sd: FloatArray, rows: IntArray, nodes: int
) -> tuple[FloatArray, FloatArray]:
    """The same of one block, the nodes of each row moved until a good part of them counts, and none at the ends.

    And how far from it every other node alone would be.
    """
    low, high = mean - _WIDE * sd, mean + _WIDE * sd
    out, left, end = np.full(len(mean), -np.inf), np.arange(len(mean)), nodes - 1
    apart = np.full(len(mean), np.inf)
    for _ in range(_MOVES):
        eta, width = np.linspace(low[left], high[left], nodes, axis=1), high[left] - low[left]
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # very far out a density is zero
            product = log_density(eta, rows[left]) - 0.5 * ((eta - mean[left, None]) / sd[left, None]) ** 2
            product[np.isnan(product)] = -np.inf
            top = product.max(axis=1)
            each = np.exp(product - top[:, None])
            total = np.log(each.sum(axis=1)) + top
            apart[left] = np.abs(np.log(2 * each[:, ::2].sum(axis=1)) + top - total)
        possible = top > -np.inf
        spacing = width[possible] / end / sd[left[possible]]
        out[left[possible]] = total[possible] + np.log(spacing / np.sqrt(2 * np.pi))
        counts = product > top[:, None] - _DEEP
        first = np.where(possible, counts.argmax(axis=1), 0)
        last = np.where(possible, end - counts[:, ::-1].argmax(axis=1), end)
        inside, row = (first > 0) & (last < end), np.arange(len(left))
        low[left] = np.where(inside, eta[row, first - 1], low[left] - width * (first == 0))
        high[left] = np.where(inside, eta[row, np.minimum(last + 1, end)], high[left] + width * (last == end))
        left = left[~inside | (last - first < nodes // 4)]
        if not len(left):
            break
    return out, apart
