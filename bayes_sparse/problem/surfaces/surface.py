"""The log-likelihood as a function of weights: all that a one-step method asks of a model.

``v`` is d free weights, whose prior is to be found, followed by q fixed ones (bias, intercepts) with a known normal
prior. Nuisance parameters are the vector ``theta``, on the unconstrained scale. `Linear` is the surface of a problem
with one linear predictor.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Protocol

import numpy as np
from scipy.linalg import lapack

from bayes_sparse.common.types import FloatArray
from bayes_sparse.problem.design import Design
from bayes_sparse.problem.problem import Problem
from bayes_sparse.problem.sparse_design import AnyDesign

__all__ = ["Linear", "Look", "Surface"]

_SMALL = 2**15  # numbers of a design that is looked at as one matrix: it stays in the cache


class Look(Protocol):
    """What the likelihood looks like at one point."""

    @property
    def value(self) -> float:
        """Log-likelihood; minus infinity where it is not finite."""

    @property
    def gradient(self) -> FloatArray:
        """Its gradient, (d + q,)."""

    def curvature(self) -> FloatArray:
        """H, minus its Hessian, (d + q, d + q); not positive where the likelihood is not log-concave."""

    def steps(self) -> FloatArray:
        """A version of H that is never negative, for Newton steps."""

    @property
    def separates(self) -> bool:
        """Whether every observation of a classification is on its own side here."""


class Surface(Protocol):
    """A likelihood over weights, with the start and prior of its nuisance parameters."""

    @property
    def d(self) -> int:
        """Number of free weights."""

    @property
    def q(self) -> int:
        """Number of fixed weights."""

    @property
    def n(self) -> int:
        """Number of observations."""

    @property
    def count(self) -> float:
        """The same, each as often as its weight says."""

    @property
    def weights(self) -> FloatArray | None:
        """How often each row counts, None for once."""

    @property
    def theta(self) -> FloatArray:
        """Where the search over nuisance parameters starts."""

    @property
    def theta_bounds(self) -> FloatArray:
        """Box that search stays in, (t, 2)."""

    def log_prior(self, theta: FloatArray) -> float:
        """Log-density of the nuisance parameters."""

    def fixed_precision(self, theta: FloatArray) -> FloatArray:
        """Prior precisions of the q fixed weights; zero for a flat prior."""

    def start(self) -> FloatArray:
        """Where a search over v begins."""

    def unit(self, theta: FloatArray) -> float:
        """Size of a ridge that means the same in all units: mean squared column times the likelihood's own scale."""

    def look(self, v: FloatArray, theta: FloatArray) -> Look:
        """The likelihood at a point."""

    def along(self, Q: FloatArray) -> Surface:
        """The same with the free weights confined to ``w = Q' u``, for Q of shape (k, d)."""

    def reduced(self) -> tuple[Surface, FloatArray | None]:
        """The same in fewer free weights where there are more than can be told from zero, with ``w = T' w_reduced``."""

    def log_densities(self, v: FloatArray, theta: FloatArray) -> FloatArray:
        """Log-likelihood of each observation, unweighted, for draws v (S, d + q) and theta (S, t): (S, n)."""


