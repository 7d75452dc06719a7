"""Which basis functions matter, and how much; and the pruned ones put back as zeros."""

from __future__ import annotations

import json
from typing import Literal

import numpy as np
import pandas as pd
import xarray as xr

__all__ = ["relevance", "unpruned"]


def relevance(tree: xr.DataTree, *, space: Literal["weights", "eigen"] = "weights") -> pd.DataFrame:
    """Basis functions by name, or directions by number, most relevant first.

    Parameters
    ----------
    tree : xarray.DataTree
        From an evidence method of `bayes_sparse.fit`.
    space : "weights" or "eigen"
        Of a one-step method: the weights, none of which is pruned, or the directions it chose among.

    Returns
    -------
    pandas.DataFrame
        Columns precision (infinite where pruned), mean and sd of the weight, gamma (how well the data determine it, 0
        to 1) and relevant. Ordered by relevant, then by |mean| / sd. The weights of a one-step method have no precision
        and no gamma of their own. A method on the L1 path has pull instead, the slope of the log-likelihood along the
        column in units of lambda: 1 or -1 where the weight is not zero, and else how near it is to entering. Of
        directions: curvature h of the likelihood, u at the expansion point, alpha, mode, mean and sd of u, gamma and
        relevant.
    """
    if "evidence" not in tree.children:
        raise ValueError(
            "This tree has no group 'evidence': relevance is read off an evidence fit; for NUTS draws see "
            "az.summary(tree)."
        )
    evidence = tree["evidence"].to_dataset()
    one_step = "direction" in evidence.dims
    if space == "eigen":
        if not one_step:
            raise ValueError("space='eigen' shows the directions of a one-step method (method='revm'); this has none.")
        return _directions(evidence)
    if space != "weights":
        raise ValueError(f"`space` is 'weights' or 'eigen', got {space!r}.")
    if one_step:
        return _weights(evidence)
    names = ["alpha", "mean", "sd", "gamma", "relevant"] if "alpha" in evidence else ["mean", "sd", "pull", "relevant"]
    table = pd.DataFrame(
        {name: evidence[name].to_numpy() for name in names}, index=pd.Index(evidence["basis"].to_numpy(), name="basis")
    ).rename(columns={"alpha": "precision"})
    outside = table["pull"].abs() - 2.0 if "pull" in table else -1.0
    strength = (table["mean"].abs() / table["sd"]).where(table["relevant"], outside)
    return table.loc[strength.sort_values(ascending=False, kind="stable").index]


def _weights(evidence: xr.Dataset) -> pd.DataFrame:
    """Weights of a one-step method: all there if any direction is."""
    table = pd.DataFrame(
        {name: evidence[name].to_numpy() for name in ("mean", "sd")},
        index=pd.Index(evidence["basis"].to_numpy(), name="basis"),
    )
    table["relevant"] = table["sd"] > 0
    strength = (table["mean"].abs() / table["sd"]).where(table["relevant"], -1.0)
    return table.loc[strength.sort_values(ascending=False, kind="stable").index]


def _directions(evidence: xr.Dataset) -> pd.DataFrame:
    """Directions of a one-step method, those with the largest mode in units of the likelihood's own sd first."""
    names = ["h", "u_expansion", "alpha", "u_mode", "u_mean", "u_sd", "gamma", "relevant"]
    table = pd.DataFrame(
        {name: evidence[name].to_numpy() for name in names},
        index=pd.Index(evidence["direction"].to_numpy(), name="direction"),
    )
    strength: pd.Series = (table["h"] ** 0.5 * table["u_mode"].abs()).where(table["relevant"], -1.0)
    return table.loc[strength.sort_values(ascending=False, kind="stable").index]


def unpruned(tree: xr.DataTree) -> xr.DataTree:
    """The same tree with the pruned weights in its posterior, as zeros.

    A tree's posterior holds only the terms kept, so that no draw is constant. Functions of PyMC that need a variable in
    its full shape, such as `pm.sample_posterior_predictive`, take this one.

    Parameters
    ----------
    tree : xarray.DataTree
        From an evidence method of `bayes_sparse.fit`, with draws.
    """
    if "posterior" not in tree.children:
        raise ValueError("This tree has no posterior draws; fit with draws > 0.")
    posterior = tree["posterior"].to_dataset()
    for name, (dim, labels) in json.loads(tree.attrs["bayes_sparse"]).get("vectors", {}).items():
        if name in posterior:
            posterior = posterior.reindex({dim: labels}, fill_value=0.0)
        else:
            shape = (posterior.sizes["chain"], posterior.sizes["draw"], len(labels))
            posterior = posterior.assign_coords({dim: labels})
            posterior[name] = (("chain", "draw", dim), np.zeros(shape))
    whole = tree.copy()
    whole["posterior"] = xr.DataTree(posterior)
    return whole
