"""Predictions from a fitted tree: integrated over the weights, never plug-in.

An evidence tree predicts from its moments: the predictor of a new row is normal, and the likelihood's mean and variance
are averaged over it: in closed form for a normal likelihood, by Gauss-Hermite quadrature for others, by quasi-random
points for several classes. A NUTS tree predicts by averaging over its draws.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pymc as pm
import xarray as xr
from scipy.sparse import issparse

from bayes_sparse.common.types import FloatArray
from bayes_sparse.common.warnings import tell
from bayes_sparse.inputs.bambi_model import BambiModel
from bayes_sparse.inputs.basis import check_dense
from bayes_sparse.inputs.chunks import is_chunked
from bayes_sparse.inputs.encoding import Missing, Unseen
from bayes_sparse.inputs.likelihoods import ordinal
from bayes_sparse.inputs.new_rows import features_of
from bayes_sparse.inputs.table import vector_of
from bayes_sparse.problem.quadrature import average_in_blocks
from bayes_sparse.results.predict.augment import augmentation
from bayes_sparse.results.predict.far import with_far
from bayes_sparse.results.predict.in_chunks import predict_chunks
from bayes_sparse.results.predict.new_rows import columns_at, columns_drawn
from bayes_sparse.results.predict.own_model import predict_declared
from bayes_sparse.results.predict.several_classes import predict_classes
from bayes_sparse.trees.damage import check_moments, reads_a_fit
from bayes_sparse.trees.read import StoredFit, stored, was_sampled
from bayes_sparse.trees.spread import variance_along

__all__ = ["predict", "predict_named"]

type _Moments = Callable[..., tuple[FloatArray, FloatArray]]

_BLOCK = 2**21  # numbers held at once while averaging


@reads_a_fit
def predict(
    tree: xr.DataTree,
    X: Any = None,
    *,
    model: pm.Model | BambiModel | None = None,
    offset: Any = None,
    missing: Missing | None = None,
    unseen: Unseen = "refuse",
    augment: bool = False,
    basis: Callable[..., Any] | None = None,
    trust: bool = False,
    random_seed: int = 0,
) -> xr.Dataset:
    """Predict new observations.

    Parameters
    ----------
    tree : xarray.DataTree
        From `bayes_sparse.fit`, also one read back with `xarray.open_datatree`.
    X : array, sparse matrix, DataFrame, Dataset or dict
        New rows with the columns of the fit, dense or sparse as you like, one row by itself as a vector; by class where
        the fit's features were. A frame may lack columns that the fit has pruned. Rows in chunks are predicted when
        what is returned is looked at or stored, chunk by chunk. For a `pm.Model` of your own: new
        values for its `pm.Data` by name, or None for the rows it holds.
    model : pymc.Model or bambi.Model, optional
        Your own model, when the tree came from one.
    offset : array, optional
        Known part of the predictor for the new rows.
    missing : "refuse", "drop" or "mean", optional
        What to do with missing values, as in `fit`; None for what the fit did. Rows left out are not in the answer.
    unseen : "refuse" or "ignore"
        What to do with levels of a category that the fit has not seen: refuse them, or let the column's average over
        the rows fitted stand in.
    augment : bool
        For a regression with an rbf basis: add one basis function on each new row, so that the sd grows away from the
        data instead of shrinking (Rasmussen & Quinonero-Candela 2005).
    basis : callable, optional
        The function behind the basis of a fit that was read from a file: a file names it, and a name alone is not
        called. Not needed in the process that made the fit.
    trust : bool
        Import and call the function that the file names: only for files from people you trust.
    random_seed : int
        Only used for a `pm.Model` of your own whose likelihood's mean PyMC does not know.

    Returns
    -------
    xarray.Dataset
        ``mean`` and ``sd`` of a new observation, parameter and noise uncertainty included; for classes ``probability``
        (obs, class) and ``label``; for ordered levels also ``probability`` (obs, level). With an rbf basis also
        ``far``: rows farther from the training rows than those are from each other; the fit has seen nothing there,
        however sure it sounds. Other bases do not vanish anywhere: what they predict far away is an extrapolation,
        whose sd grows with it.
    """
    fit = stored(tree, "predict", basis, trust=trust)
    if fit.declared and (missing is not None or unseen != "refuse"):
        raise ValueError("A pm.Model of your own reads its data itself: leave out `missing` and `unseen`.")
    if fit.declared:
        return predict_declared(fit, model, X, offset, random_seed)
    return predict_named(fit, X, offset, augment=augment, missing=missing, unseen=unseen)


def predict_named(
    fit: StoredFit,
    X: Any,
    offset: Any = None,
    *,
    augment: bool = False,
    missing: Missing | None = None,
    unseen: Unseen = "refuse",
    warn: bool = True,
) -> xr.Dataset:
    """The same for the fit of a named model; ``warn`` of rows far from the data."""
    how = {"missing": missing, "unseen": unseen}
    if X is None:
        raise ValueError(f"Nothing to predict: pass new rows with the columns {fit.columns[:6]}.")
    if is_chunked(X):
        own = partial(_in_memory, augment=augment, missing=missing, unseen=unseen)
        return predict_chunks(fit, X, offset, own)
    if fit.evidence is not None:
        check_moments(fit.evidence, fit.width)
    if fit.likelihood.targets == "classes":
        if offset is not None:
            raise ValueError("With several classes there is no `offset`: leave it out.")
        return predict_classes(fit, X, how, warn=warn)
    needed = None if isinstance(X, np.ndarray) else fit.needed[0]  # a frame may lack columns, an array has them all
    new = features_of(X, fit.columns, fit.encodings[0], needed=needed, missing=missing, unseen=unseen)
    features, rows, dim = new.X, new.rows, new.dim
    if offset is None and warn and "offset" in fit.constant:
        tell(
            "The fit had an offset, and these rows have none: give theirs by `offset=`; offset=0 says that it is zero."
        )
    shift = np.zeros(len(rows)) if offset is None else vector_of(offset, new.given, "offset")[new.places]
    matrix = check_dense(features.tocsr() if issparse(features) else features, fit.basis)
    if augment and was_sampled(fit.tree):
        raise ValueError("augment=True mends an evidence fit; NUTS draws are predicted from as they are: leave it out.")

    def averaged(moments: _Moments) -> tuple[FloatArray, FloatArray]:
        if fit.evidence is not None and not was_sampled(fit.tree):
            return _from_moments(fit, matrix, shift, augment, moments)
        return _from_draws(fit, matrix, shift, moments)

    mean, variance = averaged(fit.likelihood.moments)
    coords = {dim: rows}
    if fit.likelihood.targets == "two classes":
        classes = fit.constant["class"].to_numpy()
        probability = np.stack([1 - mean, mean], axis=1)
        found = xr.Dataset(
            {
                "probability": ((dim, "class"), probability),
                "label": ((dim,), classes[(mean > 0.5).astype(int)]),
            },
            coords={**coords, "class": classes},
        )
    else:
        found = xr.Dataset({"mean": ((dim,), mean), "sd": ((dim,), np.sqrt(variance))}, coords=coords)
    if isinstance(fit.likelihood, ordinal):
        found["probability"] = ((dim, "level"), np.stack([averaged(own)[0] for own in _levels(fit.likelihood)], axis=1))
    return with_far(found, fit, matrix, dim, warn=warn and not augment)


def _in_memory(fit: StoredFit, X: Any, offset: Any, **how: Any) -> xr.Dataset:
    """Of one chunk; of rows left out there would be no place in the whole."""
    if how["missing"] == "drop" or (how["missing"] is None and fit.encodings[0].missing == "drop"):
        how["missing"] = "refuse"
    return predict_named(fit, X, offset, warn=False, **how)


def _levels(likelihood: ordinal) -> list[_Moments]:
    """For each level, whether an observation is at it, in the place of its moments."""

    def at(level: int, eta: FloatArray, *nuisance: Any) -> tuple[FloatArray, FloatArray]:
        return likelihood.probabilities(eta, *nuisance)[level], np.zeros_like(eta)

    return [partial(at, level) for level in range(len(likelihood.nuisance) + 2)]


def _from_moments(
    fit: StoredFit, X: Any, offset: FloatArray, augment: bool, moments: _Moments
) -> tuple[FloatArray, FloatArray]:
    assert fit.evidence is not None
    evidence, likelihood = fit.evidence, fit.likelihood
    column = evidence["column"].to_numpy()
    Phi = columns_at(fit, X, column)
    mean = offset + Phi @ evidence["coordinate_mean"].to_numpy()
    variance = variance_along(evidence, Phi)
    nuisance = [float(evidence[name]) for name in likelihood.nuisance]
    if augment:
        train = fit.constant["X"].to_numpy() if fit.basis.kernel else X
        more, wider = augmentation(fit, X, columns_at(fit, train, column), Phi)
        mean, variance = mean + more, variance + wider
    if likelihood.normal:
        return mean, variance + nuisance[0] ** 2
    return average_in_blocks(lambda eta: moments(eta, *nuisance), mean, variance)


def _from_draws(fit: StoredFit, X: Any, offset: FloatArray, moments: _Moments) -> tuple[FloatArray, FloatArray]:
    posterior = fit.tree["posterior"].to_dataset().stack(sample=("chain", "draw"))
    column = columns_drawn(fit)
    w = (
        posterior["w"].transpose("basis", "sample").to_numpy()
        if len(column)
        else np.empty((0, posterior.sizes["sample"]))
    )
    bias = posterior["bias"].to_numpy() if "bias" in posterior else 0.0
    names = fit.likelihood.nuisance
    nuisance = [posterior[name].to_numpy() if name in posterior else float(fit.constant[name]) for name in names]
    means, variances = [], []
    n = X.shape[0]
    for rows in np.array_split(np.arange(n), max(1, n * w.shape[1] // _BLOCK)):
        Phi = columns_at(fit, X[rows], column)
        level, spread = moments(offset[rows, None] + Phi @ w + bias, *nuisance)
        means.append(level.mean(axis=1))
        variances.append(np.broadcast_to(spread, level.shape).mean(axis=1) + level.var(axis=1))
    return np.concatenate(means), np.concatenate(variances)
