"""A search of very many rows begun on some of them, which tell nearly as much at a fraction of the time.

It is a start and nothing else. The search of all rows goes on from there until nothing gains.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from bayes_sparse.common.types import Report
from bayes_sparse.inference.evidence.reestimate import foreseen
from bayes_sparse.inference.evidence.state import Approximation, Outcome
from bayes_sparse.problem.classes import AnyProblem
from bayes_sparse.problem.gaussian import Primal
from bayes_sparse.problem.problem import Problem

__all__ = ["from_some_rows"]

_MANY = 120_000  # rows: of fewer some tell too little to save time
_EACH = 100  # rows per column that are left
_PART = 16  # of the rows, one in so many
_MOST = 200_000  # but no more than so many

type Search = Callable[[AnyProblem, Approximation, Report], Outcome]


def from_some_rows(search: Search, problem: AnyProblem, approximation: Approximation, report: Report) -> Outcome | None:
    """The end of a search of one row in sixteen, or fewer, at the posterior of all rows; None where it is no help.

    A normal likelihood is known by the cross-products of the columns, whatever the number of rows.
    """
    if not isinstance(problem, Problem) or problem.normal or problem.some_rows is None or problem.grouping is not None:
        return None
    n, width = problem.design.n, problem.design.width
    if n < max(_MANY, _PART * _EACH * width):
        return None
    # At random, for what comes in order may come in periods.
    rows = np.sort(np.random.default_rng(0).choice(n, min(n // _PART, _MOST), replace=False))
    part = replace(problem.some_rows(rows), free=problem.free, theta=problem.theta, theta_bounds=problem.theta_bounds)
    outcome = search(part, approximation.of(part), report)
    del part  # a sixteenth of all
    found = replace(outcome.state, eta=None, terms=None)
    if not found.free.any():
        return None
    state = approximation.at(found.index, found.alpha, found.theta, found)
    if isinstance(state.posterior, Primal):  # most of the climb without a look at the rows
        near = approximation.at(state.index, foreseen(state, approximation.objective), state.theta, state)
        state = max(state, near, key=lambda one: one.objective)
    return replace(outcome, state=state)
