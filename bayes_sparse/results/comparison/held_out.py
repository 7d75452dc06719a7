"""Log predictive density of rows that were held out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from scipy.sparse import issparse
from scipy.special import logsumexp

from bayes_sparse.common.progress import quiet
from bayes_sparse.common.types import FloatArray
from bayes_sparse.inputs.basis import check_dense
from bayes_sparse.inputs.frames import frame_parts, is_frame
from bayes_sparse.inputs.table import features_of, in_words, plain_labels
from bayes_sparse.results.predict.new_rows import columns_at, drawn_weights
from bayes_sparse.results.predict.predict import predict
from bayes_sparse.trees.read import StoredFit, stored

__all__ = ["HeldOut", "held_out_rows", "log_scores"]

_DRAWS = 1000  # of the weights that a density is averaged over
_BLOCK = 2**21  # predictors held at once while averaging


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Rows held out: features as they were given, and their targets."""

    X: Any
    y: NDArray[Any]


def held_out_rows(data: Any, target: str | None) -> HeldOut:
    """Features and targets of the rows, from the forms that `fit` takes."""
    if is_frame(data):
        parts, _, _ = frame_parts(data)
        if target is None or str(target) not in parts:
            raise ValueError(f"Name the target column of the held-out rows: target=..., one of {in_words(parts)}.")
        return HeldOut(data, np.asarray(parts[str(target)]))
    if not isinstance(data, tuple) or len(data) != 2:
        raise TypeError("Held-out `data` are (X, y), or a DataFrame or Dataset with target=....")
    y = data[1].to_numpy() if hasattr(data[1], "to_numpy") else np.asarray(data[1])
    y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
    if y.ndim != 1 or not len(y) or bool(pd.isna(y).any()):
        raise ValueError(f"Held-out targets must be one value a row and none missing, got the shape {y.shape}.")
    return HeldOut(data[0], y)


def log_scores(tree: xr.DataTree, rows: HeldOut) -> FloatArray:
    """Log of the density of each target, or of its class's probability, averaged over the posterior."""
    fit = stored(tree)
    if fit.declared:
        raise ValueError(
            "Rows held out from a pm.Model of your own are not scored: set its pm.Data to them and use "
            "pm.compute_log_likelihood, or compare by loo."
        )
    if "offset" in tree["constant_data"]:
        raise ValueError("Rows held out from a fit with an offset are not scored, since theirs is not known; use loo.")
    likelihood = fit.likelihood
    if likelihood.targets in ("two classes", "classes"):
        codes = _codes(tree, rows.y)
        if likelihood.targets == "classes" or "posterior" not in tree.children:
            return _of_classes(tree, rows.X, codes)
        return _averaged(fit, rows.X, codes.astype(float))
    y = rows.y.astype(float)
    wrong = likelihood.wrong(y)
    if wrong is not None:
        raise ValueError(f"The held-out targets must be {wrong} for a {likelihood.name} likelihood.")
    return _averaged(fit, rows.X, y)


def _codes(tree: xr.DataTree, y: NDArray[Any]) -> NDArray[np.intp]:
    """Labels as the places of the fit's classes."""
    known = [str(label) for label in tree["constant_data"]["class"].to_numpy().tolist()]
    labels = [str(label) for label in plain_labels(y).tolist()]
    strange = sorted(set(labels) - set(known))
    if strange:
        raise ValueError(f"The held-out targets have classes that the fit has not: {in_words(strange)}.")
    return np.array([known.index(label) for label in labels], dtype=np.intp)


def _of_classes(tree: xr.DataTree, X: Any, codes: NDArray[np.intp]) -> FloatArray:
    with quiet():
        probability = predict(tree, X)["probability"].to_numpy()
    _check_length(len(probability), len(codes))
    return np.asarray(np.log(np.maximum(probability[np.arange(len(codes)), codes], np.finfo(float).tiny)))


def _averaged(fit: StoredFit, X: Any, y: FloatArray) -> FloatArray:
    """The mixture over draws of the weights and of the nuisance parameters."""
    features, _, _ = features_of(X, fit.columns)
    matrix = check_dense(features.tocsr() if issparse(features) else features, fit.basis)
    _check_length(matrix.shape[0], len(y))
    column, w, nuisance = drawn_weights(fit, _DRAWS, np.random.default_rng(0))
    logs = np.log(np.stack(nuisance, axis=1)) if nuisance else np.empty((len(w), 0))
    scores = []
    for some in np.array_split(np.arange(len(y)), max(1, len(y) * len(w) // _BLOCK)):
        eta = np.asarray(columns_at(fit, matrix[some], column) @ w.T).T
        densities = fit.likelihood.log_density(y[some], eta, logs)
        scores.append(logsumexp(densities, axis=0) - np.log(len(w)))
    return np.concatenate(scores)


def _check_length(found: int, given: int) -> None:
    if found != given:
        raise ValueError(f"Held-out X has {found} rows and y has {given} values; they must be as many.")
