"""What changes from one setting of a fit to the next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from bayes_sparse.inputs.table import in_words
from bayes_sparse.results.comparison.kinds import seconds_of
from bayes_sparse.results.comparison.marginals import Marginals
from bayes_sparse.results.diagnose import diagnose
from bayes_sparse.results.log_evidence import log_evidence
from bayes_sparse.trees.rung import was_sampled

__all__ = ["changes", "summary_of_changes", "verdict_of_changes"]


def changes(aligned: dict[str, Marginals], relevant: pd.DataFrame) -> pd.DataFrame:
    """A row a parameter and setting; changes are in sds of the first setting's posterior."""
    base = next(iter(aligned.values()))
    parts = []
    for name, own in aligned.items():
        unit = np.where(base.sd > 0, base.sd, own.sd)
        moved = np.divide(own.mean - base.mean, unit, out=np.zeros_like(unit), where=~(unit == 0))
        kept = pd.Series(own.kept, index=own.names)
        kept.loc[relevant.index] = relevant[name]
        columns = {"mean": own.mean, "sd": own.sd, "mcse": own.mcse, "kept": kept.to_numpy(), "change": moved}
        parts.append(pd.DataFrame(columns, index=pd.Index(own.names, name="parameter")))
    table = pd.concat(parts, keys=list(aligned), names=["setting"]).swaplevel()
    order = np.argsort(np.tile(np.arange(len(base.names)), len(parts)), kind="stable")
    table = table.iloc[order]
    return table[table["mean"].notna() & table["change"].notna()]


def summary_of_changes(
    settings: list[str],
    trees: dict[str, xr.DataTree],
    failed: Mapping[str, Exception],
    parameters: pd.DataFrame,
    relevant: pd.DataFrame,
    fitted: dict[str, float],
) -> pd.DataFrame:
    """A row a setting, also of those that failed."""
    rows: dict[str, dict[str, Any]] = {}
    for label in settings:
        if label in failed:
            rows[label] = {"status": f"failed: {failed[label]}"}
            continue
        own = parameters.xs(label, level="setting")
        weights = own.loc[own.index.intersection(relevant.index)]
        size = own["change"].abs()
        rows[label] = {
            "status": _status(trees[label]),
            "terms_kept": int(((weights["sd"] > 0) | (weights["mean"] != 0)).sum()),
            "relevant_terms": int(relevant[label].sum()),
            **_evidence(trees[label]),
            "largest_change": float(size.max()),
            "changed_most": str(size.idxmax()) if size.max() > 0 else "",
            "fitted_change": fitted[label],
            "seconds": seconds_of(trees[label]),
        }
    table = pd.DataFrame.from_dict(rows, orient="index").rename_axis("setting")
    for column in ("terms_kept", "relevant_terms"):
        table[column] = table[column].astype("Int64")
    return table


def _status(tree: xr.DataTree) -> str:
    if not was_sampled(tree):
        return str(tree["evidence"].attrs["status"])
    found = diagnose(tree)
    return "converged" if found.trusted else f"not converged: {found.verdict}"


def _evidence(tree: xr.DataTree) -> dict[str, Any]:
    try:
        found = log_evidence(tree)
    except ValueError:  # NUTS of everything has none
        return {"log_evidence": np.nan, "log_evidence_kind": "none"}
    return {"log_evidence": found.value, "log_evidence_kind": found.kind}


def verdict_of_changes(summary: pd.DataFrame, parameters: pd.DataFrame, relevant: pd.DataFrame) -> str:
    """Which terms come and go, and how far the others move."""
    fitted = list(relevant.columns)
    sentences = [f"{len(fitted)} settings, measured against {fitted[0]}."]
    if len(fitted) > 1:
        sentences += [_terms(relevant), _moves(parameters, summary.loc[fitted])]
    failed = summary.index[summary["status"].str.startswith("failed")]
    if len(failed):
        sentences.append(f"Not fitted: {in_words(failed, quote=False)}; the status says why.")
    wrong = summary.loc[fitted, "status"]
    wrong = wrong[~wrong.isin(["converged", "fixed-point", "jump"])]
    if len(wrong):
        sentences.append(f"To be read with care, for their status says why: {in_words(wrong.index, quote=False)}.")
    if summary["log_evidence"].notna().sum() > 1:
        sentences.append(
            "Each log evidence is that at its setting's own hyper-parameters, which a flatter prior leaves freer: no "
            "ground to choose a setting by."
        )
    return " ".join(sentences)


def _terms(relevant: pd.DataFrame) -> str:
    votes = relevant.sum(axis=1)
    always, sometimes = votes.index[votes == relevant.shape[1]], votes.index[(votes > 0) & (votes < relevant.shape[1])]
    if not len(sometimes):
        return f"The same {len(always)} terms are relevant under all of them."
    shown = [f"{term} ({int(votes[term])} of {relevant.shape[1]})" for term in sometimes]
    return f"{len(always)} terms are relevant under all; these come and go: {in_words(shown, quote=False)}."


def _moves(parameters: pd.DataFrame, summary: pd.DataFrame) -> str:
    """The largest change, with its Monte-Carlo error, and that of what is fitted."""
    size = parameters["change"].abs()
    parameter, setting = list(parameters.index)[int(np.argmax(size))]
    said = f"No mean changes by more than {size.max():.2g} posterior sds" + (
        f" ({parameter} under {setting})" if size.max() > 0 else ""
    )
    noise = (parameters["mcse"] / parameters["sd"].where(parameters["sd"] > 0)).max()
    if noise > 0:
        said += f", where means have Monte-Carlo errors of up to {noise:.2g} sds"
    return f"{said}; what is fitted to the training rows changes by at most {summary['fitted_change'].max():.2g}."
