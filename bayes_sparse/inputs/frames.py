"""Frames, Datasets and arrays taken apart into named columns; columns put side by side as a matrix of numbers."""

from __future__ import annotations

from collections import Counter
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from scipy.sparse import csc_array, issparse

from bayes_sparse.common.types import FloatArray
from bayes_sparse.problem.sparse_design import Features, as_csc

__all__ = [
    "array_parts",
    "frame_parts",
    "in_the_order_of",
    "is_frame",
    "names_of",
    "one_float_block",
    "refuse_masked",
    "side_by_side",
    "values_of",
]

_TAKEN = {"chain", "draw", "class", "feature", "level"}  # dims of trees


def is_frame(data: Any) -> bool:
    """Whether the columns have names of their own: a DataFrame of any library that narwhals knows, or a Dataset."""
    return isinstance(data, xr.Dataset) or nw.dependencies.is_into_dataframe(data)


def frame_parts(data: Any) -> tuple[dict[str, Any], NDArray[Any], str]:
    """Columns by name, row labels and the name of their dim, of a DataFrame or Dataset.

    A column is an array of numpy's, or one of pandas' where that knows more: sparse ones, and declared categories.
    """
    if isinstance(data, xr.Dataset):
        return _dataset_parts(data)
    names = names_of(data)
    frame: nw.DataFrame[Any] = nw.from_native(data, eager_only=True)
    parts = {name: _part(series) for name, series in zip(names, frame.iter_columns(), strict=True)}
    index = nw.maybe_get_index(frame)
    if index is None:
        return parts, np.arange(len(frame)), "obs"
    return parts, _stored_labels(index.to_numpy()), _own_dim(str(index.name or "obs"))


def names_of(data: Any) -> list[str]:
    """Names of the columns of a DataFrame, or of the variables of a Dataset."""
    if isinstance(data, xr.Dataset):
        return [str(name) for name in data.data_vars]
    try:
        names = [str(name) for name in nw.from_native(data, eager_only=True).columns]
    except nw.exceptions.DuplicateError:
        names = [str(name) for name in data.columns]
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise ValueError(f"The column name {twice[0]!r} stands more than once; give every column its own name.")
    return names


def values_of(y: Any) -> NDArray[Any]:
    """A vector of any library as numpy has it."""
    if nw.dependencies.is_into_series(y):
        return np.asarray(_part(nw.from_native(y, series_only=True)))
    return y.to_numpy() if hasattr(y, "to_numpy") else np.asarray(y)


def _part(series: nw.Series[Any]) -> Any:
    """A column as an array; the values of categories are listed, since of some libraries' arrays they lose a null."""
    own = getattr(series.to_native(), "array", None)
    if isinstance(own, pd.arrays.SparseArray | pd.Categorical):
        return own
    if isinstance(series.dtype, nw.Enum):
        return pd.Categorical(series.to_list(), categories=list(series.dtype.categories))
    if series.dtype == nw.Categorical:
        return pd.Categorical(series.to_list())
    return series.to_numpy()


def array_parts(X: Any) -> tuple[Features | list[Any], list[str] | None, NDArray[Any], str]:
    """Matrix (or columns, where not all are numbers), names if it has any, row labels and dim of an array-like."""
    if issparse(X):
        by_columns = as_csc(X)
        return by_columns, None, np.arange(by_columns.shape[0]), "obs"
    dim, rows, names = "obs", None, None
    if isinstance(X, xr.DataArray):
        rows = _stored_labels(X[X.dims[0]].to_numpy()) if X.dims[0] in X.coords else None
        dim = _own_dim(str(X.dims[0]))
        if X.ndim == 2 and X.dims[1] in X.coords:
            names = [str(label) for label in X[X.dims[1]].to_numpy()]
        X = X.to_numpy()
    refuse_masked(X, "X")
    matrix = np.asarray(X)
    if matrix.ndim == 1:
        matrix = matrix[:, None]
    if matrix.ndim != 2:
        raise ValueError(f"X must be a table of rows and columns, got an array of {matrix.ndim} dimensions.")
    rows = np.arange(len(matrix)) if rows is None else rows
    if matrix.dtype.kind not in "fiub":
        return [matrix[:, j] for j in range(matrix.shape[1])], names, rows, dim
    return matrix, names, rows, dim


def refuse_masked(values: Any, what: str) -> None:
    """Refuse an array whose mask would be forgotten, and what it hides be taken for data."""
    hidden = int(np.ma.count_masked(values)) if isinstance(values, np.ma.MaskedArray) else 0
    if hidden:
        raise ValueError(f"{what} is a masked array with {hidden} masked values: fill them in, or remove those rows.")


