"""What a method on an L1 path hands back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from bayes_sparse.inference.l1.fixed_points import Solution
from bayes_sparse.inference.l1.path import Point, Record
from bayes_sparse.problem.design import FloatArray

__all__ = ["Found", "PathOutcome"]

type Found = dict[str, tuple[tuple[str, ...], Any]]
type PathStatus = Literal["fixed-point", "jump", "null", "converged", "max_iterations"]


@dataclass(frozen=True, eq=False)
class PathOutcome:
    """Where a method ended.

    Attributes
    ----------
    point : Point
        The answer.
    status : str
        ``"fixed-point"`` (lambda R = N), ``"jump"`` (N changes where lambda R passes it; the sparser side is the
        answer), ``"null"`` (no weight at all); ``"converged"`` where lambda was not to be found from N and R, or by a
        smooth stand-in for N; ``"max_iterations"``.
    iterations : int
        Points visited, steps or updates, whichever the method counts.
    marginal : bool
        The prior is the marginal one, with lambda integrated out; else lambda is given.
    solutions : list of Solution, optional
        All that were looked for, weakest penalty first.
    visited : list of Record
        Points of the path.
    found : dict
        More to be reported, as ``name: (dims, values)``.
    """

    point: Point
    status: PathStatus
    iterations: int
    marginal: bool = True
    solutions: list[Solution] | None = None
    visited: list[Record] = field(default_factory=list)
    found: Found = field(default_factory=dict)

    @property
    def curved(self) -> bool:
        """Whether the prior's own curvature is part of the posterior's: where that leaves it positive definite."""
        return self.marginal and self.point.N > 0 and self.point.r < 1

    @property
    def precision(self) -> FloatArray:
        """Of the normal posterior over the active weights and the nuisance parameters, conditional on the support."""
        point = self.point
        P = point.precision.copy()
        if self.curved:
            k = len(point.index)
            P[:k, :k] -= point.N / point.R**2 * np.outer(point.sign, point.sign)
        return P

    def log_prior(self, w: FloatArray) -> FloatArray:
        """Log prior of draws of the active weights (S, k): the marginal one, unnormalised, or Laplace's at lambda."""
        point, N = self.point, self.point.N
        if not self.marginal or not N:
            return self.log_laplace(w)
        R = np.abs(w[:, point.sign != 0]).sum(axis=1)
        return np.asarray(self._unpriced(w) + point.log_prior + N * (np.log(point.R) - np.log(R)))

    def log_laplace(self, w: FloatArray) -> FloatArray:
        """Log prior of draws of the active weights (S, k) with lambda held where it was found."""
        point, N = self.point, self.point.N
        R = np.abs(w[:, point.sign != 0]).sum(axis=1)
        return self._unpriced(w) + (N * np.log(point.lam / 2) - point.lam * R if N else 0.0)

    def _unpriced(self, w: FloatArray) -> FloatArray:
        """Log density of the normal prior on the weights without a price; 0 where it is flat."""
        precision = self.point.path.precision[self.point.index]
        proper = precision > 0
        return 0.5 * float(np.sum(np.log(precision[proper] / (2 * np.pi)))) - 0.5 * w**2 @ precision
