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
from bayes_sparse.inputs.pm_model.forecast import GeneralForecast
from bayes_sparse.inputs.pm_model.graph import Var, check_weights, number_of, only_observed, reached
from bayes_sparse.inputs.pm_model.latents import plain_latents
from bayes_sparse.inputs.pm_model.roles import NOTHING_ASKED, Asked, Role, blocks_of, hyper_values, roles_of
from bayes_sparse.inputs.pm_model.variables import (
    Nuisance,
    coords_of,
    dims_of,
    family_of,
    fixed_precision,
    in_order,
    parameters,
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
    roles: tuple[Role, ...]

    def hyper(self, name: str, precision: FloatArray) -> dict[str, FloatArray] | None:
        """Values of the variable behind a sparse prior that give the named weights these precisions, if they exist."""
        return hyper_values(self.roles, name, precision) or None


def read_general(
    model: pm.Model, asked: Asked = NOTHING_ASKED, *, observation_weights: FloatArray | None = None
) -> General:
    """Read a model with a sparse Gaussian prior and any likelihood that can be differentiated twice.

    Parameters
    ----------
    model : pm.Model
        The user's own model: a small network, a softmax, two predictors.
    asked : Asked
        What its user says is sparse. By default every Normal variable whose prior sd varies with its elements.
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
    near = reached(parameters(observed), set(model.free_RVs))
    roles = roles_of(model, plain_latents(model, near, asked.named), set(), asked)
    others = _nuisance(model, roles, near)
    roles = [role for role in roles if role.latent.rv not in others]
    if not any(role.free for role in roles):
        names = ", ".join(repr(role.latent.name) for role in roles) or "none"
        raise ValueError(
            "A one-step method needs variables with a precision for each weight: name them by sparse=[...]; those with "
            f"a Normal prior are {names}."
        )
    nuisance = Nuisance(model, in_order(others, model))
    sparse, fixed = [r for r in roles if r.free], [r for r in roles if not r.free]
    blocks = dict(zip((role.latent.rv for role in sparse + fixed), blocks_of(sparse + fixed), strict=True))
    checked = check_weights(observation_weights, y.shape[0] if y.ndim else 1)
    likelihood = _likelihood(model, observed, blocks, nuisance, checked)
    precision = fixed_precision([r.latent.sd for r in fixed], [r.latent.shape for r in fixed], nuisance)
    surface = GeneralSurface(
        d=sum(role.latent.size for role in sparse),
        q=sum(role.latent.size for role in fixed),
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
    return General(
        surface=surface,
        sparse=tuple(blocks[role.latent.rv] for role in sparse),
        fixed=tuple(blocks[role.latent.rv] for role in fixed),
        fixed_precision=precision,
        precision={role.latent.name: tuple(rv.name for rv in role.scales.hypers) for role in sparse},
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
        roles=tuple(sparse + fixed),
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


def _nuisance(model: pm.Model, roles: list[Role], near: set[Var]) -> set[Var]:
    """All that the likelihood or a prior depends on and that is no weight.

    A Gaussian variable on which another prior depends is a nuisance, or that prior would change with the weights.
    """
    rvs, weights = set(model.free_RVs), {role.latent.rv for role in roles if role.free}
    found: set[Var] = set()
    queue = near - {role.latent.rv for role in roles}
    queue |= reached([role.latent.sd for role in roles if not role.free], rvs)
    while queue:
        rv = queue.pop()
        if rv in weights:
            raise ValueError(
                f"The weights {rv.name!r} reach the likelihood through another variable's prior as well, and evidence "
                "methods need them in the likelihood alone; method='nuts' samples the model as it stands."
            )
        found.add(rv)
        queue |= reached(parameters(rv), rvs) - found
    return found


def _begin(blocks: list[WeightBlock], sparse: int) -> FloatArray:
    """Draw the sparse weights so that sums of them are of order one, by the usual rule for networks, always alike.

    At zero the hidden units of a network are all the same and stay so.
    """
    rng = np.random.default_rng(0)
    drawn = [rng.standard_normal(block.mean.size) / np.sqrt(block.shape[0]) for block in blocks[:sparse]]
    return np.concatenate([*drawn, *(np.zeros(block.mean.size) for block in blocks[sparse:])])
