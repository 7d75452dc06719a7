"""The prior N(0, 1/alpha) of a coordinate, against the likelihood ``exp(-h/2 (x - u)^2)``.

All is in closed form, with ``gamma = h/(h + alpha)``: the posterior is ``N(gamma u, 1/(h + alpha))`` and the integral
``sqrt(1 - gamma) exp(-(1 - gamma) h u^2/2)``. ``alpha = inf`` is a spike at zero: the coordinate is pruned.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inference.evidence.state import log_prior
from bayes_sparse.inference.newton import Peak, climb
from bayes_sparse.inference.priors._prior import Joint
from bayes_sparse.problem.gaussian import Primal
from bayes_sparse.problem.surfaces import Surface

__all__ = ["Gaussian", "excess"]

_LOG_2PI = float(np.log(2 * np.pi))


@dataclass(frozen=True)
class Gaussian:
    """The normal prior; ``alpha`` is its precision.

    Attributes
    ----------
    floor : float
        The least that the precision may be, under a slab.

    In all methods ``h > 0`` (curvature), ``u`` (centre) and ``alpha`` have shape (k,), one entry a coordinate.
    """

    floor: float = 0.0

    name: ClassVar[str] = "gaussian"
    octants: ClassVar[bool] = False

    def best(self, h: FloatArray, u: FloatArray, smoothness: float = 0.0) -> FloatArray:
        """The precision that maximises the log integral, less ``smoothness`` nats a degree of freedom.

        ``alpha = h/(h u^2 - 1 - 2c)`` with c the smoothness, or the floor if that is larger; infinite where it is not
        positive.
        """
        margin = excess(h, u) - 2 * smoothness
        pruned = margin <= 0
        alpha: FloatArray = np.where(pruned, np.inf, h / np.where(pruned, 1.0, margin))
        return np.maximum(alpha, self.floor)

    def log_integral(self, h: FloatArray, u: FloatArray, alpha: FloatArray) -> FloatArray:
        """Log of the integral of ``exp(-h/2 (x - u)^2) N(x; 0, 1/alpha)`` over x."""
        with np.errstate(over="ignore", divide="ignore"):  # the limits alpha -> 0 and alpha -> inf are right
            kept = 1 / (1 + h / alpha)
            log_kept: FloatArray = -np.logaddexp(0.0, np.log(h) - np.log(alpha))
        return 0.5 * (log_kept - kept * h * u**2)

    def moments(self, h: FloatArray, u: FloatArray, alpha: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of the posterior."""
        return h * u / (h + alpha), 1 / (h + alpha)

    def mode(self, h: FloatArray, u: FloatArray, alpha: FloatArray) -> FloatArray:
        """The posterior's highest point, which is its mean."""
        return self.moments(h, u, alpha)[0]

    def draw(self, h: FloatArray, u: FloatArray, alpha: FloatArray, count: int, rng: np.random.Generator) -> FloatArray:
        """Independent draws of the posterior, shape (count, k); zero where pruned."""
        mean, variance = self.moments(h, u, alpha)
        draws: FloatArray = mean + np.sqrt(variance) * rng.standard_normal((count, len(h)))
        return draws

    def log_density(self, x: FloatArray, h: FloatArray, u: FloatArray, alpha: FloatArray) -> FloatArray:
        """Normalised log density of the posterior at x, shape (count, k).

        Where pruned it is that of the spike against the counting measure: 0 at zero, minus infinity elsewhere.
        """
        return _log_normal(x - self.mode(h, u, alpha), h + alpha)

    def log_prior(self, x: FloatArray, alpha: FloatArray) -> FloatArray:
        """Log density of the prior at x, shape (count, k) or (k,); where pruned, 0 at zero."""
        return _log_normal(x, alpha)

    def slope(self, x: FloatArray, alpha: FloatArray) -> FloatArray:
        """Derivative of `log_prior` along x, where no coordinate is pruned."""
        slope: FloatArray = -alpha * x
        return slope

    def degrees_of_freedom(self, h: FloatArray, u: FloatArray, alpha: FloatArray) -> FloatArray:
        """``gamma = h/(h + alpha)``: how well the likelihood determines a coordinate, between 0 and 1."""
        return h / (h + alpha)

    def inverse_scale(self, alpha: FloatArray) -> FloatArray:
        """One over the prior's sd."""
        return np.sqrt(alpha)

    def last_step(
        self,
        surface: Surface,
        alpha: FloatArray,
        fixed: FloatArray,
        theta: FloatArray,
        start: FloatArray,
        octant: FloatArray | None,
    ) -> Peak:
        """Maximise a likelihood in the directions kept: by Newton's method, for which there are no octants."""
        return climb(surface, np.append(alpha, fixed), theta, start)

    def at_mode(self, peak: Peak, alpha: FloatArray, fixed: FloatArray) -> tuple[Joint, float]:
        """A normal posterior, correlations and all, and its log evidence."""
        precision = np.append(alpha, fixed)
        try:
            primal = Primal(peak.look.curvature(), precision)
        except np.linalg.LinAlgError:  # the curvature of the steps, where the true one is not enough
            primal = Primal(peak.look.steps(), precision)
        evidence = peak.look.value + log_prior(precision, peak.v) - 0.5 * primal.log_determinant
        return Joint(peak.v, primal, len(alpha)), evidence


def excess(h: FloatArray, u: FloatArray) -> FloatArray:
    """``h u^2 - 1`` as if with twice the digits: a finite hyper-parameter is best exactly where this is positive.

    Near 1 the plain expression loses all digits, and may even have the wrong sign.
    """
    m, i = np.frexp(h)
    v, j = np.frexp(u)
    square, low = _product(v, v)
    top, lost = _product(m, square)
    power = i + 2 * j
    over: FloatArray = np.ldexp(top, power) - 1 + np.ldexp(lost + m * low, power)
    return over


def _product(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The rounded product and what the rounding lost (Dekker 1971), for numbers of moderate size."""
    (a1, a2), (b1, b2) = _halves(a), _halves(b)
    product = a * b
    return product, a2 * b2 - (((product - a1 * b1) - a2 * b1) - a1 * b2)


def _halves(a: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The upper and the lower half of the digits (Veltkamp), so that products of halves are exact."""
    shifted = (2.0**27 + 1) * a
    upper = shifted - (shifted - a)
    return upper, a - upper


def _log_normal(x: FloatArray, precision: FloatArray) -> FloatArray:
    """Log density of N(0, 1/precision); at infinite precision, of a spike at zero."""
    spike = np.isinf(precision)
    with np.errstate(divide="ignore"):  # precision 0 is the improper limit, minus infinity
        density = 0.5 * (np.log(precision) - _LOG_2PI - np.where(spike, 0.0, precision) * x**2)
    log_density: FloatArray = np.where(spike, np.where(x == 0, 0.0, -np.inf), density)
    return log_density
