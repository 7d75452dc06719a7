"""What the bases share: the face each has, and what kernels on the training rows have in common."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, ClassVar, Protocol, runtime_checkable

from numpy.typing import NDArray

from bayes_sparse.common.types import FloatArray

__all__ = ["Basis", "Kernel", "check_kernel_size"]


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
    """What kernels share: one basis function a training row, and a matrix whose size is said before it is made."""

    kernel: ClassVar[bool] = True
    takes_sparse: ClassVar[bool] = False
    needs: ClassVar[str] = ""

    def names(self, columns: Sequence[str], rows: Sequence[Any]) -> list[str]:
        """Name of each basis function: the kernel and the label of the row it sits on."""
        prefix = type(self).__name__
        return [f"{prefix}({row})" for row in rows]


def check_kernel_size(n: int, m: int) -> None:
    """Refuse a kernel matrix that would not fit into memory, naming its size, before anything is allocated."""
    need, have = 8 * n * m, _physical_memory()
    if need > have // 2:
        raise ValueError(
            f"The kernel matrix of {n:,} rows by {m:,} centres would take {need / 2**30:.1f} GiB, more than half of "
            f"this machine's {have / 2**30:.1f} GiB; use a sample of the rows, or basis='linear'."
        )


def _physical_memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # not known on this system: assume a laptop
        return 8 * 2**30
