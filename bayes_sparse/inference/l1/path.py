"""The L1 path of a problem, its nuisance parameters, and what the criterion says of a point of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack
from scipy.optimize import minimize, minimize_scalar
from scipy.special import gammaln

from bayes_sparse.common.types import FloatArray, IntArray
from bayes_sparse.inference.l1.lasso import ColumnStore, Lasso, Spot
from bayes_sparse.inference.mixing import Mixing
from bayes_sparse.problem.gaussian import weighted_gram
from bayes_sparse.problem.problem import Problem

__all__ = ["Path", "Point", "Record", "best_theta", "theta_curvature"]

_STEP = 1e-4  # of a numerical derivative along a parameter on the log scale
_FLAT = 1e-5  # curvature below which nothing is known about a parameter, and rounding errors speak
_NEWTON, _NEAR, _SETTLED = 12, 2.0, 1e-10  # steps of Newton's method, how far it may go, and when it is there
_SHORT = 1e-4  # a step of Newton's method that short is followed by a shorter one, but for rounding errors


def best_theta(problem: Problem, eta: FloatArray, theta: FloatArray) -> FloatArray:
    """The most likely nuisance parameters at a predictor, from a start."""
    if not theta.size:
        return theta
    low, high = problem.theta_bounds.T
    if problem.normal and problem.log_prior is None:
        square = (problem.y - eta) ** 2
        variance = float(square.sum() if problem.weights is None else problem.weights @ square) / problem.count
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
    start, last = theta, np.inf
    for _ in range(_NEWTON):
        rises = [_height(problem, eta, theta + step) - _height(problem, eta, theta - step) for step in steps]
        curvature = theta_curvature(problem, eta, theta)[2]
        if curvature.diagonal().max() >= 1 / _FLAT**2 or np.linalg.eigvalsh(curvature)[0] <= 0:
            return None
        move = np.linalg.solve(curvature, np.array(rises) / (2 * _STEP))
        theta = theta + move
        if not (np.abs(theta - start).max() <= _NEAR and ((low < theta) & (theta < high)).all()):
            return None
        length = float(np.abs(move).max())
        if length <= _SETTLED or last <= min(length, _SHORT):
            return theta
        last = length
    return None


def theta_curvature(problem: Problem, eta: FloatArray, theta: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Second derivatives of minus the log-likelihood: along the predictor (n,), mixed (n, t), and of theta (t, t)."""
    bend, t = np.maximum(-problem.terms(eta, theta)[2], 0.0), theta.size
    if problem.normal and t and problem.log_prior is None:
        slope = problem.terms(eta, theta)[1]
        return bend, 2.0 * slope[:, None], np.array([[2.0 * problem.count]])
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


_ROUNDS = 500
_ASTRAY = 3  # turns that come no nearer
_TO_AND_FRO = 20  # of them, after which they never will: where a parameter is flat they may go between two points
_FINE = 1e-10
_PATIENCE = 1000


@dataclass(frozen=True, eq=False)
class Record:
    """What is remembered of a point that a search went through: nothing as long as the data."""

    knob: float
    lam: float
    N: int
    R: float
    gap: float
    index: IntArray
    w: FloatArray


