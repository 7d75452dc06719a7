"""Laplace, Student-t and Cauchy weights as Normals: the prior that their declaration is of each weight's precision."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pymc as pm
from pytensor.tensor.random.basic import LaplaceRV, StudentTRV

from bayes_sparse.inputs.pm_model.graph import Var, reached
from bayes_sparse.inputs.pm_model.roles import Role
from bayes_sparse.inputs.pm_model.sparse_prior import scales_of
from bayes_sparse.inputs.pm_model.variables import free_variables, in_order, parameters, shape_of

__all__ = ["heavy_roles", "held_behind", "mixing_of"]

type Mixing = tuple[float, float, float]  # a, b and inverse of alpha^(a - 1) exp(-b alpha - inverse / alpha)


def heavy_roles(roles: Sequence[Role]) -> list[Role]:
    """Those whose precisions are found, one a weight, for a heavy-tailed prior."""
    return [role for role in roles if role.latent.heavy and role.free]


def mixing_of(model: pm.Model, roles: Sequence[Role]) -> Mixing | None:
    """The prior on the precisions of all heavy-tailed weights, in units of their scale; None where there are none.

    For nu degrees of freedom a Gamma prior, ``(nu/2, nu/2)``; for a Laplace weight the variance is exponential, with
    mean two. Hyper-variables are where they begin.
    """
    known = {role.latent.name: _mixing(model, role.latent.rv) for role in heavy_roles(roles)}
    if len(set(known.values())) > 1:
        raise ValueError(
            f"hyper='declared' takes one kind of heavy tails per model, and {', '.join(map(repr, known))} differ in "
            "theirs; leave it out, or use method='nuts'."
        )
    return next(iter(known.values()), None)


def _mixing(model: pm.Model, rv: Var) -> Mixing:
    if isinstance(rv.owner.op, LaplaceRV):
        return -1.0, 0.0, 0.5
    half = 0.5 * _degrees(model, rv)
    return half, half, 0.0


def _degrees(model: pm.Model, rv: Var) -> float:
    if not isinstance(rv.owner.op, StudentTRV):  # Cauchy
        return 1.0
    nu = parameters(rv)[0]
    found = scales_of(model, nu, shape_of(model, rv)).at_start
    if np.ptp(found) > 0:
        raise ValueError(
            f"The degrees of freedom of {rv.name!r} differ from weight to weight; hyper='declared' takes one for all."
        )
    return float(found.flat[0])


def held_behind(model: pm.Model, role: Role) -> list[str]:
    """Hyper-variables behind the scale and the degrees of freedom."""
    rvs = reached([role.latent.sd, *parameters(role.latent.rv)[:-2]], set(free_variables(model)))
    return [str(rv.name) for rv in in_order(rvs, model)]
