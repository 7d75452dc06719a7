"""How far to trust a fit: an approximation by importance sampling, a sampled posterior by its chains."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

import numpy as np
import pymc as pm
import xarray as xr

from bayes_sparse.common.printed import Grid, Shown
from bayes_sparse.common.statuses import Status
from bayes_sparse.inputs.bambi_model import BambiModel
from bayes_sparse.results.importance import Importance, importance, log_densities, side_of
from bayes_sparse.trees.alternatives import in_a_sentence
from bayes_sparse.trees.chains import health_of
from bayes_sparse.trees.damage import reads_a_fit
from bayes_sparse.trees.read import StoredFit, stored, was_sampled

__all__ = ["Diagnosis", "SamplingDiagnosis", "diagnose", "judged"]

_CLAUSE = "All of it is given the terms selected and alpha*; their own uncertainty is not checked."
_NEXT = 'bs.fit(..., method="nuts", condition="alpha")'
_SHARE, _GAP = 0.1, 0.5  # of the draws that must be left once re-weighted; nats that the log evidence may be off
_EVEN = 0.9  # of the draws: where they are worth more than that once re-weighted, the weights hardly differ


@dataclass(frozen=True, repr=False)
class Diagnosis(Shown):
    """How near an approximation is to the posterior it stands for.

    Attributes
    ----------
    k_hat : float
        Pareto shape of the importance weights; see `bayes_sparse.results.importance.Importance`.
    threshold : float
        What k-hat should stay below for so many draws.
    draws, effective_draws : int, float
        Of all chains, and what they are worth once re-weighted.
    coordinates : int
        Number of weights, or directions, that the approximation is over.
    log_evidence : float
        The approximation's own; NaN where it has none.
    log_evidence_importance, log_evidence_se : float
        By importance sampling, and its standard error; not to be trusted where `correctable` is false.
    conditional_on : str
        What these are given.
    trusted, verdict : bool, str
        Whether the weights can be used (`correctable`), a tenth of the draws are left once re-weighted, the evidence
        is within half a nat of the one by importance sampling, and the search ended well; all this in words.
    correctable : bool
        Whether k-hat is below the threshold, or the weights hardly differ: `bayes_sparse.correct` mends what is off.
    likelihood : str
        What the residuals have that the likelihood has not, and the cure; empty where nothing was found. `trusted` is
        about the posterior of the model as it was given, this about the model.
    wrong : tuple of str
        What speaks against trusting it, each in a few words.
    """

    k_hat: float
    threshold: float
    draws: int
    effective_draws: float
    coordinates: int
    log_evidence: float
    log_evidence_importance: float
    log_evidence_se: float
    conditional_on: str
    trusted: bool
    verdict: str
    correctable: bool = True
    likelihood: str = ""
    wrong: tuple[str, ...] = ()

    def _parts(self) -> list[Grid | str]:
        own = "" if np.isnan(self.log_evidence) else f", {self.log_evidence:.3f} by the approximation itself"
        sampled = f"{self.log_evidence_importance:.3f} +- {self.log_evidence_se:.3f} by importance sampling"
        rows = [
            ("trusted", _yes(self.trusted)),
            ("k-hat", f"{self.k_hat:.2f}, {side_of(self.k_hat, self.threshold)} {self.threshold:.2f}"),
            ("draws", f"{self.draws} of {self.coordinates} coordinates, worth {self.effective_draws:.0f} re-weighted"),
            ("log evidence", sampled + own),
        ]
        return [Grid(rows), self.verdict]


@dataclass(frozen=True, repr=False)
class SamplingDiagnosis(Shown):
    """Whether the chains of a sampled posterior agree and are long enough.

    Attributes
    ----------
    r_hat_max : float
        Largest rank-normalised R-hat.
    ess_bulk_min, ess_tail_min : float
        Fewest effective draws, of the middle and of the tails.
    divergences, max_treedepth : int
        How many draws diverged, and how many reached the largest tree.
    draws, chains, worst : int, int, str
        Of all chains; how many of these there are; the parameter with the largest R-hat.
    bfmi_min : float
        Least fraction of the energy's variance that a step explores; NaN without energies.
    trusted, verdict : bool, str
        Whether R-hat is at most 1.01, with 100 effective draws per chain and no divergence; all this in words.
    likelihood, wrong : str, tuple of str
        As in `Diagnosis`.
    """

    r_hat_max: float
    ess_bulk_min: float
    ess_tail_min: float
    divergences: int
    draws: int
    chains: int
    max_treedepth: int
    worst: str
    bfmi_min: float
    trusted: bool
    verdict: str
    likelihood: str = ""
    wrong: tuple[str, ...] = ()

    def _parts(self) -> list[Grid | str]:
        rows = [
            ("trusted", _yes(self.trusted)),
            ("largest R-hat", f"{self.r_hat_max:.3f}" + (f", of {self.worst}" if self.worst else "")),
            ("draws", f"{self.draws} of {self.chains} chains"),
            ("effective draws", f"at least {self.ess_bulk_min:.0f}, of the tails {self.ess_tail_min:.0f}"),
            ("divergences", f"{self.divergences}"),
            ("largest tree depth", f"reached by {self.max_treedepth} draws"),
            ("BFMI", "not known" if np.isnan(self.bfmi_min) else f"{self.bfmi_min:.2f} at least"),
        ]
        return [Grid(rows), self.verdict]


def _yes(trusted: bool) -> str:
    return "yes" if trusted else "no"


@reads_a_fit
def diagnose(tree: xr.DataTree, model: pm.Model | BambiModel | None = None) -> Diagnosis | SamplingDiagnosis:
    """How far to trust a fit.

    An evidence fit is compared with the exact posterior at its own hyper-parameters: its draws are weighted by the
    ratio of the two densities, and the tail of the weights tells whether that works (Vehtari et al. 2024); it takes
    milliseconds. A sampled fit is judged by ArviZ's diagnostics of its chains.

    Parameters
    ----------
    tree : xarray.DataTree
        From `bayes_sparse.fit`, with draws.
    model : pymc.Model or bambi.Model, optional
        Your own model, when the tree came from one and was fitted without `weights`: the log target is then computed
        anew by PyMC, whether or not it was stored.

    Returns
    -------
    Diagnosis or SamplingDiagnosis
        Print it; its fields are the numbers.
    """
    if was_sampled(tree):
        if model is not None:
            raise ValueError("A sampled tree is judged by its chains alone: leave out `model`.")
        return _of_chains(tree)
    if "evidence" not in tree.children:
        raise ValueError("diagnose takes a tree from bayes_sparse.fit (of a ladder, one of its rungs).")
    if stored(tree).corrected:
        return _once_corrected(stored(tree))
    log_p, log_q = log_densities(tree, model)
    return judged(tree, importance(log_p.to_numpy(), log_q.to_numpy()))


def _once_corrected(fit: StoredFit) -> Diagnosis:
    """What the weights said, which the draws have in them now: an evidence that was off is mended."""
    before = Diagnosis(**fit.diagnosis)
    ended = fit.status is None or fit.status.level == "good" or fit.status is Status.NULL
    usable = before.correctable and before.effective_draws >= _SHARE * before.draws and ended
    return replace(
        before,
        trusted=usable,
        wrong=() if usable else tuple(before.wrong),
        verdict=f"This tree has been corrected already; before that: {before.verdict}",
    )


def judged(tree: xr.DataTree, weights: Importance) -> Diagnosis:
    """What the importance weights of an evidence fit say."""
    fit, evidence = stored(tree), tree["evidence"].to_dataset()
    correctable, off = weights.k_hat <= weights.threshold or _even(weights), _off(fit, evidence, weights)
    far = () if correctable else (f"k-hat is {weights.k_hat:.2f}, above {weights.threshold:.2f}",)
    return Diagnosis(
        k_hat=weights.k_hat,
        threshold=weights.threshold,
        draws=len(weights.log_weights),
        effective_draws=weights.effective_draws,
        coordinates=evidence.sizes.get("factor", 0),
        log_evidence=float(evidence["log_evidence"]),
        log_evidence_importance=weights.log_mean,
        log_evidence_se=weights.log_mean_se,
        conditional_on=fit.given,
        trusted=correctable and not off,
        verdict=_with_check(f"{_in_words(weights, off)} {_aside(evidence)}{_CLAUSE}", fit),
        correctable=correctable,
        likelihood=fit.likelihood_check,
        wrong=(*far, *off),
    )


def _off(fit: StoredFit, evidence: xr.Dataset, weights: Importance) -> list[str]:
    """What is wrong with a fit whose importance weights may have no heavy tail all the same, in words.

    Where the mode runs away, as with separable classes, k-hat is computed over draws that never see it.
    """
    draws = len(weights.log_weights)
    own = float(evidence["log_evidence_mode" if "log_evidence_mode" in evidence else "log_evidence"])
    gap = abs(weights.log_mean - own) - 2 * weights.log_mean_se
    wrong = []
    if weights.effective_draws < _SHARE * draws:
        wrong.append(f"the {draws} draws are worth {weights.effective_draws:.0f} once re-weighted")
    if gap > _GAP:  # not where there is no evidence
        wrong.append(f"its log evidence is off by {weights.log_mean - own:+.2f} nats")
    if fit.status is not None and fit.status.level != "good" and fit.status is not Status.NULL:
        wrong.append(f"the fit ended as {fit.status.value!r}")
    return wrong


def _even(weights: Importance) -> bool:
    """Whether the weights hardly differ: the few largest then matter little, however heavy their tail.

    So it is where mean and variance are matched and the posterior is skewed: of 240 small problems the corrected means
    were as near to the truth with k-hat above one as with k-hat below the threshold, where the share was that large.
    """
    return weights.effective_draws >= _EVEN * len(weights.log_weights)


def _in_words(weights: Importance, off: list[str]) -> str:
    side = side_of(weights.k_hat, weights.threshold)
    k_hat = f"k-hat is {weights.k_hat:.2f}, {side} {weights.threshold:.2f}"
    if side == "above" and not _even(weights):
        return (
            f"The approximation is too far from the posterior it stands for to be corrected: {k_hat}. Trust neither "
            f"its intervals nor the log evidence; sample the same terms with {_NEXT}."
        )
    if off:
        return (
            f"Not to be trusted as it is, though {k_hat}: {', and '.join(off)}. bs.correct(tree) corrects the draws; "
            f"{_NEXT} samples the same terms."
        )
    if np.ptp(weights.log_weights) == 0:
        return (
            "All importance weights are the same: the approximation is the posterior itself, of these terms at alpha*."
        )
    tail = ": the largest weights have a heavy tail, but they are few and matter little" if side == "above" else ""
    return (
        f"The approximation is close to the posterior it stands for, and bs.correct(tree) corrects what is left "
        f"({k_hat}{tail})."
    )


def _with_check(verdict: str, fit: StoredFit) -> str:
    """The verdict after what is wrong with the likelihood: a good posterior of a wrong model is of little use."""
    return f"{fit.likelihood_check} As for the computation: {verdict}" if fit.likelihood_check else verdict


def _aside(evidence: xr.Dataset) -> str:
    """What else belongs beside the numbers of some fits."""
    if "chance" in evidence and in_a_sentence(evidence):
        return f"{in_a_sentence(evidence)} "
    if "log_evidence_mode" in evidence:
        at_mode = float(evidence["log_evidence_mode"])
        return f"Looked at anew at the mode, the approximation's log evidence is {at_mode:.3f}. "
    on_path = "lambda" in evidence and "alpha" not in evidence
    return f"Here alpha* is lambda* = {float(evidence['lambda']):.4g}. " if on_path else ""


def _of_chains(tree: xr.DataTree) -> SamplingDiagnosis:
    """What the chains of a sampled posterior say."""
    fit = stored(tree)
    posterior = fit.parameters
    assert posterior is not None
    stats = tree["sample_stats"].to_dataset() if "sample_stats" in tree.children else xr.Dataset()
    health = health_of(posterior, stats)
    verdict = "The chains agree, nothing diverged, and there are effective draws enough."
    if health.wrong:
        verdict = (
            f"Not to be trusted yet: {'; '.join(health.wrong)}. Sample more draws, or with a higher target_accept."
        )
    verdict += f" {_CLAUSE}" if posterior.attrs.get("condition") == "alpha" else ""
    return SamplingDiagnosis(
        **asdict(health),
        trusted=not health.wrong,
        verdict=_with_check(verdict, fit),
        likelihood=fit.likelihood_check,
        wrong=tuple(health.wrong),
    )
