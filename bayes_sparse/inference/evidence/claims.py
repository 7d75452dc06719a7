"""What an evidence fit may claim of its terms."""

from __future__ import annotations

import numpy as np

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inference.claims import UNDECIDED, Claims, chance_of, least_score, score_of, with_weaker_as_noise
from bayes_sparse.inference.evidence.ascent import Ascent
from bayes_sparse.inference.evidence.dispersion import dispersion
from bayes_sparse.inference.evidence.exchanges import exchanges
from bayes_sparse.inference.evidence.groups import active_directions, alone, candidates, offered
from bayes_sparse.inference.evidence.state import Approximation, Scores, State
from bayes_sparse.problem.classes import AnyProblem
from bayes_sparse.problem.gaussian import Primal
from bayes_sparse.problem.groups import Groups

__all__ = ["claims"]

_STEPS = 3  # of the climb after an exchange
_TERMS = 16  # terms whose best exchange is climbed for real
_NEAR = 1.0  # nats by which the climb on the quadratic may be wrong


def claims(
    problem: AnyProblem, fitted: Approximation, state: State, selected: State, among: Approximation, *, rivals: bool
) -> Claims:
    """Scores at the end of a fit, and exchanges where its terms were selected.

    Parameters
    ----------
    problem : Problem, ClassProblem or SeveralProblem
        What was fitted.
    fitted, state : Approximation, State
        The posterior that the fit ended at.
    selected, among : State, Approximation
        Where the search that chose the terms ended, and what it searched; they may be the same.
    rivals : bool
        Whether exchanges are wanted.
    """
    M, groups = problem.design.M, problem.grouping
    columns = offered(problem)
    glued = problem.predictors > 1 and state.terms is None  # machines of one class each: no likelihood of them all
    # First of all, for the last look of the search at the columns may have been there.
    found = _rivals(problem, among, selected, least_score(columns)) if rivals and not glued else []
    score = np.full(problem.design.width, np.nan)
    degrees, all_columns = np.ones(problem.design.width), None
    if isinstance(state.posterior, Primal) and not glued:
        all_columns = fitted.scores(state)
        score = score_of(all_columns.Q, all_columns.S)
    s, q = state.left_out()
    score[state.index] = score_of(q, s)
    if groups is not None:
        _put_groups(score, degrees, groups, fitted, state, all_columns)
    # Where the data are more scattered than the likelihood allows, all columns score higher, real or not.
    left, judged = _left(fitted, state), score / max(dispersion(problem, state), 1.0)
    if np.isfinite(left):
        terms = state.index[state.free]
        terms = terms if groups is None else terms[groups.first[terms] == terms]
        judged[terms] = with_weaker_as_noise(score[terms], left, degrees[terms])
    chance = chance_of(judged, columns, left, degrees)
    chance = chance if groups is None else chance[groups.first]
    return Claims(score[:M], chance[:M], found)


def _put_groups(
    score: FloatArray,
    degrees: FloatArray,
    groups: Groups,
    fitted: Approximation,
    state: State,
    all_columns: Scores | None,
) -> None:
    """On each column of a group the score of them all, and its degrees of freedom."""
    found = [own._replace(at=state.index[own.at]) for own in active_directions(state)]
    if all_columns is not None:
        found += candidates(fitted, groups, state, all_columns)
    for own in found:
        score[own.at], degrees[own.at] = own.score[:, None], own.degrees[:, None]


def _left(fitted: Approximation, state: State) -> float:
    """Degrees of freedom left for a normal likelihood's noise."""
    if fitted.count is None or not state.theta.size:
        return np.inf
    return max(fitted.count - float(state.gamma.sum()), 1.0)


def _rivals(problem: AnyProblem, among: Approximation, state: State, least: float) -> list[tuple[int, int, float]]:
    """Exchanges by columns that would pay at the price of so many, the best one of each term climbed for real."""
    if not isinstance(state.posterior, Primal):
        return []
    known = exchanges(state, among.scores(state), among.objective, alone(problem), within=UNDECIDED + _NEAR)
    ascent = Ascent(among, problem.theta_bounds, 1e-6)
    climbed: dict[int, float] = {}
    out: list[tuple[int, int, float]] = []
    for move in known:
        if move.column is None or move.score < least:
            continue
        loss = move.loss
        if move.position in climbed:  # by the quadratic alone none is better than what was made for real
            loss = max(loss, climbed[move.position])
        elif len(climbed) < _TERMS and loss < UNDECIDED + _NEAR:
            new, _ = ascent(move.made(among, state), _STEPS, tolerance=1e-2)
            loss = climbed[move.position] = state.objective - new.objective
        if np.isfinite(loss):  # with some columns the likelihood cannot be computed at all
            out.append((int(state.index[move.position]), move.column, loss))
    return sorted(out, key=lambda exchange: exchange[2])
