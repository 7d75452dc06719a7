"""Leave-one-out cross-validation: how well new observations would be predicted, and which rows decide it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from bayes_sparse.inputs.table import in_words
from bayes_sparse.report.markup import Html, count, joined, nothing, paragraph, picture, row_of, table, tag, with_error
from bayes_sparse.report.material import Material, Section
from bayes_sparse.results.plots.fits import BLUE, GREY, ORANGE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["SECTION"]

_PICTURES = 6
_COMPARED = {
    "rank": "rank",
    "elpd_diff": "difference",
    "dse": "its error",
    "p_worse": "probability worse",
    "diag_diff": "remark on it",
    "diag_elpd": "Pareto k",
    "weight": "stacking weight",
}
_NAMED = 5  # rows with the largest Pareto k


def _body(material: Material) -> Html:
    """Expected log density, Pareto k of every row, and ArviZ's comparison of several fits."""
    found = {name: answer.value for name, answer in material.loos.items() if answer.value is not None}
    refused = [
        paragraph(f"{name}: {answer.refusal}" if material.several else answer.refusal, "note")
        for name, answer in material.loos.items()
        if answer.value is None
    ]
    if not found:
        return nothing(next(iter(material.loos.values())).refusal)
    parts: list[object] = [table(_numbers(found), "Leave-one-out"), paragraph(_meaning(material)), *refused]
    pictures = [_picture(name, loo, material.several) for name, loo in list(found.items())[:_PICTURES]]
    parts.append(row_of(pictures))
    comparison = material.comparison.value
    if comparison is not None and comparison.loo is not None:
        seen = " This ranks by a LOO whose selection has seen the rows." if _flattered(material) else ""
        parts += [
            tag("h3", "Comparison"),
            paragraph(
                "By ArviZ: the difference in elpd from the best, with its standard error. A difference of less than "
                f"four, or less than two of its errors, says nothing.{seen}"
            ),
            table(_compared(comparison.loo), "ArviZ's comparison"),
        ]
    return joined(parts)


def _numbers(found: dict[str, Any]) -> pd.DataFrame:
    rows = {
        name: {
            "elpd": with_error(loo.elpd, loo.se),
            "effective parameters": with_error(loo.p),
            "rows": int(loo.n_data_points),
            "Pareto k too large": int((_k(loo) > loo.good_k).sum()),
            "of which above 1": int((_k(loo) > 1).sum()),
        }
        for name, loo in found.items()
    }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("fit")


def _meaning(material: Material) -> str:
    words = (
        "The expected log density of new observations (higher is better), from leaving each row out by re-weighting. "
    )
    flattered = _flattered(material)
    if flattered:
        whose = f"Of {in_words(flattered)} the" if material.several else "The"
        words += (
            f"{whose} terms were selected, and the hyper-parameters found, with all rows: this elpd is too high, the "
            "more so the more terms there were to choose from. bs.kfold and bs.loo(tree, refit=True, data=...) find "
            "them anew without the rows that they score."
        )
    return words + " Where Pareto k is too large the row decides more than re-weighting can undo: read elpd as rough."


def _flattered(material: Material) -> list[str]:
    """Fits whose selection has seen the rows."""
    return [name for name, answer in material.loos.items() if hasattr(answer.value, "caveat")]


def _picture(name: str, loo: Any, several: bool) -> Html:
    k, bad = _k(loo), int((_k(loo) > loo.good_k).sum())
    labels = loo.pareto_k.to_dataset(name="k").to_dataframe()["k"].sort_values(ascending=False).head(_NAMED).index
    worst = ", ".join(str(label) for label in labels)
    return picture(
        lambda ax: _draw(ax, k, float(loo.good_k), name if several else ""),
        f"Pareto k of {len(k)} rows, {bad} above the threshold",
        f"Pareto k by row; {count(bad)} of {count(len(k))} above {loo.good_k:.2f}. The largest: rows {worst}.",
    )


def _draw(ax: Axes, k: Any, threshold: float, title: str) -> None:
    at, bad = np.arange(len(k)), k > threshold
    ax.plot(at[~bad], k[~bad], ".", color=BLUE, ms=3)
    ax.plot(at[bad], k[bad], "o", color=ORANGE, ms=3.5)
    ax.axhline(threshold, color=GREY, lw=1, ls="--")
    ax.set_xlabel("row, in the order of the data")
    ax.set_ylabel("Pareto k")
    ax.set_title(title)


def _k(loo: Any) -> Any:
    return np.asarray(loo.pareto_k).ravel()


def _compared(frame: pd.DataFrame) -> pd.DataFrame:
    """The table under names for people, without the columns that say nothing."""
    said = [c for c in _COMPARED if c in frame and not frame[c].isin([np.nan, ""]).all()]
    return frame[said].rename(columns=_COMPARED).rename_axis("fit")


SECTION = Section("Leaving observations out", 50, _body)
