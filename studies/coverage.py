"""What the calibration study found: a table, the tests of uniform ranks, and a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import xarray as xr

from bayes_sparse.common.types import FloatArray
from bayes_sparse.results.plots.fits import BLUE, GREY, ORANGE
from studies.ranks import band, chi_square, running_share, running_test
from studies.results import write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["coverage", "draw_calibration", "uniformity", "write_calibration"]

_LEVELS = (0.5, 0.9)
_WORDS = {
    "default": "evidence, default: flat hyper-prior, terms pruned",
    "plug_in": "1 plug-in",
    "approximation": "2 approximation at alpha*",
    "conditional": "3 exact at alpha*",
    "full": "4 everything",
}
_GREEN = "#228866"
_LOOKS = {"w[": (BLUE, "weights"), "bias": (ORANGE, "bias"), "log alpha": (_GREEN, "log precisions")}
_LIKELIHOOD = (GREY, "log likelihood")


def coverage(found: xr.Dataset) -> pd.DataFrame:
    """How often central intervals hold the truth, and how good predictions are, fit by fit.

    Parameters
    ----------
    found : xarray.Dataset
        From `calibrate`.

    Returns
    -------
    DataFrame
        A row a fit. ``w 50%`` ... with ``bias``: shares of the truths inside; ``score``: mean log probability of a row
        held out; ``score less that of full``; ``promised less score``: what the predictions expect of themselves
        beyond what they reach, above 0 where they are too sure. Each with ``se``, its standard error over data sets.
    """
    below, names = found["below"], found["quantity"].to_numpy().tolist()
    groups = {"w": [name for name in names if name.startswith("w[")], "bias": ["bias"]}
    columns: dict[str, xr.DataArray] = {}
    for group, members in groups.items():
        for level in _LEVELS:
            inside = abs(below.sel(quantity=members) - 0.5) < level / 2
            columns[f"{group} {level:.0%}"] = inside.mean("quantity")
    columns["score"] = found["score"]
    columns["score less that of full"] = found["score"] - found["score"].sel(fit="full", drop=True)
    columns["promised less score"] = found["promised"] - found["score"]
    table = {}
    for name, values in columns.items():
        table[name] = values.mean("data_set").to_numpy()
        table[f"{name} se"] = values.std("data_set", ddof=1).to_numpy() / np.sqrt(values.sizes["data_set"])
    return pd.DataFrame(table, index=pd.Index(found["fit"].to_numpy(), name="fit"))


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


def write_calibration(found: xr.Dataset, output: Path) -> str:
    """The tables as text, also written to ``summary.md``; the picture as ``calibration.png``."""
    table, N = coverage(found), found.sizes["data_set"]
    names = [str(name) for name in table.columns if not str(name).endswith(" se")]
    lines = [
        f"{N} data sets; shares and scores +- their standard errors over data sets.",
        "",
        f"| | {' | '.join(names)} |",
        "|" + " --- |" * (len(names) + 1),
    ]
    for fit, row in table.to_dict("index").items():
        cells = [_cell(name, row[name], row[f"{name} se"]) for name in names]
        lines.append(f"| {_WORDS[str(fit)]} | {' | '.join(cells)} |")
    lines += [
        "",
        "P-values of uniform ranks:",
        "",
        "| fit | quantity | chi-square | running share |",
        "|" + " --- |" * 4,
    ]
    for fit in ("approximation", "conditional", "full"):
        for quantity, row in uniformity(found, fit).to_dict("index").items():
            lines.append(f"| {_WORDS[fit]} | {quantity} | {row['chi-square']:.2g} | {row['running share']:.2g} |")
    text = "\n".join(lines) + "\n"
    write_whole(output / "summary.md", text)
    draw_calibration(found).savefig(output / "calibration.png", dpi=110)
    return text


def _cell(name: str, value: float, se: float) -> str:
    if name.endswith("%"):
        return f"{100 * value:.1f} ± {100 * se:.1f}%"
    return f"{value:.4f} ± {se:.4f}"


def draw_calibration(found: xr.Dataset) -> Figure:
    """Running share of the ranks less the diagonal, a panel a fit, with where 95% of uniform ranks stay."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    shown = [fit for fit in found["fit"].to_numpy().tolist() if fit != "plug_in"]
    figure = Figure(figsize=(4.0 * len(shown), 4.2), layout="constrained")
    FigureCanvasAgg(figure)  # files need no window
    axes = figure.subplots(1, len(shown), sharey=True, squeeze=False)[0]
    for ax, fit in zip(axes, shown, strict=True):
        _panel(ax, found, fit)
    axes[0].set_ylabel("share of truths below, less that probability")
    figure.legend(*axes[-1].get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False, fontsize=9)
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
        colour, words = next((look for start, look in _LOOKS.items() if name.startswith(start)), _LIKELIHOOD)
        share = running_share(ranks.sel(quantity=name).to_numpy().astype(int), kept)
        ax.plot(x, _closed(share - limits.places), color=colour, lw=1.3, label=None if words in seen else words)
        seen.add(words)
    ax.set_xlabel("posterior probability")
    ax.set_title(_WORDS[fit].replace(": ", ":\n"), fontsize=10)


def _closed(inner: FloatArray) -> FloatArray:
    return np.concatenate([[0.0], inner, [0.0]])
