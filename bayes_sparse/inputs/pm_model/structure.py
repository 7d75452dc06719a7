"""The structure of a graph apart from its data: models of equal structure share one compiled function."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from pymc.distributions.distribution import SymbolicRandomVariable
from pytensor.graph.basic import Constant
from pytensor.graph.traversal import toposort
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.random.type import RandomType
from pytensor.tensor.type import TensorType

from bayes_sparse.inputs.pm_model.nodes import Var, is_literal

__all__ = ["structure_of"]


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
