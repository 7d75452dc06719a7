"""Predictions from a fitted tree: integrated over the weights, never plug-in.

An evidence tree predicts from its moments: the predictor of a new row is normal, and the likelihood's mean and variance
are averaged over it (in closed form for a normal likelihood, by Gauss-Hermite quadrature for the others). A NUTS tree
predicts by averaging over its draws.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pymc as pm
import xarray as xr
from scipy.sparse import issparse

from bayes_sparse.common.types import FloatArray
from bayes_sparse.common.warnings import tell
from bayes_sparse.inputs import basis as bases
from bayes_sparse.inputs import likelihoods
from bayes_sparse.inputs.pm_model.declared import predict_declared
from bayes_sparse.inputs.table import features_of, vector_of
from bayes_sparse.problem.quadrature import average_in_blocks
from bayes_sparse.results.predict.augment import augmentation
from bayes_sparse.results.predict.classes import predict_classes
from bayes_sparse.results.predict.new_rows import columns_at, columns_drawn
from bayes_sparse.trees.rung import was_sampled

__all__ = ["predict"]

_BLOCK = 2**21  # numbers held at once while averaging
_FAR = 1e-3  # a row where every kept kernel is below this lies outside what the fit has seen


def predict(
    tree: xr.DataTree,
    X: Any = None,
    *,
    model: pm.Model | None = None,
    offset: Any = None,
    augment: bool = False,
    random_seed: int = 0,
) -> xr.Dataset:
    """Predict new observations.

    Parameters
    ----------
    tree : xarray.DataTree
        From `bayes_sparse.fit`, also one read back with `xarray.open_datatree`.
    X : array, sparse matrix, DataFrame, Dataset or dict
        New rows with the columns of the fit, dense or sparse as you like; by class where the fit's features were. For a
        `pm.Model` of your own: new values for
        its `pm.Data` by name, or None for the rows it holds.
    model : pymc.Model, optional
        Your own model, when the tree came from one.
    offset : array, optional
        Known part of the predictor for the new rows.
    augment : bool
        For a regression with an rbf basis: add one basis function on each new row, so that the sd grows away from the
        data instead of shrinking (Rasmussen & Quinonero-Candela 2005).
    random_seed : int
        Only used for several classes, and for a `pm.Model` of your own whose likelihood's mean PyMC does not know.

    Returns
    -------
    xarray.Dataset
        ``mean`` and ``sd`` of a new observation, parameter and noise uncertainty included; for classes ``probability``
        (obs, class) and ``label``.
    """
    settings = _settings(tree)
    if settings["model"] == "declared":
        return predict_declared(tree, model, X, offset, random_seed)
    if X is None:
        raise ValueError(f"Nothing to predict: pass new rows with the columns {settings['columns'][:6]}.")
    likelihood = likelihoods.from_settings(settings["likelihood"])
    basis = bases.from_settings(settings["basis"])
    if isinstance(likelihood, likelihoods.categorical):
        if offset is not None:
            raise ValueError("With several classes there is no `offset`: leave it out.")
        return predict_classes(tree, settings["columns"], basis, likelihood, X, random_seed)
    features, rows, dim = features_of(X, settings["columns"])
    shift = np.zeros(len(rows)) if offset is None else vector_of(offset, len(rows), "offset")
    matrix = bases.check_dense(features.tocsr() if issparse(features) else features, basis)
    if augment and was_sampled(tree):
        raise ValueError("augment=True mends an evidence fit; NUTS draws are predicted from as they are: leave it out.")
    if "evidence" in tree.children and not was_sampled(tree):
        mean, variance = _from_moments(tree, basis, matrix, shift, likelihood, augment)
    else:
        mean, variance = _from_draws(tree, basis, matrix, shift, likelihood)
    coords = {dim: rows}
    if likelihood.targets == "two classes":
        classes = tree["constant_data"]["class"].to_numpy()
        probability = np.stack([1 - mean, mean], axis=1)
        return xr.Dataset(
            {
                "probability": ((dim, "class"), probability),
                "label": ((dim,), classes[(mean > 0.5).astype(int)]),
            },
            coords={**coords, "class": classes},
        )
    return xr.Dataset({"mean": ((dim,), mean), "sd": ((dim,), np.sqrt(variance))}, coords=coords)


def _settings(tree: xr.DataTree) -> dict[str, Any]:
    if not isinstance(tree, xr.DataTree) or "bayes_sparse" not in tree.attrs:
        raise TypeError("predict takes a tree from bayes_sparse.fit; this has no 'bayes_sparse' attribute.")
    settings: dict[str, Any] = json.loads(tree.attrs["bayes_sparse"])
    return settings


def _from_moments(
    tree: xr.DataTree,
    basis: bases.Basis,
    X: Any,
    offset: FloatArray,
    likelihood: likelihoods.Likelihood,
    augment: bool,
) -> tuple[FloatArray, FloatArray]:
    evidence = tree["evidence"].to_dataset()
    column = evidence["column"].to_numpy()
    M = evidence.sizes["basis"]
    Phi = columns_at(tree, basis, X, column, M)
    if isinstance(basis, bases.rbf) and not augment and (column < M).any():
        _warn_far(Phi[:, column < M])
    mean = offset + Phi @ evidence["coordinate_mean"].to_numpy()
    spread = Phi @ evidence["covariance_factor"].to_numpy()
    variance = np.einsum("ij,ij->i", spread, spread)
    nuisance = [float(evidence[name]) for name in likelihood.nuisance]
    if augment:
        train = tree["constant_data"]["X"].to_numpy() if basis.kernel else X
        more, wider = augmentation(tree, basis, X, columns_at(tree, basis, train, column, M), Phi)
        mean, variance = mean + more, variance + wider
    if likelihood.normal:
        return mean, variance + nuisance[0] ** 2
    return average_in_blocks(lambda eta: likelihood.moments(eta, *nuisance), mean, variance)


def _from_draws(
    tree: xr.DataTree, basis: bases.Basis, X: Any, offset: FloatArray, likelihood: likelihoods.Likelihood
) -> tuple[FloatArray, FloatArray]:
    posterior = tree["posterior"].to_dataset().stack(sample=("chain", "draw"))
    column, M = columns_drawn(tree)
    w = (
        posterior["w"].transpose("basis", "sample").to_numpy()
        if len(column)
        else np.empty((0, posterior.sizes["sample"]))
    )
    bias = posterior["bias"].to_numpy() if "bias" in posterior else 0.0
    held = tree["constant_data"].to_dataset()
    nuisance = [posterior[name].to_numpy() if name in posterior else float(held[name]) for name in likelihood.nuisance]
    means, variances = [], []
    n = X.shape[0]
    for rows in np.array_split(np.arange(n), max(1, n * w.shape[1] // _BLOCK)):
        Phi = columns_at(tree, basis, X[rows], column, M)
        level, spread = likelihood.moments(offset[rows, None] + Phi @ w + bias, *nuisance)
        means.append(level.mean(axis=1))
        variances.append(np.broadcast_to(spread, level.shape).mean(axis=1) + level.var(axis=1))
    return np.concatenate(means), np.concatenate(variances)


def _warn_far(kernels: FloatArray) -> None:
    far = int(np.sum(kernels.max(axis=1) < _FAR))
    if far:
        tell(
            f"{far} of {len(kernels)} rows lie far from every relevance vector: there the prediction falls back to the "
            "bias, and its sd is too small; predict(..., augment=True) mends it for a regression.",
            UserWarning,
        )
