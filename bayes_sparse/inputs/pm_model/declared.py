"""A `pm.Model` of the user's own under the names of its variables, for fit and predict."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import product
from typing import Any, ClassVar

import numpy as np
import pymc as pm
from numpy.typing import NDArray
from pymc.distributions.continuous import FlatRV, HalfFlatRV
from pytensor.compile.sharedvalue import SharedVariable

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inputs.likelihoods import normal, poisson
from bayes_sparse.inputs.pm_model import General, ReadModel, read_general, read_model
from bayes_sparse.inputs.pm_model.horseshoe import declares_horseshoe, find_horseshoe
from bayes_sparse.inputs.table import vector_of
from bayes_sparse.problem.design import weighted_sd
from bayes_sparse.problem.labelled import LabelledProblem, WeightBlock
from bayes_sparse.problem.likelihood_check import LikelihoodCheck

__all__ = ["Declared", "check_proper", "data_of", "declared_problem", "declared_settings", "set_data"]

type Points = dict[str, tuple[tuple[str, ...], FloatArray]]

_LOCATION = ("normal", "student_t", "cauchy", "logistic")  # families whose predictor is in the units of the targets
_AVERAGED = 1000  # draws that a prediction of a model without a linear predictor averages over
_SIMULATIONS = 2000  # draws a row for the sd of a likelihood whose variance has no formula here
_log = logging.getLogger("bayes_sparse")


@dataclass(frozen=True)
class Declared:
    """A `pm.Model` of your own with its sparse variable named.

    Attributes
    ----------
    model : pymc.Model
        Any model with a linear predictor; for one-step methods any whose likelihood can be differentiated twice.
    weights : str or tuple of str, optional
        Name of the Normal variable whose precisions are to be found, for one-step methods several. None: found in the
        graph.
    prior : "auto", "gaussian", "horseshoe", "laplace" or "jeffreys"
        The normal prior of the declaration, with precisions to be found or with the half-Cauchy scales of a horseshoe;
        for one-step methods a Laplace prior on each direction instead, or another one that has a file; for methods on
        the L1 path Laplace priors of one common scale, which is integrated out. ``"auto"`` for a horseshoe where there
        is one, else for precisions.
    hyper : (float, float), optional
        Shape and rate of the Gamma prior on precisions that evidence methods take; None for a flat one.
    """

    model: pm.Model = field(metadata={"setting": False})
    weights: str | tuple[str, ...] | None = field(default=None, metadata={"setting": False})
    prior: str = "auto"
    hyper: tuple[float, float] | None = None

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
        if self.prior == "auto":
            weights = _single(self.weights)
            found = not isinstance(weights, tuple) and declares_horseshoe(self.model, weights)
            object.__setattr__(self, "prior", "horseshoe" if found else "gaussian")

    @property
    def default_method(self) -> str:
        """What fits the prior."""
        return {"jeffreys": "reweighted", "horseshoe": "global_local"}.get(self.prior, "sequential")


def declared_problem(
    declared: Declared, weights: Any, hyper: tuple[float, float] | None, *, any_surface: bool = False
) -> LabelledProblem:
    """What the evidence methods fit.

    With ``any_surface`` a model without a single linear predictor is read as what it is: a likelihood of its weights.
    """
    read = _read(declared, weights, any_surface)
    if isinstance(read, ReadModel):
        _check_curved(read)
    if declared.prior == "horseshoe":
        return _with_horseshoe(_labelled(declared, read), declared.model)
    if declared.prior != "jeffreys":
        _say_what_replaces_the_hyper_prior(declared.model, read, hyper)
    return _labelled(declared, read)


def _labelled(declared: Declared, read: ReadModel | General) -> LabelledProblem:
    """The problem under the user's names."""
    obs_dim = read.obs_dims[0] if read.obs_dims else f"{read.observed}_dim_0"
    problem = read.problem if isinstance(read, ReadModel) else None
    surface = read.surface if isinstance(read, General) else None
    y = read.problem.y if isinstance(read, ReadModel) else read.y
    return LabelledProblem(
        search=problem,
        other=surface,
        y=y,
        sparse=read.sparse,
        fixed=read.fixed,
        names=[name for block in read.sparse for name in _names(block, alone=len(read.sparse) == 1)],
        observed=read.observed,
        obs_dim=obs_dim,
        obs=read.obs_coords.get(obs_dim, np.arange(len(y))),
        unpack=read.unpack,
        settings={
            "model": "declared",
            "likelihood": {"name": read.describe},
            "weights": _single(declared.weights),
            "linear": problem is not None,
        },
        hyper_points=lambda precision: _hyper_points(read, precision),
        scale_free=read.describe not in _LOCATION,
        check=partial(_check, read) if isinstance(read, ReadModel) else None,
    )


