"""Several classes by a true softmax: ``log p(y = c) = eta_c - log sum_k exp(eta_k)``, ``eta = bias + W phi``.

The free weights are W, classes by columns in C order; adding the same vector to every class changes nothing, so some
directions have no curvature at all, and whoever diagonalises drops them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr
from scipy.special import log_softmax

from bayes_sparse.common.types import FloatArray
from bayes_sparse.problem.classes import coupling
from bayes_sparse.problem.design import Design
from bayes_sparse.problem.gaussian import weighted_gram
from bayes_sparse.problem.sparse_design import AnyDesign

__all__ = ["Softmax"]


@dataclass(frozen=True, eq=False)
class Softmax:
    """The surface of a softmax over classes.

    Attributes
    ----------
    design : Design
        The M basis functions, the same for every class; its extra columns (a constant) have fixed weights a class.
    y : int array (n,)
        Class of each observation.
    classes : int
        How many there are.
    precision : array (q,)
        Prior precisions of the fixed weights, extra columns by classes.
    weights : array (n,), optional
        A weight of 2 counts a row twice.
    tensor : array (classes, n, k), optional
        Where the free weights are confined to k directions: what each does to each class.
    mean_square : float, optional
        Mean squared column, where it is that of other columns than the design's.
    """

    design: AnyDesign
    y: NDArray[np.intp]
    classes: int
    precision: FloatArray
    weights: FloatArray | None = None
    tensor: FloatArray | None = None
    mean_square: float | None = None

    @property
    def d(self) -> int:
        """Free weights."""
        return self.classes * self.design.M if self.tensor is None else int(self.tensor.shape[2])

    @property
    def q(self) -> int:
        """Fixed weights."""
        return self.classes * self.design.q

    @property
    def n(self) -> int:
        """Observations."""
        return self.design.n

    @property
    def count(self) -> float:
        """Observations, each as often as its weight says."""
        return float(self.n if self.weights is None else self.weights.sum())

    @property
    def theta(self) -> FloatArray:
        """No nuisance parameters."""
        return np.empty(0)

    @property
    def theta_bounds(self) -> FloatArray:
        """No nuisance parameters."""
        return np.empty((0, 2))

    def log_prior(self, theta: FloatArray) -> float:
        """No nuisance parameters."""
        return 0.0

    def fixed_precision(self, theta: FloatArray) -> FloatArray:
        """Prior precisions of the fixed weights."""
        return self.precision

    def start(self) -> FloatArray:
        """No effect of anything."""
        return np.zeros(self.d + self.q)

    def unit(self, theta: FloatArray) -> float:
        """Mean squared column, each row as often as it counts: log odds have no units of their own."""
        if self.mean_square is not None:
            return self.mean_square
        M = self.design.M
        return float(self.design.squares(self.weights)[:M].sum()) / (self.count * max(M, 1))

    def look(self, v: FloatArray, theta: FloatArray) -> _Look:
        """The likelihood at a point."""
        return _Look(self, self.logits(v))

    def along(self, Q: FloatArray) -> Softmax:
        """Directions become columns of their own, one matrix a class."""
        if self.tensor is not None:
            return replace(self, tensor=self.tensor @ Q.T)
        by_class = Q.reshape(len(Q), self.classes, self.design.M)
        return replace(self, tensor=np.stack([self.design.project(by_class[:, c].T) for c in range(self.classes)]))

    def reduced(self) -> tuple[Softmax, FloatArray | None]:
        """The same in at most n columns, and the rows T with ``w = T' w_reduced``; None if there is nothing to do."""
        M, n, C = self.design.M, self.design.n, self.classes
        if n >= M:
            return self, None
        T, R = qr(self.design.columns(np.arange(M)).T, mode="economic", overwrite_a=True, check_finite=False)
        narrow = Design(np.ascontiguousarray(R.T), extra=self.design.extra)
        return replace(self, design=narrow, mean_square=self.unit(self.theta)), np.asarray(
            np.kron(np.eye(C), T.T), dtype=float
        )

    def log_densities(self, v: FloatArray, theta: FloatArray) -> FloatArray:
        """Log-probability of each observation's class for every draw."""
        rows = np.arange(self.n)
        return np.stack([log_softmax(self.logits(draw), axis=1)[rows, self.y] for draw in v])

    def logits(self, v: FloatArray) -> FloatArray:
        """Predictors of all classes, (n, classes)."""
        fixed = self.design.extra @ v[self.d :].reshape(self.design.q, self.classes)
        if self.tensor is not None:
            return np.asarray((self.tensor @ v[: self.d]).T + fixed)
        return self.design.project(v[: self.d].reshape(self.classes, self.design.M).T) + fixed

    def pulled_back(self, slopes: FloatArray) -> FloatArray:
        """Gradient over v from slopes along the predictors, (n, classes)."""
        if self.tensor is not None:
            free = np.einsum("cnk,nc->k", self.tensor, slopes)
        else:
            free = self.design.cross(slopes)[: self.design.M].T.ravel()
        return np.append(free, (self.design.extra.T @ slopes).ravel())

    def hessian(self, P: FloatArray) -> FloatArray:
        """H from class probabilities (n, classes), positive semi-definite always."""
        weights = np.ones(self.n) if self.weights is None else self.weights
        return self._by_tensor(P, weights) if self.tensor is not None else self._by_blocks(P, weights)

    def _by_tensor(self, P: FloatArray, weights: FloatArray) -> FloatArray:
        """Relative to the most probable class of each row: as a difference, the rest would lose its digits in it."""
        d, C = self.d, self.classes
        assert self.tensor is not None
        likely, rows = P.argmax(axis=1), np.arange(self.n)
        reference = np.zeros((self.n, d + self.q))
        reference[:, :d] = self.tensor[likely, rows]
        for c in range(C):
            reference[likely == c, d + c :: C] = self.design.extra[likely == c]
        H, mixed = np.zeros((d + self.q, d + self.q)), np.zeros((self.n, d + self.q))
        for c in range(C):
            whole = np.zeros((self.n, d + self.q))
            whole[:, :d] = self.tensor[c]
            whole[:, d + c :: C] = self.design.extra
            whole -= reference
            H += weighted_gram(whole, weights * P[:, c])
            mixed += P[:, c, None] * whole
        return H - weighted_gram(mixed, weights)

    def _by_blocks(self, P: FloatArray, weights: FloatArray) -> FloatArray:
        M, C = self.design.M, self.classes
        H = np.empty((self.d + self.q, self.d + self.q))
        where = [(slice(c * M, (c + 1) * M), slice(self.d + c, None, C)) for c in range(C)]
        parts = slice(M), slice(M, None)
        weighted = weights[:, None] * P
        for c in range(C):
            for k in range(c + 1):
                between = coupling(weighted, weights, c, k)  # of two classes negative: products with roots are cheaper
                block = self.design.gram(between) if c == k else -self.design.gram(-between)
                for i, j in product(range(2), repeat=2):
                    H[where[c][i], where[k][j]] = H[where[k][i], where[c][j]] = block[parts[i], parts[j]]
        return H


class _Look:
    """A softmax at one set of predictors."""

    def __init__(self, surface: Softmax, logits: FloatArray) -> None:
        self._surface = surface
        self._log_p = log_softmax(logits, axis=1)

    @cached_property
    def value(self) -> float:
        """Log-likelihood."""
        s = self._surface
        terms = self._log_p[np.arange(s.n), s.y]
        total = float(terms.sum() if s.weights is None else terms @ s.weights)
        return total if np.isfinite(total) else -np.inf

    @cached_property
    def gradient(self) -> FloatArray:
        """Observed less expected, pulled back."""
        s = self._surface
        slopes = -np.exp(self._log_p)
        slopes[np.arange(s.n), s.y] += 1.0
        return s.pulled_back(slopes if s.weights is None else slopes * s.weights[:, None])

    def curvature(self) -> FloatArray:
        """H; a softmax is log-concave."""
        return self._surface.hessian(np.exp(self._log_p))

    def steps(self) -> FloatArray:
        """The curvature itself."""
        return self.curvature()

    @property
    def separates(self) -> bool:
        """Every observation's class the most probable."""
        right, weights = self._log_p.argmax(axis=1) == self._surface.y, self._surface.weights
        return bool((right if weights is None else right[weights > 0]).all())
