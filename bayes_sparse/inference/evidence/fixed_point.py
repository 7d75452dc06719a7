"""The loop shared by methods that update every precision by a formula.

Starts with all columns active. A step that would lower the objective is shortened (in log alpha and theta) until it
does not; when even the shortest would, the search is over. Columns that have become useless are deleted on the way
if the method says so, and always at the end. With a proper Gamma prior (b > 0) precisions stay finite, and columns are
deleted at the end alone, and only where there are several classes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

import numpy as np

from bayes_sparse.inference.approximations import Approximation, State
from bayes_sparse.inference.evidence.ascent import delete_useless, without
from bayes_sparse.inference.evidence.outcome import Outcome, Report
from bayes_sparse.problem.classes import AnyProblem, ClassProblem
from bayes_sparse.problem.design import FloatArray

__all__ = ["iterate", "noise_scale"]

_NEGLIGIBLE = 1e-6  # a column whose gamma is below this has nothing left to say
_HALVINGS = 12

type Update = Callable[[State], tuple[FloatArray, FloatArray]]


class Limits(Protocol):
    """When a method stops."""

    @property
    def max_iterations(self) -> int:
        """Rounds at most."""

    @property
    def tolerance(self) -> float:
        """Gain of a round, in nats, that is worth another."""


def iterate(
    limits: Limits, problem: AnyProblem, approximation: Approximation, update: Update, report: Report, *, prune: bool
) -> Outcome:
    """Repeat ``alpha, theta = update(state)`` until a round gains less than ``limits.tolerance`` nats."""
    index = np.arange(problem.design.width)
    state = approximation.at(index, _start(problem), problem.theta)
    prune = prune and not approximation.objective.b
    history, converged = [state.objective], False
    for iteration in range(1, limits.max_iterations + 1):
        new = _step(problem, approximation, state, *update(state))
        if prune:
            new = _drop_negligible(approximation, new)
        history.append(new.objective)
        report(iteration, new.objective, len(new.index))
        converged = new.objective - state.objective < limits.tolerance
        state = new
        if converged:
            break
    if not approximation.objective.b:
        state = delete_useless(approximation, state)
        history.append(state.objective)
    elif isinstance(problem, ClassProblem):
        state = _tell_apart(approximation, state)
    return Outcome(state, history, converged, iteration)


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
        df += 2 * approximation.objective.smoothness * float(state.alpha @ state.smoothing)
    return np.array([0.5 * np.log(effective(count, state.residual_power, df))])


def _start(problem: AnyProblem) -> FloatArray:
    """Precisions at which the columns together spread the predictor about as much as the targets ask for."""
    mean_square = problem.design.squares() / problem.design.n
    spread = float(np.var(problem.y - problem.offset)) if problem.normal else 1.0
    return np.asarray(np.maximum(mean_square, 1e-300) * problem.free.sum() / max(spread, 1e-300))


def _step(
    problem: AnyProblem, approximation: Approximation, state: State, alpha: FloatArray, theta: FloatArray
) -> State:
    with np.errstate(divide="ignore"):
        move = np.where(state.free, np.log(alpha) - np.log(state.alpha), 0.0)
    move = np.clip(move, -5.0, 5.0)
    scale = 1.0
    for _ in range(_HALVINGS):
        between = state.theta + scale * (theta - state.theta)
        if between.size:
            between = np.clip(between, problem.theta_bounds[:, 0], problem.theta_bounds[:, 1])
        new = approximation.at(state.index, state.alpha * np.exp(scale * move), between, state)
        if new.objective >= state.objective:
            return new
        scale /= 2
    return state


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
    gone = np.flatnonzero(state.free & (state.gamma < _NEGLIGIBLE))
    if not len(gone):
        return state
    new = approximation.at(*without(state, gone), state.theta, state)
    return new if new.objective >= state.objective - 1e-9 else state
