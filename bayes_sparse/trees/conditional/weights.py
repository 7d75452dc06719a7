"""After an evidence method: the weights of the columns kept, with their normal priors."""

from __future__ import annotations

import numpy as np

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inference.evidence.state import State
from bayes_sparse.inference.sampling import Density
from bayes_sparse.problem.classes import ClassProblem
from bayes_sparse.problem.labelled import LabelledProblem
from bayes_sparse.trees.conditional.conditional import Conditional
from bayes_sparse.trees.draws import factor_of, named_draws

__all__ = ["of_weights"]


def of_weights(labelled: LabelledProblem, state: State) -> Conditional:
    """p(w | alpha*, theta*, data) over the columns kept."""
    problem, index, alpha, theta = labelled.searched, state.index, state.alpha, state.theta
    if isinstance(problem, ClassProblem) and problem.link != "softmax":
        raise ValueError(
            "method='one_vs_rest' fits one model a class, which have no joint posterior to be sampled; start from "
            "another method, or leave out `condition`."
        )
    active, proper = problem.active(index), alpha > 0
    constant = 0.5 * float(np.sum(np.log(alpha[proper] / (2 * np.pi))))
    terms = problem.derivatives if isinstance(problem, ClassProblem) else problem.terms

    def evaluate(w: FloatArray) -> tuple[float, FloatArray]:
        value, slope = terms(problem.offset + active.predictor(w), theta)[:2]
        pull = alpha * w
        return float(value.sum()) + constant - 0.5 * float(pull @ w), active.pulled_back(slope) - pull

    def pointwise(w: FloatArray) -> FloatArray:
        held = np.broadcast_to(theta, (len(w), theta.size))
        return problem.log_densities(problem.predictor(w, index), held)

    def reported(w: FloatArray) -> FloatArray:
        return labelled.in_users_units(w, index) + labelled.prior_mean[index]

    return Conditional(
        density=Density(evaluate, state.mean, factor_of(state)),
        reported=reported,
        posterior=lambda w, shape: named_draws(labelled, index, w, np.empty((len(w), 0)), shape),
        pointwise=pointwise,
        held=labelled.unpack(theta),
    )
