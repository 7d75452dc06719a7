"""What an evidence method sees of observations with several linear predictors each, such as a mean and a log-scale.

The log-likelihood is ``sum_i weights_i * l_i(eta_1i, ..., eta_Ki)`` with ``eta_k = offset_k + Phi_k w``: one vector of
weights, whose columns may be in one predictor or in several. The terms of an observation are its log-likelihood, K
slopes, K x K second and K x K x K third derivatives, the observations along the last axis, all times the observation's
weight. With ``B_i`` minus the second derivatives, ``H = sum_ab Phi_a' diag(B_ab) Phi_b``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bayes_sparse.common.types import BoolArray, FloatArray, IntArray
from bayes_sparse.problem.active import Product, Terms, columns_counted
from bayes_sparse.problem.gaussian import Dual, Primal, weighted_gram
from bayes_sparse.problem.groups import Groups
from bayes_sparse.problem.problem import Fewer, Pointwise, each_draw
from bayes_sparse.problem.sparse_design import AnyDesign

__all__ = ["SeveralActive", "SeveralProblem"]

_TOGETHER = 2**21  # entries of columns in several predictors that are taken out together


class SeveralActive:
    """Active columns, by predictor.

    Parameters
    ----------
    design : Design or SparseDesign
        All columns, K * n rows.
    index : int array (k,)
        The active ones.
    inside : bool array (K, width)
        Which columns are in which predictor.
    counted : int
        How many of them are compared with the rows (`columns_counted`).
    """

    def __init__(self, design: AnyDesign, index: IntArray, inside: BoolArray, counted: int) -> None:
        self._design, self._inside, self._k, self._counted = design, inside, len(index), counted
        Phi = np.split(design.columns(index), len(inside))
        self._where = [np.flatnonzero(own[index]) for own in inside]
        self._Phi = [np.asfortranarray(block[:, at]) for block, at in zip(Phi, self._where, strict=True)]

    def predictor(self, w: FloatArray) -> FloatArray:
        """Predictors (K, n); (S, K, n) of S draws."""
        return np.stack([w[..., at] @ Phi.T for Phi, at in self._parts()], axis=-2)

    def pulled_back(self, slopes: FloatArray) -> FloatArray:
        """``sum_k Phi_k' slopes_k``."""
        out = np.zeros(self._k)
        for own, (Phi, at) in zip(slopes, self._parts(), strict=True):
            out[at] += Phi.T @ own
        return out

    def steps(self, alpha: FloatArray, terms: Terms) -> Primal | Dual:
        """With the true curvature if that can be factorised, else with each observation's cut off at zero.

        Single observations are seldom log-concave along all their predictors together, but all of them are together
        near a mode. There the true curvature needs half as many steps, and no eigenvalues.
        """
        if self._counted > self._design.n:
            return Dual(self._mixed(_root(-terms[2])), np.ones(self._design.n), alpha)
        try:
            return Primal(self._curvature(-terms[2]), alpha)
        except np.linalg.LinAlgError:
            R = _root(-terms[2])
            return Primal(self._curvature(np.einsum("acn,bcn->abn", R, R)), alpha)

    def posterior(self, alpha: FloatArray, terms: Terms, factor: Primal | Dual | None) -> Primal | Dual:
        """The step's own, which has the true curvature wherever there are fewer columns than rows and it can be had."""
        return self.steps(alpha, terms) if factor is None else factor

    def leverages(self, product: Product) -> FloatArray:
        """What M makes of every two predictors of an observation together, (K, K, n)."""
        K, n = len(self._Phi), len(self._Phi[0])
        out = np.empty((K, K, n))
        for a, (Phi, at) in enumerate(self._parts()):
            spread = product(Phi.T, at)
            for b, (other, where) in enumerate(self._parts()[: a + 1]):
                out[a, b] = out[b, a] = np.einsum("ji,ji->i", other.T, spread[where])
        return out

    def turning(self, leverages: FloatArray, terms: Terms) -> FloatArray:
        """``-sum_c Phi_c' sum_ab leverages_ab l'''_abc``."""
        return self.pulled_back(-np.einsum("abn,abcn->cn", leverages, terms[3]))

    def noise(self, terms: Terms, rng: np.random.Generator) -> FloatArray:
        """With the curvature of each observation, cut off at zero, as its covariance."""
        R = _root(-terms[2])
        return np.asarray(np.einsum("acn,cn->an", R, rng.standard_normal(R.shape[1:])))

    def scan(self, terms: Terms) -> tuple[FloatArray, FloatArray, FloatArray]:
        """With the true curvature, which the posterior at a mode has too: a cut-off one would not match it."""
        B = -terms[2]
        right = np.zeros((len(B), B.shape[2], self._k))
        for a in range(len(B)):
            for b, (Phi, at) in enumerate(self._parts()):
                right[a][:, at] += B[a, b][:, None] * Phi
        cross = self._design.cross(right.reshape(self._design.n, self._k))
        return cross, self._squares(B), self._design.transposed_times(terms[1].ravel())

    def cross_products(self, terms: Terms) -> FloatArray:
        """With the true curvature, as `scan` has it."""
        return self._curvature(-terms[2])

    def _squares(self, B: FloatArray) -> FloatArray:
        """Diagonal of H over all columns; those in several predictors have products of two of these too."""
        K = len(B)
        squares = self._design.squares(np.ascontiguousarray(B[np.arange(K), np.arange(K)]).ravel())
        shared = np.flatnonzero(self._inside.sum(axis=0) > 1)
        for some in np.array_split(shared, 1 + len(shared) * self._design.n // _TOGETHER):
            Phi = np.split(self._design.columns(some), K)
            for a, b in combinations(range(K), 2):
                squares[some] += 2 * np.einsum("i,ij,ij->j", B[a, b], Phi[a], Phi[b])
        return squares

    def _curvature(self, B: FloatArray) -> FloatArray:
        """H, (k, k), from the K x K curvature of each observation."""
        H = np.zeros((self._k, self._k))
        for a, (Phi, at) in enumerate(self._parts()):
            H[np.ix_(at, at)] += weighted_gram(Phi, B[a, a])
            for b, (other, where) in enumerate(self._parts()[:a]):
                if B[a, b].any():
                    block = Phi.T @ (B[a, b][:, None] * other)
                    H[np.ix_(at, where)] += block
                    H[np.ix_(where, at)] += block.T
        return H

    def _mixed(self, R: FloatArray) -> FloatArray:
        """Columns with ``Phi' B Phi`` as their own cross-products, (K * n, k): the roots of B taken in."""
        out = np.zeros((len(R), R.shape[2], self._k))
        for a, (Phi, at) in enumerate(self._parts()):
            for c in range(len(R)):
                out[c][:, at] += R[a, c][:, None] * Phi
        return out.reshape(self._design.n, self._k)

    def _parts(self) -> list[tuple[FloatArray, IntArray]]:
        return list(zip(self._Phi, self._where, strict=True))


def _root(B: FloatArray) -> FloatArray:
    """R with ``R_i R_i' = B_i``, the negative eigenvalues of each B_i taken for zeros; both (K, K, n)."""
    values, vectors = np.linalg.eigh(np.moveaxis(B, 2, 0))
    return np.moveaxis(vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :], 0, 2)


