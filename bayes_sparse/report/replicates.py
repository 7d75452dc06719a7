"""Data drawn anew from a fit, ranks of the observations among them, and weights without each observation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pymc as pm
from numpy.typing import NDArray
from scipy.sparse import issparse
from scipy.special import betaincinv

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inputs.bambi_model import BambiModel, graph_of
from bayes_sparse.inputs.basis import check_dense
from bayes_sparse.inputs.new_rows import features_of
from bayes_sparse.results.importance import log_densities
from bayes_sparse.results.predict.new_rows import columns_at, drawn_weights
from bayes_sparse.results.relevance import unpruned
from bayes_sparse.trees.centring import recentred
from bayes_sparse.trees.read import StoredFit

__all__ = ["band", "coverage", "left_out_weights", "ranks", "reliability", "replicates", "replicates_by_pymc"]

_BINS = 10


def reliability(truth: NDArray[np.bool_], probability: FloatArray, bins: int = _BINS) -> pd.DataFrame:
    """Observed frequency by predicted probability, in bins of equal counts.

    Returns
    -------
    DataFrame
        Mean probability, frequency and the ends of its 90% interval (Jeffreys), and the size of every bin.
    """
    order = np.argsort(probability, kind="stable")
    rows = []
    for some in np.array_split(order, min(bins, max(len(order) // 5, 1))):
        n, hits = len(some), int(truth[some].sum())
        ends = [float(betaincinv(hits + 0.5, n - hits + 0.5, level)) for level in (0.05, 0.95)]
        rows.append((float(probability[some].mean()), hits / n, *ends, n))
    return pd.DataFrame(rows, columns=["probability", "frequency", "low", "high", "n"])


def ranks(y: FloatArray, drawn: FloatArray, weights: FloatArray | None = None) -> FloatArray:
    """Where each observation lies among its draws (draws, rows), from 0 to 1: uniform if these are calibrated.

    Ties, as of counts, are broken by chance, so that counts are uniform too. ``weights`` of the same shape, which sum
    to 1 over the draws, count a draw for more or less than the others.
    """
    share = np.full(drawn.shape, 1 / len(drawn)) if weights is None else weights
    below, same = np.sum(share * (drawn < y), axis=0), np.sum(share * (drawn == y), axis=0)
    u = np.random.default_rng(0).uniform(size=len(y))
    own = 1 / (len(drawn) + 1)  # the observation is one of them, so that no rank is 0 or 1
    return np.asarray((1 - own) * (below + u * same) + own * u)


def coverage(rank: FloatArray, levels: tuple[float, ...] = (0.5, 0.9, 0.95)) -> dict[float, float]:
    """How many observations lie in the central interval of each level."""
    return {level: float(np.mean(np.abs(rank - 0.5) <= level / 2)) for level in levels}


def band(n: int, level: float = 0.95) -> float:
    """How far the distribution function of n uniform values may be from the diagonal, anywhere (Massart 1990)."""
    return float(np.sqrt(np.log(2 / (1 - level)) / (2 * n)))


_LARGEST = 4_000_000  # weights computed, or observations drawn where every draw has its own


def left_out_weights(fit: StoredFit) -> FloatArray | None:
    """Pareto-smoothed weights (draws, rows) towards the posterior without each row; None where there are too many.

    The draws of an evidence fit are weighted towards the exact posterior at its hyper-parameters in the same go
    (Magnusson et al. 2019).
    """
    if fit.posterior is None or not fit.has_likelihood:
        return None
    pointwise = next(iter(fit.tree["log_likelihood"].to_dataset().data_vars.values()))
    values = pointwise.transpose("chain", "draw", ...).to_numpy()
    log_likelihood = values.reshape(values.shape[0] * values.shape[1], -1)
    if log_likelihood.size > _LARGEST:
        return None
    log_ratio = -log_likelihood
    if not fit.sampled:
        log_p, log_q = (part.to_numpy().reshape(-1, 1) for part in log_densities(fit.tree))
        log_ratio = log_ratio + (log_p - log_q)
    from arviz_stats.base.array import array_stats  # takes most of a second, and fitting does not need it

    arviz: Any = array_stats  # it takes the logarithms of 1/weight, and gives those of weights that sum to 1
    return np.exp(np.stack([arviz.psislw(-column)[0] for column in log_ratio.T], axis=1))


_DRAWS = 500  # data sets drawn
_BY_PYMC = 200  # the same where PyMC draws them


def replicates(fit: StoredFit, X: Any, *, every: bool = False) -> FloatArray:
    """Draw data sets (draws, rows) from a fit of a named model with one predictor an observation.

    With ``every`` one data set for each draw of the posterior, in their order, if they are not too many.
    """
    rng, likelihood = np.random.default_rng(0), fit.likelihood
    features = features_of(X, fit.columns, fit.encodings[0]).X
    matrix = check_dense(features.tocsr() if issparse(features) else features, fit.basis)
    most = max(_DRAWS, _LARGEST // matrix.shape[0]) if every and fit.posterior is not None else _DRAWS
    column, w, nuisance = drawn_weights(fit, most, rng)
    eta = np.asarray(columns_at(fit, matrix, column) @ w.T).T
    if "offset" in fit.constant and fit.constant["offset"].size == eta.shape[1]:
        eta = eta + fit.constant["offset"].to_numpy()
    if likelihood.targets in ("two classes", "classes"):
        raise ValueError(
            f"Observations of a {likelihood.name} likelihood are classes, and are checked by their probability."
        )
    drawn: FloatArray = likelihood.draw(eta, rng, *(values[:, None] for values in nuisance))
    return drawn


def replicates_by_pymc(fit: StoredFit, model: pm.Model | BambiModel) -> FloatArray:
    """Draw data sets (draws, rows) from a fit of the user's own model, at the rows it holds."""
    whole = recentred(unpruned(fit.tree) if fit.vectors else fit.tree)
    step = max(1, whole["posterior"].sizes["draw"] * whole["posterior"].sizes["chain"] // _BY_PYMC)
    with graph_of(model):
        drawn = pm.sample_posterior_predictive(
            whole["posterior"].to_dataset().isel(draw=slice(None, None, step)), random_seed=0, progressbar=False
        )
    first = next(iter(drawn["posterior_predictive"].to_dataset().data_vars.values()))
    values = first.transpose("chain", "draw", ...).to_numpy()
    return np.asarray(values.reshape(values.shape[0] * values.shape[1], -1), dtype=float)
