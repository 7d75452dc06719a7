"""The likelihood along the predictor, cut out of the graph and compiled."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from numpy.typing import NDArray
from pymc.distributions.continuous import TruncatedNormalRV
from pymc.distributions.custom import CustomDistRV
from pymc.logprob.transforms import LogTransform
from pymc.logprob.utils import CheckParameterValue
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.ops import ViewOp
from pytensor.graph.traversal import toposort
from pytensor.scalar import basic as scalar
from pytensor.scalar.math import Erfc
from pytensor.tensor.basic import Alloc
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.random.basic import BernoulliRV, NormalRV
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.shape import SpecifyShape

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inputs.compiled import Compiled, compile_pointwise
from bayes_sparse.inputs.normal_cdf import log_density_above, log_half_erfc
from bayes_sparse.inputs.pm_model.graph import Var, is_number, number_of, reached, replaced, structure_of, value_of
from bayes_sparse.inputs.pm_model.predictor import by_row, not_by_row
from bayes_sparse.inputs.pm_model.variables import Nuisance, Values, parameters

__all__ = ["Distribution", "GraphLikelihood", "add_up", "check_given", "input_like", "own_density", "probit_density"]


class Distribution:
    """The observed variable as a function of eta and of whatever else it takes in.

    Parameters
    ----------
    observed : Var
        The observed variable.
    eta : Var
        The predictor in its graph.
    rvs : set of Var
        The free variables of the model.
    nuisance : Nuisance
        Those of them behind theta.
    n : int
        Number of observations.
    moving : list of Var
        Parts of the predictor that depend on the nuisance alone; the eta of all functions here is without them.
    """

    def __init__(
        self, observed: Var, eta: Var, rvs: set[Var], nuisance: Nuisance, n: int, moving: Sequence[Var] = ()
    ) -> None:
        self.observed, self.eta, self.nuisance = observed, eta, nuisance
        self._moving_offset = nuisance.function([add_up(moving)]) if moving else None
        self.params = parameters(observed)
        self.structure, self._external = structure_of(self.params, {eta: 0}, rvs)
        self._n = n
        random = [bool(reached([v], rvs)) for v in self._external]
        self._known = [None if r else value_of(v) for v, r in zip(self._external, random, strict=True)]
        moving = [v for v, r in zip(self._external, random, strict=True) if r]
        self._moving = nuisance.function(moving) if moving else None

    def values(self, theta: FloatArray) -> list[FloatArray]:
        """Compute what the distribution needs besides eta: the user's data and functions of theta."""
        moving = iter(self._moving(theta) if self._moving is not None else ())
        return [np.asarray(next(moving) if v is None else v, dtype=float) for v in self._known]

    @property
    def moves(self) -> bool:
        """Whether a part of the predictor depends on the nuisance."""
        return self._moving_offset is not None

    def whole(self, eta: FloatArray, theta: FloatArray) -> FloatArray:
        """The predictor with the part that depends on the nuisance."""
        eta = np.asarray(eta, dtype=float)
        return eta if self._moving_offset is None else eta + self._moving_offset(theta)[0]

    def arguments(self, eta: FloatArray, theta: FloatArray) -> list[FloatArray]:
        """Values of `inputs`, with as many rows as eta, which need not be those of the model."""
        eta = self.whole(eta, theta)
        values = self.values(theta)
        for value in values:
            if value.ndim and value.shape[0] not in (1, len(eta)) and value.shape[0] == self._n:
                raise ValueError(
                    f"The likelihood of {self.observed.name!r} uses data with {self._n} rows, but the "
                    f"predictor has {len(eta)}; set the new data with pm.set_data and read the model again."
                )
        return [eta, *values]

    @cached_property
    def inputs(self) -> list[Var]:
        """A fresh eta and one fresh variable for every value; only their number of rows is left open."""
        values = self.values(self.nuisance.start)
        return [pt.vector("eta", dtype="float64"), *(input_like(value) for value in values)]

    @cached_property
    def variable(self) -> Var:
        """The observed variable as a function of the fresh inputs, free of the number of rows where it can be."""
        old = [self.eta, *self._external]
        placed = {o: pt.cast(v, o.dtype) for o, v in zip(old, self.inputs, strict=True)}
        node = self.observed.owner
        if isinstance(node.op, RandomVariable):
            op: Any = node.op
            return op.make_node(op.rng_param(node), None, *replaced(self.params, placed)).outputs[1]
        return replaced([self.observed], placed)[0]


def add_up(terms: Sequence[Var]) -> Var:
    """The sum of nodes."""
    total: Var = 0.0
    for term in terms:
        total = total + term
    return pt.cast(total, "float64")


def input_like(value: NDArray[Any]) -> Var:
    """Make a fresh variable for values of this shape; only lengths of one are fixed."""
    return pt.tensor(dtype="float64", shape=tuple(1 if size == 1 else None for size in value.shape))


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
    return pt.switch(pt.eq(value, 1), log_half_erfc(x), log_half_erfc(-x))


