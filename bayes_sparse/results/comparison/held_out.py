"""Log predictive density of rows that were held out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import issparse
from scipy.special import logsumexp

from bayes_sparse.common.progress import quiet
from bayes_sparse.common.types import FloatArray, IntArray
from bayes_sparse.inputs.basis import check_dense
from bayes_sparse.inputs.frames import frame_parts, is_frame, values_of
from bayes_sparse.inputs.new_rows import features_of
from bayes_sparse.inputs.table import Table, in_words, plain_labels
from bayes_sparse.problem.quadrature import log_average
from bayes_sparse.results.predict.new_rows import columns_at, drawn_weights
from bayes_sparse.results.predict.predict import predict_named
from bayes_sparse.trees.read import StoredFit
from bayes_sparse.trees.spread import variance_along

__all__ = ["HeldOut", "held_out_rows", "log_scores"]

_DRAWS = 1000  # of the weights that a density is averaged over
_BLOCK = 2**21  # predictors held at once while averaging


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Rows held out: features as they were given, their targets, and the known part of their predictors."""

    X: Any
    y: NDArray[Any]
    offset: FloatArray | None = None


def held_out_rows(data: Any, target: str | None, called: str | None = None) -> HeldOut:
    """Features and targets of the rows, from the forms that `fit` takes; the fit ``called`` its own target so."""
    if is_frame(data):
        parts, _, _ = frame_parts(data)
        target = called if target is None and called in parts else target
        if target is None or str(target) not in parts:
            raise ValueError(f"Name the target column of the held-out rows: target=..., one of {in_words(parts)}.")
        return HeldOut(data, np.asarray(parts[str(target)]))
    if not isinstance(data, tuple) or len(data) != 2:
        raise TypeError("Held-out `data` are (X, y), or a DataFrame or Dataset with target=....")
    y = values_of(data[1])
    y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
    if y.ndim != 1 or not len(y) or bool(pd.isna(y).any()):
        raise ValueError(f"Held-out targets must be one value per row and none missing, got the shape {y.shape}.")
    return HeldOut(data[0], y)


def log_scores(fit: StoredFit, rows: HeldOut) -> FloatArray:
    """Log of the density of each target, or of its class's probability, averaged over the posterior.

    Of an evidence fit over the normal posterior of the predictor, the nuisance parameters at their estimates: exactly,
    without draws. Of draws by NUTS, corrected ones, and those of a posterior that is not normal, over the draws.
    """
    if fit.declared:
        raise ValueError(
            "Rows held out from a pm.Model of your own are not scored: set its pm.Data to them and use "
            "pm.compute_log_likelihood, or compare by loo."
        )
    if rows.offset is None and "offset" in fit.constant:
        raise ValueError("Rows held out from a fit with an offset are not scored, since theirs is not known; use loo.")
    likelihood = fit.likelihood
    if likelihood.targets == "classes":
        return _of_classes(fit, rows.X, _codes(fit, rows.y))
    y = _codes(fit, rows.y).astype(float) if likelihood.targets == "two classes" else rows.y.astype(float)
    wrong = likelihood.wrong(y)
    if wrong is not None:
        raise ValueError(f"The held-out targets must be {wrong} for a {likelihood.name} likelihood.")
    needed = None if isinstance(rows.X, Table) else fit.needed[0]  # a table read already has all columns
    new = features_of(rows.X, fit.columns, fit.encodings[0], needed=needed)
    _check_length(new.given, len(y))
    features, y = new.X, y[new.places]
    matrix = check_dense(features.tocsr() if issparse(features) else features, fit.basis)
    _check_length(matrix.shape[0], len(y))
    offset = np.zeros(len(y)) if rows.offset is None else rows.offset
    return (_over_draws if _has_better_draws(fit) else _over_normal)(fit, matrix, y, offset)


def _has_better_draws(fit: StoredFit) -> bool:
    """Whether the draws of a tree are of something that its moments do not tell."""
    if fit.posterior is None or fit.sampled or fit.corrected:
        return fit.posterior is not None
    return fit.by_direction and fit.attributes.get("prior") != "gaussian"


def _codes(fit: StoredFit, y: NDArray[Any]) -> NDArray[np.intp]:
    """Labels as the places of the fit's classes."""
    known = [str(label) for label in fit.constant["class"].to_numpy().tolist()]
    labels = [str(label) for label in plain_labels(y).tolist()]
    strange = sorted(set(labels) - set(known))
    if strange:
        raise ValueError(f"The held-out targets have classes that the fit has not: {in_words(strange)}.")
    return np.array([known.index(label) for label in labels], dtype=np.intp)


def _of_classes(fit: StoredFit, X: Any, codes: NDArray[np.intp]) -> FloatArray:
    with quiet():
        probability = predict_named(fit, X)["probability"].to_numpy()
    _check_length(len(probability), len(codes))
    return np.asarray(np.log(np.maximum(probability[np.arange(len(codes)), codes], np.finfo(float).tiny)))


def _over_normal(fit: StoredFit, X: Any, y: FloatArray, offset: FloatArray) -> FloatArray:
    """In closed form for a normal likelihood, by quadrature along the predictor for the others."""
    assert fit.evidence is not None
    Phi = columns_at(fit, X, fit.evidence["column"].to_numpy())
    mean = offset + Phi @ fit.evidence["coordinate_mean"].to_numpy()
    variance = variance_along(fit.evidence, Phi)
    logs = np.log([[float(fit.evidence[name]) for name in fit.likelihood.nuisance]])
    if fit.likelihood.normal:
        total = variance + np.exp(2 * logs[0, 0])
        return np.asarray(-0.5 * ((y - mean) ** 2 / total + np.log(2 * np.pi * total)))

    def log_density(eta: FloatArray, rows: IntArray) -> FloatArray:
        targets = np.repeat(y[rows], eta.shape[1])  # every node is an observation of its own
        return fit.likelihood.log_density(targets, eta.reshape(1, -1), logs).reshape(eta.shape)

    return log_average(log_density, mean, variance)


def _over_draws(fit: StoredFit, X: Any, y: FloatArray, offset: FloatArray) -> FloatArray:
    """The mixture over draws of the weights and of the nuisance parameters."""
    column, w, nuisance = drawn_weights(fit, _DRAWS, np.random.default_rng(0))
    logs = np.log(np.stack(nuisance, axis=1)) if nuisance else np.empty((len(w), 0))
    scores = []
    for some in np.array_split(np.arange(len(y)), max(1, len(y) * len(w) // _BLOCK)):
        eta = offset[some] + np.asarray(columns_at(fit, X[some], column) @ w.T).T
        densities = fit.likelihood.log_density(y[some], eta, logs)
        scores.append(logsumexp(densities, axis=0) - np.log(len(w)))
    return np.concatenate(scores)


def _check_length(found: int, given: int) -> None:
    if found != given:
        raise ValueError(f"Held-out X has {found} rows and y has {given} values; they must be as many.")
