"""Whether the chains of a sampler can be trusted, by ArviZ's numbers and pictures."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from bayes_sparse.report.markup import (
    Html,
    arviz_picture,
    count,
    joined,
    key_values,
    nothing,
    number,
    paragraph,
    row_of,
    short,
    table,
    tag,
)
from bayes_sparse.report.material import Material, Section
from bayes_sparse.results.diagnose import SamplingDiagnosis
from bayes_sparse.results.terms import prior_of
from bayes_sparse.trees.read import StoredFit

__all__ = ["SECTION"]

_LISTED = 8  # parameters, those with the largest R-hat


def _body(material: Material) -> Html:
    """R-hat, effective draws, divergences; ranks of the worst parameters, and the energy."""
    sampled = [fit for fit in material.fits if fit.sampled]
    if not sampled:
        return nothing("None of these fits was sampled: method='nuts' gives chains to look at.")
    parts: list[object] = []
    for fit in sampled:
        if material.several:
            parts.append(tag("h3", fit.name))
        parts += _of_fit(material, fit)
    return joined(parts)


def _of_fit(material: Material, fit: StoredFit) -> list[Html]:
    answer = material.diagnoses[fit.name]
    out = [paragraph(answer.value.verdict), _numbers(fit, answer.value)] if _is_sampling(answer.value) else []
    frame = _worst(fit)
    out += [
        paragraph(f"The {len(frame)} parameters with the largest R-hat, of {count(len(fit.draws))}:"),
        table(frame, "Parameters that mixed worst"),
        row_of(_pictures(fit, frame.index)),
        answer.words,
    ]
    return out


def _is_sampling(found: Any) -> bool:
    return isinstance(found, SamplingDiagnosis)


def _numbers(fit: StoredFit, found: SamplingDiagnosis) -> Html:
    rows: list[tuple[str, object]] = [
        ("trusted", number(found.trusted)),
        ("draws", f"{count(found.draws)} from {count(found.chains)} chains"),
        ("largest R-hat", f"{found.r_hat_max:.3f} ({found.worst}); at most 1.01 wanted"),
        ("effective draws, bulk", f"at least {count(round(found.ess_bulk_min))}; 100 a chain wanted"),
        ("effective draws, tails", f"at least {count(round(found.ess_tail_min))}; 100 a chain wanted"),
        ("divergences", f"{count(found.divergences)} of {count(found.draws)} draws; none wanted"),
        ("at the largest tree depth", f"{count(found.max_treedepth)} of {count(found.draws)} draws"),
        ("least BFMI", f"{number(found.bfmi_min)}; above 0.3 wanted"),
        *_how(fit),
    ]
    return key_values(rows, "Diagnostics of the chains")


def _how(fit: StoredFit) -> list[tuple[str, object]]:
    """What was sampled and how, where the tree says it."""
    said, (prior, slab) = fit.attributes, prior_of(fit)
    rows: list[tuple[str, object]] = []
    if prior:
        unit = float(said.get("hyper_unit", 1.0))
        columns = "standardised columns" if "basis_scale" in fit.constant else "basis functions as they are"
        targets = f" and of targets divided by {number(unit)}" if unit != 1 else ""
        rows.append(("prior of precisions", f"{prior}, {slab}, in units of {columns}{targets}"))
    if "retried" in said:
        rows.append(("sampled again", said["retried"] or "no: the first draws were enough"))
    if "compiled" in said:
        rows.append(("compiled", said["compiled"]))
    return rows


def _worst(fit: StoredFit) -> pd.DataFrame:
    """Parameters by R-hat, with their effective draws."""
    import arviz as az  # takes seconds, and fitting does not need it

    draws = _together(fit, list(fit.draws))
    with np.errstate(divide="ignore", invalid="ignore"):  # of constants, which have none and come last
        r_hat = az.rhat(draws)["draws"].to_numpy()
    order = np.argsort(-np.nan_to_num(r_hat, nan=-1.0), kind="stable")[:_LISTED]
    some = draws.isel(parameter=order)
    columns = {
        "R-hat": [f"{value:.3f}" if np.isfinite(value) else "–" for value in r_hat[order]],
        "ESS bulk": np.round(az.ess(some, method="bulk")["draws"].to_numpy()),
        "ESS tail": np.round(az.ess(some, method="tail")["draws"].to_numpy()),
        "mean": some["draws"].mean(("chain", "draw")).to_numpy(),
        "sd": some["draws"].std(("chain", "draw"), ddof=1).to_numpy(),
    }
    names = [list(fit.draws)[i] for i in order]
    return pd.DataFrame(columns, index=pd.Index(names, name="parameter", dtype=object))


def _together(fit: StoredFit, names: list[str]) -> xr.Dataset:
    """Draws of some parameters as one variable."""
    values = np.stack([fit.draws[name] for name in names], axis=-1)
    labels = {"parameter": np.array([short(name) for name in names], dtype=str)}
    sizes = {"chain": np.arange(values.shape[0]), "draw": np.arange(values.shape[1])}
    return xr.Dataset({"draws": (("chain", "draw", "parameter"), values)}, coords={**sizes, **labels})


def _pictures(fit: StoredFit, worst: pd.Index) -> list[Html]:
    import arviz as az  # takes seconds

    out = []
    moving = [name for name in worst if np.ptp(fit.draws[name]) > 0]
    if fit.posterior is not None and fit.posterior.sizes["chain"] > 1 and moving:
        tree = xr.DataTree.from_dict({"posterior": _distinct(_together(fit, moving))})
        out.append(
            arviz_picture(
                functools.partial(
                    az.plot_rank, tree, labeller=az.labels.NoVarLabeller(), col_wrap=2, visuals={"xlabel": False}
                ),
                f"Rank plots of {len(moving)} parameters",
                "Ranks of each chain’s draws among all, less what is expected; one line per chain. Chains that agree "
                "stay near zero; p is ArviZ’s test of that, which allows for autocorrelation, and dots are what it "
                "objects to.",
                height=0.4 + 1.3 * ((len(moving) + 1) // 2),
                finish=_smaller,
            )
        )
    if "sample_stats" in fit.tree.children and "energy" in fit.tree["sample_stats"]:
        out.append(
            arviz_picture(
                functools.partial(az.plot_energy, fit.tree, show_bfmi=False),
                "Densities of the energy and of its changes from draw to draw",
                "The energy, and its change from draw to draw: a change much narrower than the energy itself means "
                "slow exploration of the tails.",
            )
        )
    return out


def _smaller(figure: Any) -> None:
    """ArviZ writes its p-values across the lines: smaller, they hide less of them."""
    for ax in figure.axes:
        for words in ax.texts:
            words.set_fontsize(6.5)


def _distinct(draws: xr.Dataset) -> xr.Dataset:
    """The same with labels that differ, which shortening may have undone."""
    seen: dict[str, int] = {}
    labels = []
    for label in draws["parameter"].to_numpy().tolist():
        seen[label] = seen.get(label, 0) + 1
        labels.append(label if seen[label] == 1 else f"{label} ({seen[label]})")
    return draws.assign_coords(parameter=labels)


SECTION = Section("Are the chains good?", 60, _body)