def _truncated_density(distribution: Var, value: Var) -> Var | None:
    """Write the density of a normal variable with one bound stably; PyMC's is rounding errors far below it."""
    if not isinstance(distribution.owner.op, TruncatedNormalRV):
        return None
    mu, sigma, lower, upper = parameters(distribution)
    no_lower, no_upper = (is_number(bound) and np.isinf(value_of(bound)).all() for bound in (lower, upper))
    if no_lower == no_upper:
        return None
    if no_upper:
        return log_density_above(value, mu, sigma, lower)
    return log_density_above(-value, -mu, sigma, -upper)


def check_given(name: str, density: Var, rvs: set[Var]) -> None:
    """Refuse a density that uses a free variable which it was not given."""
    for rv in sorted(reached([density], rvs), key=lambda rv: str(rv.name)):
        raise ValueError(
            f"The log-density of {name!r} uses {rv.name!r} without being given it; pass it as a parameter of the "
            "distribution."
        )


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
    check_given(name, density, rvs)
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

    def compiled(eta_value: FloatArray, *others: FloatArray, derivatives: int = 3) -> list[FloatArray]:
        if not function:
            made = compile_pointwise((key, patterns), lambda: (density, eta, [*rest, *fresh]), rows=len(eta_value))
            function.append(made)
        return function[0](eta_value, *others, *values, derivatives=derivatives)

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


class GraphLikelihood:
    """Log-density of the observations as a function of the predictor and theta.

    Parameters
    ----------
    distribution : Distribution
        The observed variable, cut at the predictor.
    rvs : set of Var
        The free variables of the model.
    y : array (n,)
        The observations.

    Attributes
    ----------
    sigma : float, array or None
        Known noise of a normal likelihood, 1 if theta is its logarithm, None if it is neither.
    """

    def __init__(self, distribution: Distribution, rvs: set[Var], y: FloatArray) -> None:
        self._distribution, self._y = distribution, y
        observed, eta = distribution.observed, distribution.eta
        self._normal = _is_normal(distribution) and not distribution.moves
        self.sigma = self._known_sigma() if self._normal else None
        self._own: Compiled | None = None
        if isinstance(observed.owner.op, RandomVariable) and not isinstance(observed.owner.op, CustomDistRV):
            if not by_row(distribution.params, {eta: 0}):
                raise ValueError(not_by_row(observed.name))
        else:
            self._own = own_density(observed.name, *self._build(), rvs)

    def pointwise(self, eta: FloatArray, theta: FloatArray, derivatives: int = 3) -> tuple[FloatArray, ...]:
        """Log-density and its first derivatives along eta, observation by observation."""
        if self._normal:
            return self._normal_pointwise(eta, theta)[: derivatives + 1]
        eta, values = self._distribution.whole(eta, theta), self._distribution.values(theta)
        return tuple(self._compiled(eta, self._y, *values, derivatives=derivatives))

    def _known_sigma(self) -> float | FloatArray | None:
        sigma, nuisance = self._distribution.params[1], self._distribution.nuisance
        if not nuisance.rvs:
            value = number_of(sigma)
            return float(value.item()) if value.size == 1 else np.broadcast_to(value, self._y.shape)
        while sigma.owner is not None and isinstance(sigma.owner.op, DimShuffle | ViewOp):
            sigma = sigma.owner.inputs[0]
        direct = len(nuisance.rvs) == 1 and sigma is nuisance.rvs[0] and sigma.ndim == 0
        return 1.0 if direct and isinstance(nuisance.transforms[0], LogTransform) else None

    def _normal_pointwise(
        self, eta: FloatArray, theta: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        [sigma] = self._noise(theta)
        residual = (self._y - eta) / sigma
        flat = np.zeros(len(eta))
        density = -0.5 * residual**2 - np.log(sigma) - 0.5 * np.log(2 * np.pi)
        return density, residual / sigma, flat - 1 / np.square(sigma), flat

    @cached_property
    def _noise(self) -> Values:
        return self._distribution.nuisance.function([pt.cast(self._distribution.params[1], "float64")])

    @cached_property
    def _compiled(self) -> Compiled:
        """The compiled density, made on first use: reading a model must not wait for a compiler."""
        if self._own is not None:
            return self._own
        observed = self._distribution.observed
        patterns = tuple(v.type.broadcastable for v in self._distribution.inputs)
        key = (observed.owner.op, observed.dtype, self._distribution.structure, patterns)
        return compile_pointwise(key, self._build, rows=len(self._y))

    def _build(self) -> tuple[Var, Var, list[Var]]:
        """Log-density, the eta it depends on, and its other inputs: y first, then the distribution's."""
        eta, *rest = self._distribution.inputs
        variable = self._distribution.variable
        y = pt.vector("y", dtype="float64")
        value = pt.cast(y, self._distribution.observed.dtype)
        density = probit_density(variable, value)
        if density is None:
            density = _truncated_density(variable, value)
        if density is None:
            density = pm.logp(variable, value, warn_rvs=False)
        return density, eta, [y, *rest]


def _is_normal(distribution: Distribution) -> bool:
    """Whether the observations are normal around eta itself with a noise that does not depend on it."""
    mu, *noise = distribution.params
    normal = isinstance(distribution.observed.owner.op, NormalRV)
    return normal and mu is distribution.eta and not reached(noise, {distribution.eta})
