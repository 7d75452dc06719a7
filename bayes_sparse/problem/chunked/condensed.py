"""A normal likelihood of any number of rows as one of a few: their columns and targets, rotated.

For ``[Phi, t] = Q R`` the residual sum of squares is that of R for all weights, so that R's rows, no more than there
are columns, stand for all of them. One pass makes R; nothing after it needs the data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayes_sparse.common.types import FloatArray
from bayes_sparse.problem.chunked.source import RowSource
from bayes_sparse.problem.design import Design
from bayes_sparse.problem.problem import Problem

__all__ = ["CondensedProblem", "condensed"]


def condensed(source: RowSource, M: int) -> tuple[Design, FloatArray]:
    """A few rows in the place of all, and their targets: one pass."""
    R = source.ask("upper")
    return Design(np.ascontiguousarray(R[:, :M]), extra=R[:, M:-1]), np.ascontiguousarray(R[:, -1])


@dataclass(frozen=True)
class CondensedProblem(Problem):
    """A normal likelihood whose rows stand for others.

    Attributes
    ----------
    observations : float
        Number of rows that they stand for, each as often as its weight says.
    source : RowSource, optional
        Those rows.
    """

    observations: float = 0.0
    source: RowSource | None = None

    @property
    def count(self) -> float:
        """Number of observations, each as often as its weight says."""
        return self.observations

    @property
    def spread(self) -> float:
        """Sd of the targets, less the offset."""
        return self.unit

    def row_predictor(self, w: FloatArray, index: NDArray[np.intp]) -> Any:
        """Predictors of the rows that they stand for."""
        assert self.source is not None
        return self.source.predictor(w, index, 1.0)

    def terms(self, eta: FloatArray, theta: FloatArray) -> tuple[FloatArray, ...]:
        """The log-likelihood of all observations as a sum over the rows here."""
        sigma = float(self.noise(theta))
        z = (self.y - eta) / sigma
        constant = self.observations / len(z) * (np.log(sigma) + 0.5 * np.log(2 * np.pi))
        return -0.5 * z**2 - constant, z / sigma, np.full(len(z), -(sigma**-2.0))

    def log_joint_at(self, w: FloatArray, index: NDArray[np.intp], theta: FloatArray) -> FloatArray:
        """Log-likelihood (S,) of all observations together at draws of some columns' weights (S, k)."""
        sigma = np.exp(theta[:, 0])
        rss = np.sum((self.y - self.predictor(w, index)) ** 2, axis=1)
        return np.asarray(-0.5 * rss / sigma**2 - self.observations * (np.log(sigma) + 0.5 * np.log(2 * np.pi)))
