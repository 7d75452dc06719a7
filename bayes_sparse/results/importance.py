"""Importance weights of an evidence fit: its draws, the exact posterior at them, and the tail of the ratio."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import pymc as pm
import xarray as xr
from pytensor.compile.maker import function as pytensor_function
from pytensor.compile.mode import Mode
from pytensor.graph.replace import clone_replace
from scipy.special import logsumexp

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inference.priors import Gaussian, named
from bayes_sparse.inputs.bambi_model import BambiModel, graph_of
from bayes_sparse.inputs.pm_model import read_general, read_model
from bayes_sparse.inputs.pm_model.held import held_at
from bayes_sparse.inputs.pm_model.own_problem import given_back_by
from bayes_sparse.inputs.pm_model.roles import Asked
from bayes_sparse.trees.centring import recentred
from bayes_sparse.trees.read import stored

__all__ = ["Importance", "check_enough", "check_target", "coordinate_draws", "importance", "log_densities", "side_of"]

_FEWEST = 25  # draws: a Pareto distribution is fitted to the largest fifth of so few, and needs five values
_ROUNDING = 1e-10  # log weights that differ by less than this, relative to the log densities, are the same


@dataclass(frozen=True, eq=False)
class Importance:
    """Pareto-smoothed weights of draws, and what the raw ones say about the normalising constant.

    Attributes
    ----------
    log_weights : array (S,)
        Smoothed and normalised: the weights sum to 1.
    k_hat : float
        Shape of the Pareto distribution fitted to the largest raw weights: above 0.5 their variance is infinite, above
        1 their mean too. Zero where all weights are the same, infinite where no shape can be fitted.
    threshold : float
        What k-hat should stay below: ``min(1 - 1/log10(S), 0.7)``.
    effective_draws : float
        ``1 / sum(weight^2)`` of the smoothed weights.
    log_mean : float
        Log of the mean raw weight: the mean is unbiased for the normalising constant, its logarithm is not.
    log_mean_se : float
        Its standard error by the delta method. With k-hat above 0.5 it is not to be trusted, and above the threshold
        both the value and the error tend to be too small.
    """

    log_weights: FloatArray
    k_hat: float
    threshold: float
    effective_draws: float
    log_mean: float
    log_mean_se: float


def check_enough(draws: int) -> None:
    """Refuse so few draws that nothing can be said of the largest weights."""
    if draws < _FEWEST:
        raise ValueError(f"This check takes at least {_FEWEST} draws, and there are {draws}: fit with more.")


def check_target(log_ratios: FloatArray) -> None:
    """Refuse draws of which the target says nothing."""
    if np.isnan(log_ratios).any() or not np.isfinite(log_ratios.max()):
        raise ValueError("The log target is not a number at some of the draws, or zero at all of them.")


def side_of(k_hat: float, threshold: float) -> str:
    """On which side of the threshold k-hat is, in a word."""
    return "below" if k_hat <= threshold else "above"


def importance(log_p: FloatArray, log_q: FloatArray) -> Importance:
    """Weights ``p / q`` of draws from q, smoothed (Vehtari et al. 2024).

    Parameters
    ----------
    log_p, log_q : array
        Log densities at the draws, of the target (normalised or not) and of what they were drawn from (normalised).
    """
    log_p, log_q = np.ravel(log_p).astype(float), np.ravel(log_q).astype(float)
    S, raw = len(log_p), log_p - log_q
    check_enough(S)
    check_target(raw)
    log_mean = float(logsumexp(raw) - np.log(S))
    relative = np.exp(raw - log_mean)
    se = float(np.std(relative, ddof=1) / np.sqrt(S))
    threshold = min(1 - 1 / float(np.log10(S)), 0.7)
    if np.ptp(raw) <= _ROUNDING * (1 + np.abs(log_p).max()):
        return Importance(np.full(S, -np.log(S)), 0.0, threshold, float(S), log_mean, se)
    from arviz_stats.base.array import array_stats  # takes most of a second, and fitting does not need it

    arviz: Any = array_stats
    with np.errstate(all="ignore"):  # with weights hundreds of nats apart its powers leave what numbers can hold
        weights, k_hat = arviz.psislw(-raw)  # it takes the logarithms of 1/weight
    effective = float(np.exp(-logsumexp(2 * weights)))
    shape = float(k_hat) if np.isfinite(k_hat) else np.inf
    return Importance(np.asarray(weights), shape, threshold, effective, log_mean, se)


_AGREES = 1e-8  # relative difference of log densities that are the same


def log_densities(tree: xr.DataTree, model: pm.Model | BambiModel | None = None) -> tuple[xr.DataArray, xr.DataArray]:
    """Log target and log density of the approximation at every draw of an evidence fit.

    The target is the one stored; with ``model``, the user's own, it is computed anew. It is normalised, and given the
    hyper-parameters: of a fit with lambda integrated out, given the lambda found, for the marginal one is improper.
    """
    if "posterior" not in tree.children:
        raise ValueError("This tree has no draws to judge the fit by: fit with draws > 0.")
    stats = tree["sample_stats"].to_dataset() if "sample_stats" in tree.children else xr.Dataset()
    if "log_q" not in stats:
        raise ValueError("This tree has no log density of its draws (log_q): it is not from an evidence method.")
    if model is not None:
        return _by_pymc(tree, model), stats["log_q"]
    if "log_p" not in stats:
        raise ValueError(
            "The log target was left out of the fit, which is too large for so many draws: fit with fewer, or, for a "
            "pm.Model of your own, pass it as diagnose(tree, model=model)."
        )
    return stats["log_p"], stats["log_q"]


def coordinate_draws(tree: xr.DataTree) -> FloatArray:
    """Draws (S, k) of the coordinates of an evidence fit, in their order and in the user's units."""
    if "latent" in tree.children:  # of a user's model, whose variables are not what its columns hold
        drawn = tree["latent"]["coordinates"].transpose("chain", "draw", "coordinate").to_numpy()
        return np.asarray(drawn.reshape(-1, drawn.shape[2]))
    evidence, posterior = tree["evidence"].to_dataset(), recentred(tree)["posterior"].to_dataset()
    column, mean = evidence["column"].to_numpy(), evidence["coordinate_mean"].to_numpy()
    S = posterior.sizes["chain"] * posterior.sizes["draw"]
    out = np.tile(mean, (S, 1))
    for name, start, stop in _owners(tree, evidence):
        inside = np.flatnonzero((column >= start) & (column < stop))
        if not len(inside):
            continue
        if name not in posterior:
            if evidence["covariance_factor"].to_numpy()[inside].any():
                raise ValueError(f"The draws of {name!r} were too large to be stored: fit with fewer draws.")
            continue  # nothing was kept, and the weights are constant
        values = posterior[name].transpose("chain", "draw", ...).to_numpy().reshape(S, -1)
        place = column[inside] - start
        out[:, inside] = values[:, place if values.shape[1] == stop - start else np.argsort(np.argsort(place))]
    return out