@dataclass(frozen=True, eq=False)
class Point:
    """A point of the path and what the criterion says of it.

    Attributes
    ----------
    path : Path
        Where it lies.
    knob : float
        Value of the knob.
    spot : Spot
        The minimum there, in the knob's units.
    theta : array
        Nuisance parameters.
    log_likelihood : float
        At them.
    """

    path: Path
    knob: float
    spot: Spot
    theta: FloatArray
    log_likelihood: float

    @property
    def unit(self) -> float:
        """What a unit of the knob is worth in lambda: one, or the noise's precision."""
        return float(np.exp(-2 * self.theta[0])) if self.path.own_noise else 1.0

    @property
    def lam(self) -> float:
        """Price of a unit of |w|."""
        return self.knob * self.unit

    @property
    def index(self) -> IntArray:
        """Columns that are not zero, or have no price."""
        return self.spot.index

    @property
    def w(self) -> FloatArray:
        """Their weights."""
        return self.spot.w

    @cached_property
    def sign(self) -> FloatArray:
        """Signs of the priced weights, zero for the others."""
        return np.where(self.path.problem.free[self.index], np.sign(self.w), 0.0)

    @property
    def N(self) -> int:
        """Priced weights that are not zero."""
        return int(np.count_nonzero(self.sign))

    @property
    def R(self) -> float:
        """Sum of their absolute values."""
        return float(self.sign @ self.w)

    @property
    def gap(self) -> float:
        """Log N/(lambda R): zero at a solution, positive where lambda should grow."""
        return float(np.log(self.N / (self.lam * self.R))) if self.N else np.inf

    @property
    def record(self) -> Record:
        """The point without all that is as long as the data."""
        return Record(self.knob, self.lam, self.N, self.R, self.gap, self.index, self.w)

    @cached_property
    def precision(self) -> FloatArray:
        """Curvature of minus the log-likelihood over the active weights and the nuisance parameters."""
        path, k = self.path, len(self.index)
        rows = path.columns.take(self.index)
        H, mixed, own = theta_curvature(path.problem, self.spot.eta, self.theta)
        out = np.empty((k + len(own), k + len(own)))
        out[:k, :k] = weighted_gram(rows.T, H)
        out[:k, :k].flat[:: k + 1] += path.precision[self.index]
        out[:k, k:] = rows @ mixed
        out[k:, :k], out[k:, k:] = out[:k, k:].T, own
        return out

    @cached_property
    def pull(self) -> tuple[FloatArray, float]:
        """How the active weights answer to one more unit of lambda (with a minus sign), and how fast R does.

        The weights at the nuisance parameters they have where the knob is lambda sigma^2, else with these following.
        """
        k = len(self.index)
        along = np.append(self.sign, np.zeros(self.theta.size))
        following = _solved(self.precision, along)
        shrink = np.inf if following is None else float(following @ along)
        if self.path.own_noise:
            alone = _solved(self.precision[:k, :k], self.sign)
            return (np.zeros(k) if alone is None else alone), shrink
        return (np.zeros(k) if following is None else following[:k]), shrink

    @property
    def r(self) -> float:
        """Rate at which lambda <- N/R contracts; below 1 exactly at a strict local minimum on the support."""
        return self.N / self.R**2 * self.pull[1] if self.N else np.nan

    @property
    def newton(self) -> float:
        """Knob at which the gap would close if nothing entered or left; NaN where it would not."""
        if not self.N or not self.r < 1:
            return np.nan
        moved, shrink = self.pull
        faster = float(moved @ self.sign) / shrink if self.path.own_noise else 1.0  # d log lambda / d log knob
        return self.knob + (self.N / self.R - self.lam) / (self.unit * faster * (1 - self.r))

    @property
    def knot(self) -> float:
        """First knob above this one at which a weight would reach zero."""
        moved = self.pull[0] * self.unit
        with np.errstate(divide="ignore", invalid="ignore"):
            ahead = np.where(moved * self.sign > 0, self.w / moved, np.inf)
        return self.knob + float(ahead.min(initial=np.inf))

    @property
    def log_prior(self) -> float:
        """Log of the marginal prior, unnormalised: log Gamma(N) - N log 2 - N log R."""
        return float(gammaln(self.N) - self.N * np.log(2 * self.R)) if self.N else 0.0

    @property
    def criterion(self) -> float:
        """Q = -L + N log R, and what a normal prior on unpriced weights adds."""
        unpriced = 0.5 * float(self.path.precision[self.index] @ self.w**2)
        return -self.log_likelihood + unpriced + (self.N * float(np.log(self.R)) if self.N else 0.0)


