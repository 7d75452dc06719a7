"""Where the linear predictor is in a graph, and the columns of its design."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.compile.ops import ViewOp
from pytensor.graph.replace import vectorize_graph
from pytensor.graph.traversal import toposort
from pytensor.scalar import basic as scalar
from pytensor.tensor.basic import Alloc
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.math import Dot, Sum
from pytensor.tensor.shape import Shape, Shape_i, SpecifyShape
from pytensor.tensor.subtensor import AdvancedSubtensor

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inputs.pm_model.graph import Var, is_number, number_of, reached, value_of

__all__ = ["by_row", "find_predictor", "not_by_row", "not_linear", "read_columns"]


def by_row(outputs: Sequence[Var], rows: dict[Var, int]) -> bool:
    """Whether row n of the outputs depends on row n of the given variables alone, by following their row axis."""
    rows = dict(rows)
    for node in toposort(outputs, blockers=list(rows)):
        moving = {rows[i] for i in node.inputs if i in rows}
        if not moving or isinstance(node.op, Shape | Shape_i):
            continue
        axis = _row_axis(node, moving.pop()) if len(moving) == 1 else None
        if axis is None:
            return False
        rows.update(dict.fromkeys(node.outputs, axis))
    return all(rows.get(out, 0) == 0 and out.ndim <= 1 for out in outputs if out in rows)


def _row_axis(node: Any, axis: int) -> int | None:
    """Where the row axis of the inputs is in the output; None if it is lost or mixed."""
    op, out = node.op, node.outputs[0]
    if isinstance(op, Elemwise | ViewOp | SpecifyShape):
        return axis
    if isinstance(op, DimShuffle):
        return int(op.new_order.index(axis)) if axis in op.new_order else None
    if isinstance(op, Alloc):
        return int(axis + out.ndim - node.inputs[0].ndim)
    over = getattr(op, "axis", None)
    if over is None:
        return None
    over = tuple(over) if isinstance(over, tuple | list) else (int(over),)
    over = tuple(a % node.inputs[-1].ndim for a in over)
    removed = out.ndim < node.inputs[-1].ndim
    return None if axis in over else axis - (sum(a < axis for a in over) if removed else 0)


def not_by_row(name: str) -> str:
    """Sentence for a likelihood that mixes observations."""
    return (
        f"The likelihood of {name!r} mixes observations after the linear predictor; evidence methods of this kind "
        "need a linear predictor and one log-density term an observation."
    )


def find_predictor(params: list[Var], kinds: Mapping[Var, str], rvs: set[Var], sparse: list[Var]) -> Var:
    """Find the last affine node through which all influence of the sparse weights passes."""
    weights = set(sparse)
    nodes = list(toposort(params, blockers=list(rvs)))
    for variable in [out for node in reversed(nodes) for out in node.outputs] + sparse:
        if kinds[variable] != "affine" or variable.ndim != 1 or not reached([variable], weights):
            continue
        if not reached(params, {variable, *weights}) - {variable} and (
            variable not in weights or by_row(params, {variable: 0})
        ):
            return _unscaled(variable, params)
    used = {i for node in nodes if kinds[node.outputs[0]] != "affine" for i in node.inputs} | set(params)
    ends = [v for v in used if kinds.get(v) == "affine" and v not in weights and reached([v], weights)]
    if len(ends) > 1:
        names = ", ".join(repr(rv.name) for rv in sparse)
        raise ValueError(
            f"The weights {names} enter the likelihood through {len(ends)} different linear predictors; evidence "
            "methods of this kind need a single one."
        )
    raise ValueError(not_linear(sparse[0].name))


def _unscaled(eta: Var, params: list[Var]) -> Var:
    """Leave a sign or a factor inside the likelihood (the probit link has one), so that X stays as it is."""
    while eta not in params and eta.owner is not None and isinstance(eta.owner.op, Elemwise):
        moving = [i for i in eta.owner.inputs if not is_number(i)]
        scales = isinstance(eta.owner.op.scalar_op, scalar.Neg | scalar.Mul | scalar.TrueDiv)
        if not scales or len(moving) != 1 or moving[0].ndim != 1:
            break
        eta = moving[0]
    return eta


def not_linear(name: str) -> str:
    """Sentence for a predictor that is not linear in the named variable."""
    return (
        f"The predictor is not linear in {name!r} with known coefficients, one value an observation; evidence "
        "methods of this kind need a linear predictor."
    )


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
