"""How a fit ended: a status in a word, and a warning that names the cure."""

from __future__ import annotations

import warnings

import numpy as np

from bayes_sparse.outcome import Outcome, Status
from bayes_sparse.problem import Problem

__all__ = ["FitWarning", "judge", "warn"]


class FitWarning(UserWarning):
    """Something about a fit that its user should know before trusting it."""


def judge(problem: Problem, outcome: Outcome) -> Status:
    """How a search ended, in a word."""
    state = outcome.state
    if not outcome.converged:
        return "max_iterations"
    at_floor = bool(np.any(state.theta <= problem.theta_bounds[:, 0] + 1e-6))
    if at_floor or (problem.normal and state.theta.size and state.gamma.sum() > 0.9 * problem.design.n):
        return "noise_collapsed"
    if not (state.index < problem.design.M).any():
        return "null"
    if _separates(problem, outcome):
        return "separable"
    return "converged"


def _separates(problem: Problem, outcome: Outcome) -> bool:
    """Whether the fit puts every observation of a two-valued target on its own side of a threshold."""
    eta = outcome.state.eta
    if eta is None or outcome.state.theta.size or not np.isin(problem.y, (0.0, 1.0)).all():
        return False
    ones = problem.y == 1
    return bool(ones.any() and not ones.all() and eta[ones].min() > 0 > eta[~ones].max())


def warn(status: Status, problem: Problem, outcome: Outcome, method: str) -> None:
    """Tell the user what the word means and what to do about it."""
    used, n = float(outcome.state.gamma.sum()), problem.design.n
    message = {
        "max_iterations": (
            f"The method {method!r} did not converge within its limit of iterations (objective "
            f"{outcome.state.objective:.4g}); raise max_iterations or tolerance."
        ),
        "noise_collapsed": (
            f"The noise has collapsed: the fit explains the data exactly with {used:.0f} of {n} degrees of freedom, "
            "and its intervals mean nothing; raise `smoothness` or offer fewer basis functions."
        ),
        "null": "No basis function pays for itself: the answer is the model without any (bias only).",
        "separable": (
            "The terms kept separate the classes perfectly: only the prior holds their weights, and probabilities "
            "near 0 and 1 should not be taken literally; check with method='nuts'."
        ),
    }.get(status)
    if message is None and used > 0.5 * n:
        message = (
            f"The fit uses up the data: {used:.0f} degrees of freedom for {n} observations; its intervals are too "
            "narrow; raise `smoothness` or offer fewer basis functions."
        )
    if message is not None:
        warnings.warn(message, FitWarning, stacklevel=4)
