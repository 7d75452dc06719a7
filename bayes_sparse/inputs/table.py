"""What people hand in becomes one table of numbers, checked: features, targets, labels, weights."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import csc_array, issparse

from bayes_sparse.common.types import FloatArray, IntArray
from bayes_sparse.inputs.encoding import Encoding, Missing, encoded, found_in, lost_in
from bayes_sparse.inputs.formula import formula_found
from bayes_sparse.inputs.frames import (
    array_parts,
    frame_parts,
    in_the_order_of,
    is_frame,
    one_float_block,
    refuse_masked,
    values_of,
)
from bayes_sparse.problem.sparse_design import Features, as_csc

__all__ = [
    "Raw",
    "Table",
    "check_constant",
    "check_missing",
    "check_size",
    "filled",
    "formula_table",
    "in_words",
    "labels_of",
    "plain_labels",
    "read_table",
    "refuse_infinite",
    "refuse_missing",
    "rows_complete",
    "table_of",
    "take_apart",
    "vector_of",
]

_log = logging.getLogger("bayes_sparse")
_BLOCK = 2**16  # numbers looked at together: half a megabyte
_TOGETHER = 8  # rows
_SHOWN = 4  # how many names an error lists before it says "and 12 more"


@dataclass(frozen=True, eq=False)
class Table:
    """Features and target, checked.

    Attributes
    ----------
    X : array or sparse array (n, p)
        Features; the user's own array where it was one of floats, sparse ones by columns. Not numbers where they are
        missing, and are to be filled in by what the rows that are fitted say.
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
    encoding : Encoding, optional
        How the columns handed in became these; None where they are the same.
    """

    X: Features
    columns: list[str]
    rows: NDArray[Any]
    obs_dim: str
    y: NDArray[Any]
    target: str
    encoding: Encoding | None = None

    @property
    def n(self) -> int:
        """Number of observations."""
        return len(self.rows)

    @property
    def how(self) -> Encoding:
        """The encoding, also where there is nothing to it."""
        return Encoding(self.columns) if self.encoding is None else self.encoding


def check_missing(missing: Any) -> None:
    """Refuse what is no way with missing values."""
    if missing not in get_args(Missing.__value__):
        raise ValueError(f"`missing` is 'refuse', 'drop' or 'mean', got {missing!r}.")


class Raw(NamedTuple):
    """What was handed in, taken apart: features (a matrix, or columns one by one), their names, labels and target."""

    given: Features | list[Any]
    names: list[str]
    rows: NDArray[Any]
    dim: str
    y: NDArray[Any]
    target: str

    def at(self, rows: IntArray) -> Raw:
        """Some of the rows."""
        part = [own[rows] for own in self.given] if isinstance(self.given, list) else _rows_of(self.given, rows)
        return self._replace(given=part, rows=self.rows[rows], y=self.y[rows])

    def only(self, names: list[str]) -> Raw:
        """Some of the columns, one by one."""
        absent = [name for name in names if name not in self.names]
        if absent:
            raise ValueError(f"There is no column {absent[0]!r} in the data; there are {in_words(self.names)}.")
        at = {name: j for j, name in enumerate(self.names)}
        own = [self.given[at[n]] if isinstance(self.given, list) else self.given[:, at[n]] for n in names]
        return self._replace(given=own, names=names)


def _rows_of(X: Features, rows: IntArray) -> Features:
    return as_csc(X[rows]) if issparse(X) else X[rows]


def take_apart(data: Any, target: str | None, aside: Sequence[str] = ()) -> tuple[Raw, dict[str, NDArray[Any]]]:
    """Features, target and labels of what the user handed in.

    Parameters
    ----------
    data : tuple, DataFrame or Dataset
        See the module's docstring.
    target : str, optional
        Name of the target column; for ``(X, y)`` the name it gets.
    aside : sequence of str
        Columns that are not features (weights, offset): taken out and returned beside the others.
    """
    target = None if target is None else str(target)  # names of columns are strings here, whatever they were
    if data is None:
        raise ValueError("No data: pass (X, y), a DataFrame with target=..., or an xarray Dataset with target=....")
    if isinstance(data, tuple):
        if len(data) != 2:
            raise ValueError(f"Data given as a tuple must be (X, y), two things; this one has {len(data)}.")
        raw = _from_pair(*data, target)
        taken: dict[str, NDArray[Any]] = {}
    else:
        raw, taken = _from_frame(data, target, aside)
    if "/" in raw.target:
        raise ValueError(
            f"The target's name {raw.target!r} has a slash in it, which stands for a group in the tree of a fit: "
            "rename it, or give (X, y) with target='another name'."
        )
    missing = [name for name in aside if name not in taken]
    if missing:
        raise ValueError(f"There is no column {missing[0]!r} in the data; there are {in_words(raw.names)}.")
    if not len(raw.rows) or not raw.names:
        raise ValueError(f"The data are empty: there are no {'feature columns' if len(raw.rows) else 'rows'}.")
    if raw.y.ndim != 1:
        raise ValueError(f"The target must be one value per observation, got an array of shape {raw.y.shape}.")
    if len(raw.rows) != len(raw.y):
        raise ValueError(f"X has {len(raw.rows)} rows and y has {len(raw.y)} values; they must be as many.")
    return raw, taken


def rows_complete(raw: Raw, beside: Sequence[FloatArray]) -> IntArray:
    """Rows without missing values, in features, target, and what belongs to each row beside them."""
    lost = lost_in(raw.given, raw.names)[0] | _lost_targets(raw.y)
    for values in beside:
        lost = lost | np.isnan(values)
    if lost.all():
        raise ValueError("Every row has a missing value, so that missing='drop' leaves none: fill them in.")
    if lost.any():
        _log.info("%d of %d rows have missing values, and are left out.", int(lost.sum()), len(lost))
    return np.flatnonzero(~lost)


def table_of(raw: Raw, missing: Missing) -> Table:
    """The table of numbers, checked."""
    encoding = found_in(raw.given, raw.names, missing)
    if missing != "mean":
        refuse_missing(raw.given, raw.names)
    X = encoded(raw.given, encoding)
    columns = list(encoding.source)
    refuse_infinite(X, columns)
    _check_targets(raw)
    return Table(X, columns, raw.rows, raw.dim, raw.y, raw.target, encoding)


def _check_targets(raw: Raw) -> None:
    lost = _lost_targets(raw.y) | (~np.isfinite(raw.y) if raw.y.dtype.kind == "f" else False)
    if np.any(lost):
        raise ValueError(
            f"The target {raw.target!r} has {int(np.sum(lost))} NaN or infinite values (first in row "
            f"{raw.rows[int(np.argmax(lost))]}); remove those rows"
            + (", as missing='drop' does." if np.any(_lost_targets(raw.y)) else ".")
        )


def formula_table(raw: Raw, formula: str, missing: Missing) -> Table:
    """The table that a formula makes."""
    refuse_missing(raw.given, raw.names)
    assert isinstance(raw.given, list)
    X, found = formula_found(formula, dict(zip(raw.names, raw.given, strict=True)))
    refuse_infinite(X, found["columns"])
    _check_targets(raw)
    encoding = Encoding(raw.names, missing=missing, formula=found)
    return Table(X, list(encoding.source), raw.rows, raw.dim, raw.y, raw.target, encoding)


def read_table(data: Any, target: str | None) -> Table:
    """Read what the user handed in, without missing values."""
    return table_of(take_apart(data, target)[0], "refuse")


def filled(X: Features, means: FloatArray) -> Features:
    """Means in the place of missing values; where there are none, the same matrix."""
    values: Any = X.data if issparse(X) else X
    with np.errstate(over="ignore", invalid="ignore"):
        if values.dtype.kind != "f" or not np.isnan(values.sum()):
            return X
    if isinstance(X, np.ndarray):
        return np.where(np.isnan(X), means, X)
    column = np.repeat(np.arange(X.shape[1]), np.diff(X.indptr))
    return csc_array((np.where(np.isnan(values), means[column], values), X.indices, X.indptr), shape=X.shape)


def vector_of(values: Any, n: int, what: str, *, positive: bool = False, missing: bool = False) -> FloatArray:
    """A finite vector with one number per observation (weights, offset); with missing values where these may be."""
    refuse_masked(values, f"`{what}`")
    out = np.asarray(values)
    if out.dtype.kind not in "fiub" or out.ndim > 1:
        raise ValueError(f"`{what}` must be one number per observation, got {out.dtype} of shape {out.shape}.")
    out = np.broadcast_to(out.astype(float), (n,)) if out.ndim == 0 else out.astype(float)
    if len(out) != n:
        raise ValueError(f"`{what}` has {len(out)} values for {n} observations; they must be as many.")
    if not (np.isfinite(out) | (missing & np.isnan(out))).all():
        raise ValueError(f"`{what}` has {int((~np.isfinite(out)).sum())} NaN or infinite values; remove those rows.")
    if positive and (np.any(out < 0) or not np.any(out > 0)):
        raise ValueError(f"`{what}` must not be negative, and not all zero.")
    return np.ascontiguousarray(out)


def labels_of(y: NDArray[Any], target: str, *, several: bool = False) -> tuple[FloatArray, NDArray[Any]]:
    """Class labels as 0.0, 1.0 ..., and the labels in that order; two of them unless there may be several."""
    classes, codes = np.unique(plain_labels(y), return_inverse=True)
    if len(classes) == 1:
        raise ValueError(
            f"The target {target!r} has one class only ({classes[:1].tolist()[0]!r}); two are needed to tell apart."
        )
    if len(classes) > 2 and not several:
        raise ValueError(
            f"The target {target!r} has {len(classes)} classes ({in_words(classes)}); this likelihood takes two, "
            "likelihood='categorical' any number."
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


def _from_pair(X: Any, y: Any, target: str | None) -> Raw:
    given: Features | list[Any]
    if is_frame(X):
        parts, rows, dim = frame_parts(X)
        names = list(parts)
        given = X.to_numpy() if one_float_block(X) else list(parts.values())
    else:
        given, found, rows, dim = array_parts(X)
        number = len(given) if isinstance(given, list) else given.shape[1]
        names = [f"x{j}" for j in range(number)] if found is None else found
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
    return Raw(given, names, rows, dim, values, target)


def _from_frame(data: Any, target: str | None, aside: Sequence[str]) -> tuple[Raw, dict[str, NDArray[Any]]]:
    if not is_frame(data):
        raise TypeError(
            f"Data must be (X, y), a DataFrame or an xarray Dataset with target=..., not {type(data).__name__}"
            + ("; collect() it first." if hasattr(data, "collect") else ".")
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
    return Raw(list(parts.values()), list(parts), rows, dim, y, target), taken


def _lost_targets(y: NDArray[Any]) -> NDArray[np.bool_]:
    return np.asarray(pd.isna(y)) if y.dtype.kind in "OUSTMf" else np.zeros(len(y), bool)


def refuse_missing(given: Features | list[Any], names: Sequence[str], *, fitted: bool = False) -> None:
    """Refuse missing values, naming the columns and how many there are; of new rows, where a fit has no means."""
    rows, counts = lost_in(given, names)
    if counts:
        worst = [f"{name!r} ({number})" for name, number in counts.items()]
        raise ValueError(
            f"Missing values in {in_words(worst, quote=False)}, first in row {int(np.argmax(rows))}: missing='drop' "
            "leaves out those rows, "
            + ("and " if fitted else "")
            + "missing='mean' fills them in and marks them"
            + (", if the fit was made with it." if fitted else ", or remove the columns.")
        )


def refuse_infinite(X: Features, columns: list[str]) -> None:
    """Refuse infinite values; those missing have been seen to."""
    values = X.data if issparse(X) else X
    with np.errstate(over="ignore", invalid="ignore"):
        if values.dtype.kind != "f" or np.isfinite(values.sum()):  # one pass; a finite sum has only finite terms
            return
    bad = np.isinf(values)
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
        f"Infinite values in {in_words(worst, quote=False)}, first in row {first}; fill them in or remove those rows."
    )


def check_size(values: Any, names: Sequence[str], what: str, *, squared: bool, small: bool = True) -> None:
    """Refuse numbers so large or small that their powers leave the range of floats: squares, or squares of these."""
    most = np.finfo(float).max ** (0.49 if squared else 0.24)
    largest = _largest(values)
    wrong = np.flatnonzero(~(largest < most) | ((largest > 0) & (largest < 1 / most) & small))
    if len(wrong):
        size = largest[wrong[0]]
        held = f"as {'large' if size > 1 else 'small'} as {size:.3g}" if np.isfinite(size) else "too large for a float"
        raise ValueError(
            f"The {what} {names[wrong[0]]!r} holds values {held}, of which powers cannot be computed: change the units."
        )


def _largest(values: Any) -> FloatArray:
    """Largest size of each column, without a temporary of the size of all; NaN where there is one."""
    if isinstance(values, csc_array):
        ends = (np.ravel(end.toarray()) for end in (values.max(axis=0), values.min(axis=0)))
        return np.asarray(np.max([np.abs(end) for end in ends], axis=0))
    width = values.shape[1]
    out = np.zeros(width)
    step = max(64, _BLOCK // max(width, 1) // _TOGETHER * _TOGETHER)
    for start in range(0, len(values), step):
        block = values[start : start + step]
        if width and block.flags.c_contiguous and len(block) == step:  # rows together: numpy takes its time for each
            block = block.reshape(-1, _TOGETHER * width)
        for extreme in (block.max(axis=0), block.min(axis=0)):
            rows = np.abs(extreme.astype(float)).reshape(len(extreme) // width if width else 1, width)
            np.maximum(out, rows.max(axis=0), out=out)
    return out


def check_constant(constant: list[str]) -> None:
    """Refuse constant columns that cannot be left out, beside a bias."""
    if constant:
        raise ValueError(
            f"Constant columns cannot be told from the bias: {in_words(constant)}; drop them, or "
            "fit without a bias: basis=bs.basis.linear(bias=False, standardise=False)."
        )


def in_words(names: Any, *, quote: bool = True) -> str:
    """The first few names in words."""
    shown = [repr(str(n)) if quote else str(n) for n in list(names)[:_SHOWN]]
    more = len(list(names)) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")