@dataclass(frozen=True, eq=False)
class SeveralProblem:
    """A sparse Gaussian prior on the columns of a design and a likelihood along several predictors.

    An observation with fewer predictors than others has rows of zeros in the design in the place of those it lacks, and
    no slopes along them.

    Attributes
    ----------
    design : Design
        The K * n rows of all columns: predictor k of observation i is row ``k * n + i``.
    predictors : int
        K, how many an observation has.
    y : array (n,)
        Targets.
    free : bool array (width,)
        True where the precision is to be found; the others have `fixed_precision`.
    fixed_precision : array or callable
        Precision of every column that is not free, in column order; or ``fixed_precision(theta)`` that gives them.
        Zero stands for a flat (improper) prior, which adds nothing to the evidence.
    pointwise : callable
        ``pointwise(eta, theta)``, eta of shape (K, n), gives l of shape (n,) and its derivatives along eta: slopes
        (K, n), second (K, K, n) and third ones (K, K, K, n), without the observation weights.
    offset : array (K, n)
        Known part of the predictors.
    weights : array (n,), optional
        A weight of 2 counts an observation twice.
    theta : array (k,)
        Where the search over nuisance parameters starts.
    theta_bounds : array (k, 2)
        Box the search stays in.
    log_prior : callable, optional
        Log-density of theta on the unconstrained scale (with the Jacobian).
    fewer : callable, optional
        ``fewer(eta, theta, derivatives)`` gives l and as many of its derivatives, where that is quicker than all three.
    unit : float
        Spread of the targets where the predictors are in their units: what a prior on the weights is stated in.
    groups : int array (width,), optional
        Label of the group of each free column: columns of one group share their precision. None where every column has
        its own.
    """

    design: AnyDesign
    predictors: int
    y: FloatArray
    free: NDArray[np.bool_]
    fixed_precision: FloatArray | Callable[[FloatArray], FloatArray]
    pointwise: Pointwise
    offset: FloatArray
    weights: FloatArray | None = None
    theta: FloatArray = field(default_factory=lambda: np.empty(0))
    theta_bounds: FloatArray = field(default_factory=lambda: np.empty((0, 2)))
    log_prior: Callable[[FloatArray], float] | None = None
    fewer: Fewer | None = None
    unit: float = 1.0
    groups: IntArray | None = None

    normal: ClassVar[bool] = False  # with any other predictor than the mean there is no exact evidence

    @cached_property
    def count(self) -> float:
        """Number of observations, each as often as its weight says."""
        return float(len(self.y) if self.weights is None else self.weights.sum())

    @cached_property
    def grouping(self) -> Groups | None:
        """Which free columns share their precision, None where none do."""
        return None if self.groups is None else Groups(self.groups, self.free)

    @cached_property
    def row_weights(self) -> FloatArray | None:
        """Weight of the observation that each row of the design belongs to."""
        return None if self.weights is None else np.tile(self.weights, self.predictors)

    @cached_property
    def inside(self) -> BoolArray:
        """Which columns are in which predictor, (K, width)."""
        each = np.repeat(np.eye(self.predictors), len(self.y), axis=1)
        return np.stack([self.design.squares(rows) > 0 for rows in each])

    @property
    def owner(self) -> IntArray:
        """The predictor that each column is part of, the first one where there are several."""
        return np.asarray(self.inside.argmax(axis=0))

    def designs(self, names: list[str]) -> list[tuple[AnyDesign, list[str]]]:
        """The columns with the names of their basis functions."""
        return [(self.design, names)]

    def precisions(self, index: IntArray, alpha: FloatArray, theta: FloatArray) -> FloatArray:
        """Precisions of the active columns: those given where free, those of the declaration where fixed."""
        full = np.zeros(len(self.free))
        fixed = self.fixed_precision
        full[~self.free] = fixed(theta) if callable(fixed) else fixed
        return np.where(self.free[index], alpha, full[index])

    def active(self, index: IntArray) -> SeveralActive:
        """Some columns, ready for products."""
        return SeveralActive(self.design, index, self.inside, columns_counted(self.free[index]))

    def predictor(self, w: FloatArray, index: IntArray) -> FloatArray:
        """Predictors (S, K, n) of many draws of some columns' weights (S, k)."""
        return np.asarray(self.offset + self.active(index).predictor(w))

    def derivatives(self, eta: FloatArray, theta: FloatArray, count: int = 3) -> Terms:
        """`pointwise` with the observation weights; so many derivatives at least."""
        terms = self.pointwise(eta, theta) if self.fewer is None else self.fewer(eta, theta, count)
        return terms if self.weights is None else tuple(self.weights * term for term in terms)

    def terms(self, eta: FloatArray, theta: FloatArray) -> Terms:
        """The same, two derivatives at least."""
        return self.derivatives(eta, theta, 2)

    def log_densities(self, eta: FloatArray, theta: FloatArray) -> FloatArray:
        """Log-likelihood of each observation, without the weights, for many draws of eta (S, K, n) and theta (S, k)."""
        return each_draw(self, eta, theta)

    def log_joint(self, eta: FloatArray, theta: FloatArray, each: FloatArray | None = None) -> FloatArray:
        """Log-likelihood of all observations together, with the weights, for many draws; ``each`` is known already."""
        each = self.log_densities(eta, theta) if each is None else each
        return np.asarray(each.sum(axis=1) if self.weights is None else each @ self.weights)

    def separates(self, eta: FloatArray) -> bool:
        """Not known: which side of what an observation is on depends on its likelihood."""
        return False
