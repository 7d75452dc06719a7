"""After a one-step method: the directions kept, with the priors found, and the fixed weights."""

from __future__ import annotations

import numpy as np

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inference.one_step.finish import EigenOutcome
from bayes_sparse.inference.sampling import Density
from bayes_sparse.problem.labelled import LabelledProblem
from bayes_sparse.trees.conditional.conditional import Conditional
from bayes_sparse.trees.one_step import direction_draws, weights_of_directions

__all__ = ["of_directions"]


def of_directions(labelled: LabelledProblem, outcome: EigenOutcome) -> Conditional:
    """p(u | alpha*, theta*, data) over the directions kept and the fixed weights."""
    k, theta = int(outcome.kept.sum()), outcome.quadratic.theta
    surface = labelled.surface.along(outcome.loadings)
    alpha, fixed = outcome.alpha[outcome.kept], labelled.surface.fixed_precision(theta)
    proper = fixed > 0
    constant = 0.5 * float(np.sum(np.log(fixed[proper] / (2 * np.pi))))

    def evaluate(v: FloatArray) -> tuple[float, FloatArray]:
        look = surface.look(v, theta)
        u, rest = v[:k], v[k:]
        value = look.value + float(outcome.prior.log_prior(u, alpha).sum()) + constant - 0.5 * float(fixed @ rest**2)
        return value, look.gradient + np.append(outcome.prior.slope(u, alpha), -fixed * rest)

    def pointwise(v: FloatArray) -> FloatArray:
        return surface.log_densities(v, np.broadcast_to(theta, (len(v), theta.size)))

    index, weights = np.arange(len(labelled.order)), weights_of_directions(labelled, outcome)

    def reported(v: FloatArray) -> FloatArray:
        return labelled.in_users_units(v @ weights, index) + labelled.prior_mean

    def more(v: FloatArray) -> dict[str, tuple[tuple[str, ...], FloatArray]]:
        mean, sd = np.zeros(len(outcome.kept)), np.zeros(len(outcome.kept))
        mean[outcome.kept], sd[outcome.kept] = v[:, :k].mean(axis=0), v[:, :k].std(axis=0)
        return {"u_mean": (("direction",), mean), "u_sd": (("direction",), sd)}

    return Conditional(
        density=Density(evaluate, outcome.posterior.mean, outcome.posterior.factor),
        reported=reported,
        posterior=lambda v, shape: direction_draws(labelled, outcome, v, np.empty((len(v), 0)), shape),
        pointwise=pointwise,
        held=labelled.unpack(theta),
        more=more,
    )
