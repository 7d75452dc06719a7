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

__all__ = ["Made", "Refit", "Scored", "left_out"]

_OF_DRAWS = ("draws", "chains", "random_seed", "keep_columns")  # arguments of `fit` that say nothing to a search


class Scored(NamedTuple):
    """What a fold gives: the log density of each row scored, how the fit ended, and how many columns it left out."""

    scores: FloatArray
    status: str
    left_out: int


class Made(NamedTuple):
    """A fit as it is read, and what is to be written into a tree if anybody asks; None where there is one."""

    fit: StoredFit
    found: Found[Any] | None = None

    @property
    def tree(self) -> xr.DataTree:
        """Without draws where it is not sampled."""
        return self.fit.tree if self.found is None else self.found.tree(0, 1, np.random.default_rng(0))


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

    def whole(self) -> Made:
        """The fit of all rows."""
        return self._fit(self.rows)

    def as_in(self, whole: StoredFit) -> Refit:
        """With the likelihood that the fit of all rows has: some of them may look as if they were of another."""
        return self if whole.declared else replace(self, arguments={**self.arguments, "likelihood": whole.likelihood})

    def _fit(self, rows: Rows) -> Made:
        """A fit to some rows; what nobody asks for, such as what its terms mean, is not looked into."""
        with quiet():
            if self.samples:
                tree = fit(data=rows, **{**self.arguments, "basis": self.basis, "progressbar": False})
                return Made(stored(tree))
            found = self._found(rows)
            return Made(found.at_hand(), found)

    def _found(self, rows: Rows) -> Found[Any]:
        """The end of an evidence method on some rows."""
        given = {name: value for name, value in self.arguments.items() if name not in (*_OF_DRAWS, "basis")}
        model, method = given.pop("model"), given.pop("method", "evidence")
        likelihood, keep = given.pop("likelihood", "auto"), given.pop("keep", None)
        chosen, chosen_method = choose(model, method, likelihood, given)
        likelihood = choose_likelihood(chosen, likelihood, chosen_method)
        handed = Handed(rows, likelihood=likelihood, basis=self.basis, keep=keep)
        return search(chosen, chosen_method, handed, progressbar=False)

    def scores(self, fitted: StoredFit, rows: Rows) -> FloatArray:
        """Log density of each row."""
        with quiet():
            return log_scores(fitted, HeldOut(rows.features(self._labels), rows.y, rows.offset))

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
        fitted = self._fit(self.rows.at(fold.fitted(self.rows.n))).fit
        return Scored(self.scores(fitted, self.rows.at(fold.test)), str(fitted.status or "sampled"), left_out(fitted))


def left_out(fit: StoredFit) -> int:
    """How many columns a fit has left out because they are constant in its rows."""
    return 0 if fit.declared else sum(len(how.constant) for how in fit.encodings)
