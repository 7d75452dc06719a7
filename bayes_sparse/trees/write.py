"""The one writer of trees: a fit, described by its family, as an `xarray.DataTree` that ArviZ takes as it is.

Groups: ``posterior`` (draws of the terms kept and of the nuisance parameters; of a user's own model all of its
variables in full, as PyMC has them), ``sample_stats``, ``log_likelihood``,
``observed_data``, ``constant_data``, and ``evidence`` with one value a basis function. The root's attribute
``bayes_sparse`` holds, as JSON, what prediction needs beside numbers.
"""

from __future__ import annotations

import json
import logging
from typing import Any

import numpy as np
import xarray as xr

from bayes_sparse.common.checks import quick_enough, small_enough
from bayes_sparse.common.types import FloatArray, Variables
from bayes_sparse.inference.sampling import Chains
from bayes_sparse.inputs.kernel_width import WidthSearch
from bayes_sparse.problem.labelled import LabelledProblem
from bayes_sparse.trees.description import Description, Drawn, moments_of
from bayes_sparse.trees.naming import chain_and_draw, in_parts, of_each_observation
from bayes_sparse.trees.spread import THIN, sds
from bayes_sparse.trees.weights import WeightsDescription

__all__ = [
    "HELPERS",
    "at_alpha_tree",
    "fit_tree",
    "mode_alone",
    "own_model_tree",
    "sampled_tree",
    "with_moments",
    "with_weights",
    "with_width",
]

# What only helps a declaration to be sampled says nothing that the weights and their scales do not.
HELPERS = ("z", "log_lambda", "mean_predictor")

_log = logging.getLogger("bayes_sparse")


def fit_tree(
    description: Description, attributes: dict[str, Any], *, draws: int, chains: int, rng: np.random.Generator
) -> xr.DataTree:
    """What an evidence method found, and draws if any are asked for."""
    groups = {"evidence": _evidence(description, attributes)}
    if draws:
        groups |= _drawn(description, (chains, draws), rng)
    return _assembled(description.labelled, groups)


def at_alpha_tree(
    description: Description,
    attributes: dict[str, Any],
    chains: Chains,
    told: dict[str, Any],
    bridge: xr.Dataset | None,
) -> xr.DataTree:
    """Draws of the exact posterior at the hyper-parameters of a fit, laid out like every other fit."""
    labelled, shape = description.labelled, chains.x.shape[:2]
    x = chains.x.reshape(-1, chains.x.shape[2])
    evidence = with_moments(_evidence(description, attributes), *moments_of(description, x))
    stats: Variables = {name: (("chain", "draw"), values) for name, values in chains.stats.items()}
    stats["log_p"] = stats["lp"]
    said = {"log_p": "log p(y|w) + log p(w|alpha) at the point values that are held, normalised"}
    groups = {
        "evidence": evidence.assign(description.more(x)).assign_attrs(
            {**told, "approximation": "none: sampled at alpha*"}
        ),
        "posterior": description.sampled(x, shape).assign_attrs(told),
        "sample_stats": xr.Dataset(stats, coords=chain_and_draw(shape), attrs=said),
    }
    if small_enough(8 * len(x) * labelled.y.size):
        groups["log_likelihood"] = of_each_observation(labelled, description.pointwise(x), shape)
    if bridge is not None:
        groups["bridge"] = bridge
    tree = _assembled(labelled, groups)
    constant = tree["constant_data"].to_dataset()
    held = {name: np.asarray(value) for name, value in description.held.items() if name not in constant}
    constant = constant.assign({name: (_dims(name, value), value) for name, value in held.items()})
    return tree.assign({"constant_data": xr.DataTree(constant)})


def sampled_tree(labelled: LabelledProblem, sampled: xr.DataTree, attributes: dict[str, Any]) -> xr.DataTree:
    """Draws of a named model's declaration in the layout of an evidence tree: the same names, units and groups."""
    posterior = sampled["posterior"].to_dataset().drop_vars(HELPERS, errors="ignore")
    groups = {"posterior": _undo_standardising(labelled, posterior)}
    for name in ("sample_stats", "log_likelihood"):
        if name in sampled.children:
            groups[name] = sampled[name].to_dataset()
    tree = _assembled(labelled, groups)
    tree["posterior"].attrs.update(attributes)
    if "alpha" in posterior and "basis" in posterior["alpha"].dims:
        constant = tree["constant_data"].to_dataset().assign(curvature=("basis", _curvature(labelled, posterior)))
        tree["constant_data"] = xr.DataTree(constant)
    return tree


