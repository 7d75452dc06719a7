"""The graph of a model: its nodes, those affine in the weights, a key for equal structure, and numbers out of it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from numpy.typing import NDArray
from pymc.distributions.continuous import FlatRV, HalfFlatRV
from pymc.distributions.distribution import SymbolicRandomVariable
from pymc.logprob.utils import CheckParameterValue
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.maker import function as pytensor_function
from pytensor.compile.mode import Mode
from pytensor.compile.ops import ViewOp
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Constant
from pytensor.graph.replace import clone_replace
from pytensor.graph.rewriting.db import RewriteDatabaseQuery
from pytensor.graph.traversal import ancestors, explicit_graph_inputs, toposort
from pytensor.scalar import basic as scalar
from pytensor.sparse.math import Dot as SparseDot
from pytensor.sparse.math import StructuredDot, TrueDot
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

from bayes_sparse.common.locks import building, one_at_a_time
from bayes_sparse.common.types import FloatArray

__all__ = [
    "LINEAR",
    "REWRITTEN",
    "Var",
    "check_continuous",
    "check_weights",
    "classify",
    "is_literal",
    "is_number",
    "number_of",
    "only_observed",
    "reached",
    "replaced",
    "shape_in_graph",
    "small_function",
    "sparse_value",
    "structure_of",
    "substituted",
    "unchecked",
    "unfolded",
    "value_of",
]

type Var = Any  # a PyTensor variable; its annotations know neither ndim nor dtype

LINEAR = ("affine", "scaled")  # kinds of nodes that are linear in the Gaussian variables


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


def substituted(outputs: Sequence[Var], replacements: Mapping[Var, Var], rvs: Iterable[Var]) -> list[Var]:
    """The outputs with variables replaced; what does not depend on these stays as it is, free variables above all."""
    new = dict(replacements)
    for node in toposort(outputs, blockers=[*rvs, *replacements]):
        inputs = [new.get(i, i) for i in node.inputs]
        if any(a is not b for a, b in zip(inputs, node.inputs, strict=True)):
            made = node.clone_with_new_inputs(inputs, strict=False).outputs
            for old, fresh in zip(node.outputs, made, strict=True):
                fresh.name = old.name
                new[old] = fresh
    return [new.get(v, v) for v in outputs]


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


def unchecked(density: Var, rvs: Iterable[Var]) -> Var:
    """A log-density without PyMC's checks of its parameters, with operations made of others unfolded.

    Nothing that does not contain such an operation is copied: nodes stay what they are.
    """
    new: dict[Var, Var] = {}
    for node in toposort([density], blockers=list(rvs)):
        inputs = [new.get(i, i) for i in node.inputs]
        if isinstance(node.op, CheckParameterValue):
            new[node.outputs[0]] = inputs[0]
        elif isinstance(node.op, OpFromGraph) and not isinstance(node.op, SymbolicRandomVariable):
            inside = node.op.fgraph.unfreeze()
            made = replaced(unfolded(inside.outputs), dict(zip(inside.inputs, inputs, strict=True)))
            new.update(zip(node.outputs, made, strict=True))
        elif any(a is not b for a, b in zip(inputs, node.inputs, strict=True)):
            new.update(zip(node.outputs, node.clone_with_new_inputs(inputs, strict=False).outputs, strict=True))
    return new.get(density, density)


def is_literal(variable: Var) -> bool:
    """Whether an input is a single constant number, or no number at all (a random state, None)."""
    if not isinstance(variable.type, TensorType):
        return True
    return isinstance(variable, Constant) and variable.data.size <= 1


def is_number(variable: Var) -> bool:
    """Whether a variable is made of single constants."""
    return all(is_literal(v) for v in ancestors([variable]) if v.owner is None)


def classify(outputs: Sequence[Var], rvs: set[Var], gaussian: set[Var]) -> dict[Var, str]:
    """Label every node down to the free variables.

    "constant", "nuisance", "affine" in the Gaussian variables with known coefficients, "scaled" for affine ones whose
    coefficients or offset depend on nuisance variables, or "other".
    """
    return _label(outputs, dict.fromkeys(rvs, "nuisance") | dict.fromkeys(gaussian, "affine"))


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
    moves = [kind in LINEAR for kind in kinds]
    if not any(moves):
        return "nuisance" if "nuisance" in kinds else "constant"
    if not _keeps_affine(node.op, moves):
        return "other"
    return "affine" if set(kinds) <= {"affine", "constant"} else "scaled"


def _keeps_affine(op: Any, moves: list[bool]) -> bool:
    """Whether an operation on affine inputs (where `moves`) and constants gives an affine output."""
    match op:
        case Elemwise(scalar_op=scalar.Add() | scalar.Sub() | scalar.Neg() | scalar.Identity() | scalar.Second()):
            return True
        case Elemwise(scalar_op=scalar.Cast() as cast):
            return bool(cast.o_type.dtype.startswith("float"))
        case Elemwise(scalar_op=scalar.Mul()) | Dot() | StructuredDot() | SparseDot() | TrueDot():
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


_PLAIN = Mode(linker="py", optimizer="None")
REWRITTEN = Mode(
    linker="py", optimizer=RewriteDatabaseQuery(include=["fast_run"], exclude=["fusion", "BlasOpt", "cxx_only"])
)


def value_of(variable: Var) -> NDArray[Any]:
    """Value of a variable that depends on no random one; data and their transposes without a copy."""
    if isinstance(variable, Constant):
        return np.asarray(variable.data)
    if isinstance(variable, SharedVariable):
        held: Var = variable
        return np.asarray(held.get_value(borrow=True))
    op, inputs = variable.owner.op, variable.owner.inputs
    if isinstance(op, DimShuffle):
        kept = [axis for axis in op.new_order if axis != "x"]
        array = np.transpose(value_of(inputs[0]), [*kept, *op.drop])
        array = np.asarray(array[(...,) + (0,) * len(op.drop)])
        return array[tuple(np.newaxis if axis == "x" else slice(None) for axis in op.new_order)]
    if isinstance(op, ViewOp):
        return value_of(inputs[0])
    if isinstance(op, Elemwise) and isinstance(op.scalar_op, scalar.Cast):
        return value_of(inputs[0]).astype(variable.dtype, copy=False)
    return np.asarray(small_function([], [variable])()[0])


def shape_in_graph(variable: Var) -> tuple[int, ...]:
    """Shape of any node: static, else computed."""
    if None not in variable.type.shape:
        return tuple(variable.type.shape)
    shape: Var = variable.shape
    # Variables that stand for effects without their mean have no value yet, but a shape; nor has a flat prior draws.
    inputs: list[Any] = list(explicit_graph_inputs([shape]))
    held: dict[Any, Any] = {v: pt.zeros(v.type.shape, dtype=v.dtype) for v in inputs}
    flat: list[Any] = [v for v in ancestors([shape]) if v.owner and isinstance(v.owner.op, FlatRV | HalfFlatRV)]
    held |= {v: pt.zeros(v.owner.op.size_param(v.owner) if v.ndim else (), dtype=v.dtype) for v in flat}
    return tuple(int(size) for size in value_of(clone_replace([shape], held)[0] if held else shape))


def sparse_value(variable: Var) -> Any:
    """A sparse matrix that depends on no random variable."""
    if isinstance(variable, Constant):
        return variable.data
    held: Var = variable
    return held.get_value(borrow=True) if isinstance(variable, SharedVariable) else small_function([], [variable])()[0]


def number_of(variable: Var) -> FloatArray:
    """Value in double precision: PyTensor stores 3.0 in single, and 1 / 3 must not be."""
    return np.asarray(value_of(variable), dtype=float)


def small_function(inputs: Sequence[Var], outputs: Sequence[Var], rewrite: bool = False) -> Callable[..., list[Any]]:
    """Make a Python function of a small graph, rewritten first on request or where an operation must be unfolded."""
    rewrite = rewrite or any(isinstance(node.op, OpFromGraph) for node in toposort(outputs))
    mode = REWRITTEN if rewrite else _PLAIN
    with building():
        compiled: Any = pytensor_function(list(inputs), list(outputs), mode=mode, on_unused_input="ignore")
    return one_at_a_time(lambda *values: list(compiled(*values)))


def check_continuous(model: pm.Model) -> None:
    """Refuse what no evidence method can see: discrete latent variables, batches of rows, names of draws' own dims."""
    for name in ("chain", "draw"):
        if name in model.named_vars:
            raise ValueError(f"The variable {name!r} has the name of a dim that all draws have: give it another.")
    for rv in model.free_RVs:
        if rv.dtype.startswith(("int", "uint", "bool")) and not rv.name.endswith("_unobserved"):
            raise ValueError(
                f"The variable {rv.name!r} is discrete, and evidence methods need continuous ones: sum it out of the "
                "likelihood (pm.Mixture does), observe it, or give each weight a scale where it switches weights off."
            )
    for rv in (*model.free_RVs, *model.observed_RVs):
        if not isinstance(rv.type, TensorType):
            raise ValueError(
                f"The variable {rv.name!r} is of pymc.dims, whose graphs are not read yet; declare the model with the "
                "distributions of pymc and dims=..., or use method='nuts'."
            )
    for rv in model.observed_RVs:
        if "minibatch" in type(rv.owner.op).__name__.lower():
            raise ValueError(
                f"The observed variable {rv.name!r} sees a pm.Minibatch at a time, and an evidence method needs all "
                "rows at once: give the model the whole arrays and leave out total_size."
            )


def only_observed(model: pm.Model) -> Var:
    """Find the one observed variable, after refusing what a one-step method cannot see."""
    check_continuous(model)
    if model.potentials:
        raise ValueError(
            f"The model has a pm.Potential, {model.potentials[0].name!r}, which one-step methods do not see: leave it "
            "out, or leave out `method`."
        )
    if len(model.observed_RVs) != 1:
        names = ", ".join(repr(rv.name) for rv in model.observed_RVs) or "none"
        raise ValueError(
            f"One-step methods take a model with exactly one observed variable; it has {names}: leave out `method`, or "
            "fit one at a time."
        )
    observed = model.observed_RVs[0]
    if f"{observed.name.removesuffix('_observed')}_unobserved" in model.named_vars:
        name = observed.name.removesuffix("_observed")
        raise ValueError(f"The observed variable {name!r} has missing values; leave those rows out of the model.")
    return observed


def check_weights(weights: FloatArray | None, n: int) -> FloatArray | None:
    """Observation weights as floats, one for each of n observations, or None."""
    if weights is None:
        return None
    weights = np.asarray(weights, dtype=float)
    if weights.shape != (n,) or not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError(f"The observation weights must be {n} finite numbers that are not negative.")
    return weights
