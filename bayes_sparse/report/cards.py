"""A card a fit: its numbers as tiles, and the sentences behind its verdict."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayes_sparse.common.printed import duration
from bayes_sparse.report.markup import Html, count, paragraph, tag, value_and_error
from bayes_sparse.report.material import Material, ask
from bayes_sparse.results.diagnose import Diagnosis, SamplingDiagnosis
from bayes_sparse.results.importance import side_of
from bayes_sparse.results.log_evidence import log_evidence
from bayes_sparse.results.terms import kept_of, prior_of, terms_of
from bayes_sparse.results.trust import Level, Trust
from bayes_sparse.trees.read import APPROXIMATIONS, StoredFit

__all__ = ["SIGNS", "card", "said_of"]

SIGNS: dict[Level, str] = {"good": "✓", "care": "!", "bad": "✗"}
_SAID: dict[Level, str] = {"good": "Trust it", "care": "With care", "bad": "Do not trust it"}


def said_of(level: Level) -> str:
    """A level, in two words and a sign."""
    return f"{SIGNS[level]} {_SAID[level]}"


def card(material: Material, fit: StoredFit, trust: Trust) -> Html:
    """One fit."""
    tiles = tag("div", *_tiles(material, fit), class_="tiles")
    why = [paragraph(words, "note") for words in _reasons(material, fit)]
    given = trust.given if trust.level == "good" else ""
    badge = tag("span", said_of(trust.level) + given, class_=f"badge {trust.level}")
    name = fit.name if material.several else "The fit"
    return tag("section", tag("h2", name, " ", badge), tiles, *why, class_="fit")


def _reasons(material: Material, fit: StoredFit) -> list[str]:
    """Why a fit has its level, in sentences."""
    answer = material.diagnoses[fit.name]
    out = [answer.value.verdict] if answer.value is not None else []
    if answer.value is None:  # a verdict has the words on the likelihood in it
        out = [words for words in (fit.likelihood_check, f"It was not checked. {answer.refusal}") if words]
    return out if fit.status is None or fit.status.level == "good" else [fit.status.sentence(), *out]


def _tiles(material: Material, fit: StoredFit) -> list[Html]:
    checks = _checks(material.diagnoses[fit.name].value)
    tiles = [_terms(material, fit), _prior(fit), *checks, _likelihood(fit), _evidence(fit)]
    loo = material.loos[fit.name].value
    if loo is not None:
        bad = int((np.asarray(loo.pareto_k) > loo.good_k).sum())
        tiles.append(
            _tile(
                "LOO elpd",
                value_and_error(loo.elpd, loo.se),
                f"{count(bad)} {'row' if bad == 1 else 'rows'} of large k",
            )
        )
    tiles.append(_tile("time", duration(fit.seconds), fit.method))
    return [tile for tile in tiles if tile]


def _terms(material: Material, fit: StoredFit) -> Html:
    kept = kept_of(fit)
    if kept is None:
        return _tile("terms", count(len(terms_of(fit, material.known))), "none pruned")
    return _tile(f"{kept[2]} kept", count(kept[0]), f"of {count(kept[1])}")


def _prior(fit: StoredFit) -> Html:
    prior, slab = prior_of(fit)
    name, _, numbers = prior.rstrip(")").partition("(")
    return _tile("prior of precisions", name, f"{numbers}; {slab}" if numbers else slab) if name else Html("")


def _checks(found: Any) -> list[Html]:
    if isinstance(found, Diagnosis):
        side = side_of(found.k_hat, found.threshold)
        return [_tile("k-hat", f"{found.k_hat:.2f}", f"{side} {found.threshold:.2f}")]
    if isinstance(found, SamplingDiagnosis):
        least = found.ess_bulk_min
        effective = count(round(least)) if np.isfinite(least) else "–"  # draws that are all the same have none
        return [
            _tile("largest R-hat", f"{found.r_hat_max:.3f}", "at most 1.01 wanted"),
            _tile("effective draws", effective, f"at least, of {count(found.draws)}"),
            _tile("divergences", count(found.divergences), f"of {count(found.draws)} draws"),
        ]
    return [_tile("check", "–", "not checked")]


def _likelihood(fit: StoredFit) -> Html:
    """The statistic that the likelihood was checked by, where there is one."""
    said = fit.residuals
    if not said:
        return Html("")
    name = str(said["likelihood_statistic"])
    return _tile(name, f"{float(said['likelihood_value']):.2f}", f"p {float(said['likelihood_p']):.2g} by chance")


def _evidence(fit: StoredFit) -> Html:
    found = ask(log_evidence, fit.tree).value
    if found is None or not np.isfinite(found.value):
        return Html("")
    kind = APPROXIMATIONS.get(found.kind, found.kind)
    return _tile("log evidence", value_and_error(found.value, found.se, most=2), kind)


def _tile(name: str, value: str | tuple[str, str], more: str) -> Html:
    large, small = value if isinstance(value, tuple) else (value, "")
    shown = [large, " ", tag("small", small)] if small else [large]
    return tag(
        "div",
        tag("span", name, class_="label"),
        tag("span", *shown, class_="value"),
        tag("span", more, class_="label"),
        class_="tile",
    )
