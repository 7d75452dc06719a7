"""From features to basis functions, one basis a file. Each is a frozen dataclass: its fields are its settings.

`linear` uses the features themselves; `rbf`, `polynomial` and `inner_product` put one kernel on every training row;
`precomputed` takes the columns as they come; `function` calls a function of yours, stored by its name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

from scipy.sparse import issparse

from bayes_sparse.common import registry
from bayes_sparse.inputs.basis._basis import Basis, far_below
from bayes_sparse.inputs.basis._stored_function import StoredFunction, was_handed_over
from bayes_sparse.inputs.basis.function import function
from bayes_sparse.inputs.basis.inner_product import inner_product
from bayes_sparse.inputs.basis.linear import linear
from bayes_sparse.inputs.basis.polynomial import polynomial
from bayes_sparse.inputs.basis.precomputed import precomputed
from bayes_sparse.inputs.basis.rbf import rbf

__all__ = [
    "Basis",
    "check_dense",
    "far_below",
    "from_settings",
    "function",
    "inner_product",
    "linear",
    "polynomial",
    "precomputed",
    "rbf",
    "resolve",
    "settings",
    "without_bias",
]

__getattr__ = registry.by_class_name(__name__)


def resolve(basis: str | Basis | Callable[..., Any]) -> Basis:
    """Turn a name or a function into a basis; a basis stays as it is."""
    if isinstance(basis, type):
        basis = basis.__name__
    if isinstance(basis, str):
        named = registry.lookup(__name__, basis, "basis", ", or an importable function of yours")
        if named.needs:
            raise ValueError(f"The basis {basis!r} needs {named.needs}.")
        made: Basis = named()
        return made
    if isinstance(basis, Basis):
        return basis
    if callable(basis):
        return function(basis)  # type: ignore[arg-type]
    return resolve(str(basis))  # the error that lists what there is


def settings(basis: Basis) -> dict[str, Any]:
    """Name and fields, for storing."""
    return {"name": registry.name_of(basis), **asdict(basis)}


def from_settings(stored: dict[str, Any], given: Callable[..., Any] | None = None, *, trust: bool = False) -> Basis:
    """Inverse of `settings`.

    A function is imported by its name only where the user has handed it over in this process, or says ``trust``; else
    ``given`` is called in its place, and without that nothing is.
    """
    own = dict(stored)
    named = registry.lookup(__name__, str(own.pop("name", None)), "basis")
    if named is function and (given is not None or not (trust or was_handed_over(own.get("call")))):
        named, own["given"] = StoredFunction, given
    elif given is not None:
        raise ValueError(f"The basis of this fit is {stored['name']!r}, no function of yours: leave out `basis`.")
    try:
        made: Basis = named(**own)
    except TypeError as error:
        raise ValueError(f"This tree has settings that its basis does not know ({error}); fit again.") from error
    return made


def without_bias(basis: Basis) -> Basis:
    """The same basis without a constant."""
    bare: Basis = replace(basis, bias=False)
    return bare


def check_dense(X: Any, basis: Basis) -> Any:
    """Features as they are, refused if they are sparse and the basis functions are not the features themselves."""
    if issparse(X) and not basis.takes_sparse:
        raise ValueError(
            f"The basis {registry.name_of(basis)!r} takes dense rows, and these are sparse: basis='linear' takes them "
            "as they are, X.toarray() makes them dense."
        )
    return X
