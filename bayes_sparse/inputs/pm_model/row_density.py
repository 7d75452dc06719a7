"""A log-density of rows in any form, along its predictors: potentials, classes, several parameters at once."""

from __future__ import annotations

from collections.abc import Hashable
from functools import cached_property
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.tensor.random.basic import CategoricalRV

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inputs.compiled import compile_several
from bayes_sparse.inputs.pm_model.class_columns import class_density
from bayes_sparse.inputs.pm_model.graph import Var, reached, replaced, small_function, structure_of, unchecked, value_of
from bayes_sparse.inputs.pm_model.likelihood import check_given, input_like
from bayes_sparse.inputs.pm_model.parts import Part, unsummed
from bayes_sparse.inputs.pm_model.predictor import not_by_row
from bayes_sparse.inputs.pm_model.variables import Nuisance, likelihood_parameters

__all__ = ["RowDensity"]

_GOLDEN = 0.6180339887498949


class RowDensity:
    """Log-density of a part's rows as a function of their predictors and theta.

    Parameters
    ----------
    part : Part
        An observed variable or a potential, read.
    rvs : set of Var
        The free variables of the model.
    nuisance : Nuisance
        Those of them behind theta.
    """

    def __init__(self, part: Part, rvs: set[Var], nuisance: Nuisance) -> None:
        self._part, self._start = part, nuisance.start
        self._y = pt.vector("y", dtype="float64")
        self._graph = self._made_of(part, rvs)
        known = {eta: k for k, eta in enumerate(part.etas)} | {self._y: len(part.etas)}
        self._key, self._external = structure_of(self._graph, known, rvs)
        random = [bool(reached([v], rvs)) for v in self._external]
        self._known = [None if r else value_of(v) for v, r in zip(self._external, random, strict=True)]
        some = [v for v, r in zip(self._external, random, strict=True) if r]
        self._moving = nuisance.function(some) if some else None
        density = self._placed()
        check_given(part.output.name, density, rvs)
        if not self._by_row(density):
            raise ValueError(not_by_row(part.output.name))

    def _made_of(self, part: Part, rvs: set[Var]) -> list[Var]:
        """The density itself, where it is written here, or the parameters of the distribution that has it."""
        if part.output.y is None:
            return [unchecked(unsummed(part.variable), [*rvs, *part.etas])]
        if isinstance(part.variable.owner.op, CategoricalRV):
            density = class_density(likelihood_parameters(part.variable)[0], self._y)
            if density is not None:
                return [density]
        return likelihood_parameters(part.variable)

    @property
    def _is_density(self) -> bool:
        return self._part.output.y is None or self._graph != likelihood_parameters(self._part.variable)

    def pointwise(self, eta: FloatArray, theta: FloatArray, derivatives: int = 3) -> tuple[FloatArray, ...]:
        """Log-density and its first derivatives along eta, (n,) or (K, n), row by row."""
        with np.errstate(all="ignore"):
            if eta.ndim > 1:
                return tuple(self._compiled(eta, *self._values(theta), derivatives=derivatives))
            terms = self._compiled(eta[None], *self._values(theta), derivatives=derivatives)
        return tuple(term.reshape(eta.shape) for term in terms)

    def _values(self, theta: FloatArray) -> list[FloatArray]:
        moving = iter(self._moving(theta) if self._moving is not None else ())
        y = np.zeros(self._part.n) if self._part.output.y is None else self._part.output.y.ravel()
        return [y, *(np.asarray(next(moving) if v is None else v, dtype=float) for v in self._known)]

    @cached_property
    def _inputs(self) -> tuple[list[Var], list[Var]]:
        etas = [pt.vector(f"eta_{k}", dtype="float64") for k in range(len(self._part.etas))]
        return etas, [self._y, *(input_like(v) for v in self._values(self._start)[1:])]

    def _placed(self) -> Var:
        """The density as a function of fresh inputs, one number a row."""
        etas, [y, *rest] = self._inputs
        pairs = [(old, self._shaped(new, old.ndim)) for old, new in zip(self._part.etas, etas, strict=True)]
        pairs += list(zip(self._external, rest, strict=True))
        placed = {old: pt.cast(new, old.dtype) for old, new in pairs}
        if self._is_density:
            [density] = replaced(self._graph, placed)
        else:
            [variable] = replaced([self._part.variable], placed)
            value = pt.cast(self._shaped(y, variable.ndim), variable.dtype)
            density = unchecked(pm.logp(variable, value, warn_rvs=False), ())
        return density if density.ndim == 1 else density.reshape((-1,))

    def _shaped(self, vector: Var, ndim: int) -> Var:
        """Rows as a number, where there is one, as they are, or as a table."""
        if ndim == 1:
            return vector
        table = self._part.output.y
        return vector[0] if ndim == 0 or table is None else vector.reshape((-1, table.shape[1]))

    def _by_row(self, density: Var) -> bool:
        """Whether a row's number depends on its own predictors alone: seen by moving those of others.

        Which others is chance, always the same: a pattern would not see dependence that has the same.
        """
        etas, rest = self._inputs
        function: Any = small_function([*etas, *rest], [density], rewrite=True)
        values, rows = self._values(self._start), np.arange(self._part.n)
        eta = [0.3 * np.modf((rows + k) * _GOLDEN)[0] for k in range(len(etas))]
        half = np.random.default_rng(0).random(len(rows)) < 0.5
        with np.errstate(all="ignore"):
            here, *there = (
                np.asarray(function(*(e + 0.1 * some for e in eta), *values)[0]) for some in (0.0, half, ~half)
            )
        still = zip(there, (~half, half), strict=True)
        return here.shape == (self._part.n,) and all(
            np.array_equal(here[others], moved[others], equal_nan=True) for moved, others in still
        )

    @cached_property
    def _compiled(self) -> Any:
        etas, rest = self._inputs
        op = None if self._is_density else self._part.variable.owner.op
        patterns = tuple(v.type.broadcastable for v in rest)
        shape = (self._part.n,) if self._part.output.y is None else self._part.output.y.shape  # the graph may hold it
        key: Hashable = (op, self._key, tuple(eta.ndim for eta in self._part.etas), shape, patterns)
        return compile_several(key, lambda: (self._placed(), etas, rest))
