"""What a model and its observation weights must be, before anything is looked for in the graph."""

from __future__ import annotations

import numpy as np
import pymc as pm
from pymc.distributions.distribution import SymbolicRandomVariable
from pytensor.tensor.random.op import RandomVariable

from bayes_sparse.inputs.pm_model.nodes import Var
from bayes_sparse.problem.design import FloatArray

__all__ = ["check_weights", "observed_variable", "only_observed"]


def only_observed(model: pm.Model) -> Var:
    """Find the one observed variable, after refusing what an evidence method cannot see."""
    if model.potentials:
        raise ValueError(
            f"The model has a pm.Potential, {model.potentials[0].name!r}, which is not tied to observations; "
            'write a likelihood of your own as pm.CustomDist("y", eta, ..., logp=f, observed=y).'
        )
    if len(model.observed_RVs) != 1:
        names = ", ".join(repr(rv.name) for rv in model.observed_RVs) or "none"
        raise ValueError(f"The model must have exactly one observed variable; it has {names}.")
    observed = model.observed_RVs[0]
    if f"{observed.name.removesuffix('_observed')}_unobserved" in model.named_vars:
        name = observed.name.removesuffix("_observed")
        raise ValueError(f"The observed variable {name!r} has missing values; leave those rows out of the model.")
    for rv in model.free_RVs:
        if rv.dtype.startswith(("int", "uint", "bool")):
            raise ValueError(
                f"The variable {rv.name!r} is discrete; evidence methods need continuous latent variables, "
                "so sum it out of the likelihood (a mixture) or observe it."
            )
    return observed


def observed_variable(model: pm.Model) -> Var:
    """Find the one observed variable and make sure that it has one number an observation."""
    observed = only_observed(model)
    op = observed.owner.op
    if not isinstance(op, RandomVariable | SymbolicRandomVariable) or op.ndim_supp != 0:
        raise ValueError(
            f"The observed variable {observed.name!r} is not a distribution of one number an observation; "
            "use a univariate one."
        )
    return observed


def check_weights(weights: FloatArray | None, n: int) -> FloatArray | None:
    """Observation weights as floats, one for each of n observations, or None."""
    if weights is None:
        return None
    weights = np.asarray(weights, dtype=float)
    if weights.shape != (n,) or not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError(f"The observation weights must be {n} finite numbers that are not negative.")
    return weights
