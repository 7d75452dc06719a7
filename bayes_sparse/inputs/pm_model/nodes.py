"""The nodes of a model's graph: what they are, which are affine in the weights, and a key for equal structure."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

from pymc.distributions.distribution import SymbolicRandomVariable
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.ops import ViewOp
from pytensor.graph.basic import Constant
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors, toposort
from pytensor.scalar import basic as scalar
from pytensor.tensor.basic import Alloc, ExtractDiag, Join, MakeVector
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.extra_ops import CumOp
from pytensor.tensor.math import Dot, Sum
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.random.type import RandomType
from pytensor.tensor.shape import Reshape, Shape, Shape_i, SpecifyShape
from pytensor.tensor.subtensor import AdvancedIncSubtensor, AdvancedSubtensor, IncSubtensor, Subtensor
from pytensor.tensor.type import TensorType

__all__ = ["Var", "classify", "is_literal", "is_number", "reached", "replaced", "structure_of", "unfolded"]

type Var = Any  # a PyTensor variable; its annotations know neither ndim nor dtype


def reached(outputs: Iterable[Var], blockers: set[Var]) -> set[Var]:
    """Those blockers on which the outputs depend by value; a shape is not a dependence."""
    found, seen, stack = set(), set(), list(outputs)
    while stack:
        variable = stack.pop()
        if variable in seen:
            continue
        seen.add(variable)
        if variable in blockers:
            found.add(variable)
        elif variable.owner is not None and not isinstance(variable.owner.op, Shape | Shape_i):
            stack.extend(variable.owner.inputs)
    return found


def replaced(outputs: Sequence[Var], replacements: Mapping[Var, Var]) -> list[Var]:
    """Copy the outputs with variables replaced, also where an output is one of them."""
    if not replacements:
        return list(outputs)
    inner = [v for v in outputs if v not in replacements]
    copies = iter(clone_replace(inner, dict(replacements), rebuild_strict=False) if inner else ())
    return [replacements[v] if v in replacements else next(copies) for v in outputs]


def unfolded(outputs: Sequence[Var]) -> list[Var]:
    """Copy the outputs with operations made of others, a softmax for one, replaced by what they are made of."""
    new: dict[Var, Var] = {}
    for node in toposort(outputs):
        inputs = [new.get(i, i) for i in node.inputs]
        if isinstance(node.op, OpFromGraph):
            inside = node.op.fgraph.unfreeze()
            made = replaced(unfolded(inside.outputs), dict(zip(inside.inputs, inputs, strict=True)))
            new.update(zip(node.outputs, made, strict=True))
        elif inputs != node.inputs:
            new.update(zip(node.outputs, node.clone_with_new_inputs(inputs, strict=False).outputs, strict=True))
    return [new.get(v, v) for v in outputs]


def is_literal(variable: Var) -> bool:
    """Whether an input is a single constant number, or no number at all (a random state, None)."""
    if not isinstance(variable.type, TensorType):
        return True
    return isinstance(variable, Constant) and variable.data.size <= 1


def is_number(variable: Var) -> bool:
    """Whether a variable is made of single constants."""
    return all(is_literal(v) for v in ancestors([variable]) if v.owner is None)


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


def structure_of(outputs: Sequence[Var], known: Mapping[Var, int], rvs: set[Var]) -> tuple[Hashable, list[Var]]:
    """Describe a graph down to the known inputs, without any data.

    Returns
    -------
    key : hashable
        Equal for graphs that compute the same function: operations, wiring, and single numbers by value.
    external : list of Var
        What the graph takes in besides the known inputs (arrays of data, functions of nuisance variables), in the
        order the key refers to them. They do not depend on the known inputs.
    """
    roles = _roles(outputs, set(known), rvs)
    entries: list[Hashable] = []
    seen: dict[Var, int] = {}
    external: list[Var] = []

    def visit(variable: Var) -> int:
        if variable in seen:
            return seen[variable]
        entry: Hashable
        if variable in known:
            entry = ("known", known[variable])
        elif roles.get(variable) == "external" or (variable.owner is None and not is_literal(variable)):
            entry = ("external", len(external), str(variable.type.dtype))
            external.append(variable)
        elif variable.owner is None:
            entry = _literal(variable)
        else:
            node = variable.owner
            entry = (node.op, node.outputs.index(variable), tuple(visit(i) for i in node.inputs))
        seen[variable] = len(entries)
        entries.append(entry)
        return seen[variable]

    roots = tuple(visit(out) for out in outputs)
    return (roots, tuple(entries)), external


def _roles(outputs: Sequence[Var], known: set[Var], rvs: set[Var]) -> dict[Var, str]:
    """For every node: "moving" with the known inputs, "literal" (made of single numbers), or "external"."""
    roles = dict.fromkeys(rvs, "external") | dict.fromkeys(known, "moving")
    for node in toposort(outputs, blockers=list(roles)):
        inputs = {roles.get(i, "literal" if is_literal(i) else "external") for i in node.inputs}
        # A part that is itself a distribution (of a mixture) belongs to the likelihood: its value would be a draw.
        drawn = isinstance(node.op, RandomVariable | SymbolicRandomVariable)
        role = "moving" if "moving" in inputs or drawn else "external" if "external" in inputs else "literal"
        roles.update(dict.fromkeys(node.outputs, role))
    return roles


def _literal(variable: Var) -> Hashable:
    if isinstance(variable, Constant) and isinstance(variable.type, TensorType):
        return (str(variable.type.dtype), variable.data.shape, variable.data.tobytes())
    return ("none",) if not isinstance(variable.type, RandomType) else ("random state",)
