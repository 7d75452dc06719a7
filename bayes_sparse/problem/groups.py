"""Columns that share one precision: they come and go together, and what is said of one is said of all.

A group may be the levels of a factor, the terms of a spline, or the columns that a model of the user's gives one scale.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from bayes_sparse.common.types import BoolArray, FloatArray, IntArray

__all__ = ["Groups", "positions_by_size", "sums"]


class Groups:
    """Which columns belong together.

    Parameters
    ----------
    labels : int array (width,)
        Any integers, the same for the columns of a group.
    free : bool array (width,)
        Columns whose precisions are estimated; each of the others is alone, whatever its label.
    """

    def __init__(self, labels: IntArray, free: BoolArray) -> None:
        if np.shape(labels) != np.shape(free):
            raise ValueError(f"`groups` needs one label per column, {len(free)} of them, got {np.shape(labels)}.")
        own = np.unique(np.where(free, labels, 0), return_inverse=True)[1]
        self.label: IntArray = np.where(free, own, len(free) + np.arange(len(free)))
        self._free = free

    @cached_property
    def first(self) -> IntArray:
        """The first column of each column's group."""
        _, first, inverse = np.unique(self.label, return_index=True, return_inverse=True)
        return np.asarray(first[inverse])

    @cached_property
    def alone(self) -> BoolArray:
        """Columns that share their precision with no other."""
        return np.asarray(np.bincount(self.first, minlength=len(self.first))[self.first] == 1)

    @cached_property
    def count(self) -> int:
        """How many groups of free columns there are, those of one column included."""
        return len(np.unique(self.label[self._free]))

    @cached_property
    def by_size(self) -> list[IntArray]:
        """Groups of two columns and more, as arrays (groups, columns): one array per size."""
        return positions_by_size(self.label)

    def members(self, column: int) -> IntArray:
        """All columns of one column's group."""
        return np.flatnonzero(self.first == self.first[column])


def positions_by_size(labels: IntArray) -> list[IntArray]:
    """Where each label that occurs more than once stands, as arrays (labels, times): one array per number of times."""
    counts = np.unique(labels, return_counts=True)[1]
    order, starts = np.argsort(labels, kind="stable"), np.cumsum(counts) - counts
    return [order[starts[counts == size][:, None] + np.arange(size)] for size in np.unique(counts[counts > 1]).tolist()]


def sums(values: FloatArray, labels: IntArray | None) -> FloatArray:
    """The sum over its group in the place of each value; the values themselves where there are no groups."""
    if labels is None:
        return values
    inverse = np.unique(labels, return_inverse=True)[1]
    return np.asarray(np.bincount(inverse, weights=values)[inverse])
