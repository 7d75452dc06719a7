"""Draws in the user's names and units, and those from the Gaussian posterior of an evidence fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bayes_sparse.common.storage import quick_enough, small_enough
from bayes_sparse.common.types import FloatArray, Variables
from bayes_sparse.inference.evidence.state import Approximation, State
from bayes_sparse.problem.gaussian import Primal
from bayes_sparse.problem.labelled import LabelledProblem, WeightBlock
from bayes_sparse.problem.problem import Problem

__all__ = [
    "chain_and_draw",
    "factor_of",
    "in_parts",
    "log_likelihoods",
    "named_draws",
    "of_each_observation",
    "posterior_draws",
    "put",
    "put_nuisance",
]

_STEP = 1e-3  # of differences along a nuisance parameter
_BLOCK = 2**22  # predictors held at once while draws are looked at


def posterior_draws(
    labelled: LabelledProblem,
    approximation: Approximation,
    state: State,
    draws: int,
    chains: int,
    rng: np.random.Generator,
) -> dict[str, xr.Dataset]:
    """Independent draws; nuisance parameters are drawn from the normal that the objective's curvature suggests."""
    index, shape = state.index, (chains, draws)
    z = rng.standard_normal((chains * draws, len(index)))
    w = state.mean + z @ factor_of(state).T
    theta = _draw_theta(approximation, state, labelled.searched.theta_bounds, chains * draws, rng)
    groups = {"posterior": named_draws(labelled, index, w, theta, shape)}
    log_q = -0.5 * (np.sum(z**2, axis=1) + len(index) * np.log(2 * np.pi) - state.posterior.log_determinant)
    stats: Variables = {"log_q": (("chain", "draw"), log_q.reshape(shape))}
    pointwise, log_p = log_likelihoods(labelled, state, w, theta)
    if log_p is not None:
        stats["log_p"] = (("chain", "draw"), log_p.reshape(shape))
    if pointwise is not None:
        groups["log_likelihood"] = of_each_observation(labelled, pointwise, shape)
    groups["sample_stats"] = xr.Dataset(
        stats,
        coords=chain_and_draw(shape),
        attrs={
            "log_p": "log p(y|w) + log p(w|alpha) at the point values of alpha and nuisance parameters, normalised",
            "log_q": "log density of the approximation; like log_p, of the weights of standardised columns",
        },
    )
    return groups


def chain_and_draw(shape: tuple[int, int]) -> dict[str, NDArray[np.intp]]:
    """Numbers of chains and draws."""
    return {"chain": np.arange(shape[0]), "draw": np.arange(shape[1])}


def named_draws(
    labelled: LabelledProblem, index: NDArray[np.intp], w: FloatArray, theta: FloatArray, shape: tuple[int, int]
) -> xr.Dataset:
    """Draws of the weights (S, k) of the columns ``index`` and of the nuisance parameters (S, t)."""
    coords: dict[str, Any] = chain_and_draw(shape)
    variables: Variables = {}
    reported = (labelled.in_users_units(w, index) + labelled.prior_mean[index]).reshape(*shape, len(index))
    for block in (*labelled.sparse, *labelled.fixed):
        put(variables, coords, block, reported, index)
    put_nuisance(variables, labelled, theta, shape)
    return xr.Dataset(variables, coords=coords)


def put_nuisance(variables: Variables, labelled: LabelledProblem, theta: FloatArray, shape: tuple[int, int]) -> None:
    """Draws of the nuisance parameters on their own scale, by name."""
    for name, values in _unpacked(labelled, theta).items():
        extra = tuple(f"{name}_dim_{i}" for i in range(values.ndim - 1))
        variables[name] = (("chain", "draw", *extra), values.reshape(*shape, *values.shape[1:]))


def of_each_observation(labelled: LabelledProblem, pointwise: FloatArray, shape: tuple[int, int]) -> xr.Dataset:
    """The log-likelihood of each observation at each draw, (S, n)."""
    dims = ("chain", "draw", labelled.obs_dim, *(f"{labelled.observed}_dim_{i}" for i in range(1, labelled.y.ndim)))
    return xr.Dataset(
        {labelled.observed: (dims, pointwise.reshape(*shape, *labelled.y.shape))},
        coords={**chain_and_draw(shape), labelled.obs_dim: labelled.obs},
    )


