"""Pictures of a sensitivity."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bayes_sparse.common.checks import count
from bayes_sparse.refits.sensitivity import Sensitivity
from bayes_sparse.results.plots.comparison import COLOURS, bars, legend, pruned
from bayes_sparse.results.plots.fits import GREY, axes_or_new

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_sensitivity"]


def plot_sensitivity(sensitivity: Sensitivity, *, top: int = 6, ax: Axes | None = None) -> Axes:
    """Means by setting, a line a parameter, those that change most, with two standard deviations.

    Parameters
    ----------
    sensitivity : Sensitivity
        From `bayes_sparse.sensitivity`.
    top : int
        Draw at most this many parameters.
    ax : matplotlib.axes.Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib.axes.Axes
    """
    if not isinstance(sensitivity, Sensitivity):
        raise TypeError("plot_sensitivity draws what bs.sensitivity returns; this is something else.")
    ax, top = axes_or_new(ax), count("top", top, 1)
    table, settings = sensitivity.parameters, list(sensitivity.trees)
    size = table["change"].abs().groupby(level="parameter", sort=False).max()
    shown = size.sort_values(ascending=False, kind="stable").index[:top]
    for i, name in enumerate(shown):
        own: Any = table.xs(name, level="parameter").reindex(settings)
        first = own["sd"].iloc[0]  # the unit of all; of each its own where the first is pruned
        spread = own["sd"].to_numpy() / first if first > 0 else (own["sd"] > 0).to_numpy().astype(float)
        x = np.arange(len(settings)) + 0.5 * ((i + 0.5) / len(shown) - 0.5)
        ax.plot(x, own["change"], "-", color=COLOURS[i % len(COLOURS)], lw=0.8, alpha=0.6)
        bars(ax, own["change"].to_numpy(), x, 2 * spread, pruned(own), i, name, across=False)
    ax.axhline(0.0, color=GREY, lw=0.8)
    ax.set_xticks(np.arange(len(settings)), settings)
    ax.set_xlabel("setting of the hyper-prior")
    ax.set_ylabel(f"change of the mean from {settings[0]}, in its sds")
    more = f", the {len(shown)} that change most" if len(shown) < len(size) else ""
    ax.set_title(f"{len(size)} parameters{more} (bars: 2 sd)", fontsize="medium")
    legend(ax, table)
    return ax
