"""The page of the study of BLogReg: the paper's tables beside ours."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from studies.blogreg import METHODS, MUSHROOMS, SETS
from studies.halves import averaged, markdown, points

__all__ = ["PAPER", "page", "picture"]

_FOUR = ("BLogReg", "FuzzyBLogReg", "linear SVM", "linear RVM")
# Errors in per cent (Tables 2 and 5), seconds (3 and 6), weights kept (4 and 7). One error is unreadable in our copy.
PAPER: dict[str, dict[str, tuple[float, ...]]] = {
    "error": {
        "BUPA": (33.28, 32.64, 31.59, 32.35),
        "German": (25.12, 24.60, 24.92, 24.76),
        "heart": (18.96, 18.81, 18.81, 20.07),
        "Australian": (15.07, 15.19, 16.17, 15.57),
        "Pima": (23.10, 23.10, 23.39, 23.67),
        "sick.test": (4.28, 4.07, 3.97, np.nan),
        "WDBC": (2.99, 2.78, 3.30, 3.23),
        "WPBC": (22.73, 27.98, 22.53, 22.63),
        "mushroom 1": (1.48, 1.09, 1.28, 2.62),
        "mushroom 2": (1.73, 1.09, 0.99, 2.81),
        "mushroom 3": (1.53, 1.33, 1.33, 3.46),
        "mushroom 4": (2.12, 1.33, 1.68, 4.94),
        "mushroom 5": (1.88, 1.33, 1.33, 4.39),
    },
    "seconds": {
        "BUPA": (0.67, 0.26),
        "German": (1.44, 0.33),
        "heart": (0.68, 0.34),
        "Australian": (2.41, 0.57),
        "Pima": (0.33, 0.14),
        "sick.test": (4.14, 3.13),
        "WDBC": (3.31, 3.29),
        "WPBC": (3.78, 0.51),
        "mushroom 1": (2.48, 0.15),
        "mushroom 2": (2.58, 0.13),
        "mushroom 3": (2.64, 0.13),
        "mushroom 4": (2.73, 0.14),
        "mushroom 5": (2.77, 0.12),
    },
    "kept": {
        "BUPA": (5.3, 5.1),
        "German": (18.5, 17.2),
        "heart": (11.1, 8.9),
        "Australian": (19.6, 17.3),
        "Pima": (6.9, 6.7),
        "sick.test": (11.6, 11.3),
        "WDBC": (9.8, 10.3),
        "WPBC": (7.0, 11.3),
        "mushroom 1": (17.6, 110.4),
        "mushroom 2": (17.9, 111.0),
        "mushroom 3": (16.2, 107.6),
        "mushroom 4": (17.6, 107.3),
        "mushroom 5": (16.7, 109.4),
    },
}
_DIGITS = {"error": 2, "kept": 1, "seconds": 3, "log_score": 3}


def page(table: pd.DataFrame) -> str:
    """All tables in markdown."""
    parts = []
    groups = ([name for name in SETS if name not in MUSHROOMS], list(MUSHROOMS))
    for names in groups:
        rows = table[table["set"].isin(names)]
        if rows.empty:
            continue
        for measure, title in (
            ("error", "Errors in per cent (the paper's in brackets)"),
            ("kept", "Weights kept; rows of an SVM, kernels of the linear RVM"),
            ("seconds", "Processor seconds of a fit"),
            ("log_score", "Mean log probability of the rows held out"),
        ):
            parts.append(f"**{title}**\n\n{_beside(rows, measure)}\n")
    parts.append(f"**How fits ended**\n\n{_endings(table)}")
    return "\n".join(parts) + "\n"


def _beside(rows: pd.DataFrame, measure: str) -> str:
    found, digits = averaged(rows, measure), _DIGITS[measure]
    methods = [method for method in METHODS if method in rows["method"].unique()]
    methods = [method for method in methods if not (measure == "log_score" and method == "linear SVM")]
    wide = found["mean"].unstack()[methods].reindex([name for name in SETS if name in rows["set"].unique()])
    theirs = paper(measure)
    lines = []
    for name in wide.index:
        line = {"": str(name)}
        for method in methods:
            line[method] = f"{wide.loc[name, method]:.{digits}f}"
            if measure in ("error", "kept"):
                line[method] += f" ± {found.loc[(name, method), 'sd']:.{digits}f}"
            if method in theirs and np.isfinite(theirs.loc[name, method]):
                line[method] += f" ({theirs.loc[name, method]:.{min(digits, 2)}f})"
        lines.append(line)
    lines.append({"": "mean"} | {method: f"{wide[method].mean():.{digits}f}" for method in methods})
    four = [method for method in _FOUR if method in methods]
    if measure == "error" and len(four) > 1:
        ours = points(wide[four])
        lines.append({"": "points for places"} | {m: f"{ours[m]:.1f}" if m in four else "" for m in methods})
    return markdown(lines)


def paper(measure: str) -> pd.DataFrame:
    """A table of the paper; empty where it has none."""
    values = PAPER.get(measure, {})
    columns = list(_FOUR[: len(next(iter(values.values()), ()))])
    return pd.DataFrame.from_dict(values, orient="index", columns=columns)


def _endings(table: pd.DataFrame) -> str:
    lines = []
    for method, own in table.groupby("method", sort=False):
        counted = own["status"].value_counts()
        lines.append({"": str(method), "ended": ", ".join(f"{n} {word}" for word, n in counted.items())})
    return markdown(lines)


def picture(table: pd.DataFrame, path: Path) -> None:
    """Ours against the paper's: errors, and weights kept."""
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained")
    for axis, measure, title in zip(axes, ("error", "kept"), ("error, %", "weights kept"), strict=True):
        ours, theirs = averaged(table, measure)["mean"].unstack(), paper(measure)
        for method, marker in zip(_FOUR, "os^v", strict=True):
            if method in theirs and method in ours:
                both = theirs[[method]].join(ours[[method]], rsuffix=" ours").dropna()
                axis.plot(*both.to_numpy().T, marker, ms=6, mfc="none", label=method)
        low, high = axis.get_xlim()
        axis.plot([low, high], [low, high], color="0.7", lw=1, zorder=0)
        axis.set_xlabel(f"{title}, the paper")
        axis.set_ylabel(f"{title}, ours")
        axis.legend(frameon=False)
    figure.savefig(path, dpi=110)
    plt.close(figure)
