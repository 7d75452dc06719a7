"""Log predictive density of rows that were held out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from scipy.sparse import issparse
from scipy.special import log_expit, logsumexp

from bayes_sparse.common.progress import quiet
from bayes_sparse.inputs import basis as bases
from bayes_sparse.inputs import likelihoods
from bayes_sparse.inputs.frames import frame_parts, is_frame
from bayes_sparse.inputs.named_model import LikelihoodAtData
from bayes_sparse.inputs.table import features_of, in_words, plain_labels
from bayes_sparse.problem.design import FloatArray
from bayes_sparse.results.comparison.kinds import settings_of
from bayes_sparse.results.predict.new_rows import columns_at
from bayes_sparse.results.predict.predict import predict

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
    settings = settings_of(tree)
    if settings["model"] == "declared":
        raise ValueError(
            "Rows held out from a pm.Model of your own are not scored: set its pm.Data to them and use "
            "pm.compute_log_likelihood, or compare by loo."
        )
    if "offset" in tree["constant_data"]:
        raise ValueError("Rows held out from a fit with an offset are not scored, since theirs is not known; use loo.")
    likelihood = likelihoods.from_settings(settings["likelihood"])
    if likelihood.name in ("bernoulli", "categorical"):
        codes = _codes(tree, rows.y)
        if likelihood.name == "categorical" or "posterior" not in tree.children:
            return _of_classes(tree, rows.X, codes)
        return _averaged(tree, settings, likelihood, rows.X, codes.astype(float))
    y = rows.y.astype(float)
    wrong = likelihood.wrong(y)
    if wrong is not None:
        raise ValueError(f"The held-out targets must be {wrong} for a {likelihood.name} likelihood.")
    return _averaged(tree, settings, likelihood, rows.X, y)


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


def _averaged(
    tree: xr.DataTree, settings: dict[str, Any], likelihood: likelihoods.Likelihood, X: Any, y: FloatArray
) -> FloatArray:
    """The mixture over draws of the weights and of the nuisance parameters."""
    basis = bases.from_settings(settings["basis"])
    features, _, _ = features_of(X, settings["columns"])
    matrix = bases.check_dense(features.tocsr() if issparse(features) else features, basis)
    _check_length(matrix.shape[0], len(y))
    column, w, theta = _draws(tree, settings, likelihood)
    M = len(settings["vectors"]["w"][1])
    scores = []
    for some in np.array_split(np.arange(len(y)), max(1, len(y) * len(w) // _BLOCK)):
        eta = np.asarray(columns_at(tree, basis, matrix[some], column, M) @ w.T).T
        densities = _densities(likelihood, y[some], eta, theta)
        scores.append(logsumexp(densities, axis=0) - np.log(len(w)))
    return np.concatenate(scores)


def _densities(likelihood: likelihoods.Likelihood, y: FloatArray, eta: FloatArray, theta: FloatArray) -> FloatArray:
    """Log density of each target (S, n) at predictors (S, n) and logs of nuisance parameters (S, k)."""
    if likelihood.name == "normal":  # for which, as for two classes, nothing need be compiled
        from scipy.stats import norm  # here because it takes longer to import than a fit takes

        return np.asarray(norm.logpdf(y, eta, np.exp(theta)))
    if likelihood.name == "bernoulli":
        return np.asarray(log_expit(np.where(y == 1, eta, -eta)))
    at = LikelihoodAtData(likelihood, y)
    return np.stack([at(np.ascontiguousarray(one), logs)[0] for one, logs in zip(eta, theta, strict=True)])


def _draws(
    tree: xr.DataTree, settings: dict[str, Any], likelihood: likelihoods.Likelihood
) -> tuple[NDArray[np.intp], FloatArray, FloatArray]:
    """Columns, draws of their weights (S, k), and of the logs of the nuisance parameters."""
    if "posterior" not in tree.children:
        return _from_moments(tree, likelihood)
    posterior = tree["posterior"].to_dataset().stack(sample=("chain", "draw"))
    count = posterior.sizes["sample"]
    posterior = posterior.isel(sample=np.linspace(0, count - 1, min(count, _DRAWS)).round().astype(int))
    labels = settings["vectors"]["w"][1]
    column, parts = [], []
    if "w" in posterior:
        place = {str(label): j for j, label in enumerate(labels)}
        column += [place[str(label)] for label in posterior["basis"].to_numpy().tolist()]
        parts.append(posterior["w"].transpose("sample", "basis").to_numpy())
    if "bias" in posterior:
        column.append(len(labels))
        parts.append(posterior["bias"].to_numpy()[:, None])
    held = tree["constant_data"].to_dataset()
    theta = [
        np.broadcast_to((posterior if name in posterior else held)[name].to_numpy(), (posterior.sizes["sample"],))
        for name in likelihood.nuisance
    ]
    empty = np.empty((posterior.sizes["sample"], 0))
    return (
        np.array(column, dtype=np.intp),
        np.concatenate([empty, *parts], axis=1),
        np.log(np.stack(theta, axis=1)) if theta else empty,
    )


def _from_moments(
    tree: xr.DataTree, likelihood: likelihoods.Likelihood
) -> tuple[NDArray[np.intp], FloatArray, FloatArray]:
    """The same for a fit without draws: drawn here from its normal, or the single point of a plug-in."""
    evidence = tree["evidence"].to_dataset()
    factor, mean = evidence["covariance_factor"].to_numpy(), evidence["coordinate_mean"].to_numpy()
    count = _DRAWS if np.any(factor) else 1
    # A factor over weights and nuisance parameters together has more columns than rows: the same normal.
    w = mean + np.random.default_rng(0).standard_normal((count, factor.shape[1])) @ factor.T
    logs = np.array([np.log(float(evidence[name])) for name in likelihood.nuisance])
    return evidence["column"].to_numpy(), w, np.broadcast_to(logs, (count, len(logs)))


def _check_length(found: int, given: int) -> None:
    if found != given:
        raise ValueError(f"Held-out X has {found} rows and y has {given} values; they must be as many.")
