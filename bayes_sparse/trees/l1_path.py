"""The outcome of a method on an L1 path as a tree: point, normal posterior on the support, and what the path said.

Lambda, R and the criterion speak of standardised columns, as the penalty does; weights are in the user's units. The
posterior is conditional on the support: no draw has a weight outside it, and none of their uncertainty is in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from scipy.linalg import lapack

from bayes_sparse.common.storage import quick_enough, small_enough
from bayes_sparse.common.types import FloatArray, IntArray, Variables
from bayes_sparse.inference.l1.fixed_points import PathOutcome
from bayes_sparse.inference.l1.path import Point, Record
from bayes_sparse.problem.gaussian import cholesky
from bayes_sparse.problem.labelled import LabelledProblem
from bayes_sparse.trees.draws import chain_and_draw, in_parts, named_draws, of_each_observation
from bayes_sparse.trees.write import assemble, fixed_names, put_fixed

__all__ = ["factor_on_support", "path_tree"]


def path_tree(
    labelled: LabelledProblem,
    outcome: PathOutcome,
    attributes: dict[str, Any],
    *,
    draws: int,
    chains: int,
    rng: np.random.Generator,
) -> xr.DataTree:
    """Point, moments on the support, and draws if any are asked for."""
    factor = factor_on_support(outcome)
    groups = {"evidence": _evidence(labelled, outcome, factor, attributes)}
    if draws:
        groups |= _draws(labelled, outcome, factor, draws, chains, rng)
    return assemble(labelled, groups)


def factor_on_support(outcome: PathOutcome) -> FloatArray:
    """F with F F' the covariance of the active weights and the nuisance parameters."""
    P = outcome.precision
    if len(P) and lapack.dpotrf(P, lower=1)[1] != 0:
        # As many weights as observations: what is known about the noise is left aside, and collinear columns are told
        # apart by rounding errors alone.
        k = len(outcome.point.index)
        P = outcome.point.precision.copy()
        P[:k, k:], P[k:, :k] = 0.0, 0.0
    L = cholesky(P)
    return np.asarray(np.linalg.inv(L).T) if len(L) else np.empty((0, 0))


def _evidence(
    labelled: LabelledProblem, outcome: PathOutcome, factor: FloatArray, attributes: dict[str, Any]
) -> xr.Dataset:
    point, M = outcome.point, labelled.M
    index, k = point.index, len(point.index)
    own = labelled.in_users_units(factor[:k].T, index).T
    sd = np.sqrt(np.einsum("ij,ij->i", own, own))
    mean = _weights(labelled, point)
    basis = index < M
    kept = np.zeros(M, dtype=bool)
    kept[index[basis]] = True
    variables: Variables = {
        "lambda": ((), point.lam if point.N else np.nan),
        "N": ((), point.N),
        "R": ((), point.R),
        "r": ((), point.r),
        "criterion": ((), point.criterion),
        "log_likelihood_mode": ((), point.log_likelihood),
        "log_prior": ((), float(outcome.log_prior(point.w[None])[0])),
        "log_evidence": ((), np.nan),
        "mean": (("basis",), _spread(mean[basis], index[basis], M)),
        "sd": (("basis",), _spread(sd[basis], index[basis], M)),
        "relevant": (("basis",), kept),
        "pull": (("basis",), _pull(outcome, M)),
        "column": (("coordinate",), index),
        "coordinate_mean": (("coordinate",), mean),
        "covariance_factor": (("coordinate", "factor"), own),
        "theta": (("nuisance",), point.theta),
    }
    variables |= outcome.found
    _put_path(variables, labelled, outcome)
    put_fixed(variables, labelled, mean, sd, index, point.theta)
    labels = np.array([*labelled.names, *fixed_names(labelled)])
    coords: dict[str, Any] = {"basis": np.array(labelled.names), "coordinate": labels[index]}
    if "ever" in variables:
        coords["ever"] = labels[variables.pop("ever")[1]]
    return xr.Dataset(variables, coords=coords, attrs={"approximation": "laplace", **attributes})


def _weights(labelled: LabelledProblem, point: Point | Record) -> FloatArray:
    return labelled.in_users_units(point.w, point.index) + labelled.prior_mean[point.index]


def _spread(values: FloatArray, index: Any, M: int) -> FloatArray:
    full = np.zeros(M)
    full[index] = values
    return full


