"""The design behind a linear predictor: ``eta = offset + sum_v block_v @ v.ravel()``.

Usual ways of writing a term are recognised and its matrix is taken as it is, neither copied nor computed. Any other
affine term is evaluated at zero and at every unit vector.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytensor.tensor as pt
from pytensor.compile.ops import ViewOp
from pytensor.graph.replace import vectorize_graph
from pytensor.scalar import basic as scalar
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.math import Dot, Sum
from pytensor.tensor.shape import SpecifyShape
from pytensor.tensor.subtensor import AdvancedSubtensor

from bayes_sparse.inputs.pm_model.evaluate import number_of, value_of
from bayes_sparse.inputs.pm_model.nodes import Var, reached
from bayes_sparse.inputs.pm_model.predictor import not_linear
from bayes_sparse.problem.design import FloatArray

__all__ = ["read_columns"]


def read_columns(
    eta: Var,
    latents: list[Var],
    shapes: Mapping[Var, tuple[int, ...]],
    kinds: Mapping[Var, str],
    n: int,
) -> tuple[FloatArray, dict[Var, FloatArray]]:
    """Read ``eta = offset + sum_v block_v @ v.ravel()`` off the graph."""
    refusal = ValueError(not_linear(latents[0].name))
    offset = np.zeros(n)
    terms: dict[Var, list[tuple[FloatArray, FloatArray]]] = {rv: [] for rv in latents}
    stack: list[tuple[Var, FloatArray]] = [(eta, np.ones(()))]
    while stack:
        variable, scale = stack.pop()
        if kinds.get(variable, "constant") == "constant":
            offset = offset + scale * number_of(variable)
        elif parts := _parts(variable, kinds):
            stack.extend((part, scale * factor) for part, factor in parts)
        else:
            found = _product(variable, shapes, kinds, n)
            constant, blocks = (0.0, dict([found])) if found else _jacobian(variable, latents, shapes)
            offset = offset + scale * constant
            for rv, block in blocks.items():
                terms[rv].append((scale, block))
        if offset.shape != (n,):
            raise refusal
    if any(block.shape[0] not in (1, n) for term in terms.values() for _, block in term):
        raise refusal
    return offset, {rv: _total(term, n) for rv, term in terms.items()}


def _parts(variable: Var, kinds: Mapping[Var, str]) -> list[tuple[Var, FloatArray]]:
    """Write an affine vector or scalar as a weighted sum of others; empty if it is not one."""
    if variable.owner is None:
        return []
    one, op, inputs = np.ones(()), variable.owner.op, variable.owner.inputs
    match op:
        case Elemwise(scalar_op=scalar.Add()):
            return [(i, one) for i in inputs]
        case Elemwise(scalar_op=scalar.Sub()):
            return [(inputs[0], one), (inputs[1], -one)]
        case Elemwise(scalar_op=scalar.Neg()):
            return [(inputs[0], -one)]
        case Elemwise(scalar_op=scalar.Mul()):
            factors = [number_of(i) for i in inputs if kinds.get(i, "constant") == "constant"]
            return [(i, np.prod(np.broadcast_arrays(*factors), axis=0)) for i in inputs if kinds.get(i) == "affine"]
        case Elemwise(scalar_op=scalar.TrueDiv()):
            return [(inputs[0], 1.0 / number_of(inputs[1]))]
        case Elemwise(scalar_op=scalar.Identity() | scalar.Cast()) | ViewOp() | SpecifyShape():
            return [(inputs[0], one)]
        case DimShuffle() if inputs[0].ndim == 0:
            return [(inputs[0], one)]
    return []


def _product(
    variable: Var, latents: Mapping[Var, tuple[int, ...]], kinds: Mapping[Var, str], n: int
) -> tuple[Var, FloatArray] | None:
    """Recognise the usual linear terms: a scalar, ``u[group]``, ``X @ w``, ``(X * w).sum(-1)``."""
    if variable in latents:
        return (variable, np.ones((1, 1))) if variable.ndim == 0 else None
    op, inputs = variable.owner.op, variable.owner.inputs
    if isinstance(op, AdvancedSubtensor) and inputs[0] in latents and inputs[0].ndim == len(inputs) - 1 == 1:
        if inputs[1].ndim != 1 or inputs[1].dtype == "bool":
            return None
        return inputs[0], np.eye(latents[inputs[0]][0])[value_of(inputs[1])]
    if isinstance(op, DimShuffle) and op.drop:  # the squeeze after a product with a one-column matrix
        variable = inputs[0]
        op, inputs = variable.owner.op, variable.owner.inputs
    if isinstance(op, Sum) and op.axis in ((0,), (1,)):
        axis, inner = op.axis[0], inputs[0].owner
        if inner is None or not isinstance(inner.op, Elemwise) or not isinstance(inner.op.scalar_op, scalar.Mul):
            return None
        pair, order = inner.inputs, (("x", 0) if axis == 1 else (0, "x"))
        flip = axis == 0
    elif isinstance(op, Dot) or (isinstance(op, Blockwise) and isinstance(op.core_op, Dot)):
        pair, order = inputs, None
        flip = kinds.get(inputs[0]) == "affine"
    else:
        return None
    moving = [i for i in pair if kinds.get(i) == "affine"]
    still = [i for i in pair if kinds.get(i, "constant") == "constant"]
    if len(pair) != 2 or len(still) != 1 or still[0].ndim != 2:
        return None
    latent = _vector(moving[0], order)
    if latent not in latents:
        return None
    block = number_of(still[0])
    block = block.T if flip else block
    return (latent, block) if block.shape == (n, *latents[latent]) else None  # else something is broadcast


def _vector(variable: Var, order: tuple[str | int, ...] | None) -> Var | None:
    """Find the vector behind added dimensions, if they were added in this order (any, where None)."""
    if variable.owner is None or not isinstance(variable.owner.op, DimShuffle):
        return variable if order is None and variable.ndim == 1 else None
    inner, new_order = variable.owner.inputs[0], tuple(variable.owner.op.new_order)
    return inner if inner.ndim == 1 and 0 in new_order and order in (None, new_order) else None


def _jacobian(
    variable: Var, latents: list[Var], shapes: Mapping[Var, tuple[int, ...]]
) -> tuple[FloatArray, dict[Var, FloatArray]]:
    """Constant and columns of any affine term: its values at zero and at every unit vector."""
    inside = reached([variable], set(latents))
    used = [rv for rv in latents if rv in inside]
    sizes = [int(np.prod(shapes[rv], dtype=int)) for rv in used]
    points = np.vstack([np.zeros((1, sum(sizes))), np.eye(sum(sizes))])
    pieces = np.split(points, np.cumsum(sizes)[:-1], axis=1)
    batches = {rv: pt.constant(p.reshape(len(p), *shapes[rv])) for rv, p in zip(used, pieces, strict=True)}
    values = number_of(vectorize_graph(variable, batches)).reshape(len(points), -1)
    columns = np.split((values[1:] - values[0]).T, np.cumsum(sizes)[:-1], axis=1)
    return values[0], dict(zip(used, columns, strict=True))


def _total(terms: list[tuple[FloatArray, FloatArray]], n: int) -> FloatArray:
    """Add up one variable's columns; its own array where it is used once as it is."""
    scaled = [b if np.ndim(s) == 0 and s == 1 else np.reshape(s, (-1, 1)) * b for s, b in terms]
    total = scaled[0] if len(scaled) == 1 else np.add.reduce([np.broadcast_to(b, (n, b.shape[1])) for b in scaled])
    return total if total.shape[0] == n else np.repeat(total, n, axis=0)
