"""Two classes as Kropotov and Vetrov judge them: features as they prepare them, 5 x 2 folds, points for places."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import rankdata

from bayes_sparse import datasets
from bayes_sparse.common.types import FloatArray
from studies.cells import Cell, Crew, Record, answers, failure, forget_failures, progress

__all__ = [
    "CODES",
    "REPEATS",
    "averaged",
    "checked",
    "computed",
    "features",
    "halves",
    "log_score",
    "markdown",
    "points",
]

REPEATS = 5  # times a set is halved; both halves take turns at training
_LEAST = 1e-15  # probability: a log score stays finite
# Numeric columns that are codes. The numbers of features that the L1 paper prints follow from them.
CODES = {
    "heart_statlog": ("chest_pain", "rest_ecg", "thal"),
    "hepatitis": (
        *("sex", "steroid", "antivirals", "fatigue", "malaise", "anorexia", "liver_big", "liver_firm"),
        *("spleen_palpable", "spiders", "ascites", "varices", "histology"),
    ),
    "australian": ("a4", "a5", "a6", "a12"),
}


@cache
def features(name: str) -> tuple[FloatArray, NDArray[np.intp]]:
    """A set as the papers prepare it: indicators of nominal values, means for missing ones, then mean 0 and sd 1.

    Two values make one column, more of them one each.
    """
    table = datasets.load(name)
    columns = []
    for label in table.columns.drop("target"):
        values, missing = table[label], table[label].isna().to_numpy()
        if missing.all():
            continue
        if values.dtype.kind in "if" and label not in CODES.get(name, ()):
            made = [values.to_numpy(float)]
        else:
            levels = sorted(values.dropna().unique())
            made = [(values == level).to_numpy(float) for level in (levels[:1] if len(levels) == 2 else levels)]
        columns += [np.where(missing, np.mean(column[~missing]), column) for column in made]
    X = np.column_stack(columns)
    X = X[:, np.ptp(X, axis=0) > 0]
    return (X - X.mean(axis=0)) / X.std(axis=0), np.unique(table["target"], return_inverse=True)[1]


def halves(n: int, repeat: int, half: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows to train on and rows to test, of one of the two turns of a halving."""
    order = np.random.default_rng([20, repeat]).permutation(n)
    parts = order[: n // 2], order[n // 2 :]
    return parts[half], parts[1 - half]


def log_score(probability: FloatArray, y: NDArray[Any]) -> float:
    """Mean log probability of what was seen, given that of class 1."""
    right = np.where(y == 1, probability, 1 - probability)
    return float(np.mean(np.log(np.maximum(right, _LEAST))))


def checked(given: Iterable[str], known: Iterable[str]) -> None:
    """Refuse what is not there, in a sentence."""
    if unknown := sorted(set(given) - set(known)):
        raise ValueError(f"There is no {unknown[0]!r}; there are {', '.join(known)}.")


def computed(
    judged: Callable[..., Record],
    plan: pd.DataFrame,
    output: Path,
    crew: Crew | None = None,
    *,
    version: int = 1,
    retry: bool = False,
    progressbar: bool = True,
) -> pd.DataFrame:
    """All cells of a plan; each is stored when it is done.

    Parameters
    ----------
    judged : callable
        Called with the values of a row.
    plan : DataFrame
        A row per cell.
    output : Path
        A folder; several processes may share it.
    crew : Crew, optional
        Who computes; by default this process.
    version : int
        Of `judged`.
    retry : bool
        Make fits again that failed before.
    progressbar : bool
        Show a bar with the time left.

    Returns
    -------
    DataFrame
        The plan with what was found, a row per fit; ``status`` has the reason where a fit failed, and its numbers are
        NaN.
    """
    cells = [Cell(judged, tuple(row.values()), version) for row in plan.to_dict("records")]  # plain numbers
    if retry:
        forget_failures(cells, output / "cells")
    with progress("Fits", progressbar) as report:
        found = answers(cells, output / "cells", crew or Crew(), report)
    rows = [{"status": reason} if (reason := failure(answer)) is not None else answer for answer in found]
    return pd.concat([plan.reset_index(drop=True), pd.DataFrame(rows)], axis=1)


def averaged(table: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Mean and sd by set and method, the sd over halvings of the mean of their two turns, as the papers have it."""
    each = table.groupby(["set", "method", "repeat"], sort=False)[measure].mean()
    by = each.groupby(level=["set", "method"], sort=False)
    return pd.DataFrame({"mean": by.mean(), "sd": by.std(ddof=1)})


def points(errors: pd.DataFrame) -> pd.Series:
    """Places summed over the sets (rows): 1 for the winner, 2 for the next; those who tie share their places."""
    places = np.apply_along_axis(rankdata, 1, errors.to_numpy(float).round(2))  # as printed
    return pd.Series(places.sum(axis=0), index=errors.columns)


def markdown(rows: list[dict[str, str]]) -> str:
    """A table for a page."""
    heads = list(rows[0])
    lines = [heads, ["---"] * len(heads), *(list(row.values()) for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
