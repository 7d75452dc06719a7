"""The page of the study of Kropotov & Vetrov: their tables beside ours, places, and error against width."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from studies.halves import averaged, markdown, points
from studies.kropotov2007 import METHODS, OURS, PROTOCOLS, SETS, chosen

__all__ = ["PAPER", "PRINTED", "TEXT", "page", "picture"]

# Errors in per cent (Table 1), seconds (2) and non-zero parameters (3), in the order in which columns are printed.
PAPER: dict[str, dict[str, tuple[float, ...]]] = {
    "error": {
        "BUPA": (33.33, 30.67, 32.41, 30.78, 31.88),
        "heart": (18.15, 17.41, 17.26, 17.56, 23.11),
        "hepatitis": (14.32, 19.35, 20.26, 13.03, 17.81),
        "votes": (5.56, 5.93, 6.44, 5.61, 4.92),
        "WPBC": (23.64, 23.13, 23.74, 24.04, 23.43),
        "contractions": (19.18, 17.96, 18.78, 17.35, 14.08),
        "laryngeal": (16.81, 17.46, 17.46, 17.37, 18.31),
        "respiratory": (7.06, 7.53, 9.41, 8.24, 5.88),
        "weaning": (15.70, 14.83, 16.36, 13.64, 13.31),
    },
    "seconds": {
        "BUPA": (138.72, 19.82, 64.14, 62.92, 310.30),
        "heart": (39.93, 11.64, 46.07, 21.47, 115.56),
        "hepatitis": (8.92, 4.88, 25.17, 6.88, 37.19),
        "votes": (123.76, 31.46, 87.38, 82.09, 433.28),
        "WPBC": (19.67, 7.47, 33.06, 16.30, 89.72),
        "contractions": (7.49, 2.99, 16.10, 3.80, 22.26),
        "laryngeal": (24.16, 8.73, 36.33, 18.59, 100.47),
        "respiratory": (4.51, 2.44, 13.75, 2.45, 14.93),
        "weaning": (53.16, 14.14, 53.17, 32.48, 177.16),
    },
    "kept": {
        "BUPA": (23.10, 8.20, 5.80, 172.50, 17.20),
        "heart": (12.10, 9.00, 6.00, 135.00, 86.60),
        "hepatitis": (10.20, 4.60, 3.10, 77.50, 39.40),
        "votes": (14.60, 6.60, 4.70, 217.50, 58.70),
        "WPBC": (20.80, 2.20, 2.40, 99.00, 27.00),
        "contractions": (14.50, 3.30, 2.30, 49.00, 34.20),
        "laryngeal": (7.20, 3.90, 1.90, 106.40, 57.10),
        "respiratory": (5.70, 2.50, 1.60, 42.50, 22.40),
        "weaning": (12.90, 10.10, 6.80, 151.00, 120.20),
    },
}
# What the columns are headed, and what they must be by the text: it says that GREVM is faster and sparser than RVM.
PRINTED = ("GREVM", "LREVM", "RVM", "VRVM", "VGREVM")
TEXT = ("RVM", "GREVM", "LREVM", "VRVM", "VGREVM")
_DIGITS = {"error": 2, "kept": 1, "milliseconds": 0, "log_score": 3}
_TITLES = {
    "paper": "The papers' protocol: one width per set and method, of the least error on the halves that are reported",
    "nested": "Nested: the width of the least error in two folds of each training half",
    "evidence": "By evidence: in each training half the width of greatest evidence of an isotropic prior",
}


def paper(measure: str, heads: Sequence[str] = TEXT) -> pd.DataFrame:
    """A table of the papers, its columns under the names given, in the order of the text."""
    frame = pd.DataFrame.from_dict(PAPER[measure], orient="index", columns=list(heads))
    return frame[list(TEXT)]


def page(table: pd.DataFrame) -> str:
    """All tables in markdown."""
    table = table.assign(milliseconds=1000 * table["seconds"])
    parts = [_both_readings(chosen(table, "paper"))]
    for protocol in PROTOCOLS:
        rows = chosen(table, protocol)
        parts.append(f"## {_TITLES[protocol]}\n")
        for measure, title in (
            ("error", "Errors in per cent"),
            ("kept", "Kept: kernels (RVM, VRVM), else directions"),
            ("milliseconds", "Processor milliseconds of a fit"),
            ("log_score", "Mean log probability of the rows held out"),
        ):
            parts.append(f"**{title}**\n\n{_beside(rows, measure, protocol)}\n")
    failed = table[table["error"].isna()]
    parts.append(f"{len(failed)} of {len(table)} fits failed: " + _reasons(failed))
    return "\n".join(parts) + "\n"


def _beside(rows: pd.DataFrame, measure: str, protocol: str) -> str:
    """A row per set, a column per method; under the papers' protocol with their figure in brackets."""
    found, digits = averaged(rows, measure), _DIGITS[measure]
    methods = [method for method in METHODS if method in found.index.get_level_values("method")]
    wide = found["mean"].unstack()[methods].reindex([name for name in SETS if name in rows["set"].unique()])
    theirs = paper(measure) if protocol == "paper" and measure in PAPER else None
    lines = []
    for name in wide.index:
        line = {"": name}
        for method in methods:
            line[method] = f"{wide.loc[name, method]:.{digits}f}"
            if measure in ("error", "kept"):
                line[method] += f" ± {found.loc[(name, method), 'sd']:.{digits}f}"
            if theirs is not None and method in theirs:
                line[method] += f" ({theirs.loc[name, method]:.{digits}f})"
        lines.append(line)
    mean = wide.mean()
    line = {"": "mean"} | {method: f"{mean[method]:.{digits}f}" for method in methods}
    if theirs is not None:
        line |= {m: f"{line[m]} ({theirs.loc[wide.index, m].mean():.{digits}f})" for m in methods if m in theirs}
    lines.append(line)
    if measure == "error":
        lines.append(_places(wide, theirs, methods))
    return markdown(lines)


