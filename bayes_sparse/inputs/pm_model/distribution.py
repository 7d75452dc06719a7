"""The observed variable's distribution cut at the predictor: a graph of eta, the user's data and theta alone."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import pytensor.tensor as pt
from numpy.typing import NDArray
from pytensor.tensor.random.op import RandomVariable

from bayes_sparse.inputs.pm_model.evaluate import value_of
from bayes_sparse.inputs.pm_model.nodes import Var, reached, replaced
from bayes_sparse.inputs.pm_model.nuisance import Nuisance
from bayes_sparse.inputs.pm_model.structure import structure_of
from bayes_sparse.inputs.pm_model.variable import parameters
from bayes_sparse.problem.design import FloatArray

__all__ = ["Distribution", "input_like"]


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
    """

    def __init__(self, observed: Var, eta: Var, rvs: set[Var], nuisance: Nuisance, n: int) -> None:
        self.observed, self.eta, self.nuisance = observed, eta, nuisance
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

    def arguments(self, eta: FloatArray, theta: FloatArray) -> list[FloatArray]:
        """Values of `inputs`, with as many rows as eta, which need not be those of the model."""
        eta = np.asarray(eta, dtype=float)
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


def input_like(value: NDArray[Any]) -> Var:
    """Make a fresh variable for values of this shape; only lengths of one are fixed."""
    return pt.tensor(dtype="float64", shape=tuple(1 if size == 1 else None for size in value.shape))
