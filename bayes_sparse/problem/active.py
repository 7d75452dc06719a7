"""The active columns of a design: what Laplace's method asks of them.

Along the predictor a likelihood is a few numbers an observation (its terms: log-likelihood, slope, curvature, ...);
`Active` turns them into gradient, curvature and scores over the weights. `classes.active` does the same where an
observation has one predictor a class.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from bayes_sparse.problem.design import FloatArray, IntArray
from bayes_sparse.problem.gaussian import Dual, Primal, weighted_gram
from bayes_sparse.problem.sparse_design import AnyDesign

__all__ = ["Active", "LinearActive", "Terms"]

type Terms = tuple[FloatArray, ...]


class Active(Protocol):
    """Some columns of a design, ready for products."""

    def predictor(self, w: FloatArray) -> FloatArray:
        """Predictors without the offset."""

    def pulled_back(self, slopes: FloatArray) -> FloatArray:
        """Gradient over the weights, from slopes along the predictors."""

    def steps(self, alpha: FloatArray, terms: Terms) -> Any:
        """Factorised ``H + A`` for a Newton step, H never negative."""

    def posterior(self, alpha: FloatArray, terms: Terms, factor: Any) -> Any:
        """Factorised ``H + A`` at a mode, of which ``factor`` is the last step's if that was there, else None."""

    def turning(self, M: FloatArray, terms: Terms) -> FloatArray:
        """Gradient over the weights of ``tr(M H)``, M held fixed: how the curvature changes."""

    def scan(self, terms: Terms) -> tuple[FloatArray, FloatArray, FloatArray]:
        """``Phi' B Phi_active``, the diagonal of ``Phi' B Phi`` and the gradient, over all columns of the design."""


class LinearActive:
    """Columns of a design with one predictor an observation.

    Parameters
    ----------
    design : Design or SparseDesign
        All columns.
    index : int array (k,)
        The active ones.
    """

    def __init__(self, design: AnyDesign, index: IntArray) -> None:
        self._design, self._Phi = design, design.columns(index)

    def predictor(self, w: FloatArray) -> FloatArray:
        """``Phi w``."""
        return np.asarray(self._Phi @ w)

    def pulled_back(self, slopes: FloatArray) -> FloatArray:
        """``Phi' slopes``."""
        return np.asarray(self._Phi.T @ slopes)

    def steps(self, alpha: FloatArray, terms: Terms) -> Primal | Dual:
        """With the curvature cut off at zero where the likelihood is not log-concave."""
        b = np.maximum(-terms[2], 0.0)
        n, k = self._Phi.shape
        return Dual(self._Phi, b, alpha) if k > n else Primal(weighted_gram(self._Phi, b), alpha)

    def posterior(self, alpha: FloatArray, terms: Terms, factor: Primal | Dual | None) -> Primal | Dual:
        """With the true curvature if that can be factorised, with the cut-off one otherwise."""
        if factor is None:
            factor = self.steps(alpha, terms)
        n, k = self._Phi.shape
        if terms[2].max(initial=0.0) <= 0 or k > n:
            return factor
        try:
            return Primal(weighted_gram(self._Phi, -terms[2]), alpha)
        except np.linalg.LinAlgError:
            return factor

    def turning(self, M: FloatArray, terms: Terms) -> FloatArray:
        """``-Phi' (l''' diag(Phi M Phi'))``."""
        return np.asarray(-self._Phi.T @ (terms[3] * np.einsum("ij,ij->i", self._Phi @ M, self._Phi)))

    def scan(self, terms: Terms) -> tuple[FloatArray, FloatArray, FloatArray]:
        """In one pass over a design that may be streamed."""
        return self._design.scan(self._Phi, np.maximum(-terms[2], 0.0), terms[1])
