"""Which Gaussian variables of a model are sparse, and in what groups; all others keep the prior they declare."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pymc as pm
from pymc.distributions.continuous import FlatRV

from bayes_sparse.common.registry import did_you_mean
from bayes_sparse.common.types import FloatArray, IntArray
from bayes_sparse.inputs.pm_model.graph import reached
from bayes_sparse.inputs.pm_model.latents import Latent
from bayes_sparse.inputs.pm_model.sparse_prior import Scales, scales_of
from bayes_sparse.inputs.pm_model.variables import free_variables
from bayes_sparse.problem.labelled import WeightBlock

__all__ = ["NOTHING_ASKED", "Asked", "Role", "blocks_of", "hyper_values", "roles_of"]


@dataclass(frozen=True)
class Asked:
    """What a user says is sparse.

    Attributes
    ----------
    sparse : tuple of str
        Variables whose precisions are to be found, one a weight.
    grouped : tuple of str
        Those of them with one precision for all their weights.
    declared : bool
        No precision is free: hyper-variables are found under the priors that the model declares for them.
    """

    sparse: tuple[str, ...] = ()
    grouped: tuple[str, ...] = ()
    declared: bool = False

    @property
    def named(self) -> tuple[str, ...]:
        """All that were named."""
        return (*self.sparse, *self.grouped)


NOTHING_ASKED = Asked()
_LISTED = 8  # names in a refusal


@dataclass(frozen=True, eq=False)
class Role:
    """A Gaussian variable and what is to be found of its prior.

    Attributes
    ----------
    latent : Latent
        The variable.
    scales : Scales
        How its prior sd varies.
    labels : int array, optional
        Of its weights, by the precisions to be found; None where none is.
    listed : bool
        Whether its weights are among the basis functions of the fit.
    """

    latent: Latent
    scales: Scales
    labels: IntArray | None
    listed: bool

    @property
    def free(self) -> bool:
        """Whether its precisions are to be found by evidence."""
        return self.labels is not None

    @property
    def unit(self) -> FloatArray:
        """What each column is multiplied by: the prior sd of a weight over that of the first in its group."""
        return self.scales.relative if self.free else np.ones(self.latent.shape)


def roles_of(model: pm.Model, latents: Sequence[Latent], constant: set[str], asked: Asked) -> list[Role]:
    """Share out the Gaussian variables, those with weights to be listed first.

    Parameters
    ----------
    model : pm.Model
        The user's.
    latents : list of Latent
        Its Gaussian variables.
    constant : set of str
        Those that only add the same to every observation.
    asked : Asked
        What was said.
    """
    scales = {latent.name: scales_of(model, latent.sd, latent.shape) for latent in latents}
    named = _named(model, latents, asked)
    roles = []
    for latent in latents:
        own = scales[latent.name].mixed(asked.declared) if latent.heavy else scales[latent.name]
        labels: IntArray | None = None
        if asked.declared:
            labels = np.arange(latent.size).reshape(latent.shape) if latent.heavy else None
        elif latent.name in named:
            labels = np.arange(latent.size).reshape(latent.shape)
            labels = np.zeros_like(labels) if named[latent.name] else labels
        elif latent.heavy:
            labels = np.arange(latent.size).reshape(latent.shape)
        elif own.labels is not None and not (named and _shared(own.labels)):  # else effects of groups
            labels = own.labels
        elif not latent.shape and latent.name not in constant and _alone(model, latents, latent, own):
            labels = np.zeros((), dtype=np.intp)
        roles.append(Role(latent, own, labels, labels is not None))
    if not any(role.listed for role in roles):
        roles = _shrunk(roles, constant)
    return sorted(roles, key=lambda role: not role.listed)


def _shared(labels: IntArray) -> bool:
    """Whether some weights share a scale: where the sparse ones are named, these are effects with a few scales."""
    return len(np.unique(labels)) < labels.size


def _named(model: pm.Model, latents: Sequence[Latent], asked: Asked) -> dict[str, bool]:
    """The variables asked for, by the names that they have here, and whether each is one group."""
    known = {name: latent.name for latent in latents for name in (latent.rv.name, latent.name)}
    for name in asked.named:
        if name not in known:
            raise ValueError(
                f"sparse={name!r} does not name a variable with a Normal prior in a linear predictor; "
                f"{_those(latents)}.{did_you_mean(name, list(known))}"
            )
    return {known[name]: False for name in asked.sparse} | {known[name]: True for name in asked.grouped}


def _alone(model: pm.Model, latents: Sequence[Latent], latent: Latent, scales: Scales) -> bool:
    """Whether a single slope has a scale that nothing else has."""
    rvs = set(free_variables(model))
    others = [other.sd for other in latents if other is not latent]
    return bool(scales.hypers) and not reached(others, rvs) & set(scales.hypers)


def _shrunk(roles: list[Role], constant: set[str]) -> list[Role]:
    """Where nothing is sparse: vectors whose common scale is to be found are listed, and kept."""
    if not any(role.scales.hypers and role.latent.shape for role in roles):
        latents = [role.latent for role in roles]
        if constant.issuperset(latent.name for latent in latents):
            raise ValueError(
                f"No sparse prior was found, for nothing but an intercept ({_names(latents)}) has a Normal prior: "
                "declare the weights as pm.Normal('w', 0, s, shape=...) with a prior on s."
            )
        raise ValueError(
            f"No sparse prior was found, for every prior scale is known; {_those(latents)}: name those whose "
            f"precisions are to be found, as in bayes_sparse.fit(model, sparse=[{_example(latents, constant).name!r}])."
        )
    return [
        Role(role.latent, role.scales, None, bool(role.scales.hypers) and bool(role.latent.shape)) for role in roles
    ]


def _those(latents: Sequence[Latent]) -> str:
    names = _names(latent for latent in latents if not isinstance(latent.rv.owner.op, FlatRV))
    return f"those with a Normal prior are {names}" if names else "the model has none"


def _names(latents: Iterable[Latent]) -> str:
    names = [repr(latent.name) for latent in latents]
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return f"{', '.join(names[:_LISTED])}{more}"


def _example(latents: Sequence[Latent], constant: set[str]) -> Latent:
    """The user's own variable that is most likely meant: a vector, or a slope."""
    return max(latents, key=lambda latent: (latent.size > 1, latent.name not in constant))


def blocks_of(roles: Sequence[Role]) -> tuple[WeightBlock, ...]:
    """Columns for every value of these variables, one after the other."""
    blocks, start = [], 0
    for latent in (role.latent for role in roles):
        columns = slice(start, start := start + latent.size)
        blocks.append(WeightBlock(latent.name, latent.shape, latent.dims, latent.coords, columns, latent.mean))
    return tuple(blocks)


def hyper_values(roles: Sequence[Role], name: str, precision: FloatArray) -> dict[str, FloatArray]:
    """Hyper-variables that give the named weights these precisions; infinite ones where a weight is pruned."""
    role = next(role for role in roles if role.latent.name == name)
    with np.errstate(divide="ignore"):
        sd = np.asarray(precision, dtype=float).reshape(role.latent.shape) ** -0.5
    return {str(rv.name): value for rv, value in role.scales.inverted(sd).items()}
