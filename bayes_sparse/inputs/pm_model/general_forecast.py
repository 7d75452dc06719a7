"""New observations of any model at given values of its variables, for the rows its data have at the moment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pymc.distributions.moments import mean as expectation
from pytensor.tensor.random.op import RandomVariable

from bayes_sparse.inputs.pm_model.evaluate import small_function
from bayes_sparse.inputs.pm_model.forecast import Simulator, knows_mean, simulator
from bayes_sparse.inputs.pm_model.nodes import Var, replaced
from bayes_sparse.inputs.pm_model.variable import family_of, parameters
from bayes_sparse.problem.design import FloatArray

__all__ = ["GeneralForecast"]


class GeneralForecast:
    """Expectation, class probabilities and draws of the observed variable.

    Parameters
    ----------
    observed : Var
        The observed variable.
    variables : list of Var
        The free variables its parameters depend on.
    """

    def __init__(self, observed: Var, variables: Sequence[Var]) -> None:
        self._observed = observed
        self._inputs = [rv.type() for rv in variables]
        self._params = replaced(parameters(observed), dict(zip(variables, self._inputs, strict=True)))
        self.names = [str(rv.name) for rv in variables]
        self.family = family_of(observed)

    @property
    def has_mean(self) -> bool:
        """Whether PyMC knows the expected observation of this family."""
        return knows_mean(self._observed)

    def mean(self, values: Sequence[NDArray[Any]]) -> FloatArray:
        """Expected observation, row by row, at one value of each variable."""
        return np.asarray(self._expectation(*values)[0], dtype=float)

    def probabilities(self, values: Sequence[NDArray[Any]]) -> FloatArray:
        """Class probabilities of a categorical variable, row by row."""
        return np.asarray(self._parameters(*values)[0], dtype=float)

    def simulate(self, values: Sequence[NDArray[Any]], rng: np.random.Generator) -> NDArray[Any]:
        """One new observation a row."""
        return self._simulator(values, rng)

    @cached_property
    def _variable(self) -> Var:
        """The observed variable free of the number of rows it was declared with, where it can be."""
        node = self._observed.owner
        if not isinstance(node.op, RandomVariable):
            return node.clone_with_new_inputs([*node.inputs[: -len(self._params)], *self._params]).outputs[1]
        op: Any = node.op
        return op.make_node(op.rng_param(node), None, *self._params).outputs[1]

    @cached_property
    def _expectation(self) -> Callable[..., list[Any]]:
        return small_function(self._inputs, [expectation(self._variable)], rewrite=True)

    @cached_property
    def _parameters(self) -> Callable[..., list[Any]]:
        return small_function(self._inputs, self._params, rewrite=True)

    @cached_property
    def _simulator(self) -> Simulator:
        return simulator(self._inputs, self._variable, str(self._observed.name))
