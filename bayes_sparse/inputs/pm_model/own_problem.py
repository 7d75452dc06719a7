"""A `pm.Model` of the user's own as what the evidence methods fit, under the names of its variables."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import product
from typing import Any

import numpy as np
import pymc as pm
from numpy.typing import NDArray

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inputs.likelihoods import normal, poisson
from bayes_sparse.inputs.pm_model import General, ReadModel, read_general, read_model
from bayes_sparse.inputs.pm_model.declared import (
    MOST_HELD,
    Declared,
    check_curved,
    data_of,
    deterministics,
    read_with_weights,
)
from bayes_sparse.inputs.pm_model.give_back import FittedAs, GiveBack, dims_in_tree
from bayes_sparse.inputs.pm_model.held import HeldModel, MovingCoefficients
from bayes_sparse.inputs.pm_model.horseshoe import find_horseshoe
from bayes_sparse.inputs.pm_model.roles import Asked
from bayes_sparse.inputs.pm_model.scale_mixtures import heavy_roles, held_behind, mixing_of
from bayes_sparse.problem.design import weighted_sd
from bayes_sparse.problem.held import Held
from bayes_sparse.problem.labelled import LabelledProblem, Observations, WeightBlock
from bayes_sparse.problem.likelihood_check import LikelihoodCheck
from bayes_sparse.problem.several_predictors import SeveralProblem

__all__ = ["declared_problem", "given_back_by", "weight_names"]

type Points = dict[str, tuple[tuple[str, ...], FloatArray]]

_LOCATION = ("normal", "student_t", "cauchy", "logistic")  # families whose predictor is in the units of the targets
_log = logging.getLogger("bayes_sparse")


def declared_problem(
    declared: Declared, weights: Any, hyper: tuple[float, float] | None, *, any_surface: bool = False
) -> LabelledProblem:
    """What the evidence methods fit.

    With ``any_surface`` a model without a single linear predictor is read as what it is: a likelihood of its weights.
    """
    try:
        return _linear_problem(declared, weights, hyper, any_surface)
    except MovingCoefficients as moving:
        held = HeldModel(declared.model, moving.names)
        if any_surface or len(held.bounds) > MOST_HELD:
            raise ValueError(str(moving)) from None
    return _held_problem(declared, weights, hyper, held)


def _held_problem(
    declared: Declared, weights: Any, hyper: tuple[float, float] | None, model: HeldModel
) -> LabelledProblem:
    """A model that is linear in its weights at given values of some variables, and what it takes to move these."""
    inner = replace(declared, model=model.done)

    def at(x: FloatArray, factor: FloatArray | None = None) -> LabelledProblem:
        model.move(x)
        labelled = _linear_problem(inner, weights, hyper, any_surface=False)
        assert labelled.constant_data is not None
        data = {name: value for name, value in labelled.constant_data.items() if name not in model.names}
        values = {name: value.tolist() for name, value in model.values().items()}
        return replace(
            labelled,
            constant_data=data,
            settings=labelled.settings | {"held": values},
            users=_HeldToo(labelled.users, model, np.asarray(x), factor),
            held=Held(model.names, np.asarray(x), model.bounds, model.log_prior, at),
        )

    assert model.x is not None
    return at(model.x)


@dataclass(frozen=True, eq=False)
class _HeldToo:
    """Every variable of a model, those that are held too: drawn about where they are, all else at that point."""

    rest: Any
    held: HeldModel
    x: FloatArray
    factor: FloatArray | None

    def __call__(self, w: FloatArray, theta: FloatArray, precision: FloatArray) -> dict[str, Any]:
        away: FloatArray = np.zeros(())
        if self.factor is not None:
            low, high = self.held.bounds.T
            z = np.random.default_rng(0).standard_normal((len(w), len(self.x)))
            away = np.clip(self.x + z @ self.factor.T, low, high) - self.x
        rows = [self.held.at(row) for row in np.broadcast_to(self.x + away, (len(w), len(self.x)))]
        known = {}
        for name in self.held.names:
            values = np.stack([row[name] for row in rows])
            known[name] = (dims_in_tree(self.held.model, name, values.ndim - 1), values)
        return self.rest(w, theta, precision) | known  # type: ignore[no-any-return]


def _linear_problem(
    declared: Declared, weights: Any, hyper: tuple[float, float] | None, any_surface: bool
) -> LabelledProblem:
    read = read_with_weights(declared, weights, any_surface)
    if isinstance(read, ReadModel):
        check_curved(read)
    labelled = _labelled(declared, read)
    if declared.prior == "horseshoe":
        assert isinstance(read, ReadModel)
        labelled = _with_horseshoe(labelled, declared.model, read)
    elif declared.prior != "jeffreys" and declared.asked.declared:
        labelled = replace(labelled, mixing=mixing_of(declared.model, read.roles))
        _say_what_is_held(declared.model, read)
    elif declared.prior != "jeffreys":
        _say_what_replaces_the_hyper_prior(declared.model, read, hyper)
    return replace(labelled, users=GiveBack(declared.model, labelled, _fitted_as(read)))


def _labelled(declared: Declared, read: ReadModel | General) -> LabelledProblem:
    """The problem under the user's names."""
    obs_dim = read.obs_dims[0] if read.obs_dims else f"{read.observed}_dim_0"
    problem = read.problem if isinstance(read, ReadModel) else None
    surface = read.surface if isinstance(read, General) else None
    y = read.y
    return LabelledProblem(
        search=problem,
        other=surface,
        y=y,
        sparse=read.sparse,
        fixed=read.fixed,
        names=[name for block in read.sparse for name in weight_names(block, alone=len(read.sparse) == 1)],
        observed=read.observed,
        obs_dim=obs_dim,
        obs=read.obs_coords.get(obs_dim, np.arange(len(y))),
        every=_observations(read) if isinstance(read, ReadModel) else (),
        unpack=read.unpack,
        settings={
            "model": "declared",
            "likelihood": {"name": read.describe},
            **declared.stored,
            "linear": problem is not None,
            "deterministics": deterministics(declared.model),
        },
        hyper_points=lambda precision: _hyper_points(declared.model, read, precision),
        scale_free=read.describe not in _LOCATION,
        classes=read.describe in ("bernoulli", "categorical"),
        check=partial(_check, read) if isinstance(read, ReadModel) else None,
        scale=_units(read),
        apart=any(role.latent.is_apart for role in read.roles),
        constant_data=_data_in_tree(declared.model),
        coords={dim: np.asarray(labels) for dim, labels in declared.model.coords.items() if labels is not None},
    )


