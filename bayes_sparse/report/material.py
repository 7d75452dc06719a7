"""Everything that more than one section of a report asks about, computed once; refusals and warnings become words."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pymc as pm

from bayes_sparse.common.warnings import tell
from bayes_sparse.report.markup import Html, joined, paragraph
from bayes_sparse.results.comparison.compare import compare_knowing
from bayes_sparse.results.diagnose import diagnose
from bayes_sparse.results.loo import loo
from bayes_sparse.results.terms import known_terms
from bayes_sparse.trees.read import StoredFit

__all__ = ["Answer", "Material", "Section", "ask"]


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
    delta : float or mapping, optional
        Sizes that weights may be larger than, see `bayes_sparse.relevance`.
    say : callable
        Shows a line of progress.
    """

    fits: list[StoredFit]
    data: Any = None
    target: str | None = None
    model: pm.Model | None = None
    delta: float | Mapping[str, float] | None = None
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
