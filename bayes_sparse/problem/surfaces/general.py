"""The surface of any log-likelihood whose value, gradient and Hessian can be computed, however it uses its weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import block_diag

from bayes_sparse.common.types import FloatArray

__all__ = ["GeneralSurface"]

_TENTHS = 20  # how often the start is brought ten times nearer to zero


@dataclass(eq=False)
class GeneralSurface:
    """A log-likelihood L(v) of d free and q fixed weights, given by three functions.

    Attributes
    ----------
    d, q, n : int
        Number of free weights, of fixed ones and of observations; v has the free weights first.
    slope : callable
        ``slope(v, theta)`` gives L and its gradient.
    bend : callable
        ``bend(v, theta, rows)`` gives ``rows @ d2L/dv2`` for rows of shape (k, d + q).
    terms : callable
        ``terms(v, theta)`` gives the log-densities of the n observations.
    begin : array
        Where a search begins, all weights: not where everything is zero, which is a saddle of every network.
    theta, theta_bounds : array (t,), array (t, 2)
        Start and limits of the nuisance parameters.
    log_prior : callable
        Their log-density.
    fixed_precision : callable
        ``fixed_precision(theta)`` gives the prior precisions of the fixed weights.
    classes : bool
        Whether the observations are of classes, so that L is a sum of log-probabilities of them.
    weights : array, optional
        How often each row of the observations counts.
    Q : array (d, all free weights), optional
        The free weights are ``w = Q' u`` and v holds u; None where it holds w itself.
    """

    d: int
    q: int
    n: int
    slope: Callable[[FloatArray, FloatArray], tuple[float, FloatArray]]
    bend: Callable[[FloatArray, FloatArray, FloatArray], FloatArray]
    terms: Callable[[FloatArray, FloatArray], FloatArray]
    begin: FloatArray
    theta: FloatArray
    theta_bounds: FloatArray
    log_prior: Callable[[FloatArray], float]
    fixed_precision: Callable[[FloatArray], FloatArray]
    classes: bool = False
    weights: FloatArray | None = None
    Q: FloatArray | None = None

    @property
    def count(self) -> float:
        """Number of observations, each as often as the weight of its row says."""
        return float(self.n if self.weights is None else self.n * self.weights.mean())

    def start(self) -> FloatArray:
        """Where a search over v begins: nearer to zero than `begin` where the likelihood is not finite there."""
        v = self.begin if self.Q is None else np.linalg.lstsq(self._rows.T, self.begin)[0]
        for _ in range(_TENTHS):
            if np.isfinite(self.look(v, self.theta).value):
                return v.copy()
            v = v / 10
        return np.zeros_like(v)

    def unit(self, theta: FloatArray) -> float:
        """Mean curvature of one observation along one free weight at the start, negative ones taken as positive."""
        H = self.look(self.start(), theta).steps()
        return float(np.trace(H[: self.d, : self.d])) / (self.count * max(self.d, 1)) or 1.0

    def look(self, v: FloatArray, theta: FloatArray) -> _Look:
        """The likelihood at a point; the Hessian only when it is asked for."""
        return _Look(self, self._inner(v), theta)

    def along(self, Q: FloatArray) -> GeneralSurface:
        """The free weights confined to ``w = Q' u``; nothing is compiled again."""
        return replace(self, d=len(Q), Q=Q if self.Q is None else Q @ self.Q)

    def reduced(self) -> tuple[GeneralSurface, None]:
        """No fewer weights: which of them can be told from zero depends on where one stands."""
        return self, None

    def log_densities(self, v: FloatArray, theta: FloatArray) -> FloatArray:
        """Log-density of each observation for every draw."""
        return np.stack([self.terms(*point) for point in zip(self._inner(v), theta, strict=True)])

    def pulled_back(self, gradient: FloatArray) -> FloatArray:
        """A gradient over all weights as one over v."""
        return gradient if self.Q is None else self._rows @ gradient

    def curvature(self, inner: FloatArray, theta: FloatArray) -> FloatArray:
        """Minus the Hessian over v, at all weights."""
        bent = self.bend(inner, theta, self._rows)
        H = -bent if self.Q is None else -bent @ self._rows.T
        return 0.5 * (H + H.T)  # equal but for rounding

    def _inner(self, v: FloatArray) -> FloatArray:
        return v if self.Q is None else v @ self._rows

    @cached_property
    def _rows(self) -> FloatArray:
        """The coordinates of v as rows among all weights."""
        free = np.eye(self.d) if self.Q is None else self.Q
        return np.asarray(block_diag(free, np.eye(self.q)))


class _Look:
    """A general surface at one point, given by all its weights."""

    def __init__(self, surface: GeneralSurface, inner: FloatArray, theta: FloatArray) -> None:
        self._surface, self._inner, self._theta = surface, inner, theta
        value, gradient = surface.slope(inner, theta)
        self.value = value if np.isfinite(value) else -np.inf
        self.gradient = surface.pulled_back(gradient)

    @cached_property
    def _curvature(self) -> FloatArray:
        return self._surface.curvature(self._inner, self._theta)

    def curvature(self) -> FloatArray:
        """Minus the Hessian, in an array of the caller's own."""
        return self._curvature.copy()

    def steps(self) -> FloatArray:
        """The curvature with its eigenvalues taken as positive, after Dauphin et al. (2014).

        A step against the curvature then goes uphill by a length that fits how strongly it bends, whatever the
        likelihood is; Gauss-Newton weights would have to know how it is made up.
        """
        h, U = np.linalg.eigh(self._curvature)
        return self.curvature() if (h >= 0).all() else (U * np.abs(h)) @ U.T

    @property
    def separates(self) -> bool:
        """Every observation's class more probable than not."""
        return self._surface.classes and bool((self._surface.terms(self._inner, self._theta) > np.log(0.5)).all())
