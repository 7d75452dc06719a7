"""Posteriors over the directions kept and the fixed weights: moments, draws and their density."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from bayes_sparse.inference.priors import Gaussian, Laplace
from bayes_sparse.problem.design import FloatArray
from bayes_sparse.problem.gaussian import Primal

__all__ = ["Independent", "Joint"]

_LOG_2PI = float(np.log(2 * np.pi))


@dataclass(frozen=True, eq=False)
class Joint:
    """A normal posterior over all coordinates together.

    Attributes
    ----------
    mean : array (k + q,)
        Directions, then fixed weights.
    primal : Primal
        Its factorised precision.
    k : int
        How many directions there are.
    """

    mean: FloatArray
    primal: Primal
    k: int

    @property
    def factor(self) -> FloatArray:
        """F with F F' the covariance."""
        return self.primal.factor

    def draw(self, count: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Independent draws and their log-density."""
        z = rng.standard_normal((count, len(self.mean)))
        log_q = -0.5 * (np.sum(z**2, axis=1) + len(self.mean) * _LOG_2PI - self.primal.log_determinant)
        return self.mean + z @ self.factor.T, log_q


@dataclass(frozen=True, eq=False)
class Independent:
    """Every direction by itself, the fixed weights normal around a linear function of them.

    Attributes
    ----------
    prior : Gaussian or Laplace
        On each direction.
    h, centre, alpha : array (k,)
        The quadratic likelihood and the prior of each direction.
    anchor, x : array (k,), array (q,)
        Where the directions are when the fixed weights are at x.
    link : array (q, k)
        How far the fixed weights fall for a rise of each direction.
    L : array (q, q)
        Lower factor of the fixed weights' precision given the directions.
    """

    prior: Gaussian | Laplace
    h: FloatArray
    centre: FloatArray
    alpha: FloatArray
    anchor: FloatArray
    x: FloatArray
    link: FloatArray
    L: FloatArray

    @property
    def mean(self) -> FloatArray:
        """Of directions, then fixed weights."""
        u, _ = self.prior.moments(self.h, self.centre, self.alpha)
        return np.append(u, self._fixed(u))

    @property
    def factor(self) -> FloatArray:
        """F with F F' the covariance."""
        k, q = len(self.h), len(self.x)
        _, variance = self.prior.moments(self.h, self.centre, self.alpha)
        out = np.zeros((k + q, k + q))
        out[:k, :k] = np.diag(np.sqrt(variance))
        out[k:, :k] = -self.link * np.sqrt(variance)
        if q:
            out[k:, k:] = solve_triangular(self.L, np.eye(q), lower=True).T
        return out

    def draw(self, count: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Independent, exact draws and their log-density."""
        u = self.prior.draw(self.h, self.centre, self.alpha, count, rng)
        log_q = self.prior.log_density(u, self.h, self.centre, self.alpha).sum(axis=1)
        z = rng.standard_normal((count, len(self.x)))
        x = self._fixed(u)
        if len(self.x):
            x = x + solve_triangular(self.L, z.T, lower=True, trans="T").T
            log_q = log_q - 0.5 * np.sum(z**2, axis=1) - 0.5 * len(self.x) * _LOG_2PI
            log_q += float(np.log(self.L.diagonal()).sum())
        return np.hstack([u, x]), log_q

    def _fixed(self, u: FloatArray) -> FloatArray:
        return np.asarray(self.x - (u - self.anchor) @ self.link.T)
