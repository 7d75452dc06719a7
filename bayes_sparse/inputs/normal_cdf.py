"""The logarithm of the normal distribution function: as a graph for PyMC, and with three derivatives for a fit.

Both are right to the last few digits wherever a predictor may go. What differentiating the graph three times would lose
by cancellation comes from the continued fraction of Mills' ratio (NIST DLMF 7.9.3), in which nothing is subtracted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytensor.tensor as pt
from scipy.special import log_ndtr

from bayes_sparse.common.types import FloatArray

__all__ = ["log_density_above", "log_half_erfc", "log_ndtr_terms"]

_FAR = 4.0  # beyond it the continued fraction has converged after so many levels
_LEVELS = 40


def log_half_erfc(x: Any) -> Any:
    """Graph of ``log(erfc(x) / 2)``, the log of the normal distribution function at ``-sqrt(2) x``."""
    # Both branches are kept finite everywhere: a gradient multiplies the one not taken by zero.
    far, near = pt.maximum(x, 0.5), pt.minimum(x, 0.5)
    return pt.switch(pt.gt(x, 0.5), pt.log(pt.erfcx(far) / 2) - far**2, pt.log1p(-pt.erfc(-near) / 2))


def log_density_above(value: Any, mu: Any, sigma: Any, bound: Any) -> Any:
    """Graph of the log-density of a normal variable that is known to lie above a bound.

    With a mean far below the bound the density and its normaliser have one large square in common, which is left out of
    both: their difference would be rounding errors, to be taken for a likelihood.
    """
    x, beyond = (bound - mu) / (np.sqrt(2) * sigma), (value - bound) / (np.sqrt(2) * sigma)
    far, near = pt.maximum(x, 0.5), pt.minimum(x, 0.5)  # as above
    below = -(beyond**2) - 2 * beyond * far - pt.log(pt.erfcx(far) / 2)
    inside = -(((value - mu) / sigma) ** 2) / 2 - pt.log1p(-pt.erfc(-near) / 2)
    density = pt.switch(pt.gt(x, 0.5), below, inside) - pt.log(sigma) - np.log(2 * np.pi) / 2
    return pt.switch(pt.lt(value, bound), -np.inf, density)


def log_ndtr_terms(s: FloatArray) -> list[FloatArray]:
    """``log Phi(s)`` and its first three derivatives."""
    near, far = np.clip(s, -_FAR, 40.0), s < -_FAR  # the density is zero in doubles before 40
    value = np.asarray(log_ndtr(s))
    slope = np.exp(-0.5 * near**2 - 0.5 * np.log(2 * np.pi) - np.maximum(value, log_ndtr(-_FAR)))
    rest = slope + near
    terms = [value, slope, -slope * rest, slope * (rest * (slope + rest) - 1)]
    for term, beyond in zip(terms[1:], _beyond(-s[far]), strict=True):
        term[far] = beyond
    return terms


def _beyond(x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The derivatives at -x far below zero, from ``c_k = 1 / (x + (k + 1) c_(k+1))``: the first is ``x + c_1``.

    The second is ``-(x + c_1) c_1``; the third follows from ``c_1 - c_2 = (3 c_3 - 2 c_2) c_1 c_2`` and from
    ``3 c_3 - 2 c_2 = (x + 9 c_3 - 8 c_4) c_2 c_3``.
    """
    c = [1 / x]
    for k in range(_LEVELS, 0, -1):
        c.append(1 / (x + (k + 1) * c[-1]))
    c4, c3, c2, c1 = c[-4:]
    slope = x + c1
    return slope, -slope * c1, 2 * slope * c1 * (c1 * c2) * (c2 * c3) * (x + 9 * c3 - 8 * c4)
