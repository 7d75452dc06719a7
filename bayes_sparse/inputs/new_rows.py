"""New rows read as a fit has read its own."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple, get_args

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from scipy.sparse import issparse

from bayes_sparse.common.types import IntArray
from bayes_sparse.inputs.by_class import by_class, is_by_class
from bayes_sparse.inputs.encoding import Encoding, Missing, Unseen, encoded, lost_in
from bayes_sparse.inputs.frames import array_parts, frame_parts, is_frame
from bayes_sparse.inputs.table import Raw, Table, check_missing, filled, in_words, refuse_infinite, refuse_missing
from bayes_sparse.problem.sparse_design import Features

__all__ = ["NewRows", "class_features_of", "features_of"]


class NewRows(NamedTuple):
    """New rows for a fit: matrix, labels, the name of their dimension; which of those given they are, of how many."""

    X: Features
    rows: NDArray[Any]
    dim: str
    places: IntArray
    given: int


def features_of(
    X: Any,
    columns: list[str],
    encoding: Encoding | None = None,
    *,
    needed: Collection[str] | None = None,
    unseen: Unseen = "refuse",
    missing: Missing | None = None,
    fill: bool = True,
) -> NewRows:
    """New rows for a fit with the given columns.

    Parameters
    ----------
    X : array, sparse matrix, DataFrame, Dataset or Table
        As handed in; a row by itself as a vector.
    columns : list of str
        Columns of numbers that the fit has.
    encoding : Encoding, optional
        How they came out of those handed in; None where they are the same.
    needed : collection of str, optional
        Those that have a weight: columns handed in for the others alone may be missing. None for all.
    unseen : "refuse" or "ignore"
        What to do with levels that the fit has not seen.
    missing : "refuse", "drop" or "mean", optional
        What to do with missing values; None for what the fit did.
    fill : bool
        Whether means of the fit stand in for what is missing; else it is left to whoever fits these rows.
    """
    how = Encoding(columns) if encoding is None else encoding
    doing = _checked_missing(how, missing)
    if unseen not in get_args(Unseen.__value__):
        raise ValueError(f"`unseen` is 'refuse' or 'ignore', got {unseen!r}.")
    if isinstance(X, Table):  # read already, with the rows of the fit
        matrix, rows, dim, names = X.X, X.rows, X.obs_dim, X.columns
        places, number = np.arange(X.n), X.n
    else:
        given, rows, dim = _given_again(X, how, columns if needed is None else needed)
        places, number = np.arange(len(rows)), len(rows)
        if doing == "drop":
            places = np.flatnonzero(~lost_in(given, how.given)[0])
            given = Raw(given, how.given, rows, dim, rows, "").at(places).given
            rows = rows[places]
        elif doing == "refuse":
            refuse_missing(given, how.given, fitted=True)
        matrix, names = encoded(given, how, unseen), list(how.source)
    if names != columns:
        at = {name: j for j, name in enumerate(names)}
        matrix = matrix[:, [at[name] for name in columns]]
    if fill and how.means:
        matrix = filled(matrix, np.array([how.means.get(name, np.nan) for name in columns]))
    refuse_infinite(matrix, columns)
    return NewRows(matrix, rows, dim, places, number)


def _checked_missing(how: Encoding, missing: Missing | None) -> str:
    """What to do with missing values of new rows."""
    if missing is None:
        return how.missing
    check_missing(missing)
    if missing == "mean" and how.missing != "mean":
        raise ValueError("Missing values are filled in by what a fit with missing='mean' has found: fit so first.")
    return missing


def _given_again(X: Any, how: Encoding, needed: Collection[str]) -> tuple[Features | list[Any], NDArray[Any], str]:
    """The columns handed in, in the order of the fit's; zeros for those that may be missing and are."""
    X = _one_row(X, how)
    names = how.given
    if not is_frame(X):
        if how.formula is not None:
            raise ValueError(f"A formula names columns: give new rows as a frame, with {in_words(names)}.")
        matrix, found, rows, dim = array_parts(X)
        number = len(matrix) if isinstance(matrix, list) else matrix.shape[1]
        if number != len(names):
            raise ValueError(
                f"New data must have the {len(names)} columns of the fit ({in_words(names)}); it has {number}."
            )
        if found is None or found == names:
            return matrix, rows, dim
        if sorted(found) != sorted(names):
            raise ValueError(
                f"New data must have the columns of the fit ({in_words(names)}); it has {in_words(found)}."
            )
        order = [found.index(name) for name in names]
        return ([matrix[j] for j in order] if isinstance(matrix, list) else matrix[:, order]), rows, dim
    parts, rows, dim = frame_parts(X)
    absent = [name for name in names if name not in parts]
    wanted = how.behind(needed) if absent else set[str]()
    if wanted.intersection(absent):
        lacking = [name for name in absent if name in wanted]
        raise ValueError(
            f"New data must have the columns of the fit; missing: {in_words(lacking)} (it has {in_words(parts)})."
        )
    for name in absent:
        parts[name] = np.full(len(rows), how.stand_in(name))
    return [parts[name] for name in names], rows, dim


def _one_row(X: Any, how: Encoding) -> Any:
    """A row by itself, given as a vector, as a table of one row; rows or columns in dicts as a frame."""
    several = len(how.given) > 1 or how.formula is not None
    if isinstance(X, dict) and not issparse(X):  # one kind of which is a dict
        X = pd.DataFrame({str(name): np.atleast_1d(np.asarray(value)) for name, value in X.items()})
    if isinstance(X, list) and X and all(isinstance(row, dict) for row in X):
        X = pd.DataFrame.from_records(X)
    if isinstance(X, pd.Series) and set(X.index.map(str)) & set(how.given) and several:
        return pd.DataFrame({str(name): [value] for name, value in X.items()}, index=[0 if X.name is None else X.name])
    if is_frame(X) or issparse(X) or len(how.given) == 1 or np.ndim(X) != 1:
        return X
    return X.expand_dims("obs") if isinstance(X, xr.DataArray) else np.asarray(X)[None]


def class_features_of(
    X: Any, classes: NDArray[Any], columns: list[list[str]], encodings: Sequence[Encoding] | None = None, **how: Any
) -> tuple[list[Features], NDArray[Any], str]:
    """New rows for a fit with features of each class's own: one matrix a class, row labels, name of their dimension."""
    if not is_by_class(X):
        raise ValueError(
            "This fit has features of each class's own: give the new rows as a dict by class, or as an array with a "
            f"class dim, for {in_words(classes)}."
        )
    ways = [Encoding(own) for own in columns] if encodings is None else encodings
    parts = zip(by_class(X, classes), columns, ways, strict=True)
    found = [features_of(part, own, way, **how) for part, own, way in parts]
    counts = {part.X.shape[0] for part in found}
    if len(counts) > 1:
        raise ValueError(f"The classes' features have different numbers of rows ({sorted(counts)}); give the same.")
    return [part.X for part in found], found[0].rows, found[0].dim
