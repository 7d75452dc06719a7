"""A normal likelihood needs no approximation: everything follows from cross-products of the columns.

``log E = N/2 log(beta / 2 pi) - (beta ||t - Phi w||^2 + w'Aw)/2 + (sum log alpha - log det(beta G + A))/2`` with
``G = Phi'Phi`` and ``beta = 1/sigma^2``; it equals the multivariate normal log-density of t. Only the columns of G
that belong to columns ever active are computed (all of them at once when the design is tall).
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy

import numpy as np
from scipy.linalg import lapack

from bayes_sparse.common.types import FloatArray, IntArray
from bayes_sparse.inference.evidence.exchanges import largest
from bayes_sparse.inference.evidence.state import (
    Objective,
    Scores,
    State,
    hyper_curvature,
    log_prior,
    precision_curvature,
    precision_slope,
)
from bayes_sparse.problem.active import columns_counted
from bayes_sparse.problem.classes import AnyProblem
from bayes_sparse.problem.gaussian import Dual, Primal
from bayes_sparse.problem.problem import Problem
from bayes_sparse.problem.streamed_design import StreamedDesign

__all__ = ["Exact"]

_SMALL = 1e-6  # below this fraction of its terms a residual sum of squares is computed directly
_LOST = 1e-8  # below this fraction a sparsity has lost too many digits as a difference of cross-products
_AHEAD = 8  # columns whose cross-products are made before they are asked for
_SHARP = 1e6  # where the signal's power is this many times the noise's, cross-products are not to be trusted at all


class Exact:
    """Exact Gaussian posterior of a normal likelihood.

    Parameters
    ----------
    problem : Problem
        With ``normal=True``.
    objective : Objective
        What is maximised.
    """

    name = "exact"

    def __init__(self, problem: AnyProblem, objective: Objective) -> None:
        if not isinstance(problem, Problem) or not problem.normal:
            raise ValueError("approximation='exact' is for a normal likelihood; others take approximation='laplace'.")
        self.problem, self.objective = problem, objective
        design = problem.design
        self._t = problem.y - problem.offset
        self._weights, self._constant = _row_weights(problem)
        weighted = self._weigh(self._t)
        self.count: float = problem.count
        self._power = float(weighted @ self._t)
        self._known: dict[int, int] = {}
        self._scored: tuple[FloatArray, FloatArray] | None = None
        self._products: dict[bytes, FloatArray] = {}
        self._last: IntArray | None = None
        self._block: FloatArray = np.empty((0, 0))
        tall = design.width <= min(1000, design.n // 4)
        if tall:
            self._gram, self._moment = design.gram(self._weights), design.transposed_times(weighted)
            self._squares = self._gram.diagonal()
            self._known = {i: i for i in range(design.width)}
        elif not self._streamed:
            self._gram, self._moment = np.empty((design.width, 0)), design.transposed_times(weighted)
            self._squares = design.squares(self._weights)
        else:  # in one pass, with the products of the columns that are never left out
            fixed = np.flatnonzero(~problem.free)
            rows = np.ones(design.n) if self._weights is None else self._weights
            self._gram, self._squares, self._moment = design.scan(design.columns(fixed), rows, weighted)
            self._known = {i: j for j, i in enumerate(fixed.tolist())}

    def with_objective(self, objective: Objective) -> Exact:
        """The same for another objective; the cross-products computed so far come along."""
        other = copy(self)
        other.objective, other._known, other._gram = objective, dict(self._known), self._gram.copy()
        return other

    def of(self, problem: AnyProblem) -> Exact:
        """The same of another problem."""
        return Exact(problem, self.objective)

    def at(self, index: IntArray, alpha: FloatArray, theta: FloatArray, near: State | None = None) -> State:
        """Posterior, evidence and objective at given hyper-parameters (``near`` is not needed)."""
        design, beta = self.problem.design, self._beta(theta)
        alpha = self.problem.precisions(index, alpha, theta)
        posterior: Primal | Dual
        if columns_counted(self.problem.free[index]) > design.n and alpha.all():
            b = np.full(design.n, beta) if self._weights is None else beta * self._weights
            posterior = Dual(design.columns(index), b, alpha)
            w, left = posterior.regression(np.sqrt(b) * self._t)
            rss = float(left @ left) / beta
        elif self._sharp(beta) and len(index):
            posterior, w = self._by_rotation(index, alpha, beta)
            rss = self._residual_power(index, w)
        else:
            posterior = Primal(beta * self._active(index), alpha)
            w = posterior.solve(beta * self._moment[index])
            rss = self._residual_power(index, w)
        free, grouping = self.problem.free[index], self.problem.grouping
        groups = None if grouping is None else grouping.label[index]
        log_likelihood = self._constant + 0.5 * (self.count * np.log(beta) - beta * rss)
        log_evidence = float(log_likelihood + log_prior(alpha, w) - 0.5 * posterior.log_determinant)
        J = self.objective.value(log_evidence, posterior, free, theta, groups)
        L = float(log_likelihood)
        return State(index, alpha, free, theta, w, posterior, L, log_evidence, J, residual_power=rss, groups=groups)

    def slope(self, state: State) -> FloatArray:
        """Gradient of the objective in (log alpha of free columns, log sigma)."""
        o = self.objective
        slope = precision_slope(state, o.smoothness, o.a, o.b, o.floor, o.inverse)[state.free]
        if not state.theta.size:
            return slope
        beta = self._beta(state.theta)
        by_log_beta = 0.5 * (self.count - beta * state.residual_power - state.gamma.sum())
        if o.smoothness:
            by_log_beta -= o.smoothness * state.sharpened
        prior = 0.0 if o.log_prior is None else _derivative(o.log_prior, state.theta)
        return np.append(slope, prior - 2 * by_log_beta)

    def curvature(self, state: State) -> FloatArray:
        """Hessian of the objective in the same coordinates.

        The column of log beta follows from the scaling law: multiplying every precision and beta by one factor
        leaves the posterior mean and all gammas as they are.
        """
        o = self.objective
        full = precision_curvature(state, o.smoothness)
        free = slice(None) if state.free.all() else state.free
        if not state.theta.size:
            return self._with_hyper(full, state)[free][:, free]
        quadratic = state.alpha * state.mean**2
        cross = -full.sum(axis=1) - 0.5 * quadratic
        own = -0.5 * self._beta(state.theta) * state.residual_power - cross.sum()
        inner = self._with_hyper(full, state)[free][:, free]
        k = len(inner)
        out = np.empty((k + 1, k + 1))
        out[:k, :k] = inner
        out[:k, k] = out[k, :k] = -2 * cross[free]
        out[k, k] = 4 * own + (0.0 if o.log_prior is None else _derivative(o.log_prior, state.theta, order=2))
        return out

    def followed(self, state: State, step: FloatArray) -> State:
        """The state: nothing is searched for."""
        return state

    def theta_step(self, state: State) -> FloatArray:
        """A step in log sigma alone: the slope over its curvature in a model that fits as well as this one."""
        return self.slope(state)[int(state.free.sum()) :] / (2 * self.count)

    def scores(self, state: State) -> Scores:
        """Sparsity and quality of every column."""
        assert isinstance(state.posterior, Primal | Dual)
        beta = self._beta(state.theta)
        if self._sharp(beta) and len(state.index):
            return self._scores_by_rotation(state, beta)
        C, full = self._cross(state.index), beta * self._squares
        overlap = C @ (beta * state.posterior.covariance)
        S = full - beta * np.einsum("ij,ij->i", overlap, C)
        Q = beta * (self._moment - C @ state.mean)
        S[_LOST * full > S] = 0.0  # a column the active ones carry already, to all digits: it has nothing to add
        self._scored = S, Q
        return Scores(S, Q, overlap)

    def cross_products(self, state: State, columns: IntArray) -> FloatArray:
        """``beta Phi' W Phi`` of some columns; the products are kept, for a group is asked for again and again."""
        key = columns.tobytes()
        if key not in self._products:
            own = self.problem.design.columns(columns)
            self._products[key] = own.T @ self._weigh(own)
        return np.asarray(self._beta(state.theta) * self._products[key])

    def _by_rotation(self, index: IntArray, alpha: FloatArray, beta: float) -> tuple[Primal, FloatArray]:
        """Posterior and mode from the columns themselves: their cross-products would square the condition number."""
        half, Q, R = self._rotation(index, alpha, beta)
        w, _ = lapack.dtrtrs(R, Q[: len(half)].T @ (half * self._t))
        signs = np.sign(R.diagonal())
        return Primal.of_factor(np.asfortranarray((signs[:, None] * R).T), alpha), np.asarray(w)

    def _scores_by_rotation(self, state: State, beta: float) -> Scores:
        """Sparsity and quality from what is left of each column, and of the targets, beside the active ones."""
        design = self.problem.design
        half, Q, R = self._rotation(state.index, state.alpha, beta)
        top, t = Q[: len(half)], half * self._t
        S, quality, overlap = np.zeros(design.width), np.zeros(design.width), np.zeros((design.width, len(R)))
        for part in np.array_split(np.arange(design.width), 1 + design.width * design.n // 2**23):
            columns = half[:, None] * design.columns(part)
            inside = top.T @ columns
            rest = np.vstack([columns, np.zeros((len(R), len(part)))]) - Q @ inside
            rest -= Q @ (Q.T @ rest)  # once more: the first difference leaves rounding errors along Q
            S[part] = np.einsum("ij,ij->j", rest, rest)
            quality[part] = t @ rest[: len(half)]
            overlap[part] = lapack.dtrtrs(R, inside)[0].T
        return Scores(S, quality, overlap)

    def _rotation(self, index: IntArray, alpha: FloatArray, beta: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Square roots of the row weights, and Q R of the weighted columns on top of the prior's square root."""
        half = np.sqrt(np.full(len(self._t), beta) if self._weights is None else beta * self._weights)
        stacked = np.vstack([half[:, None] * self.problem.design.columns(index), np.diag(np.sqrt(alpha))])
        Q, R = np.linalg.qr(stacked)
        return half, Q, R

    def _sharp(self, beta: float) -> bool:
        return beta * self._power > _SHARP * self.count

    def _beta(self, theta: FloatArray) -> float:
        return float(np.exp(-2 * theta[0])) if theta.size else 1.0

    def _with_hyper(self, curvature: FloatArray, state: State) -> FloatArray:
        o = self.objective
        return (
            curvature + np.diag(hyper_curvature(state, o.a, o.b, o.floor, o.inverse)) if o.a or o.proper else curvature
        )

    def _residual_power(self, index: IntArray, w: FloatArray) -> float:
        """Weighted residual sum of squares at w; directly from the residuals where the fit is nearly perfect."""
        G = self._active(index)
        rss = self._power - 2 * float(self._moment[index] @ w) + float(w @ G @ w)
        if rss > _SMALL * self._power:
            return rss
        residual = self._t - self.problem.design.times(w, index)
        return float(residual @ self._weigh(residual))

    def _active(self, index: IntArray) -> FloatArray:
        """Cross-products of the active columns with each other, kept while the set stays.

        A column not active before needs no product with the data yet: its products with the others stand in
        their columns already, because the matrix is symmetric.
        """
        if index is self._last:
            return self._block
        slots = np.array([self._known.get(i, -1) for i in index.tolist()], dtype=np.intp)
        old, new = np.flatnonzero(slots >= 0), np.flatnonzero(slots < 0)
        G = np.empty((len(index), len(index)))
        G[:, old] = self._gram[index[:, None], slots[old]]
        if len(new):
            G[old[:, None], new] = G[new[:, None], old].T
        if len(new) == 1:
            G[new, new] = self._squares[index[new]]
        elif len(new):
            columns = self.problem.design.columns(index[new])
            G[new[:, None], new] = columns.T @ self._weigh(columns)
        self._last, self._block = index, G
        return G

    def _cross(self, index: IntArray) -> FloatArray:
        """Cross-products of the active columns with all columns, computing those never needed before."""
        new = [i for i in index.tolist() if i not in self._known]
        if new:
            new += self._next(new)
            columns = self.problem.design.cross(self.problem.design.columns(np.array(new)), self._weights)
            start = len(self._known)
            if start + len(new) > self._gram.shape[1]:
                grown = np.empty((len(columns), max(2 * start, start + len(new), 16)), order="F")
                grown[:, :start] = self._gram[:, :start]
                self._gram = grown
            self._gram[:, start : start + len(new)] = columns
            self._known.update({i: start + j for j, i in enumerate(new)})
        return self._gram[:, [self._known[i] for i in index.tolist()]]

    def _next(self, new: list[int]) -> list[int]:
        """Columns that will probably be asked for soon: those that are computed anew take as long for a few more."""
        if self._scored is None or not self._streamed:
            return []
        S, Q = self._scored
        promise = np.where((S > 0) & self.problem.free, Q**2 / np.where(S > 0, S, 1.0), 0.0)
        return [i for i in largest(promise, _AHEAD) if i not in self._known and i not in new]

    @property
    def _streamed(self) -> bool:
        return isinstance(self.problem.design, StreamedDesign)

    def _weigh(self, rows: FloatArray) -> FloatArray:
        if self._weights is None:
            return rows
        return self._weights * rows if rows.ndim == 1 else self._weights[:, None] * rows


def _row_weights(problem: Problem) -> tuple[FloatArray | None, float]:
    """Weights of the squared residuals beside beta, and the part of the log-density that never changes."""
    n = problem.design.n
    constant = -0.5 * problem.count * np.log(2 * np.pi)
    if problem.theta.size:
        return problem.weights, constant
    count = np.ones(n) if problem.weights is None else problem.weights
    sigma = np.broadcast_to(problem.sigma, (n,))
    return count / sigma**2, constant - float(count @ np.log(sigma))


def _derivative(f: Callable[[FloatArray], float], theta: FloatArray, order: int = 1, step: float = 1e-4) -> float:
    """Derivative of a one-dimensional log prior by central differences: smooth, cheap, and given by the user."""
    up, down = f(theta + step), f(theta - step)
    if order == 1:
        return float((up - down) / (2 * step))
    return float((up - 2 * f(theta) + down) / step**2)
