"""Class probabilities of new rows, averaged over the weights of all classes together, never plug-in."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from scipy.sparse import issparse

from bayes_sparse.common.types import FloatArray, IntArray
from bayes_sparse.inputs.basis import check_dense
from bayes_sparse.inputs.likelihoods import categorical
from bayes_sparse.inputs.new_rows import class_features_of, features_of
from bayes_sparse.problem.class_quadrature import average_probabilities
from bayes_sparse.results.predict.far import with_far
from bayes_sparse.results.predict.new_rows import columns_at, columns_drawn
from bayes_sparse.trees.read import StoredFit, was_sampled

__all__ = ["predict_classes"]

_BLOCK = 2**21  # numbers held at once while averaging


def predict_classes(fit: StoredFit, X: Any, how: dict[str, Any], *, warn: bool = True) -> xr.Dataset:
    """Probabilities (rows, class) and labels.

    Parameters
    ----------
    fit : StoredFit
        With several classes.
    X : array, DataFrame, dict ...
        New rows.
    how : dict
        What to do with missing values, and with levels that the fit has not seen.
    warn : bool
        Of rows far from the data.
    """
    classes, columns = fit.constant["class"].to_numpy(), fit.columns
    if fit.by_class:
        parts, rows, dim = class_features_of(X, classes, columns, fit.encodings, **how)
    else:
        new = features_of(X, columns, fit.encodings[0], needed=fit.needed[0], **how)
        shared, rows, dim = new.X, new.rows, new.dim
        parts = [shared] * len(classes)
    features = [check_dense(part.tocsr() if issparse(part) else part, fit.basis) for part in parts]
    moments = fit.evidence is not None and not was_sampled(fit.tree)
    probability = (_from_moments if moments else _from_draws)(fit, features, len(rows))
    found = xr.Dataset(
        {"probability": ((dim, "class"), probability), "label": ((dim,), classes[probability.argmax(axis=1)])},
        coords={dim: rows, "class": classes},
    )
    return with_far(found, fit, features[0], dim, warn=warn)


def _from_moments(fit: StoredFit, features: list[Any], n: int) -> FloatArray:
    """The predictors of a row are normal together: their mean and covariance, then the average over them."""
    assert fit.evidence is not None
    assert isinstance(fit.likelihood, categorical)
    mean, factor = fit.evidence["coordinate_mean"].to_numpy(), fit.evidence["covariance_factor"].to_numpy()
    own = _by_class(fit, fit.evidence["column"].to_numpy())
    out = []
    for rows in np.array_split(np.arange(n), max(1, n * len(own) * factor.shape[1] // _BLOCK)):
        level, spread = np.zeros((len(rows), len(own))), np.zeros((len(rows), len(own), factor.shape[1]))
        for c, (part, (at, local, M)) in enumerate(zip(features, own, strict=True)):
            columns = columns_at(fit, part[rows], local, M)
            level[:, c], spread[:, c] = columns @ mean[at], columns @ factor[at]
        out.append(average_probabilities(level, spread @ spread.transpose(0, 2, 1), fit.likelihood.link))
    return np.concatenate(out)


def _from_draws(fit: StoredFit, features: list[Any], n: int) -> FloatArray:
    """The average over the draws of a tree."""
    posterior = fit.tree["posterior"].to_dataset().stack(sample=("chain", "draw"))
    column, M = columns_drawn(fit), len(fit.vectors["w"][1])
    drawn = np.empty((posterior.sizes["sample"], 0))
    if len(column):
        drawn = posterior["w"].transpose("sample", "basis").to_numpy()
    if "bias" in posterior:
        bias = posterior["bias"].transpose("sample", "class").to_numpy()
        drawn, column = np.concatenate([drawn, bias], axis=1), np.append(column, M + np.arange(bias.shape[1]))
    own = _by_class(fit, column)
    out = []
    for rows in np.array_split(np.arange(n), max(1, n * len(drawn) * len(own) // _BLOCK)):
        eta = np.zeros((len(rows), len(drawn), len(own)))
        for c, (part, (at, local, size)) in enumerate(zip(features, own, strict=True)):
            eta[..., c] = columns_at(fit, part[rows], local, size) @ drawn[:, at].T
        out.append(fit.likelihood.moments(eta)[0].mean(axis=1))
    return np.concatenate(out)


def _by_class(fit: StoredFit, column: IntArray) -> list[tuple[IntArray, IntArray, int]]:
    """For each class: which of the columns are its own, their places among its basis functions, and how many those are.

    The bias of the c-th class is the c-th beyond all basis functions, and last among its own.
    """
    classes = fit.constant["class"].to_numpy()
    sizes = [int(np.sum(fit.constant["of_class"].to_numpy() == label)) for label in classes]
    starts, M = np.cumsum([0, *sizes]), sum(sizes)
    out = []
    for c, size in enumerate(sizes):
        at = np.flatnonzero(((column >= starts[c]) & (column < starts[c + 1])) | (column == M + c))
        out.append((at, np.where(column[at] < M, column[at] - starts[c], size), size))
    return out
