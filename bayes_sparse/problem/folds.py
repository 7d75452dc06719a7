"""Rows split into parts for cross-validation."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["balanced_folds"]


def balanced_folds(y: NDArray[Any], folds: int, random_seed: int) -> NDArray[np.intp]:
    """Fold of each row: rows are dealt out in the order of their target, so that every fold has its share of each."""
    order = np.lexsort((np.random.default_rng(random_seed).random(len(y)), y))
    fold = np.empty(len(y), dtype=np.intp)
    fold[order] = np.arange(len(y)) % folds
    return fold
