"""A path looked at on a fine grid, with N, R and lambda counted by hand."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from .problems import NONE


@dataclass(frozen=True)
class Seen:
    """A point of the grid; where lambda should grow, the gap ``log N / (lambda R)`` is positive."""

    knob: float
    w: np.ndarray
    N: int
    gap: float


def scan(problem, top, weakest, count):
    """From the largest knob down to the weakest; every point is checked to be a minimum."""
    unknown = problem.name == "normal" and problem.problem.theta.size > 0
    lasso = problem.lasso(np.zeros(1) if unknown else NONE)
    spot, seen = lasso.null(), []
    for knob in np.geomspace(top * (1 - 1e-9), weakest, count):
        spot = lasso.solve(knob, spot, 1e-10)
        w = problem.full(spot)
        noise = np.mean((problem.problem.y - problem.problem.offset - problem.A @ w) ** 2) if unknown else 1.0
        theta = np.array([0.5 * np.log(noise)]) if unknown else NONE
        assert problem.violation(knob / noise, w, theta) < 1e-7
        N, R = np.count_nonzero(w[problem.problem.free]), np.abs(w[problem.problem.free]).sum()
        seen.append(Seen(knob, w, N, np.log(N * noise / (knob * R)) if N else np.inf))
    return seen


def turns(seen):
    """Brackets of the knob inside which growing turns into shrinking."""
    return [(low.knob, high.knob) for high, low in pairwise(seen) if low.gap > 0 >= high.gap]


def inside(knob, bracket):
    return bracket[0] * (1 - 1e-8) <= knob <= bracket[1] * (1 + 1e-8)
