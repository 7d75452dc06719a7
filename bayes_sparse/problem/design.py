"""The columns of the linear predictor, standardised inside the products so that X is never copied.

A design has ``M`` basis functions ``phi_j = (x_j - shift_j) / scale_j`` taken from the user's own array, followed
by ``q`` extra columns (the bias, a random effect ...) that are never pruned. Every product an evidence method
needs is a method of this class. Shift and scale are taken off the product, not off the columns:
``Phi' v = (X' v - shift sum(v)) / scale``. That costs as many digits as the shift is larger than the scale, twice as
many in squares, so from the columns that are too far from zero the shift is taken off themselves, a block that fits
into the cache at a time; so are numbers of another kind than 64-bit floats made into those. A design no larger than
one block is standardised once.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayes_sparse.common.types import FloatArray, IntArray

__all__ = ["Design", "column_moments", "weighted_sd"]

_KEPT_BYTES = 2**25  # of the squares of all elements
_BLOCK_BYTES = 2**19  # half of a small core's cache: what is made of a block stays in it too
_LEAST_ROWS = 256  # of a block, where there are so many columns that a block has only some of them
_FAR_PRODUCTS = 1e3  # shift / scale, beyond which three digits of a product would be lost
_FAR_SQUARES = 30.0  # the same of a product of two columns
_NEAR = 1e-3  # of the mean square about a guess of the mean: what is left about the mean itself, for it to be near
_LINE = 8  # numbers that come into the cache together: to pick every eighth column takes as long as to take all


class _Shift(NamedTuple):
    """What is taken off the columns themselves, None for nothing, and what is left to be taken off their products."""

    columns: FloatArray | None
    products: FloatArray


class Design:
    """An n x (M + q) matrix of basis functions and extra columns.

    Parameters
    ----------
    X : array (n, M)
        The basis functions before standardising. Never written to.
    shift, scale : array (M,), optional
        Column ``j`` of the design is ``(X[:, j] - shift[j]) / scale[j]``.
    extra : array (n, q), optional
        Columns appended after the M basis functions, used as they are.
    """

    def __init__(
        self,
        X: NDArray[Any],
        shift: FloatArray | None = None,
        scale: FloatArray | None = None,
        extra: FloatArray | None = None,
    ) -> None:
        self.n, self.M = int(X.shape[0]), int(X.shape[1])
        self.extra = np.empty((self.n, 0)) if extra is None else np.asarray(extra, dtype=float)
        self.shift, self.scale = shift, scale
        self._X = X
        self._shift = np.zeros(self.M) if shift is None else shift
        self._scale = np.ones(self.M) if scale is None else scale
        self._bare = shift is None and scale is None  # the columns are as they lie there
        if not (self._bare and X.dtype == np.float64) and X.size * 8 <= _BLOCK_BYTES:
            self._X = self._standardised(X, slice(None))
            self._shift, self._scale, self._bare = np.zeros(self.M), np.ones(self.M), True
        # Without a scale nothing tells how far a column is from zero.
        far = np.abs(self._shift) / self._scale if scale is not None else np.where(self._shift != 0, np.inf, 0.0)
        self._in_products, self._in_squares = self._split(far > _FAR_PRODUCTS), self._split(far > _FAR_SQUARES)
        self._squares: FloatArray | None = None

    @cached_property
    def _squared(self) -> FloatArray | None:
        """The square of each element, where there is room for it: a search asks for it again and again."""
        room = self._X.size * 8 <= _KEPT_BYTES and self._as_it_is(self._in_squares)
        return self._X**2 if room else None

    @property
    def q(self) -> int:
        """Number of extra columns."""
        return int(self.extra.shape[1])

    @property
    def width(self) -> int:
        """Number of columns, basis functions and extra ones."""
        return self.M + self.q

    def columns(self, index: IntArray) -> FloatArray:
        """Chosen columns as a Fortran-ordered n x k matrix of their own."""
        out = np.empty((self.n, len(index)), order="F")
        inside = index < self.M
        chosen = index[inside]
        step = max(64, _BLOCK_BYTES // (8 * max(len(chosen), 1)))
        for start in range(0, self.n, step):
            rows = slice(start, min(start + step, self.n))
            out[rows, inside] = self._standardised(self._X[rows, chosen], chosen)
        out[:, ~inside] = self.extra[:, index[~inside] - self.M]
        return out

    def by_rows(self) -> FloatArray:
        """All M basis functions as a C-ordered matrix, not to be written to."""
        return self._standardised(self._X, slice(None))

    def times(self, w: FloatArray, index: IntArray) -> FloatArray:
        """Predictor ``Phi[:, index] @ w`` without taking the columns out, unless they are few."""
        inside = index < self.M
        chosen = index[inside]
        if _LINE * len(chosen) < self.M:
            return self.columns(index) @ w
        full = np.zeros((self.M, 1))
        full[chosen, 0] = w[inside]
        eta: FloatArray = self.project(full)[:, 0]
        return eta + self.extra[:, index[~inside] - self.M] @ w[~inside]

    def transposed_times(self, v: FloatArray) -> FloatArray:
        """``Phi' v`` over all columns."""
        return self.cross(v[:, None])[:, 0]

    def squares(self, weights: FloatArray | None = None) -> FloatArray:
        """Diagonal of ``Phi' diag(weights) Phi``."""
        if weights is None and self._squares is not None:
            return self._squares
        counted = np.ones(self.n) if weights is None else weights
        square, first = np.zeros(self.M), np.zeros(self.M)
        for rows, columns, block in self._blocks(self._in_squares):
            square[columns] += counted[rows] @ (block * block)
            first[columns] += counted[rows] @ block
        extra = np.einsum("i,ij,ij->j", counted, self.extra, self.extra)
        out = np.append(self._centred_squares(square, first, float(counted.sum())), extra)
        if weights is None:
            self._squares = out
        return out

    def cross(self, right: FloatArray, weights: FloatArray | None = None) -> FloatArray:
        """``Phi' diag(weights) right`` for a dense n x k matrix, as a (width, k) matrix."""
        if weights is not None:
            right = right * weights[:, None]
        out = np.zeros((self.width, right.shape[1]))
        inside = out[: self.M]
        if self._as_it_is(self._in_products):
            np.matmul(self._X.T, right, out=inside)
        else:
            for rows, columns, block in self._blocks(self._in_products):
                inside[columns] += block.T @ right[rows]
        self._centre(inside, self._in_products, right.sum(axis=0))
        out[self.M :] = self.extra.T @ right
        return out

    def scan(self, right: FloatArray, weights: FloatArray, v: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """`cross`, `squares` and `transposed_times` together, in one pass over the columns."""
        M, k = self.M, right.shape[1]
        beside = np.empty((self.n, k + 2), order="F")
        np.multiply(right, weights[:, None], out=beside[:, :k])
        beside[:, k], beside[:, k + 1] = v, weights
        both, square = np.empty((self.width, k + 2)), np.empty(self.width)
        if self._squared is not None:
            np.matmul(self._X.T, beside, out=both[:M])
            np.matmul(weights, self._squared, out=square[:M])
        else:
            both[:M] = square[:M] = 0.0
            for rows, columns, block in self._blocks(self._in_squares):
                both[columns] += block.T @ beside[rows]
                square[columns] += weights[rows] @ (block * block)
        if not self._bare:
            square[:M] = self._centred_squares(square[:M], both[:M, k + 1], float(weights.sum()))
            self._centre(both[:M], self._in_squares, beside.sum(axis=0))
        np.matmul(self.extra.T, beside, out=both[M:])
        square[M:] = np.einsum("i,ij,ij->j", weights, self.extra, self.extra)
        return both[:, :k], square, both[:, k]

    def project(self, directions: FloatArray) -> FloatArray:
        """``Phi @ directions`` over the M basis functions, for directions of shape (M, k)."""
        scaled = directions if self._bare else directions / self._scale[:, None]
        if self._as_it_is(self._in_products):
            out = self._X @ scaled
        else:
            out = np.zeros((self.n, directions.shape[1]))
            for rows, columns, block in self._blocks(self._in_products):
                out[rows] += block @ scaled[columns]
        if not self._bare:
            out -= self._in_products.products @ scaled
        return np.asarray(out)

    def along(self, Q: FloatArray) -> Design:
        """Directions (k, M) in the place of the basis functions, the other columns after them."""
        return Design(self.project(Q.T), extra=self.extra)

    def ordered(self, order: IntArray, M: int) -> Design:
        """The columns in another order, of which so many are basis functions."""
        columns = self.columns(order)
        return Design(columns[:, :M], extra=columns[:, M:])

    def gram(self, weights: FloatArray | None = None) -> FloatArray:
        """``Phi' diag(weights) Phi`` over all columns: for tall problems, where width is small."""
        M, out = self.M, np.empty((self.width, self.width))
        inside, first, total = np.zeros((M, M)), np.zeros(M), float(self.n if weights is None else weights.sum())
        half = None if weights is None or weights.min(initial=0.0) < 0 else np.sqrt(weights)
        for rows, block in self._row_blocks(self._in_squares, whole=weights is None):
            if weights is None:
                inside += block.T @ block  # a matrix with its own transpose: numpy computes one half and mirrors it
                first += np.add.reduce(block, axis=0)
                continue
            first += weights[rows] @ block
            left = block * (weights if half is None else half)[rows, None]
            inside += left.T @ (block if half is None else left)
        if not self._bare:
            shifted = np.outer(self._in_squares.products, first - 0.5 * total * self._in_squares.products)
            inside -= shifted
            inside -= shifted.T
            inside /= self._scale[:, None] * self._scale
        out[:M, :M] = inside
        out[:, M:] = self.cross(self.extra, weights)
        out[M:, :M] = out[:M, M:].T
        return out

    def _split(self, far: NDArray[np.bool_]) -> _Shift:
        """The shift of the columns far from zero, to be taken off themselves, and that of the others."""
        if not far.any():
            return _Shift(None, self._shift)
        return _Shift(np.where(far, self._shift, 0.0), np.where(far, 0.0, self._shift))

    def _centre(self, products: FloatArray, shift: _Shift, totals: FloatArray) -> None:
        """From products ``X' v`` to ``Phi' v``, in their place; totals are the sums of each v."""
        if self._bare:
            return
        products -= np.outer(shift.products, totals)
        products /= self._scale[:, None]

    def _centred_squares(self, square: FloatArray, first: FloatArray, total: float) -> FloatArray:
        shift = self._in_squares.products
        return np.maximum(square - shift * (2 * first - total * shift), 0.0) / self._scale**2

    def _standardised(self, X: NDArray[Any], columns: IntArray | slice) -> FloatArray:
        if self._bare:
            return X.astype(float, copy=False)
        out = X - self._shift[columns]
        out /= self._scale[columns]
        return np.asarray(out)

    def _as_it_is(self, shift: _Shift) -> bool:
        return shift.columns is None and self._X.dtype == np.float64

    def _blocks(self, shift: _Shift) -> Iterator[tuple[slice, slice, FloatArray]]:
        """Rows, columns and ``X - shift.columns`` there, all columns before the next rows."""
        across = max(1, min(self.M, _BLOCK_BYTES // (8 * max(1, min(self.n, _LEAST_ROWS)))))
        down = max(1, _BLOCK_BYTES // (8 * across))
        for start in range(0, self.n, down):
            rows = slice(start, min(start + down, self.n))
            for first in range(0, self.M, across):
                columns = slice(first, min(first + across, self.M))
                yield rows, columns, self._off(self._X[rows, columns], shift, columns)

    def _row_blocks(self, shift: _Shift, whole: bool) -> Iterator[tuple[slice, FloatArray]]:
        """All columns of some rows, at least as many as there are columns; of all rows, where nothing is copied."""
        step = max(64, self.M, _BLOCK_BYTES // (8 * max(self.M, 1)))
        step = max(1, self.n) if whole and self._as_it_is(shift) else step
        for start in range(0, self.n, step):
            rows = slice(start, min(start + step, self.n))
            yield rows, self._off(self._X[rows], shift, slice(None))

    def _off(self, block: NDArray[Any], shift: _Shift, columns: slice) -> FloatArray:
        if shift.columns is None:
            return np.asarray(block, dtype=float)
        return np.asarray(block - shift.columns[columns])


def column_moments(X: NDArray[Any], weights: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of each column, in row blocks: no temporary of the size of X.

    In one pass about the mean of the first rows, and in another one where that was far from the mean of all.
    With weights each row counts as often as its weight says.
    """
    n, width = int(X.shape[0]), int(X.shape[1])
    total = n if weights is None else float(weights.sum())
    step = max(64, _BLOCK_BYTES // (8 * max(width, 1)))
    mean = np.add.reduce(X[:step], axis=0, dtype=float) / max(min(step, n), 1)  # near enough for one pass to do
    for _ in range(2):
        first, square = np.zeros(width), np.zeros(width)
        for start in range(0, n, step):
            away = X[start : start + step] - mean
            if weights is None:
                first += np.add.reduce(away, axis=0)
                square += np.einsum("ij,ij->j", away, away)
            else:
                own = weights[start : start + step]
                first += own @ away
                square += np.einsum("i,ij,ij->j", own, away, away)
        moved, square = first / total, square / total
        mean = mean + moved
        variance = square - moved**2
        if np.all(variance >= _NEAR * square):  # else digits were lost
            break
    sd = np.sqrt(np.maximum(variance, 0.0))
    # A constant column's sd is rounding error, not zero.
    sd[sd <= 1e-13 * np.maximum(np.abs(mean), 1e-300)] = 0.0
    return mean, sd


def weighted_sd(values: FloatArray, weights: FloatArray | None) -> float:
    """Standard deviation, with each value as often as its weight says."""
    return float(np.sqrt(np.average((values - np.average(values, weights=weights)) ** 2, weights=weights)))
