"""Pictures of a comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from bayes_sparse.common.checks import count
from bayes_sparse.results.comparison.compare import Comparison
from bayes_sparse.results.plots.fits import BLUE, GREY, ORANGE, axes_or_new

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["COLOURS", "bars", "legend", "plot_compare", "pruned"]

COLOURS = (BLUE, ORANGE, "#338855", "#884499", "#aa3344", "#777711")
_MARKERS = "osD^vPX"  # one more than colours, so that both together come round late


def plot_compare(comparison: Comparison, *, top: int = 20, ax: Axes | None = None) -> Axes:
    """Parameters of every tree beside the reference's, those that differ most on top, with two standard deviations.

    All are drawn from the reference's mean in its own standard deviations, so that parameters of different units can be
    compared: the band is the reference. An open mark is a term that was pruned.

    Parameters
    ----------
    comparison : Comparison
        From `bayes_sparse.compare`.
    top : int
        Draw at most this many parameters.
    ax : matplotlib.axes.Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib.axes.Axes
    """
    if not isinstance(comparison, Comparison):
        raise TypeError("plot_compare draws what bs.compare returns; this is something else.")
    table = comparison.parameters
    table = table[np.isfinite(table["difference"])]  # two points in different places are infinitely many sds apart
    if table.empty:
        raise ValueError("No parameter is shared with the reference, so there is nothing to draw.")
    ax, top = axes_or_new(ax), count("top", top, 1)
    size = table["difference"].abs().groupby(level="parameter", sort=False).max()
    shown = size.sort_values(ascending=False, kind="stable").index[:top]
    trees = table.index.unique("tree").to_list()
    height = pd.Series(np.arange(len(shown))[::-1], index=shown, dtype=float)
    kind = str(comparison.summary["kind"][comparison.reference])
    ax.axvspan(-2, 2, color=GREY, alpha=0.2, lw=0, label=f"{comparison.reference} ({kind})")
    ax.axvline(0.0, color=GREY, lw=0.8)
    for i, name in enumerate(trees):
        own: Any = table.xs(name, level="tree").reindex(shown)
        own = own[own["difference"].notna()]
        unit = own["reference_sd"].where(own["reference_sd"] > 0, own["sd"]).to_numpy()
        spread = np.divide(own["sd"].to_numpy(), unit, out=np.zeros(len(own)), where=unit > 0)
        y = height[own.index].to_numpy() + 0.6 * ((len(trees) - 1) / 2 - i) / len(trees)
        bars(ax, own["difference"].to_numpy(), y, 2 * spread, pruned(own), i, name, across=True)
    ax.set_yticks(height.to_numpy(), shown.to_list())
    ax.set_ylim(-0.6, len(shown) - 0.4)
    ax.set_xlabel(f"distance from the mean of {comparison.reference}, in its posterior sds")
    more = f", the {len(shown)} that differ most" if len(shown) < len(size) else ""
    ax.set_title(f"{len(size)} parameters{more} (bars: 2 sd)", fontsize="medium")
    legend(ax, table)
    return ax


def pruned(own: pd.DataFrame) -> pd.Series:
    """Which terms are exactly zero."""
    return (own["sd"] == 0) & (own["mean"] == 0)


def legend(ax: Axes, table: pd.DataFrame) -> None:
    """Beside the picture, since inside it would hide bars."""
    if pruned(table).any():
        ax.plot([], [], "o", mfc="white", mec="black", ms=6, label="pruned: exactly zero")
    ax.legend(frameon=False, fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))


def bars(
    ax: Axes,
    value: np.ndarray,
    place: np.ndarray,
    spread: np.ndarray,
    gone: pd.Series,
    number: int,
    label: str,
    *,
    across: bool,
) -> None:
    """Marks with bars, across or upwards; open ones where a term was pruned."""
    colour, mark = COLOURS[number % len(COLOURS)], _MARKERS[number % len(_MARKERS)]
    x, y = (value, place) if across else (place, value)
    error: dict[str, Any] = {"xerr" if across else "yerr": spread}
    ax.errorbar(x, y, **error, fmt="none", ecolor=colour, lw=1.4)
    open_ = gone.to_numpy()
    ax.plot(x[~open_], y[~open_], mark, color=colour, ms=5, label=label)
    ax.plot(x[open_], y[open_], mark, mfc="white", mec=colour, ms=6, label=None if (~open_).any() else label)
