"""What was handed in, read once: tables, weights and offset, of which some rows can be taken by themselves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from bayes_sparse.common.types import FloatArray, IntArray
from bayes_sparse.inputs.by_class import class_tables, is_by_class
from bayes_sparse.inputs.chunks.sources import is_chunked
from bayes_sparse.inputs.encoding import Missing
from bayes_sparse.inputs.formula import parse, variables_of
from bayes_sparse.inputs.frames import in_the_order_of, is_frame, names_of, values_of
from bayes_sparse.inputs.table import (
    Table,
    check_missing,
    formula_table,
    rows_complete,
    table_of,
    take_apart,
    vector_of,
)
from bayes_sparse.problem.sparse_design import as_csc

__all__ = ["Rows", "read_rows"]


@dataclass(frozen=True, eq=False)
class Rows:
    """Features, targets, and what belongs to each row beside them. `fit` takes it in the place of data.

    Attributes
    ----------
    tables : list of Table
        One, or one a class where every class has features of its own: these have the same rows and targets.
    by_class : bool
        Whether every class has features of its own.
    weights, offset : array (n,), optional
        As they were given.
    places : int array (n,), optional
        Which of the rows handed in they are, where some were left out in reading.
    """

    tables: list[Table]
    by_class: bool
    weights: FloatArray | None
    offset: FloatArray | None
    places: IntArray | None = None

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.tables[0].n

    @property
    def y(self) -> NDArray[Any]:
        """Targets as they were given."""
        return self.tables[0].y

    def features(self, labels: NDArray[Any]) -> Any:
        """What `predict` takes: a table, or one for each of the classes that have features of their own."""
        return dict(zip(labels.tolist(), self.tables, strict=True)) if self.by_class else self.tables[0]

    def of(self, values: Any) -> Any:
        """Of a value a row handed in those of the rows read; anything else as it is."""
        if self.places is None or np.ndim(values) != 1:
            return values
        return values_of(values)[self.places] if len(values) > self.n else values

    def at(self, rows: IntArray) -> Rows:
        """Some of the rows."""
        return replace(
            self,
            tables=[_part(table, rows) for table in self.tables],
            weights=None if self.weights is None else self.weights[rows],
            offset=None if self.offset is None else self.offset[rows],
        )


def _part(table: Table, rows: IntArray) -> Table:
    X = table.X[rows]
    return replace(table, X=as_csc(X) if issparse(X) else X, rows=table.rows[rows], y=table.y[rows])


def read_rows(
    data: Any, target: str | None, weights: Any, offset: Any, missing: Missing = "refuse", formula: str | None = None
) -> Rows:
    """Read the data, in whichever form they were given; `Rows` are returned as they are."""
    if isinstance(data, Rows):
        return data
    if is_chunked(data):
        raise ValueError("This needs the rows in memory, and these lie in chunks: give some of them, by .compute().")
    check_missing(missing)
    if formula is not None:
        return _by_formula(data, target, weights, offset, missing, formula)
    if isinstance(data, tuple) and len(data) == 2 and is_by_class(data[0]):
        return _by_class(data, target, weights, offset, missing)
    raw, taken = take_apart(data, target, [name for name in (weights, offset) if isinstance(name, str)])
    labelled = data[0] if isinstance(data, tuple) else data
    beside = _beside(labelled, {"weights": weights, "offset": offset}, taken, len(raw.rows), missing)
    rows = None
    if missing == "drop":
        rows = rows_complete(raw, list(beside.values()))
        raw, beside = raw.at(rows), {name: values[rows] for name, values in beside.items()}
    return Rows([table_of(raw, missing)], False, beside.get("weights"), beside.get("offset"), rows)


def _beside(
    labelled: Any, vectors: dict[str, Any], taken: dict[str, NDArray[Any]], n: int, missing: Missing
) -> dict[str, FloatArray]:
    """What belongs to each row, under the name of the argument, given as a vector or by the name of a column."""
    found = {}
    for name, values in vectors.items():
        if values is not None:
            own = taken[values] if isinstance(values, str) else in_the_order_of(labelled, values, f"`{name}`")
            found[name] = vector_of(own, n, name, positive=name == "weights", missing=missing == "drop")
    return found


def _by_formula(data: Any, target: str | None, weights: Any, offset: Any, missing: Missing, formula: str) -> Rows:
    """What a formula makes of the columns that it names, of rows that count."""
    labelled = data[0] if isinstance(data, tuple) and len(data) == 2 else data
    if data is not None and not is_frame(labelled):
        raise ValueError(f"A formula names columns: give a frame or a Dataset, not {type(labelled).__name__}.")
    aside = [name for name in (weights, offset) if isinstance(name, str)]
    others = {*aside, str(target)}
    left, right = parse(formula, [] if data is None else [name for name in names_of(labelled) if name not in others])
    if missing == "mean":
        raise ValueError("With a formula missing values are refused or dropped: missing='mean' is for plain columns.")
    if left is not None and target is not None and str(target) != left:
        raise ValueError(f"The formula's left side is {left!r} and `target` {str(target)!r}: leave out `target`.")
    raw, taken = take_apart(data, left if target is None else target, aside)
    beside = _beside(labelled, {"weights": weights, "offset": offset}, taken, len(raw.rows), missing)
    raw = raw.only(list(dict.fromkeys(name for _, names in variables_of(right) for name in names)))
    rows = rows_complete(raw, list(beside.values())) if missing == "drop" else np.arange(len(raw.rows))
    rows = rows[beside["weights"][rows] > 0] if "weights" in beside else rows
    raw, beside = raw.at(rows), {name: values[rows] for name, values in beside.items()}
    return Rows([formula_table(raw, formula, missing)], False, beside.get("weights"), beside.get("offset"), rows)


def _by_class(data: Any, target: str | None, weights: Any, offset: Any, missing: Missing) -> Rows:
    if isinstance(weights, str) or isinstance(offset, str):
        raise ValueError("With features of each class's own give `weights` and `offset` as arrays, not by name.")
    if missing != "refuse":
        raise ValueError("With features of each class's own there may be no missing values: leave out `missing`.")
    tables = class_tables(data[0], data[1], target)
    beside = _beside(data[0], {"weights": weights, "offset": offset}, {}, tables[0].n, missing)
    return Rows(tables, True, beside.get("weights"), beside.get("offset"))
