"""BLogReg: one weight at a time, lambda refreshed after each (Shevade & Keerthi 2003; Cawley & Talbot 2006).

The active weight whose slope is most wrong is moved to its own optimum, found by Newton's method inside a bracket that
never straddles zero, and lambda becomes N/R; when those are right, the worst of the inactive ones enters. Where the
path has no exact solution a weight enters and leaves for ever: that is noticed, and said.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bayes_sparse.common.checks import check_search
from bayes_sparse.common.statuses import Status
from bayes_sparse.common.types import FloatArray, Report
from bayes_sparse.inference.l1.fixed_points import PathOutcome
from bayes_sparse.inference.l1.path import Path, Point, best_theta

__all__ = ["CoordinateDescent"]

_WEAK = 1e-3  # of the largest penalty: where it starts, as most likely weights may be infinite
_ROOT = 1e-10  # of lambda: how well a single weight's slope is brought to it
_CLOSE, _NO_BETTER = 1e-9, 2  # of a weight, and looks: a slope so near that falls no more is rounding errors
_AGAIN = 3  # times the same support comes back before it is called a cycle


@dataclass(frozen=True)
class CoordinateDescent:
    """The paper's exact procedure; `Reweighted` finds the same points and always ends.

    Attributes
    ----------
    max_iterations : int
        Updates of single weights, a few seconds of them: on correlated columns it may need a hundred times as many, and
        'reweighted' finds the same points at once.
    tolerance : float
        Largest violation of the conditions of a solution, relative to lambda.
    """

    max_iterations: int = 5_000
    tolerance: float = 1e-6

    priors: ClassVar[tuple[str, ...]] = ("jeffreys",)
    family: ClassVar[str] = "l1_path"

    def __post_init__(self) -> None:
        check_search(self.max_iterations, self.tolerance)

    def __call__(self, path: Path, report: Report) -> PathOutcome:
        """Update until nothing violates its condition."""
        if not path.largest > 0:
            return PathOutcome(path.null, Status.NULL, 0)
        state = _State(path, path.cold(_WEAK * path.largest, 1e-3))
        rested: dict[bytes, int] = {}
        for update in range(1, self.max_iterations + 1):
            if not state.N:
                return PathOutcome(path.null, Status.NULL, update)
            j = state.most_wrong(self.tolerance)
            if j is None and state.refreshed():
                j = state.most_wrong(self.tolerance)
            if j is None:
                j = state.entering(self.tolerance)
                if j is None:
                    return PathOutcome(state.point(), Status.FIXED_POINT, update)
                support = np.flatnonzero(state.w * path.problem.free).tobytes()
                rested[support] = rested.get(support, 0) + 1
                if rested[support] > _AGAIN:  # the active weights were right, and yet not: N and N + 1 take turns
                    return PathOutcome(state.point(), Status.JUMP, update)
            state.update(j)
            report(update, -state.lam * state.R, state.N)
        return PathOutcome(state.point(), Status.MAX_ITERATIONS, self.max_iterations)


class _State:
    """Weights, predictor and lambda = N/R, all changed one weight at a time."""

    def __init__(self, path: Path, start: Point) -> None:
        self._path, self._problem = path, path.problem
        self.w = np.zeros(path.problem.design.width)
        self.w[start.index] = start.w
        self.theta, self.eta = start.theta, start.spot.eta.copy()
        self._since = 0  # weights moved since the nuisance parameters were
        self._look()

    def _look(self) -> None:
        _, self.slope, second = self._problem.terms(self.eta, self.theta)[:3]
        self.bend = -second
        self.priced = np.abs(self.w) * self._problem.free
        self.N, self.R = int(np.count_nonzero(self.priced)), float(self.priced.sum())
        self.lam = self.N / self.R if self.N else np.inf

    def most_wrong(self, tolerance: float) -> int | None:
        """The active weight whose slope is most wrong."""
        path = self._path
        active = np.flatnonzero((self.w != 0) | ~self._problem.free)
        slope = path.columns.take(active) @ self.slope - path.precision[active] * self.w[active]
        wrong = np.abs(slope - np.where(self._problem.free[active], self.lam * np.sign(self.w[active]), 0.0))
        worst = int(np.argmax(wrong)) if len(wrong) else 0
        return int(active[worst]) if len(wrong) and wrong[worst] > tolerance * self.lam else None

    def entering(self, tolerance: float) -> int | None:
        """The inactive weight that violates its condition most."""
        slope = np.abs(self._problem.design.transposed_times(self.slope))
        slope[~self._path.allowed | (self.w != 0)] = 0.0
        worst = int(np.argmax(slope))
        return worst if slope[worst] > self.lam * (1 + tolerance) else None

    def update(self, j: int) -> None:
        """Move a weight to its own optimum and refresh lambda; once in as many moves the nuisance parameters too."""
        column = self._path.columns.take(np.array([j]))[0]
        price = self.lam if self._problem.free[j] else 0.0
        new = self._optimum(column, self.w[j], price, float(self._path.precision[j]))
        self.eta += (new - self.w[j]) * column
        self.w[j] = new
        self._since += 1
        if self._since < self.N or not self.refreshed():
            self._look()

    def refreshed(self) -> bool:
        """Move the nuisance parameters to their optimum; False if they are there already."""
        if not self.theta.size or not self._since:
            return False
        self.theta, self._since = best_theta(self._problem, self.eta, self.theta), 0
        self._look()
        return True

    def _optimum(self, column: FloatArray, w: float, price: float, precision: float) -> float:
        """Root of the slope of one weight; the slope at zero says on which side it is, or that it is zero."""

        def slopes(at: float) -> tuple[float, float]:
            _, first, second = self._problem.terms(self.eta + (at - w) * column, self.theta)[:3]
            return float(column @ first) - precision * at, -float(column**2 @ second) + precision

        side = 0.0
        if price > 0:
            at_zero = slopes(0.0)[0]
            if abs(at_zero) <= price:
                return 0.0
            side = float(np.sign(at_zero))
        low, high = (0.0, np.inf) if side > 0 else (-np.inf, 0.0) if side < 0 else (-np.inf, np.inf)
        at = before = w if w * side > 0 or side == 0 else 0.0
        least, since = np.inf, 0
        for step in range(200):
            slope, curvature = slopes(at)
            slope -= price * side
            if not np.isfinite(slope):  # too far: half of the way
                low, high = (low, at) if at > before else (at, high)
                at = 0.5 * (before + at)
                continue
            least, since = min(least, abs(slope)), 0 if abs(slope) < least else since + 1
            close = abs(at - before) <= _CLOSE * abs(at)
            if abs(slope) <= _ROOT * max(price, self.lam) or (close and since >= _NO_BETTER):
                break
            low, high = (at, high) if slope > 0 else (low, at)
            new = at + slope / max(curvature, 1e-300)
            bracketed = np.isfinite(low + high)
            if not low < new < high or (bracketed and step % 4 == 3):  # Newton alone may creep where it overshot
                new = 0.5 * (low + high) if bracketed else 2 * at
            if abs(new - at) <= 1e-15 * abs(at):
                break
            before, at = at, new
        return at

    def point(self) -> Point:
        """The state as a point of the path."""
        index = np.flatnonzero((self.w != 0) | ~self._problem.free)
        return self._path.placed(index, self.w[index], self.theta)
