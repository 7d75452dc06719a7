"""An intercept beside centred columns, as a graph has it, and the one of the columns as they are, as users read it.

Bambi declares the first and reports the second, which its functions then take: so does a tree of a Bambi model. What
takes draws back to the graph, where the log-density is, asks for `recentred` first.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import xarray as xr

__all__ = ["recentred", "uncentred"]

type Means = Mapping[str, Mapping[str, Sequence[float]]]

_LAST = "__factor_dim"  # groups of group-specific effects, which Bambi takes to be the last dim


def uncentred(tree: xr.DataTree, means: Means, without: Sequence[str] = ()) -> xr.DataTree:
    """A tree with the intercepts of the columns as they are, in its draws.

    Parameters
    ----------
    tree : xarray.DataTree
        From a fit of the graph.
    means : mapping
        Of each intercept the means of its columns, under the terms they belong to.
    without : sequence of str
        Variables that are left out of the draws.

    Returns
    -------
    xarray.DataTree
        Where evidence gives a point value of such an intercept, it is now called ``Intercept_centred``.
    """
    groups: dict[str, xr.Dataset] = {}
    moved: dict[str, list[str]] = {}
    if "evidence" in tree.children:
        evidence = tree["evidence"].to_dataset()
        new = {f"{name}{part}": f"{name}_centred{part}" for name in means for part in ("", "_sd")}
        groups["evidence"] = evidence.rename({old: name for old, name in new.items() if old in evidence})
    if "posterior" in tree.children:
        posterior = _shifted(tree["posterior"].to_dataset(), means, -1).drop_vars(without, errors="ignore")
        groups["posterior"] = posterior.map(_groups_last, keep_attrs=True)
        before = {name: values.dims for name, values in posterior.items()}
        moved = {
            str(name): list(map(str, dims)) for name, dims in before.items() if groups["posterior"][name].dims != dims
        }
    found = tree.assign({name: xr.DataTree(group) for name, group in groups.items()})
    settings = json.loads(tree.attrs["bayes_sparse"]) | {"centred": means, "dims": moved}
    found.attrs["bayes_sparse"] = json.dumps(settings)
    return found


def recentred(tree: xr.DataTree) -> xr.DataTree:
    """The same tree with its draws as the graph has them; one of another model as it is."""
    settings = json.loads(tree.attrs.get("bayes_sparse", "{}"))
    if "centred" not in settings or "posterior" not in tree.children:
        return tree
    posterior = tree["posterior"].to_dataset()
    for name, dims in settings["dims"].items():
        posterior[name] = posterior[name].transpose(*dims)
    return tree.assign({"posterior": xr.DataTree(_shifted(posterior, settings["centred"], 1))})


def _shifted(posterior: xr.Dataset, means: Means, sign: int) -> xr.Dataset:
    return posterior.assign(
        {
            name: posterior[name] + sign * sum(_contribution(posterior[term], mean) for term, mean in own.items())
            for name, own in means.items()
        }
    )


def _contribution(weights: xr.DataArray, mean: Sequence[float]) -> xr.DataArray:
    """What the means of a term's columns add to the predictor."""
    dim = f"{weights.name}_dim"
    if dim not in weights.dims:
        return weights * mean[0]
    added: xr.DataArray = xr.dot(weights, xr.DataArray(list(mean), dims=dim), dim=dim)
    return added


def _groups_last(values: xr.DataArray) -> xr.DataArray:
    last = [dim for dim in values.dims if str(dim).endswith(_LAST)]
    return values.transpose(*(dim for dim in values.dims if dim not in last), *last)
