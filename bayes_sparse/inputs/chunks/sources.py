"""What people hand in in chunks: dask arrays and DataFrames, and what xarray backs by dask, as pieces of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

from bayes_sparse.inputs.chunks.dask_chunks import DaskChunks, Reader, need_dask
from bayes_sparse.inputs.table import in_words

__all__ = ["ChunkedFrame", "NewRows", "Opened", "is_chunked", "new_rows", "opened"]


def is_chunked(data: Any) -> bool:
    """Whether the rows are in chunks of dask's."""
    if isinstance(data, tuple) and len(data) == 2:
        return is_chunked(data[0])
    if isinstance(data, xr.Dataset):
        return any(variable.chunks is not None for variable in data.data_vars.values())
    if isinstance(data, xr.DataArray):
        return data.chunks is not None
    return isinstance(data, ChunkedFrame) or type(data).__module__.partition(".")[0] == "dask"


@dataclass(frozen=True, eq=False)
class ChunkedFrame:
    """A dask DataFrame and which of its columns is the target."""

    frame: Any
    target: str | None = None

    def __repr__(self) -> str:
        columns = in_words(self.frame.columns)
        return f"ChunkedFrame({self.frame.npartitions} chunks, columns {columns}, target {self.target!r})"


class NewRows(NamedTuple):
    """New rows in chunks: features and offset of each, numbers of rows, and the name of their dimension."""

    pieces: list[tuple[Any, Any]]
    lengths: list[int]
    dim: str


def new_rows(X: Any, offset: Any) -> NewRows:
    """Rows to be predicted, as a table with names where they have any."""
    X = X.frame if isinstance(X, ChunkedFrame) else X
    if _is_frame(X):
        if np.ndim(offset) or isinstance(offset, str):
            raise ValueError("With a frame in chunks `offset` is one number; arrays have one for each row.")
        lengths = [int(length) for length in X.map_partitions(len).compute()]
        return NewRows([(part, offset) for part in X.to_delayed()], lengths, "obs")
    names, dim = None, "obs"
    if isinstance(X, xr.Dataset):
        dim = str(next(iter(X.data_vars.values())).dims[0])
        X, names = _stacked(X, dim, set())
    elif isinstance(X, xr.DataArray):
        dim = str(X.dims[0])
        names = [str(label) for label in X[X.dims[1]].to_numpy()] if X.dims[1] in X.coords else None
        X = X.data
    X = X.rechunk({1: -1})
    if np.isnan(X.shape[0]):
        X = X.compute_chunk_sizes()
    parts = list(X.to_delayed().ravel())
    if names is not None:
        named = need_dask().delayed(pd.DataFrame)
        parts = [named(part, columns=names) for part in parts]
    own: list[Any] = [offset] * len(parts)
    if np.ndim(offset):
        vector, chunks = _values(offset), (X.chunks[0],)
        vector = vector if _is_dask(vector) else need_dask("dask.array").from_array(vector, chunks=chunks)
        own = list(vector.rechunk(chunks).to_delayed().ravel())
    return NewRows(list(zip(parts, own, strict=True)), [int(length) for length in X.chunks[0]], dim)


@dataclass(frozen=True, eq=False)
class Opened:
    """Rows in chunks, not looked at yet.

    Attributes
    ----------
    chunks : DaskChunks
        The rows.
    target, dim : str
        Names of the target and of the dimension of observations.
    weighted, shifted : bool
        Whether rows have weights, and an offset.
    """

    chunks: DaskChunks
    target: str
    dim: str = "obs"
    weighted: bool = False
    shifted: bool = False


