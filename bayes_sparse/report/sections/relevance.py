"""Which terms matter: tables of the strongest, and one picture of them all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from bayes_sparse.report.markup import COLOURS, Html, count, joined, nothing, paragraph, picture, short, table, tag
from bayes_sparse.report.material import Material, Section
from bayes_sparse.results.plots.fits import GREY
from bayes_sparse.results.relevance import relevance
from bayes_sparse.results.terms import kept_of, strength, terms_of
from bayes_sparse.trees.alternatives import in_a_sentence
from bayes_sparse.trees.read import StoredFit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["SECTION"]

_ROWS = 30  # of a table
_TERMS = 40  # of the picture
_HIGHEST = 11.0  # inches of the picture
_SIDE_BY_SIDE = 6  # fits in one picture
_ORDER = ("word", "mean", "sd", "strength", "chance", "alternatives", "precision", "gamma", "pull")
_NO_SUCH = (
    "None of these numbers is the probability that a term matters; bs.relevance(tree, delta=...) has that of a weight "
    "larger than a size of yours."
)
_HEADINGS = {
    "word": "relevant?",
    "alternatives": "cannot be told from",
    "precision": "prior precision α",
    "gamma": "determined by the data",
    "pull": "pull (±1: kept)",
    "strength": "|mean| / sd",
}


def _body(material: Material) -> Html:
    """A forest of all fits, then a table a fit."""
    frames = {fit.name: terms_of(fit, material.known) for fit in material.fits}
    if not any(len(frame) for frame in frames.values()):
        return nothing("No term was kept: the fit is the model without any, with a bias at most.")
    parts: list[object] = [_forest(frames)]
    for fit in material.fits:
        if material.several:
            parts.append(tag("h3", fit.name))
        parts += _of_draws(fit, frames[fit.name], material.delta) if fit.sampled else _of_evidence(fit)
    return joined(parts)


def _of_evidence(fit: StoredFit) -> list[Html]:
    whole = relevance(fit.tree)
    kept = whole if fit.by_direction else whole[whole["kept"]]
    words = _how_many(fit, kept, len(whole))
    if not len(kept):
        return [paragraph(words)]
    shown = kept.head(_ROWS).assign(strength=strength(kept).where(kept["sd"].notna()))
    if "chance" in shown:
        shown["chance"] = [f"{chance:.2g}" if chance >= 1e-4 else "< 0.0001" for chance in shown["chance"]]
        shown["alternatives"] = [", ".join(map(str, rivals)) for rivals in shown["rival"]]
        if not shown["alternatives"].any():
            shown = shown.drop(columns="alternatives")
    if "gamma" in shown:
        shown["gamma"] = [f"{100 * share:.0f}%" for share in shown["gamma"]]
    shown = shown[[name for name in _ORDER if name in shown]]
    shown.index.names = ["term" if name == "basis" else name for name in shown.index.names]
    title = "Weights" if fit.by_direction else "Terms kept"
    return [paragraph(words), table(shown.rename(columns=_HEADINGS), f"{title}: {fit.name}")]


def _how_many(fit: StoredFit, kept: pd.DataFrame, offered: int) -> str:
    found, k = kept_of(fit), len(kept)
    if found is not None and found[2] == "directions":
        return (
            f"A one-step method prunes directions, not weights: {count(found[0])} of {count(found[1])} directions were "
            f"kept, and each weight is made of them, so that none is relevant or not by itself. Their sds include the "
            f"directions left out; they have none where the data do not determine a weight by itself.{_first(k)}"
        )
    pruned = f"; the other {count(offered - k)} were pruned" if offered > k else ""
    perhaps = k - int(kept["relevant"].sum())
    unsure = f" Chance may explain {count(perhaps)} of them, kept because they help to predict." if perhaps else ""
    undecided = "" if fit.evidence is None else in_a_sentence(fit.evidence)
    return f"{count(k)} of {count(offered)} terms were kept{pruned}.{unsure} {undecided}{_first(k)}"


def _of_draws(fit: StoredFit, frame: pd.DataFrame, delta: Any) -> list[Html]:
    shown = frame.head(_ROWS).drop(columns="scale").rename(columns={"low": "2.5%", "high": "97.5%"})
    shown.insert(2, "|mean| / sd", strength(frame.head(_ROWS)))
    more = _sampled_columns(fit, delta)
    clear = int(((frame["low"] > 0) | (frame["high"] < 0)).sum())
    kept, words = kept_of(fit), "A sampler prunes nothing."
    if kept is not None:
        words = f"Sampled over what an evidence fit had kept: {count(kept[0])} of {count(kept[1])} {kept[2]}."
    words += f" The 95% intervals of {count(clear)} of {count(len(frame))} terms exclude zero.{_first(len(frame))}"
    if more is not None:
        shown = shown.join(more)
        words += f" {_NO_SUCH}" if delta is None else f" {_NO_SUCH.partition(';')[0]}."
    return [paragraph(words), table(shown, "Terms sampled")]


def _sampled_columns(fit: StoredFit, delta: Any) -> pd.DataFrame | None:
    """What draws of everything say besides, by term; None where the tree has no such draws."""
    if not fit.sampled_whole:
        return None
    said = relevance(fit.tree, delta=delta)
    names = [f"{name[0]}[{name[1]}]" if isinstance(name, tuple) else name for name in said.index]
    shares = zip(*(100 * said[name] for name in ("gamma", "gamma_low", "gamma_high")), strict=True)
    columns = {
        "P(sign)": [f"{share:.2f}" for share in said["sign"]],
        "determined (95%)": [f"{mean:.0f}% ({low:.0f} to {high:.0f})" for mean, low, high in shares],
    }
    if delta is not None:
        size = "its own size" if isinstance(delta, Mapping) else f"{delta:g}"
        asked = [not isinstance(delta, Mapping) or name in delta for name in said.index]
        columns[f"P(|w| > {size})"] = [
            f"{share:.2f}" if there else "" for share, there in zip(said["beyond"], asked, strict=True)
        ]
    return pd.DataFrame(columns, index=names)


def _first(total: int) -> str:
    return f" The {_ROWS} strongest are listed." if total > _ROWS else ""


def _forest(frames: dict[str, pd.DataFrame]) -> Html:
    """Intervals of every fit beside each other, a row a term."""
    drawn = dict(list(frames.items())[:_SIDE_BY_SIDE])
    ranked = pd.concat([strength(frame) for frame in drawn.values()]).groupby(level=0, sort=False).max()
    # Terms that a fit has selected come before those that a sampler has merely not ruled out.
    fewest = min((frame for frame in drawn.values() if len(frame)), key=len).index
    chosen = ranked.sort_values(ascending=False, kind="stable").index
    step = max(0.2, 0.1 * len(drawn) + 0.06)
    names = [*chosen[chosen.isin(fewest)], *chosen[~chosen.isin(fewest)]][: min(_TERMS, int(_HIGHEST / step))]
    scaled = any((frame["scale"] != 1).any() for frame in drawn.values())
    unit = "effect of one standard deviation" if scaled else "weight"
    caption = "Means and 95% intervals."
    if scaled:
        caption = "Means and 95% intervals of a change by one standard deviation of the column, so that terms compare."
    caption += f" The first {len(names)} of {count(len(ranked))} terms." if len(ranked) > len(names) else ""
    height = 1.0 + len(names) * step
    alt = f"Forest plot: intervals of {len(names)} terms" + (f" by {', '.join(drawn)}" if len(drawn) > 1 else "")
    return picture(lambda ax: _draw(ax, drawn, names, unit), alt, caption, width=5.2, height=height)


def _draw(ax: Axes, frames: dict[str, pd.DataFrame], names: list[str], unit: str) -> None:
    height = np.arange(len(names))[::-1]
    ax.axvline(0.0, color=GREY, lw=0.8)
    step = 0.72 / len(frames)
    for i, (label, frame) in enumerate(frames.items()):
        own = frame.reindex(names)
        scale = own["scale"].to_numpy()
        mean, low, high = (own[name].to_numpy() * scale for name in ("mean", "low", "high"))
        at = height + step * ((len(frames) - 1) / 2 - i)
        colour = COLOURS[i % len(COLOURS)]
        ax.hlines(at, low, high, color=colour, lw=1.6)
        ax.plot(mean, at, "o", color=colour, ms=4 if len(frames) < 3 else 3, label=label)
    ax.set_yticks(height, [short(name) for name in names])
    ax.set_ylim(-0.7, len(names) - 0.3)
    ax.set_xlabel(unit)
    if len(frames) > 1:
        ax.figure.legend(loc="outside upper left", ncols=3, frameon=False, fontsize="small")


SECTION = Section("Which terms matter", 20, _body)
