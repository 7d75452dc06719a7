"""An evidence fit corrected: its draws re-weighted towards the exact posterior at the same hyper-parameters."""

from __future__ import annotations

import json
import warnings
from dataclasses import asdict
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bayes_sparse.common.types import BoolArray, FloatArray
from bayes_sparse.common.warnings import FitWarning
from bayes_sparse.results.diagnose import Diagnosis, judged
from bayes_sparse.results.importance import Importance, coordinate_draws, importance, log_densities
from bayes_sparse.trees.damage import reads_a_fit
from bayes_sparse.trees.read import stored, was_sampled
from bayes_sparse.trees.write import with_moments

__all__ = ["correct"]

_SAMPLES = ("chain", "draw")


@reads_a_fit
def correct(tree: xr.DataTree, random_seed: int | None = None) -> xr.DataTree:
    """Re-weight the draws of an evidence fit, and take its moments from them.

    Parameters
    ----------
    tree : xarray.DataTree
        From an evidence method of `bayes_sparse.fit`, with draws.
    random_seed : int, optional
        Makes the draws reproducible.

    Returns
    -------
    xarray.DataTree
        The same groups. Draws are drawn anew, by their Pareto-smoothed importance weights: some are there twice and
        some not at all, so they are worth ``effective_draws``. ``sample_stats["log_weight"]`` has the weight that each
        had. In ``evidence`` mean, sd and covariance are those of the weighted draws, and predictions use them; nuisance
        parameters, selection and hyper-parameters stay as they are. The attributes ``corrected``, ``k_hat`` and
        ``effective_draws`` of ``evidence`` say what was done.

    Warns
    -----
    FitWarning
        If k-hat is above its threshold: the approximation is then too far off for this to mend it.
    """
    if was_sampled(tree):
        raise ValueError(
            "This tree is sampled: its draws are the posterior's already, and there is nothing to correct."
        )
    if "evidence" not in tree.children:
        raise ValueError(
            "correct takes a tree from an evidence method of bayes_sparse.fit (of a ladder, one of its rungs)."
        )
    if stored(tree).corrected:
        raise ValueError("This tree has been corrected already.")
    log_p, log_q = log_densities(tree)
    weights = importance(log_p.to_numpy(), log_q.to_numpy())
    diagnosis = judged(tree, weights)
    if not diagnosis.correctable:
        warnings.warn(diagnosis.verdict, FitWarning, stacklevel=2)
    evidence = _moments(tree, weights).assign_attrs(_said(diagnosis))
    stats = tree["sample_stats"].to_dataset()
    own = stats["log_q"].copy(data=weights.log_weights.reshape(stats["log_q"].shape))
    chosen = _resampled(weights, np.random.default_rng(random_seed))
    out = tree.copy()
    out["evidence"] = xr.DataTree(evidence)
    out["sample_stats"] = xr.DataTree(_taken(stats.assign(log_p=log_p, log_weight=own), chosen))
    for name in ("posterior", "latent", "log_likelihood"):
        if name in tree.children:
            out[name] = xr.DataTree(_taken(tree[name].to_dataset(), chosen))
    return out


def _said(diagnosis: Diagnosis) -> dict[str, Any]:
    return {
        "corrected": 1,
        "k_hat": diagnosis.k_hat,
        "effective_draws": diagnosis.effective_draws,
        "diagnosis": json.dumps(asdict(diagnosis)),
    }


def _resampled(weights: Importance, rng: np.random.Generator) -> NDArray[np.intp]:
    """Which draws to take: one from each of S equal strata of the weights, in an order by chance."""
    S = len(weights.log_weights)
    upper = np.cumsum(np.exp(weights.log_weights))
    chosen = np.searchsorted(upper / upper[-1], (np.arange(S) + rng.random(S)) / S)
    return np.asarray(rng.permutation(np.minimum(chosen, S - 1)))


def _taken(group: xr.Dataset, chosen: NDArray[np.intp]) -> xr.Dataset:
    """The draws chosen, in the place of the old ones."""
    chains, draws = group.sizes["chain"], group.sizes["draw"]
    variables = {}
    for name, array in group.data_vars.items():
        array = array.transpose(*_SAMPLES, ...)
        values = array.to_numpy().reshape(chains * draws, *array.shape[2:])[chosen]
        variables[name] = array.copy(data=values.reshape(array.shape))
    return group.assign(variables)


def _moments(tree: xr.DataTree, weights: Importance) -> xr.Dataset:
    """The evidence with the means, sds and covariance of the weighted draws."""
    evidence, share = tree["evidence"].to_dataset(), np.exp(weights.log_weights)
    if np.ptp(share) == 0:  # those it has are exact
        return evidence
    drawn = coordinate_draws(tree)
    by_direction = stored(tree).by_direction
    directions = _directions(tree["posterior"].to_dataset()) if by_direction else None
    mixed = _mixed(evidence) if by_direction else None
    out = with_moments(evidence, share @ drawn, _factor(drawn, directions, mixed, share))
    return out if directions is None else out.assign(_of_directions(evidence, directions, share))


def _directions(posterior: xr.Dataset) -> xr.DataArray | None:
    """Draws (S, k) of the directions of a one-step method; None where none was kept."""
    if "direction" not in posterior.dims:
        return None
    u = posterior["u_direction" if "u_direction" in posterior else "u"]
    return u.stack(sample=_SAMPLES, create_index=False).transpose("sample", "direction")


def _mixed(evidence: xr.Dataset) -> BoolArray:
    """Which coordinates some direction has a part of."""
    column = evidence["column"].to_numpy()
    mixed = np.zeros(len(column), dtype=bool)
    inside = column < evidence.sizes["basis"]
    mixed[inside] = evidence["loading"].to_numpy()[:, column[inside]].any(axis=0)
    return mixed


def _factor(
    drawn: FloatArray, directions: xr.DataArray | None, mixed: BoolArray | None, share: FloatArray
) -> FloatArray:
    """F with F F' the weighted covariance of the draws (S, k) of the coordinates.

    The weights of a one-step method are many and span few dimensions: those of the directions, and of the weights that
    no direction has a part of.
    """
    root = np.sqrt(share)[:, None]
    centred = root * (drawn - share @ drawn)
    span = centred
    if mixed is not None:
        u = np.empty((len(drawn), 0)) if directions is None else directions.to_numpy()
        span = np.hstack([root * (u - share @ u), centred[:, ~mixed]])
    Q, _ = np.linalg.qr(span)
    return np.asarray((Q.T @ centred).T)


def _of_directions(evidence: xr.Dataset, directions: xr.DataArray, share: FloatArray) -> dict[str, xr.DataArray]:
    u, number = directions.to_numpy(), directions["direction"].to_numpy()
    mean = share @ u
    out = {"u_mean": evidence["u_mean"].copy(deep=True), "u_sd": evidence["u_sd"].copy(deep=True)}
    out["u_mean"].loc[{"direction": number}] = mean
    out["u_sd"].loc[{"direction": number}] = np.sqrt(share @ (u - mean) ** 2)
    return out
