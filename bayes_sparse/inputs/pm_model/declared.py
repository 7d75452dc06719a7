"""A `pm.Model` of the user's own under the names of its variables, for fit and predict."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any, ClassVar, Literal

import numpy as np
import pymc as pm
import xarray as xr
from numpy.typing import NDArray
from pymc.distributions.continuous import FlatRV, HalfFlatRV
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.traversal import ancestors

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inputs.pm_model import General, ReadModel, read_general, read_model
from bayes_sparse.inputs.table import vector_of
from bayes_sparse.problem.labelled import LabelledProblem, WeightBlock
from bayes_sparse.problem.quadrature import average

__all__ = ["Declared", "check_proper", "declared_problem", "declared_settings", "predict_declared", "set_data"]

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
    prior : "gaussian", "laplace" or "jeffreys"
        The normal prior of the declaration; for one-step methods a Laplace prior on each direction instead; for methods
        on the L1 path Laplace priors of one common scale, which is integrated out.
    """

    model: pm.Model
    weights: str | tuple[str, ...] | None = None
    prior: Literal["gaussian", "laplace", "jeffreys"] = "gaussian"

    coordinates: ClassVar[str] = "weights"
    expansion: ClassVar[str] = "ridge"
    proper_hyper: ClassVar[tuple[float, float]] = (0.5, 0.005)

    def __post_init__(self) -> None:
        known = ("gaussian", "laplace", "jeffreys")
        if self.prior not in known:
            raise ValueError(f"There is no prior {self.prior!r} for a model of your own; there are {', '.join(known)}.")

    @property
    def default_method(self) -> str:
        """What fits the prior."""
        return "reweighted" if self.prior == "jeffreys" else "sequential"


