"""The columns of `design.py` where the features are a sparse matrix: nothing of its full size is ever made.

Centring would fill a sparse column, so it stays implicit. An entry that is not stored stands for
``zero_j = -shift_j / scale_j``, and every product is that of ``Phi = X / scale + 1 zero'``.
"""

from __future__ import annotations

import logging
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, hstack, issparse

from bayes_sparse.common.memory import check_fits
from bayes_sparse.common.types import FloatArray, IntArray
from bayes_sparse.problem.design import Design
from bayes_sparse.problem.streamed_design import InBlocks, StreamedDesign

__all__ = ["AnyDesign", "Features", "SparseDesign", "as_csc", "make_design", "sparse_moments"]

type AnyDesign = Design | SparseDesign
type Features = NDArray[Any] | csc_array[np.float64]

_FAR = 10.0  # spreads away from zero, beyond which the shift is taken off a column itself and not off its products
_WORTH = 100  # multiplications that BLAS does in the time of one between sparse matrices
_BLOCK_BYTES = 2 * 2**20  # rows made dense at once
_CURE = "method='sequential' makes dense only the columns that it keeps"
_SAID_BYTES = 2**30  # columns made dense at once, of which the size is said before
_log = logging.getLogger("bayes_sparse")


def make_design(X: Any, shift: FloatArray | None, scale: FloatArray | None, extra: FloatArray | None) -> AnyDesign:
    """The design of a dense matrix, a sparse one, or one that comes in blocks; parameters as for `Design`."""
    if isinstance(X, InBlocks):
        return StreamedDesign(X, shift, scale, extra)
    return (SparseDesign if issparse(X) else Design)(X, shift, scale, extra)


def as_csc(X: Any) -> csc_array[np.float64]:
    """Any sparse matrix as floats by columns: sorted, each entry once and none of them zero. X is not written to."""
    if X.ndim != 2:
        raise ValueError(
            f"X must be a table of rows and columns, got a sparse array of shape {X.shape}; X.reshape(-1, 1) is one."
        )
    if X.dtype.kind not in "fiub":
        raise ValueError(f"X must hold real numbers, got a sparse matrix of {X.dtype}.")
    out = csc_array(X)
    out.prune()  # entries beyond the last column are nobody's
    if not out.has_canonical_format or not out.data.all():
        out = out.copy()  # its arrays may be the user's
        out.sum_duplicates()
        out.eliminate_zeros()
    return out.astype(np.float64, copy=False)


