"""Numbers out of a graph, and what a model must not hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pymc as pm
from numpy.typing import NDArray
from pymc.distributions.distribution import SymbolicRandomVariable
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.maker import function as pytensor_function
from pytensor.compile.mode import Mode
from pytensor.compile.ops import ViewOp
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Constant
from pytensor.graph.rewriting.db import RewriteDatabaseQuery
from pytensor.graph.traversal import toposort
from pytensor.scalar import basic as scalar
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.random.op import RandomVariable

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inputs.pm_model.nodes import Var

__all__ = ["check_weights", "number_of", "observed_variable", "only_observed", "small_function", "value_of"]

_PLAIN = Mode(linker="py", optimizer="None")
_REWRITTEN = Mode(
    linker="py", optimizer=RewriteDatabaseQuery(include=["fast_run"], exclude=["fusion", "BlasOpt", "cxx_only"])
)


def value_of(variable: Var) -> NDArray[Any]:
    """Value of a variable that depends on no random one; data and their transposes without a copy."""
    if isinstance(variable, Constant):
        return np.asarray(variable.data)
    if isinstance(variable, SharedVariable):
        held: Var = variable
        return np.asarray(held.get_value(borrow=True))
    op, inputs = variable.owner.op, variable.owner.inputs
    if isinstance(op, DimShuffle):
        kept = [axis for axis in op.new_order if axis != "x"]
        array = np.transpose(value_of(inputs[0]), [*kept, *op.drop])
        array = np.asarray(array[(...,) + (0,) * len(op.drop)])
        return array[tuple(np.newaxis if axis == "x" else slice(None) for axis in op.new_order)]
    if isinstance(op, ViewOp):
        return value_of(inputs[0])
    if isinstance(op, Elemwise) and isinstance(op.scalar_op, scalar.Cast):
        return value_of(inputs[0]).astype(variable.dtype, copy=False)
    return np.asarray(small_function([], [variable])()[0])


def number_of(variable: Var) -> FloatArray:
    """Value in double precision: PyTensor stores 3.0 in single, and 1 / 3 must not be."""
    return np.asarray(value_of(variable), dtype=float)


def small_function(inputs: Sequence[Var], outputs: Sequence[Var], rewrite: bool = False) -> Callable[..., list[Any]]:
    """Make a Python function of a small graph, rewritten first on request or where an operation must be unfolded."""
    rewrite = rewrite or any(isinstance(node.op, OpFromGraph) for node in toposort(outputs))
    mode = _REWRITTEN if rewrite else _PLAIN
    compiled: Any = pytensor_function(list(inputs), list(outputs), mode=mode, on_unused_input="ignore")
    return lambda *values: list(compiled(*values))


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
