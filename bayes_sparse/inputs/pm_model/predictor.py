"""Where the linear predictor is in a graph, and the columns of its design."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytensor.tensor as pt
from pytensor.compile.ops import ViewOp
from pytensor.graph.basic import equal_computations
from pytensor.graph.replace import vectorize_graph
from pytensor.graph.traversal import toposort
from pytensor.scalar import basic as scalar
from pytensor.sparse.math import Dot as SparseDot
from pytensor.sparse.math import StructuredDot, TrueDot
from pytensor.sparse.type import SparseTensorType
from pytensor.tensor.basic import Alloc
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.math import Dot, Sum
from pytensor.tensor.shape import Reshape, Shape, Shape_i, SpecifyShape
from pytensor.tensor.subtensor import AdvancedSubtensor

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inputs.pm_model.graph import (
    LINEAR,
    Var,
    classify,
    is_number,
    number_of,
    reached,
    sparse_value,
    value_of,
)

__all__ = [
    "Columns",
    "alike",
    "by_row",
    "candidates",
    "coefficients_behind",
    "ends",
    "multiplied",
    "not_by_row",
    "not_linear",
    "obstacle",
    "read_columns",
    "read_matrix",
]


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
        f"The likelihood of {name!r} mixes observations after the linear predictor, and evidence methods need one "
        "log-density term per observation: write it row by row, or use method='nuts', which samples the model as it "
        "stands."
    )


def candidates(params: Sequence[Var], kinds: Mapping[Var, str], nodes: set[Var], rvs: set[Var]) -> Iterator[Var]:
    """Linear vectors, or numbers, through which all influence of the Gaussian variables passes, the last ones first."""
    order = [out for node in toposort(params, blockers=[*rvs, *nodes]) for out in node.outputs]
    inside = reached(params, nodes)
    for variable in (*reversed(order), *inside):
        if kinds.get(variable) not in LINEAR or variable.ndim > 1 or not reached([variable], nodes):
            continue
        if not reached(params, {variable, *nodes}) - {variable} and (
            variable not in nodes or variable.ndim == 0 or by_row(params, {variable: 0})
        ):
            yield _unscaled(variable, params)


def ends(params: Sequence[Var], kinds: Mapping[Var, str], nodes: set[Var], *, first: bool = False) -> list[Var]:
    """Linear nodes that something is done to that is not linear, or that are parameters themselves.

    With ``first`` only by what is not linear itself, and not because another of its inputs is not.
    """
    used = []
    for node in toposort(params, blockers=list(nodes)):
        if kinds.get(node.outputs[0]) == "other" and not (first and any(kinds.get(i) == "other" for i in node.inputs)):
            used += node.inputs
    return [v for v in dict.fromkeys((*params, *used)) if kinds.get(v) in LINEAR and reached([v], nodes)]


def coefficients_behind(params: Sequence[Var], kinds: Mapping[Var, str], nodes: set[Var], rvs: set[Var]) -> set[Var]:
    """Variables that coefficients of the Gaussian ones depend on; scales of a whole variable if there are no others."""
    arrays, scales = list[Var](), list[Var]()
    for node in toposort(params, blockers=[*rvs, *nodes]):
        if kinds.get(node.outputs[0]) == "scaled" and not _adds(node.op):
            for i in (i for i in node.inputs if kinds.get(i) == "nuisance"):
                (scales if all(i.type.broadcastable) else arrays).append(i)
    return reached(arrays or scales, rvs)


def _adds(op: Any) -> bool:
    return isinstance(op, Elemwise) and isinstance(op.scalar_op, scalar.Add | scalar.Sub)


def _unscaled(eta: Var, params: Sequence[Var]) -> Var:
    """Leave a sign or a factor inside the likelihood (the probit link has one), so that X stays as it is."""
    while eta not in params and eta.owner is not None and isinstance(eta.owner.op, Elemwise):
        moving = [i for i in eta.owner.inputs if not is_number(i)]
        scales = isinstance(eta.owner.op.scalar_op, scalar.Neg | scalar.Mul | scalar.TrueDiv)
        if not scales or len(moving) != 1 or moving[0].ndim != eta.ndim:
            break
        eta = moving[0]
    return eta


def not_linear(name: str, why: str | None) -> str:
    """Sentence for a predictor that is not linear in the named variable."""
    why = why or "whose terms are multiplied by different scales or are not one number per observation"
    return (
        f"The likelihood is not linear in {name!r}, {why}; evidence methods need a linear predictor with one value per "
        "observation, method='revm' takes one observed variable with any smooth likelihood, and method='nuts' samples "
        "the model as it stands."
    )


def obstacle(params: Sequence[Var], variable: Var, rvs: set[Var]) -> str | None:
    """What is done to a variable that is not linear in it, in words; None if nothing is."""
    for node, kinds in _first_bends(params, variable, rvs):
        by = [i for i in node.inputs if kinds.get(i) == "nuisance" and not all(i.type.broadcastable)]
        if kinds[node.outputs[0]] == "other":
            return f"which enters through {_in_words(node.op)}"
        if by and _is_product(node):
            return f"which is multiplied by {min(repr(rv.name) for rv in reached(by, rvs))}"
    return None


def _first_bends(params: Sequence[Var], variable: Var, rvs: set[Var]) -> Iterator[tuple[Any, dict[Var, str]]]:
    """Nodes that are not linear, or linear with random coefficients, in one variable, in the order of the graph."""
    kinds = classify(params, rvs - {variable}, {variable})
    for node in toposort(params, blockers=[*rvs, variable]):
        if kinds.get(node.outputs[0]) in ("other", "scaled") and reached(node.inputs, {variable}):
            yield node, kinds


def _in_words(op: Any) -> str:
    if isinstance(op, Elemwise):
        name = str(getattr(op.scalar_op, "name", None) or type(op.scalar_op).__name__).lower()
        return {"sqr": "a square", "pow": "a power"}.get(name, f"{name}()")
    return f"{type(getattr(op, 'core_op', op)).__name__.lower()}()"


def multiplied(outputs: Sequence[Var], vectors: set[Var], rvs: set[Var]) -> tuple[Var, Var] | None:
    """Two Gaussian vectors whose terms are multiplied or divided by each other, if there are such."""
    kinds = classify(outputs, rvs, vectors)
    for node in toposort(outputs, blockers=[*rvs, *vectors]):
        if _is_product(node):
            inside = [reached([i], vectors) for i in node.inputs if kinds.get(i) in LINEAR]
            if sum(map(bool, inside)) > 1:
                first, second = [some for some in inside if some][:2]
                return min(first, key=_called), min(second - first or second, key=_called)
    return None


def _is_product(node: Any) -> bool:
    op = getattr(node.op, "core_op", node.op)
    return isinstance(op, Dot) or isinstance(getattr(op, "scalar_op", None), scalar.Mul | scalar.TrueDiv)


def _called(variable: Var) -> str:
    return str(variable.name)


class Columns(NamedTuple):
    """``eta = offset + sum(moving) + sum_v scale_v block_v @ v.ravel()``.

    Attributes
    ----------
    offset : array (n,)
        What is known.
    moving : list of Var
        What depends on nuisance variables alone.
    blocks : dict
        An array (n, size) for each Gaussian variable, by what stands for it in the graph.
    scales : dict
        A scalar that multiplies it, which depends on nuisance variables; only where there is one.
    """

    offset: FloatArray
    moving: list[Var]
    blocks: dict[Var, FloatArray]
    scales: dict[Var, Var]


def read_columns(eta: Var, shapes: Mapping[Var, tuple[int, ...]], kinds: Mapping[Var, str], n: int) -> Columns:
    """Read a linear vector off the graph.

    Raises
    ------
    ValueError
        If a coefficient depends on a nuisance variable other than by a scale for all of a variable.
    """
    refusal = ValueError("not linear with known coefficients")
    offset, moving = np.zeros(n), list[Var]()
    terms: dict[Var, list[tuple[FloatArray, FloatArray]]] = {}
    scales: dict[Var, list[Var | None]] = {}
    stack: list[tuple[Var, FloatArray, Var | None]] = [(eta, np.ones(()), None)]
    while stack:
        variable, number, scale = stack.pop()
        kind = kinds.get(variable, "constant")
        if kind == "constant" and scale is None:
            offset = offset + number * number_of(variable)
        elif kind not in LINEAR:
            moving.append(variable * number if scale is None else variable * number * scale)
        elif variable not in shapes and (parts := _parts(variable, kinds)):
            stack.extend((part, number * factor, _times(scale, by)) for part, factor, by in parts)
        else:
            found = _product(variable, shapes, kinds, n)
            if found is None and kind != "affine":
                raise refusal
            constant, blocks = (np.zeros(()), dict([found])) if found else _jacobian(variable, shapes)
            if scale is None:
                offset = offset + number * constant
            elif constant.any():
                moving.append(pt.constant(number * constant) * scale)
            for node, block in blocks.items():
                terms.setdefault(node, []).append((number, block))
                scales.setdefault(node, []).append(scale)
        if offset.shape != (n,):
            raise refusal
    if any(block.shape[0] not in (1, n) for term in terms.values() for _, block in term):
        raise refusal
    if not all(alike(some) for some in scales.values()):
        raise refusal
    return Columns(
        offset,
        moving,
        {node: _total(term, n) for node, term in terms.items()},
        {node: some[0] for node, some in scales.items() if some[0] is not None},
    )


def read_matrix(eta: Var, shapes: Mapping[Var, tuple[int, ...]], n: int) -> list[Columns]:
    """Read each column of an affine matrix (n, K)."""
    constant, blocks = _jacobian(eta, shapes)
    by_predictor = constant.reshape(n, -1)
    split = {node: block.reshape(*by_predictor.shape, -1) for node, block in blocks.items()}
    return [
        Columns(by_predictor[:, k], [], {node: block[:, k] for node, block in split.items()}, {})
        for k in range(by_predictor.shape[1])
    ]


def _times(one: Var | None, other: Var | None) -> Var | None:
    return other if one is None else one if other is None else one * other


def alike(scales: Sequence[Var | None]) -> bool:
    """Whether all terms of a variable are multiplied by the same."""
    first, *rest = scales
    return all(
        other is first or (first is not None and other is not None and equal_computations([first], [other]))
        for other in rest
    )


type Part = tuple[Var, FloatArray, Var | None]


def _parts(variable: Var, kinds: Mapping[Var, str]) -> list[Part]:
    """Write a linear vector or scalar as a weighted sum of others; empty if it is not one."""
    if variable.owner is None:
        return []
    one, op, inputs = np.ones(()), variable.owner.op, variable.owner.inputs
    match op:
        case Elemwise(scalar_op=scalar.Add()):
            return [(i, one, None) for i in inputs]
        case Elemwise(scalar_op=scalar.Sub()):
            return [(inputs[0], one, None), (inputs[1], -one, None)]
        case Elemwise(scalar_op=scalar.Neg()):
            return [(inputs[0], -one, None)]
        case Elemwise(scalar_op=scalar.Mul()):
            return _scaled(inputs, kinds)
        case Elemwise(scalar_op=scalar.TrueDiv()):
            inverse = 1.0 / pt.cast(inputs[1], "float64")  # PyTensor stores 7.0 in single precision
            return _scaled([inputs[0], inverse], {**kinds, inverse: kinds.get(inputs[1], "constant")})
        case Elemwise(scalar_op=scalar.Identity() | scalar.Cast()) | ViewOp() | SpecifyShape():
            return [(inputs[0], one, None)]
        case DimShuffle() if inputs[0].ndim == 0:
            return [(inputs[0], one, None)]
    return []


def _scaled(inputs: Sequence[Var], kinds: Mapping[Var, str]) -> list[Part]:
    """A product of one linear input with numbers, and with random scales that are the same for all of it."""
    numbers = [number_of(i) for i in inputs if kinds.get(i, "constant") == "constant"]
    random = [i for i in inputs if kinds.get(i) == "nuisance"]
    if any(not all(i.type.broadcastable) for i in random):
        return []
    scale: Var | None = None
    for i in random:
        scale = _times(scale, i if i.ndim == 0 else i.reshape(()))
    number = np.prod(np.broadcast_arrays(*numbers), axis=0) if numbers else np.ones(())
    return [(i, number, scale) for i in inputs if kinds.get(i) in LINEAR]


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
    # the squeeze after a product with a one-column matrix
    if (isinstance(op, DimShuffle) and op.drop) or (
        isinstance(op, Reshape) and inputs[0].type.broadcastable == (False, True)
    ):
        variable = inputs[0]
        if variable.owner is None:
            return None
        op, inputs = variable.owner.op, variable.owner.inputs
    if isinstance(op, Sum) and op.axis in ((0,), (1,)):
        axis, inner = op.axis[0], inputs[0].owner
        if inner is None or not isinstance(inner.op, Elemwise) or not isinstance(inner.op.scalar_op, scalar.Mul):
            return None
        pair, order = inner.inputs, (("x", 0) if axis == 1 else (0, "x"))
        flip = axis == 0
    elif isinstance(op, Dot | StructuredDot | SparseDot | TrueDot) or (
        isinstance(op, Blockwise) and isinstance(op.core_op, Dot)
    ):
        pair, order = inputs, None
        flip = kinds.get(inputs[0]) in LINEAR
    else:
        return None
    moving = [i for i in pair if kinds.get(i) == "affine"]
    still = [i for i in pair if kinds.get(i, "constant") == "constant"]
    if len(pair) != 2 or len(moving) != 1 or len(still) != 1 or still[0].ndim != 2:
        return None
    latent = _vector(moving[0], order)
    if latent not in latents:
        return None
    block = _matrix(still[0])
    block = block.T if flip else block
    return (latent, block) if block.shape == (n, *latents[latent]) else None  # else something is broadcast


def _matrix(variable: Var) -> FloatArray:
    """A known matrix; a sparse one in full, for user models are small."""
    if isinstance(variable.type, SparseTensorType):
        return np.asarray(sparse_value(variable).toarray(), dtype=float)
    return number_of(variable)


def _vector(variable: Var, order: tuple[str | int, ...] | None) -> Var | None:
    """Find the vector behind added dimensions, if they were added in this order (any, where None)."""
    if variable.owner is None or not isinstance(variable.owner.op, DimShuffle):
        return variable if order is None and variable.ndim == 1 else None
    inner, new_order = variable.owner.inputs[0], tuple(variable.owner.op.new_order)
    return inner if inner.ndim == 1 and 0 in new_order and order in (None, new_order) else None


def _jacobian(variable: Var, shapes: Mapping[Var, tuple[int, ...]]) -> tuple[FloatArray, dict[Var, FloatArray]]:
    """Constant and columns of any affine term: its values at zero and at every unit vector."""
    inside = reached([variable], set(shapes))
    used = [node for node in shapes if node in inside]
    sizes = [int(np.prod(shapes[node], dtype=int)) for node in used]
    points = np.vstack([np.zeros((1, sum(sizes))), np.eye(sum(sizes))])
    pieces = np.split(points, np.cumsum(sizes)[:-1], axis=1)
    batches = {
        node: pt.cast(pt.constant(p.reshape(len(p), *shapes[node])), node.dtype)
        for node, p in zip(used, pieces, strict=True)
    }
    values = number_of(vectorize_graph(variable, batches)).reshape(len(points), -1)
    columns = np.split((values[1:] - values[0]).T, np.cumsum(sizes)[:-1], axis=1)
    return values[0], dict(zip(used, columns, strict=True))


def _total(terms: list[tuple[FloatArray, FloatArray]], n: int) -> FloatArray:
    """Add up one variable's columns; its own array where it is used once as it is."""
    scaled = [b if np.ndim(s) == 0 and s == 1 else np.reshape(s, (-1, 1)) * b for s, b in terms]
    total = scaled[0] if len(scaled) == 1 else np.add.reduce([np.broadcast_to(b, (n, b.shape[1])) for b in scaled])
    return total if total.shape[0] == n else np.repeat(total, n, axis=0)