def _with_horseshoe(labelled: LabelledProblem, model: pm.Model) -> LabelledProblem:
    """The scales and the slab of the user's declaration, for its columns as they are."""
    if len(labelled.sparse) != 1:
        raise ValueError("By evidence a model has one horseshoe, of one variable; method='nuts' samples several.")
    [block] = labelled.sparse
    found, problem = find_horseshoe(model, block.name), labelled.problem
    for name, value in found.held.items():
        _say_once(f"{name} is held at its prior median, {value:.4g}: by evidence the slab is known.")
    unit = 1.0 if labelled.scale_free else weighted_sd(problem.y - problem.offset, problem.weights) or 1.0

    def points(precision: FloatArray) -> Points:
        values = found.points(precision.reshape(block.shape))
        return {name: (_dims(block) if name == found.local else (), value) for name, value in values.items()}

    return replace(
        labelled,
        search=replace(problem, unit=unit),
        tau0=found.tau0,
        slab=found.floor**-0.5 / unit if found.floor else None,
        hyper_points=points,
    )


def _check(read: ReadModel, eta: FloatArray, theta: FloatArray, used: float) -> LikelihoodCheck | None:
    """What the named likelihood says that the user's is, whatever its link."""
    problem = read.problem
    if problem.normal:
        return normal().check(problem.y, eta, used, problem.noise(theta))
    if read.describe == "poisson" and read.mean is not None:
        return poisson().check(problem.y, np.log(read.mean(eta, theta)), used)
    return None


def _check_curved(read: ReadModel) -> None:
    """Refuse a likelihood made of straight lines: its mode has no curvature for a normal posterior to take."""
    problem = read.problem
    if problem.normal:
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
    return {"model": "declared", "weights": _single(declared.weights)}


def _single(weights: str | tuple[str, ...] | None) -> str | tuple[str, ...] | None:
    return weights[0] if isinstance(weights, tuple) and len(weights) == 1 else weights


def _read(declared: Declared, weights: Any, any_surface: bool) -> ReadModel | General:
    """Read a model, a first time without the observation weights to know how many there must be."""
    read = _read_with(declared, None, any_surface)
    if weights is None:
        return read
    n = read.problem.design.n if isinstance(read, ReadModel) else len(read.y)
    return _read_with(declared, vector_of(np.asarray(weights), n, "weights", positive=True), any_surface)


def _read_with(declared: Declared, rows: FloatArray | None, any_surface: bool) -> ReadModel | General:
    """Read a model as one with a linear predictor if it is, else, where that serves, as any likelihood."""
    names = (declared.weights,) if isinstance(declared.weights, str) else declared.weights
    if names is not None and len(names) > 1:
        if not any_surface:
            raise ValueError("This method finds the precisions of one variable; method='revm' takes several.")
        return read_general(declared.model, names, observation_weights=rows)
    try:
        return read_model(declared.model, names[0] if names else None, observation_weights=rows)
    except ValueError:
        if not any_surface:
            raise
    return read_general(declared.model, names, observation_weights=rows)


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


def _dims(block: WeightBlock) -> tuple[str, ...]:
    return block.dims or tuple(f"{block.name}_dim_{i}" for i in range(len(block.shape)))


def _hyper_points(read: ReadModel | General, precision: FloatArray) -> Points:
    """Point values of the variables behind the sparse priors, where they follow from the precisions."""
    points: Points = {}
    for block in read.sparse:
        values = read.hyper(block.name, precision[block.columns].reshape(block.shape))
        points |= {name: (_dims(block), value) for name, value in (values or {}).items()}
    return points


def _names(block: WeightBlock, *, alone: bool) -> list[str]:
    """A name a weight: its label, or its place in the variable."""
    dims = block.dims or ("",) * len(block.shape)
    labels = [block.coords.get(dim, range(size)) for dim, size in zip(dims, block.shape, strict=True)]
    if alone and len(block.shape) == 1 and block.dims and block.dims[0] in block.coords:
        return [str(label) for label in labels[0]]
    return [f"{block.name}[{', '.join(map(str, place))}]" for place in product(*labels)]


def _say_what_replaces_the_hyper_prior(
    model: pm.Model, read: ReadModel | General, hyper: tuple[float, float] | None
) -> None:
    a, b = hyper or (0.0, 0.0)
    for name, hypers in read.precision.items():
        if hypers:
            _say_once(
                f"The evidence is maximised over the prior precisions of {name} under a "
                f"{f'Gamma({a:g}, {b:g})' if a or b else 'flat'} prior; the prior declared on {', '.join(hypers)} is "
                f"for NUTS.{_why_no_horseshoe(model, name) if len(hypers) > 1 else ''}"
            )


def _why_no_horseshoe(model: pm.Model, weights: str) -> str:
    """The sentence for scales that look like one."""
    try:
        find_horseshoe(model, weights)
    except ValueError as reason:
        return f" {reason}"
    return " Left to itself the method is 'global_local', which fits the horseshoe."


@cache
def _say_once(message: str) -> None:
    _log.info(message)


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
