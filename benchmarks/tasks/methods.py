"""EM, MacKay and sequential on the same problems: evidences side by side, and an objective that never falls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import bayes_sparse as bs
from benchmarks.clock import race
from benchmarks.peers import kept, ours
from benchmarks.report import Row

METHODS = ("sequential", "mackay", "em")


def run(say: Callable[[str], None], seeds: int = 1) -> list[Row]:
    """One row a problem, price of a degree of freedom and method; ``seeds`` is the number of repetitions."""
    rows = []
    for case, X, y, settings in _problems():
        for smoothness in ("auto", 0):
            for method in METHODS:
                say(f"{case}, {method}, smoothness {smoothness}")
                chosen = {**settings, "method": method, "smoothness": smoothness}
                rows.append(_row(f"{case}, smoothness {smoothness}, {method}", X, y, chosen, seeds))
    return rows


def _problems() -> list[tuple[str, Any, Any, dict[str, Any]]]:
    sinc = bs.datasets.sinc(100, 0.2, random_seed=0)
    table = bs.datasets.load("wdbc")
    wide = bs.datasets.sparse_linear(200, 500, 10, random_seed=0)
    return [
        ("sinc n = 100, rbf width 2", sinc.X, sinc.y, {"basis": bs.basis.rbf(2.0)}),
        ("WDBC linear", table.drop(columns="target").to_numpy(float), table["target"].to_numpy(), {}),
        ("wide 200 x 500", wide.X, wide.y, {}),
    ]


def _row(case: str, X: Any, y: Any, settings: dict[str, Any], repeats: int) -> Row:
    seconds, results = race({"ours": ours(X, y, **settings)}, repeats)
    evidence = results["ours"]["evidence"]
    history = evidence["history"].to_numpy()
    worst = float(np.diff(history).min(initial=0.0))
    quality = {
        "log evidence": float(evidence["log_evidence"]),
        "objective": float(evidence["objective"]),
        "kept": float(kept(results["ours"]).sum()),
        "iterations": float(evidence.attrs["n_iterations"]),
        "largest fall": worst,
        "status": evidence.attrs["status"],
    }
    # Rounding error of a sum of this size is all that a fall may be.
    met = worst >= -1e-9 * max(1.0, float(np.abs(history).max()))
    return Row("methods", case, "objective never falls", met, seconds["ours"], quality=quality)
