"""The Gaussian with the greatest lower bound of the log evidence: the one nearest the posterior by KL(q || p).

``log E >= sum_n <l_n> - KL(q || prior)``, averages over q's own predictors. At the maximum each observation's curvature
is ``-<l''>`` and its slope ``<l'>``: Laplace's method with the likelihood blurred by what is not known.
"""

from __future__ import annotations

import numpy as np

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inference.approximations._logistic import logistic
from bayes_sparse.inference.approximations._sites import Marginals, Matched, SiteApproximation
from bayes_sparse.inference.evidence.state import Objective
from bayes_sparse.problem.classes import AnyProblem

__all__ = ["KLApproximation"]

_AT_ONCE = 2**20  # values of the likelihood at all nodes together; of more rows node by node is as quick


class KLApproximation(SiteApproximation):
    """The Gaussian nearest to the posterior by KL(q || p); made as every `SiteApproximation`."""

    name = "kl"

    def __init__(self, problem: AnyProblem, objective: Objective) -> None:
        super().__init__(problem, objective)
        self._logistic = logistic(self._one)

    def matched(self, marginals: Marginals, theta: FloatArray) -> Matched:
        """Sites with the average slope and curvature of the likelihood."""
        mean, variance, _, precision = marginals
        value, slope, curvature = self._averages(mean, np.sqrt(variance), theta)
        return Matched(value + 0.5 * precision * variance, slope, np.maximum(curvature, 0.0))

    def _averages(self, mean: FloatArray, sd: FloatArray, theta: FloatArray) -> FloatArray:
        """Of log-likelihood, slope and curvature, (3, n)."""
        z, weights = self._nodes.rule
        if self._logistic is not None:
            return np.array([weights[:, 0] @ term for term in self._logistic.terms(mean + sd * z)])
        if self._one.broadcasts and mean.size * len(z) <= _AT_ONCE:
            total = np.array([weights[:, 0] @ term for term in self._one.derivatives(mean + sd * z, theta, 2)[:3]])
            total[2] *= -1
            return total
        total = np.zeros((3, len(mean)))
        for node, weight in zip(z[:, 0], weights[:, 0], strict=True):
            total += weight * np.array(self._one.derivatives(mean + sd * node, theta, 2)[:3])
        total[2] *= -1
        return total

    def averaged(self, marginals: Marginals, theta: FloatArray, at: FloatArray) -> float:
        """The average log-likelihood."""
        return float(self.matched(marginals, at).value.sum())
