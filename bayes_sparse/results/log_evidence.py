"""The log evidence of a fit by the best means its tree has, with its standard error and what it is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import xarray as xr
from scipy.special import logsumexp

from bayes_sparse.common.types import FloatArray
from bayes_sparse.results.diagnose import Diagnosis, diagnose
from bayes_sparse.trees.damage import reads_a_fit
from bayes_sparse.trees.read import stored, was_sampled

__all__ = ["Bridge", "LogEvidence", "bridge_sampling", "log_evidence"]

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
        raise ValueError(f"Bridge sampling needs at least 4 draws per chain in the second half, got {below.shape[1]}.")


_METHODS = ("auto", "approximate", "importance", "bridge")


@dataclass(frozen=True)
class LogEvidence:
    """A log evidence.

    Attributes
    ----------
    value : float
        In nats, with every constant.
    se : float
        Monte-Carlo standard error; 0 for a closed form, NaN for an approximation, whose error is not of that kind.
    kind : str
        What it is: "exact", "laplace" or "quadratic" (approximations; of a sampled tree, the one it was started from),
        "importance sampling", "bridge sampling".
    method : str
        How to ask for it again: "approximate", "importance" or "bridge".
    conditional_on : str
        What it is given.
    """

    value: float
    se: float
    kind: str
    method: str
    conditional_on: str

    def __str__(self) -> str:
        error = f" +- {self.se:.3f}" if self.se > 0 else ""
        return f"log evidence {self.value:.3f}{error} ({self.kind}), given {self.conditional_on}"


@reads_a_fit
def log_evidence(
    tree: xr.DataTree, method: Literal["auto", "approximate", "importance", "bridge"] = "auto"
) -> LogEvidence:
    """The log evidence of a fit.

    Parameters
    ----------
    tree : xarray.DataTree
        From `bayes_sparse.fit`.
    method : str
        ``"approximate"``: the evidence method's own. ``"importance"``: the log of the mean importance weight of its
        draws; see `bayes_sparse.diagnose` for when to trust it. ``"bridge"``: bridge sampling, from a fit by NUTS.
        ``"auto"``: the last of these that the tree allows and that can be trusted, or the approximation where that is
        exact.

    Returns
    -------
    LogEvidence
        Compare two of them only where they are given the same kind of thing.
    """
    if method not in _METHODS:
        raise ValueError(f"`method` is one of {', '.join(map(repr, _METHODS))}, got {method!r}.")
    if method == "bridge" or (method == "auto" and "bridge" in tree.children):
        return _by_bridge(tree)
    if method == "importance":
        return _by_importance(_diagnosed(tree))
    if method == "auto" and _worth_weighting(tree):
        diagnosis = _diagnosed(tree)
        if diagnosis.correctable:
            return _by_importance(diagnosis)
    return _approximate(tree)


def _by_bridge(tree: xr.DataTree) -> LogEvidence:
    if "bridge" not in tree.children:
        raise ValueError('This tree has nothing to bridge from: fit with method="nuts", condition="alpha".')
    group = tree["bridge"].to_dataset()
    names = ("proposal_log_p", "proposal_log_q", "posterior_log_p", "posterior_log_q")
    found = bridge_sampling(*(group[name].to_numpy() for name in names))
    return LogEvidence(found.value, found.se, "bridge sampling", "bridge", str(group.attrs["conditional_on"]))


def _by_importance(found: Diagnosis) -> LogEvidence:
    return LogEvidence(
        found.log_evidence_importance, found.log_evidence_se, "importance sampling", "importance", found.conditional_on
    )


def _worth_weighting(tree: xr.DataTree) -> bool:
    if "evidence" not in tree.children or "sample_stats" not in tree.children or was_sampled(tree):
        return False
    return "log_p" in tree["sample_stats"] and tree["evidence"].attrs["approximation"] != "exact"


def _diagnosed(tree: xr.DataTree) -> Diagnosis:
    diagnosis = diagnose(tree)
    if not isinstance(diagnosis, Diagnosis):
        raise ValueError(
            "Importance sampling is from the draws of an evidence fit; a sampled tree has method='bridge', or nothing."
        )
    return diagnosis


def _approximate(tree: xr.DataTree) -> LogEvidence:
    if "evidence" not in tree.children:
        raise ValueError("This tree has no log evidence: it is not from an evidence method, and has nothing to bridge.")
    evidence = tree["evidence"].to_dataset()
    value, kind = float(evidence["log_evidence"]), str(evidence.attrs["approximation"])
    kind = "approximation it was started from" if was_sampled(tree) else kind
    if np.isnan(value):
        raise ValueError(
            "With lambda integrated out the prior is improper, and there is no approximate log evidence; "
            "method='importance' gives the one at the lambda found, from a fit with draws whose k-hat is small enough."
        )
    return LogEvidence(value, 0.0 if kind == "exact" else np.nan, kind, "approximate", stored(tree).given)
