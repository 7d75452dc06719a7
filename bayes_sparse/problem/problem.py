"""What an evidence method sees: arrays and compiled functions, never PyMC, pandas or xarray.

The log-likelihood is ``sum_n weights_n * l(eta_n)`` with ``eta = offset + Phi w``; the prior on ``w`` is Gaussian
with one precision a column: free ones (to be found by type-II maximum likelihood) and fixed ones (bias, columns
the user keeps, intercepts of a declared model). Nuisance parameters are the vector ``theta``, on the unconstrained
scale. Along the predictor a likelihood is a few numbers an observation (its terms: log-likelihood, slope, curvature,
...); `Active` turns them into gradient, curvature and scores over the weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from bayes_sparse.common.types import FloatArray, IntArray
from bayes_sparse.problem.active import LinearActive, Terms, columns_counted
from bayes_sparse.problem.design import weighted_sd
from bayes_sparse.problem.groups import Groups
from bayes_sparse.problem.sparse_design import AnyDesign

__all__ = ["Fewer", "Pointwise", "Problem", "each_draw"]

_LOG_2PI = float(np.log(2 * np.pi))

type Pointwise = Callable[[FloatArray, FloatArray], tuple[FloatArray, ...]]
type Fewer = Callable[[FloatArray, FloatArray, int], tuple[FloatArray, ...]]


class _Drawn(Protocol):
    @property
    def pointwise(self) -> Pointwise: ...
    @property
    def fewer(self) -> Fewer | None: ...


def each_draw(problem: _Drawn, eta: FloatArray, theta: FloatArray) -> FloatArray:
    """Log-likelihood of each observation without the weights, one draw after another."""
    draws = zip(eta, np.broadcast_to(theta, (len(eta), theta.shape[1])), strict=True)
    if problem.fewer is None:
        return np.stack([problem.pointwise(*draw)[0] for draw in draws])
    return np.stack([problem.fewer(*draw, 0)[0] for draw in draws])


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
    many : callable, optional
        ``many(eta, theta)`` gives l at many predictors per observation, (S, n), and as many theta (S, k) or one (1, k),
        where there is a quicker way than one after another.
    fewer : callable, optional
        ``fewer(eta, theta, derivatives)`` gives l and as many of its derivatives, where that is quicker than all three.
    unit : float
        Spread of the targets where the predictor is in their units: what a prior on the weights is stated in.
    trials : float
        The largest target there can be, where targets are classes or counts out of a number.
    groups : int array (M + q,), optional
        Label of the group of each free column: columns of one group share their precision. None where every column has
        its own.
    some_rows : callable, optional
        ``some_rows(rows)`` gives the same problem of some observations alone, where there is such a thing.
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
    many: Callable[[FloatArray, FloatArray], FloatArray] | None = None
    fewer: Fewer | None = None
    unit: float = 1.0
    trials: float = 1.0
    groups: IntArray | None = None
    some_rows: Callable[[IntArray], Problem] | None = None

    predictors: ClassVar[int] = 1

    @cached_property
    def grouping(self) -> Groups | None:
        """Which free columns share their precision, None where none do."""
        return None if self.groups is None else Groups(self.groups, self.free)

    @cached_property
    def count(self) -> float:
        """Number of observations, each as often as its weight says."""
        return float(self.design.n if self.weights is None else self.weights.sum())

    @property
    def spread(self) -> float:
        """Sd of the targets of a normal likelihood, less the offset."""
        return weighted_sd(self.y - self.offset, self.weights)

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

    @cached_property
    def owner(self) -> IntArray:
        """The predictor that each column is part of: there is one."""
        return np.zeros(self.design.width, dtype=np.intp)

    def designs(self, names: list[str]) -> list[tuple[AnyDesign, list[str]]]:
        """The columns with the names of their basis functions."""
        return [(self.design, names)]

    def active(self, index: NDArray[np.intp], near: LinearActive | None = None) -> LinearActive:
        """Some columns, ready for products; near are others that are."""
        return LinearActive(self.design, index, self.count, columns_counted(self.free[index]), near)

    def predictor(self, w: FloatArray, index: NDArray[np.intp]) -> FloatArray:
        """Predictors (S, n) of many draws of some columns' weights (S, k)."""
        return np.asarray(self.offset + w @ self.design.columns(index).T)

    def row_predictor(self, w: FloatArray, index: NDArray[np.intp]) -> FloatArray:
        """Predictors (n,) of the rows as they were handed in, at one set of weights."""
        return self.offset + self.design.times(w, index)

    def log_joint_at(self, w: FloatArray, index: NDArray[np.intp], theta: FloatArray) -> FloatArray:
        """Log-likelihood (S,) of all observations together at draws of some columns' weights (S, k)."""
        return self.log_joint(self.predictor(w, index), theta)

    def derivatives(self, eta: FloatArray, theta: FloatArray, count: int = 3) -> Terms:
        """`pointwise` with the observation weights; so many derivatives at least."""
        terms = self.pointwise(eta, theta) if self.fewer is None else self.fewer(eta, theta, count)
        return terms if self.weights is None else tuple(self.weights * term for term in terms)

    @property
    def broadcasts(self) -> bool:
        """Whether `derivatives` takes many predictors per observation (S, n) at once."""
        return self.fewer is None and bool(getattr(self.pointwise, "broadcasts", False))

    def separates(self, eta: FloatArray) -> bool:
        """Whether a predictor puts every observation of a two-valued target on its own side of zero."""
        if self.theta.size or not np.isin(self.y, (0.0, self.trials)).all():
            return False
        there = True if self.weights is None else self.weights > 0
        ones, zeros = (self.y == self.trials) & there, (self.y == 0) & there
        return bool(ones.any() and zeros.any() and eta[ones].min() > 0 > eta[zeros].max())

    def noise(self, theta: FloatArray) -> FloatArray:
        """Sd of a normal likelihood."""
        return np.asarray(np.exp(theta[0]) if theta.size else self.sigma, dtype=float)

    def terms(self, eta: FloatArray, theta: FloatArray) -> tuple[FloatArray, ...]:
        """Weighted log-likelihood and its first two derivatives along eta; a normal one needs nothing compiled."""
        terms: Terms
        if self.normal:
            sigma = self.noise(theta)
            z = (self.y - eta) / sigma
            terms = (-0.5 * z**2 - np.log(sigma) - 0.5 * _LOG_2PI, z / sigma, np.zeros_like(z) - sigma**-2.0)
        else:
            terms = self.pointwise(eta, theta)[:3] if self.fewer is None else self.fewer(eta, theta, 2)
        return terms if self.weights is None else tuple(self.weights * term for term in terms)

    def log_densities(self, eta: FloatArray, theta: FloatArray) -> FloatArray:
        """Log-likelihood of each observation, without the weights, for many draws of eta (S, n) and theta (S, k).

        Or of one theta (1, k) for all.
        """
        if not self.normal:
            return each_draw(self, eta, theta) if self.many is None else self.many(eta, theta)
        log_sigma = theta[:, :1] if theta.shape[1] else np.log(self.sigma)
        z = self.y - eta
        z /= np.exp(log_sigma)
        z *= z
        z *= -0.5
        z -= log_sigma + 0.5 * _LOG_2PI
        return np.asarray(z)

    def log_joint(self, eta: FloatArray, theta: FloatArray, each: FloatArray | None = None) -> FloatArray:
        """Log-likelihood of all observations together, with the weights, for many draws; ``each`` is known already."""
        if self.normal and theta.shape[1] and each is None:
            squares, log_sigma = self.total((self.y - eta) ** 2), theta[:, 0]
            return np.asarray(-0.5 * squares * np.exp(-2 * log_sigma) - self.count * (log_sigma + 0.5 * _LOG_2PI))
        return self.total(self.log_densities(eta, theta) if each is None else each)

    def total(self, each: FloatArray) -> FloatArray:
        """Sum over observations, with the weights, of their log-likelihoods (S, n)."""
        return np.asarray(each.sum(axis=1) if self.weights is None else each @ self.weights)
