"""The top of a report: what was fitted, how, and the verdict."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from bayes_sparse.report.markup import Html, count, joined, paragraph, tag, value_and_error
from bayes_sparse.report.material import Material, ask, kept_of, prior_of, terms_of
from bayes_sparse.results.diagnose import Diagnosis, SamplingDiagnosis
from bayes_sparse.results.importance import side_of
from bayes_sparse.results.log_evidence import log_evidence
from bayes_sparse.trees.read import APPROXIMATIONS, StoredFit

__all__ = ["Level", "head", "level_of"]

type Level = Literal["good", "care", "bad"]

_SAID: dict[Level, str] = {"good": "Trust it", "care": "With care", "bad": "Do not trust it"}
_GIVEN = ", given the terms selected"  # which neither importance weights nor chains at alpha* look at
_SIGNS: dict[Level, str] = {"good": "✓", "care": "!", "bad": "✗"}
_FAR = 1.0  # posterior sds from a trusted reference: more is another answer
_R_HAT, _DIVERGED, _FEW = 1.05, 0.01, 50  # beyond these a sampler has not just been stopped early


def head(material: Material) -> Html:
    """A verdict over all fits, then each with its tiles."""
    levels = {fit.name: level_of(material, fit) for fit in material.fits}
    cards = [_card(material, fit, levels[fit.name]) for fit in material.fits]
    return joined([_verdict(material, levels), *cards])


def level_of(material: Material, fit: StoredFit) -> Level:
    """How far to trust a fit: by its own diagnosis, its ending, its residuals, and a trusted reference beside it."""
    found = material.diagnoses[fit.name].value
    levels: list[Level] = [_by_diagnosis(found), "good" if fit.status is None else fit.status.level]
    if found is not None and _far_from_reference(material, fit):
        levels.append("care")
    if fit.likelihood_check:
        levels.append("care")
    return max(levels, key=["good", "care", "bad"].index)


def _by_diagnosis(found: Any) -> Level:
    if found is None:
        return "care"
    if found.trusted:
        return "good"
    if isinstance(found, SamplingDiagnosis):
        early = (
            found.r_hat_max <= _R_HAT
            and found.divergences <= _DIVERGED * found.draws
            and min(found.ess_bulk_min, found.ess_tail_min) >= _FEW
        )
        return "care" if early else "bad"
    return "bad"


def _far_from_reference(material: Material, fit: StoredFit) -> bool:
    comparison = material.comparison.value
    if comparison is None or comparison.reference == fit.name or fit.name not in comparison.summary.index:
        return False
    reference = material.diagnoses[comparison.reference].value
    if not isinstance(reference, SamplingDiagnosis) or not reference.trusted:
        return False
    return bool(comparison.summary.loc[fit.name, "largest_difference"] > _FAR)


def _verdict(material: Material, levels: dict[str, Level]) -> Html:
    if not material.several:
        (fit,) = material.fits
        return _box(levels[fit.name], _said(fit, levels[fit.name]), _reasons(material, fit))
    found = set(levels.values())
    level: Level = found.pop() if len(found) == 1 else "care"
    groups: dict[str, list[str]] = {}
    for fit in sorted(material.fits, key=lambda one: ["good", "care", "bad"].index(levels[one.name])):
        groups.setdefault(_said(fit, levels[fit.name]), []).append(fit.name)
    said = [f"{words}: {', '.join(names)}" for words, names in groups.items()]
    comparison = material.comparison
    words = [comparison.value.verdict] if comparison.value is not None else [f"Not compared: {comparison.refusal}"]
    return _box(level, " · ".join(said), words)


def _said(fit: StoredFit, level: Level) -> str:
    """The level in words; a fit at estimated hyper-parameters is good given what was selected with them."""
    return _SAID[level] + (_GIVEN if level == "good" and fit.evidence is not None else "")


def _box(level: Level, said: str, words: list[str]) -> Html:
    status = tag("p", f"{_SIGNS[level]} {said}", class_="status")
    return tag("div", status, *(paragraph(line) for line in words), class_=f"verdict {level}")


def _reasons(material: Material, fit: StoredFit) -> list[str]:
    """Why a fit has its level, in sentences."""
    answer = material.diagnoses[fit.name]
    out = [answer.value.verdict] if answer.value is not None else []
    if answer.value is None:  # a verdict has the words on the likelihood in it
        out = [words for words in (fit.likelihood_check, f"It was not checked. {answer.refusal}") if words]
    return out if fit.status is None or fit.status.level == "good" else [fit.status.sentence(), *out]


def _card(material: Material, fit: StoredFit, level: Level) -> Html:
    tiles = tag("div", *_tiles(material, fit), class_="tiles")
    if not material.several:
        return tag("div", tiles, class_="fit")
    badge = tag("span", f"{_SIGNS[level]} {_said(fit, level)}", class_=f"badge {level}")
    said = str(material.comparison.value.verdict) if material.comparison.value is not None else ""
    why = [paragraph(words, "note") for words in _reasons(material, fit) if words not in said]
    return tag("section", tag("h2", fit.name, " ", badge), tiles, *why, class_="fit")


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
    tiles.append(_tile("time", _time(fit.seconds), fit.method))
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


def _time(seconds: float) -> str:
    if not np.isfinite(seconds):
        return "–"
    if seconds < 1:
        return f"{1e3 * seconds:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:.1f} min"
