"""Figures as pictures inside the page. No state of matplotlib's is changed, and no figure is left open."""

from __future__ import annotations

import base64
import io
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from cycler import cycler

from bayes_sparse.report.markup import Html, tag

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["COLOURS", "arviz_picture", "picture", "row_of", "short"]

COLOURS = ("#2266aa", "#dd7722", "#449966", "#aa3377", "#888888", "#66bbee", "#bbaa22", "#553311")
_DPI = 160  # sharp on a phone and on paper, and about 40 kB a picture
_WIDE = 480  # pixels: a picture beside which there is no room for another
_LONGEST = 34  # characters of a name beside an axis
_STYLE: dict[Any, Any] = {
    "font.size": 9.0,
    "axes.titlesize": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": cycler(color=COLOURS),
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
    with mpl.rc_context(), warnings.catch_warnings():
        mpl.rcdefaults()
        mpl.rcParams.update(_STYLE | {"text.parse_math": formulas})
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
