"""Rows split into those to fit and those to score, in whichever way that was asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_sparse.common.checks import count
from bayes_sparse.common.types import IntArray
from bayes_sparse.inputs.rows import Rows
from bayes_sparse.inputs.table import in_words, plain_labels
from bayes_sparse.problem.folds import balanced_folds

__all__ = ["Fold", "check_classes", "folds_of"]

_WAYS = "a number of folds, 'loo', one label a row, or an object with split(X, y, groups) such as those of scikit-learn"


@dataclass(frozen=True, eq=False)
class Fold:
    """Rows to be scored, and those to be fitted.

    Attributes
    ----------
    name : str
        What errors call it.
    test : int array
        Rows to be scored.
    train : int array, optional
        Rows to be fitted; None for all others, which is not written down: of n folds it would be n times the rows.
    """

    name: str
    test: IntArray
    train: IntArray | None = None

    def fitted(self, n: int) -> IntArray:
        """Rows to be fitted, of n."""
        return np.setdiff1d(np.arange(n), self.test) if self.train is None else self.train


def folds_of(folds: Any, rows: Rows, groups: Any, random_seed: int | None) -> list[Fold]:
    """The folds asked for, checked: no row is scored twice, or by a fit that has seen it."""
    if hasattr(folds, "split") and not isinstance(folds, str):
        return _by_splitter(folds, rows, groups)
    if groups is not None:
        raise ValueError("`groups` go with an object that splits by them: folds=sklearn.model_selection.GroupKFold(5).")
    if isinstance(folds, str):
        if folds != "loo":
            raise ValueError(f"`folds` is {_WAYS}; got {folds!r}.")
        return [Fold(f"The fit without row {rows.tables[0].rows[i]}", np.array([i])) for i in range(rows.n)]
    if np.ndim(folds) == 0:
        number = count("folds", folds, 2)
        if number > rows.n:
            raise ValueError(f"{number} folds are more than the {rows.n} rows; give fewer, or folds='loo'.")
        seed = 0 if random_seed is None else random_seed
        return _by_label(balanced_folds(np.unique(plain_labels(rows.y), return_inverse=True)[1], number, seed))
    labels = np.asarray(folds)
    if labels.shape != (rows.n,) or bool(pd.isna(labels).any()):
        raise ValueError(f"`folds` is {_WAYS}; these labels have the shape {labels.shape} for {rows.n} rows.")
    if len(np.unique(plain_labels(labels))) < 2:
        raise ValueError("`folds` has the same label for all rows; two are needed, to fit one and score the other.")
    return _by_label(labels)


def _by_label(labels: NDArray[Any]) -> list[Fold]:
    names, codes = np.unique(plain_labels(labels), return_inverse=True)
    return [Fold(f"Fold {name}", np.flatnonzero(codes == k)) for k, name in enumerate(names.tolist())]


def _by_splitter(splitter: Any, rows: Rows, groups: Any) -> list[Fold]:
    X, y = rows.tables[0].X, rows.y
    found = []
    for number, (train, test) in enumerate(splitter.split(X, y, groups)):
        fold = Fold(f"Fold {number}", _places(test, rows.n), _places(train, rows.n))
        if not len(fold.test) or not len(fold.fitted(rows.n)):
            raise ValueError(f"{fold.name} of `folds` has no rows to {'score' if not len(fold.test) else 'fit'}.")
        if np.intersect1d(fold.test, fold.fitted(rows.n)).size:
            raise ValueError(f"{fold.name} of `folds` scores rows that it fits.")
        found.append(fold)
    if not found:
        raise ValueError("`folds` gave no fold.")
    if len(np.unique(np.concatenate([fold.test for fold in found]))) < sum(len(fold.test) for fold in found):
        raise ValueError("`folds` scores some rows more than once; take one that scores each row at most once.")
    return found


def _places(rows: Any, n: int) -> IntArray:
    places = np.asarray(rows)
    return np.flatnonzero(places) if places.dtype == bool else np.arange(n)[places]


def check_classes(folds: list[Fold], y: NDArray[Any]) -> None:
    """Refuse a fold that has to predict without having seen all classes."""
    classes, codes = np.unique(plain_labels(y), return_inverse=True)
    members = np.bincount(codes)
    for fold in folds:
        left = np.bincount(codes[fold.train], minlength=len(classes)) if fold.train is not None else None
        left = members - np.bincount(codes[fold.test], minlength=len(classes)) if left is None else left
        if not left.all():
            raise ValueError(
                f"{fold.name} fits no row of {in_words(classes[left == 0])}: a class is only learnt from rows of it; "
                "merge small classes, or split so that every fold leaves some of each."
            )
