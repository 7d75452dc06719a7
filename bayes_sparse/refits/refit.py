"""A fit to some of the rows, and the log density of the others."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from bayes_sparse.common.progress import quiet
from bayes_sparse.common.types import FloatArray, IntArray
from bayes_sparse.fitting.fit import fit
from bayes_sparse.inputs import basis as bases
from bayes_sparse.inputs.rows import Rows
from bayes_sparse.inputs.table import plain_labels
from bayes_sparse.methods.nuts import NUTS
from bayes_sparse.problem.design import column_moments
from bayes_sparse.problem.sparse_design import sparse_moments
from bayes_sparse.refits.folds import Fold
from bayes_sparse.results.comparison.held_out import HeldOut, log_scores
from bayes_sparse.trees.read import stored

__all__ = ["Refit", "Scored"]


class Scored(NamedTuple):
    """What a fold gives: the log density of each row scored, how the fit ended, and how many columns it left out."""

    scores: FloatArray
    status: str
    left_out: int


@dataclass(frozen=True, eq=False)
class Refit:
    """Rows, folds and arguments of `fit`; called with the number of a fold."""

    rows: Rows
    folds: list[Fold]
    arguments: dict[str, Any]

    @property
    def samples(self) -> bool:
        """Whether the fits are by NUTS."""
        method = self.arguments.get("method")
        return method == "nuts" or isinstance(method, NUTS)

    @cached_property
    def basis(self) -> bases.Basis:
        """How features become basis functions."""
        return bases.resolve(self.arguments.get("basis", "linear"))

    def whole(self) -> xr.DataTree:
        """The fit of all rows."""
        return self._fit(self.rows)

    def _fit(self, rows: Rows) -> xr.DataTree:
        given = {**self.arguments, "basis": self.basis, "progressbar": False}
        with quiet():
            return fit(data=rows, **(given if self.samples else given | {"draws": 0}))

    def scores(self, tree: xr.DataTree, rows: Rows) -> FloatArray:
        """Log density of each row."""
        X: Any = rows.tables[0].X
        if rows.by_class:
            labels = np.unique(plain_labels(self.rows.y)).tolist()
            X = {label: table.X for label, table in zip(labels, rows.tables, strict=True)}
        with quiet():
            return log_scores(tree, HeldOut(X, rows.y, rows.offset))

    def __call__(self, number: int) -> Scored:
        """Fit, and score the rows that were left out."""
        fold = self.folds[number]
        try:
            return self._scored(fold)
        except (ValueError, ArithmeticError, RuntimeError) as problem:
            raise ValueError(f"{fold.name}: {problem}") from problem

    def _scored(self, fold: Fold) -> Scored:
        train = self.rows.at(fold.fitted(self.rows.n))
        columns = self._telling(train)
        if columns is not None:
            train = train.at(np.arange(train.n), columns)
        tree = self._fit(train)
        scores = self.scores(tree, self.rows.at(fold.test, columns))
        lost = sum(len(t.columns) for t in self.rows.tables) - sum(len(t.columns) for t in train.tables)
        return Scored(scores, str(stored(tree).status or "sampled"), lost)

    def _telling(self, train: Rows) -> list[IntArray] | None:
        """Columns that are not constant in the rows fitted, where that matters; None for all of them."""
        if not (self.basis.bias and self.basis.takes_sparse):  # the basis functions must be the features themselves
            return None
        keep = self.arguments.get("keep")
        kept = [] if keep is None else [keep] if isinstance(keep, str) else [str(name) for name in keep]
        telling = []
        for table in train.tables:
            sd = (column_moments(table.X) if isinstance(table.X, np.ndarray) else sparse_moments(table.X))[1]
            telling.append(np.flatnonzero((sd > 0) | np.isin(table.columns, kept)))
        whole = all(len(own) == len(table.columns) for own, table in zip(telling, train.tables, strict=True))
        return None if whole else telling
