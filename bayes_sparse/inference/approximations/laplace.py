"""Laplace's method: the likelihood's own curvature at the posterior mode.

``log E = L(w*) + log p(w*|alpha) + k/2 log 2 pi - 1/2 log det(H + A)`` at the mode w*, found by damped Newton steps
(IRLS) from wherever the last search ended. The gradient is exact: it follows H as w* moves, which takes the
likelihood's third derivative, and for a nuisance parameter how the terms of each observation change with it.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from typing import Any

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
    precision_slope,
)
from bayes_sparse.problem.classes import AnyProblem
from bayes_sparse.problem.gaussian import Dual, Primal
from bayes_sparse.problem.problem import Active, Product, Terms

__all__ = ["LaplaceApproximation"]

type Start = tuple[FloatArray, FloatArray, Terms]

_MAX_NEWTON = 100
_MAX_HALVINGS = 40
_DECREMENT = 1e-11  # squared Newton decrement, in nats: the mode is found far beyond what the evidence needs
_THETA_STEP = 1e-3  # for the nuisance parameters' differences


class LaplaceApproximation:
    """Gaussian approximation of any twice-differentiable likelihood at the posterior mode.

    Parameters
    ----------
    problem : Problem, ClassProblem or SeveralProblem
        The likelihood need not be log-concave: where it is not, Newton steps use its curvature cut off at zero, and
        the mode's own curvature is used as long as the posterior precision is positive definite there.
    objective : Objective
        What is maximised.
    """

    name = "laplace"
    count: float | None = None
    polish: bool = False

    def __init__(self, problem: AnyProblem, objective: Objective) -> None:
        self.problem, self.objective = problem, objective
        self._last: tuple[IntArray, Active] | None = None

    def with_objective(self, objective: Objective) -> LaplaceApproximation:
        """The same for another objective."""
        other = copy(self)
        other.objective = objective
        return other

    def polished(self) -> LaplaceApproximation:
        """The same with one more Newton step at every mode: the value no longer depends on where a search began."""
        other = copy(self)
        other.polish = True
        return other

    def at(self, index: IntArray, alpha: FloatArray, theta: FloatArray, near: State | None = None) -> State:
        """Posterior, evidence and objective at given hyper-parameters, the mode searched from ``near``.

        Where there is no mode, because the likelihood is not finite there, the objective is minus infinity: a search
        then takes a shorter step.
        """
        try:
            return self._at(index, alpha, theta, near)
        except np.linalg.LinAlgError:
            if near is None:
                raise
            return replace(near, log_evidence=-np.inf, objective=-np.inf)

    def _at(self, index: IntArray, alpha: FloatArray, theta: FloatArray, near: State | None) -> State:
        active = self._active(index)
        alpha = self.problem.precisions(index, alpha, theta)
        w, eta, terms, factor = self._mode(active, alpha, theta, self._start(active, index, theta, near))
        if factor is None and near is not None:  # lost on the way from there: begin at the beginning
            w, eta, terms, factor = self._mode(active, alpha, theta, self._start(active, index, theta, None))
        posterior = active.posterior(alpha, terms, factor)
        if self.polish:
            step = posterior.solve(active.pulled_back(terms[1]) - alpha * w)
            w, eta = w + step, eta + active.predictor(step)
            terms = self.problem.derivatives(eta, theta)
            posterior = active.posterior(alpha, terms, None)
        log_likelihood = self._sum(terms[0])
        log_evidence = float(log_likelihood + log_prior(alpha, w) - 0.5 * posterior.log_determinant)
        free, grouping = self.problem.free[index], self.problem.grouping
        groups = None if grouping is None else grouping.label[index]
        J = self.objective.value(log_evidence, posterior, free, theta, groups)
        return State(
            index, alpha, free, theta, w, posterior, log_likelihood, log_evidence, J, eta, terms, groups=groups
        )

    def slope(self, state: State) -> FloatArray:
        """Gradient of the objective in (log alpha of free columns, theta), following the mode.

        Where the likelihood is not log-concave and there are more columns than rows, the curvature that is cut off at
        zero is taken as if it were the mode's own.
        """
        assert state.terms is not None
        o, active = self.objective, self._active(state.index)
        if isinstance(state.posterior, Dual) and self.problem.predictors == 1 and not o.smoothness:
            leverages = 0.5 * state.posterior.leverages
        else:
            leverages = active.leverages(self._sensitivity(state))
        # The objective falls by this much along each weight at the mode, through the curvature alone.
        fall = state.posterior.solve(active.turning(leverages, state.terms))
        slope = precision_slope(state, o.smoothness, o.a, o.b, o.floor, o.inverse) + state.alpha * state.mean * fall
        return np.append(slope[state.free], self._theta_slope(state, leverages, fall, slope))

    def _sensitivity(self, state: State) -> Product:
        """Products with M, where the objective falls by ``tr(M dH)``: ``Sigma / 2``, and the price's part."""
        posterior, c = state.posterior, self.objective.smoothness
        priced = c * np.where(state.free, state.alpha, 0.0)
        if isinstance(posterior, Primal):
            Sigma = posterior.covariance
            M = 0.5 * Sigma + (Sigma * priced) @ Sigma if c else 0.5 * Sigma
            return lambda v, at: M[:, at] @ v

        def product(v: FloatArray, at: Any) -> FloatArray:
            full = np.zeros((len(priced), v.shape[1]))
            full[at] = v
            once = posterior.solve(full)
            return 0.5 * once + posterior.solve(priced[:, None] * once) if c else 0.5 * once

        return product

    def _theta_slope(self, state: State, leverages: FloatArray, fall: FloatArray, slope: FloatArray) -> FloatArray:
        """Gradient in theta: by the terms of each observation, by the priors that depend on it, by the mode."""
        theta, problem, o, active = state.theta, self.problem, self.objective, self._active(state.index)
        if not theta.size:
            return np.empty(0)
        assert state.eta is not None
        eta, fixed = state.eta, ~state.free & (state.alpha > 0)
        by_prior = slope[fixed] - o.a + o.b * state.alpha[fixed]
        if o.smoothness:  # a fixed prior that gives way frees the other columns
            across = state.posterior.solve(np.eye(len(fixed))[:, fixed])
            freed = np.where(state.free, state.alpha, 0.0) @ across**2
            by_prior -= o.smoothness * state.alpha[fixed] * freed
        along = active.predictor(fall)

        def parts(theta: FloatArray) -> float:
            value, first, second = problem.derivatives(eta, theta, 2)[:3]
            precision = problem.precisions(state.index, state.alpha, theta)[fixed]
            likelihood = value.sum() + np.vdot(leverages, second) - np.vdot(along, first)
            return float(likelihood + by_prior @ np.log(precision)) + o.prior(theta)

        return np.array([_derivative(parts, theta, step) for step in _THETA_STEP * np.eye(theta.size)])

    def curvature(self, state: State) -> FloatArray:
        """Hessian of the objective with H held fixed; nuisance parameters by differences, one at a time."""
        o = self.objective
        full = precision_curvature(state, o.smoothness) + np.diag(hyper_curvature(state, o.a, o.b, o.floor, o.inverse))
        inner = full[np.ix_(state.free, state.free)]
        outer = self._theta_difference(state)[1]
        k, m = len(inner), len(outer)
        out = np.zeros((k + m, k + m))
        out[:k, :k] = inner
        out[np.arange(k, k + m), np.arange(k, k + m)] = outer
        return out

    def theta_step(self, state: State) -> FloatArray:
        """Newton's step in each nuisance parameter alone, uphill and no longer than one."""
        first, second = self._theta_difference(state)
        return np.clip(first / np.maximum(np.abs(second), 1e-8), -1.0, 1.0)

    def scores(self, state: State) -> Scores:
        """Sparsity and quality of every column, the curvature held at its value at the mode.

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
        """With the curvature at the mode."""
        assert state.terms is not None
        return self.problem.active(columns).cross_products(state.terms)

    def _start(self, active: Active, index: IntArray, theta: FloatArray, near: State | None) -> Start:
        """Weights to search from, with their predictor and likelihood: those of a nearby state where they serve."""
        if near is None:
            w = np.zeros(len(index))
        else:
            w, complete = _carried_over(near, index)
            if complete and theta is near.theta and near.eta is not None and near.terms is not None:
                return w, near.eta, near.terms
        eta = self.problem.offset + active.predictor(w)
        terms = self.problem.derivatives(eta, theta)
        if w.any() and not np.isfinite(self._sum(terms[0])):  # out of the likelihood's range elsewhere
            return np.zeros(len(index)), self.problem.offset, self.problem.derivatives(self.problem.offset, theta)
        return w, eta, terms

    def _mode(
        self, active: Active, alpha: FloatArray, theta: FloatArray, start: Start
    ) -> tuple[FloatArray, FloatArray, Terms, Posterior | None]:
        """Maximise the log posterior over w by Newton steps, halved until they climb.

        Also gives the last factorisation, if it is one at the mode itself.
        """
        w, eta, terms = start
        height = self._sum(terms[0]) - 0.5 * float(alpha @ w**2)
        for _ in range(_MAX_NEWTON):
            gradient = active.pulled_back(terms[1]) - alpha * w
            factor = active.steps(alpha, terms)
            step = factor.solve(gradient)
            if float(gradient @ step) <= _DECREMENT:
                return w, eta, terms, factor
            along, scale = active.predictor(step), 1.0
            for _ in range(_MAX_HALVINGS):
                new = w + scale * step
                new_terms = self.problem.derivatives(eta + scale * along, theta)
                new_height = self._sum(new_terms[0]) - 0.5 * float(alpha @ new**2)
                if new_height >= height:
                    break
                scale /= 2
            else:
                return w, eta, terms, factor  # no ascent left above rounding error
            w, eta, terms, height = new, eta + scale * along, new_terms, new_height
        return w, eta, terms, None

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

    def _active(self, index: IntArray) -> Active:
        if self._last is None or index is not self._last[0]:
            self._last = index, self.problem.active(index)
        return self._last[1]

    @staticmethod
    def _sum(terms: FloatArray) -> float:
        total = float(terms.sum())
        return total if np.isfinite(total) else -np.inf


def _derivative(f: Callable[[FloatArray], float], x: FloatArray, step: FloatArray) -> float:
    """Along a step, by four values: exact but for the fourth power of the step and rounding errors over it."""
    near, far = f(x + step) - f(x - step), f(x + 2 * step) - f(x - 2 * step)
    return (8 * near - far) / (12 * float(step.max()))


def _carried_over(near: State, index: IntArray) -> tuple[FloatArray, bool]:
    """Weights of a nearby state for the columns ``index``, zero for new ones; and whether none of its own is lost."""
    if index is near.index:
        return near.mean, True
    w = np.zeros(len(index))
    where = {column: position for position, column in enumerate(near.index.tolist())}
    for position, column in enumerate(index.tolist()):
        if column in where:
            w[position] = near.mean[where.pop(column)]
    return w, not where
