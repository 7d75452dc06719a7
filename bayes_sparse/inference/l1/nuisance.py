"""Nuisance parameters along a path: where they are best, and how they and the predictor curve together."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize, minimize_scalar

from bayes_sparse.problem.design import FloatArray
from bayes_sparse.problem.problem import Problem

__all__ = ["best_theta", "theta_curvature"]

_STEP = 1e-4  # of a numerical derivative along a parameter on the log scale
_FLAT = 1e-5  # curvature below which nothing is known about a parameter, and rounding errors speak
_NEWTON, _NEAR, _SETTLED = 12, 2.0, 1e-10  # steps of Newton's method, how far it may go, and when it is there


def best_theta(problem: Problem, eta: FloatArray, theta: FloatArray) -> FloatArray:
    """The most likely nuisance parameters at a predictor, from a start."""
    if not theta.size:
        return theta
    low, high = problem.theta_bounds.T
    if problem.normal and problem.log_prior is None:
        variance = np.average((problem.y - eta) ** 2, weights=problem.weights)
        return np.asarray(np.clip([0.5 * np.log(max(variance, 1e-300))], low, high))

    def cost(t: FloatArray) -> float:
        return -_height(problem, eta, t)

    near = _polished(problem, eta, theta)
    if near is not None:
        return near
    if theta.size == 1:
        found = minimize_scalar(
            lambda t: cost(np.array([t])), bounds=(low[0], high[0]), method="bounded", options={"xatol": 1e-10}
        )
        best = np.array([found.x])
    else:
        best = minimize(cost, theta, bounds=problem.theta_bounds, method="L-BFGS-B").x
    if cost(best) > cost(theta):
        best = theta
    near = _polished(problem, eta, best)
    return best if near is None else near


def _polished(problem: Problem, eta: FloatArray, theta: FloatArray) -> FloatArray | None:
    """Newton's method on the slope, which sees more digits than the height; None if it leads astray or to a bound."""
    low, high = problem.theta_bounds.T
    steps = _STEP * np.eye(theta.size)
    start = theta
    for _ in range(_NEWTON):
        rises = [_height(problem, eta, theta + step) - _height(problem, eta, theta - step) for step in steps]
        curvature = theta_curvature(problem, eta, theta)[2]
        if curvature.diagonal().max() >= 1 / _FLAT**2 or np.linalg.eigvalsh(curvature)[0] <= 0:
            return None
        move = np.linalg.solve(curvature, np.array(rises) / (2 * _STEP))
        theta = theta + move
        if not (np.abs(theta - start).max() <= _NEAR and ((low < theta) & (theta < high)).all()):
            return None
        if np.abs(move).max() <= _SETTLED:
            return theta
    return None


def theta_curvature(problem: Problem, eta: FloatArray, theta: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Second derivatives of minus the log-likelihood: along the predictor (n,), mixed (n, t), and of theta (t, t)."""
    bend, t = np.maximum(-problem.terms(eta, theta)[2], 0.0), theta.size
    if problem.normal and t and problem.log_prior is None:
        slope = problem.terms(eta, theta)[1]
        total = problem.design.n if problem.weights is None else float(problem.weights.sum())
        return bend, 2.0 * slope[:, None], np.array([[2.0 * total]])
    mixed, own = np.empty((len(eta), t)), np.empty((t, t))
    steps = _STEP * np.eye(t)
    for i in range(t):
        ahead, behind = problem.terms(eta, theta + steps[i])[1], problem.terms(eta, theta - steps[i])[1]
        mixed[:, i] = -(ahead - behind) / (2 * _STEP)
        for j in range(i + 1):
            corners = [_height(problem, eta, theta + a * steps[i] + b * steps[j]) for a in (1, -1) for b in (1, -1)]
            own[i, j] = own[j, i] = -(corners[0] - corners[1] - corners[2] + corners[3]) / (4 * _STEP**2)
    flat = own.diagonal() <= _FLAT  # at a bound, as the dispersion of counts that are Poisson's: taken as known
    mixed[:, flat], own[flat], own[:, flat] = 0.0, 0.0, 0.0
    own[flat, flat] = 1 / _FLAT**2
    return bend, mixed, own


def _height(problem: Problem, eta: FloatArray, theta: FloatArray) -> float:
    total = float(problem.terms(eta, theta)[0].sum())
    return total if problem.log_prior is None else total + problem.log_prior(theta)
