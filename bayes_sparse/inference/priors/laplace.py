"""The prior ``alpha/4 exp(-alpha |x|/2)`` of a coordinate, against the likelihood ``exp(-h/2 (x - u)^2)``.

In the units ``y = sqrt(h) x`` the integral depends on two numbers, ``z = sqrt(h) |u|`` and ``b = alpha/(2 sqrt h)``
(Kropotov and Vetrov 2007, equations 12-14):

    f = b/2 exp(-z^2/2) (R(b - z) + R(b + z)),    R(x) = integral over t > 0 of exp(-t^2/2 - x t),

one term for each sign of y, the first for that of u. Given its sign, ``|y|`` is N(z - b, 1) or N(-z - b, 1) kept above
zero, so the posterior is a mixture of two truncated normals. ``alpha = inf`` is a spike at zero: the coordinate is
pruned.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx, expit, log_expit, log_ndtr, ndtri_exp, roots_genlaguerre

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inference.evidence.state import log_prior
from bayes_sparse.inference.l1.quadratic import climb_l1
from bayes_sparse.inference.newton import Peak, Profile
from bayes_sparse.inference.priors._prior import Independent
from bayes_sparse.inference.priors.gaussian import excess
from bayes_sparse.problem.surfaces import Surface

__all__ = ["Laplace"]

_LOG_2PI = float(np.log(2 * np.pi))
_NODES, _WEIGHTS = roots_genlaguerre(32, 1)
_NEAR = 0.35  # h u^2 - 1 below which the mixture form is the accurate one
_STEPS = 4  # of Newton; the root depends on one number alone, and over all its values these are enough
_FAR = 3.0  # where a truncated normal is far enough in the tail for the continued fraction
_TERMS = 40


@dataclass(frozen=True)
class Laplace:
    """The double-exponential prior of scale ``2/alpha``.

    In all methods ``h > 0`` (curvature), ``u`` (centre) and ``alpha`` have shape (k,), one entry a coordinate.
    """

    name: ClassVar[str] = "laplace"
    octants: ClassVar[bool] = True

    def best(self, h: FloatArray, u: FloatArray, smoothness: float = 0.0) -> FloatArray:
        """The alpha that maximises the log integral: infinite where ``h u^2 <= 1``, as for the Gaussian prior."""
        if smoothness != 0:
            raise ValueError(
                f"The Laplace prior has no price for a degree of freedom, but smoothness is {smoothness}: "
                "leave it at 0, or take the Gaussian prior."
            )
        over = excess(h, u)
        finite = ~(over <= 0)
        alpha = np.full(len(over), np.inf)
        alpha[finite] = 2 * np.sqrt(h[finite]) * _best(over[finite])
        return alpha

    def log_integral(self, h: FloatArray, u: FloatArray, alpha: FloatArray) -> FloatArray:
        """Log of the integral of ``exp(-h/2 (x - u)^2) alpha/4 exp(-alpha |x|/2)`` over x."""
        half_square = 0.5 * h * u**2
        z, b, spike = _scaled(h, u, alpha)
        least = np.minimum(b, z)
        near = _log_mills(b - z) + least * (0.5 * least - z)  # z^2/2 cancels before it can cost digits
        both = np.logaddexp(near, _log_mills(b + z) - half_square)
        with np.errstate(divide="ignore"):  # alpha = 0 is the improper limit, minus infinity
            log_b = np.log(alpha) - 0.5 * np.log(h) - np.log(4.0)
        log_f: FloatArray = np.where(spike, -half_square, log_b + both)
        return log_f

    def moments(self, h: FloatArray, u: FloatArray, alpha: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of the posterior."""
        z, b, spike = _scaled(h, u, alpha)
        s = _sides(z, b)
        mean = s.p * s.mean - s.q * s.other_mean
        variance = s.p * s.variance + s.q * s.other_variance + s.p * s.q * (s.mean + s.other_mean) ** 2
        return np.where(spike, 0.0, np.sign(u) * mean / np.sqrt(h)), np.where(spike, 0.0, variance / h)

    def mode(self, h: FloatArray, u: FloatArray, alpha: FloatArray) -> FloatArray:
        """The posterior's highest point: u drawn towards zero by ``alpha/(2h)``, and no further than zero."""
        with np.errstate(over="ignore"):
            mode: FloatArray = np.sign(u) * np.maximum(np.abs(u) - 0.5 * alpha / h, 0.0)
        return mode

    def draw(self, h: FloatArray, u: FloatArray, alpha: FloatArray, count: int, rng: np.random.Generator) -> FloatArray:
        """Independent draws of the posterior, shape (count, k), exact; zero where pruned."""
        live = ~np.isinf(alpha)
        z, b, _ = _scaled(h[live], u[live], alpha[live])
        same = rng.random((count, len(z))) < expit(_log_odds(z, b))
        size = _truncated(np.where(same, b - z, b + z), rng.standard_exponential((count, len(z))))
        draws = np.zeros((count, len(h)))
        draws[:, live] = np.where(same, size, -size) * np.where(u[live] < 0, -1.0, 1.0) / np.sqrt(h[live])
        return draws

    def log_density(self, x: FloatArray, h: FloatArray, u: FloatArray, alpha: FloatArray) -> FloatArray:
        """Normalised log density of the posterior at x, shape (count, k).

        Where pruned it is that of the spike against the counting measure: 0 at zero, minus infinity elsewhere.
        """
        z, b, spike = _scaled(h, u, alpha)
        y = np.sqrt(h) * np.abs(x)
        same = np.where(u < 0, -x, x) >= 0
        tail = np.where(same, b - z, b + z)
        log_odds = _log_odds(z, b)
        log_side = np.where(same, log_expit(log_odds), log_expit(-log_odds))
        exponent = -0.5 * (y + np.minimum(tail, 0.0)) ** 2 - np.maximum(tail, 0.0) * y
        density = log_side + exponent - _log_mills(tail) + 0.5 * np.log(h)
        log_density: FloatArray = np.where(spike, np.where(x == 0, 0.0, -np.inf), density)
        return log_density

    def log_prior(self, x: FloatArray, alpha: FloatArray) -> FloatArray:
        """Log density of the prior at x, shape (count, k) or (k,); where pruned, 0 at zero."""
        spike = np.isinf(alpha)
        with np.errstate(divide="ignore"):
            density = np.log(alpha) - np.log(4.0) - 0.5 * np.where(spike, 0.0, alpha) * np.abs(x)
        log_prior: FloatArray = np.where(spike, np.where(x == 0, 0.0, -np.inf), density)
        return log_prior

    def slope(self, x: FloatArray, alpha: FloatArray) -> FloatArray:
        """Derivative of `log_prior` along x, where no coordinate is pruned."""
        slope: FloatArray = -0.5 * alpha * np.sign(x)
        return slope

    def degrees_of_freedom(self, h: FloatArray, u: FloatArray, alpha: FloatArray) -> FloatArray:
        """``gamma = h Var(x)``: how far the posterior mean follows u, between 0 and 1.

        It is the derivative of the posterior mean by u, and how much of the likelihood's variance 1/h is left; for
        the Gaussian prior the same is ``h/(h + alpha)``. It never exceeds 1, because the prior is log-concave
        (Brascamp and Lieb 1976); at the best alpha of large ``h u^2`` it is within rounding of 1.
        """
        return np.minimum(h * self.moments(h, u, alpha)[1], 1.0)

    def inverse_scale(self, alpha: FloatArray) -> FloatArray:
        """One over the scale ``2/alpha``."""
        return 0.5 * alpha

    def last_step(
        self,
        surface: Surface,
        alpha: FloatArray,
        fixed: FloatArray,
        theta: FloatArray,
        start: FloatArray,
        octant: FloatArray | None,
    ) -> Peak:
        """Maximise a likelihood in the directions kept: a convex problem with absolute-value prices."""
        if octant is not None:  # the octant is that of the expansion point, whichever coordinates start at zero
            k = len(octant)
            start[:k] = np.where(start[:k] == 0, 1e-9 * octant, start[:k])
        return climb_l1(surface, alpha / 2, fixed, theta, start, octant=octant is not None)

    def at_mode(self, peak: Peak, alpha: FloatArray, fixed: FloatArray) -> tuple[Independent, float]:
        """Every direction by itself, in which it has a closed form; correlations enter the log evidence alone."""
        k = len(alpha)
        profile = Profile.of(_positive(peak, alpha), k, fixed)
        u, x = peak.v[:k], peak.v[k:]
        curvature = np.maximum(profile.S.diagonal(), 1e-300)
        slope = peak.look.gradient[:k]
        centre = u + slope / curvature
        height = peak.look.value + log_prior(fixed, x) - float(np.log(profile.L.diagonal()).sum())
        evidence = height + 0.5 * float(np.sum(slope**2 / curvature))
        evidence += float(self.log_integral(curvature, centre, alpha).sum())
        correlation = profile.S / np.sqrt(np.outer(curvature, curvature))
        evidence -= 0.5 * float(np.linalg.slogdet(correlation)[1]) if k else 0.0
        return Independent(self, curvature, centre, alpha, u, x, profile.link, profile.L), evidence


