"""A `pm.Model` with a sparse Gaussian prior and a linear predictor becomes a problem; and what it forecasts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pymc as pm
from numpy.typing import NDArray
from pymc.distributions.moments import mean as expectation
from pymc.distributions.moments.means import _mean
from pytensor.compile.sharedvalue import shared
from pytensor.graph.traversal import ancestors
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.random.type import RandomType

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inputs.pm_model.graph import (
    Var,
    check_weights,
    classify,
    number_of,
    observed_variable,
    reached,
    replaced,
    small_function,
)
from bayes_sparse.inputs.pm_model.likelihood import Distribution, GraphLikelihood
from bayes_sparse.inputs.pm_model.predictor import find_predictor, read_columns
from bayes_sparse.inputs.pm_model.sparse_prior import PowerLaw, law_finder, sparse_variables
from bayes_sparse.inputs.pm_model.variables import (
    Nuisance,
    blocks_of,
    coords_of,
    dims_of,
    family_of,
    fixed_precision,
    in_order,
    nuisance_variables,
    parameters,
    prior_sd,
)
from bayes_sparse.problem.design import Design
from bayes_sparse.problem.labelled import WeightBlock
from bayes_sparse.problem.problem import Problem

__all__ = ["Forecast", "GeneralForecast", "ReadModel", "Simulator", "knows_mean", "read_model", "simulator"]

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


@dataclass(frozen=True)
class ReadModel:
    """A user's model, read.

    Attributes
    ----------
    problem : Problem
        What an evidence method needs.
    sparse, fixed : tuple of WeightBlock
        The variables behind the columns whose precision is to be found, and behind all others.
    precision : dict
        For each sparse variable the names of the variables its prior sd depends on.
    observed : str
        Name of the observed variable.
    obs_dims : tuple of str, optional
        Its dims.
    obs_coords : dict
        Their coordinate values.
    describe : str
        The family of the likelihood: "normal", "bernoulli", "student_t" ..., "custom" for a user's own.
    nuisance : tuple of str
        Names of the variables behind theta, in order.
    unpack : callable
        ``unpack(theta)`` gives the nuisance variables on their own scale, by name.
    simulate : callable
        ``simulate(eta, theta, rng)`` draws one observation a row from the user's own distribution.
    mean : callable, optional
        ``mean(eta, theta)`` gives the expected observation; None where PyMC knows no formula.
    """

    problem: Problem
    sparse: tuple[WeightBlock, ...]
    fixed: tuple[WeightBlock, ...]
    precision: dict[str, tuple[str, ...]]
    observed: str
    obs_dims: tuple[str, ...] | None
    obs_coords: dict[str, NDArray[Any]]
    describe: str
    nuisance: tuple[str, ...]
    unpack: Callable[[FloatArray], dict[str, NDArray[Any]]]
    simulate: Callable[[FloatArray, FloatArray, np.random.Generator], NDArray[Any]]
    mean: Callable[[FloatArray, FloatArray], FloatArray] | None
    _laws: dict[str, Callable[[], PowerLaw | None]]

    def hyper(self, name: str, precision: FloatArray) -> dict[str, FloatArray] | None:
        """Values of the variable behind a sparse prior that give the named weights these precisions.

        Parameters
        ----------
        name : str
            A sparse variable.
        precision : array
            Prior precisions of its weights; infinite where a weight is pruned.

        Returns
        -------
        dict or None
            ``{"alpha": values}`` where the prior sd is a power law of a single variable, else None.
        """
        law = self._laws[name]()
        return None if law is None else {law.hyper: law.invert(np.asarray(precision, dtype=float))}


def read_model(
    model: pm.Model,
    weights: str | None = None,
    *,
    observation_weights: FloatArray | None = None,
    y: FloatArray | None = None,
) -> ReadModel:
    """Read a model with a sparse Gaussian prior and a linear predictor.

    Parameters
    ----------
    model : pm.Model
        The user's own model.
    weights : str, optional
        Name of the sparse weights. By default every Normal variable whose prior sd depends on a variable of the
        same shape.
    observation_weights : array (n,), optional
        A weight of 2 counts an observation twice.
    y : array, optional
        Stands in for the observed values: for prediction at rows that have not been observed.

    Returns
    -------
    ReadModel
        The problem, and what is needed to put values back under the user's own names.

    Raises
    ------
    ValueError
        If the model is not of this kind; the sentence says why and what to do.
    """
    observed = observed_variable(model)
    params = parameters(observed)
    y = number_of(model.rvs_to_values[observed]) if y is None else y
    if y.ndim != 1:
        raise ValueError(f"The observed variable {observed.name!r} has {y.ndim} dimensions; it must have one.")
    checked = check_weights(observation_weights, len(y))

    rvs = set(model.free_RVs)
    sparse, gaussian = sparse_variables(model, weights, reached(params, rvs))
    kinds = classify(params, rvs, gaussian)
    eta = find_predictor(params, kinds, rvs, sparse)
    fixed = in_order((reached([eta], rvs) & gaussian) - set(sparse), model)
    latents = sparse + fixed
    nuisance = Nuisance(model, nuisance_variables(model, params, eta, sparse, fixed))

    blocks = blocks_of(model, latents)
    shapes = {rv: block.shape for rv, block in zip(latents, blocks, strict=True)}
    distribution = Distribution(observed, eta, rvs, nuisance, len(y))
    likelihood, forecast = GraphLikelihood(distribution, rvs, y), Forecast(distribution)
    offset, columns = read_columns(eta, latents, shapes, kinds, len(y))
    for rv, block in zip(latents, blocks, strict=True):
        if block.mean.any():
            offset = offset + columns[rv] @ block.mean.ravel()

    problem = Problem(
        design=Design(
            _beside([columns[rv] for rv in sparse], len(y)), extra=_beside([columns[rv] for rv in fixed], len(y))
        ),
        y=y,
        free=np.repeat([rv in sparse for rv in latents], [columns[rv].shape[1] for rv in latents]),
        fixed_precision=fixed_precision(fixed, shapes, nuisance),
        pointwise=likelihood.pointwise,
        offset=offset,
        weights=checked,
        theta=nuisance.start,
        theta_bounds=nuisance.bounds,
        log_prior=nuisance.log_prior if nuisance.rvs else None,
        normal=likelihood.sigma is not None,
        sigma=1.0 if likelihood.sigma is None else likelihood.sigma,
    )
    hypers = {rv: in_order(reached([prior_sd(rv)], rvs), model) for rv in sparse}
    return ReadModel(
        problem=problem,
        sparse=blocks[: len(sparse)],
        fixed=blocks[len(sparse) :],
        precision={rv.name: tuple(h.name for h in hypers[rv]) for rv in sparse},
        observed=observed.name,
        obs_dims=dims_of(model, observed),
        obs_coords=coords_of(model, observed),
        describe=family_of(observed),
        nuisance=tuple(rv.name for rv in nuisance.rvs),
        unpack=nuisance.unpack,
        simulate=forecast.simulate,
        mean=forecast.mean if forecast.has_mean else None,
        _laws={rv.name: law_finder(prior_sd(rv), hypers[rv], shapes[rv]) for rv in sparse},
    )


def _beside(blocks: list[FloatArray], n: int) -> FloatArray:
    """Put blocks side by side; a single one is not copied."""
    return blocks[0] if len(blocks) == 1 else np.hstack([np.empty((n, 0)), *blocks])
