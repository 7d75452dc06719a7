"""Label every node of a graph constant, nuisance, affine (in the Normal variables, coefficients known) or other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pymc.distributions.distribution import SymbolicRandomVariable
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.ops import ViewOp
from pytensor.graph.traversal import toposort
from pytensor.scalar import basic as scalar
from pytensor.tensor.basic import Alloc, ExtractDiag, Join, MakeVector
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.extra_ops import CumOp
from pytensor.tensor.math import Dot, Sum
from pytensor.tensor.shape import Reshape, Shape, Shape_i, SpecifyShape
from pytensor.tensor.subtensor import AdvancedIncSubtensor, AdvancedSubtensor, IncSubtensor, Subtensor

from bayes_sparse.inputs.pm_model.nodes import Var

__all__ = ["classify"]


def classify(outputs: Sequence[Var], rvs: set[Var], gaussian: set[Var]) -> dict[Var, str]:
    """Label every node down to the free variables: constant, nuisance, affine or other."""
    return _label(outputs, {rv: "affine" if rv in gaussian else "nuisance" for rv in rvs})


def _label(outputs: Sequence[Var], kinds: dict[Var, str]) -> dict[Var, str]:
    for node in toposort(outputs, blockers=list(kinds)):
        kind = _kind(node, [kinds.get(i, "constant") for i in node.inputs])
        kinds.update(dict.fromkeys(node.outputs, kind))
    return kinds


def _kind(node: Any, kinds: list[str]) -> str:
    if isinstance(node.op, Shape | Shape_i):
        return "constant"
    if "other" in kinds:
        return "other"
    if "affine" not in kinds:
        return "nuisance" if "nuisance" in kinds else "constant"
    if "nuisance" in kinds:
        return "other"
    return "affine" if _keeps_affine(node.op, [kind == "affine" for kind in kinds]) else "other"


def _keeps_affine(op: Any, moves: list[bool]) -> bool:
    """Whether an operation on affine inputs (where `moves`) and constants gives an affine output."""
    match op:
        case Elemwise(scalar_op=scalar.Add() | scalar.Sub() | scalar.Neg() | scalar.Identity() | scalar.Second()):
            return True
        case Elemwise(scalar_op=scalar.Cast() as cast):
            return bool(cast.o_type.dtype.startswith("float"))
        case Elemwise(scalar_op=scalar.Mul()) | Dot():
            return sum(moves) == 1
        case Elemwise(scalar_op=scalar.TrueDiv()):
            return not moves[1]
        case Elemwise(scalar_op=scalar.Switch()):
            return not moves[0]
        case Join() | MakeVector():
            return True
        case CumOp():
            return bool(op.mode == "add")
        case IncSubtensor() | AdvancedIncSubtensor():
            return not any(moves[2:])
        case DimShuffle() | Sum() | Reshape() | SpecifyShape() | Alloc() | ViewOp() | ExtractDiag():
            return not any(moves[1:])
        case Subtensor() | AdvancedSubtensor():
            return not any(moves[1:])
        case Blockwise():
            return _keeps_affine(op.core_op, moves)
        case OpFromGraph() if not isinstance(op, SymbolicRandomVariable) and len(op.inner_outputs) == 1:
            seeds = {v: "affine" if m else "constant" for v, m in zip(op.inner_inputs, moves, strict=True)}
            return _label(op.inner_outputs, seeds)[op.inner_outputs[0]] == "affine"
    return False
