"""The first screen of a report: a sentence to take home, a row a fit, and the terms that matter."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from bayes_sparse.common.printed import duration
from bayes_sparse.report.cards import SIGNS, card, said_of
from bayes_sparse.report.markup import Html, count, joined, number, scrolling, tag, with_error
from bayes_sparse.report.material import Material
from bayes_sparse.report.relevant_terms import relevant_terms
from bayes_sparse.results.diagnose import SamplingDiagnosis
from bayes_sparse.results.summary import finding_of, is_of_rows, listed, relevance_of, sentence_of
from bayes_sparse.results.terms import kept_of
from bayes_sparse.results.trust import LEVELS, SAID, Level, Trust, trust_of
from bayes_sparse.trees.read import StoredFit

__all__ = ["head"]

_FAR = 1.0  # posterior sds from a trusted reference: more is another answer
_NAMED = 4  # fits in the sentence
_CLASSES = {"trust": "trust", "what it is": "kind"}  # cells that need no heading on a narrow screen


def head(material: Material) -> Html:
    """A sentence to take home, a row a fit, the terms that matter; then each fit with its tiles."""
    trusts = {fit.name: _trust(material, fit) for fit in material.fits}
    cards = [card(material, fit, trusts[fit.name]) for fit in material.fits]
    return joined([_take_home(material, trusts), _fits(material, trusts), relevant_terms(material), *cards])


def _trust(material: Material, fit: StoredFit) -> Trust:
    """By its own diagnosis, its ending and its residuals, and by a trusted reference beside it."""
    found = material.diagnoses[fit.name].value
    own = trust_of(fit, found)
    if found is None or not _far_from_reference(material, fit):
        return own
    reasons = [own.because, "far from the reference"]
    return replace(own, level=max(own.level, "care", key=LEVELS.index), because="; ".join(filter(None, reasons)))


def _far_from_reference(material: Material, fit: StoredFit) -> bool:
    comparison = material.comparison.value
    if comparison is None or comparison.reference == fit.name or fit.name not in comparison.summary.index:
        return False
    reference = material.diagnoses[comparison.reference].value
    if not isinstance(reference, SamplingDiagnosis) or not reference.trusted:
        return False
    return bool(comparison.summary.loc[fit.name, "largest_difference"] > _FAR)


def _take_home(material: Material, trusts: dict[str, Trust]) -> Html:
    levels = {trust.level for trust in trusts.values()}
    level: Level = levels.pop() if len(levels) == 1 else "care"
    said = _of_several(material, trusts) if material.several else sentence_of(material.fits[0], *trusts.values())
    return tag("div", tag("p", f"{SIGNS[level]} {said}", class_="status"), class_=f"verdict {level}")


def _of_several(material: Material, trusts: dict[str, Trust]) -> str:
    """What the reference says, and how far the others are from it."""
    found = material.comparison.value
    if found is None:
        return f"{count(len(material.fits))} fits, which are not compared: {material.comparison.refusal}"
    (reference,) = [fit for fit in material.fits if fit.name == found.reference]
    trust, finding = trusts[reference.name], finding_of(reference)
    which = ("which can be trusted" + trust.given) if trust.level == "good" else SAID[trust.level]
    size = found.summary["largest_difference"].dropna()
    far = [
        f"{name}{'' if i else ' differs from it'} by up to {number(float(size[name]), 2)} sds"
        for i, name in enumerate(size.index)
    ]
    others = f"; {listed(far, _NAMED)}" if far else ""
    return f"By {reference.name}, {which}, {finding[0].lower()}{finding[1:]}{others}."


def _fits(material: Material, trusts: dict[str, Trust]) -> Html:
    """A row a fit; on a narrow screen a block a fit, each cell with its heading."""
    columns = list(_columns(material, material.fits[0], trusts))
    names = ["fit", *columns] if material.several else columns
    body = []
    for fit in material.fits:
        cells = [
            tag("td", value, role="cell", class_=_CLASSES.get(name), data_label=None if name in _CLASSES else name)
            for name, value in _columns(material, fit, trusts).items()
        ]
        first = [tag("th", fit.name, scope="row", role="rowheader")] if material.several else []
        body.append(tag("tr", *first, *cells, role="row"))
    heads = [tag("th", name, scope="col", role="columnheader") for name in names]
    rows = [tag("thead", tag("tr", *heads, role="row"), role="rowgroup"), tag("tbody", *body, role="rowgroup")]
    return scrolling(tag("table", *rows, class_="fits", role="table"), "The fits at a glance")


def _columns(material: Material, fit: StoredFit, trusts: dict[str, Trust]) -> dict[str, object]:
    """What the table says of a fit."""
    trust = trusts[fit.name]
    badge = tag("span", said_of(trust.level), class_=f"badge {trust.level}")
    why = trust.because if trust.level != "good" else trust.given.removeprefix(", ")
    said: dict[str, object] = {
        "trust": joined([badge, " ", tag("small", why)]) if why else badge,
        "terms": _how_many(fit),
    }
    found = material.comparison.value
    if found is not None:
        said[f"differs from {found.reference}"] = _distance(found, fit.name)
    return said | {"what it is": fit.kind if fit.settings else "a sample", "time": duration(fit.seconds)}


def _distance(found: Any, name: str) -> str:
    """By how much a fit differs from the reference, in the means and in what it predicts."""
    if name == found.reference:
        return "the reference"
    if name not in found.summary.index:
        return "not compared"
    row = found.summary.loc[name]
    if not np.isfinite(row["largest_difference"]):
        return "other terms"
    said = f"by up to {number(float(row['largest_difference']), 2)} sds"
    own = found.parameters.xs(name, level="tree")["difference"].abs()
    said += f" ({own.idxmax()})" if own.max() > 0 else ""
    if "log_score_difference" in row and np.isfinite(row["log_score_difference"]):
        gap = with_error(row["log_score_difference"], row["log_score_difference_se"], 3)
        said += f"; log score per new row {'' if gap.startswith('−') else '+'}{gap}"
    return said


def _how_many(fit: StoredFit) -> str:
    kept = kept_of(fit)
    if kept is None:
        table = relevance_of(fit)
        return f"{int(table['relevant'].sum())} of {len(table)} relevant" if "relevant" in table else "none pruned"
    what = "" if kept[2] == "terms" else f"{kept[2]} "
    said = (
        f"{count(kept[0])} of {count(kept[1])} {what}kept" if kept[0] < kept[1] else f"all {count(kept[1])} {what}kept"
    )
    if fit.by_direction or is_of_rows(fit) or fit.evidence is None:
        return said
    return f"{said}, {count(fit.evidence['relevant'].sum())} relevant"
