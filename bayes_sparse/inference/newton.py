"""Climb a surface under a normal prior by damped Newton steps; and the weights with a known prior integrated out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack

from bayes_sparse.common.types import FloatArray, Report
from bayes_sparse.problem.gaussian import cholesky
from bayes_sparse.problem.surfaces import Look, Surface

__all__ = ["CREEP", "Peak", "Profile", "ascend", "climb"]

_DECREMENT = 1e-10  # nats: the step that promises no more is the last one, and leaves an error of this size squared
_HALVINGS = 40
CREEP = 1e-6  # of a step: one cut so short that nothing rises is no step, or rounding errors are followed for ever


@dataclass(frozen=True, eq=False)
class Peak:
    """Where a climb ended.

    Attributes
    ----------
    v : array
        The point.
    look : Look
        The likelihood there.
    steps : int
        Newton steps taken.
    converged : bool
        False when the limit of steps came first.
    """

    v: FloatArray
    look: Look
    steps: int
    converged: bool


@dataclass(frozen=True, eq=False)
class Profile:
    """The fixed weights given the free ones, ``x | w ~ N(x0 - link (w - w0), (L L')^-1)``.

    Attributes
    ----------
    S : array (d, d)
        Curvature over the free weights with the fixed ones integrated out.
    link : array (q, d)
        How the fixed weights follow the free ones.
    L : array (q, q)
        Lower factor of the fixed weights' precision.
    """

    S: FloatArray
    link: FloatArray
    L: FloatArray

    @classmethod
    def of(cls, H: FloatArray, d: int, fixed: FloatArray) -> Profile:
        """From the curvature over all weights and the prior precisions of the fixed ones."""
        if H.shape[0] == d:
            return cls(H, np.empty((0, d)), np.empty((0, 0)))
        L = cholesky(H[d:, d:] + np.diag(fixed))
        link, _ = lapack.dpotrs(L, H[d:, :d], lower=1)
        return cls(H[:d, :d] - H[:d, d:] @ link, np.asarray(link), L)


def climb(
    surface: Surface,
    precision: FloatArray,
    theta: FloatArray,
    start: FloatArray,
    *,
    held: int = 0,
    max_steps: int = 200,
    report: Report | None = None,
) -> Peak:
    """Maximise ``L(v) - precision @ v^2 / 2`` from a start, halving every step until it climbs.

    The first ``held`` weights stay where they are.
    """
    v, look = start, surface.look(start, theta)
    height = look.value - 0.5 * float(precision @ v**2)
    for step in range(1, max_steps + 1):
        gradient = (look.gradient - precision * v)[held:]
        move = np.zeros_like(v)
        move[held:] = _solved(look, precision[held:], gradient, held)
        gain = float(gradient @ move[held:])
        last = gain <= _DECREMENT
        least = height - _DECREMENT if last else height  # the last step gains less than the heights' rounding error
        higher = ascend(surface, theta, v, move, lambda new: 0.5 * float(precision @ new**2), least)
        if higher is None:
            return Peak(v, look, step, converged=True)
        v, look, height = higher
        if report is not None:
            report(step, height, surface.d)
        if last:
            return Peak(v, look, step, converged=True)
    return Peak(v, look, max_steps, converged=False)


def ascend(
    surface: Surface,
    theta: FloatArray,
    v: FloatArray,
    move: FloatArray,
    penalty: Callable[[FloatArray], float],
    least: float,
) -> tuple[FloatArray, Look, float] | None:
    """Take a step, halved until ``L - penalty`` is at least ``least``; None where only rounding errors are left."""
    scale = 1.0
    for _ in range(_HALVINGS):
        new = v + scale * move
        seen = surface.look(new, theta)
        risen = seen.value - penalty(new)
        if risen > least or (risen == least and scale > CREEP):
            return new, seen, risen
        scale /= 2
    return None


def _solved(look: Look, precision: FloatArray, gradient: FloatArray, held: int) -> FloatArray:
    """Newton's step with the true curvature where the prior makes it positive, with one that always is otherwise."""
    if not gradient.size:
        return gradient
    for curvature in (look.curvature, look.steps):
        P = curvature()[held:, held:]
        P.flat[:: len(P) + 1] += precision
        L, info = lapack.dpotrf(P.T, lower=1)  # which is the same, and as LAPACK wants it
        if info == 0:
            break
    else:
        L = cholesky(P)
    x, _ = lapack.dpotrs(L, gradient, lower=1)
    return np.asarray(x)
