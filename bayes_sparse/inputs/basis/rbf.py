"""Gaussian bumps on the training rows."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inputs.basis._basis import Kernel

__all__ = ["rbf"]

_WIDE = 1e4  # widths from the middle, beyond which squares of differences are not taken from products
_BLOCK = 2**16  # numbers of a kernel matrix worked on at once: half a megabyte


@dataclass(frozen=True)
class rbf(Kernel):
    """Gaussian bumps on the training rows: ``exp(-||x - c||^2 / (2 width^2))``.

    Attributes
    ----------
    width : float or "evidence"
        In the units of X (of its standard deviations with ``standardise=True``). ``"evidence"`` has `fit` find it.
    squared : bool
        False for ``exp(-||x - c|| / (2 width^2))``, as some papers print it.
    bias : bool
        Add a constant, with a wide prior, that is never pruned.
    standardise : bool
        Standardise the features before distances are taken.
    """

    local: ClassVar[bool] = True
    needs: ClassVar[str] = (
        "its width in the units of X: basis=bs.basis.rbf(width=...), or width='evidence' to have it found"
    )

    width: float | Literal["evidence"]
    squared: bool = True
    bias: bool = True
    standardise: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.width, str) and self.width == "evidence":
            return
        if not (isinstance(self.width, Real) and np.isfinite(self.width) and self.width > 0):
            raise ValueError(
                f"rbf needs a width > 0 in the units of X, or width='evidence' to have it found, got {self.width!r}."
            )
        object.__setattr__(self, "width", float(self.width))  # of numpy's numbers only a plain one can be stored

    def matrix(self, X: NDArray[Any], centres: FloatArray | None) -> FloatArray:
        """Kernel of the rows of X with the centres."""
        assert centres is not None
        if isinstance(self.width, str):
            raise ValueError(
                "rbf(width='evidence') has no width yet, and only a fit by an evidence method finds one: do that first "
                "(method='sequential', say), then pass the number as rbf(width=...)."
            )
        if not len(centres):  # nothing was kept, and nothing has no middle
            return np.empty((len(X), 0))
        scale = self.width * np.sqrt(2.0)
        middle = centres.mean(axis=0)  # distances from a common middle lose fewer digits
        A, C = (X - middle) / scale, (centres - middle) / scale
        if max(float(np.abs(A).max(initial=0.0)), float(np.abs(C).max(initial=0.0))) > _WIDE:
            return self._directly(A, C, scale)
        # -||a - c||^2 = [2a, -a'a, -1] [c, 1, c'c]': one product, and every block is finished while it is in the cache.
        left = np.column_stack([2 * A, -np.einsum("ij,ij->i", A, A), np.full(len(A), -1.0)])
        right = np.vstack([C.T, np.ones(len(C)), np.einsum("ij,ij->i", C, C)])
        out = np.empty((len(A), len(C)))
        step = max(1, _BLOCK // len(C))
        for start in range(0, len(A), step):
            stop = start + step
            first = start if X is centres else 0  # the training rows among themselves: one half mirrors the other
            block = out[start:stop, first:]
            np.matmul(left[start:stop], right[:, first:], out=block)
            np.minimum(block, 0.0, out=block)
            if not self.squared:  # -d^2/(2 width^2) so far; wanted: -d/(2 width^2)
                np.sqrt(np.negative(block, out=block), out=block)
                block *= -1.0 / scale
            np.exp(block, out=block)
            if X is centres:
                out[stop:, start:stop] = block[:, step:].T
        return out

    def _directly(self, A: FloatArray, C: FloatArray, scale: float) -> FloatArray:
        """By differences: rows many widths apart would lose all digits of their distance in products."""
        distances = cdist(A, C, "sqeuclidean" if self.squared else "euclidean")
        return np.asarray(np.exp(-distances if self.squared else -distances / scale))
