"""Which columns of the design belong to which variable of a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayes_sparse.problem.design import FloatArray

__all__ = ["Slot"]


@dataclass(frozen=True)
class Slot:
    """Where a Gaussian variable of the user's model sits among the columns of the design.

    Attributes
    ----------
    name : str
        The variable's own name.
    shape : tuple of int
        Its shape; its columns are its values in C order.
    dims : tuple of str, optional
        Its dims, None where it has none.
    coords : dict
        Coordinate values of those dims that have any.
    columns : slice
        Its columns in the design.
    mean : array
        Its prior mean, in its own shape; the problem's w is relative to it.
    """

    name: str
    shape: tuple[int, ...]
    dims: tuple[str, ...] | None
    coords: dict[str, NDArray[Any]]
    columns: slice
    mean: FloatArray

    def values(self, w: FloatArray) -> FloatArray:
        """Values of the variable, ``(..., *shape)``, from the problem's w, ``(..., width)``."""
        own = w[..., self.columns]
        return own.reshape((*own.shape[:-1], *self.shape)) + self.mean

    def dim_and_labels(self) -> tuple[str, NDArray[Any]]:
        """The dim of a vector, and its labels in full."""
        dim = self.dims[0] if self.dims else f"{self.name}_dim_0"
        return dim, np.asarray(self.coords.get(dim, np.arange(self.shape[0])))
