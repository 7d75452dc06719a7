"""Absolute-value prices on a small problem: a quadratic solved exactly, and a surface climbed by such steps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inference.newton import Peak, Profile, ascend
from bayes_sparse.problem.gaussian import cholesky
from bayes_sparse.problem.surfaces import Surface

__all__ = ["climb_l1", "penalised_quadratic"]

_SLACK = 1e-10  # of the price: a slope so little above it is rounding error
_ROUNDS = 500  # a quadratic that takes longer is nearly flat: what was reached is higher than v, and that will do
_TOGETHER = 25  # rounds in which several may enter; they may take turns for ever, one at a time does not
_FEW, _PART = 16, 0.2  # coordinates that may enter at once: so many, or this part of those that are not zero


def penalised_quadratic(
    H: FloatArray, gradient: FloatArray, v: FloatArray, price: FloatArray, side: FloatArray | None = None
) -> FloatArray:
    """Maximise ``gradient'(x - v) - (x - v)'H(x - v)/2 - price'|x|``.

    Parameters
    ----------
    H : array (k, k)
        Positive semi-definite; where it is not definite to working precision it is raised a little, about v.
    gradient, v : array (k,)
        Slope at v; the search starts there.
    price : array (k,)
        Zero for a coordinate without one.
    side : array (k,), optional
        1 or -1 confines a coordinate to that sign, 0 does not.
    """
    x, slope = v.copy(), gradient.copy()  # slope = gradient - H (x - v) throughout
    free, priced, limit = price == 0, price != 0, price * (1 + _SLACK)
    solved = False
    for round_ in range(_ROUNDS):
        entering = (x == 0) & priced & (np.abs(slope) > limit)
        if side is not None:
            entering &= slope * side >= 0
        number = np.count_nonzero(entering)
        if solved and not number:
            return x
        most = max(_FEW, int(_PART * np.count_nonzero(x))) if round_ < _TOGETHER else 1
        if number > most:
            excess = np.where(entering, np.abs(slope) - price, 0.0)
            entering &= excess >= np.partition(excess, -most)[-most]
        sign = np.sign(np.where(entering, slope, x))
        move = _newton(H, slope, price, sign, free, entering)
        if move is None:
            return x
        step = _best_step(H, slope, price, x, move, sign, side)
        if step is None:
            return x
        x, slope, solved = step
    return x


def _newton(
    H: FloatArray,
    slope: FloatArray,
    price: FloatArray,
    sign: FloatArray,
    free: NDArray[np.bool_],
    entering: NDArray[np.bool_],
) -> FloatArray | None:
    """Step to the maximum for the guessed signs, without those that would enter on the wrong side; None for no step."""
    active = (sign != 0) | free
    while len(own := active.nonzero()[0]):
        side = sign[own]
        whole = len(own) == len(slope)
        found, _ = lapack.dpotrs(
            cholesky(H if whole else H.take(own, 0).take(own, 1)), slope[own] - price[own] * side, lower=1
        )
        wrong = entering[own] & (found * side <= 0)
        if not wrong.any():
            move = np.zeros_like(slope)
            move[own] = found
            return move
        if wrong.sum() == entering[own].sum() > 1:  # the steepest alone never enters on the wrong side
            wrong[np.argmax(np.where(wrong, np.abs(slope[own]) - price[own], -np.inf))] = False
        active[own[wrong]] = False
    return None


def _best_step(
    H: FloatArray,
    slope: FloatArray,
    price: FloatArray,
    x: FloatArray,
    move: FloatArray,
    sign: FloatArray,
    side: FloatArray | None,
) -> tuple[FloatArray, FloatArray, bool] | None:
    """The higher of two points, with its slope: all that would change sign set to zero, or the best along the move.

    And whether the signs were right, so that the point is the maximum for them.
    """
    target = x + move
    crossing = (price > 0) & (target * sign < 0)
    target[crossing] = 0.0
    gain, fall = _gain(H, slope, price, x, target)
    crosses = crossing.any()
    if crosses:
        line = _line(H, slope, price, x, move, side)
        other, less = _gain(H, slope, price, x, line)
        # What rounding left beside zero is worth nothing, but as long as it is not zero it has the wrong sign.
        if other > gain or (gain <= 0.0 and np.any((line == 0) & (x != 0))):
            return line, slope - less, False
    return None if gain <= 0.0 else (target, slope - fall, not crosses)


def _gain(
    H: FloatArray, slope: FloatArray, price: FloatArray, x: FloatArray, target: FloatArray
) -> tuple[float, FloatArray]:
    """How much higher a point is, and how much the slope falls on the way."""
    step = target - x
    fall = H @ step
    return float(slope @ step - 0.5 * step @ fall) - float(price @ (np.abs(target) - np.abs(x))), fall


def _line(
    H: FloatArray, slope: FloatArray, price: FloatArray, x: FloatArray, move: FloatArray, side: FloatArray | None
) -> FloatArray:
    """Exact search along a move: the slope falls steadily, and by a jump where a coordinate changes sign."""
    bends = np.flatnonzero((price > 0) & (x * (x + move) < 0))
    at = -x[bends] / move[bends]
    order = np.argsort(at)
    bends, at = bends[order], at[order]
    jumps = 2 * price[bends] * np.abs(move[bends])
    if side is not None:
        jumps[side[bends] != 0] = np.inf  # a wall
    rate = float(slope @ move) - float(price @ np.where(x != 0, np.sign(x) * move, np.abs(move)))
    curvature = float(move @ H @ move)
    passed = np.append(0.0, np.cumsum(jumps))
    before = rate - curvature * at - passed[:-1]
    falls = np.flatnonzero(before - jumps <= 0)  # past these bends it goes down
    stop = int(falls[0]) if len(falls) else len(bends)
    if stop < len(bends) and before[stop] >= 0:
        out = x + at[stop] * move
        out[bends[stop]] = 0.0
        return np.asarray(out)
    return np.asarray(x + (rate - passed[stop]) / max(curvature, 1e-300) * move)


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
