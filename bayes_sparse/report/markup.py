"""HTML made of parts that know whether they are markup: whatever is not is escaped, so no name can become code."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

__all__ = ["Html", "Nothing", "joined", "nothing", "paragraph", "tag", "text"]

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
