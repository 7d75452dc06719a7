"""A `pm.Model` of the user's own under the names of its variables, for fit and predict."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import pymc as pm
from numpy.typing import NDArray
from pymc.distributions.continuous import FlatRV, HalfFlatRV
from pytensor.compile.sharedvalue import SharedVariable

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inputs.pm_model import General, ReadModel, read_general, read_model
from bayes_sparse.inputs.pm_model.held import HeldModel, MovingCoefficients
from bayes_sparse.inputs.pm_model.horseshoe import find_horseshoe
from bayes_sparse.inputs.pm_model.normal_priors import normal_prior
from bayes_sparse.inputs.pm_model.roles import Asked
from bayes_sparse.inputs.pm_model.variables import free_variables
from bayes_sparse.inputs.table import vector_of

__all__ = [
    "MOST_HELD",
    "Declared",
    "check_curved",
    "check_proper",
    "data_of",
    "declared_settings",
    "deterministics",
    "read_declared",
    "read_with_weights",
    "set_data",
]

_STRAIGHT = ("laplace", "asymmetriclaplace")  # families that may have no curvature
MOST_HELD = 6  # parameters of columns that are looked for between fits
_log = logging.getLogger("bayes_sparse")


@dataclass(frozen=True)
class Declared:
    """A `pm.Model` of your own, and what in it is sparse.

    Attributes
    ----------
    model : pymc.Model
        Any model with a linear predictor; for one-step methods any whose likelihood can be differentiated twice.
    sparse : str or sequence of str, optional
        Normal variables whose precisions are to be found, one per weight, whatever their prior sd. Those whose prior sd
        varies with the element are sparse without being named.
    grouped : str or sequence of str, optional
        Normal variables with one precision to be found for all of their weights, which are kept or pruned together.
    prior : "auto", "gaussian", "horseshoe", "laplace" or "jeffreys"
        The normal prior of the declaration, with precisions to be found or with the half-Cauchy scales of a horseshoe;
        for one-step methods a Laplace prior on each direction instead, or another one that has a file; for methods on
        the L1 path Laplace priors of one common scale, which is integrated out. ``"auto"`` for a horseshoe where there
        is one, else for precisions.
    hyper : (float, float), optional
        Shape and rate of the Gamma prior on precisions that evidence methods take; None for a flat one.
    scales : "flat" or "declared"
        "declared" (or ``hyper="declared"``) for the priors that the model declares on its scales: the scales are found
        under these, and nothing is pruned.
    """

    model: pm.Model = field(metadata={"setting": False})
    sparse: str | Sequence[str] | None = None
    grouped: str | Sequence[str] | None = None
    prior: str = "auto"
    hyper: tuple[float, float] | None = None
    scales: str = "flat"

    coordinates: ClassVar[str] = "weights"
    expansion: ClassVar[None] = None
    likelihood: ClassVar[str | None] = None
    default_hyper: ClassVar[tuple[float, float] | None] = None
    proper_hyper: ClassVar[tuple[float, float] | None] = (0.5, 0.005)
    slab: ClassVar[None] = None
    default_slab: ClassVar[float | None] = None
    kernel_slab: ClassVar[float | None] = None
    proper_slab: ClassVar[float | None] = None

    def __post_init__(self) -> None:
        asked: Any = self.hyper
        if asked == "declared":
            object.__setattr__(self, "scales", "declared")
            object.__setattr__(self, "hyper", None)
        for name in ("sparse", "grouped"):
            object.__setattr__(self, name, _names_in(getattr(self, name)))
        if self.prior == "auto":
            object.__setattr__(self, "prior", "horseshoe" if _declares_horseshoe(self) else "gaussian")

    @property
    def asked(self) -> Asked:
        """What was said of the model."""
        return Asked(
            tuple(self.sparse or ()), tuple(self.grouped or ()), self.scales == "declared" and self.prior != "horseshoe"
        )

    @property
    def stored(self) -> dict[str, Any]:
        """The same as a tree stores it."""
        asked = self.asked
        return {"sparse": asked.sparse, "grouped": asked.grouped, "hyper_declared": asked.declared}

    @property
    def default_method(self) -> str:
        """What fits the prior."""
        pruned = "mackay" if self.asked.declared and self._has_heavy_tails else "sequential"
        return {"jeffreys": "reweighted", "horseshoe": "global_local"}.get(self.prior, pruned)

    @property
    def _has_heavy_tails(self) -> bool:
        priors = [normal_prior(self.model, rv, self.asked.named) for rv in free_variables(self.model)]
        return any(prior.heavy for prior in priors if prior is not None)


def read_declared(declared: Declared, *, any_surface: bool = False) -> tuple[ReadModel | General, tuple[str, ...]]:
    """The model as it is read, and the variables that its predictors depend on, which are held where they begin."""
    held: tuple[str, ...] = ()
    try:
        read = read_with_weights(declared, None, any_surface)
    except MovingCoefficients as moving:
        model = HeldModel(declared.model, moving.names)
        if any_surface or len(model.bounds) > MOST_HELD:
            raise ValueError(str(moving)) from None
        read, held = read_with_weights(replace(declared, model=model.done), None, any_surface), model.names
    if isinstance(read, ReadModel) and read.describe in _STRAIGHT:  # of others it would only wait for a compiler
        check_curved(read)
    return read, held


def check_curved(read: ReadModel) -> None:
    """Refuse a likelihood made of straight lines: its mode has no curvature for a normal posterior to take."""
    problem = read.problem
    if problem.normal or problem.predictors > 1:
        return
    seen = [problem.derivatives(problem.offset + step, problem.theta)[2] for step in (0.0, 0.37)]
    if not any(second.any() for second in seen):
        raise ValueError(
            f"The log-likelihood of {read.observed!r} ({read.describe}) has no curvature along its predictor, which "
            "every evidence method takes its posterior from: a Student-t likelihood is a smooth neighbour, and "
            "method='nuts' samples the model as it stands."
        )


def declared_settings(declared: Declared) -> dict[str, Any]:
    """What prediction needs to know of a model that was sampled."""
    return {"model": "declared", **declared.stored, "deterministics": deterministics(declared.model)}


def deterministics(model: pm.Model) -> list[str]:
    """Their names."""
    return [str(variable.name) for variable in model.deterministics]


def _names_in(names: str | Sequence[str] | None) -> tuple[str, ...] | None:
    return (names,) if isinstance(names, str) else None if names is None else tuple(names)


def _declares_horseshoe(declared: Declared) -> bool:
    """Whether the one sparse variable of a model has such a prior."""
    if declared.sparse or declared.grouped:
        return False
    try:
        read = read_model(declared.model)
        [role] = [role for role in read.roles if role.free]
        return find_horseshoe(declared.model, role, read.nuisance).tau0 > 0
    except ValueError:  # several sparse variables are one too
        return False


def read_with_weights(declared: Declared, weights: Any, any_surface: bool) -> ReadModel | General:
    """Read a model, a first time without the observation weights to know how many there must be."""
    read = _read_with(declared, None, any_surface)
    if weights is None:
        return read
    n = len(read.problem.y if isinstance(read, ReadModel) else read.y)
    return _read_with(declared, vector_of(np.asarray(weights), n, "weights", positive=True), any_surface)


def _read_with(declared: Declared, rows: FloatArray | None, any_surface: bool) -> ReadModel | General:
    """Read a model as one with a linear predictor if it is, else, where that serves, as any likelihood."""
    try:
        read = read_model(declared.model, declared.asked, observation_weights=rows)
    except ValueError:
        if not any_surface:
            raise
    else:
        if not (any_surface and read.problem.predictors > 1):
            return read
    return read_general(declared.model, declared.asked, observation_weights=rows)


def check_proper(declared: Declared) -> None:
    """Refuse a model whose sparse prior is flat: its posterior is improper."""
    flat = [rv.name for rv in declared.model.free_RVs if isinstance(rv.owner.op, FlatRV | HalfFlatRV)]
    try:
        read = _read_with(declared, None, True)
    except ValueError:  # nothing in it is known to be sparse
        return
    precisions = {name for names in read.precision.values() for name in names}
    improper = sorted(precisions & set(flat))
    if improper:
        raise ValueError(
            f"The prior on {improper[0]!r} is flat, so the posterior is improper and NUTS on it means nothing; "
            "declare a proper neighbour such as pm.Gamma(0.5, 0.005)."
        )


def data_of(model: pm.Model) -> dict[str, Any]:
    """The model's `pm.Data` by name."""
    return {str(v.name): v for v in model.data_vars if isinstance(v, SharedVariable)}


def set_data(model: pm.Model, data: Any, coords: dict[str, NDArray[Any]] | None = None) -> None:
    """Set new values for the model's `pm.Data`, by name."""
    if data is None:
        return
    held = data_of(model)
    if not isinstance(data, dict):
        raise TypeError(
            "For a pm.Model of your own, data are new values for its pm.Data by name, {'X': ...}, or None; "
            f"this model has {', '.join(held) or 'no pm.Data'}."
        )
    unknown = [name for name in data if name not in held]
    if unknown:
        raise ValueError(f"The model has no pm.Data {unknown[0]!r}; it has {', '.join(held) or 'none'}.")
    with model:
        pm.set_data(data, coords=coords)