def _places(wide: pd.DataFrame, theirs: pd.DataFrame | None, methods: list[str]) -> dict[str, str]:
    """Points of the papers' five among themselves; all of them compete on the same sets."""
    five = [method for method in TEXT if method in methods]
    ours, line = points(wide[five]), {"": "points for places"} | dict.fromkeys(methods, "")
    printed = points(theirs.loc[wide.index, five]) if theirs is not None else None
    for method in five:
        line[method] = f"{ours[method]:.1f}" + (f" ({printed[method]:.1f})" if printed is not None else "")
    return line


def _both_readings(rows: pd.DataFrame) -> str:
    """How far ours are from the tables with their columns as headed, and as the text has them."""
    lines, five = [], [method for method in TEXT if method in rows["method"].unique()]
    for measure in ("error", "kept"):
        ours = averaged(rows, measure)["mean"].unstack()
        for title, heads in (("as the text has them", TEXT), ("as headed", PRINTED)):
            apart = (ours[five] - paper(measure, heads).loc[ours.index, five]).abs().mean()
            lines.append({"": f"{measure}, columns {title}"} | {method: f"{apart[method]:.1f}" for method in five})
    return f"**Mean absolute difference from the papers' tables**\n\n{markdown(lines)}\n"


def _reasons(failed: pd.DataFrame) -> str:
    counted = failed.value_counts(["width", "status"]).reset_index(name="fits")
    return "; ".join(f"{row.fits} at width {row.width:g}: {row.status}" for row in counted.itertuples())


def picture(table: pd.DataFrame, path: Path) -> None:
    """Error against width, a panel per set: what the papers' protocol chooses from."""
    names = [name for name in SETS if name in table["set"].unique()]
    rows = int(np.ceil(len(names) / 3))
    figure, axes = plt.subplots(rows, 3, figsize=(11, 3 * rows), sharex=True, squeeze=False, layout="constrained")
    methods = [method for method in METHODS if method not in OURS and method in table["method"].unique()]
    for axis, name in zip(axes.ravel(), names, strict=False):
        own = table[table["set"] == name]
        for method, colour in zip(methods, ("k", "C0", "C1", "0.6", "C2"), strict=False):
            by = own[own["method"] == method].groupby("width")["error"].mean().dropna()
            axis.plot(by.index, by, color=colour, marker=".", lw=1.2, label=method)
            if method in TEXT:
                theirs = PAPER["error"][name][TEXT.index(method)]
                axis.plot(13, theirs, marker="<", color=colour, clip_on=False, ms=5)
        axis.set_title(name, fontsize=10)
        axis.set_xscale("log")
    for axis in axes[-1]:
        axis.set_xlabel("width of the kernels")
    for axis in axes[:, 0]:
        axis.set_ylabel("error, %")
    for axis in axes.ravel()[len(names) :]:
        axis.axis("off")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False)
    figure.savefig(path, dpi=110)
    plt.close(figure)
