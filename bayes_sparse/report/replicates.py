"""New observations drawn from a fit at given rows, to hold beside those that were seen."""

from __future__ import annotations

from typing import Any

import numpy as np
import pymc as pm
from numpy.typing import NDArray
from scipy.sparse import issparse

from bayes_sparse.inputs import basis as bases
from bayes_sparse.inputs import likelihoods
from bayes_sparse.inputs.table import features_of
from bayes_sparse.problem.design import FloatArray
from bayes_sparse.results.predict.new_rows import columns_at
from bayes_sparse.results.relevance import unpruned
from bayes_sparse.trees.read import Fit

__all__ = ["replicates", "replicates_by_pymc"]

_DRAWS = 500  # data sets drawn
_LARGEST = 4_000_000  # observations drawn where every draw has its own
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
