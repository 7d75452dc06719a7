"""A `pm.Model` with linear predictors becomes a problem: its design, its likelihood, its precisions to be found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pymc as pm
from numpy.typing import NDArray

from bayes_sparse.common.types import FloatArray, IntArray
from bayes_sparse.inputs.pm_model.forecast import Forecast
from bayes_sparse.inputs.pm_model.graph import Var, check_continuous, check_weights, reached
from bayes_sparse.inputs.pm_model.held import MovingCoefficients
from bayes_sparse.inputs.pm_model.latents import Latent, Latents, find_latents, plain_latents
from bayes_sparse.inputs.pm_model.part_likelihood import PartLikelihood, together
from bayes_sparse.inputs.pm_model.parts import Part, outputs_of, read_part
from bayes_sparse.inputs.pm_model.predictor import alike, multiplied, not_linear, obstacle
from bayes_sparse.inputs.pm_model.roles import NOTHING_ASKED, Asked, Role, blocks_of, hyper_values, roles_of
from bayes_sparse.inputs.pm_model.sparse_prior import scales_of
from bayes_sparse.inputs.pm_model.variables import (
    Nuisance,
    family_of,
    fixed_precision,
    free_variables,
    in_order,
    likelihood_parameters,
    with_parents,
)
from bayes_sparse.inputs.table import check_size
from bayes_sparse.problem.design import Design
from bayes_sparse.problem.labelled import WeightBlock
from bayes_sparse.problem.problem import Problem
from bayes_sparse.problem.several_predictors import SeveralProblem

__all__ = ["ReadModel", "read_model"]


@dataclass(frozen=True)
class ReadModel:
    """A user's model, read.

    Attributes
    ----------
    problem : Problem or SeveralProblem
        What an evidence method needs.
    sparse, fixed : tuple of WeightBlock
        The variables behind the columns whose precision is to be found, and behind all others.
    precision : dict
        For each sparse variable the names of the variables its prior sd depends on.
    parts : tuple of Part
        The observed variables and potentials with weights behind them, in the order of the problem's rows.
    nuisance : tuple of str
        Names of the variables behind theta, in order.
    unpack : callable
        ``unpack(theta)`` gives the nuisance variables on their own scale, by name.
    forecast : Forecast, optional
        New observations of the only observed variable along its only predictor; None where there are more.
    roles : tuple of Role
        The Gaussian variables in the order of the blocks, and what is to be found of their priors.
    """

    problem: Problem | SeveralProblem
    sparse: tuple[WeightBlock, ...]
    fixed: tuple[WeightBlock, ...]
    precision: dict[str, tuple[str, ...]]
    parts: tuple[Part, ...]
    nuisance: tuple[str, ...]
    unpack: Callable[[FloatArray], dict[str, NDArray[Any]]]
    forecast: Forecast | None
    roles: tuple[Role, ...]

    @property
    def observed(self) -> str:
        """Name of the observed variable, the first of several."""
        return self.parts[0].output.name

    @property
    def y(self) -> NDArray[Any]:
        """Values of the only observed variable, in their own shape; of several the problem's."""
        y = self.parts[0].output.y
        return self.problem.y if len(self.parts) > 1 or y is None else y

    @property
    def obs_dims(self) -> tuple[str, ...] | None:
        """Its dims."""
        return self.parts[0].output.dims

    @property
    def obs_coords(self) -> dict[str, NDArray[Any]]:
        """Their coordinate values."""
        return self.parts[0].output.coords

    @property
    def describe(self) -> str:
        """The family of the likelihood: "normal", "bernoulli" ..., "custom" for a user's own, "several" for several."""
        return self.parts[0].family if len(self.parts) == 1 else "several"

    @property
    def mean(self) -> Callable[[FloatArray, FloatArray], FloatArray] | None:
        """``mean(eta, theta)`` gives the expected observation; None where PyMC knows no formula."""
        return self.forecast.mean if self.forecast is not None and self.forecast.has_mean else None

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
            ``{"alpha": values}`` of all hyper-variables: one of each weight or group is moved, others stay where they
            begin. None where there are none.
        """
        return hyper_values(self.roles, name, precision) or None


def read_model(
    model: pm.Model,
    asked: Asked = NOTHING_ASKED,
    *,
    observation_weights: FloatArray | None = None,
    y: FloatArray | None = None,
) -> ReadModel:
    """Read a model with linear predictors.

    Parameters
    ----------
    model : pm.Model
        The user's own model.
    asked : Asked
        What its user says is sparse. By default every Normal variable whose prior sd varies with its elements.
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
    check_continuous(model)
    rvs, outputs = set(free_variables(model)), outputs_of(model, y)
    found = find_latents(
        model, [o.variable for o in outputs], {o.variable: o.rows for o in outputs}, set(), asked.named
    )
    _check_linear(model, found, asked, rvs)
    parts, told = [], list[Var]()
    for output, variable in zip(outputs, found.outputs, strict=True):
        if reached(likelihood_parameters(variable), set(found.nodes)):
            parts.append(read_part(output, variable, found, rvs))
        else:  # it says something of the nuisance parameters alone
            told.append(variable if output.y is None else pm.logp(variable, output.y, warn_rvs=False))
    if not parts:
        raise ValueError(
            f"No variable with a pm.Normal prior is in a linear predictor of {outputs[0].name!r}, which evidence "
            f"methods need{_other_weights(model, found)}: write correlated weights as a matrix times independent "
            "pm.Normal ones, give others a pm.Normal prior with a scale each, or use method='nuts'."
        )
    parts.sort(key=lambda part: part.output.y is None)
    latents = _scaled(found, parts, rvs)
    roles = roles_of(model, latents, _constant(latents, parts), asked)
    nuisance = Nuisance(model, _behind(model, parts, roles, told, rvs), told)
    likelihoods = [PartLikelihood(part, rvs, nuisance) for part in parts]
    problem = _problem(parts, likelihoods, roles, nuisance, observation_weights)
    blocks, listed = blocks_of(roles), sum(role.listed for role in roles)
    return ReadModel(
        problem=problem,
        sparse=blocks[:listed],
        fixed=blocks[listed:],
        precision={role.latent.name: tuple(rv.name for rv in role.scales.hypers) for role in roles if role.free},
        parts=tuple(parts),
        nuisance=tuple(rv.name for rv in nuisance.rvs),
        unpack=nuisance.unpack,
        forecast=likelihoods[0].forecast if len(parts) == 1 else None,
        roles=tuple(roles),
    )


