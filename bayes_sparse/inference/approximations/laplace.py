"""Laplace's method: the likelihood's own curvature at the posterior mode.

``log E = L(w*) + log p(w*|alpha) + k/2 log 2 pi - 1/2 log det(H + A)`` at the mode w*, found by damped Newton steps
(IRLS) from wherever the last search ended. The gradient is exact: it follows H as w* moves, which takes the
likelihood's third derivative, and for a nuisance parameter how the terms of each observation change with it.
"""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

from bayes_sparse.common.types import FloatArray, IntArray
from bayes_sparse.inference.approximations._pointwise import PointwiseApproximation, finite_sum
from bayes_sparse.inference.evidence.state import Posterior, State, precision_slope
from bayes_sparse.inference.newton import CREEP
from bayes_sparse.problem.active import Active, Product, Terms
from bayes_sparse.problem.gaussian import Dual, Primal

__all__ = ["LaplaceApproximation"]

type Start = tuple[FloatArray, FloatArray, Terms]

_MAX_NEWTON = 100
_MAX_HALVINGS = 40
_DECREMENT = 1e-11  # squared Newton decrement, in nats: the mode is found far beyond what the evidence needs
_FAINT = 1e-8  # nats: a part of a step that promises less is not tried, since rounding errors may be larger
_SLOW = 4  # steps, after which one that promises less than a nat is made with the true curvature if that can be had
_ROUNDING = 4 * float(np.finfo(float).eps)  # of the log posterior, or of predictors: what changes less is not seen


class LaplaceApproximation(PointwiseApproximation):
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
    polish: bool = False

    def polished(self) -> LaplaceApproximation:
        """The same with one more Newton step at every mode: the value no longer depends on where a search began."""
        other = copy(self)
        other.polish = True
        return other

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
        return self._state(index, alpha, theta, w, posterior, eta, terms)

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
        if not state.theta.size:
            return slope[state.free]
        assert state.eta is not None
        eta, along = state.eta, active.predictor(fall)

        def by_terms(theta: FloatArray) -> float:
            value, first, second = self.problem.derivatives(eta, theta, 2)[:3]
            return float(value.sum() + np.vdot(leverages, second) - np.vdot(along, first))

        return np.append(slope[state.free], self._theta_slope(state, by_terms, slope))

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
        if w.any() and not np.isfinite(finite_sum(terms[0])):  # out of the likelihood's range elsewhere
            return np.zeros(len(index)), self.problem.offset, self.problem.derivatives(self.problem.offset, theta)
        return w, eta, terms

    def _mode(
        self, active: Active, alpha: FloatArray, theta: FloatArray, start: Start
    ) -> tuple[FloatArray, FloatArray, Terms, Posterior | None]:
        """Maximise the log posterior over w by Newton steps, halved until they climb.

        Also gives the last factorisation, if it is one at the mode itself.
        """
        w, eta, terms = start
        del start  # as many numbers as rows several times over, of which nobody else may have need
        height = finite_sum(terms[0]) - 0.5 * float(alpha @ w**2)
        for number in range(_MAX_NEWTON):
            factor = active.steps(alpha, terms)  # first: the gradient may come with it
            gradient = active.pulled_back(terms[1]) - alpha * w
            step = factor.solve(gradient)
            decrement = float(gradient @ step)
            if number >= _SLOW and decrement < 1.0:
                true = active.posterior(alpha, terms, factor)
                if true is not factor:  # cut off at zero a curvature is too large, and every step falls short
                    step = true.solve(gradient)
                    decrement = float(gradient @ step)
            if decrement <= max(_DECREMENT, _ROUNDING * abs(height)):
                return w, eta, terms, factor
            if number >= _SLOW and np.abs(active.predictor(step)).max() <= _ROUNDING * np.abs(eta).max():
                return w, eta, terms, factor  # predictors move by their own rounding errors, which tiny noise magnifies
            scale = 1.0
            for _ in range(_MAX_HALVINGS):
                new, moved = w + scale * step, eta + active.predictor(scale * step)
                new_terms = self.problem.derivatives(moved, theta)
                new_height = finite_sum(new_terms[0]) - 0.5 * float(alpha @ new**2)
                if new_height > height or (new_height == height and scale > CREEP):
                    break
                scale /= 2
                if scale * decrement < _FAINT:
                    return w, eta, terms, factor
            else:
                return w, eta, terms, factor  # no ascent left above rounding error
            w, eta, terms, height = new, moved, new_terms, new_height
            del moved, new_terms
        return w, eta, terms, None


def _carried_over(near: State, index: IntArray) -> tuple[FloatArray, bool]:
    """Weights of a nearby state for the columns ``index``, zero for new ones; and whether none of its own is lost.

    What the lost ones explained is left to the others, as far as the Gaussian there says they can.
    """
    if index is near.index:
        return near.mean, True
    mean, place = near.mean, {column: position for position, column in enumerate(near.index.tolist())}
    at = np.array([place.pop(column, -1) for column in index.tolist()], dtype=np.intp)
    lost = np.fromiter(place.values(), dtype=np.intp, count=len(place))
    if len(lost) and isinstance(near.posterior, Primal):
        Sigma = near.posterior.covariance[:, lost]
        mean = mean - Sigma @ np.linalg.solve(Sigma[lost], mean[lost])
    w, stays = np.zeros(len(at)), at >= 0
    w[stays] = mean[at[stays]]
    return w, not place
