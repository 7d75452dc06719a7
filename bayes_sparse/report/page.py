"""One self-contained page about a fit, or several: the verdict first, then what it rests on."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from string import Template
from typing import Any

import pymc as pm
import xarray as xr

from bayes_sparse.common import registry
from bayes_sparse.common.files import write_whole
from bayes_sparse.common.progress import FitProgress
from bayes_sparse.common.warnings import tell
from bayes_sparse.inputs.bambi_model import BambiModel
from bayes_sparse.report.head import head
from bayes_sparse.report.markup import Html, Nothing, joined, paragraph, tag, text
from bayes_sparse.report.material import Material, Section
from bayes_sparse.trees.damage import reads_a_fit
from bayes_sparse.trees.read import read_trees

__all__ = ["report"]

_HERE, _FOLDER = Path(__file__).parent, f"{__package__}.sections"


@reads_a_fit
def report(
    trees: xr.DataTree | dict[str, xr.DataTree],
    path: str | PathLike[str],
    *,
    title: str | None = None,
    data: Any = None,
    target: str | None = None,
    model: pm.Model | BambiModel | None = None,
    delta: float | Mapping[str, float] | None = None,
    progressbar: bool = True,
) -> Path:
    """Write a page about a fit, or about several side by side, as one HTML file that needs no network.

    Parameters
    ----------
    trees : xarray.DataTree, dict or ladder
        A tree from `bayes_sparse.fit`, several by name, or the ladder of `bayes_sparse.ladder`.
    path : str or path
        The file to write; missing folders are made.
    title : str, optional
        Heading of the page.
    data : tuple, DataFrame or Dataset, optional
        Rows to check the predictions by, best some that were held out: ``(X, y)``, or a frame with ``target``.
    target : str, optional
        Name of their target column.
    model : pymc.Model or bambi.Model, optional
        Your own model, when the trees came from one.
    delta : float or mapping, optional
        For fits by NUTS, as in `bayes_sparse.relevance`: how likely it is that each weight is larger than this size.
    progressbar : bool
        Show what is being written.

    Returns
    -------
    pathlib.Path
        The file.
    """
    place = _checked(path)
    with FitProgress("Writing the report", progressbar) as progress:
        fits = read_trees(trees)
        if delta is not None and not any(fit.sampled_whole for fit in fits):
            raise ValueError("`delta` is asked of the draws of method='nuts': leave it out, or sample the model.")
        material = Material(
            fits, data, target, model, delta, lambda words: progress.say(f"Writing the report: {words}")
        )
        page = _page(material, title)
        write_whole(place, page)
    return place


def _checked(path: str | PathLike[str]) -> Path:
    place = Path(path)
    if place.is_dir():
        raise ValueError(f"The report is one file and {str(place)!r} is a folder: name a file in it.")
    place.parent.mkdir(parents=True, exist_ok=True)
    return place


def _page(material: Material, title: str | None) -> str:
    top = head(material)
    bodies = [(anchor, section, _body(section, material)) for anchor, section in _sections().items()]
    named = text(title if title is not None else _title(material))
    written = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return Template((_HERE / "template.html").read_text(encoding="utf-8")).substitute(
        title=named,
        version=text(version("bayes_sparse")),
        style=(_HERE / "style.css").read_text(encoding="utf-8"),
        head=top,
        contents="\n".join(
            tag("li", tag("a", section.title, href=f"#{anchor}"))
            for anchor, section, body in bodies
            if not isinstance(body, Nothing)
        ),
        sections="\n".join(
            tag("section", tag("h2", section.title), body, id=anchor) for anchor, section, body in bodies
        ),
        footer=text(f"Written by bayes_sparse {version('bayes_sparse')} on {written}."),
    )


def _sections() -> dict[str, Section]:
    """The sections by their anchors, which are the names of their files, in the order of the page."""
    found = {name: registry.lookup(_FOLDER, name, "section") for name in registry.options(_FOLDER)}
    return dict(sorted(found.items(), key=lambda item: item[1].order))


def _body(section: Section, material: Material) -> Html:
    """A section; one that fails says so, and does not take the others with it."""
    material.say(section.title)
    try:
        return section.make(material)
    except Exception as error:  # the other sections are worth having, and this one is not passed over in silence
        tell(f"The section {section.title!r} of the report could not be made ({type(error).__name__}: {error}).")
        words = f"This section could not be made: {type(error).__name__}: {error}"
        return joined([paragraph(words, "note")])


def _title(material: Material) -> str:
    target = next((fit.observed.name for fit in material.fits if fit.observed is not None), None)
    return f"Sparse fit of {target}" if target is not None else "Sparse fit"