def _pull(outcome: PathOutcome, M: int) -> FloatArray:
    """Slope of the log-likelihood along each column in units of lambda: 1 or -1 where a weight is not zero."""
    spot, knob = outcome.point.spot, outcome.point.knob
    largest = knob if np.isfinite(knob) else float(np.abs(spot.gradient[:M]).max(initial=0.0)) or 1.0
    return np.asarray(spot.gradient[:M] / largest)


def _put_path(variables: Variables, labelled: LabelledProblem, outcome: PathOutcome) -> None:
    """The points visited and the solutions found, with the weights that were ever in."""
    solutions = [solution.point for solution in outcome.solutions or []]
    visited = sorted((p for p in outcome.visited if p.N), key=lambda point: point.lam)
    M = labelled.M
    if visited:
        ever = np.unique(np.concatenate([p.index[p.index < M] for p in visited]))
        variables["ever"] = (("ever",), ever)
        variables["path_lambda"] = (("visited",), np.array([p.lam for p in visited]))
        variables["path_N"] = (("visited",), np.array([p.N for p in visited]))
        variables["path_R"] = (("visited",), np.array([p.R for p in visited]))
        variables["path_w"] = (("visited", "ever"), _stacked(labelled, visited, ever))
    if outcome.solutions is not None:
        for name in ("lam", "N", "R", "r", "criterion", "log_prior"):
            values = np.array([getattr(p, name) for p in solutions], dtype=float)
            variables[f"solution_{'lambda' if name == 'lam' else name}"] = (("solution",), values)
        variables["solution_status"] = (("solution",), np.array([s.status for s in outcome.solutions], dtype=str))
        variables["solution_w"] = (("solution", "basis"), _stacked(labelled, solutions, np.arange(M)))


def _stacked(labelled: LabelledProblem, points: Sequence[Point | Record], ever: IntArray) -> FloatArray:
    """Weights of some columns at several points, one a row, in the user's units."""
    out = np.zeros((len(points), len(ever)))
    for row, point in zip(out, points, strict=True):
        basis = point.index < labelled.M
        row[np.searchsorted(ever, point.index[basis])] = _weights(labelled, point)[basis]
    return out


def _draws(
    labelled: LabelledProblem,
    outcome: PathOutcome,
    factor: FloatArray,
    draws: int,
    chains: int,
    rng: np.random.Generator,
) -> dict[str, xr.Dataset]:
    """Independent draws of the normal posterior on the support."""
    point, problem, count, shape = outcome.point, labelled.problem, chains * draws, (chains, draws)
    index, k = point.index, len(point.index)
    z = rng.standard_normal((count, len(factor)))
    drawn = z @ factor.T
    w, theta = point.w + drawn[:, :k], point.theta + drawn[:, k:]
    if theta.size:
        theta = np.clip(theta, *problem.theta_bounds.T)
    log_q = -0.5 * np.sum(z**2, axis=1) - 0.5 * len(factor) * np.log(2 * np.pi) - np.log(factor.diagonal()).sum()
    stats: Variables = {"log_q": (("chain", "draw"), log_q.reshape(shape))}
    groups = {"posterior": named_draws(labelled, index, w, theta, shape)}
    n = problem.design.n
    if quick_enough(count * n):
        log_p, pointwise = np.empty(count), np.empty((count, n)) if small_enough(8 * count * n) else None
        for some in in_parts(count, n):
            each = problem.log_densities(problem.predictor(w[some], index), theta[some])
            log_p[some] = problem.total(each)
            if pointwise is not None:
                pointwise[some] = each
        if problem.log_prior is not None:
            log_p += [problem.log_prior(row) for row in theta]
        stats["log_p"] = (("chain", "draw"), (log_p + outcome.log_laplace(w)).reshape(shape))
        if outcome.marginal:
            stats["log_p_marginal"] = (("chain", "draw"), (log_p + outcome.log_prior(w)).reshape(shape))
        if pointwise is not None:
            groups["log_likelihood"] = of_each_observation(labelled, pointwise, shape)
    told = {
        "log_p": "log p(y|w) + log p(w|lambda*) on the support; weights of standardised columns",
        "log_p_marginal": "the same with lambda integrated out, the prior Gamma(N) / (2R)^N: improper at w = 0",
        "log_q": "log density of the approximation, of the same weights and the nuisance parameters",
    }
    groups["sample_stats"] = xr.Dataset(
        stats, coords=chain_and_draw(shape), attrs={name: text for name, text in told.items() if name in stats}
    )
    return groups