def _curvature(labelled: LabelledProblem, posterior: xr.Dataset) -> FloatArray:
    """Of the likelihood along each weight by itself, at the posterior mean: what precisions are to be compared with."""
    problem, mean = labelled.searched, posterior.mean(("chain", "draw"))
    w = np.concatenate([np.ravel(mean[block.name].to_numpy()) for block in (*labelled.sparse, *labelled.fixed)])
    theta = np.log([float(mean[name]) for name in labelled.unpack(problem.theta)])
    index = np.arange(problem.design.width)
    eta = problem.predictor(w[None], index)[0]
    _, squares, _ = problem.active(index[:1]).scan(problem.terms(eta, theta))
    return np.asarray(squares[: labelled.M])


def own_model_tree(settings: dict[str, Any], sampled: xr.DataTree, attributes: dict[str, Any]) -> xr.DataTree:
    """Draws of a `pm.Model` of the user's own: the groups that PyMC gives, and what prediction needs to know."""
    sampled["posterior"].attrs.update(attributes)
    sampled.attrs["bayes_sparse"] = json.dumps(settings)
    return sampled


def with_weights(
    labelled: LabelledProblem, sampled: xr.DataTree, drawn: dict[str, xr.Dataset], notes: dict[str, str]
) -> xr.DataTree:
    """Draws of hyper-parameters in a model of the user's own, with groups drawn for the weights beside them.

    What the user's model has under the same name stays; data and settings are those that the weights belong to.
    """
    groups = {name: node.to_dataset() for name, node in sampled.children.items()}
    for name, more in drawn.items():
        own = groups.get(name, xr.Dataset())
        groups[name] = own.assign({name: more[name] for name in more.data_vars if name not in own})
    groups["sample_stats"].attrs.update(notes)
    tree = _assembled(labelled, groups)
    tree.attrs = {**sampled.attrs, **tree.attrs}
    return tree


def mode_alone(tree: xr.DataTree) -> xr.DataTree:
    """The mode of an evidence fit as if it were known, without a posterior."""
    evidence = tree["evidence"].to_dataset()
    mean = evidence["coordinate_mean"].to_numpy().copy()
    if "mode" in evidence:  # of a one-step method, whose mean is another point
        column = evidence["column"].to_numpy()
        basis = column < evidence.sizes["basis"]
        mean[basis] = evidence["mode"].to_numpy()[column[basis]]
    evidence = evidence.drop_vars(["estimate", "standard_error"], errors="ignore")
    point = with_moments(evidence, mean, np.zeros((len(mean), 1))).assign_attrs(approximation="none: the mode alone")
    groups = {name: tree[name].to_dataset() for name in ("observed_data", "constant_data")}
    plugged = xr.DataTree.from_dict({"/evidence": point} | {f"/{name}": group for name, group in groups.items()})
    plugged.attrs.update(tree.attrs)
    return plugged


def with_width(tree: xr.DataTree, tried: WidthSearch) -> xr.DataTree:
    """The tree with the search for a kernel's width in its evidence."""
    evidence = tree["evidence"].to_dataset().assign(tried.variables()).assign_attrs(width=tried.best)
    return tree.assign({"evidence": xr.DataTree(evidence)})


def with_moments(evidence: xr.Dataset, mean: FloatArray, factor: FloatArray) -> xr.Dataset:
    """The group `evidence` with another mean and covariance of all coordinates, and of all that repeats them.

    Parameters
    ----------
    evidence : Dataset
        That group of a fit.
    mean : array (coordinate,)
        In the user's units.
    factor : array (coordinate, any)
        F with F F' the covariance.
    """
    M, column = evidence.sizes["basis"], evidence["column"].to_numpy()
    sd, basis = sds(factor), column < M
    out = evidence.drop_vars(["covariance_factor", *THIN], errors="ignore").assign(
        coordinate_mean=(("coordinate",), mean), covariance_factor=(("coordinate", "factor"), factor)
    )
    for name, values in (("mean", mean), ("sd", sd)):
        full = np.where(np.isnan(evidence[name]), np.nan, 0.0)  # what was pruned has no sd
        full[column[basis]] = values[basis]
        out[name] = (("basis",), full)
    if "standard_error" in out:  # of a one-step method: the weights, not the directions kept
        out["sd"] = np.hypot(out["standard_error"], out["estimate"] - out["mean"])
    labels = np.array([str(label).split("[")[0] for label in evidence["coordinate"].to_numpy()])
    for label in dict.fromkeys(labels[~basis]):
        inside = ~basis & (labels == label)
        for name, values in ((label, mean), (f"{label}_sd", sd)):
            if name in out:
                out[name] = (out[name].dims, values[inside].reshape(out[name].shape))
    return out


