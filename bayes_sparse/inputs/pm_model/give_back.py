"""A fit as values of every variable of the user's model, which is what PyMC takes for a posterior of it.

First what the fit knows: variables behind the sparse priors, at points; nuisance parameters; weights. Then what the
model's graph makes of those: variables that were fitted as their product with scales, or as what they are made of; any
other free variable at its support point; the Deterministics.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from numpy.typing import NDArray
from pymc.distributions.distribution import SymbolicRandomVariable, support_point
from pytensor.conditional.op import IfElse
from pytensor.graph.replace import vectorize_graph
from pytensor.graph.traversal import toposort
from pytensor.tensor.random.op import RandomVariable

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inputs.pm_model.graph import REWRITTEN, Var, reached, replaced, small_function, unfolded
from bayes_sparse.inputs.pm_model.variables import Nuisance, free_variables, shape_of
from bayes_sparse.problem.labelled import LabelledProblem

__all__ = ["FittedAs", "GiveBack", "dims_in_tree"]

type Values = dict[str, NDArray[Any]]  # by name, each (S, *shape)

_FARTHEST = 1e8  # of a variable before its scale, where the scale of a draw vanishes: beyond, products would overflow
_FAR = 1e6  # how many times the prior sd of a pruned weight is below the least of those kept: PyMC takes no infinity
_MOST = 20_000_000  # numbers stored of one variable
_BLOCK = 20_000_000  # numbers held at once while they are computed: on the way a product may have one a row and column
_log = logging.getLogger("bayes_sparse")


@dataclass(frozen=True, eq=False)
class FittedAs:
    """A variable behind a block of columns that hold something else of it: ``variable = make(values / scale)``.

    Attributes
    ----------
    variable : Var
        The user's free variable.
    scale : Var, optional
        A node of the user's graph.
    make : callable, optional
        What the variable is of other values, by nodes of the user's graph.
    """

    variable: Var
    scale: Var | None = None
    make: Callable[[Var], Var] | None = None

    def of(self, values: Var) -> Var:
        """The variable as an expression of the block's values."""
        own = values if self.scale is None else pt.clip(values / self.scale, -_FARTHEST, _FARTHEST)
        own = own.reshape(self.variable.shape) if own.ndim != self.variable.ndim else own
        return pt.cast(own if self.make is None else self.make(own), self.variable.dtype)


@dataclass(frozen=True, eq=False)
class GiveBack:
    """What `LabelledProblem.users` is for a `pm.Model` of the user's own.

    Attributes
    ----------
    model : pymc.Model
        The user's.
    labelled : LabelledProblem
        What it was read as.
    fitted_as : dict
        By the names of blocks, those that are not a free variable as it stands.
    """

    model: pm.Model
    labelled: LabelledProblem
    fitted_as: Mapping[str, FittedAs] = field(default_factory=dict)

    def __call__(
        self, w: FloatArray, theta: FloatArray, precision: FloatArray
    ) -> dict[str, tuple[tuple[str, ...], NDArray[Any]]]:
        """Every variable with its dims, from draws of weights and theta, and the prior precisions of the weights."""
        model, known = self.model, self._points(precision, len(w)) | self._nuisance(theta)
        values = {block.name: block.values(w) for block in (*self.labelled.sparse, *self.labelled.fixed)}
        known |= {name: own for name, own in values.items() if name not in self.fitted_as}
        known |= _computed(model, known, [(self.fitted_as[name], values[name]) for name in self.fitted_as], len(w))
        fitted = free_variables(model)
        if missing := [rv for rv in model.free_RVs if rv not in set(fitted)]:
            own = {str(rv.name): known[rv.name] for rv in fitted if rv.name in known}
            own |= _drawn(missing, own, model, seed=crc32(np.ascontiguousarray(w)))  # the same draws, the same values
            known |= own | _computed(model, own, [], len(w))
        names = [str(v.name) for v in (*model.free_RVs, *model.deterministics) if v.name in known]
        return {name: (dims_in_tree(model, name, known[name].ndim - 1), known[name]) for name in names}

    def _points(self, precision: FloatArray, S: int) -> Values:
        """Variables that follow from the prior precisions, where these are known: the same in all draws, or drawn."""
        if self.labelled.hyper_points is None or np.isnan(precision).any():
            return {}
        if precision.ndim == 2:
            return self._drawn_points(precision)
        points = self.labelled.hyper_points(_finite(precision))
        own = {str(rv.name): shape_of(self.model, rv) for rv in self.model.free_RVs if rv.name in points}
        values = {name: np.asarray(points[name][1]) for name in own}
        return {name: _repeated(value, S) for name, value in values.items() if value.shape == own[name]}

    def _drawn_points(self, precision: FloatArray) -> Values:
        """The same of draws (S, M) of precisions, for variables that are a power of one of them; others are points.

        Which power, and of which one, is seen by moving all together and all apart: a search for each draw takes long.
        """
        centre, M = precision.mean(axis=0), precision.shape[1]
        apart = np.linspace(-1.0, 1.0, M)
        at, up, aside = (self._points(centre * np.exp(move), 1) for move in (0.0, 1.0, apart))
        out = {name: _repeated(value[0], len(precision)) for name, value in at.items()}
        for name, value in at.items():
            with np.errstate(all="ignore"):
                power = np.log(up[name] / value).ravel()
                moved = np.nan_to_num(np.log(aside[name] / value).ravel() / power, nan=np.inf, neginf=np.inf)
            owner = np.rint((np.clip(moved, -1.0, 1.0) + 1) / 2 * (M - 1)).astype(np.intp)
            if np.allclose(apart[owner], moved, rtol=0.0, atol=1e-6):
                drawn = value.ravel() * (precision[:, owner] / centre[owner]) ** power
                out[name] = drawn.reshape(len(precision), *value.shape[1:])
        return out

    def _nuisance(self, theta: FloatArray) -> Values:
        """What `LabelledProblem.unpack` gives, for all draws at once."""
        if not theta.size:
            return {}
        flat = pt.tensor("theta", dtype="float64", shape=(theta.shape[1],))
        behind = Nuisance(self.model, [self.model[name] for name in self.labelled.unpack(theta[0])])
        return _over_draws([flat], {str(rv.name): own for rv, own in behind.at(flat).items()})([theta])


