"""The log-likelihood of a model as a function of one flat vector of weights and of theta, compiled piece by piece.

Three functions, each made when it is first called: value and gradient, for steps; rows of the Hessian; the
log-density of every observation. The user's data stay what they are in the model, so new values reach them.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from threading import Timer
from typing import Any

import numpy as np
import pymc as pm
import pytensor.sparse  # noqa: F401  (excluding a rewrite by name from a database that lacks it bars its later import)
import pytensor.tensor as pt
from pymc.logprob.utils import CheckParameterValue
from pytensor.compile.maker import function as pytensor_function
from pytensor.compile.mode import Mode, get_mode
from pytensor.configdefaults import config
from pytensor.gradient import grad as gradient
from pytensor.gradient import pullback
from pytensor.graph.replace import vectorize_graph
from pytensor.graph.rewriting.db import RewriteDatabaseQuery
from pytensor.graph.rewriting.utils import rewrite_graph
from pytensor.graph.traversal import toposort

from bayes_sparse.common.locks import building, one_at_a_time
from bayes_sparse.common.types import FloatArray
from bayes_sparse.inputs.compiled import Compiled
from bayes_sparse.inputs.pm_model.graph import Var, reached, replaced, unfolded, value_of
from bayes_sparse.inputs.pm_model.likelihood import probit_density
from bayes_sparse.inputs.pm_model.variables import Nuisance
from bayes_sparse.problem.labelled import WeightBlock

__all__ = ["FlatLikelihood"]

_BLAS = ("BlasOpt", "local_usmm")  # looking for a BLAS to link costs time; products are left to numpy's
# The density is stabilised before: to find a softmax again would only hide it in a function compiled by itself.
_PYTHON = Mode(
    linker="py",
    optimizer=RewriteDatabaseQuery(
        include=["fast_run"], exclude=["fusion", "cxx_only", "symbolic_op_recognition", *_BLAS]
    ),
)
# Observations times rows of the Hessian after which Python gives way to C. A Hessian of 50 weights and 250 observations
# takes 10 ms in Python and 2 in C, but its first one on a machine comes after a second and not after most of a minute.
_MUCH = 20_000_000
_SLOPE = 8  # rows of the Hessian that take as long as a gradient
_BLOCK = 200_000  # observations times rows of the Hessian at once: a layer's worth of them stays near the cache
_PATIENCE = 1.5  # seconds of compiling before something is said
_log = logging.getLogger("bayes_sparse")


class FlatLikelihood:
    """Log-likelihood of the observed variable along the flat vector v, relative to the prior means.

    Parameters
    ----------
    model : pm.Model
        The user's model.
    observed : Var
        Its observed variable.
    blocks : dict
        Where each Gaussian variable sits in v.
    nuisance : Nuisance
        The variables behind theta.
    observation_weights : array (n,), optional
        One for every row of the observations.

    Attributes
    ----------
    n : int
        Number of log-densities: observations, of several numbers each where their distribution says so.
    """

    def __init__(
        self,
        model: pm.Model,
        observed: Var,
        blocks: Mapping[Var, WeightBlock],
        nuisance: Nuisance,
        observation_weights: FloatArray | None = None,
    ) -> None:
        size = sum(block.mean.size for block in blocks.values())
        self._v = pt.tensor("v", dtype="float64", shape=(size,))
        self._theta = pt.tensor("theta", dtype="float64", shape=nuisance.start.shape)
        placed = nuisance.at(self._theta)
        for rv, block in blocks.items():
            own = self._v[block.columns].reshape(block.shape) + block.mean
            placed[rv] = pt.cast(own, rv.dtype)
        # Copies, the observations' graph too: rewriting works in place, and the model is the user's.
        [variable, value] = replaced([observed, model.rvs_to_values[observed]], placed)
        density = probit_density(variable, value)
        self._density = pm.logp(variable, value, warn_rvs=False) if density is None else density
        for rv in sorted(reached([self._density], set(model.free_RVs)), key=lambda rv: str(rv.name)):
            raise ValueError(
                f"The log-density of {observed.name!r} uses {rv.name!r} without being given it; pass it as a "
                "parameter of the distribution."
            )
        if observation_weights is not None and self._density.ndim == 0:
            raise ValueError(f"The observations of {observed.name!r} have one density together: leave out the weights.")
        self._weights = observation_weights
        self.n = int(np.prod(value_of(value).shape[: self._density.ndim], dtype=int))
        self._work, self._compiler = 0, bool(shutil.which(config.cxx or ""))

    def slope(self, v: FloatArray, theta: FloatArray) -> tuple[float, FloatArray]:
        """Value, minus infinity where a parameter is out of its range, and gradient."""
        self._work += _SLOPE * self.n
        value, slope = self._slope(v, theta)
        return float(value), slope

    def bend(self, v: FloatArray, theta: FloatArray, rows: FloatArray) -> FloatArray:
        """Rows times the Hessian, a block of rows at a time."""
        self._work += len(rows) * self.n
        step = max(1, _BLOCK // max(1, self.n))
        blocks = [rows[i : i + step] for i in range(0, len(rows), step)]
        return np.vstack([np.broadcast_to(self._bend(v, theta, block)[0], block.shape) for block in blocks])

    def terms(self, v: FloatArray, theta: FloatArray) -> FloatArray:
        """Log-densities of the observations, in C order, without their weights."""
        self._work += _SLOPE * self.n
        return self._pointwise(v, theta)[0].ravel()

    @cached_property
    def _stable(self) -> tuple[Var, list[Var]]:
        """The log-densities without parameter checks, and what these check.

        Stabilised before it is differentiated: the gradient of log(softmax) is 0/0 far out, that of log-softmax not.
        """
        density, conditions = _without_checks(self._density)
        include = ("canonicalize", "stabilize", "specialize")
        return rewrite_graph(density, include=include, exclude=_BLAS), conditions

    @cached_property
    def _total(self) -> Var:
        density, _ = self._stable
        if self._weights is None:
            return density.sum()
        return (density * self._weights.reshape((-1,) + (1,) * (density.ndim - 1))).sum()

    @cached_property
    def _slope(self) -> Compiled:
        value = self._total
        for condition in self._stable[1]:
            value = pt.switch(condition, value, -np.inf)
        return self._compiled([self._v, self._theta], unfolded([value, self._gradient]))

    @cached_property
    def _gradient(self) -> Var:
        return gradient(self._total, self._v, disconnected_inputs="ignore")

    @cached_property
    def _bend(self) -> Compiled:
        row, rows = pt.vector("row", dtype="float64"), pt.matrix("rows", dtype="float64")
        bent: Var = pullback(self._gradient, self._v, row, disconnected_inputs="ignore")
        return self._compiled([self._v, self._theta, rows], vectorize_graph(unfolded([bent]), {row: rows}))

    @cached_property
    def _pointwise(self) -> Compiled:
        return self._compiled([self._v, self._theta], unfolded([self._stable[0]]))

    def _compiled(self, inputs: Sequence[Var], outputs: Sequence[Var]) -> Compiled:
        """Make a function that runs in Python at first and in C after much work, where there is a compiler."""
        made: dict[bool, Callable[..., list[Any]]] = {}

        @one_at_a_time
        def call(*values: FloatArray) -> list[FloatArray]:
            in_c = self._work > _MUCH and self._compiler
            if in_c not in made:
                made[in_c] = _function(inputs, outputs, in_c)
            with np.errstate(all="ignore"):  # a step too far overflows, and its value says so
                return [np.asarray(out) for out in made[in_c](*(np.asarray(a, dtype=float) for a in values))]

        return call


def _function(inputs: Sequence[Var], outputs: Sequence[Var], in_c: bool) -> Callable[..., list[Any]]:
    """Make a function in Python, or in C: numba takes a minute over the first matrix product, longer over a Hessian."""
    mode: Any = get_mode("CVM").excluding(*_BLAS) if in_c else _PYTHON  # type: ignore[no-untyped-call]
    with building(), _said_if_long():
        function: Callable[..., list[Any]] = pytensor_function(
            list(inputs), list(outputs), mode=mode, on_unused_input="ignore"
        )
    return function


def _without_checks(density: Var) -> tuple[Var, list[Var]]:
    """Take PyMC's parameter checks out, which raise inside compiled code, and say what they check."""
    new: dict[Var, Var] = {}
    conditions: list[Var] = []
    for node in toposort([density]):
        inputs = [new.get(i, i) for i in node.inputs]
        if isinstance(node.op, CheckParameterValue):
            new[node.outputs[0]] = inputs[0]
            conditions.extend(inputs[1:])
        elif inputs != node.inputs:
            new.update(zip(node.outputs, node.clone_with_new_inputs(inputs, strict=False).outputs, strict=True))
    return new.get(density, density), conditions


@contextmanager
def _said_if_long() -> Iterator[None]:
    message = "Compiling the model's likelihood; the first time on a machine this takes up to a minute."
    timer = Timer(_PATIENCE, _log.info, [message])
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
