"""What was handed in, read once: tables, weights and offset, of which some rows can be taken by themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import NDArray
from scipy.sparse import issparse

from bayes_sparse.common.types import FloatArray, IntArray
from bayes_sparse.inputs.frames import in_the_order_of
from bayes_sparse.inputs.table import Table, class_tables, is_by_class, read_table, vector_of
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
    """

    tables: list[Table]
    by_class: bool
    weights: FloatArray | None
    offset: FloatArray | None

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.tables[0].n

    @property
    def y(self) -> NDArray[Any]:
        """Targets as they were given."""
        return self.tables[0].y

    def at(self, rows: IntArray, columns: Sequence[IntArray] | None = None) -> Rows:
        """Some of the rows, and, of each table, some of its columns."""
        chosen = [None] * len(self.tables) if columns is None else columns
        return replace(
            self,
            tables=[_part(table, rows, own) for table, own in zip(self.tables, chosen, strict=True)],
            weights=None if self.weights is None else self.weights[rows],
            offset=None if self.offset is None else self.offset[rows],
        )


def _part(table: Table, rows: IntArray, columns: IntArray | None) -> Table:
    X, names = table.X[rows], table.columns
    if columns is not None:
        X, names = X[:, columns], [names[j] for j in columns.tolist()]
    X = as_csc(X) if issparse(X) else X
    return replace(table, X=X, columns=names, rows=table.rows[rows], y=table.y[rows])


def read_rows(data: Any, target: str | None, weights: Any, offset: Any) -> Rows:
    """Read the data, in whichever form they were given; `Rows` are returned as they are."""
    if isinstance(data, Rows):
        return data
    own = isinstance(data, tuple) and len(data) == 2 and is_by_class(data[0])
    taken: dict[str, NDArray[Any]] = {}
    if own:
        if isinstance(weights, str) or isinstance(offset, str):
            raise ValueError("With features of each class's own give `weights` and `offset` as arrays, not by name.")
        tables = class_tables(data[0], data[1], target)
    else:
        table, taken = read_table(data, target, [name for name in (weights, offset) if isinstance(name, str)])
        tables = [table]
    labelled, n = data[0] if isinstance(data, tuple) else data, tables[0].n
    weights = taken[weights] if isinstance(weights, str) else in_the_order_of(labelled, weights, "`weights`")
    offset = taken[offset] if isinstance(offset, str) else in_the_order_of(labelled, offset, "`offset`")
    return Rows(
        tables=tables,
        by_class=own,
        weights=None if weights is None else vector_of(weights, n, "weights", positive=True),
        offset=None if offset is None else vector_of(offset, n, "offset"),
    )
