"""From a `pm.Model` whose predictor need not be linear to a surface: value, gradient and Hessian of its likelihood."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pymc as pm
from numpy.typing import NDArray

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inputs.pm_model.flat import FlatLikelihood
from bayes_sparse.inputs.pm_model.graph import Var, check_weights, number_of, only_observed, reached
from bayes_sparse.inputs.pm_model.linear_model import GeneralForecast
from bayes_sparse.inputs.pm_model.sparse_prior import PowerLaw, law_finder, named_or_own
from bayes_sparse.inputs.pm_model.variables import (
    Nuisance,
    blocks_of,
    coords_of,
    dims_of,
    family_of,
    fixed_precision,
    in_order,
    parameters,
    prior_sd,
)
from bayes_sparse.problem.labelled import WeightBlock
from bayes_sparse.problem.surfaces.general import GeneralSurface

__all__ = ["General", "read_general"]


@dataclass(frozen=True)
class General:
    """A user's model read as a surface over its weights.

    Attributes
    ----------
    surface : GeneralSurface
        The log-likelihood as a function of v and theta; v is relative to the prior means.
    sparse, fixed : tuple of WeightBlock
        Where each variable sits in v: those whose precisions are to be found, and all other Gaussian ones.
    fixed_precision : callable
        ``fixed_precision(theta)`` gives the prior precisions of the fixed ones, (q,).
    precision : dict
        For each sparse variable the names of the variables its prior sd depends on.
    observed : str
        Name of the observed variable.
    obs_dims : tuple of str, optional
        Its dims.
    obs_coords : dict
        Their coordinate values.
    y : array
        The observations, in their own shape.
    describe : str
        The family of the likelihood: "normal", "categorical" ..., "custom" for a user's own.
    nuisance : tuple of str
        Names of the variables behind theta, in order.
    theta, theta_bounds : array (t,), array (t, 2)
        Where theta starts, on PyMC's unconstrained scale, and how far it may go.
    log_prior : callable, optional
        ``log_prior(theta)``; None where there is no theta.
    unpack : callable
        ``unpack(theta)`` gives the nuisance variables on their own scale, by name.
    forecast : GeneralForecast
        New observations at values of the variables.
    """

    surface: GeneralSurface
    sparse: tuple[WeightBlock, ...]
    fixed: tuple[WeightBlock, ...]
    fixed_precision: Callable[[FloatArray], FloatArray]
    precision: dict[str, tuple[str, ...]]
    observed: str
    obs_dims: tuple[str, ...] | None
    obs_coords: dict[str, NDArray[Any]]
    y: FloatArray
    describe: str
    nuisance: tuple[str, ...]
    theta: FloatArray
    theta_bounds: FloatArray
    log_prior: Callable[[FloatArray], float] | None
    unpack: Callable[[FloatArray], dict[str, NDArray[Any]]]
    forecast: GeneralForecast
    _laws: dict[str, Callable[[], PowerLaw | None]]

    def hyper(self, name: str, precision: FloatArray) -> dict[str, FloatArray] | None:
        """Values of the variable behind a sparse prior that give the named weights these precisions, if they exist."""
        law = self._laws[name]()
        return None if law is None else {law.hyper: law.invert(np.asarray(precision, dtype=float))}


def read_general(
    model: pm.Model, weights: str | tuple[str, ...] | None = None, *, observation_weights: FloatArray | None = None
) -> General:
    """Read a model with a sparse Gaussian prior and any likelihood that can be differentiated twice.

    Parameters
    ----------
    model : pm.Model
        The user's own model: a small network, a softmax, two predictors.
    weights : str or tuple of str, optional
        Names of variables with a Normal prior that are sparse whatever sd they declare. Those whose prior sd depends
        on a variable of their own shape are always sparse.
    observation_weights : array (n,), optional
        One for every row of the observations: a weight of 2 counts a row twice.

    Returns
    -------
    General
        The surface, and what is needed to put values back under the user's own names.

    Raises
    ------
    ValueError
        If the model is not of this kind; the sentence says why and what to do.
    """
    observed = only_observed(model)
    y = number_of(model.rvs_to_values[observed])
    rvs = set(model.free_RVs)
    near = reached(parameters(observed), rvs)
    named = (weights,) if isinstance(weights, str) else weights or ()
    sparse, gaussian = named_or_own(model, named, near)
    fixed, others = _fixed_and_nuisance(model, sparse, gaussian, near)
    nuisance = Nuisance(model, others)

    latents = sparse + fixed
    blocks = dict(zip(latents, blocks_of(model, latents), strict=True))
    shapes = {rv: block.shape for rv, block in blocks.items()}
    checked = check_weights(observation_weights, y.shape[0] if y.ndim else 1)
    likelihood = _likelihood(model, observed, blocks, nuisance, checked)
    precision = fixed_precision(fixed, shapes, nuisance)
    surface = GeneralSurface(
        d=sum(blocks[rv].mean.size for rv in sparse),
        q=sum(blocks[rv].mean.size for rv in fixed),
        n=likelihood.n,
        slope=likelihood.slope,
        bend=likelihood.bend,
        terms=likelihood.terms,
        begin=_begin(list(blocks.values()), len(sparse)),
        theta=nuisance.start,
        theta_bounds=nuisance.bounds,
        log_prior=nuisance.log_prior if nuisance.rvs else lambda theta: 0.0,
        fixed_precision=precision,
        classes=family_of(observed) in ("bernoulli", "categorical") and np.unique(y).size > 1,
        weights=checked,
    )
    hypers = {rv: in_order(reached([prior_sd(rv)], rvs), model) for rv in sparse}
    return General(
        surface=surface,
        sparse=tuple(blocks[rv] for rv in sparse),
        fixed=tuple(blocks[rv] for rv in fixed),
        fixed_precision=precision,
        precision={rv.name: tuple(h.name for h in hypers[rv]) for rv in sparse},
        observed=observed.name,
        obs_dims=dims_of(model, observed),
        obs_coords=coords_of(model, observed),
        y=y,
        describe=family_of(observed),
        nuisance=tuple(rv.name for rv in nuisance.rvs),
        theta=nuisance.start,
        theta_bounds=nuisance.bounds,
        log_prior=nuisance.log_prior if nuisance.rvs else None,
        unpack=nuisance.unpack,
        forecast=GeneralForecast(observed, in_order(near, model)),
        _laws={rv.name: law_finder(prior_sd(rv), hypers[rv], shapes[rv]) for rv in sparse},
    )


# Compiled functions by model, so that fitting one again, with new data too, compiles nothing again.
_likelihoods: WeakKeyDictionary[pm.Model, dict[Hashable, FlatLikelihood]] = WeakKeyDictionary()


def _likelihood(
    model: pm.Model, observed: Var, blocks: dict[Var, WeightBlock], nuisance: Nuisance, weights: FloatArray | None
) -> FlatLikelihood:
    where = tuple((rv, block.shape, block.mean.tobytes()) for rv, block in blocks.items())
    shape = np.shape(number_of(model.rvs_to_values[observed]))
    key = (observed, shape, where, tuple(nuisance.rvs), None if weights is None else weights.tobytes())
    known = _likelihoods.setdefault(model, {})
    if key not in known:
        known[key] = FlatLikelihood(model, observed, blocks, nuisance, weights)
    return known[key]


def _fixed_and_nuisance(
    model: pm.Model, sparse: list[Var], gaussian: set[Var], near: set[Var]
) -> tuple[list[Var], list[Var]]:
    """Share out what is not sparse: Gaussian weights, and all else that the likelihood or a prior depends on.

    A Gaussian variable on which another prior depends is a nuisance, or that prior would change with the weights.
    """
    rvs, weights = set(model.free_RVs), set(sparse)
    fixed = gaussian - weights
    found: set[Var] = set()
    queue = (near - gaussian) | reached([prior_sd(rv) for rv in fixed], rvs)
    while queue:
        rv = queue.pop()
        if rv in weights:
            raise ValueError(
                f"The weights {rv.name!r} reach the likelihood through another variable's prior as well; evidence "
                "methods need them in the likelihood alone."
            )
        found.add(rv)
        queue |= reached(parameters(rv), rvs) - found
    return in_order(fixed - found, model), in_order(found, model)


def _begin(blocks: list[WeightBlock], sparse: int) -> FloatArray:
    """Draw the sparse weights so that sums of them are of order one, by the usual rule for networks, always alike.

    At zero the hidden units of a network are all the same and stay so.
    """
    rng = np.random.default_rng(0)
    drawn = [rng.standard_normal(block.mean.size) / np.sqrt(block.shape[0]) for block in blocks[:sparse]]
    return np.concatenate([*drawn, *(np.zeros(block.mean.size) for block in blocks[sparse:])])
