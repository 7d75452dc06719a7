"""What an evidence method sees of several classes: one predictor a class, coupled by a softmax.

``log p(y = c) = eta_c - log sum_k exp(eta_k)`` with ``eta_c = Phi_c w_c``: a true softmax, whose columns may be each
class's own. At class probabilities ``mu`` the curvature couples the classes: block (a, b) of H is ``Phi_a' diag(mu_a
(1[a=b] - mu_b)) Phi_b``. The terms of an observation are its log-likelihood, the slopes (observed less expected, a
class each) and the probabilities, all times the observation's weight.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit, log_softmax, logsumexp

from bayes_sparse.common.types import FloatArray, IntArray
from bayes_sparse.problem.active import Product, Terms
from bayes_sparse.problem.gaussian import Primal, Woodbury, weighted_gram
from bayes_sparse.problem.groups import Groups
from bayes_sparse.problem.problem import Pointwise, Problem
from bayes_sparse.problem.several_predictors import SeveralProblem
from bayes_sparse.problem.sparse_design import AnyDesign

__all__ = ["AnyProblem", "ClassActive", "ClassDesign", "ClassProblem", "Link", "coupling", "log_probability"]


class ClassDesign:
    """The columns of several classes.

    Parameters
    ----------
    designs : tuple of Design
        One a class, with the same rows and the same number of extra columns; the same object for shared features.
    """

    def __init__(self, designs: tuple[AnyDesign, ...]) -> None:
        self.designs = designs
        self.n = designs[0].n
        self.starts = np.cumsum([0, *(design.M for design in designs)])
        self.M = int(self.starts[-1])

    @property
    def classes(self) -> int:
        """How many classes there are."""
        return len(self.designs)

    @property
    def shared(self) -> bool:
        """Whether all classes have the same columns."""
        return all(design is self.designs[0] for design in self.designs)

    @property
    def q(self) -> int:
        """Number of extra columns of all classes."""
        return self.classes * self.designs[0].q

    @property
    def width(self) -> int:
        """Number of columns, basis functions and extra ones."""
        return self.M + self.q

    @cached_property
    def owner(self) -> IntArray:
        """Class of each column."""
        own = np.repeat(np.arange(self.classes), np.diff(self.starts))
        return np.append(own, np.tile(np.arange(self.classes), self.designs[0].q))

    def own(self, c: int, index: IntArray) -> tuple[IntArray, IntArray]:
        """Which of some columns are class c's, as positions in ``index`` and as columns of that class's design."""
        positions = np.flatnonzero(self.owner[index] == c)
        column = index[positions]
        extra = self.designs[c].M + (column - self.M) // self.classes
        return positions, np.where(column < self.M, column - self.starts[c], extra)

    def squares(self, weights: FloatArray | None = None) -> FloatArray:
        """Diagonal of each class's ``Phi' diag(weights) Phi``."""
        return self.joined([design.squares(weights) for design in self.designs])

    def joined(self, parts: list[FloatArray]) -> FloatArray:
        """One array over all columns, along the first axis, from one a class."""
        inside = [part[: design.M] for part, design in zip(parts, self.designs, strict=True)]
        extra = np.stack([part[design.M :] for part, design in zip(parts, self.designs, strict=True)], axis=1)
        return np.concatenate([*inside, extra.reshape(self.q, *parts[0].shape[1:])])


_BY_ROWS = 2.0  # columns an observation from which the factor on the side of the observations is the cheaper one


class ClassActive:
    """Active columns, by class.

    Parameters
    ----------
    design : ClassDesign
        All columns.
    index : int array (k,)
        The active ones.
    """

    def __init__(self, design: ClassDesign, index: IntArray) -> None:
        self._design, self._k = design, len(index)
        self._where: list[IntArray] = []
        self._Phi: list[FloatArray] = []
        for c, own in enumerate(design.designs):
            positions, columns = design.own(c, index)
            self._where.append(positions)
            self._Phi.append(own.columns(columns))

    def predictor(self, w: FloatArray) -> FloatArray:
        """Predictors of all classes, (n, C); (S, n, C) of S draws."""
        return np.stack([w[..., at] @ Phi.T for Phi, at in self._parts()], axis=-1)

    def pulled_back(self, slopes: FloatArray) -> FloatArray:
        """``Phi_c' slopes_c`` in the order of the columns."""
        out = np.empty(self._k)
        for c, (Phi, at) in enumerate(self._parts()):
            out[at] = Phi.T @ slopes[:, c]
        return out

    def steps(self, alpha: FloatArray, terms: Terms) -> Primal | Woodbury:
        """On the side of the k columns or of the n observations, whichever is cheaper."""
        if self._k > _BY_ROWS * self._design.n:
            by_rows = Woodbury(self._Phi, self._where, terms[2], alpha)
            if by_rows.exact:
                return by_rows
        return Primal(self.curvature(terms[2]), alpha)

    def posterior(self, alpha: FloatArray, terms: Terms, factor: Primal | Woodbury | None) -> Primal | Woodbury:
        """A softmax is log-concave: the step's own factor serves."""
        return self.steps(alpha, terms) if factor is None else factor

    def leverages(self, product: Product) -> FloatArray:
        """What M makes of the predictors of every two classes together, (n, C, C)."""
        out = np.empty((self._design.n, len(self._Phi), len(self._Phi)))
        for a, (Phi, at) in enumerate(self._parts()):
            spread = product(Phi.T, at)
            for b, (other, where) in enumerate(self._parts()):
                out[:, a, b] = np.einsum("ji,ji->i", other.T, spread[where])
        return out

    def turning(self, leverages: FloatArray, terms: Terms) -> FloatArray:
        """Gradient of ``tr(M H)`` by the chain through the probabilities."""
        weighted = terms[2]
        total = weighted.sum(axis=1, keepdims=True)
        mu = weighted / np.where(total > 0, total, 1.0)
        pull = np.einsum("naa->na", leverages) - 2 * np.einsum("nab,nb->na", leverages, mu)
        return self.pulled_back(weighted * (pull - np.sum(mu * pull, axis=1, keepdims=True)))

    def noise(self, terms: Terms, rng: np.random.Generator) -> FloatArray:
        """With covariance ``weight (diag(mu) - mu mu')`` over the classes of an observation."""
        weight = terms[2].sum(axis=1, keepdims=True)
        mu = terms[2] / np.where(weight > 0, weight, 1.0)
        z = np.sqrt(mu) * rng.standard_normal(mu.shape)
        return np.asarray(np.sqrt(weight) * (z - mu * z.sum(axis=1, keepdims=True)))

    def scan(self, terms: Terms) -> tuple[FloatArray, FloatArray, FloatArray]:
        """All columns of all classes against the active ones."""
        design, P = self._design, terms[2]
        total = P.sum(axis=1)
        cross, squares, products = [], [], []
        for a, own in enumerate(design.designs):
            right = np.empty((design.n, self._k), order="F")
            for b, (Phi, at) in enumerate(self._parts()):
                right[:, at] = coupling(P, total, a, b)[:, None] * Phi
            cross.append(own.cross(right))
            squares.append(own.squares(coupling(P, total, a, a)))
            products.append(own.transposed_times(terms[1][:, a]))
        return design.joined(cross), design.joined(squares), design.joined(products)

    def cross_products(self, terms: Terms) -> FloatArray:
        """The H of `steps`."""
        return self.curvature(terms[2])

    def curvature(self, P: FloatArray) -> FloatArray:
        """H, (k, k), from weighted probabilities (n, C)."""
        total = P.sum(axis=1)
        half = np.sqrt(np.where(total > 0, total, 1.0))
        mixed = np.empty((self._design.n, self._k), order="F")
        for c, (Phi, at) in enumerate(self._parts()):
            mixed[:, at] = (P[:, c] / half)[:, None] * Phi
        H = np.asarray(mixed.T @ mixed)
        np.negative(H, out=H)
        for c, (Phi, at) in enumerate(self._parts()):
            # mu (1 - mu) itself: as a difference of products it would lose digits where a class is certain
            H[np.ix_(at, at)] = weighted_gram(Phi, coupling(P, total, c, c))
        return H

    def _parts(self) -> list[tuple[FloatArray, IntArray]]:
        return list(zip(self._Phi, self._where, strict=True))


