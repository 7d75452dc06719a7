"""The columns of the linear predictor, standardised on the fly so that X is never copied.

A design has ``M`` basis functions ``phi_j = (x_j - shift_j) / scale_j`` taken from the user's own array, followed
by ``q`` extra columns (the bias, a random effect ...) that are never pruned. Every product an evidence method
needs is a method of this class; small designs are standardised once and kept, large ones are streamed in row blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayes_sparse.common.types import FloatArray, IntArray

__all__ = ["Design", "column_moments", "weighted_sd"]

_KEPT_BYTES = 48 * 2**20  # a standardised copy up to this size is kept: small beside the interpreter itself
_BLOCK_BYTES = 2 * 2**20  # row blocks of a streamed design: about the size of a core's cache


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
        X: FloatArray,
        shift: FloatArray | None = None,
        scale: FloatArray | None = None,
        extra: FloatArray | None = None,
    ) -> None:
        self.n, self.M = int(X.shape[0]), int(X.shape[1])
        self.extra = np.empty((self.n, 0)) if extra is None else np.asarray(extra, dtype=float)
        self.shift, self.scale = shift, scale
        plain = shift is None and scale is None and X.dtype == np.float64
        if not plain and X.size * 8 <= _KEPT_BYTES:
            X, plain = self._standardise(X, slice(None)), True
        self._X, self._plain = X, plain
        self._squares: FloatArray | None = None

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
        for rows in self._rows(8 * max(len(chosen), 1)):
            out[rows, inside] = self._standardise(self._X[rows][:, chosen], chosen)
        out[:, ~inside] = self.extra[:, index[~inside] - self.M]
        return out

    def times(self, w: FloatArray, index: IntArray) -> FloatArray:
        """Predictor ``Phi[:, index] @ w`` without taking the columns out."""
        inside = index < self.M
        full = np.zeros(self.M)
        full[index[inside]] = w[inside]
        eta: FloatArray = self.extra[:, index[~inside] - self.M] @ w[~inside]
        if not inside.any():
            return eta
        if self._plain:
            return eta + self._X @ full
        for rows in self._rows():
            eta[rows] += self._standardise(self._X[rows], slice(None)) @ full
        return eta

    def transposed_times(self, v: FloatArray) -> FloatArray:
        """``Phi' v`` over all columns."""
        out = np.zeros(self.width)
        for rows, block in self._blocks():
            out[: self.M] += v[rows] @ block
        out[self.M :] = v @ self.extra
        return out

    def squares(self, weights: FloatArray | None = None) -> FloatArray:
        """Diagonal of ``Phi' diag(weights) Phi``."""
        if weights is None and self._squares is not None:
            return self._squares
        out = np.zeros(self.width)
        for rows, block in self._blocks():
            if weights is None:
                out[: self.M] += np.einsum("ij,ij->j", block, block)
            else:
                out[: self.M] += np.einsum("i,ij,ij->j", weights[rows], block, block)
        extra = self.extra if weights is None else self.extra * weights[:, None]
        out[self.M :] = np.einsum("ij,ij->j", extra, self.extra)
        if weights is None:
            self._squares = out
        return out

    def cross(self, right: FloatArray, weights: FloatArray | None = None) -> FloatArray:
        """``Phi' diag(weights) right`` for a dense n x k matrix, as a (width, k) matrix."""
        if weights is not None:
            right = right * weights[:, None]
        out = np.zeros((self.width, right.shape[1]))
        for rows, block in self._blocks():
            out[: self.M] += block.T @ right[rows]
        out[self.M :] = self.extra.T @ right
        return out

    def scan(self, right: FloatArray, weights: FloatArray, v: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """`cross`, `squares` and `transposed_times` together, in one pass over a design that may be streamed."""
        cross, squares, products = np.zeros((self.width, right.shape[1])), np.zeros(self.width), np.zeros(self.width)
        M, weighted = self.M, right * weights[:, None]
        for rows, block in self._blocks():
            cross[:M] += block.T @ weighted[rows]
            squares[:M] += np.einsum("i,ij,ij->j", weights[rows], block, block)
            products[:M] += v[rows] @ block
        cross[M:] = self.extra.T @ weighted
        squares[M:] = np.einsum("i,ij,ij->j", weights, self.extra, self.extra)
        products[M:] = v @ self.extra
        return cross, squares, products

    def project(self, directions: FloatArray) -> FloatArray:
        """``Phi @ directions`` over the M basis functions, for directions of shape (M, k)."""
        out = np.empty((self.n, directions.shape[1]))
        for rows, block in self._blocks():
            np.matmul(block, directions, out=out[rows])
        return out

    def gram(self, weights: FloatArray | None = None) -> FloatArray:
        """``Phi' diag(weights) Phi`` over all columns: for tall problems, where width is small."""
        out = np.zeros((self.width, self.width))
        half = None if weights is None or weights.min(initial=0.0) < 0 else np.sqrt(weights)
        for rows, block in self._blocks():
            whole = np.empty((len(block), self.width))
            scale: FloatArray | float = 1.0 if half is None else half[rows, None]
            np.multiply(block, scale, out=whole[:, : self.M])
            np.multiply(self.extra[rows], scale, out=whole[:, self.M :])
            if weights is None or half is not None:
                out += whole.T @ whole  # a matrix with its own transpose: numpy computes one half and mirrors it
            else:
                out += (whole * weights[rows, None]).T @ whole
        return out

    def _standardise(self, X: FloatArray, columns: IntArray | slice) -> FloatArray:
        if getattr(self, "_plain", False) or (self.shift is None and self.scale is None):
            return X.astype(float, copy=False)
        out = X - self.shift[columns] if self.shift is not None else X.astype(float)
        if self.scale is not None:
            out /= self.scale[columns]
        return out

    def _rows(self, bytes_a_row: int | None = None) -> Iterator[slice]:
        if self._plain:
            yield slice(None)
            return
        step = max(64, _BLOCK_BYTES // (bytes_a_row or 8 * max(self.M, 1)))
        for start in range(0, self.n, step):
            yield slice(start, min(start + step, self.n))

    def _blocks(self) -> Iterator[tuple[slice, FloatArray]]:
        for rows in self._rows():
            yield rows, self._standardise(self._X[rows], slice(None))


def column_moments(X: NDArray[Any], weights: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of each column, in row blocks: no temporary of the size of X.

    With weights each row counts as often as its weight says.
    """
    n, width = int(X.shape[0]), int(X.shape[1])
    total = n if weights is None else float(weights.sum())
    step = max(64, _BLOCK_BYTES // (8 * max(width, 1)))
    blocks = [slice(start, min(start + step, n)) for start in range(0, n, step)]
    mean, square = np.zeros(width), np.zeros(width)
    for rows in blocks:
        mean += np.add.reduce(X[rows], axis=0, dtype=float) if weights is None else weights[rows] @ X[rows]
    mean /= total
    for rows in blocks:
        centred = X[rows] - mean
        if weights is None:
            square += np.einsum("ij,ij->j", centred, centred)
        else:
            square += np.einsum("i,ij,ij->j", weights[rows], centred, centred)
    sd = np.sqrt(square / total)
    # A constant column's sd is rounding error, not zero.
    sd[sd <= 1e-13 * np.maximum(np.abs(mean), 1e-300)] = 0.0
    return mean, sd


def weighted_sd(values: FloatArray, weights: FloatArray | None) -> float:
    """Standard deviation, with each value as often as its weight says."""
    return float(np.sqrt(np.average((values - np.average(values, weights=weights)) ** 2, weights=weights)))
