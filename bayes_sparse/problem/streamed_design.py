"""The columns of `design.py` where they are too many for memory, and computed a block at a time whenever asked for.

A look at all of them costs the time to compute them, so that a search should look seldom, and ask for everything at
once: `Design.scan` does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from bayes_sparse.common.memory import check_fits
from bayes_sparse.common.types import FloatArray, IntArray
from bayes_sparse.problem.design import Design

__all__ = ["InBlocks", "StreamedDesign"]

_SIDE = 1024  # rows and columns of a block: its eight megabytes are computed in a hundred times the time of the calls


@runtime_checkable
class InBlocks(Protocol):
    """A matrix of 64-bit floats that computes the part of it that is asked for, ``X[rows, columns]`` or ``X[rows]``.

    Attributes
    ----------
    shape : tuple of int
        Rows and columns.
    dtype, size
        As an array has them.
    symmetric : bool
        Whether it is its own transpose, so that half of it will do.
    """

    shape: tuple[int, int]
    dtype: np.dtype[np.float64]
    size: int
    symmetric: bool

    def __getitem__(self, at: Any) -> FloatArray:
        """Some rows, or some rows and columns, in arrays of their own."""

    def toarray(self) -> FloatArray:
        """All of it, if that fits into memory."""


class StreamedDesign(Design):
    """A `Design` of a matrix `InBlocks`, not standardised."""

    _X: Any

    def __init__(
        self, X: InBlocks, shift: FloatArray | None, scale: FloatArray | None, extra: FloatArray | None
    ) -> None:
        assert shift is None, "kernels are used as they are"
        assert scale is None, "kernels are used as they are"
        matrix: Any = X
        super().__init__(matrix, None, None, extra)

    def columns(self, index: IntArray) -> FloatArray:
        """Chosen columns as a Fortran-ordered n x k matrix of their own, if that fits into memory."""
        self._check(self.n, len(index))
        return super().columns(index)

    def gram(self, weights: FloatArray | None = None) -> FloatArray:
        """``Phi' diag(weights) Phi`` over all columns, if that fits into memory."""
        self._check(self.width, self.width)
        return super().gram(weights)

    def _check(self, rows: int, columns: int) -> None:
        check_fits(
            8 * rows * columns,
            f"This method makes a matrix of {rows:,} rows by {columns:,} columns, which",
            "method='sequential' makes only the columns that it keeps",
        )

    def _as_it_is(self, shift: Any) -> bool:
        return False

    def _blocks(self, shift: Any) -> Iterator[tuple[slice, slice, FloatArray]]:
        """Rows, columns and what is there; of a symmetric matrix every block also stands for its mirror image."""
        for start in range(0, self.n, _SIDE):
            rows = slice(start, min(start + _SIDE, self.n))
            for first in range(start if self._X.symmetric else 0, self.M, _SIDE):
                columns = slice(first, min(first + _SIDE, self.M))
                block: NDArray[np.float64] = self._X[rows, columns]
                yield rows, columns, block
                if self._X.symmetric and first > start:
                    yield columns, rows, block.T
