"""Features of each class's own: a dict of tables, or an array with a class dim."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.sparse import issparse

from bayes_sparse.inputs.frames import values_of
from bayes_sparse.inputs.table import Table, in_words, plain_labels, read_table

__all__ = ["by_class", "class_tables", "is_by_class"]


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
            tables.append(read_table((part, y), target))
        except ValueError as problem:
            raise ValueError(f"Features of class {label!r}: {problem}") from None
    if not tables:
        raise ValueError(f"The target must be one label an observation, got an array of shape {values.shape}.")
    return tables


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