def _observations(read: ReadModel) -> tuple[Observations, ...]:
    """Every observed variable, and rows of potentials."""
    made = []
    for part in read.parts:
        told = part.output.y is not None
        values = np.zeros(part.n) if part.output.y is None else part.output.y
        dims = part.output.dims or tuple(f"{part.output.name}_dim_{i}" for i in range(values.ndim))
        labels = {d: part.output.coords.get(d, np.arange(m)) for d, m in zip(dims, values.shape, strict=True)}
        together = part.softmax and values.ndim == 2
        made.append(Observations(part.output.name, dims, labels, values, together, told))
    return tuple(made)


def given_back_by(model: pm.Model, asked: Asked, *, general: bool) -> GiveBack:
    """What turns columns of a fit into values of every variable of a user's model."""
    declared = Declared(model, asked.sparse, asked.grouped, "gaussian", None, "declared" if asked.declared else "flat")
    read = read_general(model, asked) if general else read_model(model, asked)
    return GiveBack(model, _labelled(declared, read), _fitted_as(read))


def _fitted_as(read: ReadModel | General) -> dict[str, FittedAs]:
    """The variables that were fitted as something else of them."""
    latents = [role.latent for role in read.roles]
    return {
        latent.name: FittedAs(latent.rv, latent.factor, latent.make)
        for latent in latents
        if latent.factor is not None or latent.make is not None
    }


def _units(read: ReadModel | General) -> FloatArray | None:
    """What the listed columns were multiplied by, turned over: a group's weights need not have the same prior sd."""
    units = [role.unit.ravel() for role in read.roles if role.listed]
    every = np.concatenate([np.ones(0), *units])
    return None if (every == 1).all() else 1 / every


