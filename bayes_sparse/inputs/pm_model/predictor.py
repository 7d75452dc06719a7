"""Find the linear predictor eta between the sparse weights and the observed variable's parameters."""

from __future__ import annotations

from collections.abc import Mapping

from pytensor.graph.traversal import toposort
from pytensor.scalar import basic as scalar
from pytensor.tensor.elemwise import Elemwise

from bayes_sparse.inputs.pm_model.nodes import Var, is_number, reached
from bayes_sparse.inputs.pm_model.rows import by_row

__all__ = ["find_predictor", "not_linear"]


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