def coupling(P: FloatArray, total: FloatArray, a: int, b: int) -> FloatArray:
    """``weight mu_a (1[a=b] - mu_b)`` of each observation; ``1 - mu`` as the sum of the others loses no digits."""
    safe = np.where(total > 0, total, 1.0)
    if a != b:
        return np.asarray(-P[:, a] * P[:, b] / safe)
    return np.asarray(P[:, a] * np.delete(P, a, axis=1).sum(axis=1) / safe)


type Link = Literal["softmax", "one_vs_rest"]


def log_probability(eta: FloatArray, link: Link) -> FloatArray:
    """Log-probability of each class, along the last axis of the predictors."""
    if link == "softmax":
        return np.asarray(log_softmax(eta, axis=-1))
    log_p = log_expit(eta)
    return np.asarray(log_p - logsumexp(log_p, axis=-1, keepdims=True))


@dataclass(frozen=True, eq=False)
class ClassProblem:
    """A sparse Gaussian prior on the columns of several classes, and a softmax over their predictors.

    Attributes
    ----------
    design : ClassDesign
        The columns of all classes.
    y : int array (n,)
        Class of each observation.
    fixed_precision : array
        Prior precisions of the columns that are not free, in column order.
    weights : array (n,), optional
        A weight of 2 counts a row twice.
    kept : bool array (M,), optional
        Columns that are not free beside the extra ones.
    link : "softmax" or "one_vs_rest"
        How predictors become probabilities; everything but draws from a fit is by softmax.
    logistic : callable, optional
        ``logistic(y)`` gives the terms of a logistic regression of targets 0 and 1, for methods that fit one a class.
    theta, theta_bounds : array
        Empty: there are no nuisance parameters.
    groups : int array (width,), optional
        Label of the group of each free column: columns of one group share their precision. None where every column has
        its own.
    """

    design: ClassDesign
    y: NDArray[np.intp]
    fixed_precision: FloatArray
    weights: FloatArray | None = None
    kept: NDArray[np.bool_] | None = None
    link: Link = "softmax"
    logistic: Callable[[FloatArray], Pointwise] | None = None
    theta: FloatArray = field(default_factory=lambda: np.empty(0))
    theta_bounds: FloatArray = field(default_factory=lambda: np.empty((0, 2)))
    groups: IntArray | None = None

    log_prior: ClassVar[None] = None
    normal: ClassVar[bool] = False
    unit: ClassVar[float] = 1.0

    @cached_property
    def grouping(self) -> Groups | None:
        """Which free columns share their precision, None where none do."""
        return None if self.groups is None else Groups(self.groups, self.free)

    @cached_property
    def free(self) -> NDArray[np.bool_]:
        """All but the extra columns and those kept."""
        free = np.arange(self.design.width) < self.design.M
        if self.kept is not None:
            free[: self.design.M] &= ~self.kept
        return free

    @cached_property
    def count(self) -> float:
        """Number of observations, each as often as its weight says."""
        return float(self.design.n if self.weights is None else self.weights.sum())

    @cached_property
    def offset(self) -> FloatArray:
        """No known part of the predictors."""
        return np.zeros((self.design.n, self.design.classes))

    @property
    def predictors(self) -> int:
        """One a class."""
        return self.design.classes

    @property
    def owner(self) -> IntArray:
        """The class whose predictor each column is part of."""
        return self.design.owner

    def designs(self, names: list[str]) -> list[tuple[AnyDesign, list[str]]]:
        """The columns of each class with their names, or those that all classes share."""
        starts = self.design.starts[:-1].tolist()
        parts = [(own, names[at : at + own.M]) for own, at in zip(self.design.designs, starts, strict=True)]
        return parts[:1] if self.design.shared else parts

    def precisions(self, index: IntArray, alpha: FloatArray, theta: FloatArray) -> FloatArray:
        """Precisions of the active columns: those given where free, those of the declaration where fixed."""
        full = np.zeros(self.design.width)
        full[~self.free] = self.fixed_precision
        return np.where(self.free[index], alpha, full[index])

    def active(self, index: IntArray) -> ClassActive:
        """Some columns, ready for products."""
        return ClassActive(self.design, index)

    def predictor(self, w: FloatArray, index: IntArray) -> FloatArray:
        """Predictors (S, n, C) of many draws of some columns' weights (S, k)."""
        return self.active(index).predictor(w)

    def derivatives(self, eta: FloatArray, theta: FloatArray, count: int = 2) -> Terms:
        """Log-likelihood (n,), observed less expected and probabilities (n, C), times the observation weights."""
        log_p = log_softmax(eta, axis=1)
        rows = np.arange(len(self.y))
        P = np.exp(log_p)
        slopes = -P
        slopes[rows, self.y] += 1.0
        if self.weights is None:
            return log_p[rows, self.y], slopes, P
        by_row = self.weights[:, None]
        return self.weights * log_p[rows, self.y], by_row * slopes, by_row * P

    def terms(self, eta: FloatArray, theta: FloatArray) -> Terms:
        """The same: there is no quicker way."""
        return self.derivatives(eta, theta)

    def log_densities(self, eta: FloatArray, theta: FloatArray) -> FloatArray:
        """Log-probability of each observation's class, without the weights, for many draws of eta (S, n, C)."""
        return np.asarray(log_probability(eta, self.link)[:, np.arange(len(self.y)), self.y])

    def log_joint(self, eta: FloatArray, theta: FloatArray, each: FloatArray | None = None) -> FloatArray:
        """Log-likelihood of all observations together that the posterior is that of, for many draws (S, n, C)."""
        if self.link == "softmax":
            each = self.log_densities(eta, theta) if each is None else each
        else:  # whether an observation is of a class, for each class by itself
            each = np.sum(log_expit(np.where(np.eye(eta.shape[2], dtype=bool)[self.y], eta, -eta)), axis=2)
        return np.asarray(each.sum(axis=1) if self.weights is None else each @ self.weights)

    def separates(self, eta: FloatArray) -> bool:
        """Every observation's class the most probable."""
        right = eta.argmax(axis=1) == self.y
        return bool((right if self.weights is None else right[self.weights > 0]).all())


type AnyProblem = Problem | ClassProblem | SeveralProblem