def _data_in_tree(model: pm.Model) -> dict[str, tuple[tuple[str, ...], NDArray[Any]]]:
    """The model's `pm.Data`, by which PyMC sees whether they have changed since; not copied."""
    values = {name: np.asarray(variable.get_value(borrow=True)) for name, variable in data_of(model).items()}
    return {name: (dims_in_tree(model, name, value.ndim), value) for name, value in values.items()}


def _with_horseshoe(labelled: LabelledProblem, model: pm.Model, read: ReadModel) -> LabelledProblem:
    """The scales and the slab of the user's declaration, for its columns as they are."""
    if len(labelled.sparse) != 1:
        names = ", ".join(repr(block.name) for block in labelled.sparse)
        raise ValueError(
            f"By evidence a model has one horseshoe, of one variable, and this one has sparse {names}: leave out "
            "`prior` and `method` for precisions instead, or use method='nuts'."
        )
    [block] = labelled.sparse
    found, problem = find_horseshoe(model, read.roles[0], read.nuisance), labelled.problem
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
    if isinstance(problem, SeveralProblem):
        return None
    if problem.normal:
        return normal().check(problem.y, eta, used, problem.noise(theta))
    if read.describe == "poisson" and read.mean is not None:
        return poisson().check(problem.y, np.log(read.mean(eta, theta)), used)
    return None


def _dims(block: WeightBlock) -> tuple[str, ...]:
    return block.dims or tuple(f"{block.name}_dim_{i}" for i in range(len(block.shape)))


def _hyper_points(model: pm.Model, read: ReadModel | General, precision: FloatArray) -> Points:
    """Point values of the variables behind the sparse priors, which follow from the precisions."""
    points: Points = {}
    for block, role in zip(read.sparse, read.roles, strict=False):
        if role.free:
            values = read.hyper(block.name, precision[block.columns].reshape(block.shape)) or {}
            points |= {name: (dims_in_tree(model, name, value.ndim), value) for name, value in values.items()}
    return points


def weight_names(block: WeightBlock, *, alone: bool) -> list[str]:
    """A name a weight: its label, or its place in the variable."""
    dims = block.dims or ("",) * len(block.shape)
    labels = [block.coords.get(dim, range(size)) for dim, size in zip(dims, block.shape, strict=True)]
    if not block.shape:
        return [block.name]
    if alone and len(block.shape) == 1 and all(isinstance(label, str) for label in labels[0]):
        return [str(label) for label in labels[0]]
    return [f"{block.name}[{', '.join(map(str, place))}]" for place in product(*labels)]


def _say_what_replaces_the_hyper_prior(
    model: pm.Model, read: ReadModel | General, hyper: tuple[float, float] | None
) -> None:
    a, b = hyper or (0.0, 0.0)
    prior = f"Gamma({a:g}, {b:g})" if a or b else "flat"
    heavy = {role.latent.name for role in heavy_roles(read.roles)}
    for name, hypers in read.precision.items():
        if name in heavy:
            _say_once(
                f"The evidence is maximised over a prior precision of each weight of {name} under a {prior} "
                "prior; the heavy-tailed prior declared is for NUTS, or for hyper='declared'."
            )
        elif hypers:
            _say_once(
                f"The evidence is maximised over the prior precisions of {name} under a {prior} prior; the prior "
                f"declared on {', '.join(hypers)} is for NUTS."
                f"{_why_no_horseshoe(model, read, name) if len(hypers) > 1 else ''}"
            )


def _say_what_is_held(model: pm.Model, read: ReadModel | General) -> None:
    for role in heavy_roles(read.roles):
        held = held_behind(model, role)
        if held:
            _say_once(f"Behind the heavy tails of {role.latent.name} {', '.join(held)} is held where PyMC starts it.")


def _why_no_horseshoe(model: pm.Model, read: ReadModel | General, weights: str) -> str:
    """The sentence for scales that look like one."""
    role = next(role for role in read.roles if role.latent.name == weights)
    try:
        find_horseshoe(model, role, read.nuisance)
    except ValueError as reason:
        return f" {reason}"
    return " Left to itself the method is 'global_local', which fits the horseshoe."


@cache
def _say_once(message: str) -> None:
    _log.info(message)
