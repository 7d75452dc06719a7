"""The log-density of a Bernoulli variable with the probit link, stable however far out the predictor is."""

from __future__ import annotations

import pytensor.tensor as pt
from pytensor.scalar import basic as scalar
from pytensor.scalar.math import Erfc
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.random.basic import BernoulliRV

from bayes_sparse.inputs.pm_model.evaluate import value_of
from bayes_sparse.inputs.pm_model.nodes import Var, is_number
from bayes_sparse.inputs.pm_model.variable import parameters

__all__ = ["probit_density"]


def probit_density(distribution: Var, value: Var) -> Var | None:
    """Write the density of a Bernoulli variable with the probit link stably; PyMC's is 0/0 beyond eta = 30."""
    if not isinstance(distribution.owner.op, BernoulliRV):
        return None
    [p] = parameters(distribution)
    if p.owner is None or not isinstance(p.owner.op, Elemwise) or not isinstance(p.owner.op.scalar_op, scalar.Mul):
        return None
    moving = [i for i in p.owner.inputs if not is_number(i)]
    halves = [i for i in p.owner.inputs if is_number(i) and (value_of(i) == 0.5).all()]
    inner = moving[0].owner if len(moving) == len(halves) == 1 else None
    if inner is None or not isinstance(inner.op, Elemwise) or not isinstance(inner.op.scalar_op, Erfc):
        return None
    x = inner.inputs[0]
    return pt.switch(pt.eq(value, 1), _log_half_erfc(x), _log_half_erfc(-x))


def _log_half_erfc(x: Var) -> Var:
    # Both branches are kept finite everywhere: a gradient multiplies the one not taken by zero.
    far, near = pt.maximum(x, 0.5), pt.minimum(x, 0.5)
    return pt.switch(pt.gt(x, 0.5), pt.log(pt.erfcx(far) / 2) - far**2, pt.log1p(-pt.erfc(-near) / 2))
