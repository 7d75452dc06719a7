"""The function that a stored fit names: somebody else's file must not say what is imported and called here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bayes_sparse.common.types import FloatArray

__all__ = ["StoredFunction", "checked", "hand_over", "was_handed_over"]

_handed_over: set[str] = set()  # names that the user of this process has given, in code of theirs


@dataclass(frozen=True)
class StoredFunction:
    """A function known by its name alone, which is never looked up; called is what the user hands over for it.

    Attributes
    ----------
    call : str
        ``"package.module:name"``, as the file has it.
    bias, standardise : bool
        As for `function`.
    given : callable, optional
        The function, from the user.
    """

    call: str
    bias: bool = True
    standardise: bool = False
    given: Callable[..., Any] | None = None
    kernel: ClassVar[bool] = False
    takes_sparse: ClassVar[bool] = False
    needs: ClassVar[str] = ""

    def matrix(self, X: NDArray[Any], centres: FloatArray | None) -> FloatArray:
        """Call the function that was handed over."""
        if self.given is None:
            raise ValueError(
                f"The basis of this fit is the function {str(self.call)!r}, and a file must not say what is called "
                "here: hand the function over, bs.predict(tree, X, basis=f), or say trust=True if you trust the file."
            )
        return checked(self.given, X, self.call)

    def names(self, columns: Sequence[str], rows: Sequence[Any]) -> list[str]:
        """Not known before the function is called."""
        return []


def hand_over(call: str) -> None:
    """Note a name that the user has given."""
    _handed_over.add(call)


def was_handed_over(call: object) -> bool:
    """Whether the user of this process has given a function by this name, in a fit or as ``bs.basis.function(...)``."""
    return isinstance(call, str) and call in _handed_over


def checked(call: Callable[..., Any], X: NDArray[Any], name: str) -> FloatArray:
    """What a function gives, checked; it sees a copy, so that it cannot write into the rows."""
    given = call(np.array(X))
    if np.ma.isMaskedArray(given) and np.ma.is_masked(given):
        raise ValueError(f"The basis function {name!r} gave masked values; fill them in before it returns them.")
    if np.iscomplexobj(given):
        raise ValueError(f"The basis function {name!r} gave complex numbers; give their real or absolute parts.")
    try:
        out = np.asarray(given, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"The basis function {name!r} must give an array of numbers; it gave none.") from error
    if out.ndim != 2 or len(out) != len(X):
        raise ValueError(
            f"The basis function {name!r} must give a 2-D array with {len(X)} rows, one per row of X; it gave "
            f"an array of shape {out.shape}."
        )
    if not np.isfinite(out).all():
        raise ValueError(f"The basis function {name!r} gave NaN or infinite values; it must not.")
    return out
