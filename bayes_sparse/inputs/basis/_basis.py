"""What the bases share: the face each has, and what kernels on the training rows have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from bayes_sparse.common.types import FloatArray, IntArray

__all__ = ["Basis", "Kernel", "far_below"]

_LONELY = 0.005  # of the training rows: those that may be left out of what counts as near
_NEAR = 0.8  # a kernel that has hardly fallen
_BLOCK = 2**21  # kernels copied at once
_MANY, _SOME = 2**14, 4000  # rows, of which all are looked at, and how many where there are more


@runtime_checkable
class Basis(Protocol):
    """How features become basis functions.

    Attributes
    ----------
    kernel : bool
        One basis function a training row, so that predictions need those rows.
    takes_sparse : bool
        The basis functions are the features themselves, so that sparse ones may stay sparse.
    needs : str
        What must be given to make one, in a sentence; empty if nothing must.
    bias, standardise : bool
        Add a constant that is never pruned; standardise columns (of a kernel: its inputs).
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]
    kernel: ClassVar[bool]
    takes_sparse: ClassVar[bool]
    needs: ClassVar[str]

    @property
    def bias(self) -> bool:
        """Add a constant that is never pruned."""

    @property
    def standardise(self) -> bool:
        """Standardise columns, or the inputs of a kernel."""

    def matrix(self, X: NDArray[Any], centres: FloatArray | None) -> NDArray[Any]:
        """Basis functions at the rows of X."""

    def names(self, columns: Sequence[str], rows: Sequence[Any]) -> list[str]:
        """Name of each basis function; none if they are not known before `matrix` is called."""


class Kernel:
    """What kernels share: one basis function a training row, and a matrix whose size is said before it is made.

    Attributes
    ----------
    local : bool
        The kernel is 1 on its own row and falls to 0 away from it, so that a fit says nothing of rows far from all.
    """

    kernel: ClassVar[bool] = True
    local: ClassVar[bool] = False
    takes_sparse: ClassVar[bool] = False
    needs: ClassVar[str] = ""

    def names(self, columns: Sequence[str], rows: Sequence[Any]) -> list[str]:
        """Name of each basis function: the kernel and the label of the row it sits on."""
        prefix = type(self).__name__
        return [f"{prefix}({row})" for row in rows]


def far_below(kernels: Any, own: IntArray | None = None) -> float:
    """Below which largest kernel over the training rows a new row is far from the data.

    Parameters
    ----------
    kernels : array (n, m), or what is indexed like one
        Of a local kernel, at the training rows.
    own : int array (m,), optional
        Row that each kernel sits on, where that is not every row in turn.

    Returns
    -------
    float
        What nearly all training rows exceed with themselves left out, to the power 1.5: for a Gaussian bump, at 1.22
        times the distance of the loneliest rows from their nearest one. Where rows are dense, no row is far whose
        nearest kernel is still 0.8. Of very many rows evenly spaced ones are looked at.
    """
    own = np.arange(len(kernels)) if own is None else own
    m = len(own)
    if m < 2:
        return 0.0
    some = np.arange(m) if m <= _MANY else np.linspace(0, m - 1, _SOME).astype(np.intp)
    largest: list[FloatArray] = []
    for part in np.array_split(some, max(1, len(some) * m // _BLOCK)):
        others = kernels[own[part]]
        others[np.arange(len(part)), part] = 0.0
        largest.append(others.max(axis=1))
    return float(min(np.quantile(np.concatenate(largest), _LONELY, method="lower") ** 1.5, _NEAR))
