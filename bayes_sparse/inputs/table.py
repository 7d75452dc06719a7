"""What people hand in becomes one table of numbers, checked: features, targets, labels, weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from scipy.sparse import issparse

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inputs.frames import (
    array_parts,
    frame_parts,
    in_the_order_of,
    is_frame,
    one_float_block,
    refuse_masked,
    side_by_side,
    values_of,
)
from bayes_sparse.problem.sparse_design import Features

__all__ = [
    "Table",
    "by_class",
    "check_constant",
    "check_size",
    "class_features_of",
    "class_tables",
    "features_of",
    "in_words",
    "is_by_class",
    "labels_of",
    "plain_labels",
    "read_table",
    "vector_of",
]

_SHOWN = 4  # how many names an error lists before it says "and 12 more"


@dataclass(frozen=True, eq=False)
class Table:
    """Features and target, checked.

    Attributes
    ----------
    X : array or sparse array (n, p)
        Features; the user's own array where it was one of floats, sparse ones by columns.
    columns : list of str
        Names of the features.
    rows : array (n,)
        Labels of the observations.
    obs_dim : str
        Name of the dimension of observations.
    y : array (n,)
        Target as it was given (labels are not yet numbers).
    target : str
        Its name.
    """

    X: Features
    columns: list[str]
    rows: NDArray[Any]
    obs_dim: str
    y: NDArray[Any]
    target: str

    @property
    def n(self) -> int:
        """Number of observations."""
        return len(self.rows)


def read_table(data: Any, target: str | None, aside: Sequence[str] = ()) -> tuple[Table, dict[str, NDArray[Any]]]:
    """Read what the user handed in.

    Parameters
    ----------
    data : tuple, DataFrame or Dataset
        See the module's docstring.
    target : str, optional
        Name of the target column; for ``(X, y)`` the name it gets.
    aside : sequence of str
        Columns that are not features (weights, offset): taken out and returned beside the table.
    """
    target = None if target is None else str(target)  # names of columns are strings here, whatever they were
    if data is None:
        raise ValueError("No data: pass (X, y), a DataFrame with target=..., or an xarray Dataset with target=....")
    if isinstance(data, tuple):
        if len(data) != 2:
            raise ValueError(f"Data given as a tuple must be (X, y), two things; this one has {len(data)}.")
        table = _from_pair(*data, target)
        taken: dict[str, NDArray[Any]] = {}
    else:
        table, taken = _from_frame(data, target, aside)
    if "/" in table.target:
        raise ValueError(
            f"The target's name {table.target!r} has a slash in it, which stands for a group in the tree of a fit: "
            "rename it, or give (X, y) with target='another name'."
        )
    missing = [name for name in aside if name not in taken]
    if missing:
        raise ValueError(f"There is no column {missing[0]!r} in the data; there are {in_words(table.columns)}.")
    _check(table)
    return table, taken


def features_of(X: Any, columns: list[str]) -> tuple[Features, NDArray[Any], str]:
    """New rows for a fit with the given columns: matrix, row labels and the name of their dimension."""
    if is_frame(X):
        picked, rows, dim = frame_parts(X)
        absent = [c for c in columns if c not in picked]
        if absent:
            raise ValueError(
                f"New data must have the columns of the fit; missing: {in_words(absent)} (it has {in_words(picked)})."
            )
        matrix: Features = side_by_side([picked[c] for c in columns], columns)
    else:
        matrix, found, rows, dim = array_parts(X)
        if matrix.shape[1] != len(columns):
            raise ValueError(
                f"New data must have the {len(columns)} columns of the fit ({in_words(columns)}); it has "
                f"{matrix.shape[1]}."
            )
        if found is not None and sorted(found) != sorted(columns):
            raise ValueError(
                f"New data must have the columns of the fit ({in_words(columns)}); it has {in_words(found)}."
            )
        if found is not None and found != columns:
            matrix = matrix[:, [found.index(c) for c in columns]]
    _check_finite(matrix, columns)
    return matrix, rows, dim


def vector_of(values: Any, n: int, what: str, *, positive: bool = False) -> FloatArray:
    """A finite vector with one number an observation (weights, offset)."""
    refuse_masked(values, f"`{what}`")
    out = np.asarray(values)
    if out.dtype.kind not in "fiub" or out.ndim > 1:
        raise ValueError(f"`{what}` must be one number an observation, got {out.dtype} of shape {out.shape}.")
    out = np.broadcast_to(out.astype(float), (n,)) if out.ndim == 0 else out.astype(float)
    if len(out) != n:
        raise ValueError(f"`{what}` has {len(out)} values for {n} observations; they must be as many.")
    if not np.isfinite(out).all():
        raise ValueError(f"`{what}` has {int((~np.isfinite(out)).sum())} NaN or infinite values; remove those rows.")
    if positive and (np.any(out < 0) or not np.any(out > 0)):
        raise ValueError(f"`{what}` must not be negative, and not all zero.")
    return np.ascontiguousarray(out)


def labels_of(y: NDArray[Any], target: str, *, several: bool = False) -> tuple[FloatArray, NDArray[Any]]:
    """Class labels as 0.0, 1.0 ..., and the labels in that order; two of them unless there may be several."""
    classes, codes = np.unique(plain_labels(y), return_inverse=True)
    if len(classes) == 1:
        raise ValueError(f"The target {target!r} has one class only ({classes[0]!r}); two are needed to tell apart.")
    if len(classes) > 2 and not several:
        raise ValueError(
            f"The target {target!r} has {len(classes)} classes ({in_words(classes)}); a bernoulli likelihood takes "
            "two, likelihood='categorical' any number."
        )
    if 2 * len(classes) > len(y) and len(classes) > 2:
        raise ValueError(
            f"The target {target!r} has {len(classes)} classes for {len(y)} observations; a number to be predicted is "
            "not a class: for a regression use the model 'ard_gaussian'."
        )
    return codes.astype(float), classes


def plain_labels(y: NDArray[Any]) -> NDArray[Any]:
    """Labels held as objects (by pandas, say) as booleans, numbers or strings, whichever they are."""
    if y.dtype.kind != "O":
        return y
    plain = np.array(y.tolist())
    return plain if plain.dtype.kind in "biufU" else y.astype(str)


def _from_pair(X: Any, y: Any, target: str | None) -> Table:
    if is_frame(X):
        parts, rows, dim = frame_parts(X)
        columns = list(parts)
        matrix: Features = X.to_numpy() if one_float_block(X) else side_by_side(list(parts.values()), columns)
    else:
        matrix, found, rows, dim = array_parts(X)
        columns = [f"x{j}" for j in range(matrix.shape[1])] if found is None else found
    if issparse(y):
        raise ValueError("The target must be a dense vector, not a sparse matrix: y.toarray().ravel() makes it one.")
    refuse_masked(y, "The target")
    y = in_the_order_of(X, y)
    values = values_of(y)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    name = getattr(y, "name", None)
    if target is None:
        target = str(name) if name is not None else "y"
    return Table(matrix, columns, rows, dim, values, target)


def _from_frame(data: Any, target: str | None, aside: Sequence[str]) -> tuple[Table, dict[str, NDArray[Any]]]:
    if not is_frame(data):
        raise TypeError(
            f"Data must be (X, y), a DataFrame or an xarray Dataset with target=..., not {type(data).__name__}."
        )
    parts, rows, dim = frame_parts(data)
    if not parts:
        raise ValueError("The data are empty: there are no columns.")
    if target is None:
        raise ValueError(f"Name the target column: target=..., one of {in_words(parts)}.")
    if target not in parts:
        raise ValueError(f"There is no column {target!r} to be the target; there are {in_words(parts)}.")
    y = np.asarray(parts.pop(target))
    taken = {name: np.asarray(parts.pop(name)) for name in aside if name in parts}
    columns = list(parts)
    return Table(side_by_side(list(parts.values()), columns), columns, rows, dim, y, target), taken


def _check(table: Table) -> None:
    X, y = table.X, table.y
    if not table.n or not X.shape[1]:
        what = "rows" if not table.n else "feature columns"
        raise ValueError(f"The data are empty: there are no {what}.")
    if y.ndim != 1:
        raise ValueError(f"The target must be one value an observation, got an array of shape {y.shape}.")
    if X.shape[0] != len(y):
        raise ValueError(f"X has {X.shape[0]} rows and y has {len(y)} values; they must be as many.")
    _check_finite(X, table.columns)
    lost = pd.isna(y) if y.dtype.kind in "OUSTM" else ~np.isfinite(y) if y.dtype.kind == "f" else np.zeros(len(y), bool)
    if np.any(lost):
        raise ValueError(
            f"The target {table.target!r} has {int(np.sum(lost))} NaN or infinite values (first in row "
            f"{table.rows[int(np.argmax(lost))]}); remove those rows."
        )


def _check_finite(X: Features, columns: list[str]) -> None:
    values = X.data if issparse(X) else X
    if values.dtype.kind != "f" or np.isfinite(values.sum()):  # one pass; a finite sum has only finite terms
        return
    bad = ~np.isfinite(values)
    if not bad.any():  # only the sum overflowed
        return
    if issparse(X):
        where = np.flatnonzero(bad)
        counts = np.bincount(np.searchsorted(X.indptr, where, side="right") - 1, minlength=X.shape[1])
        first = int(X.indices[where].min())
    else:
        counts, first = bad.sum(axis=0), int(np.argmax(bad.any(axis=1)))
    worst = [f"{columns[j]!r} ({counts[j]})" for j in np.flatnonzero(counts)]
    raise ValueError(
        f"NaN or infinite values in {in_words(worst, quote=False)}, first in row {first}; fill them in or remove "
        "those rows."
    )


def check_size(values: Features, names: Sequence[str], what: str, *, squared: bool) -> None:
    """Refuse numbers so large or small that their powers leave the range of floats: squares, or squares of these."""
    most = np.finfo(float).max ** (0.49 if squared else 0.24)
    largest = _largest(values)
    wrong = np.flatnonzero(~(largest < most) | ((largest > 0) & (largest < 1 / most)))
    if len(wrong):
        size = largest[wrong[0]]
        held = f"as {'large' if size > 1 else 'small'} as {size:.3g}" if np.isfinite(size) else "too large for a float"
        raise ValueError(
            f"The {what} {names[wrong[0]]!r} holds values {held}, of which powers cannot be computed: change the units."
        )


def _largest(values: Any) -> FloatArray:
    """Largest size of each column, without a temporary of the size of all; NaN where there is one."""
    high, low = values.max(axis=0), values.min(axis=0)
    if issparse(values):
        high, low = high.toarray(), low.toarray()
    return np.maximum(np.abs(np.ravel(high).astype(float)), np.abs(np.ravel(low).astype(float)))


def check_constant(names: list[str], scale: FloatArray) -> None:
    """Refuse constant columns, beside a bias."""
    constant = np.flatnonzero(scale == 0)
    if len(constant):
        raise ValueError(
            f"Constant columns cannot be told from the bias: {in_words([names[j] for j in constant])}; drop them, or "
            "fit without a bias: basis=bs.basis.linear(bias=False, standardise=False)."
        )


def in_words(names: Any, *, quote: bool = True) -> str:
    """The first few names in words."""
    shown = [repr(str(n)) if quote else str(n) for n in list(names)[:_SHOWN]]
    more = len(list(names)) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


def is_by_class(X: Any) -> bool:
    """Whether features are given for each class."""
    if isinstance(X, xr.DataArray):
        return X.ndim == 3
    if issparse(X):  # one kind of which is a dict
        return False
    return isinstance(X, dict) or (isinstance(X, np.ndarray) and X.ndim == 3)


def class_tables(X: Any, y: Any, target: str | None) -> list[Table]:
    """One table a class, in the order of the sorted labels, with the same rows and target."""
    values = values_of(y)
    if values.dtype.kind == "f" and np.any(values != np.floor(values)):
        raise ValueError(
            "X must be a table of rows and columns, not an array of 3 dimensions or a dict: only classes have features "
            "of their own, and this target holds numbers."
        )
    classes = np.unique(plain_labels(values)) if values.ndim == 1 else np.empty(0)
    tables = []
    for label, part in zip(classes.tolist(), by_class(X, classes), strict=True):
        try:
            tables.append(read_table((part, y), target)[0])
        except ValueError as problem:
            raise ValueError(f"Features of class {label!r}: {problem}") from None
    if not tables:
        raise ValueError(f"The target must be one label an observation, got an array of shape {values.shape}.")
    return tables


def class_features_of(
    X: Any, classes: NDArray[Any], columns: list[list[str]]
) -> tuple[list[Features], NDArray[Any], str]:
    """New rows for a fit with features of each class's own: one matrix a class, row labels, name of their dimension."""
    if not is_by_class(X):
        raise ValueError(
            "This fit has features of each class's own: give the new rows as a dict by class, or as an array with a "
            f"class dim, for {in_words(classes)}."
        )
    found = [features_of(part, own) for part, own in zip(by_class(X, classes), columns, strict=True)]
    counts = {matrix.shape[0] for matrix, _, _ in found}
    if len(counts) > 1:
        raise ValueError(f"The classes' features have different numbers of rows ({sorted(counts)}); give the same.")
    return [matrix for matrix, _, _ in found], found[0][1], found[0][2]


