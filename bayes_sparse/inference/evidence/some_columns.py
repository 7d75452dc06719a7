"""A search of a very large design begun among some of its columns, each look at all of which costs a pass over it.

The most promising columns are searched by themselves, and those that become so after that, until a look at all columns
adds nothing. Most kernels on many rows are never looked at more than a few times. It is a start and nothing else: the
search of all columns goes on from there until nothing gains.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import numpy as np

from bayes_sparse.common.types import IntArray, Report
from bayes_sparse.inference.evidence.exchanges import addition_gain, largest
from bayes_sparse.inference.evidence.state import Approximation, Outcome, Scores, State
from bayes_sparse.problem.classes import AnyProblem
from bayes_sparse.problem.design import Design
from bayes_sparse.problem.problem import Problem
from bayes_sparse.problem.streamed_design import StreamedDesign

__all__ = ["from_some_columns"]

_LARGE = 2**24  # numbers of a design: an eighth of a gigabyte
_TOP, _SPREAD = 250, 250  # columns that gain most, and at first others at even distances
_EACH, _LEAST, _EXCHANGES = 20, 3, 1000  # columns for each term kept: of few terms, at least, and of all terms together
_MOST_ROWS = 2**17  # of which so many columns are half a gigabyte
_LOOKS = 10  # at all columns
_GAIN = 0.1  # nats: what another look must have brought


class Search(Protocol):
    """A method, called from the beginning or from a state."""

    def __call__(self, problem: AnyProblem, approximation: Approximation, report: Report) -> Outcome:
        """From the beginning."""

    def search(self, problem: AnyProblem, approximation: Approximation, state: State, report: Report) -> Outcome:
        """From a state."""


def from_some_columns(
    search: Search, problem: AnyProblem, approximation: Approximation, report: Report
) -> Outcome | None:
    """The end of searches among some columns, at the posterior of all; None where the design is not so large."""
    if not isinstance(problem, Problem) or problem.grouping is not None:
        return None
    n, M = problem.design.n, problem.design.M
    if not isinstance(problem.design, Design) or n * M < _LARGE or M < 2 * (_TOP + _SPREAD):
        return None  # sparse or chunked columns have cheaper products, and fewer are searched as they are
    if n > _MOST_ROWS and not isinstance(problem.design, StreamedDesign):
        return None
    fixed = np.flatnonzero(~problem.free)
    state = approximation.at(fixed, np.ones(len(fixed)), problem.theta)
    spread = np.linspace(0, M - 1, _SPREAD).astype(np.intp)
    found: Outcome | None = None
    iterations = 0
    for _ in range(_LOOKS):
        top = _promising(problem, approximation, state, approximation.scores(state))
        chosen = np.unique(np.concatenate([fixed, state.index, top, spread if found is None else fixed]))
        part = replace(
            problem, design=Design(problem.design.columns(chosen)), free=problem.free[chosen], some_rows=None
        )
        among = approximation.of(part)
        if found is None:
            found = search(part, among, report)
        else:
            start = among.at(np.searchsorted(chosen, state.index), state.alpha, state.theta)
            found = search.search(part, among, start, report)
        iterations += found.iterations
        end = found.state
        new = approximation.at(chosen[end.index], end.alpha, end.theta)
        gained, state = new.objective - state.objective, new
        if gained < _GAIN:
            break
    return None if found is None else replace(found, state=state, iterations=iterations)


def _promising(problem: Problem, approximation: Approximation, state: State, scores: Scores) -> IntArray:
    """Columns that gain most beside the terms of a state, and in the place of each of them."""
    o = approximation.objective
    gain, _ = addition_gain(scores.S, scores.Q, o.smoothness, o.floor)
    gain[~problem.free] = 0.0
    out, terms = [largest(gain, _TOP)], np.flatnonzero(state.free).tolist()
    each = max(_LEAST, min(_EACH, _EXCHANGES // max(len(terms), 1)))
    for position in terms:
        gain, _ = addition_gain(*scores.without(state, position), o.smoothness, o.floor)
        gain[~problem.free] = 0.0
        out.append(largest(gain, each))
    return np.concatenate(out).astype(np.intp)
