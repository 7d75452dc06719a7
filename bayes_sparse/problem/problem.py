"""What an evidence method sees: arrays and compiled functions, never PyMC, pandas or xarray.

The log-likelihood is ``sum_n weights_n * l(eta_n)`` with ``eta = offset + Phi w``; the prior on ``w`` is Gaussian
with one precision a column: free ones (to be found by type-II maximum likelihood) and fixed ones (bias, columns
the user keeps, intercepts of a declared model). Nuisance parameters are the vector ``theta``, on the unconstrained
scale.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bayes_sparse.problem.active import LinearActive, Terms
from bayes_sparse.problem.design import FloatArray
from bayes_sparse.problem.sparse_design import AnyDesign

__all__ = ["Pointwise", "Problem"]

_MANY = 3 * 10**6  # log densities that are worth compiling something for

type Pointwise = Callable[[FloatArray, FloatArray], tuple[FloatArray, ...]]


@dataclass(frozen=True)
class Problem:
    """A sparse Gaussian prior on the columns of a design and a likelihood along the predictor.

    Attributes
    ----------
    design : Design
        The n x (M + q) columns.
    y : array (n,)
        Targets; for a normal likelihood the evidence is computed from them directly.
    free : bool array (M + q,)
        True where the precision is to be found; the others have `fixed_precision`.
    fixed_precision : array or callable
        Precision of every column that is not free, in column order; or ``fixed_precision(theta)`` that gives them.
        Zero stands for a flat (improper) prior, which adds nothing to the evidence.
    pointwise : callable
        ``pointwise(eta, theta)`` gives l and its first three derivatives along eta, each of shape (n,), without
        the observation weights.
    offset : array (n,)
        Known part of the predictor.
    weights : array (n,), optional
        A weight of 2 counts a row twice.
    theta : array (k,)
        Where the search over nuisance parameters starts.
    theta_bounds : array (k, 2)
        Box the search stays in.
    log_prior : callable, optional
        Log-density of theta on the unconstrained scale (with the Jacobian).
    normal : bool
        The likelihood is normal with the predictor as its mean. Then theta is (log sigma,), or empty and `sigma`
        is known.
    sigma : float or array (n,)
        Known noise of a normal likelihood with an empty theta.
    value : callable, optional
        ``value(eta, theta)`` gives l alone, where there is a quicker way than `pointwise`.
    """

    design: AnyDesign
    y: FloatArray
    free: NDArray[np.bool_]
    fixed_precision: FloatArray | Callable[[FloatArray], FloatArray]
    pointwise: Pointwise
    offset: FloatArray
    weights: FloatArray | None = None
    theta: FloatArray = field(default_factory=lambda: np.empty(0))
    theta_bounds: FloatArray = field(default_factory=lambda: np.empty((0, 2)))
    log_prior: Callable[[FloatArray], float] | None = None
    normal: bool = False
    sigma: float | FloatArray = 1.0
    value: Callable[[FloatArray, FloatArray], FloatArray] | None = None

    def precisions(self, index: NDArray[np.intp], alpha: FloatArray, theta: FloatArray) -> FloatArray:
        """Precisions of the active columns: those given where free, those of the declaration where fixed."""
        free = self.free[index]
        if free.all():
            return alpha
        return np.where(free, alpha, self._fixed_by_column(theta)[index])

    def _fixed_by_column(self, theta: FloatArray) -> FloatArray:
        if not callable(self.fixed_precision):
            return self._constant_by_column
        full = np.zeros(len(self.free))
        full[~self.free] = self.fixed_precision(theta)
        return full

    @cached_property
    def _constant_by_column(self) -> FloatArray:
        full = np.zeros(len(self.free))
        full[~self.free] = np.asarray(self.fixed_precision)
        return full

    def active(self, index: NDArray[np.intp]) -> LinearActive:
        """Some columns, ready for products."""
        return LinearActive(self.design, index)

    def predictor(self, w: FloatArray, index: NDArray[np.intp]) -> FloatArray:
        """Predictors (S, n) of many draws of some columns' weights (S, k)."""
        return np.asarray(self.offset + w @ self.design.columns(index).T)

    def derivatives(self, eta: FloatArray, theta: FloatArray) -> Terms:
        """`pointwise` with the observation weights."""
        terms = self.pointwise(eta, theta)
        return terms if self.weights is None else tuple(self.weights * term for term in terms)

    def separates(self, eta: FloatArray) -> bool:
        """Whether a predictor puts every observation of a two-valued target on its own side of zero."""
        if self.theta.size or not np.isin(self.y, (0.0, 1.0)).all():
            return False
        ones = self.y == 1
        return bool(ones.any() and not ones.all() and eta[ones].min() > 0 > eta[~ones].max())

    def noise(self, theta: FloatArray) -> FloatArray:
        """Sd of a normal likelihood."""
        return np.asarray(np.exp(theta[0]) if theta.size else self.sigma, dtype=float)

    def terms(self, eta: FloatArray, theta: FloatArray) -> tuple[FloatArray, ...]:
        """Weighted log-likelihood and its first two derivatives along eta; a normal one needs nothing compiled."""
        if self.normal:
            sigma = self.noise(theta)
            z = (self.y - eta) / sigma
            terms = (-0.5 * z**2 - np.log(sigma) - 0.5 * np.log(2 * np.pi), z / sigma, np.zeros_like(z) - sigma**-2.0)
        else:
            value, first, second, _ = self.pointwise(eta, theta)
            terms = (value, first, second)
        return terms if self.weights is None else tuple(self.weights * term for term in terms)

    def log_densities(self, eta: FloatArray, theta: FloatArray) -> FloatArray:
        """Log-likelihood of each observation, without the weights, for many draws of eta (S, n) and theta (S, k)."""
        if not self.normal and self.value is not None and eta.size > _MANY:
            return np.stack([self.value(*draw) for draw in zip(eta, theta, strict=True)])
        if not self.normal:
            return np.stack([self.pointwise(*draw)[0] for draw in zip(eta, theta, strict=True)])
        log_sigma = theta[:, :1] if theta.shape[1] else np.log(self.sigma)
        return np.asarray(-0.5 * ((self.y - eta) / np.exp(log_sigma)) ** 2 - log_sigma - 0.5 * np.log(2 * np.pi))

    def log_joint(self, eta: FloatArray, theta: FloatArray) -> FloatArray:
        """Log-likelihood of all observations together, with the weights, for many draws."""
        return self.total(self.log_densities(eta, theta))

    def total(self, each: FloatArray) -> FloatArray:
        """Sum over observations, with the weights, of their log-likelihoods (S, n)."""
        return np.asarray(each.sum(axis=1) if self.weights is None else each @ self.weights)
