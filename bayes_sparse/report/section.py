"""A section of the report: one file in `sections`, whose name is its anchor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bayes_sparse.report.markup import Html
from bayes_sparse.report.material import Material

__all__ = ["Section"]


@dataclass(frozen=True)
class Section:
    """A part of the page.

    Attributes
    ----------
    title : str
        Its heading.
    order : int
        Sections stand on the page by this number, from the verdict down to the versions.
    make : callable
        Makes its body; `Nothing` where there is nothing to show.
    """

    title: str
    order: int
    make: Callable[[Material], Html]
