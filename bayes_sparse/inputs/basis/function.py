"""A function of the user's from features to basis functions."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from numpy.typing import NDArray

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inputs.basis._stored_function import checked, hand_over

__all__ = ["function"]


@dataclass(frozen=True)
class function:
    """A function of yours from features to basis functions, stored by name so that a saved fit needs no pickle.

    Attributes
    ----------
    call : str
        ``"package.module:name"``. A function object is turned into that when it can be imported again.
    bias, standardise : bool
        As for `linear`; not standardised unless asked.
    """

    call: str
    bias: bool = True
    standardise: bool = False
    kernel: ClassVar[bool] = False
    takes_sparse: ClassVar[bool] = False
    needs: ClassVar[str] = "a function: basis=bs.basis.function('package.module:name')"

    def __post_init__(self) -> None:
        if callable(self.call):
            object.__setattr__(self, "call", _importable_name(self.call))
        _import(self.call)
        hand_over(self.call)

    def __reduce__(self) -> tuple[Any, ...]:
        """Made anew in a process for a part of the work, where the user has handed the function over too."""
        return function, (self.call, self.bias, self.standardise)

    def matrix(self, X: NDArray[Any], centres: FloatArray | None) -> FloatArray:
        """Call the function, checking that it gives one finite row of basis functions for each row of X."""
        return checked(_import(self.call), X, self.call)

    def names(self, columns: Sequence[str], rows: Sequence[Any]) -> list[str]:
        """Not known before the function is called: the caller numbers them."""
        return []


def _importable_name(call: Callable[..., Any]) -> str:
    module, name = getattr(call, "__module__", None), getattr(call, "__qualname__", "")
    if module in (None, "__main__") or "<" in name:
        raise ValueError(
            f"The basis function {name or call!r} cannot be imported again by name; put it at the top level of a "
            "module, so that a saved fit can find it."
        )
    return f"{module}:{name}"


def _import(call: str) -> Callable[[NDArray[Any]], Any]:
    module, _, name = call.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(
            f"The basis function {call!r} cannot be imported ({error}); give it as 'package.module:name'."
        ) from error
    return found  # type: ignore[no-any-return]
