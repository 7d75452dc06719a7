"""The posterior of several classes factorised on the side of the observations.

``H + A = blockdiag(Phi_c' D_c Phi_c + A_c) - V V'`` with D_c the probabilities of class c and V the stack of ``Phi_c'
D_c`` (over the square root of the weights): one small factor a class, and one of n x n for what couples them. With
tiny precisions and features shared between classes the difference loses digits; `exact` says whether it did.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy.linalg import lapack

from bayes_sparse.problem.design import FloatArray, IntArray
from bayes_sparse.problem.gaussian import Dual, Primal, weighted_gram

__all__ = ["Woodbury"]

_RESIDUAL = 1e-9  # of a right-hand side: beyond it too many digits are lost


class Woodbury:
    """``(H + A)^-1`` without a k x k matrix.

    Parameters
    ----------
    Phi : list of array (n, k_c)
        Active columns by class.
    where : list of int array (k_c,)
        Their places among the k.
    P : array (n, C)
        Class probabilities times the weight of each observation.
    alpha : array (k,)
        Prior precisions, all positive.
    """

    def __init__(self, Phi: list[FloatArray], where: list[IntArray], P: FloatArray, alpha: FloatArray) -> None:
        self.alpha, self._P, self._Phi, self._where = alpha, P, Phi, where
        n = len(P)
        total = P.sum(axis=1)
        self._half = np.sqrt(np.where(total > 0, total, 1.0))
        self._blocks: list[Primal | Dual] = []
        core = np.eye(n)
        for c, (columns, at) in enumerate(zip(Phi, where, strict=True)):
            own = alpha[at]
            dual = columns.shape[1] > n
            block = Dual(columns, P[:, c], own) if dual else Primal(weighted_gram(columns, P[:, c]), own)
            self._blocks.append(block)
            scaled = (P[:, c] / self._half)[:, None] * columns
            core -= scaled @ block.solve(np.asfortranarray(scaled.T))
        self._L, info = lapack.dpotrf((core + core.T) / 2, lower=1)
        self._sound = info == 0

    @cached_property
    def exact(self) -> bool:
        """Whether a solution satisfies its equations."""
        if not self._sound:
            return False
        v = np.cos(np.arange(1.0, len(self.alpha) + 1))
        x = self.solve(v)
        along = np.stack([columns @ x[at] for columns, at in zip(self._Phi, self._where, strict=True)], axis=1)
        mean = np.sum(self._P * along, axis=1, keepdims=True) / self._half[:, None] ** 2
        back = self._P * (along - mean)
        got = self.alpha * x
        for c, (columns, at) in enumerate(zip(self._Phi, self._where, strict=True)):
            got[at] += columns.T @ back[:, c]
        return bool(np.linalg.norm(got - v) <= _RESIDUAL * np.linalg.norm(v))

    @cached_property
    def log_determinant(self) -> float:
        """Of ``H + A``."""
        return float(sum(block.log_determinant for block in self._blocks) + 2 * np.log(self._L.diagonal()).sum())

    def solve(self, v: FloatArray) -> FloatArray:
        """``Sigma v`` for a vector or for each column of a matrix."""
        x = self._by_blocks(v)
        projected = np.zeros((len(self._P), *v.shape[1:]))
        for c, (columns, at) in enumerate(zip(self._Phi, self._where, strict=True)):
            weight = self._P[:, c] / self._half
            projected += (weight if v.ndim == 1 else weight[:, None]) * (columns @ x[at])
        inner, _ = lapack.dpotrs(self._L, projected, lower=1)
        back = np.empty_like(x)
        for c, (columns, at) in enumerate(zip(self._Phi, self._where, strict=True)):
            weight = self._P[:, c] / self._half
            back[at] = columns.T @ ((weight if v.ndim == 1 else weight[:, None]) * inner)
        return x + self._by_blocks(back)

    @cached_property
    def variance(self) -> FloatArray:
        """Diagonal of Sigma."""
        out = np.empty(len(self.alpha))
        for block, at, spread in zip(self._blocks, self._where, self._spreads, strict=True):
            out[at] = block.variance + np.einsum("ij,ij->j", spread, spread)
        return out

    @cached_property
    def smoothing(self) -> FloatArray:
        """Diagonal of ``Sigma H Sigma = Sigma - Sigma A Sigma``, with ``Sigma`` the blocks' own plus ``z' z``."""
        spreads = self._spreads
        weighted = [z * self.alpha[at] for z, at in zip(spreads, self._where, strict=True)]
        G = np.sum([w @ z.T for w, z in zip(weighted, spreads, strict=True)], axis=0)
        out = np.empty(len(self.alpha))
        for block, at, z, w in zip(self._blocks, self._where, spreads, weighted, strict=True):
            across = block.solve(np.asfortranarray(w.T)).T
            out[at] = block.smoothing + np.einsum("ij,ij->j", z, z - 2 * across - G @ z)
        return out

    def _by_blocks(self, v: FloatArray) -> FloatArray:
        out = np.empty_like(v)
        for block, at in zip(self._blocks, self._where, strict=True):
            out[at] = block.solve(np.asfortranarray(v[at]))
        return out

    @cached_property
    def _spreads(self) -> list[FloatArray]:
        """``L^-1 V' Sigma_block`` of each class, (n, k_c)."""
        out = []
        for c, (block, columns) in enumerate(zip(self._blocks, self._Phi, strict=True)):
            scaled = (self._P[:, c] / self._half)[:, None] * columns
            solved, _ = lapack.dtrtrs(self._L, block.solve(np.asfortranarray(scaled.T)).T, lower=1)
            out.append(np.asarray(solved))
        return out