def _other_weights(model: pm.Model, found: Latents) -> str:
    """Vectors with another prior, which may have been meant."""
    near = reached([v for out in found.outputs for v in likelihood_parameters(out)], set(model.free_RVs))
    names = [f"{rv.name!r} is {family_of(rv)}" for rv in in_order(near, model) if rv.ndim]
    return f" ({', '.join(names[:3])})" if names else ""


def _check_linear(model: pm.Model, found: Latents, asked: Asked, rvs: set[Var]) -> None:
    """Refuse sparse variables that the likelihood is not linear in: others of that kind are nuisance parameters.

    Neither of two vectors that are multiplied by each other is one: at zero both would stay there.
    """
    params = [v for output in found.outputs for v in likelihood_parameters(output)]
    vectors = {v for v in (*found.nodes, *found.demoted) if v.ndim}
    pair = multiplied(params, vectors, rvs)
    if pair is not None:
        name, other = (found.nodes[v].name if v in found.nodes else v.name for v in pair)
        raise ValueError(not_linear(name, f"which is multiplied by {other!r}"))
    for latent in plain_latents(model, found.demoted):
        named = latent.name in asked.named
        if named or (not asked.declared and scales_of(model, latent.sd, latent.shape).labels is not None):
            raise ValueError(not_linear(latent.name, obstacle(params, latent.rv, rvs)))


def _scaled(found: Latents, parts: Sequence[Part], rvs: set[Var]) -> list[Latent]:
    """The variables of all predictors, with the scales that multiply their terms."""
    every = [columns for part in parts for columns in part.columns]
    latents = []
    for latent in found.known:
        scales = [columns.scales.get(latent.node) for columns in every if latent.node in columns.blocks]
        if not scales:
            continue
        if not alike(scales):
            random = [scale for scale in scales if scale is not None]
            names = sorted(str(rv.name) for rv in reached(random, rvs))
            raise MovingCoefficients(not_linear(latent.name, None), tuple(names))
        latents.append(latent if scales[0] is None else latent.scaled(scales[0]))
    return latents


def _constant(latents: Sequence[Latent], parts: Sequence[Part]) -> set[str]:
    """Variables that add the same to every observation."""
    every = [columns.blocks for part in parts for columns in part.columns]
    with np.errstate(over="ignore"):  # columns too large for their sum are refused in `_problem`
        totals = [[b[latent.node].sum(axis=1) for b in every if latent.node in b] for latent in latents]
    same = [[bool((total == total[:1]).all()) for total in own] for own in totals]
    return {latent.name for latent, alike_ in zip(latents, same, strict=True) if all(alike_)}


