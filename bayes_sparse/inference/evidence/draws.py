"""Draws of the weights from the normal posterior at given hyper-parameters, without its covariance."""

from __future__ import annotations

import numpy as np

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inference.evidence.state import State
from bayes_sparse.problem.active import Active
from bayes_sparse.problem.classes import AnyProblem
from bayes_sparse.problem.gaussian import Primal

__all__ = ["draw_weights"]


def draw_weights(
    problem: AnyProblem, active: Active, state: State, rng: np.random.Generator
) -> tuple[FloatArray, float]:
    """One draw of the active weights, and its log density.

    On the side of the observations a draw of ``v ~ N(0, H + A)`` costs no more than a predictor, and ``Sigma v`` has
    covariance ``Sigma (H + A) Sigma = Sigma``.
    """
    posterior, k = state.posterior, len(state.index)
    if isinstance(posterior, Primal):
        z = rng.standard_normal(k)
        away, length = posterior.spread(z), float(z @ z)
    else:
        terms = problem.terms(problem.offset + active.predictor(state.mean), state.theta)
        v = np.sqrt(state.alpha) * rng.standard_normal(k) + active.pulled_back(active.noise(terms, rng))
        away = posterior.solve(v)
        length = float(v @ away)
    return state.mean + away, 0.5 * (posterior.log_determinant - length - k * np.log(2 * np.pi))