def opened(data: Any, target: str | None, weights: Any, offset: Any, *, drop: bool) -> Opened:
    """Pieces of rows, and how they are read."""
    need_dask()
    target = None if target is None else str(target)
    if isinstance(data, ChunkedFrame):
        data, target = data.frame, target or data.target
    if isinstance(data, tuple) and _is_frame(data[0]):
        name = target or str(data[1].name or "y")
        return _of_frame(data[0].assign(**{name: data[1]}), name, weights, offset, drop)
    if _is_frame(data):
        return _of_frame(data, target, weights, offset, drop)
    if isinstance(data, xr.Dataset):
        return _of_dataset(data, target, weights, offset, drop)
    if not isinstance(data, tuple):
        raise TypeError(f"Data in chunks are (X, y), a dask DataFrame or a Dataset, not {type(data).__name__}.")
    X, y = data
    dim, names = "obs", None
    if isinstance(X, xr.DataArray):
        dim = str(X.dims[0])
        names = [str(label) for label in X[X.dims[1]].to_numpy()] if X.ndim == 2 and X.dims[1] in X.coords else None
        X = X.data
    target = target or str(getattr(y, "name", None) or "y") if not _is_dask(y) else target or "y"
    return _of_arrays(X, _values(y), names, target, dim, _values(weights), _values(offset), drop)


def _is_frame(data: Any) -> bool:
    return _is_dask(data) and hasattr(data, "columns") and hasattr(data, "npartitions")


def _is_dask(data: Any) -> bool:
    return type(data).__module__.partition(".")[0] == "dask"


def _values(vector: Any) -> Any:
    """What is inside a DataArray or a Series, be it of dask's or of numpy's."""
    if isinstance(vector, xr.DataArray):
        return vector.data
    if isinstance(vector, str):
        raise ValueError("With (X, y) give `weights` and `offset` as arrays; names of columns are for frames.")
    if _is_dask(vector) and hasattr(vector, "npartitions") and hasattr(vector, "to_dask_array"):
        return vector.to_dask_array()
    return vector if vector is None or _is_dask(vector) else np.asarray(vector)


def _of_frame(frame: Any, target: str | None, weights: Any, offset: Any, drop: bool) -> Opened:
    columns = [str(name) for name in frame.columns]
    if target is None:
        raise ValueError(f"Name the target column: target=..., one of {in_words(columns)}.")
    aside = [target]
    for what, name in (("weights", weights), ("offset", offset)):
        if name is not None and not isinstance(name, str):
            raise ValueError(f"With a frame in chunks give `{what}` by the name of a column.")
        aside += [] if name is None else [name]
    missing = [name for name in aside if name not in columns]
    if missing:
        raise ValueError(f"There is no column {missing[0]!r} in the data; there are {in_words(columns)}.")
    names = [name for name in columns if name not in aside]
    kinds = dict(zip(columns, frame.dtypes, strict=True))
    words = [name for name in names if not pd.api.types.is_numeric_dtype(kinds[name])]
    if words:
        raise ValueError(
            f"Columns in chunks must be numbers; {in_words(words)} hold others: make indicators of them first, with "
            "dask.dataframe.get_dummies."
        )
    if columns != list(frame.columns):  # renamed, a file would be read as a whole where some columns would do
        frame = frame.rename(columns=dict(zip(frame.columns, columns, strict=True)))

    def narrowed(some: list[str]) -> tuple[list[tuple[Any, ...]], _FrameParts]:
        part = frame[[*some, *dict.fromkeys(aside)]]
        return [(piece,) for piece in part.to_delayed()], _FrameParts(some, target, weights, offset)

    pieces, parts = narrowed(names)
    chunks = DaskChunks(pieces, Reader(parts, names, drop=drop), narrowed)
    return Opened(chunks, target, "obs", weights is not None, offset is not None)


@dataclass(frozen=True)
class _FrameParts:
    names: list[str]
    target: str
    weights: str | None
    offset: str | None

    def __call__(self, part: pd.DataFrame) -> tuple[Any, Any, Any, Any]:
        nullable = any(isinstance(kind, pd.api.extensions.ExtensionDtype) for kind in part.dtypes)
        X = part[self.names].to_numpy(dtype=float, na_value=np.nan) if nullable else part[self.names].to_numpy()
        y = part[self.target].to_numpy()
        weights, offset = (
            None if name is None else part[name].to_numpy(dtype=float) for name in (self.weights, self.offset)
        )
        return X, y.astype(str) if y.dtype.kind == "O" else y, weights, offset


