"""How a fit ended: a status in a word, and a warning that names the cure."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np

from bayes_sparse.common.warnings import FitWarning, tell
from bayes_sparse.inference.evidence.state import Outcome, Status
from bayes_sparse.inference.l1.fixed_points import PathOutcome
from bayes_sparse.inference.one_step.finish import EigenOutcome
from bayes_sparse.problem.classes import AnyProblem
from bayes_sparse.problem.labelled import LabelledProblem

__all__ = ["FitWarning", "judge", "judge_one_step", "warn", "warn_one_step", "warn_path"]


_ASTRAY = 10.0  # nats between the evidence at the expansion point and at the mode: the likelihood is not quadratic
_NEAR_FLOOR = float(np.log(100.0))  # above the least noise a search may reach
_VIOLATED, _UNSOLVED = 1e-3, 0.2  # of lambda: an approximate solution; none at all
_log = logging.getLogger("bayes_sparse")


_MEANING: dict[str, str] = {
    "null": "No basis function pays for itself: the answer is the model without any (bias only).",
    "separable": (
        "The terms kept separate the classes perfectly: only the prior holds their weights, and probabilities "
        "near 0 and 1 should not be taken literally; check with method='nuts'."
    ),
}


def judge(problem: AnyProblem, outcome: Outcome) -> Status:
    """How a search ended, in a word."""
    state = outcome.state
    if not outcome.converged:
        return "max_iterations"
    at_floor = bool(np.any(state.theta <= problem.theta_bounds[:, 0] + 1e-6))
    if at_floor or (problem.normal and state.theta.size and state.gamma.sum() > 0.9 * problem.design.n):
        return "noise_collapsed"
    if not (state.index < problem.design.M).any():
        return "null"
    return "separable" if state.eta is not None and problem.separates(state.eta) else "converged"


def warn(status: Status, problem: AnyProblem, outcome: Outcome, method: str) -> None:
    """Tell the user what the word means and what to do about it."""
    used, n = float(outcome.state.gamma.sum()), problem.design.n
    message = _MEANING.get(status) or {
        "max_iterations": (
            f"The method {method!r} did not converge within its limit of iterations (objective "
            f"{outcome.state.objective:.4g}); raise max_iterations or tolerance."
        ),
        "noise_collapsed": (
            f"The noise has collapsed: the fit explains the data exactly with {used:.0f} of {n} degrees of freedom, "
            "and its intervals mean nothing; raise `smoothness` or offer fewer basis functions."
        ),
    }.get(status)
    if message is None and used > 0.5 * n:
        message = (
            f"The fit uses up the data: {used:.0f} degrees of freedom for {n} observations; its intervals are too "
            "narrow; raise `smoothness` or offer fewer basis functions."
        )
    if message is not None:
        tell(message)


def warn_path(labelled: LabelledProblem, outcome: PathOutcome, method: str) -> None:
    """Tell the user how a method on the L1 path ended, where that is not the ordinary way."""
    point, status = outcome.point, outcome.status
    if status == "jump":
        _log.info(
            "No lambda on the path satisfies lambda R = N exactly: at %.4g the number of weights jumps past it. The "
            "sparser side (N = %d) is the answer.",
            point.lam,
            point.N,
        )
    if status == "converged" and outcome.marginal and point.spot.residual > _VIOLATED:
        _log.info(
            "This is no solution of the exact criterion: at lambda = N/R another column would enter; "
            "method='reweighted' finds one."
        )
    message = _MEANING.get(status)
    if status == "null" and point.path.own_noise and any(visited.gap < 0 for visited in outcome.visited):
        message = (
            "Lambda has nowhere to settle: once it shrinks, it shrinks until the noise collapses, so the answer is the "
            "model without any term; choose lambda by method='cv', give `lam`, or fit 'ard_gaussian'."
        )
    if status == "max_iterations":
        message = (
            f"The method {method!r} did not converge within its limit of iterations; method='reweighted' always ends, "
            "or raise max_iterations."
        )
    exact = status == "fixed-point" or not outcome.marginal
    if message is None and exact and point.spot.residual > _UNSOLVED:
        message = (
            f"The L1 problem was not solved: the conditions of a minimum are violated by {point.spot.residual:.1g} of "
            "lambda; offer fewer columns, or give a larger `lam`."
        )
    if message is None and labelled.problem.separates(point.spot.eta):
        message = _MEANING["separable"]
    if message is None and (labelled.problem.terms(point.spot.eta, point.theta)[2] > 0).any():
        message = (
            "The likelihood is not log-concave: this is a solution, but the path may have other branches and other "
            "solutions that were not looked for."
        )
    if message is None and point.N + len(point.theta) >= labelled.problem.design.n:
        message = (
            f"The fit uses up the data: {point.N} weights for {labelled.problem.design.n} observations; its intervals "
            "mean nothing; give a larger `lam`."
        )
    if message is not None:
        tell(message)


def judge_one_step(labelled: LabelledProblem, outcome: EigenOutcome) -> Status:
    """How a one-step method ended, in a word."""
    surface, used = labelled.surface, float(outcome.gamma.sum())
    if not (outcome.peak.converged and outcome.quadratic.converged):
        return "max_iterations"
    # The noise comes from a ridge, which keeps it from the floor itself.
    near_floor = bool(np.any(outcome.quadratic.theta <= surface.theta_bounds[:, 0] + _NEAR_FLOOR))
    if near_floor or (surface.theta.size and used > 0.9 * surface.n):
        return "noise_collapsed"
    fixed = labelled.order[surface.d :]
    if surface.d and not outcome.kept.any() and not (fixed < labelled.M).any():
        return "null"
    return "separable" if outcome.peak.look.separates else "converged"


def warn_one_step(status: Status, labelled: LabelledProblem, outcome: EigenOutcome, expansion: Any) -> None:
    """Tell the user what the word means, and whether the quadratic stands for the likelihood."""
    surface, used = labelled.surface, float(outcome.gamma.sum())
    if outcome.eigen.dropped:
        _log.info(
            "The likelihood is not log-concave: %d of %d directions along which it curves upwards were dropped.",
            outcome.eigen.dropped,
            surface.d,
        )
    if outcome.quadratic.separates:
        _log.info(
            "The basis functions separate the classes: without a prior there is no most likely point, and what is kept "
            "depends on the one chosen by `expansion`."
        )
    message = _MEANING.get(status) or {
        "max_iterations": "The search for a mode did not converge; try another `expansion`.",
        "noise_collapsed": (
            f"The noise has collapsed: the fit explains the data exactly with {used:.0f} of {surface.n} degrees of "
            "freedom, and its intervals mean nothing; offer fewer basis functions."
        ),
    }.get(status)
    if message is None and used > 0.5 * surface.n:
        message = (
            f"The fit uses up the data: {used:.0f} degrees of freedom for {surface.n} observations; its intervals are "
            "too narrow; offer fewer basis functions."
        )
    gap = outcome.log_evidence - outcome.log_evidence_mode
    if message is None and abs(gap) > _ASTRAY:
        evident = isinstance(expansion, str) and expansion == "evidence"
        cure = "check with method='nuts'" if evident else "expansion='evidence' is safer"
        message = (
            f"The small gradient dropped at the expansion point is worth {gap:.0f} nats of log_evidence; read "
            "log_evidence_mode, which is exact here, or use expansion='zero', where nothing is dropped."
            if labelled.linear is not None and labelled.linear.normal
            else f"The quadratic at the expansion point misjudges the evidence by {gap:.0f} nats: the likelihood is "
            f"far from quadratic between there and the answer; {cure}."
        )
    if message is not None:
        tell(message)
