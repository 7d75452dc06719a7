"""Several fits of the same data side by side: how far apart, how fast, how well they predict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pymc as pm
import xarray as xr

from bayes_sparse.common.printed import Grid, Shown, estimate, figure
from bayes_sparse.inputs.bambi_model import BambiModel
from bayes_sparse.inputs.table import in_words
from bayes_sparse.results.comparison.held_out import held_out_rows
from bayes_sparse.results.comparison.marginals import Marginals, aligned_marginals, differences
from bayes_sparse.results.comparison.summary import (
    agreement,
    checked_trees,
    chosen_reference,
    diagnosed,
    evidences,
    loo_of,
    relevant_terms,
    score_columns,
    summary_of,
)
from bayes_sparse.results.diagnose import Diagnosis
from bayes_sparse.trees.damage import reads_a_fit
from bayes_sparse.trees.read import stored

__all__ = ["Comparison", "compare", "compare_knowing", "verdict_of"]


def verdict_of(
    summary: pd.DataFrame,
    parameters: pd.DataFrame,
    held: dict[str, tuple[bool, ...]],
    reference: str,
    diagnosis: Any,
) -> tuple[str, ...]:
    """How far each tree is from the reference, how much faster it was, and whether the reference can be trusted.

    ``held`` says which parameters each tree has not pruned.
    """
    said = [_of_reference(reference, summary["kind"][reference], diagnosis)]
    measured = [name for name in summary.index if name in parameters.index.get_level_values("tree")]
    said += [_of_tree(name, summary["speed_up"][name], parameters.xs(name, level="tree")) for name in measured]
    said += [_of_noise(parameters), _of_scores(summary, reference), _of_evidences(summary, held)]
    return tuple(sentence for sentence in said if sentence)


def _of_reference(reference: str, kind: str, diagnosis: Any) -> str:
    start = f"Measured against {reference!r}{'' if kind == reference else f' ({kind})'}, which"
    if diagnosis is None:
        return f"{start} was not checked itself."
    if diagnosis.trusted:
        given = ", given its terms" if isinstance(diagnosis, Diagnosis) else ""
        return f"{start} can be trusted itself{given}."
    return f"{start} is not to be trusted itself, so neither is its distance from the others: {diagnosis.verdict}"


def _of_tree(name: str, speed_up: float, own: Any) -> str:
    size = own["difference"].abs()
    worst = size.idxmax()
    ratios = own["sd_ratio"].replace(np.inf, np.nan).dropna()
    kept = ratios[ratios > 0]
    pruned = int(((own["sd"] == 0) & (own["mean"] == 0) & (own["reference_sd"] > 0)).sum())
    said = f"{name!r}: means at most {size[worst]:.2g} posterior sds away ({worst})"
    if len(kept):
        low, high = f"{kept.min():.2g}", f"{kept.max():.2g}"
        said += f", sds {low if low == high else f'{low} to {high}'} times as large"
    elif len(ratios):
        said += "; it is a point and says nothing of uncertainty"
    if pruned:
        said += f"; {pruned} that the reference keeps {'is' if pruned == 1 else 'are'} exactly zero in it"
    return said + _speed(speed_up) + "."


def _speed(speed_up: float) -> str:
    if not np.isfinite(speed_up):
        return ""
    if 0.95 < speed_up < 1.05:
        return "; it took as long"
    if speed_up >= 1:
        return f"; it took {_times(speed_up)} less time"
    return f"; it took {_times(1 / speed_up)} more time"


def _times(factor: float) -> str:
    return f"{factor:.0f} times" if factor >= 10 else f"{factor:.1f} times"


def _of_noise(parameters: pd.DataFrame) -> str:
    """How much of it is the Monte-Carlo error of the draws."""
    noise = parameters["mcse"]
    if not len(noise) or not noise.max() > 0:
        return ""
    within = int((parameters["difference"].abs() <= noise).sum())
    error = f"Monte-Carlo error (up to {noise.max():.2g} sds)"
    if not within:
        return f"Every difference is larger than its {error}."
    return f"{within} of {len(noise)} differences are no larger than their {error}, and so no differences."


def _of_scores(summary: pd.DataFrame, reference: str) -> str:
    """How the rows held out judge the others."""
    if "log_score" not in summary:
        return ""
    gaps = summary.drop(index=reference)[["log_score_difference", "log_score_difference_se"]]
    said = [f"{name!r} {gap:+.3f} (se {se:.3f})" for name, gap, se in gaps.itertuples()]
    return f"Nats per row held out that each predicts better than the reference: {', '.join(said)}."


def _of_evidences(summary: pd.DataFrame, held: dict[str, tuple[bool, ...]]) -> str:
    """Why log evidences of different kinds are not ranked."""
    known = summary[summary["log_evidence_kind"] != "none"]
    kinds = list(dict.fromkeys(known["log_evidence_kind"]))
    given = list(dict.fromkeys(_given(text) for text in known["log_evidence_given"]))
    kept = {held[name] for name in known.index if name in held}
    reasons = [f"computed in different ways ({'; '.join(kinds)})"] if len(kinds) > 1 else []
    reasons += [f"given different things ({'; '.join(given)})"] if len(given) > 1 else []
    reasons += ["of different terms"] if len(kept) > 1 else []
    if not reasons:
        return ""
    if len(given) == len(kept) == 1:
        return (
            f"The log evidences are {reasons[0]}: of one and the same fit they check each other, others are not ranked."
        )
    return f"The log evidences are {' and '.join(reasons)}: they are not ranked here, and must not be."


def _given(conditional_on: str) -> str:
    """What an evidence is given, in a word, however it is put."""
    if conditional_on.startswith("nothing"):
        return "nothing"
    for word in ("lambda*", "directions"):
        if word in conditional_on:
            return word
    return "alpha*"


_SHOWN = {  # of the summary, in print
    "kind": "what it is",
    "trusted": "trusted by itself",
    "terms_kept": "terms kept",
    "relevant_terms": "relevant terms",
    "both": "... in the reference too",
    "largest_difference": "largest difference (sds)",
    "median_difference": "median difference (sds)",
    "median_sd_ratio": "median ratio of sds",
    "median_overlap": "median overlap",
    "rank_correlation": "rank correlation",
    "log_score": "held-out log score",
    "elpd_loo": "LOO elpd",
    "log_evidence": "log evidence",
    "log_evidence_kind": "... by",
    "effective_draws": "effective draws",
    "seconds": "seconds",
}


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Shown):
    """Several fits of the same data beside one of them, the reference.

    Attributes
    ----------
    reference : str
        The tree that the others are measured against.
    parameters : DataFrame
        A row per parameter and tree: mean, sd, reference_mean, reference_sd; difference of the means in the reference's
        posterior sds (in the tree's own where the reference has pruned the parameter); mcse, the Monte-Carlo error of
        that difference in the same unit: what is not larger is no difference; sd_ratio; overlap, the area that the two
        densities share; wasserstein, how far the one would have to be moved to become the other, in the same unit.
        What a tree has pruned is exactly zero there.
    summary : DataFrame
        A row per tree: kind, trusted (by `diagnose`; missing where it could not look), terms_kept, relevant_terms,
        largest_difference, median_difference, median_sd_ratio (of what neither has pruned), median_overlap, seconds,
        effective_draws (the smallest bulk ESS of the parameters compared, or the number of independent draws),
        effective_draws_a_second, speed_up (how many times faster than the reference the fit was), log_evidence with its
        se, its kind and what it is given, elpd_loo with its se, and, for rows held out, log_score (the mean log
        predictive density) with its se, and log_score_difference from the reference with its se. In the order that the
        trees were given in, never ranked. What is printed is part of it.
    relevance : DataFrame
        A row per pair of trees: how many terms both, only one or neither takes for relevant, Jaccard's index, Cohen's
        kappa, and the rank correlation of abs(mean) / sd. NaN where one of the two is a one-step method's.
    relevant : DataFrame
        A row per term, a column per tree: whether it is relevant, as `bs.relevance` has it: kept, and not likely to be
        chance. One-step methods choose among directions, not weights: they have no column here and no number of
        `relevant_terms`.
    loo : DataFrame or None
        `arviz.compare` of the trees that have a pointwise log-likelihood, if two have.
    sentences, verdict : tuple of str, str
        In plain words, one by one and all together.
    notes : tuple of str
        What was left out, and why.
    """

    reference: str
    parameters: pd.DataFrame
    summary: pd.DataFrame
    relevance: pd.DataFrame
    relevant: pd.DataFrame
    loo: pd.DataFrame | None
    sentences: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def verdict(self) -> str:
        """All sentences."""
        return " ".join(self.sentences)

    def _parts(self) -> list[Grid | str]:
        """A column per tree, which leaves room for words."""
        shown = pd.concat([self.summary, self._agreement()], axis=1)
        shown["log_evidence_kind"] = shown["log_evidence_kind"].where(shown["log_evidence"].notna(), "")
        rows = []
        for name, words in _SHOWN.items():
            cells = [_short(value) for value in shown[name]] if name in shown else []
            if f"{name}_se" in shown:
                pairs = zip(shown[name], shown[f"{name}_se"], strict=True)
                cells = ["" if np.isnan(value) else estimate(value, error) for value, error in pairs]
            if any(cells):
                rows.append((words, *cells))
        return [Grid(rows, ("", *shown.index)), "\n".join(self.sentences), "\n".join(self.notes)]

    def _agreement(self) -> pd.DataFrame:
        """Of each tree with the reference: relevant terms of both, and the correlation of ranks."""
        if self.relevance.empty:
            return pd.DataFrame(index=self.summary.index)
        own = self.relevance.reset_index()
        own = own[(own["first"] == self.reference) | (own["second"] == self.reference)]
        own = own.set_axis(own["first"].where(own["first"] != self.reference, own["second"]))
        return own[["both", "rank_correlation"]].reindex(self.summary.index)


def _short(value: Any) -> str:
    """As people read it, nothing where there is none."""
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, float | np.floating):
        return figure(float(value))
    return "" if value is pd.NA else str(value)


@reads_a_fit
def compare(
    trees: dict[str, xr.DataTree] | xr.DataTree,
    data: Any = None,
    *,
    target: str | None = None,
    reference: str | None = None,
    model: pm.Model | BambiModel | None = None,
) -> Comparison:
    """Compare fits of the same data: an evidence fit and NUTS, say, or the rungs of a ladder.

    Parameters
    ----------
    trees : dict of xarray.DataTree, or a ladder
        Trees from `bayes_sparse.fit` by name.
    data : tuple, DataFrame or Dataset, optional
        Rows held out, in the forms that `fit` takes, to score the predictions by.
    target : str, optional
        Name of their target column.
    reference : str, optional
        Name of the tree to measure the others against; None for the most exact: NUTS of everything, then NUTS at the
        hyper-parameters found, then the first.
    model : pymc.Model or bambi.Model, optional
        Your own model, when the trees came from one; needed by some checks of the reference.

    Returns
    -------
    Comparison

    Notes
    -----
    Marginals are compared by at most 4000 draws, evenly thinned (fewer of thousands of parameters), those that are
    normal by construction by their quantiles. Chance takes about sqrt(5 / draws) off the overlap of equal densities,
    0.04 with 4000. The mean and the sd of an evidence fit are those it computed, free of Monte-Carlo error. Log scores
    average the density over the normal posterior of an evidence fit exactly, over up to 1000 draws of NUTS or of
    corrected ones; with several classes it is the probability of `predict`.
    """
    return compare_knowing(trees, data, target, reference, model, {}, {})


def compare_knowing(
    trees: dict[str, xr.DataTree] | xr.DataTree,
    data: Any,
    target: str | None,
    reference: str | None,
    model: pm.Model | BambiModel | None,
    loos: dict[str, Any],
    diagnoses: dict[str, Any],
) -> Comparison:
    """`compare` where what `loo` and `diagnose` say of some trees is known already."""
    named = checked_trees(trees)
    chosen = chosen_reference(named, reference)
    rows = None if data is None else held_out_rows(data, target, stored(named[chosen]).called)
    blind = [name for name, tree in named.items() if stored(tree).observed is None]
    notes = [f"{name!r} does not hold its data: that they are the same was not checked." for name in blind]
    alike = _of_the_same_terms(named, chosen, notes)
    aligned, terms = aligned_marginals({name: named[name] for name in alike})
    parameters = _parameters(aligned, chosen)
    relevant = relevant_terms(named, aligned, terms)
    table, elpd = loo_of(named, loos, notes)
    summary = summary_of(named, chosen, aligned, parameters, relevant)
    summary = pd.concat([summary, evidences(named, notes), elpd, score_columns(named, chosen, rows, notes)], axis=1)
    judged = diagnoses[chosen] if chosen in diagnoses else diagnosed(named[chosen], model, notes)
    others = {name: diagnosed(tree) for name, tree in named.items() if name != chosen and name not in diagnoses}
    checked = {**diagnoses, **others, chosen: judged}
    summary.insert(1, "trusted", [getattr(checked[name], "trusted", pd.NA) for name in named])
    held = {name: tuple(own.kept[own.weight].tolist()) for name, own in aligned.items()}
    said = verdict_of(summary, parameters, held, chosen, judged)
    return Comparison(
        chosen, parameters, summary, agreement(relevant, aligned, terms), relevant, table, said, tuple(notes)
    )


def _of_the_same_terms(trees: dict[str, xr.DataTree], reference: str, notes: list[str]) -> list[str]:
    """Trees whose weights mean the same as the reference's; the others are only compared by what they predict."""

    def meaning(name: str) -> list[Any]:
        fit = stored(trees[name])
        return [fit.declared, fit.settings.get("basis"), fit.settings.get("columns")]

    alike = [name for name in trees if meaning(name) == meaning(reference)]
    others = [name for name in trees if name not in alike]
    if others:
        notes.append(
            f"{in_words(others)} has other basis functions than {reference!r}: the weights are not compared, only "
            "what is predicted."
        )
    return alike


def _parameters(aligned: dict[str, Marginals], reference: str) -> pd.DataFrame:
    others = [name for name in aligned if name != reference]
    parts = [differences(aligned[name], aligned[reference]) for name in others]
    if not parts:
        empty = differences(aligned[reference], aligned[reference]).iloc[:0]
        return empty.set_axis(pd.MultiIndex.from_arrays([[], []], names=["parameter", "tree"]))
    table = pd.concat(parts, keys=others, names=["tree"]).swaplevel()
    places = {name: i for i, name in enumerate(parts[0].index)}
    order = np.argsort([places[parameter] for parameter, _ in table.index], kind="stable")
    table = table.iloc[order]
    return table[table["mean"].notna() & table["reference_mean"].notna()]
