"""A fit at a glance: a sentence to take home, a small table, the terms that matter, and what to do next."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import xarray as xr

from bayes_sparse.common.printed import Grid, Shown, duration, estimate, figure
from bayes_sparse.results.diagnose import Diagnosis, SamplingDiagnosis, diagnose
from bayes_sparse.results.importance import side_of
from bayes_sparse.results.log_evidence import log_evidence
from bayes_sparse.results.relevance import relevance
from bayes_sparse.results.terms import kept_of, known_terms, prior_of, terms_of
from bayes_sparse.results.trust import SAID, Trust, trust_of
from bayes_sparse.trees.damage import reads_a_fit
from bayes_sparse.trees.read import StoredFit, stored

__all__ = ["Summary", "chance_in_words", "finding_of", "is_of_rows", "listed", "relevance_of", "sentence_of", "summary"]

_LISTED, _FEWEST, _NAMED = 10, 3, 5  # terms of the table, at least where nothing is pruned, and in the sentence


@dataclass(frozen=True, eq=False, repr=False)
class Summary(Shown):
    """What there is to know about a fit, on one screen.

    Attributes
    ----------
    sentence : str
        What to take home.
    trust : Trust
        How far to trust it: ``trust.level`` is "good", "care" or "bad".
    facts : tuple of (str, str)
        Model, method, status, rows, terms, noise or base rate, log evidence, check, time.
    terms : DataFrame
        The terms that matter most, as `bayes_sparse.relevance` has them (of a sampled model of your own: mean, sd and
        interval of its sparse weights).
    next_steps : tuple of str
        What to do now.
    """

    sentence: str
    trust: Trust
    facts: tuple[tuple[str, str], ...]
    terms: pd.DataFrame
    next_steps: tuple[str, ...]

    def _parts(self) -> list[Grid | str]:
        return [self.sentence, Grid(self.facts), _grid(self.terms), "\n".join(self.next_steps)]


@reads_a_fit
def summary(tree: xr.DataTree) -> Summary:
    """A fit at a glance: print it, or let it be the last line of a notebook's cell.

    Parameters
    ----------
    tree : xarray.DataTree
        From `bayes_sparse.fit`, of any method; of a ladder, one of its rungs.

    Returns
    -------
    Summary
    """
    fit = stored(tree, "summary")
    try:
        found, refusal = diagnose(tree), ""
    except ValueError as reason:
        found, refusal = None, str(reason)
    trust = trust_of(fit, found)
    facts = [(name, words) for name, words in _facts(fit, found, refusal, trust) if words]
    return Summary(sentence_of(fit, trust), trust, tuple(facts), _shown(relevance_of(fit)), tuple(_next(fit, found)))


def relevance_of(fit: StoredFit) -> pd.DataFrame:
    """What `relevance` says, or what there is to say of parameters that it knows nothing about."""
    try:
        return relevance(fit.tree)
    except ValueError:  # a sampled model of the user's own, whose weights may have any name
        return terms_of(fit, known_terms([fit])).drop(columns="scale")


def _shown(terms: pd.DataFrame) -> pd.DataFrame:
    """The relevant ones and, where others were pruned, all that were kept; the strongest few where nothing is."""
    if "kept" not in terms:
        return terms.head(_LISTED)
    kept = terms[terms["kept"]]
    pruned = len(kept) < len(terms)
    return kept.head(min(_LISTED, len(kept) if pruned else max(int(kept["relevant"].sum()), _FEWEST)))


def sentence_of(fit: StoredFit, trust: Trust) -> str:
    """What to take home: what was found, and how far to trust it."""
    return f"{finding_of(fit)}; {_subject(fit)} {'' if trust.level == 'good' else 'is '}{trust.words}."


def finding_of(fit: StoredFit) -> str:
    """What a fit found, as a sentence without its end."""
    kept, several = kept_of(fit), isinstance(relevance_of(fit).index, pd.MultiIndex)  # a weight per class
    if kept is not None and kept[2] == "directions":
        return f"Of {kept[1]} directions {kept[0]} {_are(kept[0])} kept, each a mixture of all weights"
    terms = relevance(fit.tree, by="feature") if several else relevance_of(fit)
    if "relevant" not in terms:
        return f"{len(terms)} parameters were sampled, and none is pruned"
    if kept is not None and is_of_rows(fit):
        return f"Of {kept[1]} kernels {kept[0]} {_are(kept[0])} kept"
    owner = (terms["group"] if "group" in terms else terms.index.to_series()).set_axis(terms.index).astype(str)
    relevant, perhaps = (list(dict.fromkeys(owner[terms["word"] == word])) for word in ("relevant", "perhaps"))
    noun = "terms" if "group" in terms else "weights" if fit.declared else "kernels" if is_of_rows(fit) else "columns"
    alone = " by itself" if fit.evidence is None and not relevant else ""  # columns share their signal in a sample
    said = f"Of {owner.nunique()} {noun} {len(relevant) or 'none'} {_are(len(relevant) or 1)} relevant{alone}"
    said += (" to some class" if several else "") + (f" ({listed(relevant, _NAMED)})" if relevant else "")
    unsure = f", perhaps {len(perhaps)}{' more' if relevant else ''}"
    return said + (unsure if perhaps and not terms["kept"].all() else "")


def is_of_rows(fit: StoredFit) -> bool:
    """Whether its terms are kernels on the rows: which row one sits on is no statement about the world."""
    return not fit.declared and "basis" in fit.settings and fit.basis.kernel


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def listed(names: list[str], most: int) -> str:
    """The first few names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _subject(fit: StoredFit) -> str:
    if fit.sampled:
        return "the sample"
    if fit.corrected:
        return "the corrected approximation"
    return "the posterior" if fit.attributes.get("approximation") == "exact" else "the approximation"