class Path:
    """The path of a problem.

    Parameters
    ----------
    problem : Problem
        Its free columns have a price, the others a normal prior (flat where its precision is zero).
    allowed : bool array (width,), optional
        Columns that may be other than zero; None for all.
    columns : ColumnStore, optional
        Those of another path over the same design.
    """

    def __init__(
        self, problem: Problem, allowed: NDArray[np.bool_] | None = None, columns: ColumnStore | None = None
    ) -> None:
        self.problem = problem
        self.columns = ColumnStore(problem.design) if columns is None else columns
        self.own_noise = problem.normal and problem.theta.size > 0
        self.allowed = problem.free if allowed is None else allowed
        self.precision = np.zeros(problem.design.width)
        fixed = problem.fixed_precision
        self.precision[~problem.free] = fixed(problem.theta) if callable(fixed) else fixed

    @cached_property
    def null(self) -> Point:
        """No priced column at all."""
        theta = self.problem.theta
        return self._settle(np.inf, self._lasso(theta).null(), theta, _FINE)

    @property
    def largest(self) -> float:
        """The knob above which nothing is worth it."""
        null = self.null
        return self._lasso(null.theta).largest(null.spot)

    def cold(self, knob: float, tolerance: float) -> Point:
        """The point at a knob, from nothing."""
        theta = self.null.theta
        null = None if theta.size else self.null.spot
        return self._settle(knob, self._lasso(theta).cold(knob, tolerance, null), theta, tolerance)

    def at(self, knob: float, near: Point, tolerance: float) -> Point:
        """The point at a knob, from another one."""
        return self._settle(knob, self._lasso(near.theta).solve(knob, near.spot, tolerance), near.theta, tolerance)

    def at_lambda(self, lam: float) -> Point:
        """The point at a lambda; where the knob is lambda sigma^2, the one that the empty model is drawn to."""
        if not self.own_noise:
            return self.cold(lam, _FINE)
        point = self.null
        knob = lam / point.unit
        for _ in range(_PATIENCE):
            point = self.at(knob, point, _FINE)
            before, knob = knob, lam / point.unit
            if abs(knob / before - 1) <= _SETTLED:
                break
        return point

    def placed(self, index: IntArray, w: FloatArray, theta: FloatArray) -> Point:
        """Weights found in another way as a point, at lambda = N/R."""
        problem = self.problem
        eta = problem.offset + w @ self.columns.take(index)
        value, first, second = problem.terms(eta, np.zeros_like(theta) if self.own_noise else theta)[:3]
        gradient = problem.design.transposed_times(first)
        gradient[index] -= self.precision[index] * w * (np.exp(2 * theta[0]) if self.own_noise else 1.0)
        spot = Spot(np.inf, index, w, eta, float(value.sum()), first, np.maximum(-second, 0.0), gradient, 0.0, 0)
        point = Point(self, np.inf, spot, theta, float(problem.terms(eta, theta)[0].sum()))
        if not point.N:
            return point
        knob = point.N / point.R / point.unit
        wrong = np.where(self.allowed, np.maximum(np.abs(gradient) / knob - 1, 0.0), 0.0)
        wrong[index] = np.abs(gradient[index] / knob - point.sign)
        return replace(point, knob=knob, spot=replace(spot, lam=knob, residual=float(wrong.max())))

    def _lasso(self, theta: FloatArray) -> Lasso:
        """The convex problem at given nuisance parameters; at unit noise where the knob accounts for it."""
        problem = self.problem
        at = np.zeros_like(theta) if self.own_noise else theta
        precision = self.precision * np.exp(2 * theta[0]) if self.own_noise else self.precision
        return Lasso(
            self.columns, lambda eta: problem.terms(eta, at), problem.offset, problem.free, precision, self.allowed
        )

    def _settle(self, knob: float, spot: Spot, theta: FloatArray, tolerance: float) -> Point:
        """Nuisance parameters and weights in turn until neither moves, each turn from where the last few point to."""
        alone = self.own_noise and not self.precision.any()  # then the weights do not ask for the noise
        still = _SETTLED / 10 if self.own_noise else _SETTLED  # the noise has no rounding errors of a search
        mixing, shortest, since, (low, high) = Mixing(np.ones_like(theta)), np.inf, 0, self.problem.theta_bounds.T
        for _ in range(_ROUNDS):
            before, theta = theta, best_theta(self.problem, spot.eta, theta)
            move = float(np.abs(theta - before).max(initial=0.0))
            shortest, since = min(shortest, move), 0 if move < shortest else since + 1
            no_nearer = (since >= _ASTRAY and move <= _SHORT) or since >= _TO_AND_FRO  # but by rounding errors
            if alone or move <= still or no_nearer:
                break
            if since < _ASTRAY:  # else plain turns, which only lead uphill, until they come nearer
                theta = np.clip(mixing.next(before, theta), low, high)
            spot = self._lasso(theta).solve(knob, self._seen_anew(spot, theta), tolerance)
        total = float(self.problem.terms(spot.eta, theta)[0].sum()) if theta.size else spot.value
        return Point(self, knob, spot, theta, total)

    def _seen_anew(self, spot: Spot, theta: FloatArray) -> Spot:
        """A spot with the likelihood looked at under other nuisance parameters."""
        at = np.zeros_like(theta) if self.own_noise else theta
        value, first, second = self.problem.terms(spot.eta, at)[:3]
        return replace(spot, value=float(value.sum()), slope=first, bend=np.maximum(-second, 0.0))


def _solved(P: FloatArray, b: FloatArray) -> FloatArray | None:
    """``P^-1 b``, None where P is not positive definite."""
    if not len(b):
        return b
    L, info = lapack.dpotrf(P, lower=1)
    if info != 0:
        return None
    x, _ = lapack.dpotrs(L, b, lower=1)
    return np.asarray(x)
