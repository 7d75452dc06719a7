"""Parts of a log density that can be written shorter, and that PyTensor's own rewrites leave long.

Two classes are most of what is fitted, and their density most of the time of a gradient: PyMC's has two softplus
functions, of which every row needs one, and checks that a sigmoid is a probability.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pymc.logprob.utils import CheckParameterValue
from pytensor.graph.basic import Apply
from pytensor.graph.traversal import toposort
from pytensor.scalar.basic import GE, LE, Log, Log1p, Neg, Switch
from pytensor.scalar.math import Sigmoid

from bayes_sparse.inputs.pm_model.graph import Var, value_of

__all__ = ["shortcut"]


def shortcut(node: Apply[Any], moving: Container[Var], copy: Callable[[Var], Var]) -> Var | None:
    """What takes the place of a node's output; None where nothing shorter is known.

    Parameters
    ----------
    node : Apply
        Of the density as it was.
    moving : container of Var
        What is not constant.
    copy : callable
        From a variable to what has taken its place already.
    """
    if isinstance(node.op, CheckParameterValue):
        return copy(node.inputs[0]) if _checks_a_sigmoid(node) else None
    if not _is(node.outputs[0], Switch) or node.inputs[0] in moving:
        return None
    first, log_p, log_q = node.inputs
    p, minus_p = _inside(log_p, Log), _inside(log_q, Log1p)
    if p is None or not _is(p, Sigmoid) or minus_p is None or _inside(minus_p, Neg) is not p:
        return None
    # log sigmoid(eta) of one class, log sigmoid(-eta) of the other
    sign = pt.as_tensor_variable(np.where(value_of(first), -1.0, 1.0))
    return -pt.softplus(copy(sign) * copy(p.owner.inputs[0]))


def _checks_a_sigmoid(node: Apply[Any]) -> bool:
    """Whether it is checked that a sigmoid is between 0 and 1, and nothing else."""
    compared = [n.inputs[0] for n in toposort(list(node.inputs[1:])) if _is(n.outputs[0], GE | LE)]
    return node.op.msg == "0 <= p <= 1" and all(_is(v, Sigmoid) for v in compared)


def _is(variable: Var, kind: Any) -> bool:
    return variable.owner is not None and isinstance(getattr(variable.owner.op, "scalar_op", None), kind)


def _inside(variable: Var, kind: Any) -> Any:
    """What a function is of."""
    return variable.owner.inputs[0] if _is(variable, kind) else None
