"""Jaakkola's bound of a logistic likelihood; of any other log-concave one the bound of the best Gaussian (`kl`).

``log sigmoid(x) >= log sigmoid(xi) + (x - xi) / 2 - lam(xi) (x^2 - xi^2)``, ``lam(xi) = tanh(xi / 2) / (4 xi)``, for
any xi, is quadratic in x, so that the evidence of the bound has a closed form; it is greatest at ``xi^2 = <eta^2>``
(Jaakkola & Jordan 2000).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.linalg import lapack
from scipy.special import log_expit

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inference.approximations._sites import Marginals, Matched
from bayes_sparse.inference.approximations.kl import KLApproximation
from bayes_sparse.inference.evidence.state import State
from bayes_sparse.problem.gaussian import Dual, Primal, cholesky

__all__ = ["VariationalApproximation"]


class VariationalApproximation(KLApproximation):
    """The papers' variational Gaussian: Jaakkola's bound where the likelihood is logistic."""

    name = "variational"
    _answer: tuple[State, FloatArray, FloatArray, FloatArray] | None = None  # of the sites to a step

    def matched(self, marginals: Marginals, theta: FloatArray) -> Matched:
        """Sites of the bound at its best xi."""
        if self._logistic is None:
            return super().matched(marginals, theta)
        (constant, y, trials), (mean, variance, _, precision) = self._logistic, marginals
        xi = np.sqrt(mean**2 + variance)
        tight = 2 * trials * _lam(xi)
        value = constant + (y - 0.5 * trials) * mean + trials * (log_expit(xi) - 0.5 * xi)
        return Matched(value + 0.5 * precision * variance, y - 0.5 * trials - tight * mean, tight)

    def curvature(self, state: State) -> FloatArray:
        """Hessian of the objective, following xi, but for what the price of a degree of freedom has of it.

        With V the covariance of the predictors m, their ``s = xi^2`` curve the bound by ``-F_ss``, which is
        ``D (1 - D G D) D / 2`` with ``G = V * V + 2 m m' * V`` and D the roots of minus the slopes of ``2 lam`` in s.
        """
        fixed = super().curvature(state)
        if self._logistic is None or not len(fixed):
            return fixed
        assert isinstance(state.posterior, Primal | Dual)
        assert state.eta is not None
        m, active = state.eta, self._active(state.index)
        U = active.predictor(state.posterior.covariance)
        V = active.predictor(U.T)
        D = np.sqrt(2 * self._logistic.trials * _fall(m**2 + V.diagonal()))
        along = D[:, None] * (U**2 + 2 * m[:, None] * U * state.mean) * state.alpha
        G = D[:, None] * V * (V + 2 * m[:, None] * m) * D
        try:
            L = cholesky(np.eye(len(m)) - G)
        except np.linalg.LinAlgError:  # the sites are far from matched
            return fixed
        half, _ = lapack.dtrtrs(L, along[:, state.free], lower=1)
        self._answer = state, D, L, half
        return np.asarray(fixed + 0.5 * half.T @ half)

    def followed(self, state: State, step: FloatArray) -> State:
        """With the sites that a step of the curvature's leads to, to first order."""
        if self._answer is None or self._answer[0] is not state or state.ahead is None:
            return state
        _, D, L, half = self._answer
        by_column = step[: len(step) - state.theta.size]
        by_column = by_column if state.ties is None else by_column[state.ties.place]
        change, _ = lapack.dtrtrs(L, half @ by_column, lower=1, trans=1)
        precision, pull = state.ahead
        return replace(state, ahead=np.array([precision * np.exp(np.clip(D * change / precision, -1.0, 1.0)), pull]))

    def accurate(self, marginals: Marginals, theta: FloatArray) -> bool:
        """A closed form is."""
        return self._logistic is not None or super().accurate(marginals, theta)


def _lam(xi: FloatArray) -> FloatArray:
    """``tanh(xi / 2) / (4 xi)``, 1/8 at zero."""
    small = xi < 1e-4
    safe = np.where(small, 1.0, xi)
    return np.where(small, 0.125 - xi**2 / 96, np.tanh(0.5 * safe) / (4 * safe))


def _fall(s: FloatArray) -> FloatArray:
    """Minus the slope of lam in ``s = xi^2``."""
    small = s < 1e-3
    x = 0.5 * np.sqrt(np.where(small, 1.0, s))
    return np.where(small, 1 / 96 - s / 480, (np.tanh(x) - x / np.cosh(np.minimum(x, 300.0)) ** 2) / (64 * x**3))