def _owners(tree: xr.DataTree, evidence: xr.Dataset) -> list[tuple[str, int, int]]:
    """The variables behind the columns, each with its first column and the one after its last."""
    M = evidence.sizes["basis"]
    vectors = list(stored(tree).vectors.items())
    if len(vectors) == 1 and len(vectors[0][1][1]) == M:
        owners = [(str(vectors[0][0]), 0, M)]
    else:
        owners = _runs([str(name) for name in evidence["basis"].to_numpy()], 0)
    beyond = evidence["column"].to_numpy() >= M
    order = np.argsort(evidence["column"].to_numpy()[beyond])
    return owners + _runs([str(name) for name in evidence["coordinate"].to_numpy()[beyond][order]], M)


def _runs(names: list[str], start: int) -> list[tuple[str, int, int]]:
    """Entries of one variable after another, "w[0]", "w[1]", "v[0]", as ranges."""
    runs = []
    for name, own in groupby(names, key=lambda label: label.partition("[")[0]):
        stop = start + len(list(own))
        runs.append((name, start, stop))
        start = stop
    return runs


def _by_pymc(tree: xr.DataTree, model: pm.Model | BambiModel) -> xr.DataArray:
    """The log target at every draw of a fit of the user's own model, by PyMC's density of that model."""
    fit, model = stored(tree), graph_of(model)
    if not fit.declared:
        raise ValueError("This tree is not of a pm.Model of your own, and its log target is in it: leave out `model`.")
    evidence, stats = tree["evidence"].to_dataset(), tree["sample_stats"].to_dataset()
    if fit.on_path and evidence["theta"].size:
        raise ValueError("On an L1 path nuisance parameters are drawn with the weights: leave out `model`.")
    model = held_at(model, fit.settings.get("held", {}))
    read: Any = read_model(model, fit.asked) if fit.linear else read_general(model, fit.asked)
    drawn = coordinate_draws(tree)
    prior_mean = np.concatenate([block.mean.ravel() for block in (*read.sparse, *read.fixed)])
    w = np.tile(prior_mean, (len(drawn), 1))
    w[:, evidence["column"].to_numpy()] = drawn
    log_p = _log_likelihood(model, fit.asked, read, evidence, w - prior_mean)
    log_p += _log_prior(tree, evidence, w - prior_mean)
    found = stats["log_q"].copy(data=log_p.reshape(stats["log_q"].shape)).rename("log_p")
    known = stats["log_p"].to_numpy().ravel() if "log_p" in stats else log_p
    there = np.isfinite(log_p) & np.isfinite(known)
    # But for a constant: PyMC's factorials are rounded.
    if there.any() and float(np.ptp((log_p - known)[there])) > _AGREES * (1 + np.abs(log_p[there]).max()):
        raise ValueError(
            "The model has another density than the one that was fitted: its pm.Data have changed since, or the fit "
            "had `weights` of the observations."
        )
    return found


