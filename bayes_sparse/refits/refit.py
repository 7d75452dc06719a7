"""A fit to some of the rows, and the log density of the others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayes_sparse.common.progress import quiet
from bayes_sparse.common.types import FloatArray
from bayes_sparse.fitting.choices import choose, choose_likelihood
from bayes_sparse.fitting.families import Found
from bayes_sparse.fitting.fit import fit
from bayes_sparse.fitting.search import search
from bayes_sparse.inference.method import Method
from bayes_sparse.inputs import basis as bases
from bayes_sparse.inputs.likelihoods import Likelihood
from bayes_sparse.inputs.model import Handed, Model
from bayes_sparse.inputs.rows import Rows
from bayes_sparse.inputs.table import plain_labels
from bayes_sparse.inputs.target import target_of
from bayes_sparse.methods.nuts import NUTS
from bayes_sparse.refits.folds import Fold
from bayes_sparse.results.comparison.held_out import HeldOut, log_scores
from bayes_sparse.trees.read import StoredFit, stored

__all__ = ["Refit", "Scored", "left_out"]

# Arguments of `fit` that are no settings of a model or a method.
_BESIDE = ("basis", "keep", "draws", "chains", "random_seed", "keep_columns")


class Scored(NamedTuple):
    """What a fold gives: the log density of each row scored, how the fit ended, and how many columns it left out."""

    scores: FloatArray
    status: str
    left_out: int


class _Chosen(NamedTuple):
    """What is fitted, by what, and the likelihood, "auto" where the targets say which."""

    model: Model
    method: Method
    likelihood: str | Likelihood


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

    def whole(self) -> StoredFit:
        """The fit of all rows."""
        return self._fit(self.rows)

    def as_in(self, whole: StoredFit | None) -> Refit:
        """With the likelihood that all rows have: some of them may look as if they were of another."""
        if whole is not None and whole.declared:
            return self
        likelihood = self._likelihood() if whole is None else whole.likelihood
        return replace(self, arguments={**self.arguments, "likelihood": likelihood})

    def _likelihood(self) -> Likelihood:
        """Of all rows that count, without a fit of them."""
        asked, weights = self._chosen.likelihood, self.rows.weights
        asked = "categorical" if self.rows.by_class and asked == "auto" else asked
        rows = self.rows if weights is None else self.rows.at(np.flatnonzero(weights))
        return target_of(rows.tables[0], asked)[2]

    def _fit(self, rows: Rows) -> StoredFit:
        """A fit to some rows, of which nobody asks what its terms mean."""
        with quiet():
            if self.samples:
                return stored(fit(data=rows, **{**self.arguments, "basis": self.basis, "progressbar": False}))
            return self._found(rows).at_hand()

    def _found(self, rows: Rows) -> Found[Any]:
        """The end of an evidence method."""
        chosen = self._chosen
        handed = Handed(rows, likelihood=chosen.likelihood, basis=self.basis, keep=self.arguments.get("keep"))
        return search(chosen.model, chosen.method, handed, progressbar=False, alone=False)

    @cached_property
    def _chosen(self) -> _Chosen:
        """What the arguments say, checked."""
        given = {name: value for name, value in self.arguments.items() if name not in _BESIDE}
        model, method, likelihood = given.pop("model"), given.pop("method", "evidence"), given.pop("likelihood", "auto")
        chosen, chosen_method = choose(model, method, likelihood, given)
        return _Chosen(chosen, chosen_method, choose_likelihood(chosen, likelihood, chosen_method))

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
        fitted = self._fit(self.rows.at(fold.fitted(self.rows.n)))
        return Scored(self.scores(fitted, self.rows.at(fold.test)), str(fitted.status or "sampled"), left_out(fitted))


def left_out(fit: StoredFit) -> int:
    """How many columns a fit has left out because they are constant in its rows."""
    return 0 if fit.declared else sum(len(how.constant) for how in fit.encodings)
