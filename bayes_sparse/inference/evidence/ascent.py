"""Uphill over the hyper-parameters: guarded Newton steps, and what is deleted on the way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack

from bayes_sparse.common.types import FloatArray, IntArray
from bayes_sparse.inference.evidence.groups import put_useless, term_worth
from bayes_sparse.inference.evidence.state import Approximation, State

__all__ = ["Ascent", "delete_phantoms", "delete_useless", "without"]

_LONGEST = 4.0  # in log units: a precision changes by at most a factor of 55 a step
_HALVINGS = 12
_SLOW = 5  # steps of a climb: nuisance parameters are seen one at a time, and may turn to and fro for ever
_NEAR = 1e-2  # nats promised: below it the objective is as good as quadratic
_OTHERWISE = 0.2  # of a step's gain: so far from half its promise, the curvature is not what the step was made for
_AT_THE_FLOOR = 1e-2  # in log units: a precision that near to the floor and pushed down goes there by itself


@dataclass(frozen=True)
class Ascent:
    """A guarded Newton ascent.

    Attributes
    ----------
    approximation : Approximation
        Where the objective and its derivatives come from.
    theta_bounds : array (m, 2)
        Box for the nuisance parameters.
    tolerance : float
        Stop when the next step promises less than this, in nats.
    prune : bool
        Delete columns whose own best precision is infinite on the way.
    further : bool
        Double a step as long as that pays, where the objective curves upwards along it: on the way from a saddle.
    """

    approximation: Approximation
    theta_bounds: FloatArray
    tolerance: float
    prune: bool = True
    further: bool = False

    def __call__(
        self,
        state: State,
        max_steps: int,
        tolerance: float | None = None,
        beat: float = -np.inf,
        told: Callable[[State], None] | None = None,
    ) -> tuple[State, bool]:
        """Climb from a state; also say whether the tolerance was met.

        Given up where the next step does not promise to come above the objective to ``beat``. Every step is ``told``.
        """
        tolerance = self.tolerance if tolerance is None else tolerance
        refused: set[int] = set()
        there = False
        last: tuple[State, FloatArray] | None = None
        for number in range(max_steps):
            if self.prune:
                before, state = state, delete_useless(self.approximation, state, refused)
                if state is not before:
                    there, last = False, None
            if there:
                return state, True
            slope = self.approximation.slope(state)
            if state.ties is not None:
                slope = state.ties.by_group(slope)
            if not slope.size:
                return state, True
            shown = None if last is None else (_coordinates(state) - _coordinates(last[0]), last[1] - slope)
            uphill = slope.copy()
            step = self._direction(state, slope, shown)
            promise = float(slope @ step)
            if promise < tolerance or state.objective + promise < beat:
                return state, promise < tolerance
            new = self._climb(state, slope, step)
            if new is None:
                return state, True  # rounding error is all that is left
            near, gain = promise < _NEAR and not self.further, new.objective - state.objective
            there = near and _left(promise, gain) < tolerance
            misjudged = near and abs(2 * gain / promise - 1) > _OTHERWISE
            last = (state, uphill) if misjudged or (number >= _SLOW and state.theta.size) else None
            state = new
            if told is not None:
                told(state)
        return state, there

    def _direction(self, state: State, slope: FloatArray, shown: tuple[FloatArray, FloatArray] | None) -> FloatArray:
        """Newton's step, by group as the slope is; along negative curvature a step of the same length uphill.

        The last step may have ``shown`` how far it led, and by how much the slope fell on it.
        """
        hill = -self.approximation.curvature(state)
        if state.ties is not None:
            hill = state.ties.by_group(hill)
        if shown is not None:
            hill = _corrected(hill, *shown)
        stuck, last = self._at_bounds(state, slope)
        if len(stuck):
            slope[stuck] = 0.0
            hill[stuck] = hill[:, stuck] = 0.0
            hill[stuck, stuck] = 1.0
        _, step, info = lapack.dposv(hill, slope)
        if info != 0:
            values, vectors = np.linalg.eigh(hill)
            step = vectors @ ((vectors.T @ slope) / np.maximum(np.abs(values), 1e-7))
        longest = np.abs(step).max()
        step = np.asarray(step * min(1.0, _LONGEST / longest)) if longest > 0 else step
        step[stuck] = last
        return step

    def _at_bounds(self, state: State, slope: FloatArray) -> tuple[IntArray, FloatArray]:
        """What is at its bound and pushed outwards, and how far that is from it: it does not take part in the step."""
        m, floor = state.theta.size, self.approximation.objective.floor
        stuck, last = np.empty(0, dtype=np.intp), np.empty(0)
        if floor:
            own = slice(None) if state.ties is None else state.ties.first
            above = np.log(state.alpha[state.free][own] / floor)
            stuck = np.flatnonzero((slope[: len(above)] < 0) & (above < _AT_THE_FLOOR))
            last = -above[stuck]
        if m:
            low, high = self.theta_bounds.T
            outwards = np.where(slope[-m:] < 0, state.theta <= low, state.theta >= high)
            if outwards.any():
                stuck = np.append(stuck, np.flatnonzero(outwards) + len(slope) - m)
                last = np.append(last, np.zeros(int(outwards.sum())))
        return stuck, last

    def _climb(self, state: State, slope: FloatArray, step: FloatArray) -> State | None:
        scale, promise = 1.0, float(slope @ step)
        for _ in range(_HALVINGS):
            new = self._moved(state, scale * step, self.approximation.followed(state, scale * step))
            if new.objective >= state.objective + 1e-4 * scale * promise:
                break
            scale /= 3
        else:
            return None
        longest = float(np.abs(step).max())
        while self.further and new.objective - state.objective > scale * promise and scale * longest <= 0.5 * _LONGEST:
            scale *= 2
            beyond = self._moved(state, scale * step, new)
            if beyond.objective <= new.objective:
                break
            new = beyond
        return new

    def _moved(self, state: State, step: FloatArray, near: State) -> State:
        """A step away, within the bounds, searched from ``near``."""
        k, alpha, theta = len(step) - state.theta.size, state.alpha.copy(), state.theta
        by_column = step[:k] if state.ties is None else step[state.ties.place]
        alpha[state.free] = np.maximum(alpha[state.free] * np.exp(by_column), self.approximation.objective.floor)
        if theta.size:
            theta = np.minimum(np.maximum(theta + step[k:], self.theta_bounds[:, 0]), self.theta_bounds[:, 1])
        return self.approximation.at(state.index, alpha, theta, near)


def _coordinates(state: State) -> FloatArray:
    """Log precisions that are estimated, one per group, and nuisance parameters."""
    alpha = state.alpha[state.free]
    return np.append(np.log(alpha if state.ties is None else alpha[state.ties.first]), state.theta)


def _corrected(hill: FloatArray, moved: FloatArray, fall: FloatArray) -> FloatArray:
    """The curvature nearest to this one, as in BFGS, that agrees with how much the slope fell on a step.

    The approximation's own leaves out how the mode moves the likelihood's curvature, and sees nuisance parameters one
    at a time.
    """
    along = hill @ moved
    own, seen = float(moved @ along), float(moved @ fall)
    if not (own > 0 and seen > 0):
        return hill
    return hill - np.outer(along, along) / own + np.outer(fall, fall) / seen


def _left(promise: float, gain: float) -> float:
    """What a step after a whole one would promise.

    Of a quadratic with another curvature than the step was made for, in one dimension: such a step promises twice what
    it gains, and where it gained ``1 + e`` halves of its promise, ``e^2`` of the promise is left.
    """
    return promise * (2 * gain / promise - 1) ** 2


def delete_useless(approximation: Approximation, state: State, refused: set[int] | None = None) -> State:
    """Delete columns whose own best precision is infinite, as long as the objective does not fall; groups as a whole.

    All of them at once if that works, the worst half of them if not, and so on down to one; a column that cannot
    go alone is added to ``refused`` and left.
    """
    refused = set() if refused is None else refused
    while state.free.any():
        # q^2 <= (1 + 2c) s for the column left out, multiplied by Sigma_ii^2
        allowed = (1 + 2 * approximation.objective.smoothness) * state.gamma * state.variance
        excess = np.where(state.free, state.mean**2 - allowed, np.inf)
        put_useless(excess, state, approximation.objective.smoothness, approximation.objective.floor)
        if refused:
            excess[np.isin(state.index, list(refused))] = np.inf
        useless = np.flatnonzero(excess <= 0)
        if not len(useless):
            return state
        useless = useless[np.argsort(excess[useless], kind="stable")]
        while len(useless):
            new = approximation.at(*without(state, useless), state.theta, state)
            if _higher(new, state, 1e-9):
                state = new
                break
            if len(useless) == 1:
                refused.add(int(state.index[useless[0]]))
            useless = useless[: len(useless) // 2]
    return state


_PHANTOM = 1e-3  # nats: a term worth less says nothing, whatever its precision


def delete_phantoms(approximation: Approximation, state: State, least: float = _PHANTOM) -> State:
    """Delete terms worth less than this, in nats: their own best precision is finite, but so large that they are not.

    The objective may fall by as much for each.
    """
    while True:
        worth = np.where(state.free, term_worth(state, approximation.objective.smoothness), np.inf)
        if not len(worth) or worth.min() >= least:
            return state
        new = approximation.at(*without(state, np.array([worth.argmin()])), state.theta, state)
        if not _higher(new, state, least):
            return state
        state = new


def _higher(new: State, state: State, but: float) -> bool:
    """Whether a state is as high, but for so much; one without an objective is not, whatever it is compared with."""
    return new.objective >= state.objective - but and new.objective > -np.inf


def without(state: State, positions: IntArray) -> tuple[IntArray, FloatArray]:
    """Index and precisions of a state with some positions left out, and all that share their precisions."""
    if state.groups is not None:
        positions = np.flatnonzero(np.isin(state.groups, state.groups[positions]))
    return np.delete(state.index, positions), np.delete(state.alpha, positions)
