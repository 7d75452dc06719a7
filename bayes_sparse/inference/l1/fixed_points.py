"""Where lambda R = N on a path, and what a method on it hands back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bayes_sparse.common.statuses import Status
from bayes_sparse.common.types import FloatArray, Report
from bayes_sparse.inference.l1.path import Path, Point, Record

__all__ = ["PathOutcome", "PathVariables", "Solution", "all_solutions", "first_solution"]

_WEAK = 1e-3  # of the largest knob: where the search begins
_WEAKEST = 1e-9  # of the largest knob: nothing is looked for below
_LEAST, _MOST = 10 ** (1 / 64), 10 ** (1 / 4)  # factors by which the knob may move at once
_GRID = 10 ** (1 / 8)  # between the points that are looked at when all solutions are wanted
_RESOLUTION = 10 ** (1 / 128)  # a turn and its opposite closer together than this may be missed
_EDGE = 1 + 1e-3  # how near to the largest knob is looked
_ROUGH, _FINE = 1e-3, 1e-10  # tolerance of a point on the way, and of one that may be the answer
_SURE = 0.03  # a gap so large has its sign from a rough point
_CLOSED = 1e-9  # a gap so small is none
_NARROW = 1e-9  # relative width of a bracket: what happens inside is a jump
_FEW = 2  # weights that leave inside a bracket: more, and they are not gone through one by one


@dataclass(frozen=True, eq=False)
class Solution:
    """A stable solution.

    Attributes
    ----------
    point : Point
        Where.
    status : str
        ``"fixed-point"``, ``"jump"`` or ``"null"``.
    """

    point: Point
    status: Status


def first_solution(path: Path, report: Report) -> tuple[Solution, list[Record]]:
    """The stable solution that a weakly penalised start is drawn to, and the points visited."""
    walk = _Walk(path, report)
    if not walk.top > 0:
        return Solution(path.null, Status.NULL), walk.visited
    start = walk.see(walk.sure(path.cold(_WEAK * walk.top, _ROUGH), _ROUGH))
    found = walk.down(start) or walk.up(start)
    return found or Solution(path.null, Status.NULL), walk.visited


def all_solutions(path: Path, weakest: float, report: Report) -> tuple[list[Solution], list[Record]]:
    """Every stable solution with a knob above the weakest, weakest penalty first, and the points visited."""
    walk = _Walk(path, report)
    found: list[Solution] = []
    if not walk.top > 0:
        return found, walk.visited
    high = walk.to(walk.top / _EDGE, path.null, _FINE)
    while high.knob > weakest:
        low = walk.to(high.knob / _GRID, high, _ROUGH)
        found += list(walk.turns(low, high))[::-1]
        high = low
    return found[::-1], walk.visited


class _Walk:
    """A search along a path that remembers where it was."""

    def __init__(self, path: Path, report: Report) -> None:
        self._path, self._report = path, report
        self.top, self.visited = path.largest, list[Record]()

    def see(self, point: Point) -> Point:
        """Remember a point."""
        self.visited.append(point.record)
        self._report(len(self.visited), point.criterion, point.N)
        return point

    def to(self, knob: float, near: Point, tolerance: float) -> Point:
        """Go to a point from another one."""
        return self.see(self.sure(self._path.at(knob, near, tolerance), tolerance))

    def sure(self, point: Point, tolerance: float) -> Point:
        """The point, or a closer look at it: intervals share ends, and the sign of a gap must be one in both."""
        unsure = tolerance > _FINE and abs(point.gap) <= _SURE
        return self._path.at(point.knob, point, _FINE) if unsure else point

    def down(self, point: Point) -> Solution | None:
        """The first turn below a point where lambda should shrink; None elsewhere, and where there is none."""
        while point.gap <= 0 and point.knob > _WEAKEST * self.top:
            high, point = point, self.to(_downwards(point), point, _ROUGH)
            if point.gap > 0:
                return self.between(point, high)[1]
        return None

    def up(self, point: Point) -> Solution | None:
        """The first turn above a point; None where there is none up to the top."""
        last = self.top / _EDGE
        while point.knob < last:
            knob = _upwards(point)
            low, point = point, self.to(knob, point, _ROUGH) if knob < last else self.to(last, point, _FINE)
            found = next(self.turns(low, point), None)
            if found is not None:
                return found
        return None

    def turns(self, low: Point, high: Point) -> Iterator[Solution]:
        """The turns between two points, looking closer where one may hide."""
        if not low.knob < high.knob:  # a rough and a fine look at the same place
            return
        if low.gap > 0 >= high.gap:
            below, solution, above = self.between(low, high)
            yield from self.turns(low, below)
            yield solution
            yield from self.turns(above, high)
        elif high.knob > _RESOLUTION * low.knob and not _settled(low, high):
            middle = self.to(_middle(low, high), low, _ROUGH)
            yield from self.turns(low, middle)
            yield from self.turns(middle, high)
        elif low.N > high.N and not _settled(low, high):
            # Too close to be divided further, but a weight leaves: the gap is largest just before.
            knob = low.knot * (1 - _NARROW)
            if low.knob < knob < high.knob and (last := self.to(knob, low, _FINE)).gap > 0 >= high.gap:
                yield self.between(last, high)[1]

    def between(self, low: Point, high: Point) -> tuple[Point, Solution, Point]:
        """A turn between a point where lambda should grow and one where it should shrink, and the points beside it."""
        before, patience = np.inf, 0
        while True:
            for end in (low, high):
                if abs(end.gap) <= _CLOSED:
                    return low, Solution(end, Status.FIXED_POINT), high
            width = high.knob / low.knob - 1
            if width <= _NARROW:
                return low, Solution(min(low, high, key=lambda end: end.N), Status.JUMP), high
            # A guess that does not halve the bracket in three rounds gives way to its middle.
            before, patience = (width, 0) if width <= before / 2 else (before, patience + 1)
            knob = _guess(low, high) if patience < 3 else _middle(low, high)
            patience %= 3
            near = low if knob / low.knob < high.knob / knob else high
            point = self.to(knob, near, _FINE)
            low, high = (point, high) if point.gap > 0 else (low, point)


def _settled(low: Point, high: Point) -> bool:
    """Whether lambda R cannot meet N between two points: going up, N and R only fall."""
    if not (low.N and high.N):
        return False
    at_least, at_most = np.log(high.N / (high.lam * low.R)), np.log(low.N / (low.lam * high.R))
    return bool(at_least > 0 or at_most < 0)


def _middle(low: Point, high: Point) -> float:
    """Of their logarithms; the product of the knobs themselves may be no number."""
    return float(np.sqrt(low.knob) * np.sqrt(high.knob))


def _upwards(point: Point) -> float:
    """Where to look above a point: as far as the plain update goes, or Newton's step, which goes further."""
    plain = float(np.exp(max(point.gap, 0.0)))
    if plain >= _MOST or point.gap <= 0:
        return point.knob * _MOST
    wanted = point.newton / point.knob * (1 + 1e-6)  # needs the curvature, so only near a solution
    return point.knob * float(np.clip(wanted if wanted > 1 else plain, _LEAST, _MOST))


