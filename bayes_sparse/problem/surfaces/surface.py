"""The log-likelihood as a function of weights: all that a one-step method asks of a model.

``v`` is d free weights, whose prior is to be found, followed by q fixed ones (bias, intercepts) with a known normal
prior. Nuisance parameters are the vector ``theta``, on the unconstrained scale.
"""

from __future__ import annotations

from typing import Protocol

from bayes_sparse.common.types import FloatArray

__all__ = ["Look", "Surface"]


class Look(Protocol):
    """What the likelihood looks like at one point."""

    @property
    def value(self) -> float:
        """Log-likelihood; minus infinity where it is not finite."""

    @property
    def gradient(self) -> FloatArray:
        """Its gradient, (d + q,)."""

    def curvature(self) -> FloatArray:
        """H, minus its Hessian, (d + q, d + q); not positive where the likelihood is not log-concave."""

    def steps(self) -> FloatArray:
        """A version of H that is never negative, for Newton steps."""

    @property
    def separates(self) -> bool:
        """Whether every observation of a classification is on its own side here."""


class Surface(Protocol):
    """A likelihood over weights, with the start and prior of its nuisance parameters."""

    @property
    def d(self) -> int:
        """Number of free weights."""

    @property
    def q(self) -> int:
        """Number of fixed weights."""

    @property
    def n(self) -> int:
        """Number of observations."""

    @property
    def weights(self) -> FloatArray | None:
        """How often each row counts, None for once."""

    @property
    def theta(self) -> FloatArray:
        """Where the search over nuisance parameters starts."""

    @property
    def theta_bounds(self) -> FloatArray:
        """Box that search stays in, (t, 2)."""

    def log_prior(self, theta: FloatArray) -> float:
        """Log-density of the nuisance parameters."""

    def fixed_precision(self, theta: FloatArray) -> FloatArray:
        """Prior precisions of the q fixed weights; zero for a flat prior."""

    def start(self) -> FloatArray:
        """Where a search over v begins."""

    def unit(self, theta: FloatArray) -> float:
        """Size of a ridge that means the same in all units: mean squared column times the likelihood's own scale."""

    def look(self, v: FloatArray, theta: FloatArray) -> Look:
        """The likelihood at a point."""

    def along(self, Q: FloatArray) -> Surface:
        """The same with the free weights confined to ``w = Q' u``, for Q of shape (k, d)."""

    def reduced(self) -> tuple[Surface, FloatArray | None]:
        """The same in fewer free weights where there are more than can be told from zero, with ``w = T' w_reduced``."""

    def log_densities(self, v: FloatArray, theta: FloatArray) -> FloatArray:
        """Log-likelihood of each observation, unweighted, for draws v (S, d + q) and theta (S, t): (S, n)."""