def put(
    variables: Variables, coords: dict[str, Any], block: WeightBlock, draws: FloatArray, index: NDArray[np.intp]
) -> None:
    """A variable's draws under its own name; of a vector only the entries kept, so that no draw is a constant zero."""
    inside = (index >= block.columns.start) & (index < block.columns.stop)
    own, position = draws[..., inside], index[inside] - block.columns.start
    order = np.argsort(position)
    own, position = own[..., order], position[order]
    if not len(position):
        return
    if len(block.shape) == 1:
        dim, labels = block.dim_and_labels()
        variables[block.name] = (("chain", "draw", dim), own)
        coords[dim] = labels[position]
        return
    full = np.zeros((*draws.shape[:2], int(np.prod(block.shape))))
    full[..., position] = own
    dims = block.dims if block.dims else tuple(f"{block.name}_dim_{i}" for i in range(len(block.shape)))
    variables[block.name] = (("chain", "draw", *dims), full.reshape(*draws.shape[:2], *block.shape))
    coords.update(block.coords)


def _draw_theta(
    approximation: Approximation, state: State, bounds: FloatArray, count: int, rng: np.random.Generator
) -> FloatArray:
    m = state.theta.size
    if not m:
        return np.empty((count, 0))
    curvature = -_theta_curvature(approximation, state)
    sd = np.where(curvature > 0, 1 / np.sqrt(np.maximum(curvature, 1e-300)), 0.0)
    low, high = bounds.T  # where the data say little, a normal on the log scale would go far beyond reason
    return np.clip(state.theta + sd * rng.standard_normal((count, m)), low, high)


def _theta_curvature(approximation: Approximation, state: State) -> FloatArray:
    """Second derivative of the objective along each nuisance parameter."""
    m = state.theta.size
    if isinstance(state.posterior, Primal):
        return np.asarray(approximation.curvature(state).diagonal()[-m:])
    out = np.empty(m)  # more terms than observations: by differences, on the side of the rows
    for i, step in enumerate(_STEP * np.eye(m)):
        up, down = (
            approximation.at(state.index, state.alpha, state.theta + move, state).objective for move in (step, -step)
        )
        out[i] = (up - 2 * state.objective + down) / _STEP**2
    return out


def _unpacked(labelled: LabelledProblem, theta: FloatArray) -> dict[str, NDArray[Any]]:
    """Draws of the nuisance parameters on their own scale, by name."""
    if not theta.shape[1]:
        return {}
    rows = [labelled.unpack(row) for row in theta]
    return {name: np.stack([np.asarray(row[name]) for row in rows]) for name in rows[0]}


def log_likelihoods(
    labelled: LabelledProblem, state: State, w: FloatArray, theta: FloatArray
) -> tuple[FloatArray | None, FloatArray | None]:
    """Pointwise log-likelihood of every draw, and the log target at the point values of the hyper-parameters.

    None for what would be too large to store, or take too long.
    """
    problem, count = labelled.searched, len(w)
    n = problem.design.n
    if not quick_enough(count * n):
        return None, None
    pointwise, log_p = np.empty((count, n)) if small_enough(8 * count * n) else None, np.empty(count)
    for some in in_parts(count, problem.offset.size):
        eta = problem.predictor(w[some], state.index)
        if pointwise is not None:
            pointwise[some] = problem.log_densities(eta, theta[some])
            if isinstance(problem, Problem) and not theta.shape[1]:  # the hyper-parameters are at their points already
                log_p[some] = problem.total(pointwise[some])
                continue
        log_p[some] = problem.log_joint(eta, np.broadcast_to(state.theta, (len(some), state.theta.size)))
    proper = state.alpha > 0
    log_p += 0.5 * np.sum(np.log(state.alpha[proper] / (2 * np.pi))) - 0.5 * w**2 @ state.alpha
    return pointwise, log_p


def in_parts(count: int, width: int) -> list[NDArray[np.intp]]:
    """Draws some at a time, so that a block of so many numbers each is never large."""
    return np.array_split(np.arange(count), max(1, count * width // _BLOCK))


def factor_of(state: State) -> FloatArray:
    """F with F F' = Sigma over the active columns."""
    if isinstance(state.posterior, Primal):
        return state.posterior.factor
    identity = np.eye(len(state.index))
    covariance = state.posterior.solve(identity)
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))