def _positive(peak: Peak, alpha: FloatArray) -> FloatArray:
    """The curvature at a mode; where it is not positive (semi-)definite, that of the steps and a little of the prior's.

    A Laplace prior has no curvature of its own; ``(alpha / 2)^2`` is that of a parabola as wide as it is.
    """
    H = peak.look.curvature()
    if not len(H) or np.linalg.eigvalsh(H)[0] > -1e-10 * max(float(np.abs(H).max()), 1e-300):
        return H
    H = peak.look.steps()
    k = len(alpha)
    H[np.arange(k), np.arange(k)] += 1e-6 * (alpha / 2) ** 2
    return H


class _Sides(NamedTuple):
    """Probability, mean and variance of ``|y|`` on the side of u, and the same of the other side."""

    p: FloatArray
    mean: FloatArray
    variance: FloatArray
    q: FloatArray
    other_mean: FloatArray
    other_variance: FloatArray


def _scaled(h: FloatArray, u: FloatArray, alpha: FloatArray) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]]:
    """z, b and which are pruned; b of those is some finite number, to be overwritten."""
    spike = np.isinf(alpha)
    root = np.sqrt(h)
    return root * np.abs(u), np.where(spike, 1.0, 0.5 * alpha / root), spike


def _log_mills(x: FloatArray) -> FloatArray:
    """``log R(x)``, less ``x^2/2`` where x is negative and that is the large part of it."""
    right, left = np.maximum(x, 0.0), np.minimum(x, 0.0)
    log_mills: FloatArray = np.log(erfcx(right * np.sqrt(0.5))) + log_ndtr(-left) + 0.5 * _LOG_2PI
    return log_mills


