"""The first pass over data in chunks: how many rows, what is missing, the moments of columns, what the targets are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inputs.table import in_words
from bayes_sparse.problem.chunked.passes import Chunk

__all__ = ["Survey", "merged", "survey_of"]

_DISTINCT = 2**16  # values of the targets that are remembered with their counts
_SOME = 2**10  # targets of each chunk that are remembered where there are more values


@dataclass(frozen=True, eq=False)
class Survey:
    """What a pass has seen.

    Attributes
    ----------
    lengths : list of int
        Rows of each chunk.
    total : float
        Number of rows, each as often as its weight says.
    mean, power : array (p,)
        Of each column, weighted: its mean, and the sum of squares about it.
    low, high : array (p,)
        Smallest and largest value of each column.
    lost, infinite : int array (p,)
        Missing and infinite values of each column.
    centre, spread : float
        Weighted mean of the targets less their offset, and sum of squares about it; of targets that are numbers.
    strange : int
        Targets that are missing or not finite.
    values, counts : array
        The targets' distinct values and how often they occur; some of the values where there are many.
    complete : bool
        Whether these are all of them.
    kind : str
        Of numpy's dtype of the targets: floats, whole numbers, labels.
    beside : array (3,)
        Weights or offsets that are not finite, negative weights, and the size of the largest offset.
    """

    lengths: list[int]
    total: float
    mean: FloatArray
    power: FloatArray
    low: FloatArray
    high: FloatArray
    lost: NDArray[np.intp]
    infinite: NDArray[np.intp]
    centre: float
    spread: float
    strange: int
    values: NDArray[Any]
    counts: FloatArray
    complete: bool
    kind: str
    beside: FloatArray

    def check(self, names: list[str], target: str) -> None:
        """Refuse what cannot be fitted, in one sentence."""
        if not sum(self.lengths):
            raise ValueError("The data are empty: there are no rows, or each has a missing value or weight 0.")
        for counts, what, cure in (
            (self.lost, "Missing", "missing='drop' leaves out those rows, or remove the columns"),
            (self.infinite, "Infinite", "fill them in or remove those rows"),
        ):
            worst = [f"{names[j]!r} ({counts[j]})" for j in np.flatnonzero(counts)]
            if worst:
                raise ValueError(f"{what} values in {in_words(worst, quote=False)}: {cure}.")
        if self.strange:
            raise ValueError(f"The target {target!r} has {self.strange} NaN or infinite values; remove those rows.")
        if self.beside[0]:
            raise ValueError(f"`weights` or `offset` hold {self.beside[0]:.0f} NaN or infinite values; remove them.")
        if self.beside[1]:
            raise ValueError("`weights` must not be negative, and not all zero.")

    @property
    def sd(self) -> FloatArray:
        """Of each column."""
        sd = np.sqrt(self.power / self.total)
        sd[sd <= 1e-13 * np.maximum(np.abs(self.mean), 1e-300)] = 0.0  # a constant column's sd is rounding error
        return sd

    def targets(self) -> tuple[FloatArray, FloatArray]:
        """Values and weights with the mean and the mean square of the targets less their offset."""
        sd = np.sqrt(self.spread / self.total)
        return np.array([self.centre - sd, self.centre + sd]), np.full(2, self.total / 2)


def survey_of(chunk: Chunk) -> Survey | list[int]:
    """Of one chunk; of one without rows only that."""
    n, kind = len(chunk.y), chunk.y.dtype.kind
    if not n:
        return [0]
    weight = np.ones(n) if chunk.weights is None else chunk.weights
    beside = np.zeros(3)
    for part in (chunk.weights, chunk.offset):
        if part is not None:
            beside[0] += np.count_nonzero(~np.isfinite(part))
    beside[1] = np.count_nonzero(weight < 0)
    beside[2] = 0.0 if chunk.offset is None else np.abs(chunk.offset).max()
    total = float(weight.sum())
    with np.errstate(all="ignore"):  # missing and infinite values are counted, and refused
        mean, power, low, high = _moments(chunk.X, weight, total)
    floats = chunk.X.dtype.kind == "f" and not np.isfinite(power).all()
    lost = np.isnan(chunk.X).sum(axis=0) if floats else np.zeros(len(mean), dtype=np.intp)
    infinite = np.isinf(chunk.X).sum(axis=0) if floats else np.zeros(len(mean), dtype=np.intp)
    t = np.zeros(n) if kind not in "fiub" else chunk.y - (0.0 if chunk.offset is None else chunk.offset)
    centre = float(weight @ t) / total
    values, place = np.unique(chunk.y, return_inverse=True)
    counts, complete = np.bincount(place, weight), len(values) <= _DISTINCT
    if not complete:
        values, counts = _some(chunk.y, weight)
    strange = int(np.count_nonzero(~np.isfinite(chunk.y))) if kind == "f" else 0
    spread = float(weight @ (t - centre) ** 2)
    return Survey(
        [n],
        total,
        mean,
        power,
        low,
        high,
        lost,
        infinite,
        centre,
        spread,
        strange,
        values,
        counts,
        complete,
        kind,
        beside,
    )


def _moments(
    X: NDArray[Any], weight: FloatArray, total: float
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Mean, sum of squares about it, smallest and largest of each column, in blocks that stay in the cache."""
    blocks = [slice(start, start + 2048) for start in range(0, len(X), 2048)]
    mean, power = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    low, high = np.full(X.shape[1], np.inf), np.full(X.shape[1], -np.inf)
    for rows in blocks:
        mean += weight[rows] @ X[rows]
        np.minimum(low, X[rows].min(axis=0), out=low)
        np.maximum(high, X[rows].max(axis=0), out=high)
    mean /= total
    for rows in blocks:
        power += weight[rows] @ np.square(X[rows] - mean)
    return mean, power, low, high


