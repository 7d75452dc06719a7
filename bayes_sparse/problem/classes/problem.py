"""What an evidence method sees of a classification with several classes: `Problem` with one predictor a class.

``log p(y = c) = eta_c - log sum_k exp(eta_k)`` with ``eta_c = Phi_c w_c``: a true softmax, whose columns may be each
class's own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit, log_softmax, logsumexp

from bayes_sparse.problem.active import Terms
from bayes_sparse.problem.classes.active import ClassActive
from bayes_sparse.problem.classes.design import ClassDesign
from bayes_sparse.problem.design import FloatArray, IntArray
from bayes_sparse.problem.problem import Pointwise, Problem

__all__ = ["AnyProblem", "ClassProblem", "Link", "log_probability"]

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

    log_prior: ClassVar[None] = None
    normal: ClassVar[bool] = False

    @cached_property
    def free(self) -> NDArray[np.bool_]:
        """All but the extra columns and those kept."""
        free = np.arange(self.design.width) < self.design.M
        if self.kept is not None:
            free[: self.design.M] &= ~self.kept
        return free

    @cached_property
    def offset(self) -> FloatArray:
        """No known part of the predictors."""
        return np.zeros((self.design.n, self.design.classes))

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

    def derivatives(self, eta: FloatArray, theta: FloatArray) -> Terms:
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

    def log_densities(self, eta: FloatArray, theta: FloatArray) -> FloatArray:
        """Log-probability of each observation's class, without the weights, for many draws of eta (S, n, C)."""
        return np.asarray(log_probability(eta, self.link)[:, np.arange(len(self.y)), self.y])

    def log_joint(self, eta: FloatArray, theta: FloatArray) -> FloatArray:
        """Log-likelihood of all observations together that the posterior is that of, for many draws (S, n, C)."""
        if self.link == "softmax":
            each = self.log_densities(eta, theta)
        else:  # whether an observation is of a class, for each class by itself
            each = np.sum(log_expit(np.where(np.eye(eta.shape[2], dtype=bool)[self.y], eta, -eta)), axis=2)
        return np.asarray(each.sum(axis=1) if self.weights is None else each @ self.weights)

    def separates(self, eta: FloatArray) -> bool:
        """Every observation's class the most probable."""
        return bool((eta.argmax(axis=1) == self.y).all())


type AnyProblem = Problem | ClassProblem