def _facts(
    fit: StoredFit, found: Diagnosis | SamplingDiagnosis | None, refusal: str, trust: Trust
) -> list[tuple[str, str]]:
    prior, slab = prior_of(fit)
    bound = "" if fit.evidence is None or "bound" not in fit.evidence else f"{float(fit.evidence['bound']):.2f}"
    return [
        ("model", _model(fit)),
        ("method", fit.method + (f", {prior} prior of precisions, {slab}" if prior else "")),
        ("what it is", fit.kind),
        ("status", "" if fit.status is None else str(fit.status)),
        ("rows", "" if fit.observed is None or not fit.observed.ndim else f"{fit.observed.shape[0]}"),
        ("terms", _counts(fit)),
        *_scale(fit),
        ("log evidence", _evidence(fit)),
        ("log p(y) at least", bound),
        ("check", refusal if found is None else _check(found)),
        ("verdict", SAID[trust.level]),
        ("time", duration(fit.seconds)),
    ]


def _model(fit: StoredFit) -> str:
    words = ["a model of your own" if fit.declared else str(fit.settings.get("model"))]
    words += [f"{fit.likelihood_name} likelihood"] if fit.likelihood_name else []
    basis = fit.settings.get("basis")
    return ", ".join([*words, *([f"{basis['name']} basis"] if isinstance(basis, dict) and "name" in basis else [])])


def _counts(fit: StoredFit) -> str:
    kept = kept_of(fit)
    if kept is None:
        return "none pruned"
    pruned = kept[0] < kept[1]
    said = (
        f"{kept[0]} of {kept[1]} {'' if kept[2] == 'terms' else 'directions '}kept" if pruned else f"all {kept[1]} kept"
    )
    if fit.evidence is None or kept[2] != "terms" or is_of_rows(fit):
        return said
    relevant = int(fit.evidence["relevant"].sum())
    return f"{said}, {relevant} relevant" + (f", {kept[0] - relevant} perhaps" if pruned and kept[0] > relevant else "")


