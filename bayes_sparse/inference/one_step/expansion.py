"""Where the likelihood is replaced by a quadratic: a choice that decides what a one-step method keeps.

``L(v) ~ value + gradient'(v - v0) - (v - v0)'H(v - v0)/2`` with H of the likelihood alone. At a ridge's maximum, and
after a few Newton steps, the gradient that is left is dropped: the point stands for the maximum of the likelihood,
which with as many kernels as observations is at infinity. At zero and at a point of the user's it is kept. The ridge
may be the one of greatest evidence, of an isotropic prior, which also gives the nuisance parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
from scipy.linalg import lapack
from scipy.optimize import minimize, minimize_scalar

from bayes_sparse.common.types import FloatArray, Report
from bayes_sparse.inference.evidence.state import log_prior
from bayes_sparse.inference.newton import Peak, climb
from bayes_sparse.inference.one_step.matched import matched_peak
from bayes_sparse.problem.gaussian import cholesky
from bayes_sparse.problem.surfaces import Linear, Look, Softmax, Surface

__all__ = ["SMALL_RIDGE", "Quadratic", "Ridge", "check_expansion", "check_ridge", "evidence_ridge", "expand"]

_GRID = np.log(10.0) * np.arange(-8.0, 4.1, 2.0)  # ridges tried first, in logs of the surface's own unit
_DEEP = np.log(10.0) * np.arange(-14.0, 4.1)  # the same where each costs next to nothing, down to targets without noise
_WEAK = np.log(1e-3)  # ridges below need many steps each, and are seldom the best
_ENOUGH = 1500  # Newton steps a parameter, of which a few hundred do: more where rounding errors are climbed
_FINE = 1e-3  # how well the logarithm of the ridge is found


@dataclass(frozen=True, eq=False)
class Ridge:
    """An isotropic prior found by evidence.

    Attributes
    ----------
    precision : float
        Of every free weight.
    theta : array
        Nuisance parameters.
    theta_sd : array
        How well the evidence determines them at this ridge.
    log_evidence : float
        Laplace's, normalised.
    converged : bool
        False where the search has spent its Newton steps before its end: no mode can be told from its neighbours.
    """

    precision: float
    theta: FloatArray
    theta_sd: FloatArray
    log_evidence: float
    converged: bool = True


def evidence_ridge(surface: Surface, report: Report) -> Ridge:
    """Find the ridge and the nuisance parameters of greatest evidence."""
    if _plain_noise(surface):
        assert isinstance(surface, Linear)
        precision, theta, count = _normal(surface)
        sd = np.array([1 / np.sqrt(2 * max(count, 1.0))])
        return Ridge(precision, theta, sd, _evidence_of_normal(surface, precision, theta))
    evidence = _Evidence(surface, report)
    unit = surface.unit(surface.theta) or 1.0  # zero where no weight is free
    best = np.log(unit) + _roughly(lambda step: evidence(np.log(unit) + step, surface.theta))
    if not surface.theta.size:
        log_ridge = _top(lambda x: evidence(x, surface.theta), best)
        return Ridge(float(np.exp(log_ridge)), surface.theta, np.empty(0), evidence(log_ridge, surface.theta))
    # Without any signal the best ridge is infinite: it may go a little beyond the grid and no further.
    bounds = np.vstack([np.log(unit) + _GRID[[0, -1]] + [-5.0, 5.0], surface.theta_bounds])

    def lack(x: FloatArray) -> float:
        x = np.clip(x, *bounds.T)
        value = evidence(x[0], x[1:]) + surface.log_prior(x[1:])
        return -value if np.isfinite(value) else 1e300

    # A simplex finds the hill whatever its shape; a gradient then finds its top, whatever the order of the rows.
    start = np.append(best, surface.theta)
    many = len(start)

    def stop(xk: FloatArray) -> None:
        if evidence.steps > _ENOUGH * many:
            raise StopIteration

    rough = minimize(
        lack, start, method="Nelder-Mead", callback=stop, options={"xatol": 0.05, "fatol": 0.05, "maxfev": 100 * many}
    )
    x = np.clip(rough.x, *bounds.T)
    if evidence.steps <= _ENOUGH * many:
        x = minimize(
            lack, x, method="L-BFGS-B", jac="3-point", bounds=bounds, callback=stop, options={"maxfun": 40 * many}
        ).x
    converged = evidence.steps <= _ENOUGH * many
    sd = _spread(lambda theta: lack(np.append(x[0], theta)), x[1:])
    return Ridge(float(np.exp(x[0])), x[1:], sd, evidence(x[0], x[1:]), converged)


class _Evidence:
    """Laplace's evidence at a ridge and theta, each mode searched from the last, or from where the ridge leads it."""

    def __init__(self, surface: Surface, report: Report) -> None:
        self._surface, self._report = surface, report
        self._near, self._ridge = surface.start(), 0.0
        self._factor: FloatArray | None = None  # of H + P at the last mode
        self._count = 0
        self.steps = 0  # Newton's, of all modes

    def __call__(self, log_ridge: float, theta: FloatArray) -> float:
        s = self._surface
        precision = np.append(np.full(s.d, np.exp(log_ridge)), s.fixed_precision(theta))
        peak = climb(s, precision, theta, self._start(log_ridge))
        self.steps += peak.steps
        if not np.isfinite(peak.look.value):
            return -np.inf
        self._near, self._ridge, self._factor = peak.v, log_ridge, _factor(peak, precision)
        half = np.inf if self._factor is None else float(np.log(self._factor.diagonal()).sum())
        value = peak.look.value + log_prior(precision, peak.v) - half
        self._count += 1
        self._report(self._count, value, s.d)
        return value

    def _start(self, log_ridge: float) -> FloatArray:
        """Along ``(H + P) dv = -ridge w dlog(ridge)``, where nothing but the ridge changes."""
        s, L = self._surface, self._factor
        if L is None or s.theta.size or not isinstance(s, Linear | Softmax):
            return self._near
        pull: FloatArray = np.exp(self._ridge) * (log_ridge - self._ridge) * self._near
        pull[s.d :] = 0.0
        move, _ = lapack.dpotrs(L, pull, lower=1)
        return np.asarray(self._near - move)


