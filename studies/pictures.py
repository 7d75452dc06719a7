"""Pictures of the study: error against the number of features, shapes against pixels, and the points that matter."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from bayes_sparse.results.plots.fits import BLUE, GREY, ORANGE
from studies.columns import NUMBERS
from studies.contours import FloatArray
from studies.plan import Plan
from studies.results import Record
from studies.summary import FIT_WORDS, RANKING_WORDS, curves, fits, shape_share

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw", "importance", "point_figure"]

_GREEN, _PALE = "#228866", "#66aadd"
_LOOKS = {
    "student_t": (BLUE, "o"),
    "cauchy": (_PALE, "v"),
    "mutual_information": (ORANGE, "s"),
    "l1_svm": (GREY, "^"),
}
_SOURCES = {"shapes": (BLUE, "o", "shape features"), "pixels": (ORANGE, "s", "pixels"), "pooled": (_GREEN, "D", "both")}
_FITS = ("student_t", "cauchy", "flat")
_PICTURED = ("student_t", "mutual_information", "l1_svm")


def draw(plan: Plan, results: list[dict[str, Record]], output: Path) -> list[Path]:
    """Draw all pictures of a problem.

    Parameters
    ----------
    plan : Plan
        What was studied.
    results : list of dict
        From `run`.
    output : Path
        Where the folder of the problem is.

    Returns
    -------
    list of Path
        The PNG files.
    """
    figures = {
        "errors": _errors(plan, results),
        "weights": point_figure(
            results[0], [(_fit_title(name), results[0][f"fit-{name}"]["weights"]) for name in _FITS]
        ),
    }
    if plan.pixels:
        figures["pixels"] = _pixels(plan, results)
    for m in (20, 80):
        if m in plan.counts:
            figures[f"points{m}"] = point_figure(results[0], _first(plan, results[0], m))
    paths = []
    for name, figure in figures.items():
        paths.append(output / plan.name / f"{name}.png")
        figure.savefig(paths[-1], dpi=110)
    return paths


def importance(weights: dict[str, float], label: Any, points: int) -> FloatArray:
    """Of each contour point of a class: the sizes of the standardised weights on its two numbers, added."""
    parts = [[weights.get(f"{label} {number} {i}", 0.0) for number in NUMBERS] for i in range(points)]
    return np.sum(parts, axis=1)


def point_figure(fold: dict[str, Record], rows: list[tuple[str, dict[str, float]]]) -> Figure:
    """The anchors of a fold with their contour points, larger and darker where they matter more; a row a ranking.

    Parameters
    ----------
    fold : dict
        Results of one fold.
    rows : list of (str, dict)
        Title and weights of each row. Sizes are relative to the largest of the row.
    """
    anchors = fold["anchors"]["anchors"]
    figure, axes = _subplots(len(rows), len(anchors), 2.3 * len(anchors) + 1.0, 2.5 * len(rows) + 0.3)
    for row, (title, weights) in zip(axes, rows, strict=True):
        values = [importance(weights, anchor["label"], len(anchor["points"])) for anchor in anchors]
        top = max(float(np.max(value)) for value in values)
        for ax, anchor, value in zip(row, anchors, values, strict=True):
            _points(ax, anchor, value / top if top else value)
        row[0].set_ylabel(title, fontsize=10)
    figure.supxlabel("size and colour: sizes of the standardised weights of a point, added", fontsize=8, color=GREY)
    return figure


def _points(ax: Axes, anchor: Record, size: FloatArray) -> None:
    """One anchor."""
    image, points = np.array(anchor["image"]), np.array(anchor["points"])
    ax.imshow(image, cmap="Greys", vmax=3.2 * image.max(), interpolation="bilinear")
    ax.plot(*points.T, ".", color=GREY, ms=2.5)
    last = np.argsort(size)
    last = last[size[last] > 0]
    x, y = points[last].T
    ax.scatter(
        x,
        y,
        s=15 + 165 * size[last],
        c=size[last],
        cmap="inferno_r",
        vmin=-0.25,
        vmax=1.1,
        lw=0.5,
        ec="white",
        zorder=3,
    )
    low, high = points.min(axis=0) - 2.0, points.max(axis=0) + 2.0
    middle, half = (low + high) / 2, float(np.max(high - low)) / 2
    ax.set_xlim(middle[0] - half, middle[0] + half)
    ax.set_ylim(middle[1] + half, middle[1] - half)
    ax.set_xticks([])
    ax.set_yticks([])
    chosen = len(last)
    ax.set_title(f"anchor of {anchor['label']}: {chosen} point{'s' * (chosen != 1)}", fontsize=9)
    for side in ax.spines.values():
        side.set_visible(False)


def _first(plan: Plan, fold: dict[str, Record], m: int) -> list[tuple[str, dict[str, float]]]:
    at = plan.counts.index(m)
    return [(f"first {m} by\n{_short(name)}", fold[f"curve-shapes-{name}"]["weights"][at]) for name in _PICTURED]


def _fit_title(name: str) -> str:
    return "all weights of\n" + FIT_WORDS[name].split(" (d")[0].split(", the")[0]


def _short(name: str) -> str:
    return RANKING_WORDS[name.removesuffix("_strength")].split(",")[0]


def _errors(plan: Plan, results: list[dict[str, Record]]) -> Figure:
    """Error of each ranking, and of the fits themselves."""
    figure, axes = _subplots(1, 1, 7.2, 4.8)
    ax, table, of_fits = axes[0, 0], curves(plan, results), fits(results)
    shapes = table[table["source"] == "shapes"]
    for i, (name, (colour, mark)) in enumerate(_LOOKS.items()):
        _curve(ax, shapes[shapes["ranking"] == name], colour, mark, RANKING_WORDS[name], i)
    for name, mark, words in zip(_FITS, "DPX", ("hyper=(1, 0.1)", "hyper=(0.5, 0.005)", "hyper=(0, 0)"), strict=True):
        own = of_fits[of_fits["fit"] == name]
        error, kept = 100 * own["error"], own["kept"]
        label = f"the fit itself, {words}: {kept.mean():.0f} weights kept"
        ax.errorbar(kept.mean(), error.mean(), yerr=error.sem(), fmt=mark, color="black", ms=7, lw=1.2, label=label)
    each = plan.digits // len(plan.classes)
    ax.set_title(f"{_versus(plan)}: {each} digits of each, {plan.folds} folds, bars of one standard error")
    _finish(ax, plan)
    return figure


def _pixels(plan: Plan, results: list[dict[str, Record]]) -> Figure:
    """Shapes, pixels and both, for a ranking by evidence and by a 1-norm SVM; and what the pooled ones take first."""
    table, share = curves(plan, results), shape_share(plan, results)
    names = share["ranking"].unique().tolist()
    figure, axes = _subplots(1, len(names) + 1, 4.9 * (len(names) + 1), 4.4)
    for ax, name in zip(axes[0], names, strict=False):
        for i, (source, (colour, mark, words)) in enumerate(_SOURCES.items()):
            part = table[(table["source"] == source) & (table["ranking"] == name)]
            _curve(ax, part, colour, mark, words, i)
        ax.set_title(f"{_versus(plan)}, by {_short(name)}")
        _finish(ax, plan)
    last = axes[0, -1]
    for name in names:
        part, (colour, mark) = share[share["ranking"] == name], _LOOKS[name.removesuffix("_strength")]
        percent = 100 * part["shapes"] / part["count"]
        last.plot(part["count"], percent, mark + "-", color=colour, label=f"by {_short(name)}")
    offered = np.mean([done["fit-l1_svm"]["offered"] / done["pooled-l1_svm"]["offered"] for done in results])
    last.axhline(100 * offered, color="black", lw=0.8, ls=":", label="of all features offered")
    last.set_title("shape features among the first of both pooled")
    _finish(last, plan)
    last.set_ylim(0, 102)
    last.set_ylabel("shape features (%)")
    return figure


def _curve(ax: Axes, part: pd.DataFrame, colour: str, mark: str, label: str, i: int) -> None:
    error = 100 * part.groupby("count")["error"].agg(["mean", "sem"])
    where = error.index.to_numpy() * 1.025 ** (i - 1)  # side by side, so that bars do not hide each other
    ax.errorbar(
        where, error["mean"], yerr=error["sem"], fmt=mark + "-", color=colour, lw=1.5, ms=5, capsize=2, label=label
    )


def _finish(ax: Axes, plan: Plan) -> None:
    ax.set_xscale("log")
    ax.set_xticks(plan.counts, [str(m) for m in plan.counts])
    ax.minorticks_off()
    ax.set_ylim(bottom=0.0)
    ax.set_xlabel("number of features")
    ax.set_ylabel("held-out error (%)")
    ax.legend(frameon=False, fontsize=9)


def _versus(plan: Plan) -> str:
    names = [str(label) for label in sorted(plan.classes)]
    return " against ".join(names) if len(names) == 2 else ", ".join(names)


def _subplots(rows: int, columns: int, width: float, height: float) -> tuple[Figure, Any]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)  # files need no window
    return figure, figure.subplots(rows, columns, squeeze=False)
