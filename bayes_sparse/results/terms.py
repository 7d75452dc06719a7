"""The terms of any fit, evidence or sampled: how many, how large, and under which prior."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from bayes_sparse.trees.read import StoredFit

__all__ = ["kept_of", "known_terms", "prior_of", "strength", "terms_of"]

_WIDE = 1.959964  # sds either side of the mean


def terms_of(fit: StoredFit, known: dict[str, str]) -> pd.DataFrame:
    """Mean, sd, ends of the interval and size of a standard deviation of every term kept, strongest first.

    Parameters
    ----------
    fit : StoredFit
        An evidence fit (by its moments) or a sampled one (by its draws).
    known : dict
        Terms by the names of their parameters, from `known_terms`.
    """
    frame = _from_draws(fit, known) if fit.sampled else _from_moments(fit)
    if "basis_scale" in fit.constant and "basis" in fit.constant["basis_scale"].dims:
        scale = fit.constant["basis_scale"].to_series()
        frame["scale"] = scale.reindex(frame.index).fillna(1.0)
    return frame.loc[strength(frame).sort_values(ascending=False, kind="stable").index]


def strength(frame: pd.DataFrame) -> pd.Series:
    """How large each term is in units of its sd; a point without sd counts by its size alone."""
    return frame["mean"].abs() / frame["sd"].where(frame["sd"] > 0, 1.0)


def kept_of(fit: StoredFit) -> tuple[int, int, str] | None:
    """How many were kept, of how many, and of what: terms, or directions of a one-step method."""
    if fit.evidence is None:
        return None
    if "kept" in fit.evidence:
        return int(fit.evidence["kept"].sum()), fit.evidence.sizes["basis"], "terms"
    directions = fit.evidence["relevant"]
    return int(directions.sum()), int(directions.size), "directions"


def prior_of(fit: StoredFit) -> tuple[str, str]:
    """The prior of the precisions and the width of the slab, in words; empty where the tree does not say."""
    said = {**(fit.evidence.attrs if fit.evidence is not None else {}), **fit.attributes}
    hyper = [float(value) for value in np.ravel(said.get("hyper", ()))]
    slab = f"slab {float(said['slab']):g}" if "slab" in said else "no slab"
    if fit.settings.get("model") == "horseshoe":
        return "horseshoe", slab
    if len(hyper) != 2:
        return "", ""
    return f"Gamma({hyper[0]:g}, {hyper[1]:g})" if any(hyper) else "flat", slab


def known_terms(fits: list[StoredFit]) -> dict[str, str]:
    """Names of terms by those of their parameters ("w[age]": "age"), over all fits."""
    names = {
        str(name)
        for fit in fits
        if fit.evidence is not None and "basis" in fit.evidence.coords
        for name in fit.evidence["basis"].to_numpy().tolist()
    }
    known: dict[str, str] = {}
    for fit in fits:
        vectors: dict[str, Any] = fit.settings.get("vectors", {})
        for vector, (_, labels) in vectors.items():
            for label in labels:
                whole = f"{vector}[{label}]"
                known[whole] = whole if whole in names or (len(vectors) > 1 and str(label) not in names) else str(label)
    return known


def _from_moments(fit: StoredFit) -> pd.DataFrame:
    evidence = fit.evidence
    if evidence is None or "mean" not in evidence:
        return _frame([], [], [], [], [])
    mean, sd = evidence["mean"].to_numpy(), evidence["sd"].to_numpy()
    kept = slice(None) if fit.by_direction else evidence["kept"].to_numpy()  # no weight is pruned there
    names, mean, sd = evidence["basis"].to_numpy()[kept], mean[kept], sd[kept]
    return _frame(names, mean, sd, mean - _WIDE * sd, mean + _WIDE * sd)


def _from_draws(fit: StoredFit, known: dict[str, str]) -> pd.DataFrame:
    chosen = {name: values for name, values in fit.draws.items() if name in known} or dict(fit.draws)
    if not chosen:
        return _frame([], [], [], [], [])
    stacked = np.stack([values.ravel() for values in chosen.values()])
    low, high = np.quantile(stacked, [0.025, 0.975], axis=1)
    names = [known.get(name, name) for name in chosen]
    return _frame(names, stacked.mean(axis=1), stacked.std(axis=1, ddof=1), low, high)


def _frame(names: Any, mean: Any, sd: Any, low: Any, high: Any) -> pd.DataFrame:
    columns = {"mean": mean, "sd": sd, "low": low, "high": high, "scale": np.ones(len(names))}
    return pd.DataFrame(columns, index=pd.Index(names, name="term", dtype=object), dtype=float)
