"""The evidence fit against the sampler: how far apart, parameter by parameter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from bayes_sparse.common.types import FloatArray
from bayes_sparse.report.markup import (
    COLOURS,
    Html,
    count,
    joined,
    nothing,
    number,
    paragraph,
    picture,
    row_of,
    short,
    table,
    tag,
    with_error,
)
from bayes_sparse.report.material import Material, Section
from bayes_sparse.results.plots.fits import GREY
from bayes_sparse.trees.read import StoredFit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["SECTION"]

_LISTED = 15  # parameters of the table
_DENSITIES = 6
_MOST_DRAWS = 2000  # that a density is drawn from
_SUMMARY = {
    "kind": "what it is",
    "terms_kept": "terms kept",
    "relevant_terms": "relevant terms",
    "largest_difference": "largest difference of means (sd)",
    "median_difference": "median difference of means (sd)",
    "median_sd_ratio": "median ratio of sds",
    "median_overlap": "median overlap of densities",
    "log_score": "held-out log score a row",
    "log_score_difference": "its difference from the reference",
    "elpd_loo": "LOO elpd",
    "seconds": "seconds",
    "speed_up": "times faster than the reference",
    "effective_draws": "effective draws",
    "effective_draws_a_second": "effective draws a second",
}
_PARAMETERS = {
    "mean": "mean",
    "sd": "sd",
    "reference_mean": "ref. mean",
    "reference_sd": "ref. sd",
    "difference": "difference",
    "mcse": "MC error",
    "sd_ratio": "ratio of sds",
    "overlap": "overlap",
}


def _body(material: Material) -> Html:
    """Distances, densities and agreement on what matters."""
    answer = material.comparison
    if answer.value is None:
        return nothing(answer.refusal)
    found = answer.value
    parts: list[object] = [
        paragraph(
            f"The reference is {found.reference}. Differences of means are in its posterior sds; what is not larger "
            "than its Monte-Carlo (MC) error is no difference."
        ),
        table(_summary(found.summary), "The fits side by side"),
        *(paragraph(sentence) for sentence in found.sentences),
    ]
    if len(found.parameters):
        parts += _of_parameters(material, found)
    if len(found.relevance):
        parts += [
            tag("h3", "Agreement on what matters"),
            paragraph("Terms that each fit calls relevant."),
            table(_renamed(found.relevance, {c: str(c).replace("_", " ") for c in found.relevance}), "Agreement"),
        ]
    parts += [paragraph(note, "note") for note in (*found.notes, answer.refusal) if note]
    return joined(parts)


def _summary(summary: pd.DataFrame) -> pd.DataFrame:
    """A row a number, a column a fit: that fits on a telephone."""
    rows = {}
    for name, words in _SUMMARY.items():
        if name not in summary or summary[name].isna().all():
            continue
        if f"{name}_se" in summary:
            pairs = zip(summary[name], summary[f"{name}_se"], strict=True)
            rows[words] = [with_error(value, error) for value, error in pairs]
        else:
            rows[words] = ["–" if pd.isna(value) else number(value) for value in summary[name]]
    return pd.DataFrame.from_dict(rows, orient="index", columns=list(summary.index)).rename_axis("")


def _of_parameters(material: Material, found: Any) -> list[Html]:
    parameters = found.parameters
    order = parameters["difference"].abs().sort_values(ascending=False, kind="stable").index
    shown = _renamed(parameters.loc[order].head(_LISTED), _PARAMETERS)
    shown.index = shown.index.set_names(["parameter", "fit"])
    if shown.index.get_level_values("fit").nunique() == 1:
        shown = shown.droplevel("fit")
    more = len(parameters) - len(shown)
    words = f"The {len(shown)} largest differences{f', of {count(len(parameters))}' if more > 0 else ''}:"
    most: list[str] = list(dict.fromkeys(parameter for parameter, _ in order))[:_DENSITIES]
    return [
        tag("h3", "Parameter by parameter"),
        row_of([_means(found), _sds(found)]),
        paragraph(words),
        table(shown, "Largest differences"),
        tag("h3", "Densities of the parameters that differ most"),
        row_of([_density(material.fits, name) for name in most]),
    ]


def _renamed(frame: pd.DataFrame, names: dict[str, str]) -> pd.DataFrame:
    """The columns that there are, under names for people; without those that say nothing."""
    chosen = [name for name in names if name in frame and not frame[name].isna().all()]
    out = frame[chosen].rename(columns=names)
    return out.astype({c: float for c in out.columns if str(out[c].dtype) == "Int64"})


def _means(found: Any) -> Html:
    frame = found.parameters[found.parameters["reference_sd"] > 0]

    def draw(ax: Axes) -> None:
        x = frame["reference_mean"] / frame["reference_sd"]
        low, high = float(x.min()) - 0.5, float(x.max()) + 0.5
        ax.fill_between([low, high], [low - 1, high - 1], [low + 1, high + 1], color=GREY, alpha=0.15, lw=0)
        ax.plot([low, high], [low, high], color=GREY, lw=1)
        _by_fit(ax, frame, x, frame["mean"] / frame["reference_sd"])
        ax.set_xlabel(f"mean, {short(found.reference)} (its sds)")
        ax.set_ylabel("mean of the other (the same sds)")

    return picture(
        draw,
        "Scatter of posterior means against the reference",
        "Means against those of the reference, both in its sds; the band is one sd either way.",
    )


def _sds(found: Any) -> Html:
    frame = found.parameters[(found.parameters["reference_sd"] > 0) & (found.parameters["sd"] > 0)]

    def draw(ax: Axes) -> None:
        if len(frame):
            ends = [float(frame["reference_sd"].min()), float(frame["reference_sd"].max())]
            ax.plot(ends, ends, color=GREY, lw=1)
        _by_fit(ax, frame, frame["reference_sd"], frame["sd"])
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xlabel(f"sd, {short(found.reference)}")
        ax.set_ylabel("sd of the other")

    return picture(
        draw,
        "Scatter of posterior standard deviations against the reference",
        "Standard deviations against those of the reference, of parameters that are not pruned; below the line a fit "
        "is surer of itself than the reference.",
    )


def _by_fit(ax: Axes, frame: pd.DataFrame, x: pd.Series, y: pd.Series) -> None:
    for i, name in enumerate(dict.fromkeys(frame.index.get_level_values("tree"))):
        own = frame.index.get_level_values("tree") == name
        ax.plot(x[own], y[own], "o", color=COLOURS[i % len(COLOURS)], ms=4, alpha=0.8, label=short(name))
    if len(frame):
        ax.legend(frameon=False, fontsize="small")


def _density(fits: list[StoredFit], parameter: str) -> Html:
    def draw(ax: Axes) -> None:
        for i, fit in enumerate(fits):
            _one_density(ax, fit, parameter, COLOURS[i % len(COLOURS)])
        ax.set_yticks([])
        ax.spines["left"].set_visible(False)
        ax.set_title(short(parameter))
        ax.legend(frameon=False, fontsize="x-small")

    return picture(draw, f"Densities of {parameter} in {len(fits)} fits", "", width=2.9, height=2.2)


def _one_density(ax: Axes, fit: StoredFit, parameter: str, colour: str) -> None:
    """A curve of draws or moments; a line where the fit has a single value, as for a pruned term."""
    label = short(fit.name)
    values = fit.draws.get(parameter)
    if values is not None and np.ptp(values) > 0:
        x, y = _curve(values.ravel())
        ax.plot(x, y, color=colour, lw=1.6, label=label)
        ax.fill_between(x, y, color=colour, alpha=0.12, lw=0)
        return
    mean, sd = _moments(fit, parameter)
    if sd > 0:
        from scipy.stats import norm  # here because it takes longer to import than a fit takes

        x = np.linspace(mean - 4 * sd, mean + 4 * sd, 200)
        ax.plot(x, norm.pdf(x, mean, sd), color=colour, lw=1.6, label=label)
    else:
        ax.axvline(mean, color=colour, lw=1.6, ls="--", label=f"{label} ({'pruned' if mean == 0 else 'a point'})")


def _curve(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    from scipy.stats import gaussian_kde  # here because it takes longer to import than a fit takes

    some = values[:: max(1, len(values) // _MOST_DRAWS)]
    low, high = np.quantile(some, [0.002, 0.998])
    x = np.linspace(low, high, 200)
    return x, np.asarray(gaussian_kde(some)(x))


def _moments(fit: StoredFit, parameter: str) -> tuple[float, float]:
    """Of a fit without draws of the parameter: its moments, zeros for a pruned term."""
    evidence = fit.evidence
    if evidence is None:
        return 0.0, 0.0
    if parameter in evidence and evidence[parameter].ndim == 0:
        return float(evidence[parameter]), float(evidence.get(f"{parameter}_sd", 0.0))
    for vector, (_, labels) in fit.settings.get("vectors", {}).items():
        for place, label in enumerate(labels):
            if parameter == f"{vector}[{label}]" and place < evidence.sizes["basis"]:
                return float(evidence["mean"][place]), float(fit.posterior_sd[place])
    return 0.0, 0.0


SECTION = Section("Evidence against MCMC", 70, _body)