def _evidence_of_normal(surface: Linear, ridge: float, theta: FloatArray) -> float:
    """The same where the likelihood is quadratic: one factor gives the mode, in one step, and the determinant."""
    precision = np.append(np.full(surface.d, ridge), surface.fixed_precision(theta))
    look = surface.look(np.zeros(len(precision)), theta)
    P = look.curvature()
    P.flat[:: len(P) + 1] += precision
    L = cholesky(P)
    v, _ = lapack.dpotrs(L, look.gradient, lower=1)
    value = surface.look(v, theta).value + log_prior(precision, v)
    return value - float(np.log(L.diagonal()).sum())


def _factor(peak: Peak, precision: FloatArray) -> FloatArray | None:
    """Of H + P, with the true curvature if it is positive there, with that of the steps otherwise; None if neither."""
    for curvature in (peak.look.curvature, peak.look.steps):
        H = curvature()
        H.flat[:: len(H) + 1] += precision
        try:
            return cholesky(H)
        except np.linalg.LinAlgError:
            continue
    return None


def _roughly(value: Callable[[float], float]) -> float:
    """The best point of the grid, from strong ridges, near which a search begins, to weak ones, which cost most.

    Of the weakest none is tried that comes after two falls in a row.
    """
    best, highest, falls = float(_GRID[-1]), -np.inf, 0
    for step in _GRID[::-1].tolist():
        here = value(step)
        best, highest, falls = (step, here, 0) if here > highest else (best, highest, falls + 1)
        if step < _WEAK and falls >= 2:
            break
    return best


def _narrowed(value: Callable[[float], float], near: float) -> float:
    """The maximum within two steps of the grid around the best of its points."""
    step = float(_GRID[1] - _GRID[0])
    found = minimize_scalar(
        lambda x: -value(x), bounds=(near - step, near + step), method="bounded", options={"xatol": _FINE}
    )
    return float(found.x)


def _top(value: Callable[[float], float], near: float) -> float:
    """The same where each value is dear: the last ones lie so close that a parabola through them has its top there."""
    seen: dict[float, float] = {}

    def kept(x: float) -> float:
        seen[x] = value(x)
        return seen[x]

    found = _narrowed(kept, near)
    a, b, c = sorted(sorted(seen, key=lambda x: abs(x - found))[:3])
    left, right = (seen[b] - seen[a]) / (b - a), (seen[c] - seen[b]) / (c - b)
    bend = (right - left) / (0.5 * (c - a))
    top = 0.5 * (a + b) - left / bend if bend < 0 else found
    return top if abs(top - found) <= _FINE else found


def _spread(lack: Callable[[FloatArray], float], theta: FloatArray) -> FloatArray:
    """Standard deviations that the curvature at a minimum suggests, one parameter at a time; 0 where it has none."""
    step, here = 0.05, lack(theta)
    sd = np.zeros(theta.size)
    for j, move in enumerate(step * np.eye(theta.size)):
        curvature = (lack(theta + move) - 2 * here + lack(theta - move)) / step**2
        sd[j] = 1 / np.sqrt(curvature) if curvature > 1e-6 else 0.0
    return sd


