"""Everything that more than one section of a report asks about, computed once; refusals and warnings become words."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import pymc as pm

from bayes_sparse.common.warnings import tell
from bayes_sparse.report.markup import Html, joined, paragraph
from bayes_sparse.results.comparison.compare import compare_knowing
from bayes_sparse.results.diagnose import diagnose
from bayes_sparse.results.loo import loo
from bayes_sparse.trees.read import StoredFit

__all__ = ["Answer", "Material", "Section", "ask", "kept_of", "known_terms", "prior_of", "strength", "terms_of"]

_WIDE = 1.959964  # sds either side of the mean


def terms_of(fit: StoredFit, known: dict[str, str]) -> pd.DataFrame:
    """Mean, sd, ends of the interval and size of a standard deviation of every term kept, strongest first.

    Parameters
    ----------
    fit : StoredFit
        An evidence fit (by its moments) or a sampled one (by its draws).
    known : dict
        Terms by the names of their parameters, from `known_terms`.
    """
    frame = _from_draws(fit, known) if fit.sampled else _from_moments(fit)
    if "basis_scale" in fit.constant and "basis" in fit.constant["basis_scale"].dims:
        scale = fit.constant["basis_scale"].to_series()
        frame["scale"] = scale.reindex(frame.index).fillna(1.0)
    return frame.loc[strength(frame).sort_values(ascending=False, kind="stable").index]


def strength(frame: pd.DataFrame) -> pd.Series:
    """How large each term is in units of its sd; a point without sd counts by its size alone."""
    return frame["mean"].abs() / frame["sd"].where(frame["sd"] > 0, 1.0)


def kept_of(fit: StoredFit) -> tuple[int, int, str] | None:
    """How many were kept, of how many, and of what: terms, or directions of a one-step method."""
    if fit.evidence is None:
        return None
    if "kept" in fit.evidence:
        return int(fit.evidence["kept"].sum()), fit.evidence.sizes["basis"], "terms"
    directions = fit.evidence["relevant"]
    return int(directions.sum()), int(directions.size), "directions"


def prior_of(fit: StoredFit) -> tuple[str, str]:
    """The prior of the precisions and the width of the slab, in words; empty where the tree does not say."""
    said = {**(fit.evidence.attrs if fit.evidence is not None else {}), **fit.attributes}
    hyper = [float(value) for value in np.ravel(said.get("hyper", ()))]
    slab = f"slab {float(said['slab']):g}" if "slab" in said else "no slab"
    if fit.settings.get("model") == "horseshoe":
        return "horseshoe", slab
    if len(hyper) != 2:
        return "", ""
    return f"Gamma({hyper[0]:g}, {hyper[1]:g})" if any(hyper) else "flat", slab


def known_terms(fits: list[StoredFit]) -> dict[str, str]:
    """Names of terms by those of their parameters ("w[age]": "age"), over all fits."""
    names = {
        str(name)
        for fit in fits
        if fit.evidence is not None and "basis" in fit.evidence.coords
        for name in fit.evidence["basis"].to_numpy().tolist()
    }
    known: dict[str, str] = {}
    for fit in fits:
        vectors: dict[str, Any] = fit.settings.get("vectors", {})
        for vector, (_, labels) in vectors.items():
            for label in labels:
                whole = f"{vector}[{label}]"
                known[whole] = whole if whole in names or (len(vectors) > 1 and str(label) not in names) else str(label)
    return known


def _from_moments(fit: StoredFit) -> pd.DataFrame:
    evidence = fit.evidence
    if evidence is None or "mean" not in evidence:
        return _frame([], [], [], [], [])
    mean, sd = evidence["mean"].to_numpy(), evidence["sd"].to_numpy()
    kept = slice(None) if fit.by_direction else evidence["kept"].to_numpy()  # no weight is pruned there
    names, mean, sd = evidence["basis"].to_numpy()[kept], mean[kept], sd[kept]
    return _frame(names, mean, sd, mean - _WIDE * sd, mean + _WIDE * sd)


def _from_draws(fit: StoredFit, known: dict[str, str]) -> pd.DataFrame:
    chosen = {name: values for name, values in fit.draws.items() if name in known} or dict(fit.draws)
    if not chosen:
        return _frame([], [], [], [], [])
    stacked = np.stack([values.ravel() for values in chosen.values()])
    low, high = np.quantile(stacked, [0.025, 0.975], axis=1)
    names = [known.get(name, name) for name in chosen]
    return _frame(names, stacked.mean(axis=1), stacked.std(axis=1, ddof=1), low, high)


def _frame(names: Any, mean: Any, sd: Any, low: Any, high: Any) -> pd.DataFrame:
    columns = {"mean": mean, "sd": sd, "low": low, "high": high, "scale": np.ones(len(names))}
    return pd.DataFrame(columns, index=pd.Index(names, name="term", dtype=object), dtype=float)


@dataclass(frozen=True, eq=False)
class Answer:
    """What a function of the package said: a value, or why there is none; and its warnings.

    Attributes
    ----------
    value : any
        None where there is none.
    refusal : str
        The sentence of the error, where the function does not take such a tree.
    notes : tuple of str
        What it warned of.
    """

    value: Any
    refusal: str = ""
    notes: tuple[str, ...] = ()

    @property
    def words(self) -> Html:
        """Refusal and warnings as paragraphs."""
        return joined(paragraph(line, "note") for line in (self.refusal, *self.notes) if line)


def ask(function: Callable[..., Any], *arguments: Any, **settings: Any) -> Answer:
    """Call a function; the sentence in which it declines is an answer too, for the reader to see."""
    broken = False
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            value, refusal = function(*arguments, **settings), ""
        except (ValueError, TypeError, NotImplementedError) as error:
            value, refusal = None, str(error)
        except Exception as error:  # the rest of the page is worth having; what went wrong is told on it and here
            value, refusal, broken = None, f"This failed: {type(error).__name__}: {error}", True
    if broken:
        tell(f"A part of the report could not be made. {refusal}")
    told = (str(warning.message) for warning in seen if issubclass(warning.category, UserWarning))
    return Answer(value, refusal, tuple(dict.fromkeys(told)))


@dataclass(frozen=True, eq=False)
class Material:
    """The fits of a report and what is known about them.

    Attributes
    ----------
    fits : list of StoredFit
        Trees by name.
    data, target, model : optional
        Rows with their targets, and the `pm.Model` behind the trees, as the user gave them.
    say : callable
        Shows a line of progress.
    """

    fits: list[StoredFit]
    data: Any = None
    target: str | None = None
    model: pm.Model | None = None
    say: Callable[[str], None] = field(default=lambda _: None)

    @property
    def several(self) -> bool:
        """Whether there is something to compare."""
        return len(self.fits) > 1

    @cached_property
    def known(self) -> dict[str, str]:
        """Names of terms by those of their parameters."""
        return known_terms(self.fits)

    @cached_property
    def diagnoses(self) -> dict[str, Answer]:
        """What `diagnose` says of every fit."""
        self.say("looking at importance weights and chains")
        return {fit.name: ask(diagnose, fit.judged, self._model_of(fit)) for fit in self.fits}

    @cached_property
    def loos(self) -> dict[str, Answer]:
        """Every observation left out, of every fit."""
        self.say("leaving observations out")
        return {fit.name: ask(loo, fit.judged, pointwise=True) for fit in self.fits}

    @cached_property
    def comparison(self) -> Answer:
        """The fits side by side, on the rows handed in if they can be scored."""
        trees = {fit.name: fit.tree for fit in self.fits if fit.settings}
        if len(trees) < 2:
            return Answer(None, "There is one fit of bayes_sparse only, and nothing to compare it with.")
        self.say("comparing the fits")
        known = [
            {name: answer.value for name, answer in answers.items() if name in trees and answer.value is not None}
            for answers in (self.loos, self.diagnoses)
        ]
        found = ask(compare_knowing, trees, self.data, self.target, None, self.model, *known)
        if found.value is None and self.data is not None:
            without = ask(compare_knowing, trees, None, None, None, self.model, *known)
            return Answer(without.value, without.refusal or found.refusal, without.notes)
        return found

    def _model_of(self, fit: StoredFit) -> pm.Model | None:
        """The user's model, where the log target has to be computed anew."""
        stored = "sample_stats" in fit.tree.children and "log_p" in fit.tree["sample_stats"]
        return self.model if fit.declared and not (fit.sampled or stored) else None


@dataclass(frozen=True)
class Section:
    """A part of the page.

    Attributes
    ----------
    title : str
        Its heading.
    order : int
        Sections stand on the page by this number, from the verdict down to the versions.
    make : callable
        Makes its body; `Nothing` where there is nothing to show.
    """

    title: str
    order: int
    make: Callable[[Material], Html]
