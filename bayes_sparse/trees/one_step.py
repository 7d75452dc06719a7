"""The outcome of a one-step method as a tree: every direction with what was found about it, and the weights it means.

The group ``evidence`` has a dimension ``direction`` (all eigenvectors with positive curvature, the most curved first)
beside ``basis``; no weight is pruned, directions are. ``coordinate_mean`` and ``covariance_factor`` speak of all
weights, so that prediction is the same as from any other evidence tree.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from bayes_sparse.common.storage import quick_enough, small_enough
from bayes_sparse.common.types import FloatArray, Variables
from bayes_sparse.inference.one_step.finish import EigenOutcome
from bayes_sparse.problem.labelled import LabelledProblem
from bayes_sparse.trees.draws import chain_and_draw, in_parts, of_each_observation, put, put_nuisance
from bayes_sparse.trees.write import assemble, fixed_names, put_fixed, term_labels

__all__ = ["direction_draws", "eigen_tree", "weights_of_directions"]


def eigen_tree(
    labelled: LabelledProblem,
    outcome: EigenOutcome,
    attributes: dict[str, Any],
    *,
    draws: int,
    chains: int,
    rng: np.random.Generator,
) -> xr.DataTree:
    """Directions, moments of the weights, and draws if any are asked for."""
    groups = {"evidence": _evidence(labelled, outcome, attributes)}
    if draws:
        groups |= _draws(labelled, outcome, draws, chains, rng)
    return assemble(labelled, groups)


def _evidence(labelled: LabelledProblem, outcome: EigenOutcome, attributes: dict[str, Any]) -> xr.Dataset:
    M, k = labelled.M, int(outcome.kept.sum())
    index = np.arange(len(labelled.order))
    weights = weights_of_directions(labelled, outcome)
    mean = labelled.in_users_units(outcome.posterior.mean @ weights, index) + labelled.prior_mean
    mode = labelled.in_users_units(outcome.peak.v @ weights, index) + labelled.prior_mean
    factor = labelled.in_users_units((weights.T @ outcome.posterior.factor).T, index).T
    sd = np.sqrt(np.einsum("ij,ij->i", factor, factor))
    quadratic, eigen = outcome.quadratic, outcome.eigen
    r, kept = len(eigen.h), outcome.kept

    def spread(values: FloatArray) -> FloatArray:
        full = np.zeros(r)
        full[kept] = values[:k]
        return full

    variance = np.einsum("ij,ij->i", outcome.posterior.factor[:k], outcome.posterior.factor[:k])
    variables: Variables = {
        "log_evidence": ((), outcome.log_evidence),
        "log_evidence_mode": ((), outcome.log_evidence_mode),
        "objective": ((), outcome.objective),
        "h": (("direction",), eigen.h),
        "u_expansion": (("direction",), eigen.u),
        "alpha": (("direction",), outcome.alpha),
        "u_mode": (("direction",), spread(outcome.peak.v)),
        "u_mean": (("direction",), spread(outcome.posterior.mean)),
        "u_sd": (("direction",), spread(np.sqrt(variance))),
        "gamma": (("direction",), outcome.gamma),
        "relevant": (("direction",), outcome.relevant),
        "loading": (("kept", "basis"), _loadings(labelled, outcome)),
        "mean": (("basis",), mean[:M]),
        "mode": (("basis",), mode[:M]),
        "sd": (("basis",), sd[:M]),
        "column": (("coordinate",), index),
        "coordinate_mean": (("coordinate",), mean),
        "covariance_factor": (("coordinate", "factor"), factor),
        "theta": (("nuisance",), quadratic.theta),
        "history": (("iteration",), np.asarray(outcome.history)),
    }
    if quadratic.evidence is not None:
        variables["ridge"] = ((), quadratic.evidence.precision)
        variables["ridge_log_evidence"] = ((), quadratic.evidence.log_evidence)
    put_fixed(variables, labelled, mean, sd, index, quadratic.theta)
    number = np.arange(1, r + 1)
    coords = {
        "basis": np.array(labelled.names),
        "coordinate": np.array([*labelled.names, *fixed_names(labelled)]),
        "direction": number,
        "kept": number[kept],
        **term_labels(labelled),
    }
    return xr.Dataset(variables, coords=coords, attrs={"approximation": "quadratic", **attributes})


def weights_of_directions(labelled: LabelledProblem, outcome: EigenOutcome) -> FloatArray:
    """A matrix that takes (directions kept, fixed weights) to all columns in the labelled's own order."""
    k, d, q = int(outcome.kept.sum()), labelled.surface.d, labelled.surface.q
    out = np.zeros((k + q, d + q))
    out[:k, labelled.order[:d]] = outcome.loadings
    out[np.arange(k, k + q), labelled.order[d:]] = 1.0
    return out


