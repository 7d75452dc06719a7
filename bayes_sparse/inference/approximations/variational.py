"""Jaakkola's bound of a logistic likelihood; of any other log-concave one the bound of the best Gaussian (`kl`).

``log sigmoid(x) >= log sigmoid(xi) + (x - xi) / 2 - lam(xi) (x^2 - xi^2)``, ``lam(xi) = tanh(xi / 2) / (4 xi)``, for
any xi, is quadratic in x, so that the evidence of the bound has a closed form; it is greatest at ``xi^2 = <eta^2>``
(Jaakkola & Jordan 2000).
"""

from __future__ import annotations

import numpy as np
from scipy.special import log_expit

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inference.approximations._sites import Marginals, Matched
from bayes_sparse.inference.approximations.kl import KLApproximation

__all__ = ["VariationalApproximation"]


class VariationalApproximation(KLApproximation):
    """The papers' variational Gaussian: Jaakkola's bound where the likelihood is logistic.

    Parameters
    ----------
    problem : Problem
        One predictor per observation, a log-concave likelihood.
    objective : Objective
        What is maximised.
    """

    name = "variational"

    def matched(self, marginals: Marginals, theta: FloatArray) -> Matched:
        """Sites of the bound at its best xi."""
        if self._logistic is None:
            return super().matched(marginals, theta)
        (constant, y, trials), (mean, variance, _, precision) = self._logistic, marginals
        xi = np.sqrt(mean**2 + variance)
        tight = 2 * trials * _lam(xi)
        value = constant + (y - 0.5 * trials) * mean + trials * (log_expit(xi) - 0.5 * xi)
        return Matched(value + 0.5 * precision * variance, y - 0.5 * trials - tight * mean, tight)

    def accurate(self, marginals: Marginals, theta: FloatArray) -> bool:
        """A closed form is."""
        return self._logistic is not None or super().accurate(marginals, theta)


def _lam(xi: FloatArray) -> FloatArray:
    """``tanh(xi / 2) / (4 xi)``, 1/8 at zero."""
    small = xi < 1e-4
    safe = np.where(small, 1.0, xi)
    return np.where(small, 0.125 - xi**2 / 96, np.tanh(0.5 * safe) / (4 * safe))
