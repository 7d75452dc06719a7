"""Where the likelihood is replaced by a quadratic: a choice that decides what a one-step method keeps.

``L(v) ~ value + gradient'(v - v0) - (v - v0)'H(v - v0)/2`` with H of the likelihood alone. At a ridge's maximum, and
after a few Newton steps, the gradient that is left is dropped: the point stands for the maximum of the likelihood,
which with as many kernels as observations is at infinity. At zero and at a point of the user's it is kept.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np

from bayes_sparse.inference.evidence.outcome import Report
from bayes_sparse.inference.newton import climb
from bayes_sparse.inference.one_step.isotropic import Ridge, evidence_ridge
from bayes_sparse.problem.design import FloatArray
from bayes_sparse.problem.surfaces import Look, Surface

__all__ = ["Quadratic", "check_expansion", "check_ridge", "expand"]

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


def expand(surface: Surface, expansion: Any, ridge: float, report: Report) -> Quadratic:
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
    """
    point = expansion if isinstance(expansion, np.ndarray) else np.zeros(surface.d) if expansion == "zero" else None
    wanted = point is None and expansion == "evidence"
    evidence = evidence_ridge(surface, report) if wanted or surface.theta.size else None
    theta = surface.theta if evidence is None else evidence.theta
    fixed, start = surface.fixed_precision(theta), surface.start()
    if point is not None:
        v, look, steps = _at(surface, point, theta, fixed)
        return _seen(look, v, look.gradient[: surface.d], theta, steps, evidence)
    unit = surface.unit(theta)
    size, limit = ridge * unit, 200
    if expansion == "evidence":
        assert evidence is not None
        size = evidence.precision
    elif expansion != "ridge":
        size, limit = _BARELY * unit, int(expansion)
    peak = climb(surface, np.append(np.full(surface.d, size), fixed), theta, start, max_steps=limit, report=report)
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
    return Quadratic(v, look.value, gradient, look.curvature(), theta, steps, look.separates, evidence)


def _at(surface: Surface, w: FloatArray, theta: FloatArray, fixed: FloatArray) -> tuple[FloatArray, Look, int]:
    """The point with given free weights, the fixed ones at their best."""
    v = np.append(w, surface.start()[surface.d :])
    peak = climb(surface, np.append(np.zeros(surface.d), fixed), theta, v, held=surface.d)
    return peak.v, peak.look, peak.steps
