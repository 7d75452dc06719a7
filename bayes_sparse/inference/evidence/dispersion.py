"""Whether a likelihood without a scale of its own is too narrow for its data."""

from __future__ import annotations

import numpy as np

from bayes_sparse.inference.evidence.state import State
from bayes_sparse.problem.classes import AnyProblem
from bayes_sparse.problem.problem import Problem

__all__ = ["dispersion"]


def dispersion(problem: AnyProblem, state: State) -> float:
    """Mean square of the likelihood's slopes along the predictor over its mean curvature: one where it is right.

    For counts that is the ratio of the variance to the mean. One, too, where nuisance parameters take up the scale, and
    for several classes or predictors.
    """
    if not isinstance(problem, Problem) or state.terms is None or state.theta.size:
        return 1.0
    slope, curvature = state.terms[1], -state.terms[2]
    if problem.weights is not None:  # a weight is a number of rows
        slope = slope / np.sqrt(np.maximum(problem.weights, 1e-300))
    left, total = max(problem.count - float(state.gamma.sum()), 1.0), float(curvature.sum())
    return float(slope @ slope) / left / (total / problem.count) if total > 0 else 1.0
