"""The features themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from numpy.typing import NDArray

from bayes_sparse.common.types import FloatArray

__all__ = ["linear"]


@dataclass(frozen=True)
class linear:
    """The features themselves.

    Attributes
    ----------
    bias : bool
        Add a constant, with a wide prior, that is never pruned.
    standardise : bool
        Give every column mean 0 and sd 1 inside the fit, so that all precisions start equal. Undone in every report.
    """

    bias: bool = True
    standardise: bool = True
    kernel: ClassVar[bool] = False
    takes_sparse: ClassVar[bool] = True
    needs: ClassVar[str] = ""

    def matrix(self, X: NDArray[Any], centres: FloatArray | None) -> NDArray[Any]:
        """Basis functions at the rows of X."""
        return X

    def names(self, columns: Sequence[str], rows: Sequence[Any]) -> list[str]:
        """Name of each basis function."""
        return list(columns)