def _evidence(description: Description, attributes: dict[str, Any]) -> xr.Dataset:
    variables, coords = description.stored()
    if description.labelled.passes is not None:
        attributes = {**attributes, "passes": description.labelled.passes()}
    return xr.Dataset(
        _as_filed(variables), coords=coords, attrs={"approximation": description.approximation, **attributes}
    )


def _as_filed(variables: Variables) -> Variables:
    """Row by row, as a file gives them back: in another order, sums over them have other last digits."""
    return {name: (dims, np.asarray(values, order="C")) for name, (dims, values) in variables.items()}


def _drawn(description: Description, shape: tuple[int, int], rng: np.random.Generator) -> dict[str, xr.Dataset]:
    """Independent draws, the log densities at them, and the log-likelihood of each observation if it can be stored."""
    labelled, count = description.labelled, shape[0] * shape[1]
    drawn = description.draw(count, rng)
    if isinstance(description, WeightsDescription):
        groups = {"posterior": description.named(drawn.x, drawn.theta, shape, drawn.precision)}
        if labelled.users is not None:
            groups |= _coordinates(description, drawn, shape)
    else:
        groups = {"posterior": description.named(drawn.x, drawn.theta, shape)}
    stats = {"log_q": drawn.log_q}
    n = labelled.y.size
    if labelled.passes is not None:
        _log.info("The rows lie in chunks, so that the log-likelihood of each is left out of the tree.")
    if quick_enough(count * n):
        stored = labelled.passes is None and small_enough(8 * count * n)
        parts = in_parts(count, n * labelled.predictors)
        looks = [description.look(drawn, some, each=stored) for some in parts]
        for name in looks[0][1]:
            target = np.concatenate([targets[name] for _, targets in looks])
            stats[name] = np.where(target < np.inf, target, -np.inf)  # a draw without a density weighs nothing
        if stored:
            pointwise = np.concatenate([each for each, _ in looks if each is not None])
            groups["log_likelihood"] = of_each_observation(labelled, pointwise, shape)
    groups["sample_stats"] = xr.Dataset(
        {name: (("chain", "draw"), values.reshape(shape)) for name, values in stats.items()},
        coords=chain_and_draw(shape),
        attrs={name: note for name, note in description.notes.items() if name in stats},
    )
    return groups


def _coordinates(description: WeightsDescription, drawn: Drawn, shape: tuple[int, int]) -> dict[str, xr.Dataset]:
    """Draws of the columns' weights as log_q and log_p are of, where the posterior of a user's model has others."""
    if not description.labelled.apart and drawn.theta.shape[1] < 2:
        return {}
    own = description.reported(description.before(drawn))
    variables: Variables = {"coordinates": (("chain", "draw", "coordinate"), own.reshape(*shape, -1))}
    return {"latent": xr.Dataset(variables, coords=chain_and_draw(shape))}


def _assembled(labelled: LabelledProblem, groups: dict[str, xr.Dataset]) -> xr.DataTree:
    """Add the data and what prediction needs to the groups of a fit."""
    obs = {} if labelled.obs is None else {labelled.obs_dim: labelled.obs}
    told = [part for part in labelled.observations if part.told]
    groups["observed_data"] = xr.Dataset(
        {part.name: (part.dims, part.values) for part in told},
        coords={dim: labels for part in told for dim, labels in part.coords.items()},
    )
    constant = (labelled.constant_data or {}) | {name: (("basis",), v) for name, v in labelled.labels.items()}
    used = {dim for dims_, _ in constant.values() for dim in dims_}
    known = {**obs, "feature": labelled.settings.get("columns"), "basis": np.array(labelled.names)}
    if labelled.users is not None:  # the data are the user's, under the dims of their model
        sizes = {dim: size for dims_, v in constant.values() for dim, size in zip(dims_, np.shape(v), strict=True)}
        known = {dim: np.arange(size) for dim, size in sizes.items()} | labelled.coords
    coords: dict[str, Any] = {dim: labels for dim, labels in known.items() if dim in used}
    groups["constant_data"] = xr.Dataset(
        {name: (d, v) for name, (d, v) in constant.items() if name != "classes"}
        | ({"class": (("class",), constant["classes"][1])} if "classes" in constant else {}),
        coords=coords,
    )
    tree = xr.DataTree()
    tree.children = {name: xr.DataTree(dataset) for name, dataset in groups.items()}  # without a copy of each
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


def _undo_standardising(labelled: LabelledProblem, posterior: xr.Dataset) -> xr.Dataset:
    """Weights, precisions and bias in the user's units."""
    if labelled.scale is None:
        return posterior
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


def _dims(name: str, value: FloatArray) -> tuple[str, ...]:
    return tuple(f"{name}_dim_{i}" for i in range(value.ndim))
