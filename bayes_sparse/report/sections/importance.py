"""How near the approximation is to the posterior it stands for: importance weights, and the evidence by other means."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from bayes_sparse.common.types import FloatArray
from bayes_sparse.report.markup import (
    Html,
    count,
    joined,
    key_values,
    nothing,
    paragraph,
    picture,
    row_of,
    table,
    tag,
    with_error,
)
from bayes_sparse.report.material import Material, Section, ask
from bayes_sparse.results.diagnose import Diagnosis
from bayes_sparse.results.importance import log_densities, side_of
from bayes_sparse.results.log_evidence import log_evidence
from bayes_sparse.results.plots.fits import BLUE, GREY, ORANGE
from bayes_sparse.trees.read import StoredFit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["SECTION"]


def _body(material: Material) -> Html:
    """k-hat and the weights of every approximation; then all log evidences with what they are."""
    parts: list[object] = []
    for fit in material.fits:
        if fit.sampled:
            continue
        if material.several:
            parts.append(tag("h3", fit.name))
        parts += _of_fit(material, fit)
    evidences = _evidences(material.fits)
    if len(evidences):
        parts += [tag("h3", "Log evidence"), table(evidences, "Log evidence by several means"), paragraph(_CAUTION)]
    if not parts:
        return nothing("There is no approximation to check: these fits were sampled.")
    return joined(parts)


_CAUTION = (
    "Log evidences that are given different things, or are of different kinds, do not rank fits. An approximation has "
    "no standard error; its error is its distance from the others."
)


def _of_fit(material: Material, fit: StoredFit) -> list[Html]:
    answer = material.diagnoses[fit.name]
    found = answer.value
    if not isinstance(found, Diagnosis):
        return [answer.words]
    rows = [
        ("k-hat", f"{found.k_hat:.2f} ({side_of(found.k_hat, found.threshold)} {found.threshold:.2f})"),
        ("draws", f"{count(found.draws)}, worth {count(round(found.effective_draws))} once re-weighted"),
        ("coordinates", count(found.coordinates)),
        ("given", found.conditional_on),
    ]
    return [paragraph(found.verdict), key_values(rows, "Importance sampling"), _pictures(fit), answer.words]


def _pictures(fit: StoredFit) -> Html:
    """How the weights are spread, and how much of them the largest have."""
    densities = ask(log_densities, fit.tree)
    if densities.value is None:
        return densities.words
    log_p, log_q = (values.to_numpy().ravel() for values in densities.value)
    log_weights = log_p - log_q
    log_weights = log_weights[np.isfinite(log_weights)]
    if len(log_weights) < 2 or np.ptp(log_weights) <= 1e-9 * (1 + np.abs(log_p).max()):
        return joined([])  # all the same, which the verdict says
    log_weights = log_weights - log_weights.max()
    weights = np.sort(np.exp(log_weights))[::-1]
    share = np.cumsum(weights) / weights.sum()
    top = share[max(len(share) // 100, 1) - 1]
    return row_of(
        [
            picture(
                lambda ax: _histogram(ax, log_weights - np.log(weights.mean())),
                "Histogram of the logarithms of the importance weights",
                "log p − log q at the draws, less its log mean: the narrower, the better the approximation. A long "
                "tail to the right is what k-hat measures.",
            ),
            picture(
                lambda ax: _shares(ax, share),
                f"Share of all weight by share of draws; the largest 1% have {100 * top:.0f}%",
                f"Weight carried by the heaviest draws: the top 1% of them carry {100 * top:.0f}%. Equal weights lie "
                "on the grey line.",
            ),
        ]
    )


def _histogram(ax: Axes, values: FloatArray) -> None:
    ax.hist(values, bins=min(60, max(10, len(values) // 20)), color=BLUE, alpha=0.8)
    ax.axvline(0.0, color=ORANGE, lw=1.2)
    ax.set_xlabel("log weight")
    ax.set_ylabel("draws")


def _shares(ax: Axes, share: FloatArray) -> None:
    at = np.arange(1, len(share) + 1) / len(share)
    ax.plot([0, 1], [0, 1], color=GREY, lw=1)
    ax.plot(np.append(0, at), np.append(0, share), color=BLUE, lw=2)
    ax.set_xlabel("share of draws, the heaviest first")
    ax.set_ylabel("share of weight")


def _evidences(fits: list[StoredFit]) -> pd.DataFrame:
    """Every log evidence that there is, a row each."""
    rows: list[dict[str, Any]] = []
    for fit in fits:
        for method in ("bridge",) if fit.sampled else ("approximate", "importance"):
            found = ask(log_evidence, fit.tree, method).value
            if found is not None and np.isfinite(found.value):
                rows.append(
                    {
                        "fit": fit.name,
                        "how": found.kind,
                        "log evidence": with_error(found.value, found.se, 2),
                        "given": found.conditional_on,
                    }
                )
    return pd.DataFrame(rows).set_index("fit") if rows else pd.DataFrame()


SECTION = Section("Is the approximation good?", 40, _body)
