"""Pictures of predictive checks, of classes and of numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.linalg import blas

from bayes_sparse.common.types import FloatArray
from bayes_sparse.report.markup import COLOURS, Html, count, picture, row_of, short, table
from bayes_sparse.report.replicates import band, coverage, ranks, reliability
from bayes_sparse.results.plots.fits import GREY

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Classes", "Numbers", "class_checks", "number_checks"]

_TINY = 1e-15


@dataclass(frozen=True, eq=False)
class Classes:
    """Labels, the true class of every row by number, its predicted probabilities, and what kind they are."""

    labels: list[str]
    truth: NDArray[np.intp]
    probability: FloatArray
    how: str


def class_checks(found: dict[str, Classes]) -> list[Html]:
    """Error, log loss and Brier score; reliability of the probabilities."""
    rows = {}
    for name, own in found.items():
        at, n = own.probability, np.arange(len(own.truth))
        hit = np.eye(at.shape[1])[own.truth]
        rows[name] = {
            "wrong": f"{100 * np.mean(at.argmax(axis=1) != own.truth):.1f}%",
            "log loss": float(-np.mean(np.log(np.maximum(at[n, own.truth], _TINY)))),
            "Brier score": float(np.mean(np.sum((at - hit) ** 2, axis=1))) / (2 if at.shape[1] == 2 else 1),
            "rows": len(n),
            "probabilities": own.how or "integrated over the posterior",
        }
    pictures = [
        picture(
            lambda ax: _reliability(ax, found),
            "Reliability curve: observed frequency by predicted probability",
            _BINNED,
        ),
        picture(lambda ax: _true_class(ax, found), "Histogram of the probability given to the true class", _TRUE),
    ]
    return [
        table(pd.DataFrame.from_dict(rows, orient="index").rename_axis("fit"), "Predictions of classes"),
        row_of(pictures),
    ]


_BINNED = (
    "Observed frequency by predicted probability, in bins of equal counts with 90% intervals; of several classes, all "
    "classes pooled. Calibrated probabilities lie on the line."
)
_TRUE = "The probability given to the class that a row really has: far to the left are the confident mistakes."


def _reliability(ax: Axes, found: dict[str, Classes]) -> None:
    ax.plot([0, 1], [0, 1], color=GREY, lw=1)
    for i, (name, own) in enumerate(found.items()):
        two = own.probability.shape[1] == 2
        truth = np.eye(own.probability.shape[1], dtype=bool)[own.truth]
        p, hit = (own.probability[:, 1], truth[:, 1]) if two else (own.probability.ravel(), truth.ravel())
        curve = reliability(hit, p)
        shift = 0.004 * (i - (len(found) - 1) / 2)
        colour = COLOURS[i % len(COLOURS)]
        ax.vlines(curve["probability"] + shift, curve["low"], curve["high"], color=colour, lw=1.2, alpha=0.7)
        ax.plot(curve["probability"] + shift, curve["frequency"], "o-", color=colour, ms=4, lw=1, label=short(name))
    first = next(iter(found.values()))
    what = f"of {short(first.labels[1])}" if len(first.labels) == 2 else "of a class"
    ax.set_xlabel(f"predicted probability {what}")
    ax.set_ylabel("observed frequency")
    if len(found) > 1:
        ax.legend(frameon=False, fontsize="small")


def _true_class(ax: Axes, found: dict[str, Classes]) -> None:
    for i, (name, own) in enumerate(found.items()):
        p = own.probability[np.arange(len(own.truth)), own.truth]
        colour = COLOURS[i % len(COLOURS)]
        ax.hist(p, bins=np.linspace(0, 1, 21).tolist(), histtype="step", color=colour, lw=1.6, label=short(name))
    ax.set_yscale("symlog", linthresh=1)
    ax.set_xlabel("probability given to the true class")
    ax.set_ylabel("rows")
    if len(found) > 1:
        ax.legend(frameon=False, fontsize="small")


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
        rows[name] = {"root mean square error": blas.dnrm2(mean - own.y) / np.sqrt(len(mean))}
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
    from scipy.stats import gaussian_kde  # here because it takes longer to import than a fit takes

    low, high = np.quantile(own.y, [0, 1])
    x = np.linspace(low - 0.2 * (high - low), high + 0.2 * (high - low), 200)
    for sample in own.drawn[:: max(1, len(own.drawn) // _CURVES)][:_CURVES]:
        if np.isfinite(sample).all() and np.ptp(sample) > 0:
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
