"""Tables 1 to 3 of Kropotov & Vetrov (2007), also those of Vetrov, Kropotov & Kurchin (2009): nine sets, 5 x 2 folds.

The papers choose a kernel's width by the errors on the very folds they report. Beside that stand widths chosen inside
the training half alone: by folds of it, and by evidence.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold

from bayes_sparse.common.progress import quiet
from bayes_sparse.common.types import FloatArray
from bayes_sparse.fitting.fit import fit
from bayes_sparse.inputs.basis import rbf
from bayes_sparse.results.predict.predict import predict
from studies.cells import Crew, Record
from studies.halves import REPEATS, checked, computed, features, halves, log_score

__all__ = ["METHODS", "OURS", "PROTOCOLS", "SETS", "WIDTHS", "cells_of", "chosen", "judged", "run"]

VERSION = 1  # of the steps: raise it when the same settings give other results
SETS = {
    "BUPA": "bupa",
    "heart": "heart_statlog",
    "hepatitis": "hepatitis",
    "votes": "house_votes_84",
    "WPBC": "wpbc",
    "contractions": "contractions",
    "laryngeal": "laryngeal1",
    "respiratory": "respiratory",
    "weaning": "weaning",
}
WIDTHS = (0.01, 0.1, 0.3, 0.6, 1.0, 2.0, 3.0, 5.0, 7.0, 10.0)
_REVM: dict[str, Any] = {"method": "revm", "slab": None}
_TEN_ROUNDS: dict[str, Any] = {"approximation": "variational", "steps": 10}
# Those of the papers as they have them, without our prices, slabs and expansions; then ours as they are by default.
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "RVM": ("ard_gaussian", {"smoothness": 0, "slab": None}),
    "GREVM": ("ard_gaussian", {**_REVM, "expansion": "ridge"}),
    "LREVM": ("laplace_eigen", {"expansion": "ridge"}),
    "VRVM": ("ard_gaussian", {"method": "variational", "tolerance": 1e-2, "max_iterations": 100}),
    "VGREVM": ("ard_gaussian", {**_REVM, **_TEN_ROUNDS}),
    "VLREVM": ("laplace_eigen", _TEN_ROUNDS),
    "RVM, default": ("ard_gaussian", {}),
    "GREVM, default": ("ard_gaussian", {"method": "revm"}),
    "LREVM, default": ("laplace_eigen", {}),
}
OURS = tuple(METHODS)[5:]  # not in the papers
_ISOTROPIC = "GREVM, default"  # its ridge's evidence chooses widths: it selects nothing, so that widths can be compared
PROTOCOLS = ("paper", "nested", "evidence")
_INNER = 2  # folds of a training half


def judged(name: str, method: str, width: float, squared: bool, repeat: int, half: int) -> Record:
    """One fit: what it predicts of the other half, what it keeps, and what folds of its own half say of the width.

    Those folds are left out for our defaults, which have their width by evidence.
    """
    X, y = features(SETS[name])
    train, test = halves(len(y), repeat, half)
    kernel = rbf(width, squared=squared)
    with quiet():
        _warm(method)
        found = _scored(method, kernel, X[train], y[train], X[test], y[test])
        return found if method in OURS else found | _inner(method, kernel, X[train], y[train], repeat)


@cache
def _warm(method: str) -> None:
    """A fit of the kind before those that are timed: what is compiled once in a process does not count."""
    x = np.linspace(-1, 1, 12)[:, None]
    _scored(method, rbf(1.0), x, np.arange(12) // 3 % 2, x, np.arange(12) // 3 % 2)


def _scored(method: str, kernel: rbf, X: FloatArray, y: NDArray[Any], new: FloatArray, new_y: NDArray[Any]) -> Record:
    model, settings = METHODS[method]
    start = time.thread_time()
    tree = fit(model, (X, y), likelihood="bernoulli", basis=kernel, draws=0, progressbar=False, **settings)
    seconds = time.thread_time() - start
    probability = predict(tree, new)["probability"].to_numpy()[:, 1]
    evidence = tree["evidence"].to_dataset()
    kept = evidence["relevant"] if "direction" in evidence.dims else evidence["kept"]
    return {
        "error": 100 * float(np.mean((probability > 0.5) != new_y)),
        "log_score": log_score(probability, new_y),
        "kept": int(kept.sum()),
        "seconds": seconds,
        "status": str(evidence.attrs["status"]),
        "log_evidence": float(evidence["log_evidence"]),
        "ridge_log_evidence": float(evidence.get("ridge_log_evidence", np.nan)),
    }


def _inner(method: str, kernel: rbf, X: FloatArray, y: NDArray[Any], repeat: int) -> Record:
    """Mean error and log score in folds of the training half; without numbers where a fold refuses the width."""
    folds = StratifiedKFold(_INNER, shuffle=True, random_state=repeat)
    found = []
    for fitted, held in folds.split(X, y):
        try:
            found.append(_scored(method, kernel, X[fitted], y[fitted], X[held], y[held]))
        except ValueError as refused:
            return {"inner_error": np.nan, "inner_log_score": np.nan, "inner_status": str(refused)}
    means = {f"inner_{name}": float(np.mean([one[name] for one in found])) for name in ("error", "log_score")}
    return {**means, "inner_status": "fitted"}


def cells_of(
    sets: Sequence[str] = tuple(SETS),
    methods: Sequence[str] = tuple(METHODS),
    widths: Sequence[float] = WIDTHS,
    repeats: int = REPEATS,
    squared: bool = True,
) -> pd.DataFrame:
    """What is to be computed: a row per cell, which is the call of `judged` with the columns' values.

    The methods of the papers come first, and with them the one that chooses widths.
    """
    checked(sets, SETS)
    checked(methods, METHODS)
    first = [method for method in methods if method not in OURS or method == _ISOTROPIC]
    rows = [
        {"set": name, "method": method, "width": width, "repeat": repeat, "half": half, "squared": squared}
        for group in (first, [method for method in methods if method not in first])
        for repeat in range(repeats)
        for name in sets
        for half in (0, 1)
        for method in group
        for width in widths
    ]
    return pd.DataFrame(rows)


def run(
    plan: pd.DataFrame, output: Path, crew: Crew | None = None, *, retry: bool = False, progressbar: bool = True
) -> pd.DataFrame:
    """All cells of a plan, each stored when it is done: `studies.halves.computed`."""
    names = ["set", "method", "width", "squared", "repeat", "half"]
    return computed(judged, plan[names], output, crew, version=VERSION, retry=retry, progressbar=progressbar)


def chosen(table: pd.DataFrame, protocol: str) -> pd.DataFrame:
    """The rows at the widths that a protocol chooses, one per set, method, halving and half.

    ``"paper"``: one width for a set and method, that of the least mean error on the rows tested; of equals, the one
    that keeps least. ``"nested"``: in each training half the width of the least error in folds of it; of equals, the
    one with the better log score. ``"evidence"``: in each training half the width of greatest evidence of an isotropic
    prior, the same for all methods.
    """
    usable = table.dropna(subset=["error"])
    fold = ["set", "method", "repeat", "half"]
    if protocol == "paper":
        # A width that some half refuses has no mean over all of them.
        by = usable.groupby(["set", "method", "width"], as_index=False).agg(
            error=("error", "mean"), kept=("kept", "mean"), fits=("error", "size")
        )
        by = by[by["fits"] == by["fits"].max()]
        best = by.sort_values(["error", "kept"]).drop_duplicates(["set", "method"])
        return usable.merge(best[["set", "method", "width"]], on=["set", "method", "width"])
    if protocol == "nested":
        inner = usable.dropna(subset=["inner_error"])
        best = inner.sort_values(["inner_error", "inner_log_score"], ascending=[True, False]).drop_duplicates(fold)
        return best.sort_index()
    ridge = usable[usable["method"] == _ISOTROPIC].sort_values("ridge_log_evidence", ascending=False)
    best = ridge.drop_duplicates(["set", "repeat", "half"])[["set", "repeat", "half", "width"]]
    return usable.merge(best, on=["set", "repeat", "half", "width"])