def _finite(precision: FloatArray) -> FloatArray:
    """Precisions with a large one in the place of infinity."""
    kept = precision[np.isfinite(precision)]
    return np.where(np.isfinite(precision), precision, _FAR**2 * (kept.max() if kept.size else 1.0))


def _repeated(value: Any, S: int) -> NDArray[Any]:
    """The same in every draw, held once."""
    value = np.asarray(value)
    return np.broadcast_to(value, (S, *value.shape))


def dims_in_tree(model: pm.Model, name: str, ndim: int) -> tuple[str, ...]:
    """Dims of a variable as ArviZ has them: the model's, and names of their own where it has none."""
    declared = model.named_vars_to_dims.get(name) or (None,) * ndim
    return tuple(f"{name}_dim_{i}" if dim is None else str(dim) for i, dim in enumerate(declared))


def _computed(model: pm.Model, known: Values, columns: list[tuple[FittedAs, NDArray[Any]]], S: int) -> Values:
    """What else is in the model, given what is known, and columns that something follows from."""
    given = {rv: rv.type() for rv in model.free_RVs if rv.name in known}
    held = [pt.tensor(dtype="float64", shape=values.shape[1:]) for _, values in columns]
    made = {fitted.variable: fitted.of(node) for (fitted, _), node in zip(columns, held, strict=True)}
    outputs, placed = _expressions(model, given, made), [*given.values(), *held]
    inputs = [known[rv.name].astype(rv.dtype, copy=False) for rv in given] + [values for _, values in columns]
    function = _over_draws(placed, outputs, rewrite=True)  # a product with the data becomes one of two matrices
    sizes = {name: values.size for name, values in function([values[:1] for values in inputs]).items()}
    large = [name for name, size in sizes.items() if S * size > _MOST]
    if large:
        _log.info("Left out of the tree, because %d draws of it are too large: %s.", S, ", ".join(large))
        outputs = {name: output for name, output in outputs.items() if name not in large}
        function = _over_draws(placed, outputs, rewrite=True)
    between = max(sizes.values(), default=1) * max((values[0].size for values in inputs), default=1)
    step = max(1, _BLOCK // max(1, between))
    parts = [function([values[i : i + step] for values in inputs]) for i in range(0, S, step)]
    return {name: np.concatenate([part[name] for part in parts]) for name in outputs}


def _drawn(missing: list[Var], known: Values, model: pm.Model, seed: int) -> Values:
    """Missing observations, of which nothing is known but their distribution: one value for each draw."""
    given = [rv for rv in free_variables(model) if rv.name in known]
    own = [known[rv.name] for rv in given]
    drawing = {"random_seed": seed, "mode": REWRITTEN, "on_unused_input": "ignore"}
    many = [pt.tensor(dtype=rv.dtype, shape=(None, *rv.type.shape)) for rv in given]
    try:
        made = vectorize_graph(missing, dict(zip(given, many, strict=True)))
    except ValueError:  # of a size that was given PyTensor makes no more than one
        one = [rv.type() for rv in given]
        function = pm.compile(one, replaced(missing, dict(zip(given, one, strict=True))), **drawing)
        return _one_by_one(function, [str(rv.name) for rv in missing])(own)
    function = pm.compile(many, made, **drawing)
    S, rows = len(own[0]), max(int(np.prod(shape_of(model, rv))) for rv in model.observed_RVs)
    step = max(1, _BLOCK // rows)
    parts = [function(*(values[i : i + step] for values in own)) for i in range(0, S, step)]
    return {str(rv.name): np.concatenate([part[j] for part in parts]) for j, rv in enumerate(missing)}


def _expressions(model: pm.Model, given: Mapping[Var, Var], made: Mapping[Var, Var]) -> dict[str, Var]:
    """Free variables that are not given, some of them made of others, and Deterministics, in terms of what is."""
    rvs, own = set(model.free_RVs), dict(given)
    raw = {rv: made[rv] if rv in made else _start(model, rv) for rv in model.free_RVs if rv not in given}
    while len(own) < len(rvs):  # one is ready when all that it depends on is
        ready = [rv for rv in raw if rv not in own and reached([raw[rv]], rvs) - {rv} <= own.keys()]
        assert ready, "a variable depends on itself"
        own |= dict(zip(ready, replaced([raw[rv] for rv in ready], own), strict=True))
    missing = {str(rv.name): own[rv] for rv in raw}
    own |= {rv: model.rvs_to_values[rv] for rv in model.observed_RVs}
    computed = zip(model.deterministics, replaced(model.deterministics, own), strict=True)
    return missing | {str(v.name): expression for v, expression in computed if not _is_random(expression)}


def _start(model: pm.Model, rv: Var) -> Var:
    """Where PyMC would start a variable."""
    start = model.rvs_to_initial_values.get(rv)
    return support_point(rv) if start is None or isinstance(start, str) else pt.as_tensor(start, dtype=rv.dtype)


def _is_random(expression: Var) -> bool:
    """Whether it has chance of its own, and so no value at given ones."""
    return any(isinstance(node.op, RandomVariable | SymbolicRandomVariable) for node in toposort([expression]))


def _over_draws(
    inputs: list[Var], outputs: Mapping[str, Var], *, rewrite: bool = False
) -> Callable[[list[NDArray[Any]]], Values]:
    """A function of all draws at once, in Python: compiled it would be quicker by less than compiling takes."""
    if not outputs:
        return lambda values: {}
    drawn = [pt.tensor(dtype=single.dtype, shape=(None, *single.type.shape)) for single in inputs]
    plain = unfolded(list(outputs.values()))
    if any(isinstance(node.op, IfElse) for node in toposort(plain)):  # which chooses for all draws alike
        return _one_by_one(small_function(inputs, plain, rewrite), list(outputs))
    made: list[Var] = list(vectorize_graph(plain, dict(zip(inputs, drawn, strict=True))))
    function = small_function(drawn, made, rewrite)
    same = [over.ndim == single.ndim for over, single in zip(made, plain, strict=True)]  # it depends on no draw

    def values(draws: list[NDArray[Any]]) -> Values:
        with np.errstate(all="ignore"):
            out = [np.asarray(value) for value in function(*draws)]
        return {n: _repeated(v, len(draws[0])) if s else v for n, v, s in zip(outputs, out, same, strict=True)}

    return values


def _one_by_one(function: Callable[..., list[Any]], names: list[str]) -> Callable[[list[NDArray[Any]]], Values]:
    """The same by one call a draw."""

    def values(draws: list[NDArray[Any]]) -> Values:
        with np.errstate(all="ignore"):
            rows = [function(*row) for row in zip(*draws, strict=True)]
        return {name: np.stack(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}

    return values