def by_class(X: Any, classes: NDArray[Any]) -> list[Any]:
    """The parts of X in the order of the classes."""
    if isinstance(X, dict):
        return _of_dict(X, classes)
    if isinstance(X, xr.DataArray):
        return _of_labelled(X, classes)
    if X.shape[1] != len(classes):
        raise ValueError(
            f"X of 3 dimensions, {X.shape}, is read as (observations, classes, features), but there are {len(classes)} "
            f"classes ({in_words(classes)}), not {X.shape[1]}."
        )
    return [X[:, c] for c in range(len(classes))]


def _of_dict(X: dict[Any, Any], classes: NDArray[Any]) -> list[Any]:
    given = {str(label): part for label, part in X.items()}
    _check_labels(list(given), classes)
    return [given[str(label)] for label in classes.tolist()]


def _of_labelled(X: xr.DataArray, classes: NDArray[Any]) -> list[Any]:
    if "class" not in X.dims:
        raise ValueError(f"Of three dims one must be called 'class'; these are {in_words(X.dims)}.")
    obs, feature = (dim for dim in X.dims if dim != "class")
    X = X.transpose(obs, "class", feature)
    if "class" not in X.coords:
        return by_class(X.to_numpy(), classes)
    labels = [str(label) for label in X["class"].to_numpy().tolist()]
    _check_labels(labels, classes)
    return [X.isel({"class": labels.index(str(label))}).drop_vars("class") for label in classes.tolist()]


def _check_labels(labels: list[str], classes: NDArray[Any]) -> None:
    wanted = [str(label) for label in classes.tolist()]
    missing, unknown = [w for w in wanted if w not in labels], [g for g in labels if g not in wanted]
    if missing or unknown:
        what = f"none for {in_words(missing)}" if missing else f"some for {in_words(unknown)}, which the target lacks"
        raise ValueError(f"Every class needs features of its own, and no other: there are {what}.")