def declared_problem(
    declared: Declared, data: Any, weights: Any, hyper: tuple[float, float] | None, *, any_surface: bool = False
) -> LabelledProblem:
    """What the evidence methods fit; ``data`` are new values for the model's `pm.Data`, which stay set.

    With ``any_surface`` a model without a single linear predictor is read as what it is: a likelihood of its weights.
    """
    set_data(declared.model, data)
    read = _read(declared, weights, any_surface)
    if declared.prior != "jeffreys":
        _say_what_replaces_the_hyper_prior(read, hyper)
    obs_dim = read.obs_dims[0] if read.obs_dims else f"{read.observed}_dim_0"
    problem = read.problem if isinstance(read, ReadModel) else None
    surface = read.surface if isinstance(read, General) else None
    y = read.problem.y if isinstance(read, ReadModel) else read.y
    return LabelledProblem(
        linear=problem,
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
    precisions = {name for names in _read_with(declared, None, True).precision.values() for name in names}
    improper = sorted(precisions & set(flat))
    if improper:
        raise ValueError(
            f"The prior on {improper[0]!r} is flat, so the posterior is improper and NUTS on it means nothing; "
            "declare a proper neighbour such as pm.Gamma(0.5, 0.005)."
        )


def predict_declared(tree: xr.DataTree, model: pm.Model | None, data: Any, offset: Any, random_seed: int) -> xr.Dataset:
    """Predict from a fit of the user's own model, at the rows it holds or at new values of its `pm.Data`."""
    if model is None:
        raise ValueError(
            "This tree came from a pm.Model of your own: pass that model too, predict(tree, X, model=model)."
        )
    if offset is not None:
        raise ValueError("A pm.Model of your own has its offset inside; set it through its pm.Data.")
    settings = json.loads(tree.attrs["bayes_sparse"])
    with _new_values(model, data) as n:
        if not settings.get("linear", True):
            return _from_forecast(tree, model, settings["weights"], random_seed)
        if "evidence" not in tree.children:
            return _from_draws(tree, model, random_seed)
        read = read_model(model, settings["weights"], y=None if n is None else np.zeros(n))
        return _from_moments(tree["evidence"].to_dataset(), read, random_seed)


def _from_moments(evidence: xr.Dataset, read: ReadModel, random_seed: int) -> xr.Dataset:
    problem, theta = read.problem, np.atleast_1d(evidence["theta"].to_numpy())
    column = evidence["column"].to_numpy()
    prior = np.concatenate([block.mean.ravel() for block in (*read.sparse, *read.fixed)])
    Phi = problem.design.columns(column)
    eta = problem.offset + Phi @ (evidence["coordinate_mean"].to_numpy() - prior[column])
    spread = Phi @ evidence["covariance_factor"].to_numpy()
    variance = np.einsum("ij,ij->i", spread, spread)
    dim = read.obs_dims[0] if read.obs_dims else f"{read.observed}_dim_0"
    rows = _rows(read, dim, len(eta))
    if read.describe == "bernoulli" and read.mean is not None:
        one, _ = average(lambda e: (_by_node(read.mean, e, theta), np.zeros_like(e)), eta, variance)
        return _classes(np.stack([1 - one, one], axis=1), dim, rows)
    if problem.normal:
        sigma = np.exp(theta[0]) if theta.size else problem.sigma
        return _moments(eta, np.sqrt(variance + sigma**2), dim, rows)
    mean, sd = _simulated(read, eta, variance, theta, random_seed)
    if read.mean is not None:
        mean, _ = average(lambda e: (_by_node(read.mean, e, theta), np.zeros_like(e)), eta, variance)
    return _moments(mean, sd, dim, rows)


def _by_node(mean: Any, eta: FloatArray, theta: FloatArray) -> FloatArray:
    return np.stack([mean(eta[:, j], theta) for j in range(eta.shape[1])], axis=1)


def _simulated(
    read: ReadModel, eta: FloatArray, variance: FloatArray, theta: FloatArray, random_seed: int
) -> tuple[FloatArray, FloatArray]:
    """Mean and sd of new observations drawn from the user's own distribution."""
    rng = np.random.default_rng(random_seed)
    total, square = np.zeros(len(eta)), np.zeros(len(eta))
    first: FloatArray | None = None
    for _ in range(_SIMULATIONS):
        y = read.simulate(eta + np.sqrt(variance) * rng.standard_normal(len(eta)), theta, rng)
        first = y.astype(float) if first is None else first
        total += y - first
        square += (y - first) ** 2
    assert first is not None
    mean = total / _SIMULATIONS
    return first + mean, np.sqrt(np.maximum(square / _SIMULATIONS - mean**2, 0.0))


def _from_draws(tree: xr.DataTree, model: pm.Model, random_seed: int) -> xr.Dataset:
    with model:
        drawn = pm.sample_posterior_predictive(tree, random_seed=random_seed, progressbar=False)
    y = next(iter(drawn["posterior_predictive"].to_dataset().data_vars.values())).stack(sample=("chain", "draw"))
    dim = str(y.dims[0])
    rows, mean = y[dim].to_numpy() if dim in y.coords else np.arange(y.sizes[dim]), y.mean("sample").to_numpy()
    observed = model.observed_RVs[0]
    if observed.owner.op.name == "bernoulli":
        return _classes(np.stack([1 - mean, mean], axis=1), dim, rows)
    return _moments(mean, y.std("sample").to_numpy(), dim, rows)


def _from_forecast(tree: xr.DataTree, model: pm.Model, weights: Any, random_seed: int) -> xr.Dataset:
    """Average a model without a linear predictor over the draws of a fit."""
    if "posterior" not in tree.children:
        raise ValueError("Predictions of a model without a linear predictor average over draws: fit with draws > 0.")
    read = read_general(model, tuple(weights) if isinstance(weights, list) else weights)
    forecast, rng = read.forecast, np.random.default_rng(random_seed)
    posterior = tree["posterior"].to_dataset().stack(sample=("chain", "draw"))
    some = np.unique(np.linspace(0, posterior.sizes["sample"] - 1, _AVERAGED).astype(int))
    pruned = {block.name: np.broadcast_to(block.mean, (len(some), *block.shape)) for block in read.sparse}
    draws = [
        posterior[name].transpose("sample", ...).to_numpy()[some] if name in posterior else pruned[name]
        for name in forecast.names
    ]
    dim = read.obs_dims[0] if read.obs_dims else f"{read.observed}_dim_0"
    if forecast.family == "categorical":
        p = np.mean([forecast.probabilities(values) for values in zip(*draws, strict=True)], axis=0)
        return _classes(p, dim, _rows(read, dim, len(p)))
    if forecast.family == "bernoulli":
        one = np.mean([forecast.mean(values) for values in zip(*draws, strict=True)], axis=0)
        return _classes(np.stack([1 - one, one], axis=1), dim, _rows(read, dim, len(one)))
    y = np.stack([forecast.simulate(values, rng) for values in zip(*draws, strict=True)]).astype(float)
    mean = y.mean(axis=0)
    if forecast.has_mean:
        mean = np.mean([forecast.mean(values) for values in zip(*draws, strict=True)], axis=0)
    return _moments(mean, y.std(axis=0), dim, _rows(read, dim, len(mean)))


def _rows(read: ReadModel | General, dim: str, n: int) -> NDArray[Any]:
    """Labels of the rows where they are still those of the model, plain numbers otherwise."""
    labels = read.obs_coords.get(dim)
    return labels if labels is not None and len(labels) == n else np.arange(n)


def _classes(p: FloatArray, dim: str, rows: NDArray[Any]) -> xr.Dataset:
    return xr.Dataset(
        {"probability": ((dim, "class"), p), "label": ((dim,), p.argmax(axis=1))},
        coords={dim: rows, "class": np.arange(p.shape[1])},
    )


def _moments(mean: FloatArray, sd: FloatArray, dim: str, rows: NDArray[Any]) -> xr.Dataset:
    return xr.Dataset({"mean": ((dim,), mean), "sd": ((dim,), sd)}, coords={dim: rows})


def _hyper_points(read: ReadModel | General, precision: FloatArray) -> dict[str, tuple[tuple[str, ...], FloatArray]]:
    """Point values of the variables behind the sparse priors, where they follow from the precisions."""
    points: dict[str, tuple[tuple[str, ...], FloatArray]] = {}
    for block in read.sparse:
        dims = block.dims or tuple(f"{block.name}_dim_{i}" for i in range(len(block.shape)))
        values = read.hyper(block.name, precision[block.columns].reshape(block.shape))
        points |= {name: (dims, value) for name, value in (values or {}).items()}
    return points


def _names(block: WeightBlock, *, alone: bool) -> list[str]:
    """A name a weight: its label, or its place in the variable."""
    dims = block.dims or ("",) * len(block.shape)
    labels = [block.coords.get(dim, range(size)) for dim, size in zip(dims, block.shape, strict=True)]
    if alone and len(block.shape) == 1 and block.dims and block.dims[0] in block.coords:
        return [str(label) for label in labels[0]]
    return [f"{block.name}[{', '.join(map(str, place))}]" for place in product(*labels)]


def _say_what_replaces_the_hyper_prior(read: ReadModel | General, hyper: tuple[float, float] | None) -> None:
    a, b = hyper or (0.0, 0.0)
    for name, hypers in read.precision.items():
        if hypers:
            _say_once(
                f"The evidence is maximised over the prior precisions of {name} under a "
                f"{f'Gamma({a:g}, {b:g})' if a or b else 'flat'} prior; the prior declared on {', '.join(hypers)} is "
                "for NUTS."
            )


@cache
def _say_once(message: str) -> None:
    _log.info(message)


def _data_of(model: pm.Model) -> dict[str, Any]:
    return {str(v.name): v for v in model.data_vars if isinstance(v, SharedVariable)}


def set_data(model: pm.Model, data: Any, coords: dict[str, NDArray[Any]] | None = None) -> None:
    """Set new values for the model's `pm.Data`, by name."""
    if data is None:
        return
    held = _data_of(model)
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


@contextmanager
def _new_values(model: pm.Model, data: Any) -> Iterator[int | None]:
    """Set new values for a while; gives the number of new rows, None when the model keeps its own."""
    if data is None:
        yield None
        return
    held = _data_of(model)
    if not isinstance(data, dict):
        tables = [name for name, v in held.items() if v.get_value(borrow=True).ndim == 2]
        if len(tables) != 1:
            raise TypeError("Give new rows by the name of the model's pm.Data: predict(tree, {'X': ...}, model=model).")
        data = {tables[0]: np.asarray(data)}
    before = {name: held[name].get_value() for name in data if name in held}
    _check_left_out(model, data, before)
    labels = _changed_labels(model, data)
    old_labels = {dim: model.coords[dim] for dim in labels}
    try:
        set_data(model, data, labels)
        yield len(np.asarray(next(iter(data.values()))))
    finally:
        if before:
            with model:
                pm.set_data(before, coords=old_labels)


def _changed_labels(model: pm.Model, data: dict[str, Any]) -> dict[str, NDArray[Any]]:
    """Plain numbers as labels for those dims that the new values make longer or shorter."""
    changed: dict[str, NDArray[Any]] = {}
    for name, values in data.items():
        for dim, size in zip(model.named_vars_to_dims.get(name, ()), np.shape(values), strict=False):
            if model.coords.get(dim) is not None and len(model.coords[dim]) != size:
                changed[dim] = np.arange(size)
    return changed


def _check_left_out(model: pm.Model, data: dict[str, Any], before: dict[str, NDArray[Any]]) -> None:
    """Refuse new rows for one pm.Data while another, beside the observed values, keeps the old number of them."""
    observed = set(ancestors([model.rvs_to_values[rv] for rv in model.observed_RVs]))
    grown = {v.shape[0] for name, v in before.items() if v.ndim and len(np.asarray(data[name])) != v.shape[0]}
    for name, variable in _data_of(model).items():
        shape = variable.get_value(borrow=True).shape
        if name not in data and variable not in observed and shape and shape[0] in grown:
            raise ValueError(f"The model's pm.Data {name!r} has {shape[0]} rows of its own: give its new values too.")