def _behind(
    model: pm.Model, parts: Sequence[Part], roles: Sequence[Role], told: Sequence[Var], rvs: set[Var]
) -> list[Var]:
    """The nuisance parameters: what reaches a likelihood or a prior sd other than as a weight of a predictor."""
    behind = reached(told, rvs)
    for part in parts:
        etas = set(part.etas)
        behind |= reached(likelihood_parameters(part.variable), rvs | etas) - etas
        behind |= reached([term for columns in part.columns for term in columns.moving], rvs)
    behind |= reached([role.latent.sd for role in roles if not role.free], rvs)
    for latent in (role.latent for role in roles):
        if latent.rv in behind:
            raise ValueError(
                f"The variable {latent.rv.name!r} reaches the likelihood both through the linear predictor and outside "
                "it, and evidence methods need it in the predictor alone: declare a variable for each place, or use "
                "method='nuts'."
            )
    return with_parents(model, behind)


def _groups(roles: Sequence[Role]) -> IntArray | None:
    """A label for each column, the same for those that share a precision; None where none do."""
    labels, start = [], 0
    for role in roles:
        own = np.arange(role.latent.size) if role.labels is None else role.labels.ravel()
        labels.append(own + start)
        start += role.latent.size
    joined = np.concatenate(labels)
    return None if len(np.unique(joined)) == len(joined) else joined


def _problem(
    parts: Sequence[Part],
    likelihoods: Sequence[PartLikelihood],
    roles: Sequence[Role],
    nuisance: Nuisance,
    observation_weights: FloatArray | None,
) -> Problem | SeveralProblem:
    """Rows of all parts one after the other, and of all their predictors."""
    predictors, n = max(len(part.columns) for part in parts), sum(likelihood.n for likelihood in likelihoods)
    starts = np.cumsum([0, *(likelihood.n for likelihood in likelihoods)])
    offset = np.zeros((predictors, n))
    for start, likelihood in zip(starts, likelihoods, strict=False):
        for k, own in enumerate(likelihood.columns):
            offset[k, start : start + likelihood.n] = own.offset
    Phi = []
    for role in roles:
        block = _rows(role.latent, likelihoods, starts, predictors)
        if role.latent.mean.any():
            offset += (block @ role.latent.mean.ravel()).reshape(offset.shape)
        Phi.append(block if (role.unit == 1).all() else block * role.unit.ravel())
        names = [f"{role.latent.name}[{j}]" for j in range(role.latent.size)]
        check_size(Phi[-1], names, "column of", squared=True, small=False)  # kernels of far rows are as good as zero
    listed, fixed = sum(role.listed for role in roles), [role for role in roles if not role.free]
    common: dict[str, Any] = {
        "design": Design(_beside(Phi[:listed], predictors * n), extra=_beside(Phi[listed:], predictors * n)),
        "y": np.concatenate([likelihood.y for likelihood in likelihoods]),
        "free": np.repeat([role.free for role in roles], [role.latent.size for role in roles]),
        "fixed_precision": fixed_precision(
            [role.latent.sd for role in fixed], [role.latent.shape for role in fixed], nuisance
        ),
        "pointwise": together(likelihoods),
        "fewer": likelihoods[0].fewer if len(parts) == 1 else None,
        "groups": _groups(roles),
        "weights": check_weights(observation_weights, n),
        "theta": nuisance.start,
        "theta_bounds": nuisance.bounds,
        "log_prior": nuisance.log_prior if nuisance.rvs else None,
    }
    if predictors > 1:
        return SeveralProblem(**common, predictors=predictors, offset=offset)
    sigma = likelihoods[0].sigma if len(parts) == 1 else None
    return Problem(**common, offset=offset[0], normal=sigma is not None, sigma=1.0 if sigma is None else sigma)


def _rows(latent: Latent, likelihoods: Sequence[PartLikelihood], starts: Any, predictors: int) -> FloatArray:
    """A variable's columns over all rows, of its own array where that is all."""
    if predictors == len(likelihoods) == 1:
        return likelihoods[0].columns[0].blocks[latent.node]
    block = np.zeros((predictors, int(starts[-1]), latent.size))
    for start, likelihood in zip(starts, likelihoods, strict=False):
        for k, own in enumerate(likelihood.columns):
            if latent.node in own.blocks:
                block[k, start : start + likelihood.n] = own.blocks[latent.node]
    return block.reshape(-1, latent.size)


def _beside(blocks: list[FloatArray], n: int) -> FloatArray:
    """Put blocks side by side; a single one is not copied."""
    return blocks[0] if len(blocks) == 1 else np.hstack([np.empty((n, 0)), *blocks])
