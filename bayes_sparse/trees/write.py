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

from bayes_sparse.common.types import FloatArray, Variables
from bayes_sparse.inference.evidence.state import Approximation, Outcome, State
from bayes_sparse.inputs.kernel_width import WidthSearch
from bayes_sparse.problem.gaussian import Primal
from bayes_sparse.problem.labelled import LabelledProblem
from bayes_sparse.trees.draws import factor_of, posterior_draws

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
    labelled: LabelledProblem,
    approximation: Approximation,
    outcome: Outcome,
    attributes: dict[str, Any],
    *,
    draws: int,
    chains: int,
    rng: np.random.Generator,
) -> xr.DataTree:
    """Moments, and draws if any are asked for, of the Gaussian posterior an evidence method ended at."""
    groups = {"evidence": _evidence(labelled, approximation, outcome, attributes)}
    if draws:
        groups |= posterior_draws(labelled, approximation, outcome.state, draws, chains, rng)
    return assemble(labelled, groups)


def nuts_tree(labelled: LabelledProblem, sampled: xr.DataTree, attributes: dict[str, Any]) -> xr.DataTree:
    """Draws of NUTS in the layout of an evidence tree: the same names, units and groups."""
    # What only helps a declaration to be sampled says nothing that the weights and their scales do not.
    posterior = sampled["posterior"].to_dataset().drop_vars(["z", "log_lambda"], errors="ignore")
    if labelled.scale is not None:
        posterior = _undo_standardising(labelled, posterior)
    groups = {"posterior": posterior}
    for name in ("sample_stats", "log_likelihood"):
        if name in sampled.children:
            groups[name] = sampled[name].to_dataset()
    tree = assemble(labelled, groups)
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


def assemble(labelled: LabelledProblem, groups: dict[str, xr.Dataset]) -> xr.DataTree:
    """Add the data and what prediction needs to the groups of a fit."""
    obs = {labelled.obs_dim: labelled.obs}
    dims = (labelled.obs_dim, *(f"{labelled.observed}_dim_{i}" for i in range(1, labelled.y.ndim)))
    groups["observed_data"] = xr.Dataset({labelled.observed: (dims, labelled.y)}, coords=obs)
    constant = (labelled.constant_data or {}) | {name: (("basis",), v) for name, v in labelled.labels.items()}
    used = {dim for dims_, _ in constant.values() for dim in dims_}
    known = {**obs, "feature": labelled.settings.get("columns"), "basis": np.array(labelled.names)}
    coords: dict[str, Any] = {dim: labels for dim, labels in known.items() if dim in used}
    groups["constant_data"] = xr.Dataset(
        {name: (d, v) for name, (d, v) in constant.items() if name != "classes"}
        | ({"class": (("class",), constant["classes"][1])} if "classes" in constant else {}),
        coords=coords,
    )
    tree = xr.DataTree.from_dict({f"/{name}": dataset for name, dataset in groups.items()})
    tree.attrs["bayes_sparse"] = json.dumps({**labelled.settings, "vectors": _vectors(labelled)})
    return tree


def _vectors(labelled: LabelledProblem) -> dict[str, tuple[str, list[Any]]]:
    """Dim and labels of every sparse vector in full, so that what was pruned can be put back."""
    vectors = {}
    for block in labelled.sparse:
        if len(block.shape) == 1:
            dim, labels = block.dim_and_labels()
            vectors[block.name] = (dim, labels.tolist())
    return vectors


def _evidence(
    labelled: LabelledProblem, approximation: Approximation, outcome: Outcome, attributes: dict[str, Any]
) -> xr.Dataset:
    """One value a basis function, in the user's units; pruned ones have zero mean and infinite precision."""
    state, M = outcome.state, labelled.M
    index = state.index
    basis = index < M
    factor = labelled.in_users_units(factor_of(state).T, index).T
    mean = labelled.in_users_units(state.mean, index)
    sd = np.sqrt(np.einsum("ij,ij->i", factor, factor))
    mean = mean + labelled.prior_mean[index]
    alpha = state.alpha.copy()
    if labelled.scale is not None:
        alpha[basis] *= labelled.scale[index[basis]] ** 2

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
    if labelled.classes is not None:
        variables["score"] = (("basis",), _scores(approximation, state, M))
    put_fixed(variables, labelled, mean, sd, index, state.theta)
    if labelled.hyper_points is not None:
        points = labelled.hyper_points(spread(alpha, np.inf))
        variables |= {name: point for name, point in points.items() if name not in variables}
    labels = np.array([*labelled.names, *fixed_names(labelled)])[index]
    coords = {"basis": np.array(labelled.names), "coordinate": labels, **term_labels(labelled)}
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


def term_labels(labelled: LabelledProblem) -> dict[str, Any]:
    """The column and the class of each basis function, where there are several classes."""
    return {name: ("basis", values) for name, values in labelled.labels.items()}


def put_fixed(
    variables: Variables,
    labelled: LabelledProblem,
    mean: FloatArray,
    sd: FloatArray,
    index: NDArray[np.intp],
    theta: FloatArray,
) -> None:
    """Point values of the fixed weights (with their sd) and of the nuisance parameters, under the user's names."""
    for block in labelled.fixed:
        inside = (index >= block.columns.start) & (index < block.columns.stop)
        dims = block.dims if block.dims is not None else tuple(f"{block.name}_dim_{i}" for i in range(len(block.shape)))
        add(variables, block.name, dims, mean[inside].reshape(block.shape))
        add(variables, f"{block.name}_sd", dims, sd[inside].reshape(block.shape))
    for name, value in labelled.unpack(theta).items():
        value = np.asarray(value)
        add(variables, name, tuple(f"{name}_dim_{i}" for i in range(value.ndim)), value)


def add(variables: Variables, name: str, dims: tuple[str, ...], values: NDArray[Any]) -> None:
    """A variable of the user's under its own name, or beside ours where the name is taken (a dispersion "alpha")."""
    variables[name if name not in variables else f"{name}_point"] = (dims, values)


def _undo_standardising(labelled: LabelledProblem, posterior: xr.Dataset) -> xr.Dataset:
    assert labelled.scale is not None
    basis = {"basis": posterior["basis"]}
    scale = xr.DataArray(labelled.scale, dims="basis", coords=basis)
    posterior = posterior.assign(w=posterior["w"] / scale)
    if "alpha" in posterior and "basis" in posterior["alpha"].dims:
        posterior = posterior.assign(alpha=posterior["alpha"] * scale**2)
    if labelled.shift is not None and "bias" in posterior:
        moved = posterior["w"] * xr.DataArray(labelled.shift, dims="basis", coords=basis)
        if labelled.labels:  # each class's bias takes up the shifts of its own columns
            own = posterior["bias"]["class"] == xr.DataArray(labelled.labels["of_class"], dims="basis", coords=basis)
            moved = moved * own
        posterior = posterior.assign(bias=posterior["bias"] - moved.sum("basis"))
    return posterior


def fixed_names(labelled: LabelledProblem) -> list[str]:
    """One name a fixed weight."""
    names: list[str] = []
    for block in labelled.fixed:
        size = int(np.prod(block.shape))
        names += [block.name] if not block.shape else [f"{block.name}[{i}]" for i in range(size)]
    return names