def sparse_moments(X: csc_array[np.float64], weights: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of each column, as `design.column_moments`."""
    total = X.shape[0] if weights is None else float(weights.sum())
    mean = _sums(X, X.data if weights is None else weights[X.indices] * X.data) / total
    sd = np.sqrt(_power(X, mean, weights) / total)
    sd[sd <= 1e-13 * np.maximum(np.abs(mean), 1e-300)] = 0.0  # a constant column's sd is rounding error, not zero
    return mean, sd


class SparseDesign:
    """An n x (M + q) matrix of sparse basis functions and dense extra columns, with the products of `Design`.

    Parameters
    ----------
    X : sparse matrix (n, M)
        The basis functions before standardising. Never written to.
    shift, scale : array (M,), optional
        Column ``j`` of the design is ``(X[:, j] - shift[j]) / scale[j]``.
    extra : array (n, q), optional
        Columns appended after the M basis functions, used as they are.
    """

    def __init__(
        self,
        X: Any,
        shift: FloatArray | None = None,
        scale: FloatArray | None = None,
        extra: FloatArray | None = None,
    ) -> None:
        X = as_csc(X)
        self.n, self.M = int(X.shape[0]), int(X.shape[1])
        self.extra = np.empty((self.n, 0)) if extra is None else np.asarray(extra, dtype=float)
        self.shift, self.scale = shift, scale
        self._X, self._shift = _near_zero(X, np.zeros(self.M) if shift is None else shift)
        self._transposed, self._counts = self._X.T, np.diff(self._X.indptr)
        self._scale = np.ones(self.M) if scale is None else scale
        self._zero = (0.0 - self._shift) / self._scale

    @property
    def q(self) -> int:
        """Number of extra columns."""
        return int(self.extra.shape[1])

    @property
    def width(self) -> int:
        """Number of columns, basis functions and extra ones."""
        return self.M + self.q

    def columns(self, index: IntArray) -> FloatArray:
        """Chosen columns as a dense Fortran-ordered n x k matrix of their own; its size is said if that is large."""
        self._say_size(len(index))
        beyond = index >= self.M
        inside = np.flatnonzero(~beyond)
        chosen = index[inside]
        level = np.zeros(len(index))
        level[inside] = self._zero[chosen]
        out = np.empty((self.n, len(index)), order="F")
        out[:] = level
        entry, owner = _entries(self._X, chosen)
        column = chosen[owner]
        values = (self._X.data[entry] - self._shift[column]) / self._scale[column]
        out[self._X.indices[entry], inside[owner]] = values
        out[:, beyond] = self.extra[:, index[beyond] - self.M]
        return out

    def _say_size(self, count: int) -> None:
        need = 8 * self.n * count
        check_fits(
            need,
            f"This method makes {count:,} sparse columns of {self.n:,} rows dense, which",
            _CURE,
        )
        if need > _SAID_BYTES:
            _log.info("%d sparse columns are made dense: %.1f GiB.", count, need / 2**30)

    def times(self, w: FloatArray, index: IntArray) -> FloatArray:
        """Predictor ``Phi[:, index] @ w`` at the cost of the columns whose weight is not zero."""
        beyond = index >= self.M
        eta: FloatArray = self.extra[:, index[beyond] - self.M] @ w[beyond]
        used = ~beyond & (w != 0)
        chosen, v = index[used], w[used]
        if not len(chosen):
            return eta
        eta += self._zero[chosen] @ v
        v = v / self._scale[chosen]
        if 4 * int(self._counts[chosen].sum()) > self._X.nnz:  # to pick them out takes longer than to take all
            return np.asarray(eta + self._X @ np.bincount(chosen, v, minlength=self.M))
        entry, owner = _entries(self._X, chosen)
        return eta + np.bincount(self._X.indices[entry], self._X.data[entry] * v[owner], minlength=self.n)

    def transposed_times(self, v: FloatArray) -> FloatArray:
        """``Phi' v`` over all columns."""
        return np.append(self._transposed @ v / self._scale + self._zero * v.sum(), v @ self.extra)

    def squares(self, weights: FloatArray | None = None) -> FloatArray:
        """Diagonal of ``Phi' diag(weights) Phi``."""
        if weights is None:
            return self._squares
        basis = self._raised @ weights + self._zero**2 * weights.sum()
        return np.append(basis, np.einsum("i,ij,ij->j", weights, self.extra, self.extra))

    def cross(self, right: FloatArray, weights: FloatArray | None = None) -> FloatArray:
        """``Phi' diag(weights) right`` for a dense n x k matrix, as a (width, k) matrix."""
        if weights is not None:
            right = right * weights[:, None]
        out = np.empty((self.width, right.shape[1]))
        np.divide(self._transposed @ right, self._scale[:, None], out=out[: self.M])
        out[: self.M] += np.outer(self._zero, right.sum(axis=0))
        out[self.M :] = self.extra.T @ right
        return out

    def scan(self, right: FloatArray, weights: FloatArray, v: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """`cross`, `squares` and `transposed_times` together."""
        return self.cross(right, weights), self.squares(weights), self.transposed_times(v)

    def project(self, directions: FloatArray) -> FloatArray:
        """``Phi @ directions`` over the M basis functions, for directions of shape (M, k)."""
        return np.asarray(self._X @ (directions / self._scale[:, None]) + self._zero @ directions)

    def along(self, Q: FloatArray) -> Design:
        """Directions (k, M) in the place of the basis functions, the other columns after them."""
        return Design(self.project(Q.T), extra=self.extra)

    def ordered(self, order: IntArray, M: int) -> Design:
        """The columns in another order, of which so many are basis functions."""
        columns = self.columns(order)
        return Design(columns[:, :M], extra=columns[:, M:])

    def gram(self, weights: FloatArray | None = None) -> FloatArray:
        """``Phi' diag(weights) Phi`` over all columns, dense: for tall problems, where width is small."""
        what = f"This method makes the products of {self.width:,} sparse columns with each other, which"
        check_fits(8 * self.width**2, what, _CURE)
        M, rows = self.M, self._rows
        out = np.empty((self.width, self.width))
        weight = np.ones(self.n) if weights is None else weights
        out[:, M:] = self.cross(self.extra, weights)
        out[M:, :M] = out[:M, M:].T
        counts = np.diff(rows.indptr)
        if _WORTH * float(counts @ counts.astype(float)) > self.n * M**2:
            out[:M, :M] = self._dense_gram(weight)
            return out
        weighted = csr_array((rows.data * np.repeat(weight, counts), rows.indices, rows.indptr), shape=rows.shape)
        np.divide((self._transposed @ weighted).toarray(), self._scale[:, None], out=out[:M, :M])
        shifted = np.outer(self._zero, self._transposed @ weight / self._scale + 0.5 * weight.sum() * self._zero)
        out[:M, :M] += shifted
        out[:M, :M] += shifted.T
        return out

    def _dense_gram(self, weights: FloatArray) -> FloatArray:
        """The part of the M basis functions where few entries are zero: blocks of rows made dense."""
        out = np.zeros((self.M, self.M))
        step = max(64, _BLOCK_BYTES // (8 * max(self.M, 1)))
        for start in range(0, self.n, step):
            block = self._rows[start : start + step].toarray() + self._zero
            out += block.T @ (weights[start : start + step, None] * block)
        return out

    @cached_property
    def _rows(self) -> csr_array[np.float64]:
        """``X / scale`` by rows."""
        out: csr_array[np.float64] = self._X.tocsr()
        out.data /= self._scale[out.indices]
        return out

    @cached_property
    def _squares(self) -> FloatArray:
        basis = _power(self._X, self._shift) / self._scale**2
        return np.append(basis, np.einsum("ij,ij->j", self.extra, self.extra))

    @cached_property
    def _raised(self) -> csr_array[np.float64]:
        """``(X - shift)^2 / scale^2`` less its value at a zero, transposed."""
        X, counts = self._X, self._counts
        values = X.data * (X.data - np.repeat(2 * self._shift, counts)) / np.repeat(self._scale**2, counts)
        return csr_array((values, X.indices, X.indptr), shape=(self.M, self.n))


def _near_zero(X: csc_array[np.float64], shift: FloatArray) -> tuple[csc_array[np.float64], FloatArray]:
    """The shift taken off the columns far from zero, in which hardly any entry is zero; and the shift still to come.

    Taken off a product of columns, a shift costs digits by the square of (shift / spread). Up to ten that is bearable;
    and where it is more, at most one entry in a hundred is zero, so that filling the column takes no memory.
    """
    far = np.flatnonzero(X.shape[0] * shift**2 > _FAR**2 * _power(X, shift))
    if not len(far):
        return X, shift
    near = np.setdiff1d(np.arange(X.shape[1]), far)
    filled = csc_array(X[:, far].toarray() - shift[far])
    rest = shift.copy()
    rest[far] = 0.0
    return hstack([X[:, near], filled], format="csc")[:, np.argsort(np.append(near, far))], rest


def _entries(X: csc_array[np.float64], columns: IntArray) -> tuple[IntArray, IntArray]:
    """Where the entries of some columns are stored, and which of the columns each belongs to."""
    start = X.indptr[columns].astype(np.intp)
    counts = X.indptr[columns + 1] - start
    owner = np.repeat(np.arange(len(columns)), counts)
    return np.arange(len(owner)) + (start - np.cumsum(counts) + counts)[owner], owner


def _sums(X: csc_array[np.float64], values: FloatArray) -> FloatArray:
    """Sum of one value an entry over each column."""
    out, filled = np.zeros(X.shape[1]), np.flatnonzero(np.diff(X.indptr))
    if len(filled):
        out[filled] = np.add.reduceat(values, X.indptr[filled])
    return out


def _power(X: csc_array[np.float64], shift: FloatArray, weights: FloatArray | None = None) -> FloatArray:
    """Sum of squared distances from ``shift`` over each column; the entries that are not stored are exact."""
    counts = np.diff(X.indptr)
    squares = (X.data - np.repeat(shift, counts)) ** 2
    if weights is None:
        return _sums(X, squares) + (X.shape[0] - counts) * shift**2
    own = weights[X.indices]
    return _sums(X, own * squares) + (weights.sum() - _sums(X, own)) * shift**2