def _loadings(labelled: LabelledProblem, outcome: EigenOutcome) -> FloatArray:
    """The directions kept over the sparse columns, standardised as the fit saw them; zero for columns kept anyway."""
    out = np.zeros((int(outcome.kept.sum()), labelled.M))
    out[:, labelled.order[: labelled.surface.d]] = outcome.loadings
    return out


def _draws(
    labelled: LabelledProblem, outcome: EigenOutcome, draws: int, chains: int, rng: np.random.Generator
) -> dict[str, xr.Dataset]:
    """Independent draws of the directions kept and of the weights they mean."""
    count, shape = chains * draws, (chains, draws)
    v, log_q = outcome.posterior.draw(count, rng)
    theta = _draw_theta(labelled, outcome, count, rng)
    groups = {"posterior": direction_draws(labelled, outcome, v, theta, shape)}
    stats: Variables = {"log_q": (("chain", "draw"), log_q.reshape(shape))}
    narrow, n = labelled.surface.along(outcome.loadings), labelled.surface.n
    if quick_enough(count * n):
        held = np.broadcast_to(outcome.quadratic.theta, (count, theta.shape[1]))
        log_p = [
            _log_target(labelled, outcome, v[some], narrow.log_densities(v[some], held[some]))
            for some in in_parts(count, n)
        ]
        stats["log_p"] = (("chain", "draw"), np.concatenate(log_p).reshape(shape))
        if small_enough(8 * count * n):
            groups["log_likelihood"] = of_each_observation(labelled, narrow.log_densities(v, theta), shape)
    groups["sample_stats"] = xr.Dataset(
        stats,
        coords=chain_and_draw(shape),
        attrs={
            "log_p": "log p(y|w) + log p(u|alpha) at the point values of alpha and nuisance parameters, normalised",
            "log_q": "log density of the approximation; like log_p, of the directions kept and the fixed weights",
        },
    )
    return groups


def direction_draws(
    labelled: LabelledProblem, outcome: EigenOutcome, v: FloatArray, theta: FloatArray, shape: tuple[int, int]
) -> xr.Dataset:
    """Draws of the directions kept and the fixed weights (S, k + q), and of the nuisance parameters (S, t)."""
    k = int(outcome.kept.sum())
    coords: dict[str, Any] = chain_and_draw(shape)
    variables: Variables = {}
    if k:
        taken = any(block.name == "u" for block in (*labelled.sparse, *labelled.fixed))
        name = "u_direction" if taken else "u"
        variables[name] = (("chain", "draw", "direction"), v[:, :k].reshape(*shape, k))
        coords["direction"] = np.flatnonzero(outcome.kept) + 1
    _put_weights(variables, coords, labelled, outcome, v, shape)
    put_nuisance(variables, labelled, theta, shape)
    return xr.Dataset(variables, coords=coords)


def _put_weights(
    variables: Variables,
    coords: dict[str, Any],
    labelled: LabelledProblem,
    outcome: EigenOutcome,
    v: FloatArray,
    shape: tuple[int, int],
) -> None:
    """Draws of every weight, where they can be stored; of the fixed ones always."""
    index = np.arange(len(labelled.order))
    blocks = (*labelled.sparse, *labelled.fixed) if outcome.kept.any() else labelled.fixed
    if not small_enough(8 * len(v) * labelled.M, "Every draw of every weight"):
        blocks = labelled.fixed
    if not blocks:
        return
    drawn = labelled.in_users_units(v @ weights_of_directions(labelled, outcome), index) + labelled.prior_mean
    for block in blocks:
        put(variables, coords, block, drawn.reshape(*shape, -1), index)


def _draw_theta(labelled: LabelledProblem, outcome: EigenOutcome, count: int, rng: np.random.Generator) -> FloatArray:
    theta, evidence = outcome.quadratic.theta, outcome.quadratic.evidence
    if evidence is None or not theta.size:
        return np.empty((count, 0))
    low, high = labelled.surface.theta_bounds.T
    return np.clip(theta + evidence.theta_sd * rng.standard_normal((count, theta.size)), low, high)


def _log_target(labelled: LabelledProblem, outcome: EigenOutcome, v: FloatArray, pointwise: FloatArray) -> FloatArray:
    """Log-likelihood plus log prior of every draw at the point values of the hyper-parameters."""
    k, weights = int(outcome.kept.sum()), labelled.surface.weights
    total = pointwise.sum(axis=1)
    if weights is not None:  # one a row, which may hold several observations
        total = pointwise.reshape(len(v), len(weights), -1).sum(axis=2) @ weights
    fixed = labelled.surface.fixed_precision(outcome.quadratic.theta)
    proper = fixed > 0
    total = total + outcome.prior.log_prior(v[:, :k], outcome.alpha[outcome.kept]).sum(axis=1)
    total += 0.5 * float(np.sum(np.log(fixed[proper] / (2 * np.pi)))) - 0.5 * v[:, k:] ** 2 @ fixed
    return np.asarray(total)
