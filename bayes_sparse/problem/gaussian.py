"""Products of a few columns, and H + A factorised: by columns, by rows, or by rows of several classes.

`Primal` factorises the k x k matrix, `Dual` the n x n one by Woodbury's identity, `Woodbury` the n x n one where a
softmax couples several classes. All have the same face; the jitter policy is here too.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy.linalg import blas, lapack

from bayes_sparse.common.types import FloatArray, IntArray

__all__ = ["Dual", "Primal", "Woodbury", "by_rows", "cholesky", "weighted_gram"]

_BLOCK = 2**17  # numbers of a block of rows: a megabyte
_FAINT = 1e-6  # of what the prior leaves open along a predictor: where its observation tells less, digits are lost
_FEW = 30  # columns: OpenBLAS inverts even fewer by several threads, which wait for one another on a busy machine
_MANY = 20  # columns from which half of a product costs less than the square roots it takes


def cholesky(P: FloatArray) -> FloatArray:
    """Lower factor L with ``P = L L'``.

    A matrix that is not positive definite to working precision gets the smallest jitter of 1e-14, 1e-12 ... 1e-6
    (relative to its diagonal) that makes it so. No other scaling is needed: the rounding errors of a Cholesky factor do
    not depend on the scale of the rows.

    Raises
    ------
    numpy.linalg.LinAlgError
        When even a jitter of 1e-6 does not help: the matrix is not positive definite at all.
    """
    if not P.size:  # LAPACK does not take an empty matrix; an empty model is a model all the same
        return np.empty((0, 0))
    L, info = lapack.dpotrf(P, lower=1)
    jitter = 1e-14
    while info != 0 and jitter <= 1e-6:
        raised = P.copy()
        raised.flat[:: len(P) + 1] *= 1 + jitter
        L, info = lapack.dpotrf(raised, lower=1)
        jitter *= 100
    if info != 0 or not np.isfinite(L[-1, -1]):
        raise np.linalg.LinAlgError("the posterior precision is not positive definite")
    return np.asarray(L)


def weighted_gram(Phi: FloatArray, b: FloatArray) -> FloatArray:
    """``Phi' diag(b) Phi``, in row blocks that stay in the cache.

    Parameters
    ----------
    Phi : array (n, k)
        In either memory order; for columns held as rows, hand in the transpose. Columns of rows in chunks have a
        product of their own.
    b : array (n,)
        Weights of the observations. Negative ones are allowed.
    """
    if not isinstance(Phi, np.ndarray):  # of rows in chunks
        return np.asarray(Phi.gram(b))
    n, k = Phi.shape
    product = _mirrored if k >= _MANY and b.min(initial=0.0) >= 0 else _whole
    step = max(1024, _BLOCK // max(k, 1))
    if n <= step:
        return product(Phi, b)
    out = np.zeros((k, k))
    for start in range(0, n, step):
        out += product(Phi[start : start + step], b[start : start + step])
    return out


def _whole(Phi: FloatArray, b: FloatArray) -> FloatArray:
    return np.asarray(Phi.T @ (b[:, None] * Phi))


def _mirrored(Phi: FloatArray, b: FloatArray) -> FloatArray:
    half = np.sqrt(b)[:, None] * Phi
    return np.asarray(half.T @ half)  # a matrix with its own transpose: numpy computes one half and mirrors it


def by_rows(Phi: FloatArray, alpha: FloatArray) -> FloatArray:
    """``Phi A^-1 Phi'``, (n, n): the prior covariance of the predictors."""
    half = Phi / np.sqrt(alpha)
    return np.asarray(half @ half.T)


