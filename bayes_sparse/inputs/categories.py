"""Columns of words, of declared categories and of what is true or false, told from columns of numbers."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pandas as pd

__all__ = ["category_of", "check_levels", "is_time", "label_of"]

_FEW, _NUMBERS = 5, 0.7  # levels, and their share of numbers, from which on a column is one of numbers with a slip
_MANY = 20  # levels, from which on a column may be something else than a category
_TIMES = (datetime.date, datetime.time, datetime.timedelta, pd.Period)


def category_of(part: Any, name: str) -> pd.Categorical[str] | None:
    """The column as categories whose names are strings; None where it holds numbers.

    Declared categories keep their order, words are sorted, False is before True. Only levels that occur count.
    """
    if isinstance(part, pd.Categorical):
        held = part.remove_unused_categories()
        return _named(held.codes, held.categories.tolist(), name)
    if isinstance(part, pd.arrays.SparseArray):
        return None
    kind = part.dtype.kind
    if kind in "Mm":
        _refuse_times(name)
    if kind == "b":
        return _categories(part, ["False", "True"])
    if kind not in "OUST":
        return None
    try:
        codes, found = pd.factorize(np.asarray(part, dtype=object))
    except TypeError:  # what has no hash: lists, arrays, dicts
        raise ValueError(
            f"Column {name!r} holds {next(v for v in part if pd.api.types.is_list_like(v))!r}, for one, where one "
            "value per row is needed: make columns of its parts, or leave it out."
        ) from None
    values = found.tolist()
    words = [isinstance(value, str) for value in values]
    if any(isinstance(value, _TIMES) for value in values):
        _refuse_times(name)
    if values and all(isinstance(value, bool | np.bool_) for value in values):
        true = np.array([*(int(value) for value in values), -1])
        return _categories(true[codes], ["False", "True"])
    if any(words) and not all(words):
        seen = values[words.index(True)]
        raise ValueError(
            f"Column {name!r} is not numeric, and not a category either: it holds {seen!r}, for one, among numbers; "
            "make it numbers (pandas.to_numeric), or words throughout."
        )
    if not any(words):
        return None
    order = np.argsort(found.astype(str), kind="stable")
    place = np.empty(len(order) + 1, dtype=int)
    place[order], place[-1] = np.arange(len(order)), -1
    return _named(place[codes], [values[j] for j in order], name)


def is_time(values: Any) -> bool:
    """Whether there are dates, times or lengths of time among the values."""
    return values.dtype.kind in "Mm" or (
        values.dtype.kind == "O" and any(isinstance(value, _TIMES) for value in values)
    )


def label_of(value: Any) -> str:
    """The name of a level: a whole number has no point in it, however it is stored."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)


def check_levels(held: pd.Categorical[str], name: str) -> None:
    """Refuse words that are nearly all different: names of the rows, or numbers written as words."""
    levels = len(held.categories)
    words = [str(level) for level in held.categories if not _is_number(level)]
    if words and levels > _FEW and levels - len(words) > _NUMBERS * levels:
        rows = np.flatnonzero(np.isin(np.asarray(held, dtype=object), words))
        raise ValueError(
            f"Column {name!r} holds numbers but for {words[0]!r} in row {rows[0]} ({len(rows)} of {len(held)} rows "
            "are no numbers): correct them, or leave these cells empty and say what to do with `missing`."
        )
    if levels > _MANY and 2 * levels > len(held):
        raise ValueError(
            f"Column {name!r} is not numeric, and hardly a category: it holds {levels} different words in {len(held)} "
            f"rows ({held.categories[0]!r}, for one); leave it out, or turn it into numbers or fewer levels."
        )


def _is_number(level: Any) -> bool:
    try:
        return bool(np.isfinite(float(level)))
    except ValueError:
        return False


def _named(codes: Any, levels: list[Any], name: str) -> pd.Categorical[str]:
    labels = [label_of(level) for level in levels]
    if len({*labels}) < len(labels):
        twice = max(labels, key=labels.count)
        raise ValueError(f"Column {name!r} has two levels called {twice!r}, a number and a word: make them one.")
    return _categories(codes, labels)


def _categories(codes: Any, labels: list[str]) -> pd.Categorical[str]:
    made: pd.Categorical[str] = pd.Categorical.from_codes(np.asarray(codes, dtype=np.intp), pd.Index(labels))
    return made


def _refuse_times(name: str) -> None:
    raise ValueError(
        f"Column {name!r} is not numeric, it holds dates or times: give what may matter of them as columns of their "
        "own, such as the days since the first one (a length of time: its seconds), or the month and the weekday as "
        "categories."
    )
