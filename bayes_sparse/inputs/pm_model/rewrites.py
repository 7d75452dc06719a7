"""Other ways to write the same: a graph brought into the form in which its predictors are looked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from pytensor.compile.ops import ViewOp
from pytensor.graph.traversal import toposort
from pytensor.scalar import basic as scalar
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.math import Dot
from pytensor.tensor.subtensor import AdvancedSubtensor, Subtensor

from bayes_sparse.inputs.pm_model.graph import Var, reached, substituted, value_of

__all__ = ["rewritten"]


def rewritten(outputs: Sequence[Var], rvs: set[Var]) -> list[Var]:
    """The outputs with scales of columns at their weights, and rows chosen before anything else is done to them."""
    return _scales_to_weights(_rows_first(list(outputs), rvs), rvs)


def _rows_first(outputs: list[Var], rvs: set[Var]) -> list[Var]:
    """Write ``exp(eta)[rows]`` as ``exp(eta[rows])``: observed rows where values are missing, censored ones."""
    written: dict[Var, Var] = {}
    for node in toposort(outputs, blockers=list(rvs)):
        chosen_from: Var = node.inputs[0] if isinstance(node.op, AdvancedSubtensor | Subtensor) else None
        if chosen_from is None or not chosen_from.ndim == node.out.ndim == 1:
            continue
        if not reached(node.inputs[1:], rvs) and reached(node.inputs[:1], rvs) and not _repeats(node):
            chosen = _chosen(node.inputs[0], node)
            if chosen is not node.outputs[0]:
                written[node.outputs[0]] = chosen
    return substituted(outputs, written, rvs) if written else outputs


def _repeats(node: Any) -> bool:
    """Whether rows are effects of groups given to their members, and not some of the rows that there are."""
    if isinstance(node.op, Subtensor):
        return False
    index = value_of(node.inputs[1])
    return bool(index.dtype != bool and len(np.unique(index)) < index.size)


def _chosen(vector: Var, node: Any) -> Var:
    """Some rows of a vector, by rows of what it is made of, number by number."""
    if vector.type.broadcastable == (True,):
        return vector
    if vector.owner is not None and isinstance(vector.owner.op, Elemwise | ViewOp):
        return vector.owner.op(*(_chosen(i, node) for i in vector.owner.inputs))
    return node.outputs[0] if vector is node.inputs[0] else node.op(vector, *node.inputs[1:])


def _scales_to_weights(outputs: list[Var], rvs: set[Var]) -> list[Var]:
    """Write ``(X * s) @ z`` as ``X @ (s * z)``: scales of columns are scales of their weights."""
    written: dict[Var, Var] = {}
    for node in toposort(outputs, blockers=list(rvs)):
        op = node.op.core_op if isinstance(node.op, Blockwise) else node.op
        if not isinstance(op, Dot):
            continue
        matrix: Var
        matrix, column = node.inputs
        vector: Var = column.owner.inputs[0] if _is_dimshuffle(column, (0, "x")) else column
        if (matrix.ndim, vector.ndim) != (2, 1) or not matrix.owner or not isinstance(matrix.owner.op, Elemwise):
            continue
        factors = matrix.owner.inputs if isinstance(matrix.owner.op.scalar_op, scalar.Mul) else []
        rows = [i for i in factors if _is_dimshuffle(i, ("x", 0)) and reached([i], rvs)]
        known = [i for i in factors if not reached([i], rvs)]
        if len(rows) == 1 and len(known) == len(factors) - 1 == 1 and not known[0].type.broadcastable[0]:
            weights = vector * rows[0].owner.inputs[0]
            written[node.outputs[0]] = node.op(known[0], weights if vector is column else weights[:, None])
    return substituted(outputs, written, rvs) if written else outputs


def _is_dimshuffle(variable: Var, order: tuple[Any, ...]) -> bool:
    owner = variable.owner
    return owner is not None and isinstance(owner.op, DimShuffle) and tuple(owner.op.new_order) == order
