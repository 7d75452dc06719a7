"""Class probabilities of new rows, averaged over the weights of all classes together, never plug-in."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from scipy.sparse import issparse

from bayes_sparse.common.types import FloatArray, IntArray
from bayes_sparse.inputs.basis import check_dense
from bayes_sparse.inputs.table import class_features_of, features_of
from bayes_sparse.results.predict.far import with_far
from bayes_sparse.results.predict.new_rows import columns_at, columns_drawn
from bayes_sparse.trees.read import StoredFit, was_sampled

__all__ = ["predict_classes"]

_DRAWS = 1000  # of the weights: the average is off by 3% of their spread
_BLOCK = 2**21  # numbers held at once while averaging


def predict_classes(fit: StoredFit, X: Any, random_seed: int) -> xr.Dataset:
    """Probabilities (rows, class) and labels.

    Parameters
    ----------
    fit : StoredFit
        With several classes.
    X : array, DataFrame, dict ...
        New rows.
    random_seed : int
        For draws from an evidence fit.
    """
    classes, columns = fit.constant["class"].to_numpy(), fit.columns
    own = bool(columns) and isinstance(columns[0], list)
    if own:
        parts, rows, dim = class_features_of(X, classes, columns)
    else:
        shared, rows, dim = features_of(X, columns)
        parts = [shared] * len(classes)
    features = [check_dense(part.tocsr() if issparse(part) else part, fit.basis) for part in parts]
    column, sizes, drawn = _draws(fit, classes, random_seed)
    starts, M = np.cumsum([0, *sizes]), sum(sizes)
    probability = np.empty((len(rows), len(classes)))
    for block in np.array_split(np.arange(len(rows)), max(1, len(rows) * len(drawn) * len(classes) // _BLOCK)):
        eta = np.zeros((len(block), len(drawn), len(classes)))
        for c, part in enumerate(features):
            # class c's own basis functions, and its bias, which is the c-th beyond them all
            at = np.flatnonzero(((column >= starts[c]) & (column < starts[c + 1])) | (column == M + c))
            local = np.where(column[at] < M, column[at] - starts[c], sizes[c])
            eta[..., c] = columns_at(fit, part[block], local, sizes[c]) @ drawn[:, at].T
        probability[block] = fit.likelihood.moments(eta)[0].mean(axis=1)
    found = xr.Dataset(
        {"probability": ((dim, "class"), probability), "label": ((dim,), classes[probability.argmax(axis=1)])},
        coords={dim: rows, "class": classes},
    )
    return with_far(found, fit, features[0], dim)


def _draws(fit: StoredFit, classes: Any, random_seed: int) -> tuple[IntArray, list[int], FloatArray]:
    """Columns, the number of basis functions of each class, and draws of the columns' weights."""
    moments = fit.evidence is not None and not was_sampled(fit.tree)
    group = fit.tree["evidence" if moments else "posterior"].to_dataset()
    sizes = [int(np.sum(fit.constant["of_class"].to_numpy() == label)) for label in classes]
    if moments:
        factor = group["covariance_factor"].to_numpy()
        z = np.random.default_rng(random_seed).standard_normal((_DRAWS, factor.shape[1]))
        return group["column"].to_numpy(), sizes, group["coordinate_mean"].to_numpy() + z @ factor.T
    group = group.stack(sample=("chain", "draw"))
    column, M = columns_drawn(fit), len(fit.vectors["w"][1])
    drawn = np.empty((group.sizes["sample"], 0))
    if len(column):
        drawn = group["w"].transpose("sample", "basis").to_numpy()
    if "bias" in group:
        bias = group["bias"].transpose("sample", "class").to_numpy()
        drawn, column = np.concatenate([drawn, bias], axis=1), np.append(column, M + np.arange(bias.shape[1]))
    return column, sizes, drawn
