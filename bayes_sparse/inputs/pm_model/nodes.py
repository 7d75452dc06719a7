"""Walking a PyTensor graph: what a variable depends on, and copies of it with parts replaced."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pytensor.compile.builders import OpFromGraph
from pytensor.graph.basic import Constant
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors, toposort
from pytensor.tensor.shape import Shape, Shape_i
from pytensor.tensor.type import TensorType

__all__ = ["Var", "is_literal", "is_number", "reached", "replaced", "unfolded"]

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
