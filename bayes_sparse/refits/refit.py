"""A fit to some of the rows, and the log density of the others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bayes_sparse.common.progress import quiet
from bayes_sparse.common.types import FloatArray
from bayes_sparse.fitting.choices import choose, choose_likelihood
from bayes_sparse.fitting.families import Found
from bayes_sparse.fitting.fit import fit
from bayes_sparse.fitting.search import search
from bayes_sparse.inputs import basis as bases
from bayes_sparse.inputs.model import Handed
from bayes_sparse.inputs.rows import Rows
from bayes_sparse.inputs.table import plain_labels
from bayes_sparse.methods.nuts import NUTS
from bayes_sparse.refits.folds import Fold
from bayes_sparse.results.comparison.held_out import HeldOut, log_scores
from bayes_sparse.trees.read import StoredFit, stored

__all__ = ["Refit", "Scored", "left_out"]

_OF_DRAWS = ("draws", "chains", "random_seed", "keep_columns")  # arguments of `fit` that say nothing to a search


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

    def as_in(self, whole: xr.DataTree) -> Refit:
        """With the likelihood that the fit of all rows has: some of them may look as if they were of another."""
        fitted = stored(whole)
        return self if fitted.declared else replace(self, arguments={**self.arguments, "likelihood": fitted.likelihood})

    def _fit(self, rows: Rows) -> xr.DataTree:
        given = {**self.arguments, "basis": self.basis, "progressbar": False}
        with quiet():
            return fit(data=rows, **(given if self.samples else given | {"draws": 0}))

    def _found(self, rows: Rows) -> Found[Any]:
        """An evidence fit to some rows, before any tree of it is written."""
        given = {name: value for name, value in self.arguments.items() if name not in (*_OF_DRAWS, "basis")}
        model, method = given.pop("model"), given.pop("method", "evidence")
        likelihood, keep = given.pop("likelihood", "auto"), given.pop("keep", None)
        chosen, chosen_method = choose(model, method, likelihood, given)
        likelihood = choose_likelihood(chosen, likelihood, chosen_method)
        handed = Handed(rows, likelihood=likelihood, basis=self.basis, keep=keep)
        return search(chosen, chosen_method, handed, progressbar=False)

    def scores(self, tree: xr.DataTree, rows: Rows) -> FloatArray:
        """Log density of each row."""
        with quiet():
            return log_scores(tree, HeldOut(rows.features(self._labels), rows.y, rows.offset))

    @cached_property
    def _labels(self) -> NDArray[Any]:
        """Of all classes, also where rows that are scored are of some of them."""
        return np.unique(plain_labels(self.rows.y)) if self.rows.by_class else np.empty(0)

    def __call__(self, number: int) -> Scored:
        """Fit, and score the rows that were left out."""
        fold = self.folds[number]
        try:
            return self._scored(fold)
        except (ValueError, ArithmeticError, RuntimeError) as problem:
            raise ValueError(f"{fold.name}: {problem}") from problem

    def _scored(self, fold: Fold) -> Scored:
        rows, test = self.rows.at(fold.fitted(self.rows.n)), self.rows.at(fold.test)
        if self.samples:
            tree = self._fit(rows)
            return Scored(self.scores(tree, test), "sampled", left_out(stored(tree)))
        with quiet():  # nobody sees these fits: what their terms mean is not looked into
            found = self._found(rows)
            tree = found.moments()
        return Scored(self.scores(tree, test), found.attributes["status"], left_out(stored(tree)))


def left_out(fit: StoredFit) -> int:
    """How many columns a fit has left out because they are constant in its rows."""
    return 0 if fit.declared else sum(len(how.constant) for how in fit.encodings)
