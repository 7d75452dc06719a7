"""Powers of inner products with the training rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inputs.basis._basis import Kernel

__all__ = ["polynomial"]


@dataclass(frozen=True)
class polynomial(Kernel):
    """``(scale x'c + constant)^degree`` on the training rows.

    Attributes
    ----------
    degree : int
        Power.
    constant, scale : float
        Shift and scale of the inner product.
    bias, standardise : bool
        As for `rbf`.
    """

    degree: int = 2
    constant: float = 1.0
    scale: float = 1.0
    bias: bool = True
    standardise: bool = False

    def __post_init__(self) -> None:
        if int(self.degree) != self.degree or self.degree < 1:
            raise ValueError(f"polynomial needs a whole degree >= 1, got {self.degree!r}.")
        for name, plain in (("degree", int), ("constant", float), ("scale", float)):
            object.__setattr__(self, name, plain(getattr(self, name)))

    def matrix(self, X: NDArray[Any], centres: FloatArray | None) -> FloatArray:
        """Kernel of the rows of X with the centres."""
        assert centres is not None
        with np.errstate(over="ignore", invalid="ignore"):  # what is too large is refused with the column's name
            return np.asarray((self.scale * (X @ centres.T) + self.constant) ** self.degree)
