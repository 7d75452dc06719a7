"""The variables of a model as the fit sees them: weights in columns, nuisance parameters in one vector."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from numpy.typing import NDArray
from pymc.distributions.custom import CustomDistRV
from pymc.distributions.distribution import SymbolicRandomVariable, support_point
from pymc.logprob.transforms import LogTransform
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.type import TensorType

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inputs.pm_model.graph import (
    Var,
    reached,
    replaced,
    shape_in_graph,
    small_function,
    structure_of,
    value_of,
)

__all__ = [
    "Nuisance",
    "Values",
    "coords_of",
    "dims_of",
    "family_of",
    "fixed_precision",
    "free_variables",
    "in_order",
    "likelihood_parameters",
    "own_start",
    "parameters",
    "shape_of",
    "with_parents",
]


def parameters(rv: Var) -> list[Var]:
    """Parameters of the variable's distribution."""
    op = rv.owner.op
    if isinstance(op, SymbolicRandomVariable) and op.extended_signature is None:  # a truncated one does not say
        return [i for i in rv.owner.inputs if isinstance(i.type, TensorType)]
    return list(op.dist_params(rv.owner))


def shape_of(model: pm.Model, rv: Var) -> tuple[int, ...]:
    """Shape of a variable: static, else from its dims, else from its size."""
    if None not in rv.type.shape:
        return tuple(rv.type.shape)
    dims = dims_of(model, rv)
    if dims is not None and len(dims) == rv.ndim:
        return tuple(int(value_of(model.dim_lengths[dim])) for dim in dims)
    return shape_in_graph(rv)


def dims_of(model: pm.Model, rv: Var) -> tuple[str, ...] | None:
    """Names of the variable's dims, None where any of them has none."""
    dims = model.named_vars_to_dims.get(rv.name)
    return None if dims is None or None in dims else tuple(dims)


def coords_of(model: pm.Model, rv: Var) -> dict[str, NDArray[Any]]:
    """Coordinate values of those of the variable's dims that have any."""
    values = {dim: model.coords.get(dim) for dim in dims_of(model, rv) or ()}
    return {dim: np.asarray(labels) for dim, labels in values.items() if labels is not None}


def free_variables(model: pm.Model) -> list[Var]:
    """Free variables but those that stand for missing observations, if these say nothing of any other."""
    missing = {f"{rv.name.removesuffix('_observed')}_unobserved" for rv in model.observed_RVs}
    imputed = {rv for rv in model.free_RVs if rv.name in missing}
    if imputed:  # missing values of a column that is modelled too are behind the response
        outputs = [v for rv in model.observed_RVs for v in likelihood_parameters(rv)]
        imputed -= reached([*outputs, *model.potentials], imputed)
    return [rv for rv in model.free_RVs if rv not in imputed]


def likelihood_parameters(output: Var) -> list[Var]:
    """Parameters of an observed variable; a potential is its own."""
    if output.owner is not None and isinstance(output.owner.op, RandomVariable | SymbolicRandomVariable):
        return parameters(output)
    return [output]


def family_of(observed: Var) -> str:
    """Name of the distribution's family: "normal", "student_t" ..., "custom" for a user's own."""
    op = observed.owner.op
    if isinstance(op, CustomDistRV) or type(op).__name__.startswith("CustomDist"):
        return "custom"
    if isinstance(op, RandomVariable):
        return "student_t" if op.name == "t" else str(op.name)
    return type(op).__name__.removesuffix("RV").lower()


def in_order(variables: set[Var], model: pm.Model) -> list[Var]:
    """The given free variables in the order the model declares them."""
    return [rv for rv in model.free_RVs if rv in variables]


type Values = Callable[[FloatArray], list[NDArray[Any]]]

_REACH = 30.0  # how far from its start a nuisance parameter may go on the unconstrained scale

# Compiled log-densities by the structure of the priors: a second model of the same structure compiles nothing.
_log_densities: dict[Hashable, Callable[..., list[Any]]] = {}


