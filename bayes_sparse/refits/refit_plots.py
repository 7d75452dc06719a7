"""Pictures of a sensitivity and of a selection path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from bayes_sparse.common.checks import count
from bayes_sparse.refits.rankings import IN_WORDS
from bayes_sparse.refits.sensitivity import Sensitivity
from bayes_sparse.results.plots.comparison import COLOURS, bars, legend, pruned
from bayes_sparse.results.plots.fits import BLUE, GREY, ORANGE, axes_or_new

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_selection", "plot_sensitivity"]


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


def plot_selection(path: xr.Dataset, *, ax: Axes | None = None) -> Axes:
    """Error against the number of features, a line a ranking with one standard error, and the fit's own error.

    Parameters
    ----------
    path : xarray.Dataset
        From `selection_path`.
    ax : matplotlib.axes.Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib.axes.Axes
    """
    if not isinstance(path, xr.Dataset) or "own_error" not in path:
        raise TypeError("plot_selection draws what bs.selection_path returns; this is something else.")
    ax = axes_or_new(ax)
    counts, root = path["count"].to_numpy(), np.sqrt(path.sizes["fold"])
    for i, name in enumerate(path["ranking"].to_numpy().tolist()):
        error = 100 * path["error"].sel(ranking=name)
        mean, se = error.mean("fold").to_numpy(), error.std("fold", ddof=1).to_numpy() / root
        colour = (BLUE, ORANGE, GREY)[i % 3]
        label = IN_WORDS.get(name, f"this fit's order ({path.attrs['method']})")
        ax.plot(counts, mean, "os^"[i % 3] + "-", color=colour, lw=1.5, ms=5, label=label, zorder=4 - i)
        ax.fill_between(counts, mean - se, mean + se, color=colour, alpha=0.15, lw=0)
    own, kept = 100 * path["own_error"].to_numpy(), path["kept"].to_numpy()
    fewest, most = int(kept.min()), int(kept.max())
    ax.errorbar(
        max(kept.mean(), 0.5),  # zero has no place on this axis
        own.mean(),
        yerr=own.std(ddof=1) / root,
        xerr=[[kept.mean() - fewest], [most - kept.mean()]],
        fmt="D",
        color="black",
        ms=6,
        lw=1.2,
        label=f"the fit itself, {fewest if fewest == most else f'{fewest} to {most}'} kept",
    )
    ax.set_xscale("log")
    ax.set_xticks(counts, [str(m) for m in counts])
    ax.minorticks_off()
    ax.set_ylim(bottom=0.0)
    ax.set_xlabel("number of features")
    ax.set_ylabel("held-out error (%)")
    ax.set_title(f"{path.attrs['folds']}-fold cross-validation, with one standard error")
    ax.legend(frameon=False)
    return ax
