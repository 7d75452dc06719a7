"""What approximations share that see a likelihood by a few numbers an observation: its terms along the predictor."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from math import isfinite
from typing import Self

import numpy as np

from bayes_sparse.common.types import FloatArray, IntArray
from bayes_sparse.inference.evidence.state import (
    Objective,
    Posterior,
    Scores,
    State,
    hyper_curvature,
    log_prior,
    precision_curvature,
)
from bayes_sparse.problem.active import Active, LinearActive, Terms
from bayes_sparse.problem.classes import AnyProblem
from bayes_sparse.problem.gaussian import Dual, Primal
from bayes_sparse.problem.problem import Problem

__all__ = ["PointwiseApproximation", "finite_sum", "newton_step"]

_THETA_STEP = 1e-3  # for the nuisance parameters' differences
_FEW = 4  # columns that are at most one in so many


class PointwiseApproximation:
    """A Gaussian posterior whose precision is ``Phi' B Phi + A`` with B from the terms of each observation.

    Parameters
    ----------
    problem : Problem, ClassProblem or SeveralProblem
        What is fitted.
    objective : Objective
        What is maximised.
    """

    name: str
    count: float | None = None

    def __init__(self, problem: AnyProblem, objective: Objective) -> None:
        self.problem, self.objective = problem, objective
        self._recent: list[tuple[IntArray, Active]] = []

    def with_objective(self, objective: Objective) -> Self:
        """The same for another objective."""
        other = copy(self)
        other.objective = objective
        return other

    def of(self, problem: AnyProblem) -> Self:
        """The same of another problem."""
        return type(self)(problem, self.objective)

    def at(self, index: IntArray, alpha: FloatArray, theta: FloatArray, near: State | None = None) -> State:
        """Posterior, evidence and objective at given hyper-parameters, searched from ``near``.

        Where there is none, because the likelihood is not finite there, the objective is minus infinity: a search then
        takes a shorter step.
        """
        try:
            return self._at(index, alpha, theta, near)
        except np.linalg.LinAlgError:
            if near is None:
                raise
            return replace(near, log_evidence=-np.inf, objective=-np.inf)

    def _at(self, index: IntArray, alpha: FloatArray, theta: FloatArray, near: State | None) -> State:
        raise NotImplementedError

    def slope(self, state: State) -> FloatArray:
        """Gradient of the objective in (log alpha of free columns, theta)."""
        raise NotImplementedError

    def curvature(self, state: State) -> FloatArray:
        """Hessian of the objective with H held fixed; nuisance parameters by differences, one at a time."""
        o = self.objective
        full = precision_curvature(state, o.smoothness)
        if o.a or o.proper:
            full.flat[:: len(full) + 1] += hyper_curvature(state, o.a, o.b, o.floor, o.inverse)
        inner = full[state.free][:, state.free]
        if not state.theta.size:
            return inner
        outer = self._theta_difference(state)[1]
        k, m = len(inner), len(outer)
        out = np.zeros((k + m, k + m))
        out[:k, :k] = inner
        out[np.arange(k, k + m), np.arange(k, k + m)] = outer
        return out

    def followed(self, state: State, step: FloatArray) -> State:
        """The state: nothing is foreseen."""
        return state

    def theta_step(self, state: State) -> FloatArray:
        """Newton's step in each nuisance parameter alone, uphill and no longer than one."""
        first, second = self._theta_difference(state)
        return np.clip(first / np.maximum(np.abs(second), 1e-8), -1.0, 1.0)

    def scores(self, state: State) -> Scores:
        """Sparsity and quality of every column, the curvature held.

        Where a signal is missing, that of several predictors may be no maximum along a column outside: what it is worth
        is then told by its own curvature, and by trying it.
        """
        assert isinstance(state.posterior, Primal | Dual)
        assert state.terms is not None
        C, squares, Q = self._active(state.index).scan(state.terms)
        overlap = C @ state.posterior.covariance
        S = squares - np.einsum("ij,ij->i", overlap, C)
        lost = S <= 0.0
        lost[state.index] = False
        S[lost] = squares[lost]
        return Scores(np.maximum(S, 0.0), Q, overlap)

    def cross_products(self, state: State, columns: IntArray) -> FloatArray:
        """With the curvature of the state."""
        assert state.terms is not None
        return self.problem.active(columns).cross_products(state.terms)

    def _state(
        self,
        index: IntArray,
        alpha: FloatArray,
        theta: FloatArray,
        mean: FloatArray,
        posterior: Posterior,
        eta: FloatArray,
        terms: Terms,
    ) -> State:
        """With ``log E = sum of the terms' values + log prior + k/2 log 2 pi - 1/2 log det(H + A)``."""
        height = finite_sum(terms[0])
        log_evidence = float(height + log_prior(alpha, mean) - 0.5 * posterior.log_determinant)
        free, grouping = self.problem.free[index], self.problem.grouping
        groups = None if grouping is None else grouping.label[index]
        J = self.objective.value(log_evidence, posterior, free, theta, groups)
        return State(index, alpha, free, theta, mean, posterior, height, log_evidence, J, eta, terms, groups=groups)

    def _theta_slope(self, state: State, by_terms: Callable[[FloatArray], float], slope: FloatArray) -> FloatArray:
        """Gradient in theta: by the terms of each observation, and by the priors that depend on it.

        ``slope`` is the gradient in the log precisions of all active columns.
        """
        theta = state.theta
        if not theta.size:
            return np.empty(0)
        parts = self._explicit(state, by_terms, slope)
        return np.array([_derivative(parts, theta, step) for step in _THETA_STEP * np.eye(theta.size)])

    def _explicit(
        self, state: State, by_terms: Callable[[FloatArray], float], slope: FloatArray
    ) -> Callable[[FloatArray], float]:
        """What theta changes of the objective with the posterior held."""
        problem, o = self.problem, self.objective
        fixed = ~state.free & (state.alpha > 0)
        by_prior = slope[fixed] - o.a + o.b * state.alpha[fixed]
        if o.smoothness:  # a fixed prior that gives way frees the other columns
            across = state.posterior.solve(np.eye(len(fixed))[:, fixed])
            freed = np.where(state.free, state.alpha, 0.0) @ across**2
            by_prior -= o.smoothness * state.alpha[fixed] * freed

        def parts(theta: FloatArray) -> float:
            precision = problem.precisions(state.index, state.alpha, theta)[fixed]
            return by_terms(theta) + float(by_prior @ np.log(precision)) + o.prior(theta)

        return parts

    def _theta_difference(self, state: State) -> tuple[FloatArray, FloatArray]:
        """First and second differences of the objective along each nuisance parameter."""
        first, second = np.zeros(state.theta.size), np.zeros(state.theta.size)
        for j in range(state.theta.size):
            step = np.zeros(state.theta.size)
            step[j] = _THETA_STEP
            up = self.at(state.index, state.alpha, state.theta + step, state).objective
            down = self.at(state.index, state.alpha, state.theta - step, state).objective
            first[j] = (up - down) / (2 * _THETA_STEP)
            second[j] = (up - 2 * state.objective + down) / _THETA_STEP**2
        return first, second

    def share(self, index: IntArray, active: Active) -> None:
        """Take over columns that another approximation has made ready."""
        self._recent = [(index, active)]

    def _active(self, index: IntArray) -> Active:
        """Some columns ready for products; if they are few, those before them are kept: a search often goes back."""
        for known, active in self._recent:
            if known is index:
                return active
        self._recent = self._recent[:1]
        few = [one for one in self._recent if _FEW * len(one[0]) <= self.problem.design.width]
        self._recent = [(index, self._made_ready(index)), *few]
        return self._recent[0][1]

    def _made_ready(self, index: IntArray) -> Active:
        last = self._recent[0][1] if self._recent else None
        if isinstance(self.problem, Problem) and isinstance(last, LinearActive):
            return self.problem.active(index, last)
        return self.problem.active(index)


def finite_sum(values: FloatArray) -> float:
    """Minus infinity where it is not finite."""
    total = float(values.sum())
    return total if isfinite(total) else -np.inf


def _derivative(f: Callable[[FloatArray], float], x: FloatArray, step: FloatArray) -> float:
    """Along a step, by four values: exact but for the fourth power of the step and rounding errors over it."""
    near, far = f(x + step) - f(x - step), f(x + 2 * step) - f(x - 2 * step)
    return (8 * near - far) / (12 * float(step.max()))


def newton_step(f: Callable[[FloatArray], float], x: FloatArray, unit: FloatArray) -> float:
    """Uphill along a unit vector, by differences."""
    up, here, down = (f(x + step * unit) for step in (_THETA_STEP, 0.0, -_THETA_STEP))
    first, second = (up - down) / (2 * _THETA_STEP), (up - 2 * here + down) / _THETA_STEP**2
    return first / max(abs(second), 1e-8)