def with_parents(model: pm.Model, variables: set[Var]) -> list[Var]:
    """Free variables and those that their priors depend on, in the model's order."""
    rvs, found, queue = set(model.free_RVs), set[Var](), set(variables)
    while queue:
        rv = queue.pop()
        found.add(rv)
        queue |= reached(parameters(rv), rvs) - found
    return in_order(found, model)


_REMEMBERED = 64  # values of theta: those of a step's differences, which slope and curvature both ask for


def _remembered[T](function: Callable[[FloatArray], T]) -> Callable[[FloatArray], T]:
    """The same function of theta, computed once where it is asked again soon: a mode is searched at one theta."""
    known = lru_cache(_REMEMBERED)(lambda theta: function(np.frombuffer(theta)))
    return lambda theta: known(np.asarray(theta, dtype=float).tobytes())


class Nuisance:
    """The free variables behind theta: their start, their own scale, their log-density.

    Parameters
    ----------
    model : pm.Model
        The user's.
    rvs : list of Var
        The variables, parents first.
    potentials : list of Var
        What else is added to their log-density.
    """

    def __init__(self, model: pm.Model, rvs: list[Var], potentials: Sequence[Var] = ()) -> None:
        self.rvs, self._potentials = rvs, list(potentials)
        self._inputs = [model.rvs_to_values[rv] for rv in rvs]
        self.transforms = [model.rvs_to_transforms[rv] for rv in rvs]
        points = _unconstrained_start(model, rvs)
        self._shapes = [point.shape for point in points]
        self._cuts = np.cumsum([point.size for point in points])[:-1]
        self.start = np.concatenate([point.ravel() for point in points]) if rvs else np.empty(0)

    @property
    def bounds(self) -> FloatArray:
        """How low and how high each element of theta may go."""
        return np.column_stack([self.start - _REACH, self.start + _REACH])

    @cached_property
    def _own_scale(self) -> dict[Var, Var]:
        """Each variable as an expression of the unconstrained inputs."""
        own: dict[Var, Var] = {}
        for rv, value, transform in zip(self.rvs, self._inputs, self.transforms, strict=True):
            inputs = replaced(rv.owner.inputs, own)
            own[rv] = value if transform is None else transform.backward(value, *inputs)
        return own

    def at(self, theta: Var) -> dict[Var, Var]:
        """Each variable on its own scale as an expression of a flat theta."""
        pieces, start = {}, 0
        for value, shape in zip(self._inputs, self._shapes, strict=True):
            piece = theta[start : (start := start + int(np.prod(shape, dtype=int)))]
            pieces[value] = pt.cast(piece.reshape(shape), value.dtype)
        own = self._own_scale
        return dict(zip(own, replaced(list(own.values()), pieces), strict=True))

    def _split(self, theta: FloatArray) -> list[FloatArray]:
        """Cut theta into the unconstrained value of each variable, in its own shape."""
        if not self.rvs:
            return []
        pieces = np.split(np.asarray(theta, dtype=float), self._cuts)
        return [piece.reshape(shape) for piece, shape in zip(pieces, self._shapes, strict=True)]

    def function(self, outputs: Sequence[Var]) -> Values:
        """Values of variables that depend on nothing random but the nuisance, as a function of theta."""
        compiled: list[Callable[..., list[NDArray[Any]]]] = []

        def values(theta: FloatArray) -> list[NDArray[Any]]:
            if not compiled:  # on first use: many problems never ask
                compiled.append(small_function(self._inputs, replaced(outputs, self._own_scale)))
            return compiled[0](*self._split(theta))

        return _remembered(values)

    @cached_property
    def _own_values(self) -> Values:
        return self.function(self.rvs)

    def unpack(self, theta: FloatArray) -> dict[str, NDArray[Any]]:
        """Values on the variables' own scale, by name."""
        if not self.rvs:
            return {}
        return {rv.name: np.asarray(v) for rv, v in zip(self.rvs, self._own_values(theta), strict=True)}

    def log_prior(self, theta: FloatArray) -> float:
        """Log-density on the unconstrained scale."""
        return self._log_prior(theta)

    @cached_property
    def _log_prior(self) -> Callable[[FloatArray], float]:
        return _remembered(lambda theta: float(self._log_density(*self._split(theta))[0]))

    @cached_property
    def _log_density(self) -> Callable[..., list[Any]]:
        key = self._key()
        if key is not None and key in _log_densities:
            return _log_densities[key]
        total: Var = pt.constant(0.0)
        for rv, value, transform in zip(self.rvs, self._inputs, self.transforms, strict=True):
            parents = {parent: own for parent, own in self._own_scale.items() if parent is not rv}
            [prior] = replaced([rv], parents)
            total = total + pm.logp(prior, self._own_scale[rv], warn_rvs=False).sum()
            if transform is not None:
                total = total + transform.log_jac_det(value, *prior.owner.inputs).sum()
        for potential in replaced(self._potentials, self._own_scale):
            total = total + potential.sum()
        function = small_function(self._inputs, [total], rewrite=True)
        if key is not None:
            _log_densities[key] = function
        return function

    def _key(self) -> Hashable | None:
        """Structure of the priors, where it says everything about their log-density."""
        if self._potentials:
            return None
        entries = []
        known = {rv: i for i, rv in enumerate(self.rvs)}
        for rv, value, transform in zip(self.rvs, self._inputs, self.transforms, strict=True):
            key, external = structure_of(parameters(rv), known, set())
            simple = isinstance(rv.owner.op, RandomVariable) and not isinstance(rv.owner.op, CustomDistRV)
            if external or not simple or not (transform is None or type(transform) is LogTransform):
                return None
            entries.append((rv.owner.op, transform is None, tuple(value.type.shape), key))
        return tuple(entries)


