"""Maximise a likelihood under Laplace priors: ``L(u, x) - sum_i penalty_i |u_i| - x'Px/2``, by proximal Newton steps.

Each step solves the penalised quadratic exactly, with the fixed weights x eliminated, and is taken as far as it climbs.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from bayes_sparse.inference.l1.quadratic import penalised_quadratic
from bayes_sparse.inference.newton import Peak, ascend
from bayes_sparse.inference.one_step.eigen import Profile
from bayes_sparse.problem.design import FloatArray
from bayes_sparse.problem.surfaces import Surface

__all__ = ["climb_l1"]

_PROMISE = 1e-12  # nats: a step that promises less is the last one
_ROUNDING = 1e-8  # nats: of a step that promises less, heights cannot tell whether it climbs
_CURVED = 1e-8  # of the prior's own curvature, price^2: keeps steps finite where the likelihood has none


def climb_l1(
    surface: Surface,
    penalty: FloatArray,
    fixed: FloatArray,
    theta: FloatArray,
    start: FloatArray,
    *,
    octant: bool = False,
    max_steps: int = 200,
) -> Peak:
    """Find the maximum; exact zeros are exact.

    Parameters
    ----------
    surface : Surface
        With d penalised weights u and q fixed ones x.
    penalty : array (d,)
        Price of |u_i|.
    fixed : array (q,)
        Prior precisions P of x.
    theta : array
        Nuisance parameters.
    start : array (d + q,)
        Where to begin.
    octant : bool
        Confine every u_i to the sign of its start.
    """
    price = np.append(penalty, np.zeros(surface.q))
    precision, floor = np.append(np.zeros(surface.d), fixed), _CURVED * price**2
    side = np.sign(start[: surface.d]) if octant else np.zeros(surface.d)
    v, look = start, surface.look(start, theta)

    def cost(v: FloatArray) -> float:
        return float(price @ np.abs(v)) + 0.5 * float(precision @ v**2)

    best = look.value - cost(v)
    for step in range(1, max_steps + 1):
        H = look.steps()
        H.flat[:: len(H) + 1] += floor
        gradient = look.gradient - precision * v
        target = _target(Profile.of(H, surface.d, fixed), gradient, v, penalty, side)
        move = target - v
        H.flat[:: len(H) + 1] += precision
        promise = float(gradient @ move - 0.5 * move @ H @ move) - float(price @ (np.abs(target) - np.abs(v)))
        least = best - _ROUNDING if promise <= _ROUNDING else best
        higher = ascend(surface, theta, v, move, cost, least)  # v + (0 - v) is exactly zero
        if higher is None:
            return Peak(v, look, step, converged=True)
        v, look, best = higher
        if promise <= _PROMISE:
            return Peak(v, look, step, converged=True)
    return Peak(v, look, max_steps, converged=False)


def _target(profile: Profile, gradient: FloatArray, v: FloatArray, penalty: FloatArray, side: FloatArray) -> FloatArray:
    """Where the penalised quadratic is highest; the bias, which all directions pull at, follows them in one move."""
    d = len(penalty)
    along = gradient[:d] - gradient[d:] @ profile.link
    u = penalised_quadratic(profile.S, along, v[:d], penalty, side)
    if d == len(v):
        return u
    alone, _ = lapack.dpotrs(profile.L, gradient[d:], lower=1)
    return np.append(u, v[d:] + alone - profile.link @ (u - v[:d]))
