"""Select, then estimate: the precisions of the terms kept once more, without the price that chose them.

At its own optimum a term with the squared z-score z^2 is shrunk by ``1 - 1/z^2``; one kept at price c by
``1 - 1/(z^2 - 2c)``, and its interval lies too near to zero. The price has done its work when the terms are chosen. The
noise stays at what it was found to be with the price, which counts what the search has used up: found again without it,
it would be too small.

The price stays where it still has work to do, because terms kept are then larger than the truth as often as smaller:
with more columns than rows the luckiest of many were chosen, and data more scattered than their likelihood allows let
chance look like signal.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inference.evidence.ascent import Ascent
from bayes_sparse.inference.evidence.dispersion import dispersion
from bayes_sparse.inference.evidence.exchanges import look
from bayes_sparse.inference.evidence.state import Approximation, Objective, State
from bayes_sparse.problem.classes import AnyProblem, ClassProblem
from bayes_sparse.problem.gaussian import Primal

__all__ = ["foreseen", "reestimate"]

_TOLERANCE = 1e-7  # nats promised by the next step
_STEPS = 200
_SCATTERED = 1.4  # times the variance that the likelihood allows


def reestimate(problem: AnyProblem, approximation: Approximation, selected: State) -> tuple[Approximation, State]:
    """The end of a search with the precisions of its terms re-estimated at no price.

    Parameters
    ----------
    problem : Problem, ClassProblem or SeveralProblem
        What was fitted.
    approximation, selected : Approximation, State
        What was searched, at a price, and where the search ended.

    Returns
    -------
    Approximation, State
        Without the price, with the same terms and nuisance parameters; both as they were where the price stays.
    """
    if not approximation.objective.smoothness or not _free_to_go(problem, selected):
        return approximation, selected
    free = approximation.with_objective(replace(approximation.objective, smoothness=0.0))
    held = np.stack([selected.theta, selected.theta], axis=1)
    start = free.at(selected.index, selected.alpha, selected.theta, selected)
    if not problem.normal and selected.groups is None:
        near = free.at(selected.index, foreseen(selected, free.objective), selected.theta, start)
        start = max(start, near, key=lambda state: state.objective)
    state, _ = Ascent(free, held, _TOLERANCE, prune=False)(start, _STEPS)
    if state.eta is not None and problem.separates(state.eta):
        return approximation, selected
    return free, state


def _free_to_go(problem: AnyProblem, state: State) -> bool:
    """Whether the terms kept can do without the price."""
    if isinstance(problem, ClassProblem) or not isinstance(state.posterior, Primal) or not state.free.any():
        return False  # several classes, more terms than rows, and nothing to estimate
    return int(problem.free.sum()) <= problem.design.n and dispersion(problem, state) <= _SCATTERED


def foreseen(state: State, objective: Objective) -> FloatArray:
    """Precisions of greatest objective on the quadratic that the likelihood is at the mode: no look at the data."""
    assert isinstance(state.posterior, Primal)
    P, alpha = state.posterior.lower @ state.posterior.lower.T, state.alpha
    H, b = (P - np.diag(alpha))[None], (P @ state.mean)[None]
    J, step, promise = look(H, b, alpha[None], state.free, state.free, objective)
    for _ in range(_STEPS):
        if promise[0] < _TOLERANCE:
            break
        new = np.where(state.free, np.maximum(alpha * np.exp(step[0]), objective.floor), alpha)
        new_J, new_step, new_promise = look(H, b, new[None], state.free, state.free, objective)
        if new_J[0] > J[0]:
            alpha, J, step, promise = new, new_J, new_step, new_promise
        else:
            step, promise = step / 4, promise / 4
    return alpha
