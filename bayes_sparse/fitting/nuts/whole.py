"""The log density of a `pm.Model` over one vector, its unconstrained variables in a row, and the way back."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import xarray as xr
from pymc.initial_point import make_initial_point_fn

from bayes_sparse.common.types import FloatArray, IntArray
from bayes_sparse.fitting.nuts.compiled import Compiled, Heavy
from bayes_sparse.fitting.nuts.start import Start
from bayes_sparse.inference.sampling import Density
from bayes_sparse.inputs.pm_model.graph import Var, replaced

__all__ = ["WholeModel"]


class WholeModel:
    """A declaration as a density, equal to its ``logp``.

    Parameters
    ----------
    model : pymc.Model
        With continuous variables.

    Raises
    ------
    Heavy
        If it has operations on matrices other than products with constant ones, or discrete variables.
    """

    def __init__(self, model: pm.Model) -> None:
        self.model = model
        self._values: list[Var] = [model.rvs_to_values[rv] for rv in model.free_RVs]
        if not self._values or any(v.dtype != "float64" for v in self._values):
            raise Heavy("not all variables are continuous")
        point = model.initial_point()
        self._shapes = [np.shape(point[v.name]) for v in self._values]
        self._usual: FloatArray = np.concatenate([np.ravel(point[v.name]) for v in self._values]).astype(float)
        self._x: Var = pt.tensor("x", dtype="float64", shape=self._usual.shape)
        self._density = self._compiled([model.logp()])

    def evaluate(self, x: FloatArray) -> tuple[float, FloatArray]:
        """Log density and gradient."""
        height, [gradient] = self._density.slopes(x)
        return height, gradient

    def density(self, start: Start | None) -> Density:
        """The density in the coordinates that an evidence fit suggests; without one, around where PyMC would start."""
        if start is None:
            return Density(self.evaluate, self._usual, np.empty((0, 0)), slice(0))
        by_name = {rv.name: rv for rv in self.model.free_RVs}
        overrides = {by_name[name]: value for name, value in start.values.items()}
        begin = make_initial_point_fn(model=self.model, overrides=overrides, jitter_rvs=set(), return_transformed=True)
        point = begin(0)
        mean = np.concatenate([np.ravel(point[v.name]) for v in self._values]).astype(float)
        # A value outside the support that is declared, such as a lambda beyond its bounds, is no place to start.
        mean = np.where(np.isfinite(mean), mean, self._usual)
        first = dict(zip(by_name, [0, *self._ends], strict=False))
        block: IntArray = np.array([first[name] + position for name, position in start.places], dtype=int)
        in_a_row = len(block) and (np.diff(block) == 1).all()
        return Density(self.evaluate, mean, start.factor, slice(block[0], block[-1] + 1) if in_a_row else block)

    def posterior(self, x: FloatArray) -> xr.Dataset:
        """Draws (chains, draws, dim) under the model's own names, those of deterministic variables too."""
        wanted = [*self.model.free_RVs, *self.model.deterministics]
        return self._named(x, wanted, self.model.replace_rvs_by_values(wanted))

    def log_likelihood(self, x: FloatArray) -> xr.Dataset:
        """Of every observation, at every draw."""
        observed = self.model.observed_RVs
        terms = self.model.logp(vars=observed, jacobian=False, sum=False)
        return self._named(x, observed, terms)

    @cached_property
    def _ends(self) -> list[int]:
        return np.cumsum([int(np.prod(shape)) for shape in self._shapes]).tolist()

    @cached_property
    def _places(self) -> list[tuple[slice, tuple[int, ...]]]:
        starts = [0, *self._ends[:-1]]
        return [(slice(*ends), shape) for *ends, shape in zip(starts, self._ends, self._shapes, strict=True)]

    def _pieces(self, x: Any) -> list[Any]:
        """The variables in a row, numbers or symbols, each in its own shape."""
        return [x[place].reshape(shape) for place, shape in self._places]

    def _compiled(self, graphs: Sequence[Var]) -> Compiled:
        """Functions of the row of all variables."""
        pieces = dict(zip(self._values, self._pieces(self._x), strict=True))
        return Compiled([self._x], replaced(graphs, pieces))

    def _named(self, x: FloatArray, variables: Sequence[Var], graphs: Sequence[Var]) -> xr.Dataset:
        """Values of graphs at every draw, under the names and dims of some variables."""
        at, model = self._compiled(graphs), self.model
        rows = [[np.array(value) for value in at(row)] for row in x.reshape(-1, x.shape[-1])]
        named: dict[str, Any] = {}
        coords: dict[str, Any] = {"chain": np.arange(x.shape[0]), "draw": np.arange(x.shape[1])}
        for variable, found in zip(variables, zip(*rows, strict=True), strict=True):
            stacked = np.stack(found).reshape(*x.shape[:2], *found[0].shape)
            own = model.named_vars_to_dims.get(variable.name) or tuple(
                f"{variable.name}_dim_{i}" for i in range(stacked.ndim - 2)
            )
            named[variable.name] = (("chain", "draw", *own), stacked)
            coords |= {dim: np.asarray(model.coords[dim]) for dim in own if model.coords.get(dim) is not None}
        return xr.Dataset(named, coords=coords)
