"""Bridge sampling: the normalising constant of a density from draws of it and draws of a proposal like it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp

from bayes_sparse.problem.design import FloatArray

__all__ = ["Bridge", "bridge_sampling"]

_TOO_WIDE = 0.5  # nats of standard error: as large as this where a draw or two decide everything


@dataclass(frozen=True)
class Bridge:
    """A log normalising constant.

    Attributes
    ----------
    value, se : float
        Logarithm of the constant, and its standard error.
    iterations : int
        Until it settled.
    effective_draws : float
        What the draws of the density are worth for it.
    """

    value: float
    se: float
    iterations: int
    effective_draws: float


def bridge_sampling(
    proposal_log_p: FloatArray,
    proposal_log_q: FloatArray,
    posterior_log_p: FloatArray,
    posterior_log_q: FloatArray,
    *,
    tolerance: float = 1e-10,
    max_iterations: int = 1000,
) -> Bridge:
    """The log integral of p by the optimal bridge (Meng & Wong 1996).

    The constant r solves ``r = mean_q(l / (s1 l + s2 r)) / mean_p(1 / (s1 l + s2 r))`` with ``l = p/q``, a mean over
    draws of q above and of p below, and s1, s2 their shares of the (effective) draws. The standard error has the
    autocorrelation of the draws of p in it (Fruhwirth-Schnatter 2004, equation 16).

    Parameters
    ----------
    proposal_log_p, proposal_log_q : array (S2,)
        Log densities at independent draws of q, of p (not normalised) and of q (normalised).
    posterior_log_p, posterior_log_q : array (chains, draws)
        The same at draws of p that had no part in the making of q.
    tolerance, max_iterations : optional
        When the constant has settled, in nats, and how long to wait for that.
    """
    above = np.ravel(proposal_log_p).astype(float) - np.ravel(proposal_log_q)
    below = np.atleast_2d(np.asarray(posterior_log_p, dtype=float) - np.asarray(posterior_log_q))
    _check(above, below)
    share = np.log([_effective(np.atleast_2d(posterior_log_p)), len(above)])
    share = share - logsumexp(share)
    r, settled, iterations = float(np.median(below)), False, 0
    while not settled and iterations < max_iterations:
        top, bottom = _terms(above, below, r, share)
        step = float(_log_mean(top) - _log_mean(bottom))  # both are in units of the last r
        r, settled, iterations = r + step, abs(step) <= tolerance, iterations + 1
    if not settled:
        raise ValueError(
            f"Bridge sampling did not settle in {max_iterations} iterations: the proposal and the posterior hardly "
            "overlap; sample more draws, or look at the posterior for several modes."
        )
    top, bottom = (np.exp(terms) for terms in _terms(above, below, r, share))
    effective = _effective(bottom)
    variance = top.var(ddof=1) / top.mean() ** 2 / top.size + bottom.var(ddof=1) / bottom.mean() ** 2 / effective
    se = float(np.sqrt(variance))
    if not se <= _TOO_WIDE:
        raise ValueError(
            f"Bridge sampling has a standard error of {se:.2g} nats: the proposal and the posterior hardly overlap; "
            "sample more draws, or look at the posterior for several modes."
        )
    return Bridge(r, se, iterations, effective)


def _terms(above: FloatArray, below: FloatArray, r: float, share: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Logs of ``l / (s1 l + s2)`` at the proposal's draws and of ``1 / (s1 l + s2)`` at the posterior's, l over r."""
    top = above - r - np.logaddexp(share[0] + above - r, share[1])
    bottom = -np.logaddexp(share[0] + below - r, share[1])
    return top, bottom


def _log_mean(values: FloatArray) -> float:
    return float(logsumexp(values) - np.log(values.size))


def _effective(values: FloatArray) -> float:
    """Effective number of the draws (chains, draws) for their mean, and never more than there are."""
    from arviz_stats.base.array import array_stats  # takes most of a second, and fitting does not need it

    arviz: Any = array_stats
    ess = float(arviz.ess(values, chain_axis=0, draw_axis=1, method="mean"))
    return min(ess, float(values.size)) if np.isfinite(ess) else float(values.size)


def _check(above: FloatArray, below: FloatArray) -> None:
    if np.isnan(above).any() or not np.isfinite(above.max(initial=-np.inf)):
        raise ValueError("The log density is not a number at some of the proposal's draws, or zero at all of them.")
    if not np.isfinite(below).all():
        raise ValueError("The log densities at the posterior's draws are not all finite.")
    if below.shape[1] < 4:  # below which ArviZ knows no effective number
        raise ValueError(f"Bridge sampling needs at least 4 draws a chain in the second half, got {below.shape[1]}.")
