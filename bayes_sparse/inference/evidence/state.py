"""The Gaussian posterior at given hyper-parameters, what is maximised over them, and how a search ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bayes_sparse.common.types import FloatArray, IntArray
from bayes_sparse.inference.evidence.factors import Factors
from bayes_sparse.problem.classes import AnyProblem
from bayes_sparse.problem.gaussian import Dual, Primal, Woodbury
from bayes_sparse.problem.groups import sums

__all__ = [
    "Approximation",
    "Objective",
    "Outcome",
    "Posterior",
    "Scores",
    "State",
    "Ties",
    "hyper_curvature",
    "log_prior",
    "precision_curvature",
    "precision_slope",
]


type Posterior = Primal | Dual | Woodbury


@dataclass(frozen=True)
class Objective:
    """The criterion over precisions and nuisance parameters.

    Attributes
    ----------
    smoothness : float
        c, the cost of a degree of freedom in nats: of the gammas of free columns, whose precisions are estimated.
    a, b : float
        Shape and rate of the Gamma prior on each free precision, on what it has above the floor; one per group, where
        columns share their precision.
    log_prior : callable, optional
        Log-density of the nuisance parameters on the unconstrained scale.
    floor : float
        The least that a free precision may be: ``1/c^2`` under a slab of width c.
    tau0 : float
        Scale of the horseshoe's tau; 0 where precisions have no such prior. Only a method that knows tau can add it.
    inverse : float
        With it the prior on each free precision is ``alpha^(a - 1) exp(-b alpha - inverse / alpha)``: a Laplace weight
        of scale one is Normal with ``a = -1, b = 0, inverse = 1/2`` (Andrews & Mallows 1974). Without a floor.
    """

    smoothness: float = 0.0
    a: float = 0.0
    b: float = 0.0
    log_prior: Callable[[FloatArray], float] | None = None
    floor: float = 0.0
    tau0: float = 0.0
    inverse: float = 0.0

    @property
    def proper(self) -> bool:
        """Whether a prior keeps every precision finite, so that nothing is pruned."""
        return self.b > 0 or self.inverse > 0

    def value(
        self,
        log_evidence: float,
        posterior: Posterior,
        free: NDArray[np.bool_],
        theta: FloatArray,
        groups: IntArray | None = None,
    ) -> float:
        """J from its parts.

        ``free`` says which of the posterior's columns have their precision estimated, ``groups`` which of them share
        it, by labels.
        """
        J, alpha = log_evidence, posterior.alpha
        if self.smoothness:
            J -= self.smoothness * float(np.maximum(1 - alpha[free] * posterior.variance[free], 0.0).sum())
        if self.a or self.proper:
            above = np.maximum(alpha[free] - self.floor, 0.0)
            with np.errstate(divide="ignore"):  # at the floor itself a shape above zero leaves no density
                each = self.a * np.log(above) - self.b * above - (self.inverse / above if self.inverse else 0.0)
            J += float(np.sum(each if groups is None else each * _portions(groups)[free]))
        return J + self.prior(theta)

    def fixed_point(self, alpha: FloatArray, top: FloatArray, bottom: FloatArray) -> FloatArray:
        """New precisions for a method whose own are ``top / bottom``.

        The hyper-prior speaks of ``alpha - floor``, which moves by its share of alpha: ``(share top + 2a) / (bottom +
        2b)`` above the floor, and with ``inverse`` the root of a quadratic. Under the flat one the floor is a bound.
        """
        if self.inverse:
            bend, slope = np.maximum(bottom + 2 * self.b, 1e-300), top + 2 * self.a
            root = np.sqrt(slope**2 + 8 * self.inverse * bend)
            return np.where(slope > 0, (slope + root) / (2 * bend), 4 * self.inverse / np.maximum(root - slope, 1e-300))
        if not (self.a or self.b):
            return np.maximum(np.maximum(top, 1e-300) / np.maximum(bottom, 1e-300), self.floor)
        share = 1 - self.floor / np.maximum(alpha, self.floor) if self.floor else 1.0
        above = np.maximum(share * top + 2 * self.a, 1e-300) / np.maximum(bottom + 2 * self.b, 1e-300)
        return np.maximum(self.floor + above, (1 + 1e-12) * self.floor)

    def prior(self, theta: FloatArray) -> float:
        """Log prior of the nuisance parameters."""
        return 0.0 if self.log_prior is None or not theta.size else self.log_prior(theta)


@dataclass(frozen=True, eq=False)
class State:
    """Posterior ``N(mean, Sigma)`` of the active columns at given precisions and nuisance parameters.

    Attributes
    ----------
    index : int array (k,)
        Active columns of the design, basis functions and fixed ones.
    alpha : array (k,)
        Their prior precisions.
    free : bool array (k,)
        Which of those precisions are being estimated.
    theta : array
        Nuisance parameters, unconstrained.
    mean : array (k,)
        Posterior mode of the weights.
    posterior : Primal, Dual or Woodbury
        Factorised ``H + A``.
    log_likelihood, log_evidence, objective : float
        At the mode; normalised; with penalty and hyper-priors.
    eta : array (n,), (n, classes) or (predictors, n), optional
        Predictor at the mode (None where the approximation never needs it).
    terms : tuple of array, optional
        Weighted log-likelihood of each observation and its derivatives along the predictor, at the mode.
    residual_power : float
        Weighted residual sum of squares of a normal likelihood.
    groups : int array (k,), optional
        Label of the group that each active column shares its precision with; None where none do.
    ahead : array (2, n), optional
        The sites that matching once more would lead to, where there are any: a search from here begins with them.
    """

    index: IntArray
    alpha: FloatArray
    free: NDArray[np.bool_]
    theta: FloatArray
    mean: FloatArray
    posterior: Posterior
    log_likelihood: float
    log_evidence: float
    objective: float
    eta: FloatArray | None = None
    terms: tuple[FloatArray, ...] | None = None
    residual_power: float = np.nan
    groups: IntArray | None = None
    ahead: FloatArray | None = None

    @cached_property
    def variance(self) -> FloatArray:
        """Posterior variance of each active weight."""
        return self.posterior.variance

    @cached_property
    def gamma(self) -> FloatArray:
        """How well each weight is determined by the data: 1 - alpha_i Sigma_ii, in [0, 1]."""
        return np.maximum(1 - self.alpha * self.variance, 0.0)

    @cached_property
    def freed(self) -> FloatArray:
        """How fast the degrees of freedom fall with each log precision: ``-d DF / d log alpha_i`` of the free columns.

        ``alpha_i (Sigma - Sigma A_free Sigma)_ii``, with ``Sigma - Sigma A Sigma = Sigma H Sigma``.
        """
        released = self.posterior.smoothing
        fixed = ~self.free & (self.alpha > 0)
        if fixed.any():
            across = self.posterior.solve(np.eye(len(self.alpha))[:, fixed])
            released = released + across**2 @ self.alpha[fixed]
        return np.where(self.free, self.alpha * released, 0.0)

    @cached_property
    def sharpened(self) -> float:
        """How fast the degrees of freedom grow with the log of the likelihood's curvature: ``d DF / d log beta``."""
        return float(self.alpha[self.free] @ self.posterior.smoothing[self.free])

    @cached_property
    def ties(self) -> Ties | None:
        """Which free columns share their precision; None where none do."""
        return None if self.groups is None else Ties(self.groups[self.free], self.theta.size)

    @cached_property
    def portion(self) -> FloatArray | float:
        """What each column has of its group's prior: one part of as many as there are columns."""
        return 1.0 if self.groups is None else _portions(self.groups)

    def summed(self, values: FloatArray) -> FloatArray:
        """Sum over its group in the place of each column's value."""
        return sums(values, self.groups)

    def left_out(self) -> tuple[FloatArray, FloatArray]:
        """Sparsity s and quality q of each active column, as if it were left out (Tipping & Faul 2003)."""
        return np.maximum(1 / self.variance - self.alpha, 0.0), self.mean / self.variance


