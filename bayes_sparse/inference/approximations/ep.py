"""Expectation propagation: each site makes the posterior agree with its observation's true likelihood.

With one observation's site taken out of the posterior (the cavity) and its likelihood put in, mean and variance along
its predictor are those that the posterior should have (Minka 2001). All sites at once, the next ones from the last few
rounds. A row whose weight is several rows has as many sites, all alike, and one of them is taken out at a time.
"""

from __future__ import annotations

import numpy as np

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inference.approximations._sites import Marginals, Matched, SiteApproximation
from bayes_sparse.inference.evidence.state import Objective
from bayes_sparse.problem.classes import AnyProblem

__all__ = ["ExpectationPropagation"]

_CERTAIN = 1e-9  # variance of a predictor below which its likelihood is as good as quadratic


class ExpectationPropagation(SiteApproximation):
    """Moments matched site by site; made as every `SiteApproximation`."""

    name = "ep"

    def __init__(self, problem: AnyProblem, objective: Objective) -> None:
        super().__init__(problem, objective)
        weights = np.ones(self._one.design.n) if self._one.weights is None else self._one.weights
        self._copies, self._share = np.maximum(weights, 1.0), np.minimum(weights, 1.0)

    def matched(self, marginals: Marginals, theta: FloatArray) -> Matched:
        """Sites that give each predictor the mean and the variance it has with the true likelihood."""
        mean, variance, slope, precision = marginals
        sd, top, ratio = self._ratio(marginals, theta)
        copies, rough = self._copies, variance > _CERTAIN
        with np.errstate(divide="ignore", invalid="ignore"):  # where sites are far off; the round is then gone back on
            total, shift, square = self._nodes.moments @ ratio
            shift, square = shift / total, square / total
            narrowed = square - shift**2
            new_slope = slope + copies * shift / (sd * narrowed)
            new_precision = precision + copies * (1 / narrowed - 1) / variance
        if not rough.all():
            _, first, second, *_ = self._one.derivatives(mean, theta, 2)
            new_slope, new_precision = np.where(rough, new_slope, first), np.where(rough, new_precision, -second)
        return Matched(copies * (np.log(total) + top), new_slope, np.maximum(new_precision, 0.0))

    def averaged(self, marginals: Marginals, theta: FloatArray, at: FloatArray) -> float:
        """The log-likelihood averaged over each predictor as it is with the true likelihood."""
        sd, _, ratio = self._ratio(marginals, theta)
        z, weights = self._nodes.rule
        values, tilted = self._one.log_densities(marginals.mean + sd * z, at[None]), weights * ratio
        return float((self._copies * self._share) @ ((tilted * values).sum(axis=0) / tilted.sum(axis=0)))

    def _ratio(self, marginals: Marginals, theta: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Sds, the log-likelihood of each observation at the mean, and likelihood over site at nodes, 1 at the mean."""
        mean, variance, slope, precision = marginals
        z, _ = self._nodes.rule
        sd = np.sqrt(variance)
        away = sd * z
        log_ratio = self._one.log_densities(mean + away, theta[None])
        if self._one.weights is not None:
            log_ratio = self._share * log_ratio
            slope, precision = slope / self._copies, precision / self._copies
        top = log_ratio[len(z) // 2].copy()
        site = (-0.5 * precision) * away
        site += slope
        site *= away
        log_ratio -= site
        log_ratio -= top
        with np.errstate(over="ignore"):  # as good as not a number: the sites are then far off
            return sd, top, np.exp(log_ratio, out=log_ratio)
