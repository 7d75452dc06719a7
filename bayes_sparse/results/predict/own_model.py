"""Predictions from a fit of the user's own `pm.Model`, at the rows it holds or at new values of its `pm.Data`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pymc as pm
import xarray as xr
from numpy.typing import NDArray
from pytensor.graph.traversal import ancestors

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inputs.bambi_model import BambiModel, graph_of, is_bambi
from bayes_sparse.inputs.pm_model import General, ReadModel, read_general, read_model
from bayes_sparse.inputs.pm_model.declared import data_of, set_data
from bayes_sparse.inputs.pm_model.forecast import Forecast
from bayes_sparse.inputs.pm_model.held import held_at
from bayes_sparse.inputs.pm_model.roles import Asked
from bayes_sparse.problem.problem import Problem
from bayes_sparse.problem.quadrature import average
from bayes_sparse.trees.centring import recentred
from bayes_sparse.trees.read import StoredFit
from bayes_sparse.trees.spread import variance_along

__all__ = ["predict_declared"]

_AVERAGED = 1000  # draws that a prediction of a model without a linear predictor averages over
_SIMULATIONS = 2000  # draws a row for the sd of a likelihood whose variance has no formula here


def predict_declared(
    fit: StoredFit, model: pm.Model | BambiModel | None, data: Any, offset: Any, random_seed: int
) -> xr.Dataset:
    """Predict from a fit of the user's own model, at the rows it holds or at new values of its `pm.Data`."""
    if model is None:
        raise ValueError(
            "This tree came from a pm.Model of your own: pass that model too, predict(tree, X, model=model)."
        )
    if offset is not None:
        raise ValueError("A pm.Model of your own has its offset inside; set it through its pm.Data.")
    if is_bambi(model) and data is not None:
        raise ValueError("New rows of a Bambi model are predicted by itself: model.predict(tree, data=rows).")
    graph, tree = graph_of(model), recentred(fit.tree)
    with _new_values(graph, data) as n, _another_number_of_rows():
        if not fit.linear:
            return _from_forecast(tree, graph, fit.asked, random_seed)
        if fit.evidence is None:
            return _from_draws(tree, graph, random_seed)
        held = held_at(graph, fit.settings.get("held", {}))
        read = read_model(held, fit.asked, y=None if n is None else np.zeros(n))
        if read.forecast is None or not isinstance(read.problem, Problem):
            return _from_draws(tree, graph, random_seed)
        return _from_moments(fit.evidence, read, read.problem, read.forecast, random_seed)


@contextmanager
def _another_number_of_rows() -> Iterator[None]:
    """Say what to do where the observed variable has a number of rows of its own, which PyTensor asserts."""
    try:
        yield
    except AssertionError as problem:
        if "SpecifyShape" not in str(problem):
            raise
        raise ValueError(
            "The observed variable has the number of rows that it was declared with: declare it with the shape of its "
            "predictor, pm.Normal('y', mu, sigma, observed=y, shape=mu.shape), to predict another number of rows."
        ) from None


def _from_moments(
    evidence: xr.Dataset, read: ReadModel, problem: Problem, forecast: Forecast, random_seed: int
) -> xr.Dataset:
    theta = np.atleast_1d(evidence["theta"].to_numpy())
    column = evidence["column"].to_numpy()
    prior = np.concatenate([block.mean.ravel() for block in (*read.sparse, *read.fixed)])
    Phi = problem.design.columns(column)
    eta = problem.offset + Phi @ (evidence["coordinate_mean"].to_numpy() - prior[column])
    variance = variance_along(evidence, Phi)
    dim = read.obs_dims[0] if read.obs_dims else f"{read.observed}_dim_0"
    rows = _rows(read, dim, len(eta))
    if read.describe == "bernoulli" and read.mean is not None:
        one, _ = average(lambda e: (_by_node(read.mean, e, theta), np.zeros_like(e)), eta, variance)
        return _classes(np.stack([1 - one, one], axis=1), dim, rows)
    if problem.normal:
        sigma = np.exp(theta[0]) if theta.size else problem.sigma
        return _moments(eta, np.sqrt(variance + sigma**2), dim, rows)
    mean, sd = _simulated(forecast, eta, variance, theta, random_seed)
    if read.mean is not None:
        mean, _ = average(lambda e: (_by_node(read.mean, e, theta), np.zeros_like(e)), eta, variance)
    return _moments(mean, sd, dim, rows)


def _by_node(mean: Any, eta: FloatArray, theta: FloatArray) -> FloatArray:
    return np.stack([mean(eta[:, j], theta) for j in range(eta.shape[1])], axis=1)


def _simulated(
    forecast: Forecast, eta: FloatArray, variance: FloatArray, theta: FloatArray, random_seed: int
) -> tuple[FloatArray, FloatArray]:
    """Mean and sd of new observations drawn from the user's own distribution."""
    rng = np.random.default_rng(random_seed)
    total, square = np.zeros(len(eta)), np.zeros(len(eta))
    first: FloatArray | None = None
    for _ in range(_SIMULATIONS):
        y = forecast.simulate(eta + np.sqrt(variance) * rng.standard_normal(len(eta)), theta, rng)
        first = y.astype(float) if first is None else first
        total += y - first
        square += (y - first) ** 2
    assert first is not None
    mean = total / _SIMULATIONS
    return first + mean, np.sqrt(np.maximum(square / _SIMULATIONS - mean**2, 0.0))


def _from_draws(tree: xr.DataTree, model: pm.Model, random_seed: int) -> xr.Dataset:
    if "posterior" not in tree.children:
        raise ValueError("Predictions of a model with several predictors average over draws: fit with draws > 0.")
    with model:
        drawn = pm.sample_posterior_predictive(tree, random_seed=random_seed, progressbar=False)
    y = next(iter(drawn["posterior_predictive"].to_dataset().data_vars.values())).stack(sample=("chain", "draw"))
    dim = str(y.dims[0])
    rows, mean = y[dim].to_numpy() if dim in y.coords else np.arange(y.sizes[dim]), y.mean("sample").to_numpy()
    observed = model.observed_RVs[0]
    if observed.owner.op.name == "bernoulli":
        return _classes(np.stack([1 - mean, mean], axis=1), dim, rows)
    return _moments(mean, y.std("sample").to_numpy(), dim, rows)


def _from_forecast(tree: xr.DataTree, model: pm.Model, asked: Asked, random_seed: int) -> xr.Dataset:
    """Average a model without a linear predictor over the draws of a fit."""
    if "posterior" not in tree.children:
        raise ValueError("Predictions of a model without a linear predictor average over draws: fit with draws > 0.")
    read = read_general(model, asked)
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
    dims = (dim, *(f"{dim}_{i}" for i in range(1, mean.ndim)))
    return xr.Dataset({"mean": (dims, mean), "sd": (dims, sd)}, coords={dim: rows})


@contextmanager
def _new_values(model: pm.Model, data: Any) -> Iterator[int | None]:
    """Set new values for a while; gives the number of new rows, None when the model keeps its own."""
    if data is None:
        yield None
        return
    held = data_of(model)
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
    for name, variable in data_of(model).items():
        shape = variable.get_value(borrow=True).shape
        if name not in data and variable not in observed and shape and shape[0] in grown:
            raise ValueError(f"The model's pm.Data {name!r} has {shape[0]} rows of its own: give its new values too.")
