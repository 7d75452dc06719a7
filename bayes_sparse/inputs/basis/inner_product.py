"""Inner products with the training rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inputs.basis._basis import Kernel

__all__ = ["inner_product"]


@dataclass(frozen=True)
class inner_product(Kernel):
    """``x'c`` on the training rows.

    Attributes
    ----------
    bias, standardise : bool
        As for `rbf`.
    """

    bias: bool = True
    standardise: bool = False

    def matrix(self, X: NDArray[Any], centres: FloatArray | None) -> FloatArray:
        """Kernel of the rows of X with the centres."""
        assert centres is not None
        with np.errstate(over="ignore", invalid="ignore"):  # what is too large is refused with the column's name
            return np.asarray(X @ centres.T)
