"""The outcome of a fit as an `xarray.DataTree` that ArviZ takes as it is; `one_step.tree` for one-step methods.

Groups: ``posterior`` (draws of the terms kept and of the nuisance parameters), ``sample_stats``, ``log_likelihood``,
``observed_data``, ``constant_data``, and ``evidence`` with one value a basis function. The root's attribute
``bayes_sparse`` holds, as JSON, what prediction needs beside numbers.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.metadata import version
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bayes_sparse.inference.evidence.state import Approximation, Outcome, State
from bayes_sparse.inputs.kernel_width import WidthSearch
from bayes_sparse.problem.design import FloatArray
from bayes_sparse.problem.gaussian import Primal
from bayes_sparse.problem.labelled import Subject
from bayes_sparse.trees.draws import Variables, factor_of, posterior_draws

__all__ = [
    "add",
    "assemble",
    "evidence_tree",
    "fixed_names",
    "nuts_tree",
    "put_fixed",
    "term_labels",
    "versions",
    "with_width",
]


def evidence_tree(
    subject: Subject,
    approximation: Approximation,
    outcome: Outcome,
    attributes: dict[str, Any],
    *,
    draws: int,
    chains: int,
    rng: np.random.Generator,
) -> xr.DataTree:
    """Moments, and draws if any are asked for, of the Gaussian posterior an evidence method ended at."""
    groups = {"evidence": _evidence(subject, approximation, outcome, attributes)}
    if draws:
        groups |= posterior_draws(subject, approximation, outcome.state, draws, chains, rng)
    return assemble(subject, groups)


def nuts_tree(subject: Subject, sampled: xr.DataTree, attributes: dict[str, Any]) -> xr.DataTree:
    """Draws of NUTS in the layout of an evidence tree: the same names, units and groups."""
    # What only helps a declaration to be sampled says nothing that the weights and their scales do not.
    posterior = sampled["posterior"].to_dataset().drop_vars(["z", "log_lambda"], errors="ignore")
    if subject.scale is not None:
        posterior = _undo_standardising(subject, posterior)
    groups = {"posterior": posterior}
    for name in ("sample_stats", "log_likelihood"):
        if name in sampled.children:
            groups[name] = sampled[name].to_dataset()
    tree = assemble(subject, groups)
    tree["posterior"].attrs.update(attributes)
    return tree


def with_width(tree: xr.DataTree, tried: WidthSearch) -> xr.DataTree:
    """The tree with the search for a kernel's width in its evidence."""
    evidence = tree["evidence"].to_dataset().assign(tried.variables()).assign_attrs(width=tried.best)
    return tree.assign({"evidence": xr.DataTree(evidence)})


@cache
def versions() -> str:
    """Versions of the packages a result depends on, as JSON."""
    names = ("bayes_sparse", "pymc", "pytensor", "arviz", "numpy", "scipy", "xarray")
    return json.dumps({name: version(name) for name in names})


def assemble(subject: Subject, groups: dict[str, xr.Dataset]) -> xr.DataTree:
    """Add the data and what prediction needs to the groups of a fit."""
    obs = {subject.obs_dim: subject.obs}
    dims = (subject.obs_dim, *(f"{subject.observed}_dim_{i}" for i in range(1, subject.y.ndim)))
    groups["observed_data"] = xr.Dataset({subject.observed: (dims, subject.y)}, coords=obs)
    constant = (subject.constant_data or {}) | {name: (("basis",), v) for name, v in subject.labels.items()}
    used = {dim for dims_, _ in constant.values() for dim in dims_}
    known = {**obs, "feature": subject.settings.get("columns"), "basis": np.array(subject.names)}
    coords: dict[str, Any] = {dim: labels for dim, labels in known.items() if dim in used}
    groups["constant_data"] = xr.Dataset(
        {name: (d, v) for name, (d, v) in constant.items() if name != "classes"}
        | ({"class": (("class",), constant["classes"][1])} if "classes" in constant else {}),
        coords=coords,
    )
    tree = xr.DataTree.from_dict({f"/{name}": dataset for name, dataset in groups.items()})
    tree.attrs["bayes_sparse"] = json.dumps({**subject.settings, "vectors": _vectors(subject)})
    return tree


def _vectors(subject: Subject) -> dict[str, tuple[str, list[Any]]]:
    """Dim and labels of every sparse vector in full, so that what was pruned can be put back."""
    vectors = {}
    for slot in subject.sparse:
        if len(slot.shape) == 1:
            dim, labels = slot.dim_and_labels()
            vectors[slot.name] = (dim, labels.tolist())
    return vectors