def _of_dataset(data: xr.Dataset, target: str | None, weights: Any, offset: Any, drop: bool) -> Opened:
    vectors = [str(name) for name, own in data.data_vars.items() if own.ndim == 1]
    if target is None or target not in vectors:
        raise ValueError(f"Name the target, a variable of one dimension: target=..., one of {in_words(vectors)}.")
    dim = str(data[target].dims[0])
    beside = {what: name for what, name in (("weights", weights), ("offset", offset)) if isinstance(name, str)}
    X, names = _stacked(data, dim, {target, *beside.values()})
    weight, known = (data[name].data if isinstance(name, str) else _values(name) for name in (weights, offset))
    return _of_arrays(X, data[target].data, names, target, dim, weight, known, drop)


def _stacked(data: xr.Dataset, dim: str, aside: set[str]) -> tuple[Any, list[str]]:
    """Features side by side, and their names."""
    da = need_dask("dask.array")
    columns: list[Any] = []
    names: list[str] = []
    for name, own in data.data_vars.items():
        if name in aside:
            continue
        if dim not in own.dims or own.ndim > 2:
            raise ValueError(f"The variable {name!r} has dims {own.dims}; a feature needs the dim {dim!r} of the rows.")
        other = [d for d in own.dims if d != dim]
        matrix = own.transpose(dim, *other).data
        columns.append(matrix if own.ndim == 2 else matrix[:, None])
        labels = data[other[0]].to_numpy() if own.ndim == 2 and other[0] in data.coords else None
        names += [str(name)] if own.ndim == 1 else [str(x) for x in (range(own.shape[1]) if labels is None else labels)]
    if not columns:
        raise ValueError("The data are empty: there are no feature columns.")
    return da.concatenate([da.asarray(part) for part in columns], axis=1), names


def _of_arrays(
    X: Any, y: Any, names: list[str] | None, target: str, dim: str, weights: Any, offset: Any, drop: bool
) -> Opened:
    da = need_dask("dask.array")
    if X.ndim != 2 or y.ndim != 1:
        raise ValueError(f"X must be a table and y a vector, got arrays of {X.ndim} and {y.ndim} dimensions.")
    X = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
    known = not np.isnan(X.shape[0])
    pieces = [list(X.to_delayed().ravel())]
    for what, vector in (("y", y), ("weights", weights), ("offset", offset)):
        if vector is None:
            pieces.append([None] * len(pieces[0]))
            continue
        if known and not np.isnan(vector.shape[0]):
            if vector.shape[0] != X.shape[0]:
                raise ValueError(f"X has {X.shape[0]} rows and {what} has {vector.shape[0]} values; give as many.")
            own = (X.chunks[0],)
            vector = vector.rechunk(own) if _is_dask(vector) else da.from_array(vector, chunks=own)
        elif not _is_dask(vector) or vector.numblocks[0] != X.numblocks[0]:
            raise ValueError(f"The chunks of X and {what} are of unknown size: X.compute_chunk_sizes() finds them out.")
        pieces.append(list(vector.to_delayed().ravel()))
    found = [f"x{j}" for j in range(X.shape[1])] if names is None else names
    chunks = DaskChunks(list(zip(*pieces, strict=True)), Reader(_array_parts, found, drop=drop))
    return Opened(chunks, target, dim, weights is not None, offset is not None)


def _array_parts(*piece: Any) -> tuple[Any, Any, Any, Any]:
    X, y, weights, offset = (None if part is None else np.asarray(part) for part in piece)
    assert y is not None
    return X, y.astype(str) if y.dtype.kind == "O" else y, weights, offset