class Ties:
    """From hyper-parameters by column to hyper-parameters by group, where columns share their precision.

    Parameters
    ----------
    labels : int array (k,)
        Group of each free column.
    others : int
        Nuisance parameters, which come after the precisions.
    """

    def __init__(self, labels: IntArray, others: int) -> None:
        _, self.first, self.place = np.unique(labels, return_index=True, return_inverse=True)
        g, k = len(self.first), len(labels)
        self._sum = np.zeros((g + others, k + others))
        self._sum[self.place, np.arange(k)] = 1.0
        self._sum[np.arange(g, g + others), np.arange(k, k + others)] = 1.0

    def by_group(self, derivatives: FloatArray) -> FloatArray:
        """A gradient or a Hessian in the log precisions of groups: the sum over their columns."""
        half = self._sum @ derivatives
        return np.asarray(half if half.ndim == 1 else half @ self._sum.T)


def _portions(groups: IntArray) -> FloatArray:
    return 1 / sums(np.ones(len(groups)), groups)


@dataclass(frozen=True)
class Scores:
    """What adding a column would do, for every column of the design (Tipping & Faul 2003).

    Attributes
    ----------
    S, Q : array (width,)
        Sparsity and quality with the active columns as they are.
    overlap : array (width, k)
        ``phi_i' B Phi Sigma``: how much of column i each active column carries, so that the scores without one of
        them follow at once.
    """

    S: FloatArray
    Q: FloatArray
    overlap: FloatArray

    def without(self, state: State, position: int | IntArray) -> tuple[FloatArray, FloatArray]:
        """S and Q as they would be with one active column left out; for several positions, a column for each."""
        r, variance = self.overlap[:, position], state.variance[position]
        S, Q = (self.S, self.Q) if r.ndim == 1 else (self.S[:, None], self.Q[:, None])
        return S + r**2 / variance, Q + r * (state.mean[position] / variance)


