"""Rows split into parts for cross-validation."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayes_sparse.common.types import FloatArray

__all__ = ["balanced_folds", "fold_weights"]

_MOST = 10**7  # copies of rows dealt out one by one


def balanced_folds(y: NDArray[Any], folds: int, random_seed: int) -> NDArray[np.intp]:
    """Fold of each row: rows are dealt out in the order of their target, so that every fold has its share of each."""
    order = np.lexsort((np.random.default_rng(random_seed).random(len(y)), y))
    fold = np.empty(len(y), dtype=np.intp)
    fold[order] = np.arange(len(y)) % folds
    return fold


def fold_weights(
    y: FloatArray, key: FloatArray, weights: FloatArray | None, folds: int, random_seed: int
) -> FloatArray:
    """How much of each row's weight is in each fold, (folds, n), whatever the order of the rows.

    Rows are dealt out as by `balanced_folds`, in the order of their targets and, among equals, of ``key``, before
    chance has its say. Where all weights are whole numbers, which count rows, every copy of a row is dealt out by
    itself, as if the row had been given so often; else a row is in one fold with all of its weight.
    """
    order, n = np.lexsort((key, y)), len(y)
    own = np.ones(n) if weights is None else weights
    copies = np.ones(n, dtype=np.intp)
    if (own == np.floor(own)).all() and own.sum() <= _MOST:
        copies = own.astype(np.intp)
    dealt = np.repeat(order, copies[order])
    if len(dealt) < 2 * folds:
        raise ValueError(f"{len(dealt)} rows are too few for {folds} folds; give fewer `folds`.")
    fold = balanced_folds(y[dealt], folds, random_seed)
    held = np.bincount(fold * n + dealt, minlength=folds * n).reshape(folds, n)
    return np.asarray(held * (own / np.maximum(copies, 1)))