class Linear:
    """The surface of a problem with a linear predictor.

    Parameters
    ----------
    problem : Problem
        Its free columns must be the design's M basis functions: see `of_problem`.
    scale_free : bool
        The predictor has no units of its own (log odds, logs of a rate), as opposed to those of the targets.
    mean_square : float, optional
        Mean squared free column, where it is that of other columns than the problem's.
    """

    def __init__(self, problem: Problem, *, scale_free: bool = True, mean_square: float | None = None) -> None:
        self.problem, self.scale_free, self._mean_square = problem, scale_free, mean_square
        self.d = int(problem.free.sum())
        self.q, self.n = problem.design.width - self.d, problem.design.n
        self.theta, self.theta_bounds, self.weights = problem.theta, problem.theta_bounds, problem.weights
        self.count = problem.count
        self._index = np.arange(problem.design.width)

    @classmethod
    def of_problem(cls, problem: Problem, *, scale_free: bool) -> Linear:
        """With the free columns put before the fixed ones, which become the design's extra columns."""
        free, d = problem.free, int(problem.free.sum())
        if d == problem.design.M and free[:d].all():
            return cls(problem, scale_free=scale_free)
        order = np.append(np.flatnonzero(free), np.flatnonzero(~free))
        return cls(_with_design(problem, problem.design.ordered(order, d)), scale_free=scale_free)

    def log_prior(self, theta: FloatArray) -> float:
        """Log-density of the nuisance parameters."""
        return 0.0 if self.problem.log_prior is None or not theta.size else self.problem.log_prior(theta)

    def fixed_precision(self, theta: FloatArray) -> FloatArray:
        """Prior precisions of the fixed columns."""
        precision = self.problem.fixed_precision
        return np.asarray(precision(theta) if callable(precision) else precision, dtype=float)

    def start(self) -> FloatArray:
        """No effect of anything."""
        return np.zeros(self.d + self.q)

    def unit(self, theta: FloatArray) -> float:
        """Mean squared free column, in units of the likelihood's curvature where its predictor has units."""
        return self.mean_square * (1.0 if self.scale_free else self._curvature_scale(theta))

    @property
    def mean_square(self) -> float:
        """Mean squared free column, each row as often as it counts."""
        if self._mean_square is None:
            squares = self.problem.design.squares(self.weights)[: self.d]
            self._mean_square = float(squares.sum()) / (self.count * max(self.d, 1))
        return self._mean_square

    def _curvature_scale(self, theta: FloatArray) -> float:
        """Curvature of one observation's log-likelihood along the predictor where it fits exactly."""
        if self.problem.normal:
            curvature = np.broadcast_to(self.problem.noise(theta) ** -2.0, self.n)
        else:
            curvature = np.maximum(-self.problem.pointwise(self.problem.y, theta)[2], 0.0)
        return float(np.average(curvature, weights=self.problem.weights))

    def look(self, v: FloatArray, theta: FloatArray) -> _Look:
        """The likelihood at a point."""
        return _Look(self, self.predictor(v), theta)

    def predictor(self, v: FloatArray) -> FloatArray:
        """Of each row at a point."""
        if self._small is not None:
            return self.problem.offset + self._small @ v
        return self.problem.offset + self.problem.design.times(v, self._index)

    @cached_property
    def _small(self) -> FloatArray | None:
        """All columns where they are few: a search takes many steps, whose calls cost more than such products."""
        design = self.problem.design
        if isinstance(design, Design) and design.n * design.width <= _SMALL:
            return np.ascontiguousarray(design.columns(self._index))
        return None

    def pulled_back(self, slope: FloatArray) -> FloatArray:
        """``Phi' slope``, over all columns."""
        if self._small is not None:
            return slope @ self._small
        return self.problem.design.transposed_times(slope)

    def along(self, Q: FloatArray) -> Linear:
        """Directions become columns of their own."""
        narrow = self.problem.design.along(Q)
        return Linear(_with_design(self.problem, narrow, k=len(Q)), scale_free=self.scale_free)

    def reduced(self) -> tuple[Linear, FloatArray | None]:
        """The same surface in at most n free coordinates, and the orthonormal rows T with ``w = T' w_reduced``.

        With more columns than observations only the row space of Phi can be told from zero; an isotropic prior and the
        eigenvectors of the Hessian do not notice the rotation into it. None where there is nothing to reduce.
        """
        if self.d <= self.n:
            return self, None
        design = self.problem.design
        rows = design.by_rows() if isinstance(design, Design) else design.columns(np.arange(self.d))
        T, R = _orthonormal(rows.T)
        narrow = Design(np.ascontiguousarray(R.T), extra=design.extra)
        problem = _with_design(self.problem, narrow, k=self.n)
        rotated = Linear(problem, scale_free=self.scale_free, mean_square=self.mean_square)
        return rotated, T.T

    @cached_property
    def gram(self) -> FloatArray:
        """``Phi' W Phi`` with W the weights of the observations; not to be written to."""
        return self.problem.design.gram(self.problem.weights)

    def weighted_gram(self, b: FloatArray, theta: FloatArray) -> FloatArray:
        """``Phi' diag(b) Phi`` for curvatures b; where all observations have the same noise, the product is kept."""
        if self.problem.normal and (theta.size or np.ndim(self.problem.sigma) == 0):
            return np.asarray(self.gram * self.problem.noise(theta) ** -2.0)
        if self._small is None or b.min(initial=0.0) < 0:
            return self.problem.design.gram(b)
        half = self._small * np.sqrt(b)[:, None]
        return np.asarray(half.T @ half)

    def log_joint(self, v: FloatArray, theta: FloatArray) -> FloatArray:
        """Log-likelihood (S,) of all observations together, with their weights, for every draw and one theta."""
        return self.problem.log_joint_at(v, self._index, theta[None])

    def log_densities(self, v: FloatArray, theta: FloatArray) -> FloatArray:
        """Log-likelihood of each observation for every draw."""
        eta = self.problem.offset + v @ self.problem.design.columns(self._index).T
        return self.problem.log_densities(eta, theta)


class _Look:
    """A linear surface at one predictor."""

    def __init__(self, surface: Linear, eta: FloatArray, theta: FloatArray) -> None:
        self._surface, self._eta, self._theta = surface, eta, theta
        self._terms = surface.problem.terms(eta, theta)

    @cached_property
    def value(self) -> float:
        """Log-likelihood."""
        total = float(self._terms[0].sum())
        return total if np.isfinite(total) else -np.inf

    @cached_property
    def gradient(self) -> FloatArray:
        """Along every column."""
        return self._surface.pulled_back(self._terms[1])

    def curvature(self) -> FloatArray:
        """``Phi' B Phi`` with B the curvature of each observation, which may be negative."""
        return self._surface.weighted_gram(-self._terms[2], self._theta)

    def steps(self) -> FloatArray:
        """The same with negative curvatures cut off at zero."""
        return self._surface.weighted_gram(np.maximum(-self._terms[2], 0.0), self._theta)

    @property
    def separates(self) -> bool:
        """Every observation of a two-valued target on its own side of zero."""
        return self._surface.scale_free and self._surface.problem.separates(self._eta)


def _orthonormal(A: FloatArray) -> tuple[FloatArray, FloatArray]:
    """``A = T R`` with orthonormal columns T, of a tall A; as LAPACK gives them, without a copy."""
    n = A.shape[1]
    T, tau, _, _ = lapack.dgeqrf(A, lwork=64 * n)
    R = np.triu(T[:n])
    T, _, _ = lapack.dorgqr(T, tau, lwork=64 * n, overwrite_a=1)
    return T, R


def _with_design(problem: Problem, design: AnyDesign, k: int | None = None) -> Problem:
    d = int(problem.free.sum()) if k is None else k
    return replace(problem, design=design, free=np.arange(design.width) < d, groups=None)
