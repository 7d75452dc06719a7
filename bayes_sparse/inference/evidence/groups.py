"""Columns that share one precision, in a search: what a group would gain, what it is worth, and how it scores.

With a group left out its columns have a sparsity S and a quality q, a matrix and a vector. In the eigenvectors of S
they are as many columns that have nothing to do with each other, with sparsities s_j and qualities z_j but one
precision: the gain ``1/2 (q' (alpha I + S)^-1 q - log det(I + S / alpha))`` is the sum of theirs. It may have several
tops, so the best precision is searched for between the best ones of the directions, on a grid and then closer.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayes_sparse.common.types import BoolArray, FloatArray, IntArray
from bayes_sparse.inference.evidence.exchanges import addition_gain, column_worth
from bayes_sparse.inference.evidence.state import Approximation, Scores, State
from bayes_sparse.problem.active import columns_counted
from bayes_sparse.problem.classes import AnyProblem
from bayes_sparse.problem.gaussian import Dual, Primal
from bayes_sparse.problem.groups import Groups, positions_by_size

__all__ = [
    "Directions",
    "active_directions",
    "alone",
    "best_gain",
    "candidates",
    "offered",
    "put_gains",
    "put_useless",
    "term_worth",
]

_GRID = 32  # precisions looked at first
_CLOSER = 8  # rounds of looking closer
_AROUND = np.arange(-4, 5) / 4  # the precisions of such a round, in units of the last spacing
_FAR = 1e4  # times the largest sparsity: where a precision is as good as infinite
_ZERO = 1e-15  # of a prior variance: a posterior one has no digits left below it
_CARRIED = 1e-4  # of the largest sparsity of a group: a direction with less has next to nothing of its own
_LOST = 1e-10  # of a direction: so small a share is rounding error


class Directions(NamedTuple):
    """Groups of one size, as if each were left out.

    Attributes
    ----------
    at : int array (g, m)
        Their columns, or positions among the active ones.
    s, z : array (g, m)
        Sparsity and quality in each direction; zero where a direction has nothing to add.
    """

    at: IntArray
    s: FloatArray
    z: FloatArray

    def where(self, which: BoolArray) -> Directions:
        """Some of the groups."""
        return Directions(self.at[which], self.s[which], self.z[which])

    def worth(self, alpha: FloatArray, smoothness: float) -> FloatArray:
        """What the objective would lose with each group taken out, (g,), at precisions (g,)."""
        return np.asarray(column_worth(alpha[:, None], self.s, self.z, smoothness).sum(axis=1))

    @property
    def score(self) -> FloatArray:
        """Chi-squared of each group, (g,), over the directions that say something by themselves."""
        return np.asarray(np.sum(np.where(self._speaks, self.z**2 / np.where(self._speaks, self.s, 1.0), 0.0), axis=1))

    @property
    def degrees(self) -> IntArray:
        """Its degrees of freedom, (g,)."""
        return np.asarray(np.maximum(self._speaks.sum(axis=1), 1))

    @property
    def _speaks(self) -> BoolArray:
        """All but those that other terms carry: of the levels of a factor the sum is the bias."""
        return np.asarray(self.s > _CARRIED * self.s.max(axis=1, keepdims=True))


def alone(problem: AnyProblem) -> BoolArray:
    """Free columns that share their precision with no other."""
    return problem.free if problem.grouping is None else problem.free & problem.grouping.alone


def offered(problem: AnyProblem) -> int:
    """How many terms a search chooses among: free columns, or groups of them."""
    return int(problem.free.sum()) if problem.grouping is None else problem.grouping.count


def active_directions(state: State) -> list[Directions]:
    """The active groups of two columns and more; none where no columns share a precision.

    The covariance of a group is ``(alpha I + S)^-1``, its mean ``(alpha I + S)^-1 q``.
    """
    found = []
    for at in [] if state.groups is None else positions_by_size(state.groups):
        alpha = state.alpha[at[:, :1]]
        v, V = np.linalg.eigh(state.posterior.covariances(at))
        v = np.maximum(v, _ZERO / alpha)
        s = 1 / v - alpha
        there = s * v > _LOST
        z = np.einsum("gij,gi->gj", V, state.mean[at]) / v
        found.append(Directions(at, np.where(there, s, 0.0), np.where(there, z, 0.0)))
    return found


def candidates(
    approximation: Approximation, groups: Groups, state: State, scores: Scores, most: float = np.inf
) -> list[Directions]:
    """The groups of two columns and more, up to so many, that are not active."""
    assert isinstance(state.posterior, Primal | Dual)
    lower, found = state.posterior.lower, []
    for columns in groups.by_size:
        outside = columns[~np.isin(columns[:, 0], state.index)]
        if not len(outside) or columns.shape[1] > most:
            continue
        full = np.array([approximation.cross_products(state, own) for own in outside])
        carried = scores.overlap[outside] @ lower  # its square is what the active columns carry of each product
        s, V = np.linalg.eigh(full - carried @ carried.transpose(0, 2, 1))
        there = s > _LOST * np.einsum("gii->g", full)[:, None]
        z = np.einsum("gij,gi->gj", V, scores.Q[outside])
        found.append(Directions(outside, np.where(there, s, 0.0), np.where(there, z, 0.0)))
    return found


def best_gain(directions: Directions, smoothness: float, floor: float = 0.0) -> tuple[FloatArray, FloatArray]:
    """Gain in the objective from adding each group at its best precision above the floor, and that precision."""
    _, s, z = directions
    own = addition_gain(s, z, smoothness)[1]  # the best of each direction: that of all lies between them
    pays = np.isfinite(own).any(axis=1)
    gain, alpha = np.zeros(len(s)), np.full(len(s), np.inf)
    some = directions.where(pays)
    low = own[pays].min(axis=1)
    high = np.where(np.isfinite(own[pays]) | (some.s == 0), own[pays], _FAR * some.s.max(axis=1, keepdims=True))
    high = np.where(np.isfinite(high), high, 0.0).max(axis=1)
    low, high = np.log(np.maximum(low, floor)), np.log(np.maximum(high, max(floor, 1e-300)))
    spacing = (high - low) / (_GRID - 1)
    best = _best(some, low[:, None] + spacing[:, None] * np.arange(_GRID), smoothness)
    for _ in range(_CLOSER):
        near = best[:, None] + spacing[:, None] * _AROUND
        best = _best(some, np.clip(near, low[:, None], high[:, None]), smoothness)
        spacing = spacing / 4
    value = some.worth(np.exp(best), smoothness)
    gain[pays], alpha[pays] = np.maximum(value, 0.0), np.where(value > 0, np.exp(best), np.inf)
    return gain, alpha


def _best(directions: Directions, log_alpha: FloatArray, smoothness: float) -> FloatArray:
    """The best of some log precisions (g, p) for each group."""
    each = column_worth(np.exp(log_alpha)[:, :, None], directions.s[:, None], directions.z[:, None], smoothness)
    at = each.sum(axis=2).argmax(axis=1)
    return np.asarray(log_alpha[np.arange(len(at)), at])


def put_gains(
    approximation: Approximation,
    problem: AnyProblem,
    state: State,
    scores: Scores,
    gain: FloatArray,
    alpha: FloatArray,
) -> None:
    """Gain and best precision of every group that is not active, in the place of its first column's own.

    The other columns of a group gain nothing by themselves, nor does a group of more columns than there are rows left.
    Where every column is alone there is nothing to put.
    """
    groups, room = problem.grouping, problem.design.n - columns_counted(state.free)
    if groups is None:
        return
    objective = approximation.objective
    gain[~groups.alone] = 0.0
    for directions in candidates(approximation, groups, state, scores, room):
        first = directions.at[:, 0]
        gain[first], alpha[first] = best_gain(directions, objective.smoothness, objective.floor)


def term_worth(state: State, smoothness: float) -> FloatArray:
    """What the objective would lose with each active column taken out, or with its group, (k,)."""
    worth = column_worth(state.alpha, *state.left_out(), smoothness)
    for directions in active_directions(state):
        worth[directions.at] = directions.worth(state.alpha[directions.at[:, 0]], smoothness)[:, None]
    return worth


def put_useless(excess: FloatArray, state: State, smoothness: float, floor: float) -> None:
    """Of each active group what `delete_useless` goes by: on its first column alone, not positive if it gains nothing.

    A group that is worth something is not useless; of the others the best precision decides.
    """
    for directions in active_directions(state):
        gain = directions.worth(state.alpha[directions.at[:, 0]], smoothness)
        unsure = gain <= 0
        if unsure.any():
            gain[unsure] = best_gain(directions.where(unsure), smoothness, floor)[0]
        together = np.minimum(excess[directions.at].sum(axis=1), 0.0)
        excess[directions.at] = np.inf
        excess[directions.at[:, 0]] = np.where(gain > 0, np.inf, together)
