"""The evidence of the horseshoe, maximised over its scales: one for all weights and one for each.

No precision is infinite, so nothing is pruned: most weights stay at a local scale near 1, shrunk together, and a few
escape. First the weights that have not escaped have the local scale 1. They then enter the evidence by their ``Phi
Phi'`` alone, and a climb costs as much as one with as many columns as rows. Those that promise most are let go one by
one, as long as the objective rises; and, from the same start, many together, of which most go back. Where both end
within half a nat the latter is taken: it spreads over columns that say the same, and predicts better. With no more
weights than rows all scales are then climbed together. All climbs are by a quasi-Newton method (L-BFGS) with the exact
gradient.

With more weights than rows those at the local scale 1 stay there: on wide classes their own scales gain hundredths of
a nat, and on wide regressions they would explain the noise too, as all maxima over so many precisions do. So would
tau, which cannot be told from the noise by more weights than rows: beside a noise to be found it is held at tau0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np

from bayes_sparse.common.checks import check_search
from bayes_sparse.common.types import FloatArray, Hyper, IntArray, Report
from bayes_sparse.inference.approximations import approximate
from bayes_sparse.inference.approximations._sites import SiteApproximation
from bayes_sparse.inference.evidence.global_local import Scales
from bayes_sparse.inference.evidence.state import Approximation, Objective, Outcome
from bayes_sparse.problem.classes import AnyProblem, Link
from bayes_sparse.problem.design import Design
from bayes_sparse.problem.gaussian import Dual
from bayes_sparse.problem.problem import Problem

__all__ = ["GlobalLocal"]

_GRID = 1.0  # between starts of log tau
_LESS_NOISE = 1.5  # below its start, another start of a normal likelihood's log noise
_ESCAPED = 0.5  # of u = 1/lambda^2: above it a weight goes back to those at 1
_GAIN = 0.1  # nats that a weight must gain to be let go
_GAIN_BESIDE_NOISE = 4.0  # the same where it may explain noise, which then falls and invites more of them
_TRIES = 2  # weights tried before none is thought to gain
_TOGETHER = 20  # weights let go together
_UNDECIDED = 0.5  # nats between two ends, for the one with more weights let go to be taken
_ROUGH = 1e-3  # nats: between escapes the top need not be found any closer
_STEPS = 60


@dataclass(frozen=True)
class GlobalLocal:
    """Type-II maximum likelihood of the horseshoe.

    Attributes
    ----------
    max_iterations : int
        Steps of the last climb, and weights let go before it.
    tolerance : float
        Stop when a step of the last climb gains less than this, in nats.
    approximation : str
        How the likelihood is made Gaussian: a name from `bayes_sparse.inference.approximations`, or ``"auto"`` for the
        exact posterior where there is one.
    """

    max_iterations: int = 200
    tolerance: float = 1e-4
    approximation: str = "auto"

    needs_flat_hyper: ClassVar[bool] = True  # tau and lambda are the hyper-prior
    own_hyper: ClassVar[Hyper | None] = None
    smoothness: ClassVar[str | float] = 0.0
    reestimate: ClassVar[bool] = False
    priors: ClassVar[tuple[str, ...]] = ("horseshoe",)
    family: ClassVar[str] = "evidence"
    link: ClassVar[Link] = "softmax"

    def __post_init__(self) -> None:
        check_search(self.max_iterations, self.tolerance)

    def __call__(self, problem: AnyProblem, approximation: Approximation, report: Report) -> Outcome:
        """Run the search; ``report(iteration, objective, active)`` is told of every weight let go."""
        if not isinstance(problem, Problem):
            raise ValueError(
                "By evidence the horseshoe is fitted to one predictor per observation: sample several classes or "
                "predictors by method='nuts', or fit classes by 'student_multinomial'."
            )
        if problem.grouping is not None:
            raise ValueError(
                "By evidence the horseshoe gives every weight a scale of its own: sample a model whose weights share "
                "scales by method='nuts'."
            )
        if not problem.free.any():
            raise ValueError("The horseshoe has no weight whose scale is to be found: leave a column out of `keep`.")
        escaping = _Escaping(problem, approximation.objective, self.approximation)
        start = max(map(escaping.climbed, escaping.starts()), key=lambda found: found.objective)
        path = self._let_go(escaping, start, 1, report)
        if not problem.theta.size:
            together = self._let_go(escaping, start, _TOGETHER, report)
            path = together if together[-1].objective > path[-1].objective - _UNDECIDED else path
        return self._all(problem, approximation, path[-1], [point.objective for point in path])

    def _let_go(self, escaping: _Escaping, start: _Point, together: int, report: Report) -> list[_Point]:
        """The way from a start by letting go so many columns at a time, as long as that gains."""
        path = [start]
        while len(path) <= self.max_iterations:
            grown = escaping.let_go(path[-1], together)
            if grown is None:
                break
            path.append(grown)
            report(len(path), grown.objective, len(grown.own))
        return path

    def _all(self, problem: Problem, approximation: Approximation, point: _Point, history: list[float]) -> Outcome:
        """The posterior of all weights, after a climb of all scales where there are no more of them than rows."""
        free = np.flatnonzero(problem.free)
        log_u = np.zeros(len(free))
        log_u[point.own] = point.log_u
        scales = Scales(approximation, np.arange(problem.design.width), free, np.empty(0, dtype=np.intp), 0)
        x, steps = np.concatenate([log_u, [point.log_tau], point.theta]), len(history)
        if not _crowded(problem):
            x, top, taken = scales.climbed(x, problem.theta_bounds, self.max_iterations, self.tolerance)
            if taken < self.max_iterations:
                x, top = scales.topped(x, problem.theta_bounds)
            history, steps = [*history, top], steps + taken
        state = replace(scales.at(x), objective=history[-1])
        return Outcome(state, history, steps < len(history) + self.max_iterations, steps)


def _crowded(problem: Problem) -> bool:
    """Whether there are more weights than rows; beside a noise to be found, than half of them."""
    return int(problem.free.sum()) > (0.5 if problem.theta.size else 1.0) * problem.count


class _Point(NamedTuple):
    """Scales of the free columns that have escaped, log tau, nuisance parameters, and the objective there."""

    own: IntArray
    log_u: FloatArray
    log_tau: float
    theta: FloatArray
    objective: float = -np.inf


class _Escaping:
    """Climbs with a few columns at scales of their own and all others at lambda = 1, as few columns of a factor."""

    def __init__(self, problem: Problem, objective: Objective, name: str) -> None:
        self._problem, self._objective, self._name = problem, objective, name
        self._Phi = problem.design.columns(np.flatnonzero(problem.free))
        self._fixed = problem.design.columns(np.flatnonzero(~problem.free))
        self._hold_tau = bool(problem.theta.size) and _crowded(problem)

    def starts(self) -> Iterator[_Point]:
        """The best tau with no column escaped, at each start of the noise."""
        none, empty, problem = np.empty(0, dtype=np.intp), np.empty(0), self._problem
        thetas = [problem.theta]
        if problem.normal and problem.theta.size:
            thetas.append(np.maximum(problem.theta - _LESS_NOISE, problem.theta_bounds[:, 0]))
        scales, low = self._scales(none), np.log(self._objective.tau0)
        high = low if self._hold_tau else low + np.log(max(self._Phi.shape[1], 10)) + 1.0
        grid = np.arange(low, high + _GRID, _GRID)
        for theta in thetas:
            values = [scales(np.concatenate([[log_tau], theta]))[0] for log_tau in grid]
            yield _Point(none, empty, float(grid[int(np.argmax(values))]), theta)

    def climbed(self, start: _Point) -> _Point:
        """The top near a point, with weights that have gone back to lambda = 1 taken out."""
        k, bounds = len(start.own), self._problem.theta_bounds
        scales = self._scales(start.own)
        x = np.concatenate([start.log_u, [start.log_tau], start.theta])
        x, top, _ = scales.climbed(x, bounds, _STEPS, _ROUGH, hold_tau=self._hold_tau)
        found = _Point(start.own, x[:k], float(x[k]), x[k + 1 :], top)
        away = found.log_u < np.log(_ESCAPED)
        if away.all():
            return found
        return self.climbed(found._replace(own=found.own[away], log_u=found.log_u[away]))

    def let_go(self, point: _Point, together: int) -> _Point | None:
        """The top with some columns more at scales of their own, or None if none of the most promising gains."""
        s, q = self._left_out(point)
        score = q**2 / np.maximum(s, 1e-300)
        score[point.own] = 0.0
        order = np.argsort(-score, kind="stable")
        for some in [order[:together]] if together > 1 else order[:_TRIES, None]:
            # Weights of their size by themselves, between a third of what weights are measured in and that.
            size = np.clip(np.abs(q[some]) / np.maximum(s[some], 1e-300), 0.3, 1.0) * self._problem.unit
            log_u = np.append(point.log_u, 2 * (point.log_tau - np.log(size)))
            new = self.climbed(point._replace(own=np.append(point.own, some), log_u=log_u))
            if new.objective > point.objective + (_GAIN_BESIDE_NOISE if point.theta.size else _GAIN):
                return new
        return None

    def _scales(self, own: IntArray) -> Scales:
        rest = np.delete(np.arange(self._Phi.shape[1]), own)
        columns = self._columns(own, rest)
        design = Design(columns, extra=self._fixed)
        k, m, q = len(own), columns.shape[1], self._fixed.shape[1]
        free = np.append(np.ones(m, dtype=bool), np.zeros(q, dtype=bool))
        problem = replace(self._problem, design=design, free=free)
        approximation = approximate(problem, self._objective, self._name)
        if isinstance(approximation, SiteApproximation):  # the evidence is wrong by the square of what sites miss
            approximation = approximation.roughly(0.1 * _ROUGH**0.5)
        return Scales(approximation, np.arange(m + q), np.arange(k), np.arange(k, m), len(rest))

    def _columns(self, own: IntArray, rest: IntArray) -> FloatArray:
        """Those at scales of their own, and as many as rows at most that stand for the rest: the same ``Phi Phi'``."""
        chosen = self._Phi[:, own]
        if len(rest) <= len(chosen):
            return np.hstack([chosen, self._Phi[:, rest]])
        values, vectors = np.linalg.eigh(self._gram - chosen @ chosen.T)
        there = values > 1e-13 * values[-1]
        return np.hstack([chosen, vectors[:, there] * np.sqrt(values[there])])

    @cached_property
    def _gram(self) -> FloatArray:
        return np.asarray(self._Phi @ self._Phi.T)

    def _left_out(self, point: _Point) -> tuple[FloatArray, FloatArray]:
        """Sparsity and quality of each free column at lambda = 1, as if it were left out."""
        scales = self._scales(point.own)
        state = scales.at(np.concatenate([point.log_u, [point.log_tau], point.theta]))
        s, q = np.zeros(self._Phi.shape[1]), np.zeros(self._Phi.shape[1])
        k, rest = len(point.own), np.delete(np.arange(len(s)), point.own)
        if len(rest) <= len(self._Phi):
            own_s, own_q = state.left_out()
            s[rest], q[rest] = own_s[k : k + len(rest)], own_q[k : k + len(rest)]
            return s, q
        columns = np.hstack([self._columns(point.own, rest), self._fixed])
        eta = self._problem.offset + columns @ state.mean
        _, slopes, curvature = self._problem.terms(eta, state.theta)
        rows = Dual(columns, np.maximum(-curvature, 0.0), state.alpha).whitened(self._Phi)
        S, Q = np.einsum("ij,ij->j", rows, rows), self._Phi.T @ slopes
        kept = 1 - S / state.alpha[k]  # of each column's own share in what is left of the targets
        return S / kept, Q / kept
