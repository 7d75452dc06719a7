"""Kernels at the rows: a matrix up to some size, and beyond it blocks that are computed whenever they are asked for."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np

from bayes_sparse.common.memory import check_fits, fits
from bayes_sparse.common.threads import few_threads
from bayes_sparse.common.types import FloatArray, IntArray
from bayes_sparse.inputs.basis import Basis

__all__ = ["StreamedKernels", "kernel_matrix"]

_LARGE = 2**28  # numbers of a kernel matrix that is made as a whole: 2 GiB, all kernels of 16,384 rows
_log = logging.getLogger("bayes_sparse")


class StreamedKernels:
    """A kernel matrix that is never made: what is asked for is computed.

    Parameters
    ----------
    basis : Basis
        The kernel.
    X : array (n, p)
        Rows as the kernel sees them.
    centres : int array (m,), optional
        Rows that kernels sit on; None for all of them.
    """

    dtype = np.dtype(np.float64)

    def __init__(self, basis: Basis, X: FloatArray, centres: IntArray | None) -> None:
        self._basis, self._X, self._centres = basis, X, X if centres is None else X[centres]
        self.shape, self.symmetric = (len(X), len(self._centres)), centres is None
        self.size = self.shape[0] * self.shape[1]

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, at: Any) -> FloatArray:
        """Kernels at some rows, ``[rows]``, or some of the kernels at some rows, ``[rows, columns]``."""
        rows, columns = at if isinstance(at, tuple) else (at, slice(None))
        return np.asarray(self._basis.matrix(self._X[rows], self._centres[columns]))

    def say_size(self) -> None:
        """Say that it is large, and what that costs."""
        n, m = self.shape
        _log.info(
            "The kernel matrix of %s rows by %s centres would take %.1f GiB: it is computed in blocks, anew at every "
            "look at all of it.",
            *(f"{n:,}", f"{m:,}", 8 * self.size / 2**30),
        )

    def toarray(self) -> FloatArray:
        """The whole matrix; refused, with its size, where that does not fit into memory."""
        n, m = self.shape
        check_fits(
            8 * self.size,
            f"The kernel matrix of {n:,} rows by {m:,} centres, which this method needs as a whole,",
            "method='sequential' computes it in blocks; or use a sample of the rows, or basis='linear'",
        )
        return np.asarray(self._basis.matrix(self._X, self._X if self.symmetric else self._centres))


def kernel_matrix(basis: Basis, X: FloatArray, centres: IntArray | None) -> FloatArray | StreamedKernels:
    """Kernels at the rows of X on some of these rows; None for all of them."""
    kernels = StreamedKernels(basis, X, centres)
    if kernels.size > _LARGE or not fits(8 * kernels.size):
        return kernels
    with few_threads(kernels.size):
        return kernels.toarray()
