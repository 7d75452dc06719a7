"""The types that every room speaks of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["BoolArray", "FloatArray", "Hyper", "IntArray", "Report", "Variables"]

type FloatArray = NDArray[np.float64]
type IntArray = NDArray[np.intp]
type BoolArray = NDArray[np.bool_]
type Hyper = tuple[float, float]  # shape and rate of a Gamma prior on precisions
type Report = Callable[[int, float, int], None]  # is told of every iteration: its number, objective, active terms
type Variables = dict[str, tuple[tuple[str, ...], Any]]  # what a tree stores, as name: (dims, values)