class Primal:
    """Posterior factorised on the side of the k columns.

    Parameters
    ----------
    H : array (k, k)
        Curvature of the negative log-likelihood.
    alpha : array (k,)
        Prior precisions.
    """

    def __init__(self, H: FloatArray, alpha: FloatArray) -> None:
        P = H.copy()
        P.flat[:: len(alpha) + 1] += alpha
        self._take(cholesky(P), alpha)

    @classmethod
    def of_factor(cls, L: FloatArray, alpha: FloatArray) -> Primal:
        """From a lower factor of ``H + A`` that is known already."""
        new = cls.__new__(cls)
        new._take(L, alpha)
        return new

    def _take(self, L: FloatArray, alpha: FloatArray) -> None:
        self._L, self.alpha = L, alpha
        self._covariance: FloatArray | None = None

    @property
    def lower(self) -> FloatArray:
        """Lower factor of ``H + A``."""
        return np.tril(self._L)

    @cached_property
    def log_determinant(self) -> float:
        """Of ``H + A``; not needed on the way to a mode, so only computed when asked for."""
        return 2 * float(np.log(self._L.diagonal()).sum())

    def solve(self, v: FloatArray) -> FloatArray:
        """``Sigma v`` for a vector or for each column of a matrix."""
        if not v.size:
            return v
        x, _ = lapack.dpotrs(self._L, v, lower=1)
        return np.asarray(x)

    @property
    def covariance(self) -> FloatArray:
        """The k x k matrix Sigma."""
        if self._covariance is None and not self._L.size:
            self._covariance = self._L
        if self._covariance is None and len(self._L) <= _FEW:
            full = self.solve(np.eye(len(self._L)))
            self._covariance = 0.5 * (full + full.T)
        if self._covariance is None:
            half, _ = lapack.dpotri(self._L, lower=1)
            full = half + half.T  # LAPACK fills the lower half; the upper one is zero
            full.flat[:: len(full) + 1] = half.diagonal()
            self._covariance = full
        return self._covariance

    @property
    def factor(self) -> FloatArray:
        """A matrix F with ``F F' = Sigma``, upper triangular."""
        if not self._L.size:
            return self._L
        inverse, _ = lapack.dtrtri(self._L, lower=1)
        return np.asarray(np.tril(inverse).T)

    def spread(self, z: FloatArray) -> FloatArray:
        """``F z`` with the same F, which is not formed."""
        x, _ = lapack.dtrtrs(self._L, z, lower=1, trans=1)
        return np.asarray(x)

    @property
    def variance(self) -> FloatArray:
        """Diagonal of Sigma."""
        return np.asarray(self.covariance.diagonal())

    def covariances(self, at: IntArray) -> FloatArray:
        """Of some weights with each other, (g, m, m), for each of g rows of positions (g, m)."""
        return self.covariance[at[:, :, None], at[:, None]]

    @property
    def smoothing(self) -> FloatArray:
        """Diagonal of ``Sigma H Sigma``: how fast the degrees of freedom answer to a precision."""
        return np.asarray(self.variance - np.einsum("ij,j,ij->i", self.covariance, self.alpha, self.covariance))


