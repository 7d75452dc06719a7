"""The columns a search has touched, taken out of the design once."""

from __future__ import annotations

import numpy as np

from bayes_sparse.problem.design import FloatArray, IntArray
from bayes_sparse.problem.sparse_design import AnyDesign

__all__ = ["Columns"]


class Columns:
    """Columns of a design as rows of one matrix that grows; shared by every search over the same design.

    Parameters
    ----------
    design : Design
        Where they come from.
    """

    def __init__(self, design: AnyDesign) -> None:
        self.design = design
        self._place = np.full(design.width, -1)
        self._count, self._held = 0, np.empty((32, design.n))

    def take(self, index: IntArray) -> FloatArray:
        """The columns asked for, one a row; not to be written to."""
        new = index[self._place[index] < 0]
        if len(new):
            self._append(new)
        place = self._place[index]
        if len(place) and place[-1] - place[0] == len(place) - 1 and (np.diff(place) == 1).all():
            return self._held[place[0] : place[-1] + 1]  # side by side: no copy
        return np.asarray(self._held[place])

    def _append(self, new: IntArray) -> None:
        stop = self._count + len(new)
        if stop > len(self._held):
            larger = np.empty((max(stop, 2 * len(self._held)), self.design.n))
            larger[: self._count] = self._held[: self._count]
            self._held = larger
        self._held[self._count : stop] = self.design.columns(new).T
        self._place[new] = np.arange(self._count, stop)
        self._count = stop
