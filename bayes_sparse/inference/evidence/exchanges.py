"""What else could stand in a term's place: the gain of an addition, the worth of a term, and exchanges of the two.

With one term left out the scores of all other columns follow at once (Tipping & Faul 2003), but at the precisions of
the others as they are, and correlated columns change those: after an exchange a neighbour grows, or is not needed any
more. So the most promising exchanges are all climbed together, in every precision, on the quadratic that the likelihood
is at the mode (a normal one is that everywhere, at its noise).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayes_sparse.common.types import BoolArray, FloatArray
from bayes_sparse.inference.evidence.state import Approximation, Objective, Scores, State
from bayes_sparse.problem.gaussian import Dual, Primal

__all__ = ["Exchange", "addition_gain", "column_worth", "exchanges", "largest", "look"]

_HOPE = 5.0  # nats that the others may make up for, when they follow
_EACH = 5  # columns looked at in the place of each term
_TOGETHER = 2**19  # scores of columns looked at together
_MOST = 64  # exchanges climbed together
_WORK = 1e7  # and as many multiplications a step
_STEPS = 3  # Newton steps of that climb
_PROMISED = 1e-3  # nats: a step that promises less is not made
_LONGEST = 2.0  # of such a step, in log units


def addition_gain(S: FloatArray, Q: FloatArray, smoothness: float, floor: float = 0.0) -> tuple[FloatArray, FloatArray]:
    """Gain in the objective from adding each column at its own best precision above the floor, and that precision."""
    with np.errstate(divide="ignore", invalid="ignore"):
        u = np.fmax(np.where(S > 0, Q**2 / S - 2 * smoothness, 1.0), 1.0)  # at one or less nothing is gained
        gain = 0.5 * (u - 1 - np.log(u))
        alpha = np.where(u > 1, S / (u - 1), np.inf)
        low = alpha < floor  # beyond its best precision the gain falls towards zero, but stays above it
        if low.any():
            alpha[low], gain[low] = floor, column_worth(floor, S[low], Q[low], smoothness)
    return gain, alpha


def column_worth(alpha: FloatArray | float, s: FloatArray, q: FloatArray, smoothness: float) -> FloatArray:
    """What the objective would lose with a column of precision alpha taken out; no number under a flat prior."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(0.5 * (np.log(alpha / (alpha + s)) + (q**2 - 2 * smoothness * s) / (alpha + s)))


def largest(gain: FloatArray, count: int) -> list[int]:
    """Positions of the largest gains, best first, without sorting them all."""
    count = min(count, len(gain))
    top = np.argpartition(-gain, count - 1)[:count] if count < len(gain) else np.arange(len(gain))
    return [int(i) for i in top[np.argsort(-gain[top], kind="stable")]]


class Exchange(NamedTuple):
    """A term kept for a column left out.

    Attributes
    ----------
    position : int
        Of the term among the active columns.
    column : int, optional
        What takes its place; None for nothing.
    loss : float
        What the objective loses, in nats.
    alpha : array (k,)
        Precisions after it, the newcomer's in the place of the term.
    score : float
        Squared z-score of the newcomer once the term is out.
    """

    position: int
    column: int | None
    loss: float
    alpha: FloatArray
    score: float = 0.0

    def made(self, approximation: Approximation, state: State) -> State:
        """The state after it."""
        index, alpha = state.index.copy(), self.alpha
        if self.column is None:
            index, alpha = np.delete(index, self.position), np.delete(alpha, self.position)
        else:
            index[self.position] = self.column
        return approximation.at(index, alpha, state.theta, state)


