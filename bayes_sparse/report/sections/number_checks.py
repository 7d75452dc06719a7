"""Predicted numbers beside the numbers observed: replicated data sets, and ranks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy.stats import gaussian_kde

from bayes_sparse.problem.design import FloatArray
from bayes_sparse.report.calibration import band, coverage, ranks
from bayes_sparse.report.figures import COLOURS, picture, row_of, short
from bayes_sparse.report.markup import Html
from bayes_sparse.report.tables import count, table
from bayes_sparse.results.plots.fits import GREY

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Numbers", "number_checks"]

_PICTURES = 4  # fits that have one each
_CURVES = 30  # replicated data sets drawn
_BARS = 25  # counts drawn


@dataclass(frozen=True, eq=False)
class Numbers:
    """Observations, draws beside them (draws, rows), whether they are counts, what the draws are, their weights."""

    y: FloatArray
    drawn: FloatArray
    counts: bool
    how: str
    weights: FloatArray | None = None

    def __post_init__(self) -> None:
        if self.drawn.shape[1] != len(self.y):
            raise ValueError(f"There are {self.drawn.shape[1]} predictions and {len(self.y)} observations.")


def number_checks(found: dict[str, Numbers]) -> list[Html]:
    """Error and coverage; replicated data, and ranks of the observations."""
    rank = {name: ranks(own.y, own.drawn, own.weights) for name, own in found.items()}
    rows: dict[str, dict[str, object]] = {}
    for name, own in found.items():
        mean = np.average(own.drawn, axis=0, weights=own.weights)
        rows[name] = {"root mean square error": float(np.sqrt(np.mean((mean - own.y) ** 2)))}
        rows[name] |= {
            f"in the {100 * level:.0f}% interval": f"{100 * share:.0f}%"
            for level, share in coverage(rank[name]).items()
        }
        rows[name] |= {"rows": len(own.y), "draws": own.how or "from the posterior"}
    pictures = [_replicated(name, own, len(found) > 1) for name, own in list(found.items())[:_PICTURES]]
    pictures.append(
        picture(
            lambda ax: _uniform(ax, rank),
            "Distribution of the ranks of the observations among their predictive draws",
            "Ranks of the observations among their predictive draws, less what is expected. Outside the band (95%, all "
            "at once) they are not uniform: ∩ or ∪ shapes are bias, S shapes wrong spread.",
        )
    )
    return [
        table(pd.DataFrame.from_dict(rows, orient="index").rename_axis("fit"), "Predictions of numbers"),
        row_of(pictures),
    ]


def _replicated(name: str, own: Numbers, several: bool) -> Html:
    draw = _bars if own.counts else _densities
    title = short(name) if several else ""
    what = "counts, with the 90% of replicated data sets" if own.counts else f"{_CURVES} replicated data sets"
    return picture(
        lambda ax: draw(ax, own, title),
        f"Observed distribution and {what}",
        f"Observed (orange) and {what} (blue).",
    )


def _densities(ax: Axes, own: Numbers, title: str) -> None:
    low, high = np.quantile(own.y, [0, 1])
    x = np.linspace(low - 0.2 * (high - low), high + 0.2 * (high - low), 200)
    for sample in own.drawn[:: max(1, len(own.drawn) // _CURVES)][:_CURVES]:
        if np.ptp(sample) > 0 and np.isfinite(sample).all():
            ax.plot(x, gaussian_kde(sample)(x), color=COLOURS[0], lw=0.6, alpha=0.35)
    if np.ptp(own.y) > 0:
        ax.plot(x, gaussian_kde(own.y)(x), color=COLOURS[1], lw=2)
    ax.set_yticks([])
    ax.set_xlabel("observation")
    ax.set_title(title)


def _bars(ax: Axes, own: Numbers, title: str) -> None:
    most = int(min(own.y.max(), np.quantile(own.y, 0.99) + 3))
    width = max(1, -(-(most + 1) // _BARS))
    edges = np.arange(0, most + width + 1, width)
    seen = np.histogram(own.y, edges)[0]
    drawn = np.stack([np.histogram(sample, edges)[0] for sample in own.drawn])
    low, middle, high = np.quantile(drawn, [0.05, 0.5, 0.95], axis=0)
    at = edges[:-1] + (width - 1) / 2
    ax.bar(at, seen, width=0.8 * width, color=COLOURS[1], alpha=0.55)
    ax.vlines(at, low, high, color=COLOURS[0], lw=2)
    ax.plot(at, middle, "o", color=COLOURS[0], ms=3.5)
    ax.set_xlabel("count" if width == 1 else f"count, {count(width)} together")
    ax.set_ylabel("rows")
    ax.set_title(title)


def _uniform(ax: Axes, rank: dict[str, FloatArray]) -> None:
    for i, (name, own) in enumerate(rank.items()):
        x = np.sort(own)
        y = np.arange(1, len(x) + 1) / len(x) - x
        colour = COLOURS[i % len(COLOURS)]
        ax.step(
            np.concatenate([[0], x, [1]]), np.concatenate([[0], y, [0]]), where="post", color=colour, label=short(name)
        )
    widest = band(min(len(own) for own in rank.values()))
    ax.fill_between([0, 1], -widest, widest, color=GREY, alpha=0.15, lw=0)
    ax.axhline(0.0, color=GREY, lw=0.8)
    ax.set_xlabel("rank of the observation")
    ax.set_ylabel("distribution less uniform")
    if len(rank) > 1:
        ax.legend(frameon=False, fontsize="small")
