"""After a method on the L1 path: the weights on the support under Laplace priors at lambda*.

With lambda integrated out the target would be improper at zero, so it is held. Nuisance parameters are not: the
posterior on the support is one of both.
"""

from __future__ import annotations

import numpy as np

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inference.l1.fixed_points import PathOutcome
from bayes_sparse.inference.sampling import Density
from bayes_sparse.problem.labelled import LabelledProblem
from bayes_sparse.trees.conditional.conditional import Conditional
from bayes_sparse.trees.draws import named_draws
from bayes_sparse.trees.l1_path import factor_on_support

__all__ = ["of_support"]

_STEP = 1e-5  # of the numerical derivative along a nuisance parameter


def of_support(labelled: LabelledProblem, outcome: PathOutcome) -> Conditional:
    """p(w, theta | lambda*, data) over the support, the unpriced weights and the nuisance parameters."""
    point, problem = outcome.point, labelled.problem
    index, k = point.index, len(point.index)
    active, priced = problem.active(index), (point.sign != 0).astype(float)
    flat = point.path.precision[index]
    low, high = problem.theta_bounds.T

    def log_likelihood(eta: FloatArray, theta: FloatArray) -> float:
        own = 0.0 if problem.log_prior is None else float(problem.log_prior(theta))
        return float(problem.terms(eta, theta)[0].sum()) + own

    def evaluate(x: FloatArray) -> tuple[float, FloatArray]:
        w, theta = x[:k], x[k:]
        if np.any(theta < low) or np.any(theta > high):
            return -np.inf, np.zeros_like(x)
        eta = problem.offset + active.predictor(w)
        value = log_likelihood(eta, theta) + float(outcome.log_laplace(w[None])[0])
        slope = active.pulled_back(problem.terms(eta, theta)[1]) - point.lam * priced * np.sign(w) - flat * w
        along = [
            (log_likelihood(eta, theta + step) - log_likelihood(eta, theta - step)) / (2 * _STEP)
            for step in _STEP * np.eye(theta.size)
        ]
        return value, np.append(slope, along)

    def pointwise(x: FloatArray) -> FloatArray:
        return problem.log_densities(problem.predictor(x[:, :k], index), x[:, k:])

    def reported(x: FloatArray) -> FloatArray:
        return labelled.in_users_units(x[:, :k], index) + labelled.prior_mean[index]

    return Conditional(
        density=Density(evaluate, np.append(point.w, point.theta), factor_on_support(outcome)),
        reported=reported,
        posterior=lambda x, shape: named_draws(labelled, index, x[:, :k], x[:, k:], shape),
        pointwise=pointwise,
    )