def _scale(fit: StoredFit) -> list[tuple[str, str]]:
    """The noise and other parameters of a named likelihood; of classes, how often the most frequent one is seen."""
    if fit.declared or not fit.likelihood_name:
        return []
    if fit.classes is not None and fit.observed is not None:
        shares = (
            np.bincount(fit.observed.to_numpy().astype(int).ravel(), minlength=len(fit.classes)) / fit.observed.size
        )
        most = int(np.argmax(shares))
        said = [("base rate", f"{100 * shares[most]:.0f}% {fit.classes[most]}")]
        if fit.likelihood.targets == "two classes":
            said.append(("weights", f"positive for {fit.classes[1]}, negative for {fit.classes[0]}"))
        return said
    said = []
    for name in fit.likelihood.nuisance:
        group = fit.posterior if fit.evidence is None or name not in fit.evidence else fit.evidence
        if group is not None and name in group:
            said.append((f"noise ({name})" if name == "sigma" else name, figure(float(group[name].mean()))))
    return said


def _evidence(fit: StoredFit) -> str:
    try:
        found = log_evidence(fit.tree)
    except ValueError:
        return ""
    return f"{estimate(found.value, found.se)} ({found.kind})"


def _check(found: Diagnosis | SamplingDiagnosis) -> str:
    if isinstance(found, Diagnosis):
        side = side_of(found.k_hat, found.threshold)
        worth = f"{found.draws} draws worth {found.effective_draws:.0f}"
        return f"k-hat {found.k_hat:.2f}, {side} {found.threshold:.2f}; {worth}"
    return (
        f"R-hat {found.r_hat_max:.3f} at most; {found.draws} draws worth {found.ess_bulk_min:.0f} at least; "
        f"{found.divergences} divergences"
    )


def _next(fit: StoredFit, found: Diagnosis | SamplingDiagnosis | None) -> list[str]:
    said = [fit.likelihood_check] if fit.likelihood_check else []
    if fit.status is not None and fit.status.level != "good":
        said.append(fit.status.sentence())
    if isinstance(found, SamplingDiagnosis) and not found.trusted:
        said.append("Sample more draws, or with a higher target_accept.")
    if isinstance(found, Diagnosis) and not found.trusted:
        mends = "bs.correct(tree) corrects the draws; " if found.correctable and not fit.corrected else ""
        said.append(f'{mends}bs.fit(..., method="nuts", condition="alpha") samples the same terms.')
    terms = "bs.relevance(tree) lists all terms"
    if fit.by_direction:
        terms = 'bs.relevance(tree, space="eigen") lists the directions'
    elif fit.evidence is None and "relevant" not in relevance_of(fit):
        terms = "az.summary(tree) lists all parameters"
    rows = "bs.predict(tree, data, model=model)" if fit.declared else "bs.predict(tree, X)"
    steps = [terms, f"{rows} predicts new rows", 'bs.report(tree, "report.html") has the whole story']
    if fit.evidence is not None:
        steps.append('bs.fit(..., method="nuts") says how sure the choice of terms is')
    return [*said, f"Next: {'; '.join(steps)}."]


def _grid(terms: pd.DataFrame) -> Grid:
    """The columns that people read, as words."""
    columns: dict[str, list[str]] = {name: [figure(value) for value in terms[name]] for name in ("mean", "sd")}
    if "low" in terms:
        columns["95% interval"] = [
            f"{figure(a)} to {figure(b)}" for a, b in zip(terms["low"], terms["high"], strict=True)
        ]
    if "chance" in terms:
        columns["chance"] = [chance_in_words(chance) for chance in terms["chance"]]
        columns[""] = [str(word) for word in terms["word"]]
    if "group" in terms:
        columns["group"] = [str(group) for group in terms["group"]]
    if "rival" in terms:
        columns["cannot be told from"] = [listed(list(map(str, rivals)), _FEWEST) for rivals in terms["rival"]]
    shown = {name: cells for name, cells in columns.items() if any(cells)}
    names = [index if isinstance(index, tuple) else (index,) for index in terms.index]
    rows = [(*map(str, name), *cells) for name, *cells in zip(names, *shown.values(), strict=True)]
    return Grid(rows, ("term", *(str(name) for name in terms.index.names[1:]), *shown))


def chance_in_words(chance: float) -> str:
    """A small probability."""
    return "< 0.0001" if chance < 1e-4 else f"{chance:.2g}"
