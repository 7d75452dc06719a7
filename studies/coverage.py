"""What the calibration study found: a table, the tests of uniform ranks, and a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import xarray as xr

from bayes_sparse.common.types import FloatArray
from bayes_sparse.results.plots.fits import BLUE, GREY, ORANGE
from studies.calibration import FITS
from studies.ranks import band, chi_square, running_share, running_test
from studies.results import write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["coverage", "draw_calibration", "uniformity", "write_calibration"]

_LEVELS = (0.5, 0.9, 0.95)
_WORDS = {
    "default": "the default fit",
    "plug_in": "1 plug-in",
    "approximation": "2 approximation at alpha*",
    "conditional": "3 exact at alpha*",
    "full": "4 everything",
}
_LOOKS = {
    "w[": (BLUE, "weights"),
    "bias": (ORANGE, "bias"),
    "log likelihood": (GREY, "log likelihood"),
    "log ": ("#228866", "log scales"),
}


def coverage(found: xr.Dataset) -> pd.DataFrame:
    """How often central intervals hold the truth, and how good predictions are, fit by fit.

    Parameters
    ----------
    found : xarray.Dataset
        From `calibrate`.

    Returns
    -------
    DataFrame
        A row a fit. ``w 50%`` ... with ``bias``: shares of the truths inside, where a weight that was pruned is a miss;
        ``w 95%, kept`` leaves those out. ``score``: mean log probability of a row held out; ``score less that of
        full``; ``promised less score``: what the predictions expect of themselves beyond what they reach, above 0
        where they are too sure. Each with ``se``, its standard error over data sets.
    """
    names = found["quantity"].to_numpy().tolist()
    groups = {"w": [name for name in names if name.startswith("w[")], "bias": ["bias"]}
    table: dict[str, FloatArray] = {}
    for group, members in groups.items():
        own = found.sel(quantity=members)
        for level in _LEVELS:
            inside = abs(own["below"] - 0.5) < level / 2
            table |= _share(f"{group} {level:.0%}", inside, xr.ones_like(own["spread"]))
        if group == "w":
            table |= _share(f"w {_LEVELS[-1]:.0%}, kept", inside, own["spread"])
    scores = {
        "score": found["score"],
        "score less that of full": found["score"] - found["score"].sel(fit="full", drop=True),
        "promised less score": found["promised"] - found["score"],
    }
    for name, values in scores.items():
        table[name] = values.mean("data_set").to_numpy()
        table[f"{name} se"] = values.std("data_set", ddof=1).to_numpy() / np.sqrt(values.sizes["data_set"])
    return pd.DataFrame(table, index=pd.Index(found["fit"].to_numpy(), name="fit"))


def _share(name: str, inside: xr.DataArray, counted: xr.DataArray) -> dict[str, FloatArray]:
    """Share of what is counted that is inside, and the standard error of this ratio over data sets."""
    hits, tries = (inside * counted).sum("quantity"), counted.sum("quantity")
    total = tries.sum("data_set")
    share = hits.sum("data_set") / total.where(total > 0)
    error = ((hits - share * tries) ** 2).sum("data_set") ** 0.5 / total.where(total > 0)
    return {name: share.to_numpy(), f"{name} se": error.to_numpy()}


def uniformity(found: xr.Dataset, fit: str = "full") -> pd.DataFrame:
    """P-values of uniform ranks, a row a quantity that the fit has draws of, a column a test."""
    ranks = found["rank"].sel(fit=fit).dropna("quantity", how="all")
    tests = {"chi-square": chi_square, "running share": running_test}
    kept = int(found.attrs["kept"])
    values = {
        name: [test(ranks.sel(quantity=q).to_numpy().astype(int), kept) for q in ranks["quantity"].to_numpy()]
        for name, test in tests.items()
    }
    return pd.DataFrame(values, index=pd.Index(ranks["quantity"].to_numpy(), name="quantity"))


def write_calibration(found: dict[str, xr.Dataset], by_way: pd.DataFrame, output: Path) -> str:
    """All tables as text, also written to ``summary.md``; the picture as ``calibration.png``.

    Parameters
    ----------
    found : dict
        What `calibrate` gives, by the name of the case.
    by_way : DataFrame
        From `studies.counting.counting`.
    output : Path
        Folder of both files.
    """
    lines = [line for name, one in found.items() for line in _written(name, one)]
    lines += ["## Ways of counting", "", f"| | {' | '.join(by_way.columns)} |", "|" + " --- |" * (by_way.shape[1] + 1)]
    lines += [f"| {way} | {' | '.join(f'{share:.0%}' for share in row)} |" for way, *row in by_way.itertuples()]
    text = "\n".join([*lines, ""])
    write_whole(output / "summary.md", text)
    draw_calibration(found).savefig(output / "calibration.png", dpi=80)
    return text


def _written(name: str, found: xr.Dataset) -> list[str]:
    """One case: what is covered, and whether ranks are uniform."""
    table = coverage(found).dropna(axis="columns", how="all")
    shown = [str(column) for column in table.columns if not str(column).endswith(" se")]
    lines = [
        f"## {name}",
        "",
        f"{found.sizes['data_set']} data sets; shares and scores ± their standard errors over data sets.",
        "",
        f"| | {' | '.join(shown)} |",
        "|" + " --- |" * (len(shown) + 1),
    ]
    for fit, row in table.to_dict("index").items():
        cells = [_cell(column, row[column], row[f"{column} se"]) for column in shown]
        lines.append(f"| {_WORDS[str(fit)]} | {' | '.join(cells)} |")
    lines += ["", "P-values of uniform ranks:", "", "| fit | quantity | chi-square | running share |"]
    lines.append("|" + " --- |" * 4)
    for fit in ("approximation", "conditional", "full"):
        for quantity, row in uniformity(found, fit).to_dict("index").items():
            lines.append(f"| {_WORDS[fit]} | {quantity} | {row['chi-square']:.2g} | {row['running share']:.2g} |")
    return [*lines, "", ""]


def _cell(name: str, value: float, se: float) -> str:
    if np.isnan(value):
        return ""
    return f"{100 * value:.1f} ± {100 * se:.1f}%" if "%" in name else f"{value:.4f} ± {se:.4f}"


def draw_calibration(found: dict[str, xr.Dataset]) -> Figure:
    """Running share of the ranks less the diagonal, a panel a fit and case, with where 95% of uniform ranks stay."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    shown = [fit for fit in FITS if fit != "plug_in"]
    figure = Figure(figsize=(3.6 * len(shown), 0.6 + 3.0 * len(found)), layout="constrained")
    FigureCanvasAgg(figure)  # files need no window
    axes = figure.subplots(len(found), len(shown), sharex=True, sharey="row", squeeze=False)
    for row, (name, one) in zip(axes, found.items(), strict=True):
        for ax, fit in zip(row, shown, strict=True):
            _panel(ax, one, fit)
        row[0].set_ylabel(name, fontsize=9)
    for ax, fit in zip(axes[0], shown, strict=True):
        ax.set_title(_WORDS[fit], fontsize=10)
    figure.supxlabel("posterior probability; above it the share of truths below, less that probability", fontsize=9)
    handles = axes[-1, -1].get_legend_handles_labels()
    figure.legend(*handles, loc="outside upper center", ncols=5, frameon=False, fontsize=9)
    return figure


def _panel(ax: Axes, found: xr.Dataset, fit: str) -> None:
    kept, limits = int(found.attrs["kept"]), band(found.sizes["data_set"])
    x = np.concatenate([[0.0], limits.places, [1.0]])
    low, high = (_closed(side - limits.places) for side in limits.limits())
    ax.fill_between(x, low, high, color=GREY, alpha=0.25, lw=0, label="95% of uniform ranks")
    ax.axhline(0.0, color=GREY, lw=0.8)
    seen: set[str] = set()
    ranks = found["rank"].sel(fit=fit).dropna("quantity", how="all")
    for name in ranks["quantity"].to_numpy().tolist():
        colour, words = next(look for start, look in _LOOKS.items() if name.startswith(start))
        share = running_share(ranks.sel(quantity=name).to_numpy().astype(int), kept)
        ax.plot(x, _closed(share - limits.places), color=colour, lw=1.2, label=None if words in seen else words)
        seen.add(words)


def _closed(inner: FloatArray) -> FloatArray:
    return np.concatenate([[0.0], inner, [0.0]])