def own_start(model: pm.Model, rvs: Sequence[Var]) -> dict[Var, FloatArray]:
    """The model's initial values of these variables and of their parents, on their own scale."""
    order = with_parents(model, set(rvs))
    points = _points(model, order)
    values = small_function([], list(points.values()))() if points else []
    return {rv: np.asarray(v, dtype=float) for rv, v in zip(order, values, strict=True)}


def _points(model: pm.Model, rvs: Sequence[Var]) -> dict[Var, Var]:
    """Initial values as nodes, parents first: computing those of all variables takes ten times as long."""
    points: dict[Var, Var] = {}
    for rv in rvs:
        given = model.rvs_to_initial_values.get(rv)
        point = support_point(rv) if given is None or isinstance(given, str) else pt.as_tensor(given, dtype=rv.dtype)
        [points[rv]] = replaced([point], points)
    return points


def _unconstrained_start(model: pm.Model, rvs: list[Var]) -> list[FloatArray]:
    """The same on the scale that the search is on."""
    points, outputs = _points(model, rvs), []
    for rv, point in points.items():
        transform = model.rvs_to_transforms[rv]
        outputs.append(point if transform is None else transform.forward(point, *replaced(rv.owner.inputs, points)))
    return [np.asarray(v, dtype=float) for v in small_function([], outputs)()] if outputs else []


def fixed_precision(
    sds: Sequence[Var], shapes: Sequence[tuple[int, ...]], nuisance: Nuisance
) -> Callable[[FloatArray], FloatArray]:
    """Prior precisions of variables with these prior sds, value by value, as a function of theta."""

    def precision(values: Sequence[NDArray[Any]]) -> FloatArray:
        spread = [np.broadcast_to(_above_zero(v), shape).ravel() for v, shape in zip(values, shapes, strict=True)]
        return np.concatenate(spread) ** -2.0 if spread else np.empty(0)

    if not reached(sds, set(nuisance.rvs)):
        known = precision([value_of(sd) for sd in sds])
        return lambda theta: known
    values = nuisance.function(list(sds))
    return lambda theta: precision(values(theta))


_SMALLEST = 1e-70  # of an sd, so that products of precisions are numbers
_SMALL = 1e-15  # beside the largest sd of the same variable


def _above_zero(sd: NDArray[Any]) -> FloatArray:
    """Prior sds that are numbers squared and inverted: those of a process underflow at high frequencies."""
    sd = np.asarray(sd, dtype=float)
    return np.asarray(np.maximum(sd, max(_SMALL * sd.max(where=np.isfinite(sd), initial=0.0), _SMALLEST)))
