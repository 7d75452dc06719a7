"""The log-density of a distribution that is not one of the plain families: a user's own, a mixture, a censored one.

Its graph is built when the model is read, since only the graph can tell one such density from another, and only it
shows whether observations are kept apart. It is compiled on first use like any other.
"""

from __future__ import annotations

import pytensor.tensor as pt
from pymc.logprob.utils import CheckParameterValue
from pytensor.compile.builders import OpFromGraph
from pytensor.graph.traversal import toposort
from pytensor.tensor.basic import Alloc
from pytensor.tensor.shape import SpecifyShape

from bayes_sparse.inputs.compiled import Compiled, compile_pointwise
from bayes_sparse.inputs.pm_model.distribution import input_like
from bayes_sparse.inputs.pm_model.evaluate import value_of
from bayes_sparse.inputs.pm_model.nodes import Var, reached, replaced
from bayes_sparse.inputs.pm_model.rows import by_row, not_by_row
from bayes_sparse.inputs.pm_model.structure import structure_of
from bayes_sparse.problem.design import FloatArray

__all__ = ["own_density"]


def own_density(name: str, density: Var, eta: Var, rest: list[Var], rvs: set[Var]) -> Compiled:
    """Check a density's graph and make its function, which compiles when first called.

    Parameters
    ----------
    name : str
        The observed variable's name, for refusals.
    density : Var
        The log-density as PyMC gives it.
    eta : Var
        The predictor it depends on.
    rest : list of Var
        Its other inputs, y first.
    rvs : set of Var
        The free variables of the model, none of which it may use.

    Returns
    -------
    callable
        ``f(eta, *rest)``: the log-density and its first three derivatives.
    """
    density = _unallocated(density)
    for rv in sorted(reached([density], rvs), key=lambda rv: str(rv.name)):
        raise ValueError(
            f"The log-density of {name!r} uses {rv.name!r} without being given it; pass it as a parameter of the "
            "distribution."
        )
    inputs = [eta, *rest]
    if density.ndim != 1 or not by_row([density], {eta: 0, rest[0]: 0}):
        raise ValueError(not_by_row(name))
    key, captured = structure_of([density], {v: i for i, v in enumerate(inputs)}, rvs)
    values = [value_of(v) for v in captured]
    fresh = [input_like(v) for v in values]
    patterns = tuple(v.type.broadcastable for v in [*inputs, *fresh])
    casts = {old: pt.cast(new, old.dtype) for old, new in zip(captured, fresh, strict=True)}
    [density] = replaced([density], casts)
    function: list[Compiled] = []

    def compiled(eta_value: FloatArray, *others: FloatArray) -> list[FloatArray]:
        if not function:
            function.append(compile_pointwise((key, patterns), lambda: (density, eta, [*rest, *fresh])))
        return function[0](eta_value, *others, *values)

    return compiled


def _unallocated(density: Var) -> Var:
    """Drop parameter checks and whatever fixes the number of rows; unfold operations made of others."""
    new: dict[Var, Var] = {}
    for node in toposort([density]):
        inputs = [new.get(i, i) for i in node.inputs]
        first: Var = inputs[0] if inputs else None
        spread = isinstance(node.op, Alloc) and first.ndim == node.out.ndim and not any(first.type.broadcastable)
        if spread or isinstance(node.op, CheckParameterValue | SpecifyShape):
            new[node.outputs[0]] = first
        elif isinstance(node.op, OpFromGraph):
            inside = node.op.fgraph.unfreeze()
            outputs = replaced(inside.outputs, dict(zip(inside.inputs, inputs, strict=True)))
            new.update(zip(node.outputs, outputs, strict=True))
        elif inputs != node.inputs:
            new.update(zip(node.outputs, node.clone_with_new_inputs(inputs, strict=False).outputs, strict=True))
    return new.get(density, density)
