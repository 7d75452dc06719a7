"""Whether a graph keeps observations apart: one term an observation, from its own row alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytensor.compile.ops import ViewOp
from pytensor.graph.traversal import toposort
from pytensor.tensor.basic import Alloc
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.shape import Shape, Shape_i, SpecifyShape

from bayes_sparse.inputs.pm_model.nodes import Var

__all__ = ["by_row", "not_by_row"]


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
