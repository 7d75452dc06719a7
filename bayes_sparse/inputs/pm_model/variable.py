"""Small questions about one random variable of a model: its parameters, its prior, its shape, dims and coords."""

from __future__ import annotations

from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from numpy.typing import NDArray
from pymc.distributions.continuous import FlatRV
from pymc.distributions.custom import CustomDistRV
from pytensor.tensor.random.op import RandomVariable

from bayes_sparse.inputs.pm_model.evaluate import number_of, value_of
from bayes_sparse.inputs.pm_model.nodes import Var
from bayes_sparse.problem.design import FloatArray
from bayes_sparse.problem.slot import Slot

__all__ = [
    "coords_of",
    "dims_of",
    "family_of",
    "in_order",
    "parameters",
    "prior_mean",
    "prior_sd",
    "shape_of",
    "slots_of",
]


def parameters(rv: Var) -> list[Var]:
    """Parameters of the variable's distribution."""
    return list(rv.owner.op.dist_params(rv.owner))


def prior_mean(rv: Var) -> FloatArray:
    """Prior mean of a Normal variable; zero for a flat one."""
    return np.zeros(()) if isinstance(rv.owner.op, FlatRV) else number_of(parameters(rv)[0])


def prior_sd(rv: Var) -> Var:
    """Prior sd of a Normal variable as a node of the graph; infinite for a flat one."""
    return pt.constant(np.inf) if isinstance(rv.owner.op, FlatRV) else parameters(rv)[1]


def shape_of(model: pm.Model, rv: Var) -> tuple[int, ...]:
    """Shape of a variable: static, else from its dims, else from its size."""
    if None not in rv.type.shape:
        return tuple(rv.type.shape)
    dims = dims_of(model, rv)
    if dims is not None and len(dims) == rv.ndim:
        return tuple(int(value_of(model.dim_lengths[dim])) for dim in dims)
    return tuple(int(size) for size in value_of(rv.shape))


def dims_of(model: pm.Model, rv: Var) -> tuple[str, ...] | None:
    """Names of the variable's dims, None where any of them has none."""
    dims = model.named_vars_to_dims.get(rv.name)
    return None if dims is None or None in dims else tuple(dims)


def coords_of(model: pm.Model, rv: Var) -> dict[str, NDArray[Any]]:
    """Coordinate values of those of the variable's dims that have any."""
    values = {dim: model.coords.get(dim) for dim in dims_of(model, rv) or ()}
    return {dim: np.asarray(labels) for dim, labels in values.items() if labels is not None}


def slots_of(model: pm.Model, latents: list[Var]) -> tuple[Slot, ...]:
    """Columns for every value of these variables, one after the other."""
    slots, start = [], 0
    for rv in latents:
        shape = shape_of(model, rv)
        columns = slice(start, start := start + int(np.prod(shape, dtype=int)))
        mean = np.broadcast_to(prior_mean(rv), shape)
        slots.append(Slot(rv.name, shape, dims_of(model, rv), coords_of(model, rv), columns, mean))
    return tuple(slots)


def family_of(observed: Var) -> str:
    """Name of the distribution's family: "normal", "student_t" ..., "custom" for a user's own."""
    op = observed.owner.op
    if isinstance(op, CustomDistRV) or type(op).__name__.startswith("CustomDist"):
        return "custom"
    if isinstance(op, RandomVariable):
        return "student_t" if op.name == "t" else str(op.name)
    return type(op).__name__.removesuffix("RV").lower()


def in_order(variables: set[Var], model: pm.Model) -> list[Var]:
    """The given free variables in the order the model declares them."""
    return [rv for rv in model.free_RVs if rv in variables]
