"""Columns that are the same, or opposite, once standardised: the data cannot tell their weights apart."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bayes_sparse.common.types import IntArray
from bayes_sparse.problem.chunked import ChunkedDesign
from bayes_sparse.problem.design import Design
from bayes_sparse.problem.sparse_design import AnyDesign

__all__ = ["Duplicate", "duplicate_columns", "in_words"]

type Duplicate = tuple[int, int, int]  # a column, the earlier one it is the same as, and 1, or -1 if it is its opposite

_SAME = 1e-10  # of a column's length: a difference so small is none
_SHOWN = 4


def duplicate_columns(design: AnyDesign | ChunkedDesign, among: IntArray) -> list[Duplicate]:
    """Those of some columns that are an earlier one, or minus it."""
    # Equal columns have equal products with any vector: sort those, then compare in full only where they agree.
    any_vector = design.probe if isinstance(design, ChunkedDesign) else np.cos(np.arange(1.0, design.n + 1))
    if isinstance(design, Design):  # in one pass
        _, squares, products = design.scan(np.empty((design.n, 0)), np.ones(design.n), any_vector)
    else:
        squares, products = design.squares(), design.transposed_times(any_vector)
    size = np.sqrt(np.maximum(squares[among], 0.0))
    among, size = among[size > 0], size[size > 0]
    products = np.abs(products[among])
    order = np.argsort(products, kind="stable")
    reach = (_SAME * np.sqrt(design.n) * size)[order]
    apart = np.diff(products[order]) > np.maximum(reach[1:], reach[:-1])
    change = np.diff(np.concatenate([[False], ~apart, [False]]).astype(int))  # 1 where a run begins, -1 at its end
    runs = zip(np.flatnonzero(change == 1), np.flatnonzero(change == -1) + 1, strict=True)
    return sorted(twin for first, end in runs for twin in _within(design, np.sort(among[order[first:end]])))


def _within(design: AnyDesign | ChunkedDesign, group: IntArray) -> list[Duplicate]:
    """The twins among a few columns."""
    columns = design.rotated(group) if isinstance(design, ChunkedDesign) else design.columns(group)
    length = np.linalg.norm(columns, axis=0)
    found: list[Duplicate] = []
    left: NDArray[np.bool_] = np.ones(len(group), dtype=bool)
    for i in range(len(group)):
        if not left[i]:
            continue
        left[i] = False
        for sign in (1, -1):
            gap = np.linalg.norm(columns - sign * columns[:, i : i + 1], axis=0)
            same = left & (gap <= _SAME * length[i])
            found += [(int(j), int(group[i]), sign) for j in group[same]]
            left &= ~same
    return found


def in_words(found: list[Duplicate], names: list[str]) -> str:
    """Which columns are the same, by name."""
    shown = [f"{names[j]!r} is {'' if sign > 0 else 'minus '}{names[i]!r}" for j, i, sign in found[:_SHOWN]]
    return ", ".join(shown) + (f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else "")
