"""What a user's model forecasts: expected observations, class probabilities and draws of new ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pymc.distributions.moments import mean as expectation
from pymc.distributions.moments.means import _mean
from pytensor.compile.sharedvalue import shared
from pytensor.graph.traversal import ancestors
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.random.type import RandomType

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inputs.pm_model.graph import Var, replaced, small_function
from bayes_sparse.inputs.pm_model.likelihood import Distribution
from bayes_sparse.inputs.pm_model.variables import family_of, parameters

__all__ = ["Forecast", "GeneralForecast", "Simulator", "knows_mean", "simulator"]

# Private, and needed: PyMC's public `mean` tells a family without a formula only by failing on a built graph, and
# building one for every model read costs more than reading it. The dispatcher behind it answers from the type alone.


type Simulator = Callable[[Sequence[NDArray[Any]], np.random.Generator], NDArray[Any]]


class Forecast:
    """Draws and expectation of the observed variable at any predictor and theta.

    Parameters
    ----------
    distribution : Distribution
        The observed variable, cut at the predictor.
    """

    def __init__(self, distribution: Distribution) -> None:
        self._distribution = distribution

    def simulate(self, eta: FloatArray, theta: FloatArray, rng: np.random.Generator) -> NDArray[Any]:
        """Draw one observation a row."""
        return self._simulator(self._distribution.arguments(eta, theta), rng)

    @property
    def has_mean(self) -> bool:
        """Whether PyMC knows the expected observation of this family."""
        return knows_mean(self._distribution.observed)

    def mean(self, eta: FloatArray, theta: FloatArray) -> FloatArray:
        """Compute the expected observation, row by row."""
        expected = np.asarray(self._expectation(*self._distribution.arguments(eta, theta))[0], dtype=float)
        return np.broadcast_to(expected, np.shape(eta))

    @cached_property
    def _simulator(self) -> Simulator:
        return simulator(self._distribution.inputs, self._distribution.variable, self._distribution.observed.name)

    @cached_property
    def _expectation(self) -> Callable[..., list[Any]]:
        return small_function(self._distribution.inputs, [expectation(self._distribution.variable)])


def knows_mean(observed: Var) -> bool:
    """Whether PyMC knows the expected observation of a variable's family."""
    return _mean.dispatch(type(observed.owner.op)) is not _mean.dispatch(object)


def simulator(inputs: Sequence[Var], variable: Var, name: str) -> Simulator:
    """Make a function of input values and a random generator that draws a variable."""
    states = [v for v in ancestors([variable]) if isinstance(v.type, RandomType) and v.owner is None]
    make: Any = shared
    own = {state: make(np.random.default_rng(0)) for state in states}  # never the user's own
    function = small_function(inputs, replaced([variable], own))

    def draw(values: Sequence[NDArray[Any]], rng: np.random.Generator) -> NDArray[Any]:
        for state in own.values():
            state.set_value(np.random.default_rng(rng.integers(2**63)), borrow=True)
        try:
            return np.asarray(function(*values)[0])
        except NotImplementedError as error:
            raise ValueError(
                f"The distribution of {name!r} cannot be simulated; give pm.CustomDist a function random=f that draws "
                "from it."
            ) from error

    return draw


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
