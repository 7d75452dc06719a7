"""Laplace prior with its scale integrated out, along the L1 path: solve, set lambda to N/R, solve again - and converge.

A local minimum of ``Q = -L + N log R`` on its support is a point of the L1 path where ``lambda R = N``. The search
starts where the penalty is weak and follows ``lambda <- lambda + (N/R - lambda)/(1 - r)``, Newton's step for a fixed
support, with the turn kept in a bracket: N changes by whole numbers, and where lambda R passes N at such a jump there
is no exact solution and the sparser side is the answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bayes_sparse.common.checks import positive
from bayes_sparse.common.statuses import Status
from bayes_sparse.common.types import Report
from bayes_sparse.inference.l1.fixed_points import PathOutcome, Solution, all_solutions, first_solution
from bayes_sparse.inference.l1.path import Path

__all__ = ["Reweighted"]

_WEAKEST = 1e-3  # of the largest penalty: how far down all solutions are looked for, or a third of the one found


@dataclass(frozen=True)
class Reweighted:
    """Bayesian sparse regression without a knob; with ``lam``, ordinary L1 regression.

    Attributes
    ----------
    lam : float, optional
        A lambda of yours, in units of standardised columns and of the total log-likelihood; None finds it.
    all_points : bool
        Look for every stable solution along the path, not only the one a weak penalty is drawn to.
    """

    lam: float | None = None
    all_points: bool = False

    priors: ClassVar[tuple[str, ...]] = ("jeffreys",)
    family: ClassVar[str] = "l1_path"

    def __post_init__(self) -> None:
        if self.lam is not None:
            positive("lam", self.lam)
        if self.lam is not None and self.all_points:
            raise ValueError("With a `lam` of yours there is one solution: leave out `all_points`.")

    def __call__(self, path: Path, report: Report) -> PathOutcome:
        """Find lambda and the weights."""
        if self.lam is not None:
            point = path.at_lambda(float(self.lam))
            return PathOutcome(point, Status.CONVERGED if point.N else Status.NULL, point.spot.steps, marginal=False)
        found, visited = first_solution(path, report)
        solutions = None
        if self.all_points:
            weakest = min(_WEAKEST * path.largest, found.point.knob / 3)
            solutions, more = all_solutions(path, weakest, report)
            visited = sorted([*visited, *more], key=lambda point: point.knob)
            found = _same(found, solutions)
        return PathOutcome(found.point, found.status, len(visited), solutions=solutions, visited=visited)


def _same(found: Solution, solutions: list[Solution]) -> Solution:
    """The solution found as the one in the list that it is, so that the two agree; put there if it was missed."""
    if found.status == Status.NULL:
        return solutions[0] if solutions else found
    for other in solutions:
        if abs(other.point.knob / found.point.knob - 1) < 1e-6:
            return other
    solutions.append(found)
    solutions.sort(key=lambda solution: solution.point.knob)
    return found
