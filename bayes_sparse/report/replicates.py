"""Data drawn anew from a fit, ranks of the observations among them, and weights without each observation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pymc as pm
from numpy.typing import NDArray
from scipy.sparse import issparse
from scipy.special import betaincinv

from bayes_sparse.inputs import basis as bases
from bayes_sparse.inputs import likelihoods
from bayes_sparse.inputs.table import features_of
from bayes_sparse.problem.design import FloatArray
from bayes_sparse.results.importance import log_densities
from bayes_sparse.results.predict.new_rows import columns_at
from bayes_sparse.results.relevance import unpruned
from bayes_sparse.trees.read import Fit

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


def left_out_weights(fit: Fit) -> FloatArray | None:
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


def replicates(fit: Fit, X: Any, *, every: bool = False) -> FloatArray:
    """Draw data sets (draws, rows) from a fit of a named model with one predictor an observation.

    With ``every`` one data set for each draw of the posterior, in their order, if they are not too many.
    """
    settings, rng = fit.settings, np.random.default_rng(0)
    likelihood = likelihoods.from_settings(settings["likelihood"])
    basis = bases.from_settings(settings["basis"])
    features, _, _ = features_of(X, settings["columns"])
    matrix = bases.check_dense(features.tocsr() if issparse(features) else features, basis)
    most = max(_DRAWS, _LARGEST // matrix.shape[0]) if every else _DRAWS
    column, w, nuisance = _weights(fit, likelihood, most, rng)
    M = len(settings["vectors"]["w"][1])
    eta = np.asarray(columns_at(fit.tree, basis, matrix, column, M) @ w.T).T
    if "offset" in fit.constant and fit.constant["offset"].size == eta.shape[1]:
        eta = eta + fit.constant["offset"].to_numpy()
    return _observations(likelihood, eta, nuisance, rng)


def replicates_by_pymc(fit: Fit, model: pm.Model) -> FloatArray:
    """Draw data sets (draws, rows) from a fit of the user's own model, at the rows it holds."""
    whole = unpruned(fit.tree) if fit.settings.get("vectors") else fit.tree
    step = max(1, whole["posterior"].sizes["draw"] * whole["posterior"].sizes["chain"] // _BY_PYMC)
    with model:
        drawn = pm.sample_posterior_predictive(
            whole["posterior"].to_dataset().isel(draw=slice(None, None, step)), random_seed=0, progressbar=False
        )
    first = next(iter(drawn["posterior_predictive"].to_dataset().data_vars.values()))
    values = first.transpose("chain", "draw", ...).to_numpy()
    return np.asarray(values.reshape(values.shape[0] * values.shape[1], -1), dtype=float)


def _weights(
    fit: Fit, likelihood: likelihoods.Likelihood, most: int, rng: np.random.Generator
) -> tuple[NDArray[np.intp], FloatArray, list[FloatArray]]:
    """Columns, draws of their weights (draws, columns), and of the nuisance parameters."""
    labels = {str(label): j for j, label in enumerate(fit.settings["vectors"]["w"][1])}
    if fit.posterior is None:
        assert fit.evidence is not None
        factor = fit.evidence["covariance_factor"].to_numpy()
        w = fit.evidence["coordinate_mean"].to_numpy() + rng.standard_normal((_DRAWS, factor.shape[1])) @ factor.T
        points = [np.full(_DRAWS, float(fit.evidence[name])) for name in likelihood.nuisance]
        return fit.evidence["column"].to_numpy(), w, points
    wanted = [name for name in ("w", "bias", *likelihood.nuisance) if name in fit.posterior]
    posterior = fit.posterior[wanted].stack(sample=("chain", "draw"))
    total = posterior.sizes["sample"]
    posterior = posterior.isel(sample=np.linspace(0, total - 1, min(total, most)).round().astype(int))
    size = posterior.sizes["sample"]
    column, parts = [], [np.empty((size, 0))]
    if "w" in posterior:
        column += [labels[str(label)] for label in posterior["basis"].to_numpy().tolist()]
        parts.append(posterior["w"].transpose("sample", "basis").to_numpy())
    if "bias" in posterior:
        column.append(len(labels))
        parts.append(posterior["bias"].to_numpy()[:, None])
    # A fit that holds a nuisance parameter at its estimate has it among the constants.
    nuisance = [
        np.broadcast_to((posterior if name in posterior else fit.constant)[name].to_numpy(), (size,))
        for name in likelihood.nuisance
    ]
    return np.array(column, dtype=np.intp), np.concatenate(parts, axis=1), nuisance


def _observations(
    likelihood: likelihoods.Likelihood, eta: FloatArray, nuisance: list[FloatArray], rng: np.random.Generator
) -> FloatArray:
    """One observation a draw and row."""
    first = nuisance[0][:, None] if nuisance else np.ones((len(eta), 1))
    match likelihood.name:
        case "normal":
            return np.asarray(eta + first * rng.standard_normal(eta.shape))
        case "student_t":
            assert isinstance(likelihood, likelihoods.student_t)
            return np.asarray(eta + first * rng.standard_t(likelihood.nu, eta.shape))
        case "poisson":
            return rng.poisson(_rate(eta)).astype(float)
        case "negative_binomial":
            return rng.poisson(rng.gamma(np.broadcast_to(first, eta.shape), _rate(eta) / first)).astype(float)
    raise ValueError(
        f"Observations of a {likelihood.name} likelihood are classes, and are checked by their probability."
    )


def _rate(eta: FloatArray) -> FloatArray:
    return np.asarray(np.exp(np.minimum(eta, 40.0)))  # numpy draws no larger counts