def exchanges(
    state: State, scores: Scores, objective: Objective, free: BoolArray, within: float, enough: float = np.inf
) -> list[Exchange]:
    """The best few exchanges of each term, those that lose least first, with all other precisions re-estimated.

    A column can stand for a term only if it pays for itself once the term is out.

    Parameters
    ----------
    state, scores : State, Scores
        An optimum, and what every column would add to it.
    objective : Objective
        What is maximised.
    free : bool array (width,)
        Columns whose precisions are estimated, each its own: others neither come nor go, and keep their precisions.
    within : float
        Nats: only exchanges that promise to lose less than this are climbed to the end.
    enough : float
        An exchange that gains this many nats with the other precisions as they are is the only one given, if there is
        one: a search that takes it has no use for the others.
    """
    moved = state.free & free[state.index]
    if not isinstance(state.posterior, Primal) or not moved.any():
        return []
    worth = column_worth(state.alpha, *state.left_out(), objective.smoothness)
    inside = ~free
    inside[state.index] = True
    positions = np.flatnonzero(moved)
    found = [Exchange(int(i), None, float(worth[i]), state.alpha) for i in positions]
    for some in np.array_split(positions, min(len(positions), 1 + len(positions) * len(free) // _TOGETHER)):
        S, Q = scores.without(state, some)
        gain, precision = addition_gain(S, Q, objective.smoothness, objective.floor)
        gain[inside] = 0.0
        top = np.argpartition(-gain, min(_EACH, len(gain)) - 1, axis=0)[:_EACH]
        for place, position in enumerate(some.tolist()):
            best = gain[:, place].max()
            for column in top[:, place].tolist():
                loss = float(worth[position] - gain[column, place])
                if gain[column, place] > 0 and (loss < within + _HOPE or gain[column, place] == best):
                    alpha = state.alpha.copy()
                    alpha[position] = precision[column, place]
                    score = float(Q[column, place] ** 2 / S[column, place])
                    found.append(Exchange(position, column, loss, alpha, score))
    found.sort(key=lambda exchange: exchange.loss)
    if found[0].loss < -enough:
        return found[:1]
    few = int(min(_MOST, _WORK / len(state.index) ** 3))
    near = [exchange for exchange in found[:few] if exchange.loss < within + _HOPE]
    climbed = _climbed(state, scores, objective, moved, near, within) if near else []
    return sorted(climbed + found[len(near) :], key=lambda exchange: exchange.loss)


def _climbed(
    state: State, scores: Scores, objective: Objective, moved: BoolArray, moves: list[Exchange], within: float
) -> list[Exchange]:
    """The same with the losses after a climb in all precisions, on the quadratic at the mode."""
    assert isinstance(state.posterior, Primal | Dual)
    P = state.posterior.lower @ state.posterior.lower.T
    position = np.array([move.position for move in moves])
    column = np.array([-1 if move.column is None else move.column for move in moves])
    overlap = np.where(column[:, None] < 0, 0.0, scores.overlap[column])  # nothing is a column of zeros
    cross = overlap @ P
    square = np.where(column < 0, 0.0, scores.S[column]) + np.einsum("ij,ij->i", cross, overlap)
    moment = cross @ state.mean + np.where(column < 0, 0.0, scores.Q[column])
    p, row = len(moves), np.arange(len(moves))
    H = np.repeat((P - np.diag(state.alpha))[None], p + 1, axis=0)  # the last one stays as it is
    b = np.repeat((P @ state.mean)[None], p + 1, axis=0)
    H[row, position], H[row, :, position], H[row, position, position] = cross, cross, square
    b[row, position] = moment
    alpha = np.array([*(move.alpha for move in moves), state.alpha])
    J, step, promise = look(H, b, alpha, state.free, moved, objective)
    now = J[-1]
    if not np.isfinite(now):  # the noise is so small that cross-products have no digits left
        return moves
    for _ in range(_STEPS):
        on = np.flatnonzero((J + promise > now - within) & (promise > _PROMISED))  # the others will not come as near
        if not len(on):
            break
        new = alpha[on] * np.exp(step[on])
        new[:, state.free] = np.maximum(new[:, state.free], objective.floor)
        new_J, new_step, new_promise = look(H[on], b[on], new, state.free, moved, objective)
        better = new_J > J[on]
        J[on], alpha[on] = np.where(better, new_J, J[on]), np.where(better[:, None], new, alpha[on])
        step[on] = np.where(better[:, None], new_step, step[on] / 4)
        promise[on] = np.where(better, new_promise, promise[on] / 4)
    return [move._replace(loss=float(loss), alpha=own) for move, loss, own in zip(moves, now - J, alpha, strict=False)]


def look(
    H: FloatArray, b: FloatArray, alpha: FloatArray, free: BoolArray, moved: BoolArray, objective: Objective
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Objective of many models of k columns each, up to what they share, and a Newton step in their log precisions.

    Also what the step promises to gain.
    """
    c, a, rate, floor, k = objective.smoothness, objective.a, objective.b, objective.floor, len(free)
    inverse = objective.inverse
    diagonal = np.arange(k)
    P = H.copy()
    P[:, diagonal, diagonal] += alpha
    Sigma = np.linalg.inv(P)
    w = np.einsum("pij,pj->pi", Sigma, b)
    variance = Sigma[:, diagonal, diagonal]
    sign, log_determinant = np.linalg.slogdet(P)
    with np.errstate(invalid="ignore", divide="ignore"):  # a precision at the floor has no place under a proper prior
        above = np.where(free, alpha - floor, alpha)
        own = 0.5 * np.log(alpha) - c * (1 - alpha * variance) + (a * np.log(above) if a else 0.0) - rate * above
        own -= inverse / above if inverse else 0.0
        J = own[:, free].sum(axis=1) + 0.5 * (np.einsum("pi,pi->p", b, w) - log_determinant)
    lost = (sign <= 0) | ~np.isfinite(J)
    T = Sigma - (Sigma * (alpha * free)[:, None]) @ Sigma  # Sigma H Sigma, fixed columns having no price
    T_own = T[:, diagonal, diagonal]
    slope = 0.5 * (1 - alpha * (variance + w**2)) + c * alpha * T_own - rate * alpha
    hill = -(alpha[:, :, None] * alpha[:, None]) * Sigma * (0.5 * Sigma + w[:, :, None] * w[:, None] - 2 * c * T)
    hill[:, diagonal, diagonal] += 0.5 * alpha * (variance + w**2) - c * alpha * T_own + rate * alpha
    if inverse:
        reciprocal = inverse / np.where(free, alpha, np.inf)
        slope += reciprocal
        hill[:, diagonal, diagonal] += reciprocal
    if a:
        share = np.where(free, np.maximum(above / alpha, 1e-9), 1.0)
        slope += a / share
        hill[:, diagonal, diagonal] += a * (1 - share) / share**2
    held = ~moved | ((alpha <= floor) & (slope < 0))  # a precision at the floor and pushed down stays there
    slope[held] = 0.0
    hill *= ~held[:, :, None] & ~held[:, None]
    hill[:, diagonal, diagonal] += 1e-3 + held
    J[lost], slope[lost], hill[lost] = -np.inf, 0.0, np.eye(k)
    step = np.linalg.solve(hill, slope[:, :, None])[:, :, 0]
    uphill = np.einsum("pi,pi->p", slope, step) > 0
    step = np.clip(np.where(uphill[:, None], step, slope), -_LONGEST, _LONGEST)
    return J, step, np.einsum("pi,pi->p", slope, step)
