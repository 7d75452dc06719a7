"""A problem in an order of its own: rows and columns sorted by what the data say, last digits rounded away.

Some searches magnify rounding errors until they decide what is kept. Sums over rows or columns in another order differ
in their last digits, so such a search would depend on the order in which the data were given. On the problem made here
it does not: whatever the order was, the arrays are the same to the last bit (rows or columns that tie are exempt).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bayes_sparse.common.types import FloatArray, IntArray
from bayes_sparse.problem.design import Design
from bayes_sparse.problem.problem import Problem

__all__ = ["in_own_order", "likeness"]

_DIGITS = 30  # binary digits that are kept of each column's largest entry: nine decimal ones


def likeness(problem: Problem) -> tuple[FloatArray, FloatArray]:
    """How much each column goes with the targets, and each row with those columns: known without any order."""
    design, weights = problem.design, np.ones(problem.design.n) if problem.weights is None else problem.weights
    pull = design.transposed_times(weights * (problem.y - np.average(problem.y, weights=weights)))
    return pull, design.times(pull, np.arange(design.width))


def in_own_order(problem: Problem) -> tuple[Problem, IntArray]:
    """The problem with its rows and basis functions sorted and rounded, and which column each one was."""
    design, width, M = problem.design, problem.design.width, problem.design.M
    pull, alike = likeness(problem)
    order = np.append(np.lexsort((design.squares(problem.weights)[:M], pull[:M])), np.arange(M, width))
    rows = np.lexsort((alike, problem.offset, problem.y))
    back = np.argsort(rows)
    fixed, free = problem.fixed_precision, problem.free[order]

    def moved(precision: FloatArray) -> FloatArray:
        full = np.zeros(width)
        full[~problem.free] = precision
        return full[order][~free]

    def moved_rows(eta: FloatArray, theta: FloatArray) -> tuple[FloatArray, ...]:
        return tuple(term[rows] for term in problem.pointwise(eta[back], theta))

    at = getattr(problem.pointwise, "at", None)  # a likelihood of ours is made anew for the rows in their order
    own = replace(
        problem,
        design=Design(_rounded(design.columns(order[:M])[rows]), extra=design.extra[rows]),
        y=problem.y[rows],
        free=free,
        fixed_precision=(lambda theta: moved(fixed(theta))) if callable(fixed) else moved(np.asarray(fixed)),
        pointwise=moved_rows if at is None else at(rows),
        many=None,
        fewer=None,
        offset=problem.offset[rows],
        weights=None if problem.weights is None else problem.weights[rows],
        theta=np.round(problem.theta, 9),
        theta_bounds=np.round(problem.theta_bounds, 9),
        sigma=problem.sigma if np.ndim(problem.sigma) == 0 else np.asarray(problem.sigma)[rows],
        groups=None if problem.groups is None else problem.groups[order],
    )
    return own, order


def _rounded(Phi: FloatArray) -> FloatArray:
    """To a part of each column's largest entry that is a power of two, so that nothing else is lost."""
    largest = np.maximum(Phi.max(axis=0, initial=0.0), -Phi.min(axis=0, initial=0.0))
    step = 2.0 ** (np.ceil(np.log2(np.maximum(largest, 1e-300))) - _DIGITS)
    out = np.ascontiguousarray(Phi / step)
    np.rint(out, out=out)
    out *= step
    return out
