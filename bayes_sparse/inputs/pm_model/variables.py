"""The variables of a model as the fit sees them: weights in columns, nuisance parameters in one vector."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from numpy.typing import NDArray
from pymc.distributions.continuous import FlatRV
from pymc.distributions.custom import CustomDistRV
from pymc.distributions.distribution import support_point
from pymc.logprob.transforms import LogTransform
from pytensor.tensor.random.basic import NormalRV
from pytensor.tensor.random.op import RandomVariable

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inputs.pm_model.graph import Var, number_of, reached, replaced, small_function, structure_of, value_of
from bayes_sparse.problem.labelled import WeightBlock

__all__ = [
    "Nuisance",
    "Values",
    "blocks_of",
    "coords_of",
    "dims_of",
    "family_of",
    "fixed_precision",
    "in_order",
    "nuisance_variables",
    "parameters",
    "prior_mean",
    "prior_sd",
    "shape_of",
]


def parameters(rv: Var) -> list[Var]:
    """Parameters of the variable's distribution."""
    return list(rv.owner.op.dist_params(rv.owner))


def prior_mean(rv: Var) -> FloatArray:
    """Prior mean of a Normal variable; zero for a flat one."""
    return np.zeros(()) if isinstance(rv.owner.op, FlatRV) else number_of(parameters(rv)[0])


def prior_sd(rv: Var) -> Var:
    """Prior sd of a Normal variable as a node of the graph; infinite for a flat one."""
    return pt.constant(np.inf) if isinstance(rv.owner.op, FlatRV) else parameters(rv)[1]


def shape_of(model: pm.Model, rv: Var) -> tuple[int, ...]:
    """Shape of a variable: static, else from its dims, else from its size."""
    if None not in rv.type.shape:
        return tuple(rv.type.shape)
    dims = dims_of(model, rv)
    if dims is not None and len(dims) == rv.ndim:
        return tuple(int(value_of(model.dim_lengths[dim])) for dim in dims)
    return tuple(int(size) for size in value_of(rv.shape))


def dims_of(model: pm.Model, rv: Var) -> tuple[str, ...] | None:
    """Names of the variable's dims, None where any of them has none."""
    dims = model.named_vars_to_dims.get(rv.name)
    return None if dims is None or None in dims else tuple(dims)


def coords_of(model: pm.Model, rv: Var) -> dict[str, NDArray[Any]]:
    """Coordinate values of those of the variable's dims that have any."""
    values = {dim: model.coords.get(dim) for dim in dims_of(model, rv) or ()}
    return {dim: np.asarray(labels) for dim, labels in values.items() if labels is not None}


def blocks_of(model: pm.Model, latents: list[Var]) -> tuple[WeightBlock, ...]:
    """Columns for every value of these variables, one after the other."""
    blocks, start = [], 0
    for rv in latents:
        shape = shape_of(model, rv)
        columns = slice(start, start := start + int(np.prod(shape, dtype=int)))
        mean = np.broadcast_to(prior_mean(rv), shape)
        blocks.append(WeightBlock(rv.name, shape, dims_of(model, rv), coords_of(model, rv), columns, mean))
    return tuple(blocks)


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


def nuisance_variables(model: pm.Model, params: list[Var], eta: Var, sparse: list[Var], fixed: list[Var]) -> list[Var]:
    """Free variables that matter besides those in the predictor, in the model's order."""
    rvs = set(model.free_RVs)
    found: set[Var] = set()
    queue = (reached(params, rvs | {eta}) - {eta}) | reached([prior_sd(rv) for rv in fixed], rvs)
    while queue:
        rv = queue.pop()
        if rv in sparse or rv in fixed:
            raise ValueError(
                f"The variable {rv.name!r} reaches the likelihood both through the linear predictor and outside "
                "it; evidence methods of this kind need it in the predictor alone."
            )
        if isinstance(rv.owner.op, NormalRV) and rv.ndim:
            raise ValueError(
                f"The vector {rv.name!r} with a Normal prior reaches the likelihood other than through the linear "
                "predictor with known coefficients; declare it centred, with its sd in its own prior, and add it."
            )
        found.add(rv)
        queue |= reached(parameters(rv), rvs) - found
    return in_order(found, model)


class Nuisance:
    """The free variables behind theta: their start, their own scale, their log-density."""

    def __init__(self, model: pm.Model, rvs: list[Var]) -> None:
        self.rvs = rvs
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

        return values

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
        return float(self._log_density(*self._split(theta))[0])

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
        function = small_function(self._inputs, [total], rewrite=True)
        if key is not None:
            _log_densities[key] = function
        return function

    def _key(self) -> Hashable | None:
        """Structure of the priors, where it says everything about their log-density."""
        entries = []
        known = {rv: i for i, rv in enumerate(self.rvs)}
        for rv, value, transform in zip(self.rvs, self._inputs, self.transforms, strict=True):
            key, external = structure_of(parameters(rv), known, set())
            simple = isinstance(rv.owner.op, RandomVariable) and not isinstance(rv.owner.op, CustomDistRV)
            if external or not simple or not (transform is None or type(transform) is LogTransform):
                return None
            entries.append((rv.owner.op, transform is None, tuple(value.type.shape), key))
        return tuple(entries)


def _unconstrained_start(model: pm.Model, rvs: list[Var]) -> list[FloatArray]:
    """Compute the model's initial point of these variables alone: that of all takes ten times as long."""
    points: dict[Var, Var] = {}
    outputs = []
    for rv in rvs:
        given = model.rvs_to_initial_values.get(rv)
        point = support_point(rv) if given is None or isinstance(given, str) else pt.as_tensor(given, dtype=rv.dtype)
        [points[rv], *inputs] = replaced([point, *rv.owner.inputs], points)
        transform = model.rvs_to_transforms[rv]
        outputs.append(points[rv] if transform is None else transform.forward(points[rv], *inputs))
    if not outputs:
        return []
    return [np.asarray(v, dtype=float) for v in small_function([], outputs)()]


def fixed_precision(
    fixed: list[Var], shapes: Mapping[Var, tuple[int, ...]], nuisance: Nuisance
) -> Callable[[FloatArray], FloatArray]:
    """Prior precisions of the fixed variables, value by value, as a function of theta."""
    sds = [prior_sd(rv) for rv in fixed]

    def precision(values: Sequence[NDArray[Any]]) -> FloatArray:
        spread = [np.broadcast_to(v, shapes[rv]).ravel() for v, rv in zip(values, fixed, strict=True)]
        return np.concatenate(spread).astype(float) ** -2.0 if spread else np.empty(0)

    if not reached(sds, set(nuisance.rvs)):
        known = precision([value_of(sd) for sd in sds])
        return lambda theta: known
    values = nuisance.function(sds)
    return lambda theta: precision(values(theta))