def _plain_noise(surface: Surface) -> bool:
    """Normal noise of one unknown size and no prior: given the ridge's ratio to it, it has a closed form."""
    return (
        isinstance(surface, Linear)
        and surface.problem.normal
        and surface.theta.size == 1
        and (surface.problem.log_prior is None)
    )


def _normal(surface: Linear) -> tuple[float, FloatArray, float]:
    """Ridge, log noise and number of observations left for it, of a normal likelihood, the fixed columns projected out.

    With S, r and t't what is left of ``Phi'Phi``, ``Phi't`` and the targets, ``rho = ridge * noise^2`` maximises
    ``-N/2 log noise^2 - 1/2 log det(I + S / rho)`` at ``noise^2 = (t't - r'(S + rho)^-1 r) / N``.
    """
    S, r, tt, count = _projected(surface)
    d, diagonal, beside, r = surface.d, *_tridiagonal(S, r)
    low, high = float(np.exp(2 * surface.theta_bounds[0, 0])), float(np.exp(2 * surface.theta_bounds[0, 1]))

    def at(log_rho: float) -> tuple[float, float]:
        pivots, factor, info = lapack.dpttrf(diagonal + np.exp(log_rho), beside)
        if info != 0:
            return -np.inf, high  # a ridge below rounding error
        x, _ = lapack.dpttrs(pivots, factor, r)
        noise = float(np.clip((tt - r @ x) / count, low, high))
        height = -0.5 * count * np.log(noise) - 0.5 * np.log(pivots).sum() + 0.5 * d * log_rho
        return float(height - 0.5 * np.maximum(tt - r @ x, 0.0) / noise), noise

    unit = np.log(max(float(np.trace(S)) / max(d, 1), 1e-300))
    best = unit + _DEEP[int(np.argmax([at(unit + step)[0] for step in _DEEP]))]
    log_rho = _narrowed(lambda x: at(x)[0], best)
    noise = at(log_rho)[1]
    return float(np.exp(log_rho) / noise), np.array([0.5 * np.log(noise)]), count