class Approximation(Protocol):
    """What a method may ask. Methods see nothing else of a problem."""

    name: str
    objective: Objective

    @property
    def count(self) -> float | None:
        """Number of observations, weighted, where the noise has a closed form; None where it has not."""

    def with_objective(self, objective: Objective) -> Approximation:
        """The same approximation of the same problem for another objective, sharing what has been computed."""

    def of(self, problem: AnyProblem) -> Approximation:
        """The same approximation of another problem, for the same objective."""

    def at(self, index: IntArray, alpha: FloatArray, theta: FloatArray, near: State | None = None) -> State:
        """Posterior, evidence and objective at given hyper-parameters, searched from ``near``."""

    def slope(self, state: State) -> FloatArray:
        """Gradient of the objective in (log alpha of free columns, theta)."""

    def curvature(self, state: State) -> FloatArray:
        """Hessian of the objective in the same coordinates; its change through H may be left out."""

    def followed(self, state: State, step: FloatArray) -> State:
        """Where to search from after a step in those coordinates: the state, or what is foreseen of the next."""

    def theta_step(self, state: State) -> FloatArray:
        """A step in the nuisance parameters alone, for methods that update precisions by a formula."""

    def scores(self, state: State) -> Scores:
        """Sparsity and quality of every column of the design, for the columns that are not active."""

    def cross_products(self, state: State, columns: IntArray) -> FloatArray:
        """``Phi' B Phi`` of some columns of the design, active or not: the likelihood's curvature along them."""


def log_prior(alpha: FloatArray, w: FloatArray) -> float:
    """Log-density of the weights under their prior, times ``(2 pi)^(k/2)``, as it stands in a Laplace evidence.

    A flat prior (precision 0) has no normaliser of its own, so it keeps its ``(2 pi)^(1/2)``.
    """
    quadratic = 0.5 * float(alpha @ w**2)
    flat = alpha == 0
    if not flat.any():
        return 0.5 * float(np.log(alpha).sum()) - quadratic
    return 0.5 * float(np.log(alpha[~flat]).sum() + flat.sum() * np.log(2 * np.pi)) - quadratic


def precision_slope(
    state: State, smoothness: float, a: float, b: float, floor: float = 0.0, inverse: float = 0.0
) -> FloatArray:
    """DJ / d log alpha over the active columns, H held fixed; the price's part of the free ones alone."""
    alpha = state.alpha
    slope = 0.5 * (1 - alpha * (state.variance + state.mean**2)) - b * alpha * state.portion
    if inverse:
        slope += _reciprocal(state, inverse) * state.portion
    if a:
        slope += a / _share(state, floor) * state.portion
    if smoothness:
        slope += smoothness * state.freed
    return slope


def _share(state: State, floor: float) -> FloatArray:
    """What of each precision is above the floor; those that are not estimated have none below it."""
    with np.errstate(divide="ignore"):
        return np.where(state.free, np.maximum(1 - floor / state.alpha, 1e-300), 1.0)


def _reciprocal(state: State, inverse: float) -> FloatArray:
    """``inverse / alpha`` of the precisions that are estimated: a fixed one may be zero."""
    return np.where(state.free, inverse / np.where(state.free, state.alpha, 1.0), 0.0)


def hyper_curvature(state: State, a: float, b: float, floor: float = 0.0, inverse: float = 0.0) -> FloatArray:
    """The part of the hyper-prior in d2J / d log alpha^2, a diagonal."""
    curvature = -b * state.alpha - _reciprocal(state, inverse)
    if a and floor:
        share = _share(state, floor)
        curvature -= a * (1 - share) / share**2
    return np.asarray(curvature * state.portion)


def precision_curvature(state: State, smoothness: float) -> FloatArray:
    """d2J / d log alpha^2 over the active columns, H held fixed, without the hyper-prior's part."""
    assert isinstance(state.posterior, Primal | Dual)
    Sigma, alpha, w = state.posterior.covariance, state.alpha, state.mean
    outer = alpha[:, None] * alpha
    curvature = 0.5 * outer * Sigma * (Sigma + 2 * w[:, None] * w)
    diagonal = -0.5 * alpha * (state.variance + w**2)
    if smoothness:
        counted = state.free.astype(float)
        T = 0.5 * (counted[:, None] + counted) * Sigma - (Sigma * (counted * alpha)) @ Sigma
        curvature -= 2 * smoothness * outer * Sigma * T
        diagonal += smoothness * alpha * T.diagonal()
    curvature.flat[:: len(alpha) + 1] += diagonal
    return curvature


@dataclass(frozen=True, eq=False)
class Outcome:
    """The end of a search over hyper-parameters.

    Attributes
    ----------
    state : State
        Posterior at the hyper-parameters found; columns that are not in it were pruned.
    history : list of float
        Objective by iteration, from the start of the search.
    converged : bool
        False when the iteration limit stopped it.
    iterations : int
        How many there were, including those of a preliminary search that the history leaves out.
    factors : Factors, optional
        Of a variational posterior, whose precisions and noise have distributions of their own.
    """

    state: State
    history: list[float]
    converged: bool
    iterations: int
    factors: Factors | None = None
