"""A fit of the user's own `pm.Model` as a point that PyMC starts to sample from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pymc as pm
import xarray as xr
from pymc.initial_point import make_initial_point_fn

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inputs.bambi_model import BambiModel, graph_of, is_bambi
from bayes_sparse.trees.centring import recentred
from bayes_sparse.trees.damage import reads_a_fit

__all__ = ["initvals"]

_NEAR = 10.0  # on the unconstrained scale; of a scale or a precision a factor of 22,000


@reads_a_fit
def initvals(tree: xr.DataTree, model: pm.Model | BambiModel) -> dict[str, FloatArray]:
    """Posterior means of the free variables of a model, for ``pm.sample(initvals=...)``.

    Scales and precisions of pruned weights, which the fit has at the end of their range, are where the model itself
    would start them.

    Parameters
    ----------
    tree : xarray.DataTree
        From `bayes_sparse.fit` of this model, with draws.
    model : pymc.Model or bambi.Model
        That model, or one made of it by `pm.do` or `pm.observe`.

    Returns
    -------
    dict
        Values by name, each in its variable's shape.
    """
    if "posterior" not in tree.children:
        raise ValueError("This tree has no posterior draws to start from; fit with draws > 0.")
    if not isinstance(model, pm.Model) and not is_bambi(model):
        raise TypeError(f"initvals needs the pm.Model that was fitted, not one of type {type(model).__name__}.")
    model, posterior = graph_of(model), recentred(tree)["posterior"].to_dataset()
    names = [str(rv.name) for rv in model.free_RVs]
    missing = [name for name in names if name not in posterior]
    if missing:
        raise ValueError(f"The posterior has no variable {missing[0]!r}: give the model that was fitted.")
    means = {name: posterior[name].mean(("chain", "draw")).to_numpy() for name in names}
    start, given = _unconstrained(model, None), _unconstrained(model, means)
    own: Any = make_initial_point_fn(model=model, return_transformed=False)(0)
    for rv in model.free_RVs:
        name, transform = str(rv.name), model.rvs_to_transforms[rv]
        held = transform is not None and bool((posterior[name] == posterior[name].isel(chain=0, draw=0)).all())
        away = np.abs(given[name] - start[name]) if held else np.zeros(())
        if away.shape == means[name].shape:
            means[name] = np.where(away <= _NEAR, means[name], own[name])
    return means


def _unconstrained(model: pm.Model, overrides: dict[str, FloatArray] | None) -> dict[str, FloatArray]:
    """The point that the model would start at, by the names of its variables."""
    point: Any = make_initial_point_fn(model=model, overrides=overrides)(0)
    return {str(rv.name): np.asarray(value) for rv, value in zip(model.free_RVs, point.values(), strict=True)}
