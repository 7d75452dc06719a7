"""Which variables are sparse, and how their precisions follow from the variables behind them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pymc as pm
from pymc.distributions.continuous import FlatRV
from pytensor.tensor.random.basic import NormalRV

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inputs.pm_model.graph import Var, reached, replaced, small_function
from bayes_sparse.inputs.pm_model.variables import in_order, parameters, prior_sd, shape_of

__all__ = ["PowerLaw", "law_finder", "named_or_own", "sparse_variables"]


@dataclass(frozen=True)
class PowerLaw:
    """A prior sd of the form ``scale * hyper ** exponent``, weight by weight."""

    hyper: str
    scale: FloatArray
    exponent: float

    def invert(self, precision: FloatArray) -> FloatArray:
        """Values of the variable that give the weights these precisions."""
        with np.errstate(divide="ignore"):  # a pruned weight has sd 0, and its alpha may be infinite
            values: FloatArray = (precision**-0.5 / self.scale.reshape(precision.shape)) ** (1 / self.exponent)
        return values


def law_finder(sd: Var, hypers: list[Var], shape: tuple[int, ...]) -> Callable[[], PowerLaw | None]:
    """Find ``sd = scale * alpha ** exponent`` when it is first asked for."""
    found: list[PowerLaw | None] = []

    def law() -> PowerLaw | None:
        if not found:
            found.append(_power_law(sd, hypers[0], shape) if len(hypers) == 1 else None)
        return found[0]

    return law


def _power_law(sd: Var, hyper: Var, shape: tuple[int, ...]) -> PowerLaw | None:
    """Recognise a power law from two values of alpha and confirm it on a third."""
    if int(np.prod(shape)) == 0:
        return None
    value = hyper.type()
    function = small_function([value], replaced([sd], {hyper: value}))

    def at(alpha: FloatArray) -> FloatArray:
        return np.broadcast_to(np.asarray(function(alpha)[0], dtype=float), shape)

    third = np.linspace(0.5, 3.0, int(np.prod(shape))).reshape(shape)  # differs by weight: nothing is permuted
    one, four, other = at(np.ones(shape)), at(np.full(shape, 4.0)), at(third)
    if not (np.isfinite(one).all() and (one > 0).all() and (four > 0).all()):
        return None
    exponents = np.log(four / one) / np.log(4.0)
    exponent = float(exponents.flat[0])
    if exponent == 0 or not np.allclose(exponents, exponent) or not np.allclose(other, one * third**exponent):
        return None
    return PowerLaw(hyper.name, one, round(exponent, 9))


def sparse_variables(model: pm.Model, weights: str | None, near: set[Var]) -> tuple[list[Var], set[Var]]:
    """Find the sparse weights, and every variable with a Gaussian (or flat) prior of known mean."""
    rvs = set(model.free_RVs)
    normal = _gaussian_variables(model, near)
    candidates = [rv for rv in normal if isinstance(rv.owner.op, NormalRV) and rv.ndim]
    own = [rv for rv in candidates if _has_own_precisions(model, rv)]
    if weights is not None:
        chosen = _named(candidates, weights)
        candidates = [chosen]
        if chosen not in own:  # those with precisions of their own stay sparse beside it
            own = [] if reached([prior_sd(chosen)], rvs) else in_order({*own, chosen}, model)
    if own:
        return own, set(normal)
    raise _without_precisions(model, candidates)


def named_or_own(model: pm.Model, weights: tuple[str, ...], near: set[Var]) -> tuple[list[Var], set[Var]]:
    """Find the sparse weights, the named ones whatever their prior sd, and every variable with a Gaussian prior."""
    normal = [rv for rv in _gaussian_variables(model, near) if model.rvs_to_transforms[rv] is None]
    candidates = [rv for rv in normal if isinstance(rv.owner.op, NormalRV) and rv.ndim]
    chosen = {_named(candidates, name) for name in weights}
    found = [rv for rv in candidates if rv in chosen or _has_own_precisions(model, rv)]
    if found:
        return found, set(normal)
    raise _without_precisions(model, candidates)


def _named(candidates: Sequence[Var], name: str) -> Var:
    for rv in candidates:
        if rv.name == name:
            return rv
    raise ValueError(
        f"weights={name!r} does not name a vector with a Normal prior that reaches the observed variable; "
        f"{_those(candidates)}."
    )


def _gaussian_variables(model: pm.Model, near: set[Var]) -> list[Var]:
    """Variables with a Normal or flat prior among those that reach the likelihood."""
    rvs = set(model.free_RVs)
    for rv in model.free_RVs:
        if rv in near and "mvnormal" in type(rv.owner.op).__name__.lower():
            raise ValueError(
                f"The variable {rv.name!r} has a multivariate normal prior, which is not supported; "
                "declare it as pm.Normal with one sd a weight."
            )
    normal = [rv for rv in model.free_RVs if rv in near and isinstance(rv.owner.op, NormalRV | FlatRV)]
    for rv in normal:
        for parent in in_order(reached(parameters(rv)[:1], rvs), model):
            raise ValueError(
                f"The prior mean of {rv.name!r} depends on {parent.name!r}; give {rv.name!r} a prior mean of zero "
                f"and add {parent.name!r} to the predictor."
            )
    return normal


def _has_own_precisions(model: pm.Model, rv: Var) -> bool:
    shape = shape_of(model, rv)
    return any(shape_of(model, hyper) == shape for hyper in reached([prior_sd(rv)], set(model.free_RVs)))


def _without_precisions(model: pm.Model, candidates: Sequence[Var]) -> ValueError:
    """Refusal of Normal vectors none of which has precisions of its own."""
    for rv in candidates:
        for scale in in_order(reached([prior_sd(rv)], set(model.free_RVs)), model):
            return ValueError(
                f"The weights {rv.name!r} share the prior scale {scale.name!r}; a sparse prior needs one "
                f"precision a weight, so give {scale.name!r} the shape of {rv.name!r}."
            )
    for rv in candidates:
        for scale in model.free_RVs:
            if scale not in candidates and shape_of(model, scale) == shape_of(model, rv):
                return ValueError(
                    f"No sparse prior was found: the sd of {rv.name!r} is known. If {scale.name!r} multiplies it, "
                    "declare the weights centred, with their scale as the sd of their prior, such as "
                    f"pm.Normal('w', 0, tau * {scale.name}); method='nuts' samples the model as it stands."
                )
    return ValueError(
        f"No sparse prior was found: no Normal variable has an sd that depends on a variable of its own shape; "
        f"{_those(candidates)}, and one of them can be named as in "
        'bayes_sparse.models.Declared(model, weights="w").'
    )


def _those(variables: Sequence[Var]) -> str:
    names = ", ".join(repr(rv.name) for rv in variables)
    return f"the vectors with a Normal prior are {names}" if names else "the model has no vector with a Normal prior"
