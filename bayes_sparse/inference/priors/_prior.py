"""What a prior of one coordinate must know, and the posteriors over directions that priors leave."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
from scipy.linalg import solve_triangular

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inference.newton import Peak
from bayes_sparse.problem.gaussian import Primal
from bayes_sparse.problem.surfaces import Surface

__all__ = ["DirectionPosterior", "Independent", "Joint", "Prior"]

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
    prior : Prior
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

    prior: Prior
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


type DirectionPosterior = Independent | Joint


@runtime_checkable
class Prior(Protocol):
    """The prior of one coordinate, against the likelihood ``exp(-h/2 (x - u)^2)``.

    In all methods ``h > 0`` (curvature), ``u`` (centre) and ``alpha`` (hyper-parameter) have shape (k,), one entry a
    coordinate; ``alpha = inf`` is a spike at zero: the coordinate is pruned.

    Attributes
    ----------
    name : str
        Its option's name.
    octants : bool
        The prior has a corner at zero, so that the last step can be confined to the signs of the expansion point.
    """

    name: ClassVar[str]
    octants: ClassVar[bool]

    def best(self, h: FloatArray, u: FloatArray, smoothness: float = 0.0) -> FloatArray:
        """The hyper-parameter that maximises the log integral, less ``smoothness`` nats a degree of freedom."""

    def log_integral(self, h: FloatArray, u: FloatArray, alpha: FloatArray) -> FloatArray:
        """Log of the integral of likelihood times prior."""

    def moments(self, h: FloatArray, u: FloatArray, alpha: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of the posterior."""

    def mode(self, h: FloatArray, u: FloatArray, alpha: FloatArray) -> FloatArray:
        """The posterior's highest point."""

    def draw(self, h: FloatArray, u: FloatArray, alpha: FloatArray, count: int, rng: np.random.Generator) -> FloatArray:
        """Independent draws of the posterior, shape (count, k)."""

    def log_density(self, x: FloatArray, h: FloatArray, u: FloatArray, alpha: FloatArray) -> FloatArray:
        """Normalised log density of the posterior at x, shape (count, k)."""

    def log_prior(self, x: FloatArray, alpha: FloatArray) -> FloatArray:
        """Log density of the prior at x, shape (count, k) or (k,)."""

    def slope(self, x: FloatArray, alpha: FloatArray) -> FloatArray:
        """Derivative of `log_prior` along x."""

    def degrees_of_freedom(self, h: FloatArray, u: FloatArray, alpha: FloatArray) -> FloatArray:
        """How well the likelihood determines a coordinate, between 0 and 1."""

    def inverse_scale(self, alpha: FloatArray) -> FloatArray:
        """One over the scale that a declaration gives the coordinate."""

    def last_step(
        self,
        surface: Surface,
        alpha: FloatArray,
        fixed: FloatArray,
        theta: FloatArray,
        start: FloatArray,
        octant: FloatArray | None,
    ) -> Peak:
        """Maximise a likelihood in the directions kept under the prior; ``octant`` holds the signs it may not leave."""

    def at_mode(self, peak: Peak, alpha: FloatArray, fixed: FloatArray) -> tuple[DirectionPosterior, float]:
        """Posterior and log evidence of the likelihood's own quadratic at the mode."""
