"""From features to basis functions. Each choice is a frozen dataclass: its fields are its settings.

`linear` uses the features themselves; `rbf`, `polynomial` and `inner_product` put one kernel on every training row;
`precomputed` takes the columns as they come; `function` calls a function of yours, stored by its name.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from bayes_sparse.problem.design import FloatArray

__all__ = [
    "Basis",
    "from_settings",
    "function",
    "inner_product",
    "linear",
    "polynomial",
    "precomputed",
    "rbf",
    "resolve",
]

_BLOCK = 2**16  # numbers of a kernel matrix worked on at once: half a megabyte


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

    def matrix(self, X: NDArray[Any], centres: FloatArray | None) -> NDArray[Any]:
        """Basis functions at the rows of X."""
        return X

    def names(self, columns: Sequence[str], rows: Sequence[Any]) -> list[str]:
        """Name of each basis function."""
        return list(columns)


class _Kernel:
    """What kernels share: one basis function a training row, and a matrix whose size is said before it is made."""

    name: ClassVar[str]
    kernel: ClassVar[bool] = True

    def names(self, columns: Sequence[str], rows: Sequence[Any]) -> list[str]:
        """Name of each basis function: the kernel and the label of the row it sits on."""
        prefix = type(self).__name__
        return [f"{prefix}({row})" for row in rows]


@dataclass(frozen=True)
class rbf(_Kernel):
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


@dataclass(frozen=True)
class polynomial(_Kernel):
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
        return np.asarray((self.scale * (X @ centres.T) + self.constant) ** self.degree)


@dataclass(frozen=True)
class inner_product(_Kernel):
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
        return np.asarray(X @ centres.T)


@dataclass(frozen=True)
class precomputed(linear):
    """The columns of X are basis functions already; new data must come in the same form.

    Attributes
    ----------
    bias, standardise : bool
        As for `linear`; not standardised unless asked.
    """

    standardise: bool = False


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

    def __post_init__(self) -> None:
        if callable(self.call):
            object.__setattr__(self, "call", _importable_name(self.call))
        _import(self.call)

    def matrix(self, X: NDArray[Any], centres: FloatArray | None) -> FloatArray:
        """Call the function, checking that it gives one finite row of basis functions for each row of X."""
        out = np.asarray(_import(self.call)(X), dtype=float)
        if out.ndim != 2 or len(out) != len(X):
            raise ValueError(
                f"The basis function {self.call!r} must give a 2-D array with {len(X)} rows, one a row of X; it gave "
                f"an array of shape {out.shape}."
            )
        if not np.isfinite(out).all():
            raise ValueError(f"The basis function {self.call!r} gave NaN or infinite values; it must not.")
        return out

    def names(self, columns: Sequence[str], rows: Sequence[Any]) -> list[str]:
        """Not known before the function is called: the caller numbers them."""
        return []


type Basis = linear | rbf | polynomial | inner_product | precomputed | function

_NAMED: dict[str, type[Any]] = {c.__name__: c for c in (linear, rbf, polynomial, inner_product, precomputed, function)}


def resolve(basis: str | Basis | Callable[..., Any]) -> Basis:
    """Turn a name or a function into a basis; a basis stays as it is."""
    if isinstance(basis, linear | rbf | polynomial | inner_product | precomputed | function):
        return basis
    if callable(basis) and not isinstance(basis, type):
        return function(basis)  # type: ignore[arg-type]
    if isinstance(basis, type) and basis in _NAMED.values():
        basis = basis.__name__
    if basis not in _NAMED:
        close = get_close_matches(str(basis), _NAMED, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise ValueError(
            f"There is no basis {basis!r}; there are {', '.join(sorted(_NAMED))}, "
            f"or an importable function of yours.{hint}"
        )
    if basis == "rbf":
        raise ValueError(
            "The basis 'rbf' needs its width in the units of X: basis=bs.basis.rbf(width=...), or width='evidence' to "
            "have it found."
        )
    if basis == "function":
        raise ValueError("The basis 'function' needs a function: basis=bs.basis.function('package.module:name').")
    made: Basis = _NAMED[str(basis)]()
    return made


def settings(basis: Basis) -> dict[str, Any]:
    """Name and fields, for storing."""
    return {"name": type(basis).__name__, **asdict(basis)}


def from_settings(stored: dict[str, Any]) -> Basis:
    """Inverse of `settings`."""
    fields = dict(stored)
    made: Basis = _NAMED[fields.pop("name")](**fields)
    return made


def check_dense(X: Any, basis: Basis) -> Any:
    """Features as they are, refused if they are sparse and the basis functions are not the features themselves."""
    if issparse(X) and not isinstance(basis, linear):
        raise ValueError(
            f"The basis {type(basis).__name__!r} takes dense rows, and these are sparse: basis='linear' takes them as "
            "they are, X.toarray() makes them dense."
        )
    return X


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
