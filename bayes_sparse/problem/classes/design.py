"""One design a class, side by side: the columns of all classes' weights.

The M columns are those of class 0, then of class 1 ...; after them come the extra ones (a bias each), extra column by
classes. Features shared by all classes are one design named C times, and held once.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from bayes_sparse.problem.design import FloatArray, IntArray
from bayes_sparse.problem.sparse_design import AnyDesign

__all__ = ["ClassDesign"]


class ClassDesign:
    """The columns of several classes.

    Parameters
    ----------
    designs : tuple of Design
        One a class, with the same rows and the same number of extra columns; the same object for shared features.
    """

    def __init__(self, designs: tuple[AnyDesign, ...]) -> None:
        self.designs = designs
        self.n = designs[0].n
        self.starts = np.cumsum([0, *(design.M for design in designs)])
        self.M = int(self.starts[-1])

    @property
    def classes(self) -> int:
        """How many classes there are."""
        return len(self.designs)

    @property
    def shared(self) -> bool:
        """Whether all classes have the same columns."""
        return all(design is self.designs[0] for design in self.designs)

    @property
    def q(self) -> int:
        """Number of extra columns of all classes."""
        return self.classes * self.designs[0].q

    @property
    def width(self) -> int:
        """Number of columns, basis functions and extra ones."""
        return self.M + self.q

    @cached_property
    def owner(self) -> IntArray:
        """Class of each column."""
        own = np.repeat(np.arange(self.classes), np.diff(self.starts))
        return np.append(own, np.tile(np.arange(self.classes), self.designs[0].q))

    def own(self, c: int, index: IntArray) -> tuple[IntArray, IntArray]:
        """Which of some columns are class c's, as positions in ``index`` and as columns of that class's design."""
        positions = np.flatnonzero(self.owner[index] == c)
        column = index[positions]
        extra = self.designs[c].M + (column - self.M) // self.classes
        return positions, np.where(column < self.M, column - self.starts[c], extra)

    def squares(self, weights: FloatArray | None = None) -> FloatArray:
        """Diagonal of each class's ``Phi' diag(weights) Phi``."""
        return self.joined([design.squares(weights) for design in self.designs])

    def joined(self, parts: list[FloatArray]) -> FloatArray:
        """One array over all columns, along the first axis, from one a class."""
        inside = [part[: design.M] for part, design in zip(parts, self.designs, strict=True)]
        extra = np.stack([part[design.M :] for part, design in zip(parts, self.designs, strict=True)], axis=1)
        return np.concatenate([*inside, extra.reshape(self.q, *parts[0].shape[1:])])
