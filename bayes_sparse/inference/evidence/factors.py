"""The Gamma factors of a variational posterior ``q(w) q(alpha) q(1/sigma^2)``, and their part of its bound.

Under a prior ``Gamma(a, b)`` a precision of k normal weights has ``q = Gamma(a + k/2, rate)``. Over the best normal
``q(w)`` the bound depends on its mean m alone: ``log Z(m) + a log m - b m`` and a constant, where ``log Z`` is the log
evidence at precisions m. The digammas of the textbook's bound cancel. With k the number of observations the same holds
of a normal likelihood's ``1/sigma^2``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from bayes_sparse.common.types import FloatArray, IntArray

__all__ = ["Factors", "constant_of"]


def constant_of(shape: FloatArray, a: float, b: float) -> FloatArray:
    """What a factor of this shape adds to the bound beside ``a log m - b m``, under the prior Gamma(a, b)."""
    return np.asarray(gammaln(shape) - gammaln(a) + a * np.log(b) + shape - shape * np.log(shape))


@dataclass(frozen=True, eq=False)
class Factors:
    """Gamma factors beside the normal one of a state, whose precisions and noise are their means.

    Attributes
    ----------
    bound : float
        Lower bound of log p(y), everything integrated out that has a factor.
    shape : array (k,)
        Of the precision of each active column; NaN where that is fixed.
    noise_shape : float
        Of 1/sigma^2; NaN where the noise is known, or a point.
    """

    bound: float
    shape: FloatArray
    noise_shape: float = np.nan

    def precisions(self, mean: FloatArray, groups: IntArray | None, count: int, rng: np.random.Generator) -> FloatArray:
        """Draws (count, k) of the precisions of active columns; those of one group share theirs."""
        labels = np.arange(len(mean)) if groups is None else groups
        _, first, place = np.unique(labels, return_index=True, return_inverse=True)
        fixed = np.isnan(self.shape)
        shape = np.where(fixed, 1.0, self.shape)[first]
        drawn = rng.standard_gamma(shape, (count, len(first))) / shape
        return np.asarray(np.where(fixed, 1.0, drawn[:, place]) * mean)

    def log_sigma(self, theta: FloatArray, count: int, rng: np.random.Generator) -> FloatArray:
        """Draws (count, 1) of log sigma, where ``exp(-2 theta)`` is the mean of 1/sigma^2."""
        drawn = rng.standard_gamma(self.noise_shape, (count, 1)) / self.noise_shape
        return np.asarray(theta - 0.5 * np.log(drawn))
