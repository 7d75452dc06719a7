"""A horseshoe in a user's model: half-Cauchy scales behind a prior sd, known by the values that the sd takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.continuous import HalfCauchyRV

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inputs.pm_model.graph import Var, number_of, reached, replaced, small_function
from bayes_sparse.inputs.pm_model.roles import Role
from bayes_sparse.inputs.pm_model.variables import in_order, parameters
from bayes_sparse.problem.best_tau import best_tau

__all__ = ["DeclaredHorseshoe", "find_horseshoe"]

_FAR = 1e4  # of tau lambda: at one over it the half-Cauchy scales alone make the sd, at it the slab does
_NO_SLAB = 1e-9  # of a precision far out: what rounding leaves where there is no slab


@dataclass(frozen=True, eq=False)
class DeclaredHorseshoe:
    """``sd^-2 = 1/(tau lambda)^2 + floor`` with ``tau ~ HalfCauchy(tau0)`` and ``lambda ~ HalfCauchy(1)``.

    Attributes
    ----------
    tau0, floor : float
        As above, whatever the scales of the user's variables; the floor is 0 without a slab.
    held : dict
        Variables behind the slab, at their prior medians.
    tau, local : str
        The user's names of the two scales.
    own : callable
        ``own(tau/tau0, lambda)`` gives the sd and the user's two variables.
    """

    tau0: float
    floor: float
    held: dict[str, FloatArray]
    tau: str
    local: str
    own: Callable[..., list[Any]]

    def points(self, precision: FloatArray) -> dict[str, FloatArray]:
        """The user's variables where the weights have these precisions, at the tau of greatest density."""
        above = np.maximum(precision - self.floor, 1e-12 * precision)
        tau = best_tau(above.ravel(), self.tau0)
        _, own_tau, own_local = self.own(tau / self.tau0, 1 / (tau * np.sqrt(above)))
        return {self.tau: np.asarray(own_tau), self.local: np.asarray(own_local), **self.held}


def find_horseshoe(model: pm.Model, role: Role, nuisance: Sequence[str]) -> DeclaredHorseshoe:
    """The horseshoe behind the prior sd of some weights.

    Parameters
    ----------
    model : pm.Model
        The user's.
    role : Role
        The weights.
    nuisance : list of str
        Variables with a part in the likelihood other than behind weights.

    Raises
    ------
    ValueError
        If there is none; the sentence says why.
    """
    rvs, weights, shape, sd = set(model.free_RVs), role.latent.name, role.latent.shape, role.latent.sd
    if role.latent.heavy:
        raise _refusal(weights, "it is no Normal prior")
    own_shape = [rv for rv in in_order(reached([sd], rvs), model) if role.latent.size == role.scales.start[rv].size > 1]
    if len(own_shape) != 1 or not np.prod(shape):
        raise _refusal(weights, "it needs exactly one scale per weight")
    local = own_shape[0]
    if not _is_half_cauchy(local):
        raise _refusal(weights, f"{local.name!r} is not a pm.HalfCauchy")
    behind = reached([sd, *parameters(local)], rvs) - {local}
    shared = [rv for rv in in_order(behind, model) if not rv.ndim]
    taus = [rv for rv in shared if _is_half_cauchy(rv)]
    for tau in taus:
        others = (behind | reached(parameters(tau), rvs)) - {tau}
        held = _medians(weights, in_order(others, model))
        own = _in_units_of_their_scales(sd, tau, local, held)
        form = _form(own, shape)
        if form is not None:
            _check_their_own(model, role, tau, local, others, nuisance)
            named = {str(rv.name): value for rv, value in held.items()}
            return DeclaredHorseshoe(form[0] ** -0.5, form[1], named, tau.name, local.name, own)
    if shared and not taus:
        raise _refusal(weights, f"{shared[0].name!r} is not a pm.HalfCauchy")
    raise _refusal(weights, "its sd is another function of them" if taus else "there is no scale for all weights")


def _in_units_of_their_scales(
    sd: Var, tau: Var, local: Var, held: dict[Var, FloatArray]
) -> Callable[[float, FloatArray], list[Any]]:
    """The sd, tau and lambda as functions of two variables that are HalfCauchy(1); the scale of lambda may be tau."""
    t, u = pt.dscalar(), local.type()
    known: dict[Var, Var] = {rv: pt.constant(value) for rv, value in held.items()}
    for rv, value in ((tau, t), (local, u)):
        [scale] = replaced(parameters(rv)[-1:], known)
        known = {**known, rv: value * scale}
    return small_function([t, u], replaced([sd, tau, local], known))


def _is_half_cauchy(rv: Var) -> bool:
    return isinstance(rv.owner.op, HalfCauchyRV)


def _medians(weights: str, variables: Sequence[Var]) -> dict[Var, FloatArray]:
    """Where the variables behind a slab are held: they are no parameters of the evidence."""
    for rv in variables:
        if rv.ndim:
            raise _refusal(weights, f"{rv.name!r} is a vector, and so no slab for all weights")
    try:
        return {rv: number_of(pm.icdf(rv, 0.5)) for rv in variables}
    except NotImplementedError:
        names = ", ".join(repr(rv.name) for rv in variables)
        raise _refusal(weights, f"PyMC knows no median of {names}") from None


def _check_their_own(
    model: pm.Model, role: Role, tau: Var, local: Var, held: set[Var], nuisance: Sequence[str]
) -> None:
    """Refuse scales and slabs that have a part elsewhere too, such as a noise in the scale of tau."""
    weights, rvs, theirs = role.latent.name, set(model.free_RVs), {tau, local, *held}
    for rv in in_order(theirs, model):
        if rv.name in nuisance:
            raise _refusal(weights, f"{rv.name!r} is behind the likelihood too")
    for other in model.free_RVs:
        if other is role.latent.rv:
            continue
        known = {tau} if other is local else set()
        for rv in in_order((reached(parameters(other), rvs) & theirs) - known, model):
            raise _refusal(weights, f"{rv.name!r} is behind {other.name!r} too")


def _form(own: Callable[..., list[Any]], shape: tuple[int, ...]) -> tuple[float, float] | None:
    """A and B with ``sd^-2 = A/(t u)^2 + B`` for all weights: solved at two points, confirmed at a third."""

    def precision(t: float, u: FloatArray) -> FloatArray:
        return np.broadcast_to(np.asarray(own(t, u)[0], dtype=float), shape) ** -2.0

    one = np.ones(shape)
    third = np.linspace(0.5, 3.0, one.size).reshape(shape)  # differs by weight: nothing is permuted
    with np.errstate(all="ignore"):
        near, far, other = precision(1.0, one / _FAR), precision(1.0, one * _FAR), precision(0.7, third)
        A = (near - far) / (_FAR**2 - _FAR**-2)
        B = far - A / _FAR**2
        B = np.where(np.abs(B) < _NO_SLAB * far, 0.0, B)
        a, b = float(A.flat[0]), float(B.flat[0])
        right = np.allclose(A, a) and np.allclose(B, b) and np.allclose(other, a / (0.7 * third) ** 2 + b)
    return (a, b) if right and a > 0 and b >= 0 and np.isfinite([a, b]).all() else None


def _refusal(weights: str, why: str) -> ValueError:
    return ValueError(
        f"The prior of {weights!r} is no horseshoe that is fitted by evidence, because {why}: its sd must be tau * lam "
        "or tau * lam * c / sqrt(c**2 + tau**2 * lam**2), with a pm.HalfCauchy lam per weight and one tau for all; "
        "method='nuts' samples any."
    )
