"""The posterior near the nuisance parameters found: how well these are known, and how the weights follow them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inference.evidence.state import Approximation, State
from bayes_sparse.problem.gaussian import Primal

__all__ = ["Nearby", "nearby"]

_STEP = 1e-3  # of differences along a nuisance parameter


@dataclass(frozen=True, eq=False)
class Nearby:
    """A normal over the nuisance parameters, precisions of the weights held.

    Attributes
    ----------
    factor : array (m, m)
        F with F F' their covariance.
    drift : array (k, m)
        How fast each weight's mode moves with each of them.
    """

    factor: FloatArray
    drift: FloatArray


def nearby(approximation: Approximation, state: State) -> Nearby:
    """By the objective's Hessian over the nuisance parameters; by its diagonal where that is no maximum."""
    m, k = state.theta.size, len(state.index)
    if m == 1:
        return Nearby(np.diag(_sd(_alone(approximation, state))), np.zeros((k, m)))
    hill, drift = np.empty((m, m)), np.empty((k, m))
    for i, step in enumerate(_STEP * np.eye(m)):
        up, down = (approximation.at(state.index, state.alpha, state.theta + move, state) for move in (step, -step))
        hill[i] = (approximation.slope(down) - approximation.slope(up))[-m:] / (2 * _STEP)
        drift[:, i] = (up.mean - down.mean) / (2 * _STEP)
    for derivatives in (hill, drift):  # none where a step leads out of what the likelihood can be computed at
        derivatives[~np.isfinite(derivatives)] = 0.0
    try:
        return Nearby(np.linalg.inv(np.linalg.cholesky((hill + hill.T) / 2)).T, drift)
    except np.linalg.LinAlgError:
        return Nearby(np.diag(_sd(hill.diagonal())), drift)


def _sd(hill: FloatArray) -> FloatArray:
    """No spread along what has no maximum."""
    return np.where(hill > 0, 1 / np.sqrt(np.maximum(hill, 1e-300)), 0.0)


def _alone(approximation: Approximation, state: State) -> FloatArray:
    """Minus the second derivative of the approximation's objective along a single nuisance parameter."""
    # Anew, for a method may have put another objective into its state, with more of a prior than this one.
    state = approximation.at(state.index, state.alpha, state.theta, state)
    if isinstance(state.posterior, Primal):
        return -approximation.curvature(state).diagonal()[-1:]
    step = np.full(1, _STEP)  # more terms than observations: by differences, on the side of the rows
    up, down = (
        approximation.at(state.index, state.alpha, state.theta + move, state).objective for move in (step, -step)
    )
    return np.array([-(up - 2 * state.objective + down) / _STEP**2])
