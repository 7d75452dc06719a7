"""Numbers in words, and tables that scroll inside themselves where a screen is narrow."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from bayes_sparse.report.markup import Html, joined, tag

__all__ = ["count", "key_values", "number", "table", "value_and_error", "with_error"]

_NUMBER = re.compile(r"[−\d∞]|–$")


def number(value: Any, digits: int = 3) -> str:
    """A number as people read it: a few digits, a dash where there is none."""
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, int | np.integer):
        return count(value)
    if not isinstance(value, float | np.floating):
        return str(value)
    if np.isnan(value):
        return "–"
    if np.isinf(value):
        return "∞" if value > 0 else "−∞"
    shown = f"{value:.{digits}g}"
    if "e" not in shown and abs(value) >= 10**digits:
        shown = f"{value:.0f}"
    elif "e+0" in shown:  # 1.23e+05 is a large number, and 123,000 the same in words
        shown = f"{float(shown):,.0f}"
    return shown.replace("-", "−")


def count(value: Any) -> str:
    """A whole number, its thousands apart."""
    return f"{int(value):,}".replace("-", "−")


def with_error(value: Any, error: Any = None, decimals: int = 1) -> str:
    """An estimate and its standard error, to the same digit; an error of zero or NaN is none."""
    return " ".join(part for part in value_and_error(value, error, decimals) if part)


def value_and_error(value: Any, error: Any = None, decimals: int = 1, most: int = 4) -> tuple[str, str]:
    """The same apart; an error so small that it has no digit is left out."""
    if not np.isfinite(value):
        return number(float(value)), ""
    known = error is not None and np.isfinite(error) and error >= 10.0**-most
    decimals = max(decimals, min(-int(np.floor(np.log10(error))), most)) if known else decimals
    shown = f"{value:,.{decimals}f}".replace("-", "−")
    return shown, f"± {error:.{decimals}f}" if known else ""


def key_values(rows: Sequence[tuple[str, object]], label: str) -> Html:
    """A table of two columns: what, and its value."""
    body = [tag("tr", tag("th", key, scope="row"), tag("td", value)) for key, value in rows]
    return _scrolling(tag("table", tag("tbody", *body), class_="pairs"), label)


def table(frame: pd.DataFrame, label: str, digits: int = 3) -> Html:
    """A frame as a table, its index as the first columns; strings to the left, numbers to the right."""
    levels = [str(name or "") for name in frame.index.names]
    numeric = [_is_numeric(frame[column]) for column in frame.columns]
    classes = ["words"] * len(levels) + ["number" if is_number else "words" for is_number in numeric]
    head = [
        tag("th", name, scope="col", class_=c)
        for name, c in zip([*levels, *map(str, frame.columns)], classes, strict=True)
    ]
    body = []
    for index, *values in frame.itertuples():
        names = index if isinstance(index, tuple) else (index,)
        cells = [tag("th", tag("span", name, class_="name"), scope="row", class_="words") for name in names]
        cells += [
            tag("td", value if isinstance(value, Html) else number(value, digits), class_=c)
            for value, c in zip(values, classes[len(levels) :], strict=True)
        ]
        body.append(tag("tr", *cells))
    return _scrolling(tag("table", tag("thead", tag("tr", *head)), tag("tbody", *body)), label)


def _is_numeric(column: pd.Series) -> bool:
    """Numbers, or words that begin with one."""
    return column.dtype.kind in "fiub" or all(_NUMBER.match(str(value)) for value in column)


def _scrolling(content: Html, label: str) -> Html:
    """What is wider than the screen scrolls by itself, with the keyboard too."""
    return tag("div", joined([content]), class_="scroll", role="region", aria_label=label, tabindex="0")
