"""FuzzyBLogReg: the number of weights smoothed, ``N^ = sum 1 - exp(-w^2 / 2 sigma^2)``, and Newton's method.

The search stays in the octant of the most likely weights; a weight that comes within eps of zero is set to zero for
good. The claim that the minimum of the exact criterion lies in that octant is false, so this is an approximation in
more than N: `Reweighted` does not need the claim.

Which weights are set to zero on the way may hang on the last digit: with many kernels that are alike, rounding errors
grow until they decide. So that the order of rows and columns does not decide with them, dense columns are searched in
an order of their own and rounded to nine digits, and only the last steps are taken on the columns as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from bayes_sparse.common.checks import check_search, positive
from bayes_sparse.common.statuses import Status
from bayes_sparse.common.types import FloatArray, Report
from bayes_sparse.inference.l1.fixed_points import PathOutcome
from bayes_sparse.inference.l1.path import Path, Point, best_theta
from bayes_sparse.problem.canonical import in_own_order
from bayes_sparse.problem.design import Design
from bayes_sparse.problem.gaussian import weighted_gram

__all__ = ["Fuzzy"]

_WEAK = 1e-3  # of the largest penalty: the start where most likely weights do not exist or are infinite
_TINY = 1e-7  # of the largest penalty: as good as none
_PROMISE = 1e-10  # nats: a step that promises less is the last one
_HALVINGS = 40


@dataclass(frozen=True)
class Fuzzy:
    """The paper's fast approximate procedure.

    Attributes
    ----------
    eps : float
        A weight of a standardised column so near zero is zero.
    sigma : float, optional
        Width of the smoothing; None for the square root of eps.
    max_iterations : int
        Newton steps.
    """

    eps: float = 1e-4
    sigma: float | None = None
    max_iterations: int = 1000

    priors: ClassVar[tuple[str, ...]] = ("jeffreys",)
    family: ClassVar[str] = "l1_path"

    def __post_init__(self) -> None:
        positive("eps", self.eps)
        check_search(self.max_iterations)
        if self.sigma is not None:
            positive("sigma", self.sigma)

    def __call__(self, path: Path, report: Report) -> PathOutcome:
        """Minimise the smoothed criterion."""
        search, order = path, None
        if isinstance(path.problem.design, Design):  # sparse columns stay sparse, and as they are
            own, order = in_own_order(path.problem)
            search = Path(own, path.allowed[order])
        if not search.largest > 0:
            return PathOutcome(path.null, Status.NULL, 0)
        # With a normal likelihood weights are in the units of the targets, so eps is too.
        unit = float(np.exp(search.null.theta[0])) if path.own_noise else 1.0
        sigma = np.sqrt(self.eps) if self.sigma is None else self.sigma
        state = _State(search, _start(search), unit, self.eps, sigma)
        for step in range(1, self.max_iterations + 1):
            if not state.priced.any():
                return PathOutcome(path.null, Status.NULL, step)
            done = state.step()
            report(step, -state.value, int(state.priced.sum()))
            if done and order is None:
                return PathOutcome(state.point(), Status.CONVERGED, step)
            if done and order is not None:  # and now on the columns as they are
                found = path.placed(order[state.index], state.w, state.theta)
                state, order = _State(path, found, unit, self.eps, sigma), None
        point = state.point() if order is None else path.placed(order[state.index], state.w, state.theta)
        return PathOutcome(point, Status.MAX_ITERATIONS, self.max_iterations)


def _start(path: Path) -> Point:
    """The most likely weights, or those of a weak penalty where there are none."""
    weak = path.cold(_WEAK * path.largest, 1e-6)
    problem = path.problem
    if problem.free.sum() >= problem.count or problem.separates(weak.spot.eta):
        return weak
    likely = path.at(_TINY * path.largest, weak, 1e-6)
    return weak if problem.separates(likely.spot.eta) else likely


class _State:
    """Weights inside their octant, and the smoothed criterion there."""

    def __init__(self, path: Path, start: Point, unit: float, eps: float, sigma: float) -> None:
        self._path, self._unit, self._eps, self._sigma = path, unit, eps * unit, sigma * unit
        self.index, self.w, self.theta = start.index, start.w.copy(), start.theta
        self._drop(self.priced & (np.abs(self.w) <= self._eps))
        self.value, self._terms = self._criterion(self.w, self.eta)

    @property
    def priced(self) -> NDArray[np.bool_]:
        """Weights that count."""
        return self._path.problem.free[self.index]

    def _drop(self, gone: NDArray[np.bool_]) -> None:
        self.index, self.w = self.index[~gone], self.w[~gone]
        self.rows = self._path.columns.take(self.index)
        self.eta = self._path.problem.offset + self.w @ self.rows

    def _criterion(self, w: FloatArray, eta: FloatArray) -> tuple[float, tuple[FloatArray, ...]]:
        """Its value, and what the likelihood says there."""
        own = w[self.priced]
        smooth = float(np.sum(-np.expm1(-0.5 * (own / self._sigma) ** 2)))
        R = float(np.abs(own).sum()) / self._unit
        terms = self._path.problem.terms(eta, self.theta)
        unpriced = 0.5 * float(self._path.precision[self.index] @ w**2)
        return -float(terms[0].sum()) + unpriced + (smooth * float(np.log(R)) if len(own) else 0.0), terms

    def _derivatives(self) -> tuple[FloatArray, FloatArray]:
        """Slope and curvature of the smoothed criterion."""
        precision, (_, first, second) = self._path.precision[self.index], self._terms[:3]
        w, s = np.where(self.priced, self.w, 0.0), np.where(self.priced, np.sign(self.w), 0.0)
        fading = np.where(self.priced, np.exp(-0.5 * (w / self._sigma) ** 2), 1.0)
        smooth, R = float(np.sum(1 - fading)), float(np.abs(w).sum())
        log_R = float(np.log(R / self._unit))
        rise = w / self._sigma**2 * fading
        slope = -self.rows @ first + precision * self.w + rise * log_R + smooth * s / R
        H = weighted_gram(self.rows.T, np.maximum(-second, 0.0))
        bent = np.where(self.priced, fading * (1 - (w / self._sigma) ** 2) / self._sigma**2, 0.0)
        H.flat[:: len(H) + 1] += precision + bent * log_R
        H += (np.outer(rise, s) + np.outer(s, rise)) / R - smooth * np.outer(s, s) / R**2
        return slope, H

    def step(self) -> bool:
        """One Newton step, cut at the first bound; whether it was the last."""
        slope, H = self._derivatives()
        move = -_newton(H, slope)
        promise = -float(slope @ move)
        room, s = np.full(len(move), np.inf), np.sign(self.w)
        inward = self.priced & (move * s < 0)
        room[inward] = (np.abs(self.w[inward]) - self._eps) / np.abs(move[inward])
        scale = min(1.0, float(room.min(initial=np.inf)))
        bound: NDArray[np.bool_] = room == scale
        along = move @ self.rows
        for _ in range(_HALVINGS):
            w, eta = self.w + scale * move, self.eta + scale * along
            value, terms = self._criterion(w, eta)
            if np.isfinite(value) and value <= self.value + 1e-12 * abs(self.value):
                break
            scale, bound = scale / 2, np.zeros_like(bound)
        else:
            return True
        done = promise <= _PROMISE and not bound.any()
        self.w, self.eta, self.value, self._terms = w, eta, value, terms
        if bound.any():
            self._drop(bound)
        if self.theta.size:
            new = best_theta(self._path.problem, self.eta, self.theta)
            done = done and float(np.abs(new - self.theta).max()) <= 1e-8
            self.theta = new
        if bound.any() or self.theta.size:
            self.value, self._terms = self._criterion(self.w, self.eta)
        return done

    def point(self) -> Point:
        """The state as a point of the path."""
        return self._path.placed(self.index, self.w, self.theta)


def _newton(H: FloatArray, slope: FloatArray) -> FloatArray:
    """Newton's step; with the size of every curvature where some are negative, so that it goes downhill."""
    L, info = lapack.dpotrf(H, lower=1)
    if info == 0:
        x, _ = lapack.dpotrs(L, slope, lower=1)
        return np.asarray(x)
    values, vectors = _eigen(H)
    size = np.maximum(np.abs(values), 1e-10 * np.abs(values).max())
    return np.asarray(vectors @ ((vectors.T @ slope) / size))


def _eigen(H: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues and vectors as `scipy.linalg.eigh` has them, whose checks take longer than a small matrix does."""
    work, whole, _ = lapack.dsyevr_lwork(len(H), lower=1)
    values, vectors, _, _, info = lapack.dsyevr(H, lower=1, lwork=int(work), liwork=int(whole))
    if info != 0:
        raise np.linalg.LinAlgError("the eigenvalues of a curvature were not found")
    return values, vectors
