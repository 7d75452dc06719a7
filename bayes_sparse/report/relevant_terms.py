"""The terms that some fit calls relevant: the chance of each by every fit, and what could stand in its place."""

from __future__ import annotations

from typing import Any

import pandas as pd

from bayes_sparse.report.markup import Html, count, joined, number, paragraph, table, tag, text
from bayes_sparse.report.material import Material
from bayes_sparse.results.summary import chance_in_words, is_of_rows, listed, relevance_of

__all__ = ["relevant_terms"]

_TERMS, _RIVALS = 8, 3  # at the top of the page
_NOTE = "Chance: how often the best column would look as good if none mattered; bold where a fit calls it relevant."


def relevant_terms(material: Material) -> Html:
    """A row a term; nothing where no fit calls one relevant, or where terms are kernels on the rows."""
    known = {fit.name: _by_name(relevance_of(fit)) for fit in material.fits if fit.settings and not is_of_rows(fit)}
    known = {name: own for name, own in known.items() if "chance" in own}
    relevant = list(dict.fromkeys(term for own in known.values() for term in own.index[own["relevant"]]))
    if not relevant:
        return Html("")
    terms = relevant[:_TERMS]
    cells: dict[str, list[Any]] = {name: [_chance(own, term) for term in terms] for name, own in known.items()}
    if not material.several:
        ((name, own),) = known.items()
        cells = {"weight": [_weight(own.loc[term]) for term in terms], "chance": cells[name]}
    first = "term: its chance by" if material.several else "relevant term"
    names = pd.Index([_with_rivals(term, list(known.values())) for term in terms], name=first, dtype=object)
    more = f" {count(len(relevant) - _TERMS)} more are relevant." if len(relevant) > _TERMS else ""
    shown = table(pd.DataFrame(cells, index=names, dtype=object), "Terms that matter", class_="terms")
    return joined([shown, paragraph(_NOTE + more, "aside")])


def _by_name(own: pd.DataFrame) -> pd.DataFrame:
    """A feature and its class in one name."""
    names = [f"{name[0]}[{name[1]}]" if isinstance(name, tuple) else str(name) for name in own.index]
    return own.set_axis(pd.Index(names, dtype=object))


def _chance(own: pd.DataFrame, term: str) -> Html | str:
    if term not in own.index or not own.loc[term, "kept"]:
        return "left out"
    words = chance_in_words(float(own["chance"][term]))
    return tag("strong", words) if own.loc[term, "relevant"] else words


def _weight(row: Any) -> str:
    return f"{number(float(row['mean']))} ± {number(float(row['sd']), 2)}"


def _with_rivals(term: str, known: list[pd.DataFrame]) -> Html:
    found: list[Any] = [own["rival"][term] for own in known if "rival" in own and term in own.index]
    rivals = list(dict.fromkeys(str(name) for names in found for name in names))
    return joined([term, tag("small", f" or {listed(rivals, _RIVALS)}", class_="rival")]) if rivals else text(term)
