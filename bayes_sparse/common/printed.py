"""Small tables and sentences, the same in a terminal and in a notebook."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import zip_longest
from math import floor, isfinite, isnan, log10, nan
from shutil import get_terminal_size
from textwrap import fill, wrap

__all__ = ["Grid", "Shown", "as_html", "as_text", "duration", "estimate", "figure"]

type Part = str | Grid

_WIDEST, _LEAST, _GAP = 100, 12, 2  # characters: of a line, of a column that is wrapped, between columns
_SMALLEST = 5e-4  # error that is shown
_NUMBER = re.compile(r"[<+−-]? ?\d|$")


@dataclass(frozen=True)
class Grid:
    """A table of words.

    Attributes
    ----------
    rows : sequence of sequences of str
        Its cells; the first of each row is its heading.
    head : sequence of str
        Headings of the columns; none for a table of names and values.
    """

    rows: Sequence[Sequence[str]]
    head: Sequence[str] = ()

    @property
    def numeric(self) -> list[bool]:
        """Of each column, whether it has numbers, which stand to the right; never so without headings."""
        columns = zip(*self.rows, strict=True)
        return [bool(i and self.head) and all(map(_NUMBER.match, cells)) for i, cells in enumerate(columns)]


class Shown:
    """What is printed part by part, in a terminal and in a notebook; a dataclass of it is made with ``repr=False``."""

    def __str__(self) -> str:
        return as_text(self._parts())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return as_html(self._parts())

    def _parts(self) -> list[Grid | str]:
        raise NotImplementedError


def as_text(parts: Iterable[Part]) -> str:
    """One below the other, as wide as the terminal and at most a hundred characters; a text may have several lines."""
    room = min(get_terminal_size((_WIDEST, 24)).columns, _WIDEST)
    shown = (_grid(part, room) if isinstance(part, Grid) else _wrapped(part, room) for part in parts)
    return "\n\n".join(text for text in shown if text)


def as_html(parts: Iterable[Part]) -> str:
    """The same for a notebook."""
    return "".join(
        _table(part) if isinstance(part, Grid) else "".join(f"<p>{escape(line)}</p>" for line in part.splitlines())
        for part in parts
    )


def figure(value: float) -> str:
    """A number in three digits, or whole; nothing where there is none."""
    if not isfinite(value):
        return "" if isnan(value) else f"{value:g}"
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def estimate(value: float, error: float = nan) -> str:
    """A number and its standard error, to the digits that the error leaves it; no error where it is too small."""
    if not error >= _SMALLEST:
        return f"{value:.2f}" if isfinite(value) else figure(value)
    decimals = min(max(1 - floor(log10(error)), 1), 3)
    return f"{value:.{decimals}f} +- {error:.{decimals}f}"


def duration(seconds: float) -> str:
    """A time as people say it."""
    if isnan(seconds):
        return "–"
    if seconds < 1:
        return f"{1e3 * seconds:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:.1f} min"


def _wrapped(text: str, room: int) -> str:
    return "\n".join(fill(line, max(room, 2 * _LEAST), break_on_hyphens=False) for line in text.splitlines())


def _grid(grid: Grid, room: int) -> str:
    if not grid.rows:
        return ""
    lines = [grid.head, *grid.rows] if grid.head else list(grid.rows)
    widths = [max(len(cell) for cell in column) for column in zip(*lines, strict=True)]
    while sum(widths) + _GAP * (len(widths) - 1) > room and max(widths) > _LEAST:
        others = widths[1:] if max(widths[1:], default=0) > _LEAST else widths  # headings are cut last
        widths[len(widths) - len(others) + others.index(max(others))] -= 1
    out = []
    for cells in lines:
        broken = [wrap(cell, width, break_on_hyphens=False) or [""] for cell, width in zip(cells, widths, strict=True)]
        for own in zip_longest(*broken, fillvalue=""):
            placed = zip(own, widths, grid.numeric, strict=True)
            out.append((" " * _GAP).join(f"{c:>{w}}" if right else f"{c:<{w}}" for c, w, right in placed).rstrip())
    return "\n".join(out)


def _table(grid: Grid) -> str:
    if not grid.rows:
        return ""
    aligned = ["right" if right else "left" for right in grid.numeric]
    head = "".join(_cell("th", cell, side, "col") for cell, side in zip(grid.head, aligned, strict=False))
    body = "".join(
        f"<tr>{_cell('th', row[0], 'left', 'row')}"
        f"{''.join(_cell('td', cell, side) for cell, side in zip(row[1:], aligned[1:], strict=True))}</tr>"
        for row in grid.rows
    )
    head = f"<thead><tr>{head}</tr></thead>" if head else ""
    return f'<table style="margin:0.5em 0">{head}<tbody>{body}</tbody></table>'


def _cell(name: str, text: str, side: str, scope: str = "") -> str:
    scope = f' scope="{scope}"' if scope else ""
    return f'<{name}{scope} style="text-align:{side}; padding:0.1em 0.8em 0.1em 0">{escape(text)}</{name}>'