def _some(values: NDArray[Any], counts: FloatArray) -> tuple[NDArray[Any], FloatArray]:
    """Evenly spaced ones, standing for all."""
    at = np.linspace(0, len(values) - 1, _SOME).astype(int)
    return values[at], np.full(_SOME, counts.sum() / _SOME)


def merged(one: Survey | list[int], other: Survey | list[int]) -> Survey | list[int]:
    """Of two chunks, the first one's rows first."""
    if isinstance(one, list) or isinstance(other, list):
        lengths = [*_lengths(one), *_lengths(other)]
        rest = other if isinstance(one, list) else one
        return lengths if isinstance(rest, list) else replace(rest, lengths=lengths)
    total = one.total + other.total
    share = other.total / total
    apart, across = other.mean - one.mean, other.centre - one.centre
    with np.errstate(all="ignore"):
        mean = one.mean + share * apart
        power = one.power + other.power + apart**2 * (one.total * share)
    values, counts, complete = _tallied(one, other)
    return Survey(
        one.lengths + other.lengths,
        total,
        mean,
        power,
        np.minimum(one.low, other.low),
        np.maximum(one.high, other.high),
        one.lost + other.lost,
        one.infinite + other.infinite,
        one.centre + share * across,
        one.spread + other.spread + across**2 * (one.total * share),
        one.strange + other.strange,
        values,
        counts,
        complete,
        one.kind if one.kind == other.kind else "f",
        np.append(one.beside[:2] + other.beside[:2], max(one.beside[2], other.beside[2])),
    )


def _tallied(one: Survey, other: Survey) -> tuple[NDArray[Any], FloatArray, bool]:
    values, counts = np.concatenate([one.values, other.values]), np.concatenate([one.counts, other.counts])
    if not (one.complete and other.complete):
        return values, counts, False
    distinct, place = np.unique(values, return_inverse=True)
    if len(distinct) > _DISTINCT:
        return *_some(values, counts), False
    return distinct, np.bincount(place, counts), True


def _lengths(part: Survey | list[int]) -> list[int]:
    return part if isinstance(part, list) else part.lengths