class Dual:
    """The same posterior factorised on the side of the n observations, for n < k.

    Parameters
    ----------
    Phi : array (n, k)
        Columns.
    b : array (n,)
        Curvature of each observation's negative log-likelihood along the predictor, not negative.
    alpha : array (k,)
        Prior precisions, all positive.
    gram : array (n, n), optional
        `by_rows` of Phi and alpha, where that is known already.
    """

    def __init__(self, Phi: FloatArray, b: FloatArray, alpha: FloatArray, gram: FloatArray | None = None) -> None:
        self.alpha, self._Phi, self._root = alpha, Phi, np.sqrt(b)
        self._gram = by_rows(Phi, alpha) if gram is None else gram
        C = self._root[:, None] * self._gram * self._root
        C.flat[:: len(C) + 1] += 1.0
        self._L = cholesky(C)

    @cached_property
    def log_determinant(self) -> float:
        """Of ``H + A``."""
        return float(2 * np.log(self._L.diagonal()).sum() + np.log(self.alpha).sum())

    def solve(self, v: FloatArray) -> FloatArray:
        """``Sigma v`` for a vector or for each column of a matrix."""
        alpha, root = (self.alpha, self._root) if v.ndim == 1 else (self.alpha[:, None], self._root[:, None])
        x = v / alpha
        return np.asarray(x - (self._Phi.T @ (root * self._inner(root * (self._Phi @ x)))) / alpha)

    def whitened(self, columns: FloatArray) -> FloatArray:
        """``T columns`` with ``T'T = (B^-1 + Phi A^-1 Phi')^-1``."""
        rooted = np.asfortranarray(self._root[:, None] * columns)
        if "_inverse" in self.__dict__:  # made for something else
            return np.asarray(blas.dtrmm(1.0, self._inverse, rooted, lower=1, overwrite_b=1))
        return np.asarray(lapack.dtrtrs(self._L, rooted, lower=1, overwrite_b=1)[0])

    @cached_property
    def _inverse(self) -> FloatArray:
        inverse, _ = lapack.dtrtri(self._L, lower=1)
        return np.asarray(inverse)

    def regression(self, t: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Weights ``Sigma half' t`` and what they leave of t, ``half`` the columns times the roots of b.

        Without the difference of `solve`, of which few digits are left where the prior is weak.
        """
        left = self._inner(t)
        return np.asarray(self._Phi.T @ (self._root * left) / self.alpha), left

    @property
    def variance(self) -> FloatArray:
        """Diagonal of Sigma."""
        V = self.whitened(self._Phi)
        return np.asarray(1 / self.alpha - np.einsum("ij,ij->j", V, V) / self.alpha**2)

    @cached_property
    def lower(self) -> FloatArray:
        """Lower factor of ``H + A``, k x k: for a few more columns than rows."""
        return Primal(weighted_gram(self._Phi, self._root**2), self.alpha).lower

    @cached_property
    def covariance(self) -> FloatArray:
        """The k x k matrix Sigma, for the same use."""
        V = self.whitened(self._Phi / self.alpha)
        Sigma = -V.T @ V
        Sigma.flat[:: len(Sigma) + 1] += 1 / self.alpha
        return np.asarray(Sigma)

    def covariances(self, at: IntArray) -> FloatArray:
        """Of some weights with each other, (g, m, m), for each of g rows of positions (g, m)."""
        V = self.whitened(self._Phi[:, at.ravel()] / self.alpha[at.ravel()]).reshape(-1, *at.shape)
        out = -(V.transpose(1, 2, 0) @ V.transpose(1, 0, 2))
        out[:, np.arange(at.shape[1]), np.arange(at.shape[1])] += 1 / self.alpha[at]
        return np.asarray(out)

    @property
    def leverages(self) -> FloatArray:
        """Diagonal of ``Phi Sigma Phi'``: the variance of each predictor.

        By ``Phi Sigma Phi' = B^-1/2 (1 - C^-1) B^-1/2``, C of which L is the factor, but where that loses digits.
        """
        seen = 1 - np.einsum("ij,ij->j", self._inverse, self._inverse)
        faint = np.flatnonzero(seen < _FAINT)
        out = seen / np.maximum(self._root, 1e-150) ** 2
        V = self.whitened(self._gram[:, faint])
        out[faint] = self._gram.diagonal()[faint] - np.einsum("ij,ij->j", V, V)
        return np.asarray(out)

    @property
    def factor(self) -> FloatArray:
        """A matrix F with ``F F' = Sigma``, k x k: the prior's, narrowed along as many directions as there are rows."""
        U, narrowed = self.directions
        F = -(U * (1 - 1 / narrowed)) @ U.T
        F.flat[:: len(F) + 1] += 1.0
        return np.asarray(F / np.sqrt(self.alpha)[:, None])

    @cached_property
    def directions(self) -> tuple[FloatArray, FloatArray]:
        """Orthonormal U (k, n) of ``w sqrt(alpha)`` that the data see, and by how much they narrow the prior's sd."""
        values, vectors = np.linalg.eigh(self._root[:, None] * self._gram * self._root)
        there = values > 1e-13 * max(values[-1], 1e-300)
        U = self._Phi.T @ (self._root[:, None] * vectors[:, there] / np.sqrt(values[there]))
        return np.asarray(U / np.sqrt(self.alpha)[:, None]), np.sqrt(1 + values[there])

    def spread(self, v: FloatArray) -> FloatArray:
        """``v F'`` for many standard normal v (S, k), without F."""
        U, narrowed = self.directions
        return np.asarray((v - ((v @ U) * (1 - 1 / narrowed)) @ U.T) / np.sqrt(self.alpha))

    @property
    def smoothing(self) -> FloatArray:
        """Diagonal of ``Sigma H Sigma``."""
        W = self._inner(self._root[:, None] * self._Phi)
        return np.asarray(np.einsum("ij,ij->j", W, W) / self.alpha**2)

    def _inner(self, v: FloatArray) -> FloatArray:
        x, _ = lapack.dpotrs(self._L, v, lower=1)
        return np.asarray(x)


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

    def covariances(self, at: IntArray) -> FloatArray:
        """Of some weights with each other, (g, m, m), for each of g rows of positions (g, m)."""
        out = np.empty((*at.shape, at.shape[1]))
        for block, own in zip(out, at, strict=True):
            unit = np.zeros((len(self.alpha), len(own)))
            unit[own, np.arange(len(own))] = 1.0
            block[:] = self.solve(unit)[own]
        return out

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
