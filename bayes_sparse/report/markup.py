"""HTML that cannot be broken by what it shows: elements, tables, figures."""

from __future__ import annotations

import base64
import html
import io
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "COLOURS",
    "Html",
    "Nothing",
    "arviz_picture",
    "count",
    "joined",
    "key_values",
    "nothing",
    "number",
    "paragraph",
    "picture",
    "row_of",
    "scrolling",
    "short",
    "table",
    "tag",
    "text",
    "value_and_error",
    "with_error",
]

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")  # no part of any page
_VOID = ("img", "br")


class Html(str):
    """Markup of our own making, which `tag` and `joined` take as it is; any other string they escape."""

    __slots__ = ()


def text(value: object) -> Html:
    """Anything as text that a browser shows as it stands, also inside an attribute."""
    if isinstance(value, Html):
        return value
    return Html(html.escape(_CONTROL.sub("\N{REPLACEMENT CHARACTER}", str(value)), quote=True))


def tag(name: str, *children: object, **attributes: object) -> Html:
    """An element; an attribute that is a word of Python's has an underscore behind it, and None leaves it out."""
    given = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items() if value is not None}
    words = "".join(f' {key}="{text(value)}"' for key, value in given.items())
    if name in _VOID:
        return Html(f"<{name}{words}>")
    return Html(f"<{name}{words}>{joined(children)}</{name}>")


def joined(parts: Iterable[object]) -> Html:
    """Parts one after the other."""
    return Html("".join(text(part) for part in parts))


def paragraph(words: object, class_: str | None = None) -> Html:
    """A paragraph."""
    return tag("p", words, class_=class_)


class Nothing(Html):
    """The body of a section that has nothing to show."""

    __slots__ = ()


def nothing(reason: str) -> Nothing:
    """Why a section is empty, in a sentence."""
    return Nothing(paragraph(reason, "empty"))


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
    return scrolling(tag("table", tag("tbody", *body), class_="pairs"), label)


def table(frame: pd.DataFrame, label: str, digits: int = 3, class_: str | None = None) -> Html:
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
    return scrolling(tag("table", tag("thead", tag("tr", *head)), tag("tbody", *body), class_=class_), label)


def _is_numeric(column: pd.Series) -> bool:
    """Numbers, or words that begin with one."""
    return column.dtype.kind in "fiub" or all(_NUMBER.match(str(value)) for value in column)


def scrolling(content: Html, label: str) -> Html:
    """What is wider than the screen scrolls by itself, with the keyboard too."""
    return tag("div", joined([content]), class_="scroll", role="region", aria_label=label, tabindex="0")


COLOURS = ("#2266aa", "#dd7722", "#449966", "#aa3377", "#888888", "#66bbee", "#bbaa22", "#553311")
_DPI = 160  # sharp on a phone and on paper, and about 40 kB a picture
_WIDE = 480  # pixels: a picture beside which there is no room for another
_LONGEST = 34  # characters of a name beside an axis
_STYLE: dict[Any, Any] = {
    "font.size": 9.0,
    "axes.titlesize": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.facecolor": "white",
    # A name with dollar signs is no formula.
    "text.parse_math": False,
}


def picture(
    draw: Callable[[Axes], Any],
    alt: str,
    caption: object,
    *,
    width: float = 4.4,
    height: float = 3.1,
    formulas: bool = False,
) -> Html:
    """What ``draw`` draws on an axis, as an element with a text for those who do not see it.

    Pictures are as wide as a telephone, in inches, so that their letters can be read there; `row_of` puts two beside
    each other where there is room. ``formulas`` is for labels that are all our own.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # drawing takes longer to import than the rest
    from matplotlib.figure import Figure

    with _style(formulas):
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(figure)
        draw(figure.subplots())
        return _embedded(figure, alt, caption, formulas)


def arviz_picture(
    plot: Callable[..., Any],
    alt: str,
    caption: object,
    *,
    width: float = 4.4,
    height: float = 3.1,
    finish: Callable[[Figure], None] | None = None,
) -> Html:
    """A picture by ArviZ, which draws on figures of pyplot's: closed as soon as it is saved."""
    import matplotlib.pyplot as plt

    before = set(plt.get_fignums())
    with _style(False), plt.ioff():
        try:
            drawn = plot(backend="matplotlib", figure_kwargs={"figsize": (width, height), "layout": "constrained"})
            figure = drawn.viz["figure"].item()
            if finish is not None:
                finish(figure)
            return _embedded(figure, alt, caption, False)
        finally:
            for number in set(plt.get_fignums()) - before:
                plt.close(number)


def row_of(pictures: list[Html]) -> Html:
    """Pictures beside each other, or below each other on a narrow screen."""
    return tag("div", *pictures, class_="figures")


def short(name: object) -> str:
    """A name that leaves room for the picture."""
    line = " ".join(str(name).split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


@contextmanager
def _style(formulas: bool) -> Iterator[None]:
    """The package's look for a while, whatever the user has set."""
    import matplotlib as mpl  # only for those who draw
    from matplotlib.rcsetup import cycler

    with mpl.rc_context(), warnings.catch_warnings():
        mpl.rcdefaults()
        mpl.rcParams.update(_STYLE | {"axes.prop_cycle": cycler(color=COLOURS), "text.parse_math": formulas})
        # A letter that the font lacks is drawn as a box; the tables beside show it.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


def _embedded(figure: Figure, alt: str, caption: object, formulas: bool) -> Html:
    if not formulas:
        _plain_ticks(figure)
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=_DPI)
    code = base64.b64encode(stream.getvalue()).decode("ascii")
    wide, high = (round(96 * inches) for inches in figure.get_size_inches())
    image = tag("img", src=f"data:image/png;base64,{code}", alt=alt, width=wide, height=high)
    words = [tag("figcaption", caption)] if caption else []
    return tag("figure", image, *words, class_="wide" if wide > _WIDE else None)


def _plain_ticks(figure: Figure) -> None:
    """Numbers on a log axis in plain text: matplotlib writes them as formulas."""
    from matplotlib.ticker import LogFormatter

    class Plain(LogFormatter):
        def __call__(self, x: float, pos: Any = None) -> str:
            return f"{x:g}" if super().__call__(x, pos) else ""

    for ax in figure.axes:
        for axis, scale in ((ax.xaxis, ax.get_xscale()), (ax.yaxis, ax.get_yscale())):
            if scale in ("log", "symlog"):
                axis.set_major_formatter(lambda x, _: f"{x:g}")
            if scale == "log":
                axis.set_minor_formatter(Plain(minor_thresholds=(1, 0.4)))
