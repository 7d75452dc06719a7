"""The row of each tree: how far from the reference, how fast, how well it predicts."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd
import pymc as pm
import xarray as xr

from bayes_sparse.inputs.table import in_words
from bayes_sparse.results.comparison.held_out import HeldOut, log_scores
from bayes_sparse.results.comparison.kinds import described, seconds_of
from bayes_sparse.results.comparison.marginals import Marginals
from bayes_sparse.results.diagnose import diagnose
from bayes_sparse.results.log_evidence import log_evidence
from bayes_sparse.results.loo import loo
from bayes_sparse.trees.rung import was_sampled

__all__ = ["diagnosed", "evidences", "loo_of", "score_columns", "summary_of"]


def summary_of(
    trees: dict[str, xr.DataTree],
    reference: str,
    aligned: dict[str, Marginals],
    parameters: pd.DataFrame,
    relevant: pd.DataFrame,
) -> pd.DataFrame:
    """Kind, terms, distances and speed."""
    base, rows = seconds_of(trees[reference]), {}
    for name, tree in trees.items():
        own, seconds = aligned.get(name), seconds_of(tree)
        row: dict[str, Any] = {"kind": described(tree)}
        if own is not None:
            row["terms_kept"] = int(np.sum(own.kept & own.weight))
            row["relevant_terms"] = int(relevant[name].sum())
            row |= _distances(parameters, name)
        effective = own.effective if own is not None else np.nan
        row |= {
            "seconds": seconds,
            "effective_draws": effective,
            "effective_draws_a_second": effective / seconds if seconds > 0 else np.nan,
            "speed_up": base / seconds if seconds > 0 else np.nan,
        }
        rows[name] = row
    table = pd.DataFrame.from_dict(rows, orient="index").rename_axis("tree")
    for column in ("terms_kept", "relevant_terms"):
        table[column] = table[column].astype("Int64")
    return table


def _distances(parameters: pd.DataFrame, name: str) -> dict[str, float]:
    """Largest and median distances over the parameters; NaN for the reference itself."""
    if name not in parameters.index.get_level_values("tree"):
        return dict.fromkeys(
            ("largest_difference", "median_difference", "median_sd_ratio", "median_overlap"), float("nan")
        )
    own = parameters.xs(name, level="tree")
    size = own["difference"].abs()
    both = ((own["sd"] > 0) | (own["mean"] != 0)) & (own["reference_sd"] > 0)
    return {
        "largest_difference": float(size.max()),
        "median_difference": float(size.median()),
        "median_sd_ratio": float(own.loc[both, "sd_ratio"].median()),
        "median_overlap": float(own["overlap"].median()),
    }


def evidences(trees: dict[str, xr.DataTree], notes: list[str]) -> pd.DataFrame:
    """Log evidence of each tree, and of what it is the evidence."""
    rows = {}
    for name, tree in trees.items():
        row: dict[str, Any] = {"log_evidence": np.nan, "log_evidence_se": np.nan}
        row |= {"log_evidence_kind": "none", "log_evidence_given": ""}
        try:
            found = log_evidence(tree)
        except ValueError as reason:
            notes.append(f"{name!r}: {reason}")
        else:
            row |= {"log_evidence": found.value, "log_evidence_se": found.se}
            row |= {"log_evidence_kind": found.kind, "log_evidence_given": found.conditional_on}
        rows[name] = row
    return pd.DataFrame.from_dict(rows, orient="index")


def loo_of(
    trees: dict[str, xr.DataTree], loos: dict[str, Any], notes: list[str]
) -> tuple[pd.DataFrame | None, pd.DataFrame]:
    """ArviZ's comparison, if two trees have what it needs, and the elpd of each."""
    found: dict[str, Any] = {}
    for name, tree in trees.items():
        if "log_likelihood" not in tree.children:
            notes.append(f"{name!r} has no pointwise log-likelihood and is left out of loo.")
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of large Pareto k, said below
            try:
                found[name] = loos[name] if name in loos else loo(tree, pointwise=True)
            except ValueError as reason:
                notes.append(f"{name!r} is left out of loo: {reason}")
    weak = [name for name, one in found.items() if one.warning]
    if weak:
        notes.append(f"The loo of {in_words(weak)} rests on rows with large Pareto k, and is rough.")
    none = {"elpd_loo": np.nan, "elpd_loo_se": np.nan}
    elpd = {name: {"elpd_loo": found[name].elpd, "elpd_loo_se": found[name].se} for name in found}
    columns = pd.DataFrame.from_dict({name: elpd.get(name, none) for name in trees}, orient="index")
    if len(found) < 2:
        return None, columns
    stats: Any = import_module("arviz_stats")  # takes most of a second, and fitting does not need it
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return stats.compare(found, round_to="none"), columns


def score_columns(
    trees: dict[str, xr.DataTree], reference: str, rows: HeldOut | None, notes: list[str]
) -> pd.DataFrame:
    """Mean log predictive density of the rows held out, and row by row its distance from the reference's."""
    if rows is None:
        return pd.DataFrame(index=list(trees))
    scores = {name: log_scores(tree, rows) for name, tree in trees.items()}
    notes.append(f"Held-out log scores are means over {len(rows.y)} rows, in nats a row.")
    table = {}
    for name, own in scores.items():
        gap = own - scores[reference]
        table[name] = {
            "log_score": own.mean(),
            "log_score_se": _error(own),
            "log_score_difference": gap.mean(),
            "log_score_difference_se": _error(gap),
        }
    return pd.DataFrame.from_dict(table, orient="index")


def _error(values: Any) -> float:
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


def diagnosed(tree: xr.DataTree, model: pm.Model | None, notes: list[str]) -> Any:
    """What `diagnose` says of the reference; None where it has no draws to look at."""
    if "posterior" not in tree.children:
        notes.append("The reference has no draws, so that it cannot be checked itself.")
        return None
    try:
        return diagnose(tree, None if was_sampled(tree) else model)
    except ValueError as reason:
        notes.append(f"The reference ({described(tree)}) could not be checked: {reason}")
        return None
