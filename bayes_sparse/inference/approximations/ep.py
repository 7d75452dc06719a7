"""Expectation propagation: each site makes the posterior agree with its observation's true likelihood.

With one observation's site taken out of the posterior (the cavity) and its likelihood put in, mean and variance along
its predictor are those that the posterior should have (Minka 2001). All sites at once, the next ones from the last few
rounds. A row whose weight is several rows has as many sites, all alike, and one of them is taken out at a time.
"""

from __future__ import annotations

import numpy as np

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inference.approximations._nodes import Nodes
from bayes_sparse.inference.approximations._sites import Marginals, Matched, SiteApproximation
from bayes_sparse.inference.evidence.state import Objective
from bayes_sparse.problem.classes import AnyProblem

__all__ = ["ExpectationPropagation"]

_CERTAIN = 1e-9  # variance of a predictor below which its likelihood is as good as quadratic


class ExpectationPropagation(SiteApproximation):
    """Moments matched site by site, for any log-concave likelihood of one predictor.

    Parameters
    ----------
    problem : Problem
        One predictor per observation, a log-concave likelihood.
    objective : Objective
        What is maximised.
    """

    name = "ep"

    def __init__(self, problem: AnyProblem, objective: Objective) -> None:
        super().__init__(problem, objective)
        self._nodes = Nodes()
        weights = np.ones(self._one.design.n) if self._one.weights is None else self._one.weights
        self._copies, self._share = np.maximum(weights, 1.0), np.minimum(weights, 1.0)

    def matched(self, marginals: Marginals, theta: FloatArray) -> Matched:
        """Sites that give each predictor the mean and the variance it has with the true likelihood."""
        mean, variance, slope, precision = marginals
        sd, log_total, tilted, z = self._tilted(marginals, theta)
        shift, square = np.hstack([z, z**2]).T @ tilted
        narrowed = square - shift**2
        copies, rough = self._copies, variance > _CERTAIN
        with np.errstate(divide="ignore", invalid="ignore"):
            new_slope = slope + copies * shift / (sd * narrowed)
            new_precision = precision + copies * (1 / narrowed - 1) / variance
        if not rough.all():
            _, first, second, *_ = self._one.derivatives(mean, theta, 2)
            new_slope, new_precision = np.where(rough, new_slope, first), np.where(rough, new_precision, -second)
        return Matched(copies * log_total, new_slope, np.maximum(new_precision, 0.0))

    def accurate(self, marginals: Marginals, theta: FloatArray) -> bool:
        """By trying more nodes."""
        sd = np.sqrt(marginals.variance)
        return self._nodes.enough(sd, lambda: float(self.matched(marginals, theta).value.sum()))

    def averaged(self, marginals: Marginals, theta: FloatArray, at: FloatArray) -> float:
        """The log-likelihood averaged over each predictor as it is with the true likelihood."""
        sd, _, tilted, z = self._tilted(marginals, theta)
        values = self._one.at_nodes(marginals.mean + sd * z, at)
        return float(self._copies @ (tilted * self._share * values).sum(axis=0))

    def _tilted(self, marginals: Marginals, theta: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Sds, log of each observation's likelihood over its site averaged over q, and q times their ratio at nodes."""
        mean, variance, slope, precision = marginals
        z, weights = self._nodes.rule
        sd = np.sqrt(variance)
        away = sd * z
        ratio = self._one.at_nodes(mean + away, theta)
        if self._one.weights is not None:
            ratio = self._share * ratio
        ratio += away * (0.5 * precision / self._copies * away - slope / self._copies)
        top = ratio.max(axis=0)
        np.exp(ratio - top, out=ratio)
        ratio *= weights
        total = ratio.sum(axis=0)
        ratio /= total
        return sd, np.log(total) + top, ratio, z
