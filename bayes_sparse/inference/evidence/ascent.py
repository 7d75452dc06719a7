"""Newton's method over the hyper-parameters of the active columns, deleting a column as soon as that is better.

Coordinates are (log alpha, theta). A step is taken only if the objective does not fall, so it never does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack

from bayes_sparse.inference.approximations import Approximation, State
from bayes_sparse.problem.design import FloatArray, IntArray

__all__ = ["Ascent", "delete_useless", "without"]

_LONGEST = 4.0  # in log units: a precision changes by at most a factor of 55 a step
_HALVINGS = 12


@dataclass(frozen=True)
class Ascent:
    """A guarded Newton ascent.

    Attributes
    ----------
    approximation : Approximation
        Where the objective and its derivatives come from.
    theta_bounds : array (m, 2)
        Box for the nuisance parameters.
    tolerance : float
        Stop when the next step promises less than this, in nats.
    """

    approximation: Approximation
    theta_bounds: FloatArray
    tolerance: float

    def __call__(self, state: State, max_steps: int, tolerance: float | None = None) -> tuple[State, bool]:
        """Climb from a state; also say whether the tolerance was met."""
        tolerance = self.tolerance if tolerance is None else tolerance
        refused: set[int] = set()
        for _ in range(max_steps):
            state = delete_useless(self.approximation, state, refused)
            slope = self.approximation.slope(state)
            if not slope.size:
                return state, True
            step = self._direction(state, slope)
            if float(slope @ step) < tolerance:
                return state, True
            new = self._climb(state, slope, step)
            if new is None:
                return state, True  # rounding error is all that is left
            state = new
        return state, False

    def _direction(self, state: State, slope: FloatArray) -> FloatArray:
        """Newton's step; along negative curvature a step of the same length uphill."""
        hill = -self.approximation.curvature(state)
        m = state.theta.size
        if m:  # a nuisance parameter at its bound and pushed outwards stays there
            low, high = self.theta_bounds.T
            outwards = np.where(slope[-m:] < 0, state.theta <= low, state.theta >= high)
            if outwards.any():
                stuck = np.flatnonzero(outwards) + len(slope) - m
                slope[stuck] = 0.0
                hill[stuck] = hill[:, stuck] = 0.0
                hill[stuck, stuck] = 1.0
        _, step, info = lapack.dposv(hill, slope)
        if info != 0:
            values, vectors = np.linalg.eigh(hill)
            step = vectors @ ((vectors.T @ slope) / np.maximum(np.abs(values), 1e-7))
        longest = np.abs(step).max()
        return np.asarray(step * min(1.0, _LONGEST / longest)) if longest > 0 else step

    def _climb(self, state: State, slope: FloatArray, step: FloatArray) -> State | None:
        k = len(slope) - state.theta.size
        scale, promise = 1.0, float(slope @ step)
        for _ in range(_HALVINGS):
            alpha = state.alpha.copy()
            alpha[state.free] *= np.exp(scale * step[:k])
            theta = state.theta
            if theta.size:
                theta = np.minimum(
                    np.maximum(theta + scale * step[k:], self.theta_bounds[:, 0]), self.theta_bounds[:, 1]
                )
            new = self.approximation.at(state.index, alpha, theta, state)
            if new.objective >= state.objective + 1e-4 * scale * promise:
                return new
            scale /= 3
        return None


def delete_useless(approximation: Approximation, state: State, refused: set[int] | None = None) -> State:
    """Delete columns whose own best precision is infinite, as long as the objective does not fall.

    All of them at once if that works, the worst half of them if not, and so on down to one; a column that cannot
    go alone is added to ``refused`` and left.
    """
    refused = set() if refused is None else refused
    while state.free.any():
        # q^2 <= (1 + 2c) s for the column left out, multiplied by Sigma_ii^2
        allowed = (1 + 2 * approximation.objective.smoothness) * state.gamma * state.variance
        excess = np.where(state.free, state.mean**2 - allowed, np.inf)
        if refused:
            excess[np.isin(state.index, list(refused))] = np.inf
        useless = np.flatnonzero(excess <= 0)
        if not len(useless):
            return state
        useless = useless[np.argsort(excess[useless], kind="stable")]
        while len(useless):
            new = approximation.at(*without(state, useless), state.theta, state)
            if new.objective >= state.objective - 1e-9:
                state = new
                break
            if len(useless) == 1:
                refused.add(int(state.index[useless[0]]))
            useless = useless[: len(useless) // 2]
    return state


def without(state: State, positions: IntArray) -> tuple[IntArray, FloatArray]:
    """Index and precisions of a state with some positions left out."""
    return np.delete(state.index, positions), np.delete(state.alpha, positions)
