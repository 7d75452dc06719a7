"""Predicted probabilities of classes beside the classes observed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_sparse.problem.design import FloatArray
from bayes_sparse.report.calibration import reliability
from bayes_sparse.report.figures import COLOURS, picture, row_of, short
from bayes_sparse.report.markup import Html
from bayes_sparse.report.tables import table
from bayes_sparse.results.plots.fits import GREY

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Classes", "class_checks"]

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
