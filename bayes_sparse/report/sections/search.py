"""How the hyper-parameters were found: the objective by iteration, an L1 path, a spectrum of directions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bayes_sparse.report.markup import Html, count, joined, nothing, number, paragraph, picture, row_of, tag
from bayes_sparse.report.material import Material, Section
from bayes_sparse.results.plots.fits import plot_history
from bayes_sparse.results.plots.searches import plot_cv, plot_path, plot_spectrum
from bayes_sparse.trees.read import StoredFit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["SECTION"]


def _body(material: Material) -> Html:
    """Pictures of every search there was."""
    searched = [fit for fit in material.fits if fit.evidence is not None and not fit.sampled]
    if not searched:
        return nothing("A sampler searches for nothing: there is no objective that climbs.")
    parts: list[object] = []
    for fit in searched:
        if material.several:
            parts.append(tag("h3", fit.name))
        parts += [paragraph(_ending(fit)), row_of(_pictures(fit))]
    return joined(parts)


def _ending(fit: StoredFit) -> str:
    attributes = fit.attributes
    steps = f" after {count(attributes['n_iterations'])} iterations" if "n_iterations" in attributes else ""
    used = attributes.get("degrees_of_freedom")
    spent = f", {number(float(used))} degrees of freedom used" if used is not None else ""
    return f"{fit.method}: {attributes.get('status', 'no status')}{steps}{spent}."


def _pictures(fit: StoredFit) -> list[Html]:
    evidence: Any = fit.evidence
    out = []
    if evidence.sizes.get("iteration", 0) > 1:
        out.append(
            picture(
                lambda ax: _bare(plot_history(fit.tree, ax=ax)),
                f"Line plot of the objective over {evidence.sizes['iteration']} iterations",
                "The objective by iteration; a step that lowers it is never taken.",
            )
        )
    if evidence.sizes.get("direction"):
        out.append(
            picture(
                lambda ax: _bare(plot_spectrum(fit.tree, ax=ax)),
                f"Curvature and strength of {evidence.sizes['direction']} directions",
                "A direction is kept where h u² exceeds 1 (dashed).",
                formulas=True,
            )
        )
    if evidence.sizes.get("visited", 0) > 1:
        out += [
            picture(
                lambda ax: _bare(_one_of_path(fit, ax, 0)),
                "N and lambda R along the path",
                "A solution is where λR meets N; the dashed line is the answer.",
            ),
            picture(
                lambda ax: _bare(_one_of_path(fit, ax, 1)),
                "Weights along the path",
                "The weights along the path; those with the largest are named.",
            ),
        ]
    if "cv_loss" in evidence:
        out.append(
            picture(
                lambda ax: _bare(plot_cv(fit.tree, ax=ax)),
                "Held-out loss along the path with its standard error",
                "The penalty chosen by cross-validation (dashed).",
            )
        )
    return out


def _one_of_path(fit: StoredFit, ax: Axes, which: int) -> Axes:
    """One of the two pictures of a path; the other is drawn beside the page."""
    from matplotlib.figure import Figure

    pair = [ax, Figure().subplots()]
    plot_path(fit.tree, axes=pair if which == 0 else pair[::-1])
    ax.set_xlabel("λ")
    return ax


def _bare(ax: Axes) -> None:
    """The text beside the picture says what its title would; iterations and directions are whole numbers."""
    ax.set_title("")
    if ax.get_xscale() == "linear":
        from matplotlib.ticker import MaxNLocator

        ax.xaxis.set_major_locator(MaxNLocator(integer=True))


SECTION = Section("How they were found", 30, _body)