def _tridiagonal(S: FloatArray, r: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Diagonal and neighbours of ``Z'SZ``, and ``Z'r``: every ridge then costs d operations, not d^3."""
    d = len(r)
    if d < 2:
        return S.diagonal(), np.zeros(1), r  # no neighbours, but LAPACK wants room for one
    reflectors, diagonal, beside, tau, _ = lapack.dsytrd(S, lower=1, lwork=64 * d)
    # Z leaves the first coordinate alone; on the others it is stored as the Q of a QR.
    rest, *_ = lapack.dormqr("L", "T", reflectors[1:, :-1], tau, r[1:, None], 64)
    return diagonal, beside, np.append(r[0], rest)


def _projected(surface: Linear) -> tuple[FloatArray, FloatArray, float, float]:
    """``Phi' W Phi``, ``Phi' W t``, ``t' W t`` and the weighted count after the fixed columns have taken their part."""
    problem, d = surface.problem, surface.d
    weights = np.ones(surface.n) if problem.weights is None else problem.weights
    t = problem.y - problem.offset
    G, r = surface.gram, problem.design.transposed_times(weights * t)
    link = np.linalg.pinv(G[d:, d:], hermitian=True) @ np.column_stack([G[d:, :d], r[d:]])
    S = G[:d, :d] - G[:d, d:] @ link[:, :d]
    return (
        S,
        r[:d] - link[:, :d].T @ r[d:],
        float(t @ (weights * t) - r[d:] @ link[:, d]),
        surface.count - surface.q,
    )


SMALL_RIDGE = 1e-2  # in the surface's own unit
_STEPS = 200  # of Newton's method, where none are counted
_BARELY = 1e-8  # of the unit: keeps Newton steps finite where nothing else does


@dataclass(frozen=True, eq=False)
class Quadratic:
    """A quadratic stand-in for the log-likelihood.

    Attributes
    ----------
    v : array (d + q,)
        The point; its fixed weights are at their best given the free ones, or where a number of steps has put them.
    value : float
        Log-likelihood there.
    gradient : array (d,)
        Along the free weights; zero where it was dropped.
    slope : array (d + q,)
        Of the likelihood there along all weights, dropped or not.
    H : array (d + q, d + q)
        Curvature of the likelihood alone.
    theta : array
        Nuisance parameters.
    steps : int
        Newton steps it took.
    separates : bool
        The point puts every observation of a classification on its own side: without a prior there is no maximum.
    evidence : Ridge, optional
        The isotropic ridge of greatest evidence, where it was needed.
    converged : bool
        False when the point is not the maximum it was meant to be.
    """

    v: FloatArray
    value: float
    gradient: FloatArray
    slope: FloatArray
    H: FloatArray
    theta: FloatArray
    steps: int
    separates: bool
    evidence: Ridge | None
    converged: bool = True


def check_expansion(expansion: Any) -> None:
    """Refuse what is no expansion."""
    if isinstance(expansion, str):
        wrong = expansion not in ("ridge", "evidence", "zero")
    elif isinstance(expansion, bool) or (isinstance(expansion, Integral) and expansion < 1):
        wrong = True
    else:
        wrong = not isinstance(expansion, Integral) and np.ndim(expansion) == 0 and not isinstance(expansion, dict)
    if wrong:
        raise ValueError(
            "`expansion` is 'ridge' (a small one), 'evidence' (the ridge of greatest evidence), 'zero', a whole number "
            f"of Newton steps, or weights of yours; got {expansion!r}."
        )


def check_ridge(ridge: Any) -> None:
    """Refuse what is no ridge."""
    number = isinstance(ridge, int | float | np.number) and not isinstance(ridge, bool)
    if not (number and 0 < float(ridge) < np.inf):
        raise ValueError(f"`ridge` must be positive, got {ridge!r}.")


def expand(surface: Surface, expansion: Any, ridge: float, report: Report, approximation: str = "laplace") -> Quadratic:
    """Replace the likelihood by a quadratic.

    Parameters
    ----------
    surface : Surface
        The likelihood.
    expansion : str, int or array (d,)
        ``"ridge"``, ``"evidence"``, ``"zero"``, a number of Newton steps, or free weights.
    ridge : float
        Size of the small ridge in the surface's own unit.
    report : callable
        Progress.
    approximation : str
        ``"laplace"`` for the likelihood's own quadratic at the point; or one whose sites are matched under the ridge,
        in as many rounds as there are steps where these are counted.
    """
    point = expansion if isinstance(expansion, np.ndarray) else np.zeros(surface.d) if expansion == "zero" else None
    wanted = point is None and expansion == "evidence"
    evidence = evidence_ridge(surface, report) if wanted or surface.theta.size else None
    theta = surface.theta if evidence is None else evidence.theta
    fixed, start = surface.fixed_precision(theta), surface.start()
    if point is not None:
        if approximation != "laplace":
            raise ValueError(
                f"approximation={approximation!r} matches sites under a ridge: `expansion` is 'ridge', 'evidence' or a "
                f"number of rounds, not {expansion!r}."
            )
        v, look, steps = _at(surface, point, theta, fixed)
        return _seen(look, v, look.gradient[: surface.d], theta, steps, evidence)
    unit = surface.unit(theta)
    size: float = ridge * unit
    limit: int | None = None
    if expansion == "evidence":
        assert evidence is not None
        size = evidence.precision
    elif expansion != "ridge":
        size, limit = _BARELY * unit, int(expansion)
    precision = np.append(np.full(surface.d, size), fixed)
    if approximation != "laplace":
        peak = matched_peak(surface, approximation, precision, theta, limit)
        return _seen(peak.look, peak.v, np.zeros(surface.d), theta, peak.steps, evidence)
    peak = climb(surface, precision, theta, start, max_steps=limit or _STEPS, report=report)
    quadratic = _seen(peak.look, peak.v, np.zeros(surface.d), theta, peak.steps, evidence)
    if expansion in ("ridge", "evidence"):
        return replace(quadratic, converged=peak.converged)
    if peak.converged or _peaked(quadratic, fixed):
        return quadratic
    v, look, _ = _at(surface, peak.v[: surface.d], theta, fixed)
    return _seen(look, v, np.zeros(surface.d), theta, peak.steps, evidence)


def _peaked(quadratic: Quadratic, fixed: FloatArray) -> bool:
    """Whether the fixed weights can be integrated out: steps that stopped short may have left them in a trough."""
    d = len(quadratic.gradient)
    return bool(np.linalg.eigvalsh(quadratic.H[d:, d:] + np.diag(fixed)).min(initial=np.inf) > 0)


def _seen(
    look: Look, v: FloatArray, gradient: FloatArray, theta: FloatArray, steps: int, evidence: Ridge | None
) -> Quadratic:
    return Quadratic(v, look.value, gradient, look.gradient, look.curvature(), theta, steps, look.separates, evidence)


def _at(surface: Surface, w: FloatArray, theta: FloatArray, fixed: FloatArray) -> tuple[FloatArray, Look, int]:
    """The point with given free weights, the fixed ones at their best."""
    v = np.append(w, surface.start()[surface.d :])
    peak = climb(surface, np.append(np.zeros(surface.d), fixed), theta, v, held=surface.d)
    return peak.v, peak.look, peak.steps
