"""The guarded loop of fixed-point updates: all precisions at once, by a formula."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

import numpy as np

from bayes_sparse.common.types import FloatArray, Report
from bayes_sparse.inference.evidence.ascent import Ascent, delete_phantoms, delete_useless, without
from bayes_sparse.inference.evidence.state import Approximation, Outcome, State
from bayes_sparse.problem.classes import AnyProblem, ClassProblem
from bayes_sparse.problem.gaussian import Primal
from bayes_sparse.problem.groups import sums
from bayes_sparse.problem.problem import Problem
from bayes_sparse.problem.several_predictors import SeveralProblem

__all__ = ["iterate", "noise_scale"]

_HALVINGS = 12
_NEGLIGIBLE = 1e-6  # a column whose gamma is below this has nothing left to say

type Update = Callable[[State], tuple[FloatArray, FloatArray]]


class Limits(Protocol):
    """When a method stops."""

    @property
    def max_iterations(self) -> int:
        """Rounds at most."""

    @property
    def tolerance(self) -> float:
        """Gain of a round, in nats, that is worth another."""


_FEW = 100  # columns: with fewer the rounds cost nothing, and where a jump lands depends on rounding errors
_PLAIN = 10  # rounds before the first jump: the first ones are long enough by themselves
_JUMPS = 3  # lengths tried of a jump
_FARTHEST = 10.0  # of a jump, in log units
_TOP = 1e-8  # nats promised by the next step: where a fixed point is left for the top nearby
_LAST = 20  # steps to it
_CLOSE = 1e-2  # of the tolerance: what two rounds and a jump may still gain at the end


def iterate(
    limits: Limits,
    problem: AnyProblem,
    approximation: Approximation,
    update: Update,
    report: Report,
    *,
    prune: bool,
    jumps: bool = False,
) -> Outcome:
    """Repeat ``alpha, theta = update(state)`` until a round gains less than ``limits.tolerance`` nats.

    With ``jumps``, and many columns, every second round goes on as far as the last two point to, if that is uphill
    (`_jump`).
    Where the last columns are deleted for another reason than the objective (phantoms; columns told apart under a
    proper prior), those kept go on from there, and the history ends before that.
    """
    index = np.arange(problem.design.width)
    start = approximation.at(index, approximation.objective.floor + _start(problem), problem.theta)
    prune = prune and not approximation.objective.proper
    jumps = jumps and len(index) > _FEW

    def repeated(state: State) -> Outcome:
        history, converged, before = [state.objective], False, state
        for iteration in range(1, limits.max_iterations + 1):
            new = _step(problem, approximation, state, *update(state))
            if prune:
                new = _drop_negligible(approximation, new)
            second = jumps and iteration > _PLAIN and iteration % 2 == 0
            if second:
                new = _jump(problem, approximation, before, state, new)
            history.append(new.objective)
            report(iteration, new.objective, len(new.index))
            if not jumps:
                converged = new.objective - state.objective < limits.tolerance
            elif second:
                converged = new.objective - before.objective < _CLOSE * limits.tolerance
            before, state = state, new
            if converged:
                break
        if converged and approximation.objective.proper:
            state = _to_the_top(problem, approximation, state)
            history.append(state.objective)
        return Outcome(state, history, converged, iteration)

    outcome = repeated(start)
    kept = outcome.state
    if not approximation.objective.proper:
        state = delete_useless(approximation, kept)
        outcome = replace(outcome, state=state, history=[*outcome.history, state.objective])
        kept = delete_phantoms(approximation, state)
    elif isinstance(problem, ClassProblem):
        kept = _tell_apart(approximation, kept)
    if len(kept.index) == len(outcome.state.index):
        return outcome
    again = repeated(kept)
    converged, iterations = outcome.converged and again.converged, outcome.iterations + again.iterations
    return Outcome(again.state, outcome.history, converged, iterations)


def _to_the_top(problem: AnyProblem, approximation: Approximation, state: State) -> State:
    """The last nats: a fixed point is one with the likelihood's curvature held, which moves as the mode does."""
    held = isinstance(problem, Problem) and not problem.normal  # of several classes the paper's equation is kept to
    if not held or len(state.index) > _FEW or not isinstance(state.posterior, Primal):
        return state
    top, _ = Ascent(approximation, problem.theta_bounds, _TOP, prune=False)(state, _LAST)
    return top