def _downwards(point: Point) -> float:
    """Where to look below a point."""
    least, plain = _MOST**-2, float(np.exp(point.gap))
    if plain <= least:
        return point.knob * least
    wanted = point.newton / point.knob * (1 - 1e-6)
    return point.knob * float(np.clip(wanted if 0 < wanted < 1 else plain, least, 1 / _LEAST))


def _guess(low: Point, high: Point) -> float:
    """Where the turn may be: at a solution for the support below or above, or where that support loses a weight."""
    knot, nudge = low.knot, _NARROW / 4
    if low.knob < low.newton < min(high.knob, knot):
        return low.newton
    if abs(low.N - high.N) <= _FEW:
        if low.knob * (1 + 2 * nudge) < knot < high.knob:
            return knot * (1 - nudge)
        if low.knob < knot * (1 + nudge) < high.knob:
            return knot * (1 + nudge)
    if low.knob < high.newton < high.knob and low.N == high.N:
        return high.newton
    part = float(np.clip(low.gap / (low.gap - high.gap), 0.1, 0.9))
    return float(low.knob * (high.knob / low.knob) ** part)


type PathVariables = dict[str, tuple[tuple[str, ...], Any]]


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
    status: Status
    iterations: int
    marginal: bool = True
    solutions: list[Solution] | None = None
    visited: list[Record] = field(default_factory=list)
    found: PathVariables = field(default_factory=dict)

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
