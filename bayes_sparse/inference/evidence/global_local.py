"""A scale for all weights and one for each: the horseshoe as a prior of precisions, and what it makes of the evidence.

``alpha_j = 1/(tau lambda_j)^2`` with ``lambda_j ~ HalfCauchy(1)`` and ``tau ~ HalfCauchy(tau0)``. The coordinates are
``log u_j``, ``u_j = 1/lambda_j^2 = alpha_j tau^2``, and ``log tau``; the densities of log lambda and log tau are
``(2/pi) sqrt(u)/(1 + u)`` and ``(2/pi) r/(1 + r^2)`` with ``r = tau/tau0``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import lapack
from scipy.optimize import minimize

from bayes_sparse.common.types import FloatArray, IntArray
from bayes_sparse.inference.evidence.state import Approximation, State

__all__ = ["Scales"]

_TAU = 3.0  # units of log tau, along which the objective curves more than along the others
_FIRST = 1.0  # of a climb: the longest change of a coordinate in its first step
_OUT = 1e10  # minus the objective where there is none
_FAR = 40.0  # bound of log u
_NEWTON = 20  # steps on from where a climb has ended
_NEAR = 0.1  # nats promised by the first of them: more is not near
_SHORT = 1.0  # longest change of a coordinate: where a scale says nothing, a step that promises little may go far
_SEEN = 1e-9  # nats: what an objective may lose by rounding errors
_AT_THE_TOP = 1e-14  # nats promised by the last of them


class Scales:
    """The objective as a function of ``(log u of some columns, log tau, theta)``, other free columns at lambda = 1.

    Parameters
    ----------
    approximation : Approximation
        Of the evidence; its objective has no other prior on precisions.
    index : int array
        All columns of its problem, in their order.
    own, shared : int array
        Positions of the columns with scales of their own, and of those at lambda = 1.
    count : int
        How many columns those at lambda = 1 stand for.
    """

    def __init__(
        self, approximation: Approximation, index: IntArray, own: IntArray, shared: IntArray, count: int
    ) -> None:
        self.approximation, self._index, self._own, self._shared = approximation, index, own, shared
        self._constant = float((len(own) + count + 1) * np.log(2 / np.pi) + count * np.log(0.5))
        self._near: State | None = None

    def climbed(
        self, start: FloatArray, theta_bounds: FloatArray, steps: int, tolerance: float, *, hold_tau: bool = False
    ) -> tuple[FloatArray, float, int]:
        """The top reached by L-BFGS from a start: coordinates, objective, and steps taken; no more of them than told.

        Begun anew as long as that gains: a step to where likelihoods have no digits left ends it as if it were there.
        """
        k = len(self._own)
        unit = np.ones(len(start))
        unit[k] = _TAU
        middle, reach = (start[k], 0.0) if hold_tau else (np.log(self.approximation.objective.tau0), 0.5 * _FAR)
        tau = (_TAU * (middle - reach), _TAU * (middle + reach))
        bounds: Any = [(-_FAR, _FAR)] * k + [tau, *map(tuple, theta_bounds.tolist())]
        x, (top, slope), taken = start, self(start), 0
        while taken < steps:
            size = max(float(np.abs(slope / unit).max()) / _FIRST, 1.0)  # the first step is the slope, as it is given

            def negative(x: FloatArray, size: float = size) -> tuple[float, FloatArray]:
                value, slope = self(x / unit)
                return (-value / size, -slope / unit / size) if np.isfinite(value) else (_OUT, np.zeros(len(x)))

            least: Any = {"ftol": tolerance / (size + abs(top)), "gtol": 1e-6 / size}
            options: Any = {"maxiter": steps - taken, "maxcor": 20, **least}
            end = minimize(negative, x * unit, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
            before, x, taken = top, np.asarray(end.x / unit), taken + max(int(end.nit), 1)
            top, slope = self(x)
            if not top > before + tolerance:
                break
        return x, top, taken

    def topped(self, x: FloatArray, theta_bounds: FloatArray) -> tuple[FloatArray, float]:
        """On from near the top by Newton's steps: where L-BFGS ends depends on its way, and that on rounding errors."""
        top, slope = self(x)
        for _ in range(_NEWTON):
            _, step, info = lapack.dposv(-self._curvature(x), slope)
            promise, new = float(slope @ step), x + step
            theta = new[len(self._own) + 1 :]
            near = info == 0 and promise <= _NEAR and np.abs(step).max() <= _SHORT  # and they are numbers
            if not (near and np.all((theta_bounds[:, 0] < theta) & (theta < theta_bounds[:, 1]))):
                break
            risen, new_slope = self(new)
            if not risen > top - _SEEN:
                break
            x, top, slope = new, risen, new_slope
            if promise < _AT_THE_TOP:
                break
        return x, top

    def _curvature(self, x: FloatArray) -> FloatArray:
        """Hessian of the objective in the same coordinates, by the chain rule from that in log precisions."""
        k, state, objective = len(self._own), self.at(x), self.approximation.objective
        m, free = int(state.free.sum()), np.flatnonzero(state.free)
        slope, inner = self.approximation.slope(state), self.approximation.curvature(state)
        share = 1 - objective.floor / state.alpha[free]  # d log alpha / d log above
        J = np.zeros((m + state.theta.size, len(x)))
        J[np.searchsorted(free, self._own), np.arange(k)] = 1.0
        J[:m, k] = -2.0
        J[m:, k + 1 :] = np.eye(state.theta.size)
        scaled = J.copy()
        scaled[:m] *= share[:, None]
        bent = (slope[:m] * share * (1 - share))[:, None] * J[:m]
        H = scaled.T @ inner @ scaled + J[:m].T @ bent
        here = np.append(0.5 * x[:k], x[k] - np.log(objective.tau0))
        H[np.arange(k + 1), np.arange(k + 1)] -= np.append(np.full(k, 0.25), 1.0) / np.cosh(here) ** 2
        return np.asarray(H)

    def at(self, x: FloatArray) -> State:
        """The posterior at some scales; its objective is the log evidence with the prior of theta alone."""
        k = len(self._own)
        above = np.ones(len(self._index))
        above[self._own], above[self._shared] = np.exp(x[:k] - 2 * x[k]), np.exp(-2 * x[k])
        alpha = self.approximation.objective.floor + above
        state = self.approximation.at(self._index, alpha, x[k + 1 :], self._near)
        self._near = state if np.isfinite(state.objective) else self._near
        return state

    def __call__(self, x: FloatArray) -> tuple[float, FloatArray]:
        """Objective and gradient."""
        k, state, objective = len(self._own), self.at(x), self.approximation.objective
        slope, m = self.approximation.slope(state), int(state.free.sum())
        by_alpha = np.zeros(len(self._index))
        by_alpha[state.free] = slope[:m] * (1 - objective.floor / state.alpha[state.free])
        log_u, log_r = x[:k], x[k] - np.log(objective.tau0)
        prior = float(np.sum(0.5 * log_u - np.logaddexp(0.0, log_u)) + log_r - np.logaddexp(0.0, 2 * log_r))
        by_u = by_alpha[self._own] - 0.5 * np.tanh(0.5 * log_u)
        by_tau = -2 * by_alpha.sum() - np.tanh(log_r)
        return state.objective + prior + self._constant, np.concatenate([by_u, [by_tau], slope[m:]])