def _log_odds(z: FloatArray, b: FloatArray) -> FloatArray:
    """Log odds that the coordinate has the sign of u."""
    return _log_mills(b - z) + 0.5 * np.minimum(b - z, 0.0) ** 2 - _log_mills(b + z)


def _sides(z: FloatArray, b: FloatArray) -> _Sides:
    """Both halves of the posterior."""
    log_odds = _log_odds(z, b)
    (mean, other_mean), (variance, other_variance) = _tail_moments(np.stack([b - z, b + z]))
    return _Sides(expit(log_odds), mean, variance, expit(-log_odds), other_mean, other_variance)


def _tail_moments(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of N(-x, 1) kept above zero.

    With ``I_n`` the integral of ``t^n/n! exp(-t^2/2 - x t)`` over t > 0 and ``r_n = I_n/I_(n-1)``, they are ``r_1`` and
    ``r_1 (2 r_2 - r_1)``, and ``r_n = 1/(x + (n + 1) r_(n+1))``: a continued fraction that, unlike the textbook form,
    loses no digits in the tail.
    """
    far = x > _FAR
    close = np.where(far, 0.0, x)
    hazard = np.sqrt(2 / np.pi) / erfcx(close * np.sqrt(0.5))
    mean = hazard - close
    variance = 1 - hazard * mean
    if far.any():
        t = x[far]
        r = 2 / (t + np.hypot(t, 2 * np.sqrt(_TERMS + 1)))  # where neighbours are alike
        for n in range(_TERMS, 2, -1):
            r = 1 / (t + n * r)
        mean[far] = 1 / (t + 2 * r)
        variance[far] = mean[far] * (2 * r - mean[far])
    return mean, variance


def _truncated(x: FloatArray, exponential: FloatArray) -> FloatArray:
    """Draws of N(-x, 1) kept above zero, from standard exponential ones, by inversion."""
    draws = np.empty_like(x)
    far = x > _FAR
    t, e = x[~far], exponential[~far]
    draws[~far] = np.maximum(-ndtri_exp(log_ndtr(-t) - e) - t, 0.0)
    t, e = x[far], exponential[far]
    y, start = 2 * e / (t + np.hypot(t, np.sqrt(2 * e))), _log_mills(t)
    for _ in range(3):  # Newton, downhill on a convex function: from the side where it cannot overshoot
        here = _log_mills(t + y)
        y = y - ((0.5 * y + t) * y + start - here - e) * np.exp(here)
    draws[far] = np.maximum(y, 0.0)
    return draws


def _best(over: FloatArray) -> FloatArray:
    """The best b for ``z^2 - 1 = over``, by Newton's method in log b, kept between ``1/sqrt(over)`` and twice that.

    These are its limits for large and small ``over``; in between, b* sqrt(over) falls from 2 to 1.
    """
    ratio = 1 + 1 / (1 + over * (1 + over**2 / (over**2 + 5 * over + 35)))  # within 0.3% of b* sqrt(over)
    b = ratio / np.sqrt(over)
    low, high = 1 / np.sqrt(over), 2 / np.sqrt(over)
    near = over < _NEAR
    for part, step in ((near, _step_of_mixture), (~near, _step_of_tails)):
        if part.any():
            for _ in range(_STEPS):
                b[part] = np.clip(b[part] * np.exp(step(over[part], b[part])), low[part], high[part])
    return b


def _step_of_tails(over: FloatArray, b: FloatArray) -> FloatArray:
    """Newton's step in log b of ``d log f/d log b = 1 - b E|y|``."""
    s = _sides(np.sqrt(1 + over), b)
    mean = s.p * s.mean + s.q * s.other_mean
    variance = s.p * s.variance + s.q * s.other_variance + s.p * s.q * (s.mean - s.other_mean) ** 2
    return (1 - b * mean) / (b * (mean - b * variance))


def _step_of_mixture(over: FloatArray, b: FloatArray) -> FloatArray:
    """The same step where ``1 - b E|y|`` cancels: with the prior as an exponential mixture of normals.

    With variance ``s t`` of density ``exp(-t)`` and ``s = 2/b^2``, ``df/ds`` is proportional to the integral of
    ``t exp(-t) K(s t) (z^2 - 1 - s t)``, ``K(v) = (1 + v)^(-5/2) exp(z^2 v/(2 (1 + v)))``.
    """
    square = 1 + over[:, None]
    v = (2 / b**2)[:, None] * _NODES
    r = 1 / (1 + v)
    K = r**2 * np.sqrt(r) * np.exp(0.5 * square * v * r)
    rest = over[:, None] - v
    slope = v * ((0.5 * square * r - 2.5) * r * rest - 1)
    return 0.5 * ((K * rest) @ _WEIGHTS) / ((K * slope) @ _WEIGHTS)
