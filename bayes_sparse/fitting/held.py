"""Fits of a model whose columns depend on parameters, found between fits by the evidence of what was kept."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
from scipy.optimize import minimize

from bayes_sparse.common.progress import FitProgress
from bayes_sparse.common.types import FloatArray
from bayes_sparse.fitting.families import Task, family_of
from bayes_sparse.inference.approximations import approximate
from bayes_sparse.problem.held import Held
from bayes_sparse.problem.labelled import LabelledProblem

__all__ = ["settled"]

_ROUNDS = 5
_GAIN = 0.1  # nats that moving the parameters must gain for another round
_STEP = 0.7  # of the first simplex, on the unconstrained scale
_CLOSE = 0.02  # of the last one, and nats between its corners
_STEP_OF_CURVATURE = 0.1  # on the unconstrained scale
_LOOKS = 40  # per parameter and round


def settled(
    labelled: LabelledProblem, task_of: Callable[[LabelledProblem], Task], progressbar: bool
) -> LabelledProblem:
    """The problem with the parameters that its columns depend on where the evidence is greatest.

    A fit at given ones, then the best ones for the terms and precisions that it found, and again, until that gains
    nothing. They are drawn about there by the curvature.
    """
    held = labelled.held
    if held is None:
        return labelled
    x = held.x
    with FitProgress(f"Finding {', '.join(held.names)}", progressbar) as progress:
        for _ in range(_ROUNDS):
            task = task_of(held.at(x))
            loss: Any = _loss(held, family_of(task.method).run(task, progress))
            simplex = np.vstack([x, x + _STEP * np.eye(len(x))])
            options: Any = {"initial_simplex": simplex, "xatol": _CLOSE, "fatol": _CLOSE, "maxfev": _LOOKS * len(x)}
            best = minimize(loss, x, method="Nelder-Mead", bounds=held.bounds, options=options)
            gained, x = loss(x) - float(best.fun), best.x
            if not gained > _GAIN:
                break
        found: LabelledProblem = held.at(x, _factor(loss, x))
    return found


def _loss(held: Held, end: Any) -> Callable[[FloatArray], float]:
    """Minus the objective at other values of the parameters, with the terms and precisions of a fit."""
    state, approximation = end.outcome.state, end.approximation

    def loss(x: FloatArray) -> float:
        try:
            other = approximate(held.at(x).searched, approximation.objective, approximation.name)
            J = other.at(state.index, state.alpha, state.theta).objective + held.log_prior(x)
        except (np.linalg.LinAlgError, ValueError):  # a covariance that cannot be factorised there
            return np.inf
        return float(-J) if np.isfinite(J) else np.inf

    return loss


def _factor(loss: Callable[[FloatArray], float], x: FloatArray) -> FloatArray:
    """F with F F' the covariance that the curvature at a minimum suggests, no sd longer than one."""
    steps, here = _STEP_OF_CURVATURE * np.eye(len(x)), loss(x)
    up, down = np.array([[loss(x + sign * step) for step in steps] for sign in (1, -1)])
    H = np.diag(up - 2 * here + down)
    for i, j in combinations(range(len(x)), 2):
        H[i, j] = H[j, i] = (
            loss(x + steps[i] + steps[j]) - up[i] - up[j] + 2 * here - down[i] - down[j] + loss(x - steps[i] - steps[j])
        ) / 2
    values, vectors = np.linalg.eigh(np.nan_to_num(H / _STEP_OF_CURVATURE**2, nan=0.0, posinf=1e6, neginf=0.0))
    return np.asarray(vectors / np.sqrt(np.maximum(values, 1.0)))
