"""Probabilities of classes one class at a time: the log-density of a class is then element-wise along the predictor."""

from __future__ import annotations

from typing import Any

import pytensor.tensor as pt
from pytensor.compile.ops import ViewOp
from pytensor.scalar import basic as scalar
from pytensor.tensor import subtensor
from pytensor.tensor.basic import Alloc, Join
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.shape import SpecifyShape
from pytensor.tensor.subtensor import Subtensor

from bayes_sparse.inputs.pm_model.graph import Var, shape_in_graph, value_of

__all__ = ["class_density"]

_indices: Any = subtensor.get_idx_list  # it has no annotations


def class_density(p: Var, y: Var) -> Var | None:
    """Log-probability of each observation's class, from a matrix of probabilities (n, K); None if it is made otherwise.

    Ordered classes are the usual case: differences of a distribution function at cutpoints less the predictor.
    """
    known: dict[tuple[Var, int], Var] = {}
    try:
        columns = [_column(p, k, known) for k in range(shape_in_graph(p)[1])]
    except NotImplementedError:
        return None
    density: Var = pt.log(columns[-1])
    for k in range(len(columns) - 2, -1, -1):
        density = pt.switch(pt.eq(y, k), pt.log(columns[k]), density)
    return density


def _column(matrix: Var, k: int, known: dict[tuple[Var, int], Var]) -> Var:
    """Column k of a matrix, without the matrix."""
    if matrix.type.broadcastable[1]:
        k = 0
    if (matrix, k) not in known:
        known[matrix, k] = _made(matrix, k, known)
    return known[matrix, k]


def _made(matrix: Var, k: int, known: dict[tuple[Var, int], Var]) -> Var:
    if matrix.owner is None:
        return matrix[:, k]
    op, inputs = matrix.owner.op, matrix.owner.inputs
    match op:
        case Elemwise(scalar_op=scalar.Second()):
            return _column(inputs[1], k, known)
        case Elemwise():
            return op(*(_column(i, k, known) for i in inputs))
        case ViewOp() | SpecifyShape():
            return _column(inputs[0], k, known)
        case Alloc() if inputs[0].ndim == 2:
            return _column(inputs[0], k, known)
        case Alloc() if inputs[0].ndim == 0:
            return inputs[0].dimshuffle("x")
        case DimShuffle() if op.new_order == (0, "x"):
            return _vector(inputs[0], known)
        case DimShuffle() if op.new_order == ("x", 0):
            return inputs[0][k].dimshuffle("x")
        case DimShuffle() if op.new_order == ("x", "x"):
            return inputs[0].dimshuffle("x")
        case Join() if op.axis in (1, -1):
            return _joined(inputs, k, known)
        case Subtensor():
            rows, *columns = _indices(inputs, op.idx_list)
            if rows == slice(None) and len(columns) == 1 and isinstance(columns[0], slice):
                at = range(shape_in_graph(inputs[0])[1])[_numbers(columns[0])]
                return _column(inputs[0], at[k], known)
    raise NotImplementedError


def _vector(vector: Var, known: dict[tuple[Var, int], Var]) -> Var:
    """A vector, without the matrix that it may be a column of."""
    if vector.owner is not None and isinstance(vector.owner.op, Subtensor) and vector.owner.inputs[0].ndim == 2:
        rows, *columns = _indices(vector.owner.inputs, vector.owner.op.idx_list)
        if rows == slice(None) and len(columns) == 1:
            matrix, k = vector.owner.inputs[0], int(value_of(columns[0]))
            return _column(matrix, k % shape_in_graph(matrix)[1], known)
    return vector


def _joined(pieces: list[Var], k: int, known: dict[tuple[Var, int], Var]) -> Var:
    for piece in pieces:
        width = shape_in_graph(piece)[1]
        if k < width:
            return _column(piece, k, known)
        k -= width
    raise NotImplementedError


def _numbers(index: slice) -> slice:
    ends = (index.start, index.stop, index.step)
    return slice(*(end if end is None or isinstance(end, int) else int(value_of(end)) for end in ends))
