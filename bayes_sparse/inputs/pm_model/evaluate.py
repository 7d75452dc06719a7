"""Numbers out of a graph outside the likelihood, without waiting for a compiler.

Such graphs are tiny: Python thunks without rewrites take a millisecond to make. Rewriting takes fifty and earns them
where a function is called often, or where an operation must first be unfolded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
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

from bayes_sparse.inputs.pm_model.nodes import Var
from bayes_sparse.problem.design import FloatArray

__all__ = ["number_of", "small_function", "value_of"]

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