def noise_scale(
    approximation: Approximation, state: State, effective: Callable[[float, float, float], float]
) -> FloatArray:
    """New nuisance parameters: a closed form for plain normal noise, a step uphill for anything else.

    ``effective(count, rss, df)`` is the method's formula for the noise variance.
    """
    count = approximation.count
    if count is None or approximation.objective.log_prior is not None or not state.theta.size:
        return state.theta + approximation.theta_step(state) if state.theta.size else state.theta
    df = float(state.gamma.sum())
    if approximation.objective.smoothness:
        df += 2 * approximation.objective.smoothness * state.sharpened
    return np.array([0.5 * np.log(effective(count, state.residual_power, df))])


def _start(problem: AnyProblem) -> FloatArray:
    """Precisions at which the columns together spread the predictor about as much as the targets ask for."""
    weights = problem.row_weights if isinstance(problem, SeveralProblem) else problem.weights
    mean_square = problem.design.squares(weights) / problem.count
    if problem.grouping is not None:
        label = problem.grouping.label
        mean_square = sums(mean_square, label) / sums(np.ones(len(label)), label)
    spread = problem.spread**2 if isinstance(problem, Problem) and problem.normal else problem.unit**2
    return np.asarray(np.maximum(mean_square, 1e-300) * problem.free.sum() / max(spread, 1e-300))


def _step(
    problem: AnyProblem, approximation: Approximation, state: State, alpha: FloatArray, theta: FloatArray
) -> State:
    with np.errstate(divide="ignore"):
        move = np.where(state.free, np.log(alpha) - np.log(state.alpha), 0.0)
    move = np.clip(move, -5.0, 5.0)
    scale, floor = 1.0, approximation.objective.floor
    for _ in range(_HALVINGS):
        between = state.theta + scale * (theta - state.theta)
        if between.size:
            between = np.clip(between, problem.theta_bounds[:, 0], problem.theta_bounds[:, 1])
        between_alpha = np.where(state.free, np.maximum(state.alpha * np.exp(scale * move), floor), state.alpha)
        new = approximation.at(state.index, between_alpha, between, state)
        if new.objective >= state.objective:
            return new
        scale /= 2
    return state


def _jump(problem: AnyProblem, approximation: Approximation, first: State, second: State, third: State) -> State:
    """Beyond the third of three states, each the update of the one before, where the objective is higher there.

    The squared extrapolation of Varadhan & Roland (2008, SQUAREM S3), in log precisions and nuisance parameters: with
    ``r`` the first difference and ``v`` the second, ``x - 2 s r + s^2 v`` at ``s = -|r| / |v|``; at ``s = -1`` it is
    the third state itself.
    """
    if third.index is not second.index or second.index is not first.index:
        return third
    points = [np.concatenate([np.log(s.alpha[s.free]), s.theta]) for s in (first, second, third)]
    r = points[1] - points[0]
    v = points[2] - points[1] - r
    length = float(np.linalg.norm(r)) / max(float(np.linalg.norm(v)), 1e-300)
    k, floor = len(r) - third.theta.size, approximation.objective.floor
    for _ in range(_JUMPS):
        if length <= 1:
            break
        beyond = np.clip(2 * (length - 1) * r + (length**2 - 1) * v, -_FARTHEST, _FARTHEST)
        x = points[2] + beyond
        alpha, theta = third.alpha.copy(), x[k:]
        alpha[third.free] = np.maximum(np.exp(x[:k]), floor)
        if theta.size:
            theta = np.clip(theta, problem.theta_bounds[:, 0], problem.theta_bounds[:, 1])
        new = approximation.at(third.index, alpha, theta, third)
        if new.objective >= third.objective:
            return new
        length = (1 + length) / 2
    return third


def _tell_apart(approximation: Approximation, state: State) -> State:
    """Delete the columns that the evidence is no better for, at the precisions found.

    Under a proper prior no precision is infinite and the objective never asks for a deletion: what tells a column apart
    is how well its weight is determined, and how large it is. Done with several classes alone, where hundreds of barely
    determined weights would blur every probability.
    """
    plain = approximation.with_objective(replace(approximation.objective, a=0.0, b=0.0))
    kept = delete_useless(plain, plain.at(state.index, state.alpha, state.theta, state))
    return approximation.at(kept.index, kept.alpha, kept.theta, kept)


def _drop_negligible(approximation: Approximation, state: State) -> State:
    gone = np.flatnonzero(state.free & (state.summed(state.gamma) < _NEGLIGIBLE))
    if not len(gone):
        return state
    new = approximation.at(*without(state, gone), state.theta, state)
    return new if new.objective >= state.objective - 1e-9 else state
