"""The active columns of several classes under a softmax.

At class probabilities ``mu`` the curvature couples the classes: block (a, b) of H is ``Phi_a' diag(mu_a (1[a=b] -
mu_b)) Phi_b``. The terms of an observation are its log-likelihood, the slopes (observed less expected, a class each)
and the probabilities, all times the observation's weight.
"""

from __future__ import annotations

import numpy as np

from bayes_sparse.problem.active import Terms
from bayes_sparse.problem.classes.design import ClassDesign
from bayes_sparse.problem.classes.posterior import Woodbury
from bayes_sparse.problem.design import FloatArray, IntArray
from bayes_sparse.problem.gaussian import Primal, weighted_gram

__all__ = ["ClassActive"]

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

    def turning(self, M: FloatArray, terms: Terms) -> FloatArray:
        """Gradient of ``tr(M H)`` by the chain through the probabilities."""
        weighted = terms[2]
        total = weighted.sum(axis=1, keepdims=True)
        mu = weighted / np.where(total > 0, total, 1.0)
        C = len(self._Phi)
        own, mixed = np.empty_like(mu), np.zeros_like(mu)
        for a, (Phi, at) in enumerate(self._parts()):
            spread = Phi @ M[at]
            for b in range(C):
                # row i: what M makes of the predictors of classes a and b together
                S = np.einsum("ij,ij->i", spread[:, self._where[b]], self._Phi[b])
                mixed[:, a] += S * mu[:, b]
                if a == b:
                    own[:, a] = S
        pull = own - 2 * mixed
        return self.pulled_back(weighted * (pull - np.sum(mu * pull, axis=1, keepdims=True)))

    def scan(self, terms: Terms) -> tuple[FloatArray, FloatArray, FloatArray]:
        """All columns of all classes against the active ones."""
        design, P = self._design, terms[2]
        total = P.sum(axis=1)
        cross, squares, products = [], [], []
        for a, own in enumerate(design.designs):
            right = np.empty((design.n, self._k), order="F")
            for b, (Phi, at) in enumerate(self._parts()):
                right[:, at] = _coupling(P, total, a, b)[:, None] * Phi
            cross.append(own.cross(right))
            squares.append(own.squares(_coupling(P, total, a, a)))
            products.append(own.transposed_times(terms[1][:, a]))
        return design.joined(cross), design.joined(squares), design.joined(products)

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
            H[np.ix_(at, at)] = weighted_gram(Phi, _coupling(P, total, c, c))
        return H

    def _parts(self) -> list[tuple[FloatArray, IntArray]]:
        return list(zip(self._Phi, self._where, strict=True))


def _coupling(P: FloatArray, total: FloatArray, a: int, b: int) -> FloatArray:
    """``weight mu_a (1[a=b] - mu_b)`` of each observation; ``1 - mu`` as the sum of the others loses no digits."""
    safe = np.where(total > 0, total, 1.0)
    if a != b:
        return np.asarray(-P[:, a] * P[:, b] / safe)
    return np.asarray(P[:, a] * np.delete(P, a, axis=1).sum(axis=1) / safe)