def _evidence(
    subject: Subject, approximation: Approximation, outcome: Outcome, attributes: dict[str, Any]
) -> xr.Dataset:
    """One value a basis function, in the user's units; pruned ones have zero mean and infinite precision."""
    state, M = outcome.state, subject.M
    index = state.index
    basis = index < M
    factor = subject.in_users_units(factor_of(state).T, index).T
    mean = subject.in_users_units(state.mean, index)
    sd = np.sqrt(np.einsum("ij,ij->i", factor, factor))
    mean = mean + subject.prior_mean[index]
    alpha = state.alpha.copy()
    if subject.scale is not None:
        alpha[basis] *= subject.scale[index[basis]] ** 2

    def spread(values: NDArray[Any], fill: float | bool) -> NDArray[Any]:
        full = np.full(M, fill)
        full[index[basis]] = values[basis]
        return full

    variables: Variables = {
        "log_evidence": ((), state.log_evidence),
        "objective": ((), state.objective),
        "alpha": (("basis",), spread(alpha, np.inf)),
        "mean": (("basis",), spread(mean, 0.0)),
        "sd": (("basis",), spread(sd, 0.0)),
        "gamma": (("basis",), spread(state.gamma, 0.0)),
        "relevant": (("basis",), spread(np.ones(len(index), dtype=bool), False)),
        "column": (("coordinate",), index),
        "coordinate_mean": (("coordinate",), mean),
        "covariance_factor": (("coordinate", "factor"), factor),
        "theta": (("nuisance",), state.theta),
        "history": (("iteration",), np.asarray(outcome.history)),
    }
    if subject.classes is not None:
        variables["score"] = (("basis",), _scores(approximation, state, M))
    put_fixed(variables, subject, mean, sd, index, state.theta)
    if subject.hyper_points is not None:
        points = subject.hyper_points(spread(alpha, np.inf))
        variables |= {name: point for name, point in points.items() if name not in variables}
    labels = np.array([*subject.names, *fixed_names(subject)])[index]
    coords = {"basis": np.array(subject.names), "coordinate": labels, **term_labels(subject)}
    return xr.Dataset(variables, coords=coords, attrs={"approximation": approximation.name, **attributes})


def _scores(approximation: Approximation, state: State, M: int) -> FloatArray:
    """q^2 / s of the columns left out: how near each is to paying for itself, which it does above 1; NaN for the kept.

    Also NaN where the method gives no likelihood to score them by, or kept more columns than there are observations.
    """
    out = np.full(M, np.nan)
    if state.terms is not None and isinstance(state.posterior, Primal):
        scores = approximation.scores(state)
        with np.errstate(divide="ignore", invalid="ignore"):
            out = np.where(scores.S > 0, scores.Q**2 / scores.S, 0.0)[:M]
        out[state.index[state.index < M]] = np.nan
    return out


def term_labels(subject: Subject) -> dict[str, Any]:
    """The column and the class of each basis function, where there are several classes."""
    return {name: ("basis", values) for name, values in subject.labels.items()}


def put_fixed(
    variables: Variables,
    subject: Subject,
    mean: FloatArray,
    sd: FloatArray,
    index: NDArray[np.intp],
    theta: FloatArray,
) -> None:
    """Point values of the fixed weights (with their sd) and of the nuisance parameters, under the user's names."""
    for slot in subject.fixed:
        inside = (index >= slot.columns.start) & (index < slot.columns.stop)
        dims = slot.dims if slot.dims is not None else tuple(f"{slot.name}_dim_{i}" for i in range(len(slot.shape)))
        add(variables, slot.name, dims, mean[inside].reshape(slot.shape))
        add(variables, f"{slot.name}_sd", dims, sd[inside].reshape(slot.shape))
    for name, value in subject.unpack(theta).items():
        value = np.asarray(value)
        add(variables, name, tuple(f"{name}_dim_{i}" for i in range(value.ndim)), value)


def add(variables: Variables, name: str, dims: tuple[str, ...], values: NDArray[Any]) -> None:
    """A variable of the user's under its own name, or beside ours where the name is taken (a dispersion "alpha")."""
    variables[name if name not in variables else f"{name}_point"] = (dims, values)


def _undo_standardising(subject: Subject, posterior: xr.Dataset) -> xr.Dataset:
    assert subject.scale is not None
    basis = {"basis": posterior["basis"]}
    scale = xr.DataArray(subject.scale, dims="basis", coords=basis)
    posterior = posterior.assign(w=posterior["w"] / scale)
    if "alpha" in posterior and "basis" in posterior["alpha"].dims:
        posterior = posterior.assign(alpha=posterior["alpha"] * scale**2)
    if subject.shift is not None and "bias" in posterior:
        moved = posterior["w"] * xr.DataArray(subject.shift, dims="basis", coords=basis)
        if subject.labels:  # each class's bias takes up the shifts of its own columns
            own = posterior["bias"]["class"] == xr.DataArray(subject.labels["of_class"], dims="basis", coords=basis)
            moved = moved * own
        posterior = posterior.assign(bias=posterior["bias"] - moved.sum("basis"))
    return posterior


def fixed_names(subject: Subject) -> list[str]:
    """One name a fixed weight."""
    names: list[str] = []
    for slot in subject.fixed:
        size = int(np.prod(slot.shape))
        names += [slot.name] if not slot.shape else [f"{slot.name}[{i}]" for i in range(size)]
    return names