def _log_likelihood(model: pm.Model, asked: Asked, read: Any, evidence: xr.Dataset, w: FloatArray) -> FloatArray:
    """Of all observations at every row of w, with the fixed weights' own prior; nuisance parameters at their points."""
    theta, M = np.atleast_1d(evidence["theta"].to_numpy()), sum(role.latent.size for role in read.roles if role.listed)
    give_back = given_back_by(model, asked, general=not hasattr(read, "parts"))
    by_weight = "alpha" in evidence and evidence["alpha"].sizes.get("basis") == M
    precision = evidence["alpha"].to_numpy() if by_weight else np.full(M, np.nan)
    values = give_back(w, np.tile(theta, (len(w), 1)), precision)
    free = {rv: rv.type() for rv in model.free_RVs if rv.name in values}
    told = [part.output.name for part in read.parts] if hasattr(read, "parts") else [read.observed]
    density = _density(model, free, told)
    rows = zip(*(values[rv.name][1].astype(rv.dtype, copy=False) for rv in free), strict=True)
    likelihood = np.array([float(density(*row)) for row in rows])
    alpha = read.fixed_precision(theta) if hasattr(read, "fixed_precision") else read.problem.fixed_precision(theta)
    fixed = w[:, ~np.repeat([role.free for role in read.roles], [role.latent.size for role in read.roles])]
    proper = alpha > 0
    normal = 0.5 * np.sum(np.log(alpha[proper] / (2 * np.pi))) - 0.5 * fixed[:, proper] ** 2 @ alpha[proper]
    return np.asarray(likelihood + normal)


def _density(model: pm.Model, free: dict[Any, Any], told: list[str]) -> Any:
    """PyMC's log-density of observed variables and potentials as a function of the free variables, in Python."""
    observed = [rv for rv in model.observed_RVs if rv.name in told]
    potentials = [v for v in model.potentials if v.name in told]
    placed: list[Any] = clone_replace([*observed, *potentials], free, rebuild_strict=False)
    terms = [
        pm.logp(variable, model.rvs_to_values[rv], warn_rvs=False)
        for variable, rv in zip(placed, observed, strict=False)
    ]
    total: Any = sum(term.sum() for term in (*terms, *placed[len(observed) :]))
    mode: Any = Mode(linker="py", optimizer="fast_run")  # no minute of compiling, and stable all the same
    return pytensor_function(list(free.values()), total, mode=mode.excluding("fusion"), on_unused_input="ignore")


def _log_prior(tree: xr.DataTree, evidence: xr.Dataset, w: FloatArray) -> FloatArray:
    """Of the sparse weights, or of the directions, at the hyper-parameters found; w is relative to the prior means."""
    column = evidence["column"].to_numpy()
    kept = column[column < evidence.sizes["basis"]]
    if stored(tree).on_path:
        lam = float(evidence["lambda"]) if len(kept) else 1.0
        return np.asarray((np.log(lam / 2) - lam * np.abs(w[:, kept])).sum(axis=1))
    if not stored(tree).by_direction:
        return np.asarray(Gaussian().log_prior(w[:, kept], evidence["alpha"].to_numpy()[kept]).sum(axis=1))
    posterior = tree["posterior"].to_dataset()
    name = "u_direction" if "u_direction" in posterior else "u"
    if not evidence.sizes["kept_direction"]:
        return np.zeros(len(w))
    u = posterior[name].transpose("chain", "draw", "direction").to_numpy().reshape(len(w), -1)
    alpha = evidence["alpha"].sel(direction=posterior["direction"]).to_numpy()
    return np.asarray(named(evidence.attrs["prior"]).log_prior(u, alpha).sum(axis=1))
