"""The verdict of a comparison in plain words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

__all__ = ["verdict_of"]


def verdict_of(
    summary: pd.DataFrame,
    parameters: pd.DataFrame,
    held: dict[str, tuple[bool, ...]],
    reference: str,
    diagnosis: Any,
) -> str:
    """How far each tree is from the reference, how much faster it was, and whether the reference can be trusted.

    ``held`` says which parameters each tree has not pruned.
    """
    sentences = [f"Measured against {reference!r} ({summary['kind'][reference]!s})."]
    measured = [name for name in summary.index if name in parameters.index.get_level_values("tree")]
    sentences += [_of_tree(name, summary["speed_up"][name], parameters.xs(name, level="tree")) for name in measured]
    sentences += [_of_noise(parameters), _of_scores(summary, reference), _of_reference(reference, diagnosis)]
    sentences.append(_of_evidences(summary, held))
    return " ".join(sentence for sentence in sentences if sentence)


def _of_tree(name: str, speed_up: float, own: Any) -> str:
    size = own["difference"].abs()
    worst = size.idxmax()
    ratios = own["sd_ratio"].replace(np.inf, np.nan).dropna()
    kept = ratios[ratios > 0]
    pruned = int(((own["sd"] == 0) & (own["mean"] == 0) & (own["reference_sd"] > 0)).sum())
    said = (
        f"{name!r}: its means are at most {size[worst]:.2g} posterior sds away ({worst}), {size.median():.2g} in the "
    )
    said += "median"
    if len(kept):
        said += f"; its sds are {kept.min():.2g} to {kept.max():.2g} times as large"
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
    return (
        f"The Monte-Carlo error of these differences is up to {noise.max():.2g} sds: {within} of {len(noise)} are no "
        "larger than their own, and so no differences."
    )


def _of_scores(summary: pd.DataFrame, reference: str) -> str:
    """How the rows held out judge the others."""
    if "log_score" not in summary:
        return ""
    gaps = summary.drop(index=reference)[["log_score_difference", "log_score_difference_se"]]
    said = [f"{name!r} {gap:+.3f} (se {se:.3f})" for name, gap, se in gaps.itertuples()]
    return f"Nats a row held out that each predicts better than the reference: {', '.join(said)}."


def _of_reference(reference: str, diagnosis: Any) -> str:
    if diagnosis is None:
        return ""
    if diagnosis.trusted:
        return f"The reference itself can be trusted: {diagnosis.verdict}"
    return f"{reference!r} itself is not to be trusted, so neither is its distance from the others: {diagnosis.verdict}"


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
