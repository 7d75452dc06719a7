"""Pictures of a fitted tree, on matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
import xarray as xr

from bayes_sparse.inference.claims import FALSE_FINDS
from bayes_sparse.results.predict.predict import predict
from bayes_sparse.results.relevance import relevance
from bayes_sparse.trees.damage import reads_a_fit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["BLUE", "GREY", "ORANGE", "axes_or_new", "plot_curve", "plot_history", "plot_relevance"]

BLUE, GREY, ORANGE = "#2266aa", "#888888", "#dd7722"
_LONG = 30  # characters of a name on an axis


@reads_a_fit
def plot_relevance(
    tree: xr.DataTree,
    *,
    top: int = 20,
    by: Literal["weight", "feature"] = "weight",
    false_finds: float = FALSE_FINDS,
    ax: Axes | None = None,
) -> Axes:
    """Weights of the terms kept, most relevant on top, with intervals of two standard deviations.

    Those that chance may explain are drawn hollow, and one that another column could stand for is labelled with both
    ("x0 or x1"). A one-step method keeps directions: of its weights the strongest are drawn, none of them relevant or
    not. Weights of standardised columns are drawn as the effect of one standard deviation, so that they can be
    compared.

    Parameters
    ----------
    tree : xarray.DataTree
        From an evidence method of `bayes_sparse.fit`.
    top : int
        Draw at most this many.
    by : "weight" or "feature"
        With several classes: the weight of each feature and class, or a bar for each feature, with the share of every
        class in its strength.
    false_finds : float
        As in `bs.relevance`.
    ax : matplotlib.axes.Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib.axes.Axes
    """
    ax = axes_or_new(ax)
    table = relevance(tree, false_finds=false_finds)
    if by == "feature" and table.index.nlevels == 2:
        return _plot_features(table, relevance(tree, by="feature", false_finds=false_finds), top, ax)
    judged = "relevant" in table  # one-step methods choose among directions
    kept = (table[table["kept"]] if judged else table).head(top)
    names = kept.index.to_list()
    if kept.index.nlevels == 2:  # the basis functions of several classes, under the names that the tree has for them
        names = [f"{basis}[{label}]" for basis, label in names]
    scale, unit = np.ones(len(kept)), "weight"
    if "basis_scale" in tree["constant_data"]:
        scale = tree["constant_data"]["basis_scale"].sel(basis=names).to_numpy()
        unit = "effect of one standard deviation"
    height = np.arange(len(kept))[::-1]
    ax.axvline(0.0, color=GREY, lw=0.8)
    relevant = kept["relevant"].to_numpy() if judged else np.ones(len(kept), dtype=bool)
    looks = (f"relevant: chance at most {false_finds:g}", BLUE, BLUE), ("perhaps: chance may explain it", GREY, "white")
    for some, (meaning, colour, face) in zip((relevant, ~relevant), looks, strict=True):
        if some.any():
            own, wide = kept[some], scale[some]
            x, bars = own["mean"] * wide, 2 * own["sd"] * wide
            ax.errorbar(x, height[some], xerr=bars, fmt="o", color=colour, mfc=face, ms=5, lw=1.5, label=meaning)
    shown = kept["alternatives"].where(kept["alternatives"] != "", names) if "alternatives" in kept else names
    ax.set_yticks(height, [_short(name) for name in shown])
    ax.set_xlabel(f"{unit} ({'mean and 2 sd' if kept['sd'].notna().any() else 'mean; not determined one by one'})")
    ax.set_title(_title(table, len(kept)))
    if not relevant.all():
        ax.legend(frameon=False, fontsize="small", loc="best")
    ax.margins(y=0.08)
    return ax


def _title(table: pd.DataFrame, shown: int) -> str:
    if "relevant" not in table:
        return f"{len(table)} weights, made of directions" + (
            f", the first {shown} shown" if shown < len(table) else ""
        )
    relevant = int(table["relevant"].sum())
    if "rival" not in table:  # NUTS keeps them all
        return f"{relevant} of {len(table)} terms relevant" + (f"; {shown} shown" if shown < len(table) else "")
    total = int(table["kept"].sum())
    perhaps = f", {relevant} of them relevant" if relevant < total else ""
    return f"{total} of {len(table)} terms kept{perhaps}" + (f"; the first {shown} shown" if shown < total else "")


def _short(name: object) -> str:
    text = str(name)
    return text if len(text) <= _LONG else text[: _LONG - 1] + "…"


def _plot_features(weights: pd.DataFrame, features: pd.DataFrame, top: int, ax: Axes) -> Axes:
    """A bar a feature as long as its strength, divided between the classes that keep it."""
    from matplotlib import colormaps

    judged = "kept" in features  # one-step methods choose among directions
    shown = (features[features["kept"]] if judged else features).head(top)
    strengths = weights["mean"] / weights["sd"]
    square = (strengths.where(weights["kept"], 0.0) if judged else strengths) ** 2
    share = square.unstack("class", fill_value=0).reindex(shown.index)
    lengths = share.div(share.sum(axis=1), axis=0).mul(shown["strength"], axis=0)
    height, left = np.arange(len(shown))[::-1], np.zeros(len(shown))
    colours = colormaps["tab10" if lengths.shape[1] <= 10 else "tab20"]
    for i, label in enumerate(lengths.columns):
        ax.barh(height, lengths[label], left=left, color=colours(i % colours.N), label=str(label))
        left = left + lengths[label].to_numpy()
    ax.set_yticks(height, shown.index.to_list())
    ax.set_xlabel("strength: root of the sum of (mean / sd)² over classes")
    total = int(features["kept"].sum()) if judged else len(features)
    more = f", the first {len(shown)} shown" if len(shown) < total else ""
    ax.set_title(f"{total} of {len(features)} features kept{more}" if judged else f"{total} features{more}")
    ax.legend(title="class", frameon=False, fontsize="small")
    return ax


@reads_a_fit
def plot_curve(tree: xr.DataTree, *, ax: Axes | None = None) -> Axes:
    """Data, predictive mean with its 95% band, and relevance vectors of a kernel fit on a single feature.

    Parameters
    ----------
    tree : xarray.DataTree
        A regression with a kernel basis on one feature.
    ax : matplotlib.axes.Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib.axes.Axes
    """
    constant = tree["constant_data"].to_dataset()
    if "X" not in constant or constant.sizes.get("feature") != 1:
        raise ValueError("plot_curve draws a kernel fit on one feature; this tree holds no single training feature.")
    ax = axes_or_new(ax)
    x = constant["X"].to_numpy()[:, 0]
    observed = next(iter(tree["observed_data"].to_dataset().data_vars.values()))
    y = observed.to_numpy()
    grid = np.linspace(x.min(), x.max(), 400)
    predicted = predict(tree, grid[:, None])
    mean, sd = predicted["mean"].to_numpy(), predicted["sd"].to_numpy()
    # Directions have no place among the rows, and NUTS prunes nothing.
    vectors = "evidence" in tree.children and "kept" in tree["evidence"]
    kept = tree["evidence"]["kept"].to_numpy() if vectors else np.zeros(len(x), dtype=bool)
    ax.fill_between(grid, mean - 1.96 * sd, mean + 1.96 * sd, color=BLUE, alpha=0.15, lw=0, label="95% of new data")
    ax.plot(x, y, ".", color=GREY, ms=4, label="data")
    ax.plot(grid, mean, color=BLUE, lw=2, label="mean")
    if vectors:
        label = f"{int(kept.sum())} relevance vectors"
        rows = constant["row_of_centre"].to_numpy() if "row_of_centre" in constant else np.arange(len(x))
        ax.plot(x[rows[kept]], y[rows[kept]], "o", mfc="none", mec=ORANGE, ms=10, mew=2, label=label)
    ax.set_xlabel(str(constant["feature"].to_numpy()[0]))
    ax.set_ylabel(str(observed.name))
    ax.legend(frameon=False)
    return ax


@reads_a_fit
def plot_history(tree: xr.DataTree, *, ax: Axes | None = None) -> Axes:
    """The objective by iteration; it never falls.

    Parameters
    ----------
    tree : xarray.DataTree
        From an evidence method of `bayes_sparse.fit`.
    ax : matplotlib.axes.Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib.axes.Axes
    """
    if "evidence" not in tree.children:
        raise ValueError("NUTS climbs no objective: az.plot_trace(tree) shows its chains.")
    ax = axes_or_new(ax)
    evidence: Any = tree["evidence"]
    if "history" not in evidence:
        raise ValueError(
            "A method on the L1 path has no objective that climbs by iterations: plot_path shows its path."
        )
    ax.plot(evidence["history"].to_numpy(), ".-", color=BLUE)
    ax.set_xlabel("iteration")
    ax.set_ylabel("objective (nats)")
    ax.set_title(f"{evidence.attrs['method']}: {evidence.attrs['status']}")
    return ax


def axes_or_new(ax: Axes | None) -> Axes:
    """The axes given, or those of a new figure."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt  # takes longer than most fits: only for those who draw

    return plt.subplots(layout="constrained")[1]