def in_the_order_of(X: Any, y: Any, what: str = "y") -> Any:
    """Targets, or other values a row, in the order of the rows of X, where both have the same labels in another order.

    Where one of them has plain numbers as labels they are matched by place, as arrays are; labels that are neither the
    same nor plain numbers are refused, since they cannot belong together.
    """
    if not (isinstance(X, pd.DataFrame) and isinstance(y, pd.Series | pd.DataFrame)) or X.index.equals(y.index):
        return y
    if len(X) == len(y) and X.index.is_unique and y.index.is_unique and X.index.isin(y.index).all():
        return y.loc[X.index]
    plain = any(index.equals(pd.RangeIndex(len(index))) for index in (X.index, y.index))
    if len(X) == len(y) and not plain:
        strange = X.index[~X.index.isin(y.index)]
        shown = f"row {strange[0]!r} of X is not among those of {what}" if len(strange) else "some labels stand twice"
        raise ValueError(
            f"X and {what} have different row labels: {shown}; give both the same index, or {what} as an array to "
            "match by place."
        )
    return y


def side_by_side(parts: list[Any], columns: list[str]) -> Features:
    """Columns side by side, as a sparse matrix if at least half of them are sparse."""
    sparse = sum(map(_is_sparse, parts))
    if not sparse or 2 * sparse < len(parts):
        return _matrix([np.asarray(part) for part in parts], columns)
    entries = [_nonzeros(part, name) for part, name in zip(parts, columns, strict=True)]
    indptr = np.cumsum([0, *(len(rows) for rows, _ in entries)])
    rows, values = (np.concatenate(pieces) for pieces in zip(*entries, strict=True))
    return as_csc(csc_array((values, rows, indptr), shape=(len(parts[0]), len(parts))))


def one_float_block(X: Any) -> bool:
    """Whether a frame is one block of floats, so that its array is not a copy."""
    return isinstance(X, pd.DataFrame) and X.shape[1] > 0 and bool((X.dtypes == np.float64).all())


def _dataset_parts(data: xr.Dataset) -> tuple[dict[str, NDArray[Any]], NDArray[Any], str]:
    parts: dict[str, NDArray[Any]] = {}
    # A vector says which dim is that of the observations; a matrix alone has it first.
    telling = sorted((v for v in data.data_vars.values() if v.ndim in (1, 2)), key=lambda v: v.ndim)
    if not telling:
        raise ValueError("The Dataset has no variable of one or two dimensions that could be the target or a feature.")
    dim = str(telling[0].dims[0])
    for name, variable in data.data_vars.items():
        if variable.ndim == 1 and variable.dims[0] == dim:
            parts[str(name)] = variable.to_numpy()
        elif variable.ndim == 2 and dim in variable.dims:
            other = next(d for d in variable.dims if d != dim)
            labels = data[other].to_numpy() if other in data.coords else range(data.sizes[other])
            matrix = variable.transpose(dim, other).to_numpy()
            parts.update({str(label): matrix[:, j] for j, label in enumerate(labels)})
        else:
            raise ValueError(
                f"The variable {name!r} has dims {tuple(variable.dims)}; a feature needs the dim {dim!r} of the "
                "observations."
            )
    rows = _stored_labels(data[dim].to_numpy()) if dim in data.coords else np.arange(data.sizes[dim])
    return parts, rows, _own_dim(dim)


def _stored_labels(labels: NDArray[Any]) -> NDArray[Any]:
    """Labels of rows as a file can hold them: those of several levels, and of mixed kinds, in words."""
    if labels.dtype != object or all(isinstance(label, str) for label in labels):
        return labels
    return np.array([", ".join(map(str, own)) if isinstance(own, tuple) else str(own) for own in labels])


def _own_dim(dim: str) -> str:
    """The dim of the rows, by another name where trees have one of their own by it."""
    return "obs" if dim in _TAKEN else dim


def _is_sparse(part: Any) -> bool:
    return isinstance(part, pd.arrays.SparseArray)


def _nonzeros(part: Any, name: str) -> tuple[NDArray[Any], FloatArray]:
    """Rows and values of the entries of a column that are not zero."""
    # What a sparse column leaves out need not be zeros; one that leaves out others is looked through in full.
    if (
        _is_sparse(part)
        and part.sp_values.dtype.kind in "fiub"
        and not pd.isna(part.fill_value)
        and not part.fill_value
    ):
        return part.sp_index.to_int_index().indices, part.sp_values.astype(float)
    dense = _matrix([np.asarray(part)], [name])[:, 0]
    rows = np.flatnonzero(dense)
    return rows, dense[rows]


def _matrix(parts: list[NDArray[Any]], columns: list[str]) -> FloatArray:
    """Columns side by side as floats; a column of strings is named."""
    n = len(parts[0]) if parts else 0
    out = np.empty((n, len(parts)), order="F")
    for j, (part, name) in enumerate(zip(parts, columns, strict=True)):
        try:
            if part.dtype.kind not in "fiubO":
                raise TypeError
            out[:, j] = part
        except (TypeError, ValueError):
            seen = next((repr(v) for v in part.tolist() if not isinstance(v, int | float)), repr(part[0]))
            raise ValueError(
                f"Column {name!r} is not numeric (it holds {seen}, for one); turn it into numbers first."
            ) from None
    return out
