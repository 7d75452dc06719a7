"""What people hand in, turned into one table of numbers; every complaint about data is made here.

Accepted: ``(X, y)`` of arrays, pandas or xarray objects; a pandas or polars DataFrame, or an xarray Dataset, with the
name of the target. X may be sparse, a matrix of scipy's or columns of a pandas DataFrame, and stays so. Names of
columns, rows and dims are kept for every output.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from scipy.sparse import csc_array, issparse

from bayes_sparse.design import FloatArray
from bayes_sparse.sparse_design import Features, as_csc

__all__ = ["Table", "features_of", "labels_of", "read_table", "vector_of"]

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
    missing = [name for name in aside if name not in taken]
    if missing:
        raise ValueError(f"There is no column {missing[0]!r} in the data; there are {_listed(table.columns)}.")
    _check(table)
    return table, taken


def features_of(X: Any, columns: list[str]) -> tuple[Features, NDArray[Any], str]:
    """New rows for a fit with the given columns: matrix, row labels and the name of their dimension."""
    if hasattr(X, "columns") or isinstance(X, xr.Dataset):
        picked, rows, dim = _frame_parts(X)
        absent = [c for c in columns if c not in picked]
        if absent:
            raise ValueError(
                f"New data must have the columns of the fit; missing: {_listed(absent)} (it has {_listed(picked)})."
            )
        matrix: Features = _features([picked[c] for c in columns], columns)
    else:
        matrix, found, rows, dim = _array_parts(X)
        if matrix.shape[1] != len(columns):
            raise ValueError(
                f"New data must have the {len(columns)} columns of the fit ({_listed(columns)}); it has "
                f"{matrix.shape[1]}."
            )
        if found is not None and sorted(found) != sorted(columns):
            raise ValueError(
                f"New data must have the columns of the fit ({_listed(columns)}); it has {_listed(found)}."
            )
        if found is not None and found != columns:
            matrix = matrix[:, [found.index(c) for c in columns]]
    _check_finite(matrix, columns)
    return matrix, rows, dim


def vector_of(values: Any, n: int, what: str, *, positive: bool = False) -> FloatArray:
    """A finite vector with one number an observation (weights, offset)."""
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
            f"The target {target!r} has {len(classes)} classes ({_listed(classes)}); a bernoulli likelihood takes two, "
            "likelihood='categorical' any number."
        )
    return codes.astype(float), classes


def plain_labels(y: NDArray[Any]) -> NDArray[Any]:
    """Labels held as objects (by pandas, say) as booleans, numbers or strings, whichever they are."""
    if y.dtype.kind != "O":
        return y
    plain = np.array(y.tolist())
    return plain if plain.dtype.kind in "biufU" else y.astype(str)


def _from_pair(X: Any, y: Any, target: str | None) -> Table:
    named = hasattr(X, "columns") or isinstance(X, xr.Dataset)
    if named:
        parts, rows, dim = _frame_parts(X)
        columns = list(parts)
        matrix: Features = X.to_numpy() if _one_float_block(X) else _features(list(parts.values()), columns)
    else:
        matrix, found, rows, dim = _array_parts(X)
        columns = [f"x{j}" for j in range(matrix.shape[1])] if found is None else found
    if issparse(y):
        raise ValueError("The target must be a dense vector, not a sparse matrix: y.toarray().ravel() makes it one.")
    values = y.to_numpy() if hasattr(y, "to_numpy") else np.asarray(y)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    name = getattr(y, "name", None)
    if target is None:
        target = str(name) if name is not None else "y"
    return Table(matrix, columns, rows, dim, values, target)


def _from_frame(data: Any, target: str | None, aside: Sequence[str]) -> tuple[Table, dict[str, NDArray[Any]]]:
    if not (hasattr(data, "columns") or isinstance(data, xr.Dataset)):
        raise TypeError(
            f"Data must be (X, y), a DataFrame or an xarray Dataset with target=..., not {type(data).__name__}."
        )
    parts, rows, dim = _frame_parts(data)
    if not parts:
        raise ValueError("The data are empty: there are no columns.")
    if target is None:
        raise ValueError(f"Name the target column: target=..., one of {_listed(parts)}.")
    if target not in parts:
        raise ValueError(f"There is no column {target!r} to be the target; there are {_listed(parts)}.")
    y = np.asarray(parts.pop(target))
    taken = {name: np.asarray(parts.pop(name)) for name in aside if name in parts}
    columns = list(parts)
    return Table(_features(list(parts.values()), columns), columns, rows, dim, y, target), taken


def _frame_parts(data: Any) -> tuple[dict[str, Any], NDArray[Any], str]:
    """Columns by name (sparse ones as they are), row labels and the name of their dim, of a DataFrame or Dataset."""
    if isinstance(data, xr.Dataset):
        return _dataset_parts(data)
    names = [str(c) for c in data.columns]
    twice = sorted(c for c, count in Counter(names).items() if count > 1)
    if twice:
        raise ValueError(f"The column name {twice[0]!r} stands more than once; give every column its own name.")
    if isinstance(data, pd.DataFrame):
        series = (data.iloc[:, j] for j in range(len(names)))
        parts = {n: s.array if _is_sparse(s.array) else s.to_numpy() for n, s in zip(names, series, strict=True)}
        rows = data.index.to_numpy()
        return parts, rows, str(data.index.name or "obs")
    parts = {name: data[name].to_numpy() for name in names}
    return parts, np.arange(len(data)), "obs"


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
    rows = data[dim].to_numpy() if dim in data.coords else np.arange(data.sizes[dim])
    return parts, rows, dim


def _array_parts(X: Any) -> tuple[Features, list[str] | None, NDArray[Any], str]:
    """Matrix, column names if it has any, row labels and dim of an array-like."""
    if issparse(X):
        by_columns = as_csc(X)
        return by_columns, None, np.arange(by_columns.shape[0]), "obs"
    dim, rows, names = "obs", None, None
    if isinstance(X, xr.DataArray):
        dim = str(X.dims[0])
        rows = X[dim].to_numpy() if dim in X.coords else None
        if X.ndim == 2 and X.dims[1] in X.coords:
            names = [str(label) for label in X[X.dims[1]].to_numpy()]
        X = X.to_numpy()
    matrix = np.asarray(X)
    if matrix.ndim == 1:
        matrix = matrix[:, None]
    if matrix.ndim != 2:
        raise ValueError(f"X must be a table of rows and columns, got an array of {matrix.ndim} dimensions.")
    if matrix.dtype.kind not in "fiub":
        columns = names or [f"x{j}" for j in range(matrix.shape[1])]
        matrix = _matrix([matrix[:, j] for j in range(matrix.shape[1])], columns)
    return matrix, names, np.arange(len(matrix)) if rows is None else rows, dim


def _is_sparse(part: Any) -> bool:
    return isinstance(part, pd.arrays.SparseArray)


def _features(parts: list[Any], columns: list[str]) -> Features:
    """Columns side by side, as a sparse matrix if at least half of them are sparse."""
    sparse = sum(map(_is_sparse, parts))
    if not sparse or 2 * sparse < len(parts):
        return _matrix([np.asarray(part) for part in parts], columns)
    entries = [_nonzeros(part, name) for part, name in zip(parts, columns, strict=True)]
    indptr = np.cumsum([0, *(len(rows) for rows, _ in entries)])
    rows, values = (np.concatenate(pieces) for pieces in zip(*entries, strict=True))
    return as_csc(csc_array((values, rows, indptr), shape=(len(parts[0]), len(parts))))


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
                f"Column {name!r} is not numeric (it holds {seen}, for one); turn it into numbers first, with "
                "pandas.get_dummies for categories."
            ) from None
    return out


def _one_float_block(X: Any) -> bool:
    """Whether a frame is one block of floats, so that its array is not a copy."""
    return isinstance(X, pd.DataFrame) and X.shape[1] > 0 and bool((X.dtypes == np.float64).all())


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
        f"NaN or infinite values in {_listed(worst, quote=False)}, first in row {first}; fill them in or remove "
        "those rows."
    )


def check_constant(names: list[str], scale: FloatArray) -> None:
    """Refuse constant columns, beside a bias."""
    constant = np.flatnonzero(scale == 0)
    if len(constant):
        raise ValueError(
            f"Constant columns cannot be told from the bias: {_listed([names[j] for j in constant])}; drop them, or "
            "fit without a bias: basis=bs.basis.linear(bias=False, standardise=False)."
        )


def _listed(names: Any, *, quote: bool = True) -> str:
    """The first few names in words."""
    shown = [repr(str(n)) if quote else str(n) for n in list(names)[:_SHOWN]]
    more = len(list(names)) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")
