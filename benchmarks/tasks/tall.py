"""Tall regression, n = 1e5, p = 100, 10 true features, against ARDRegression; no second copy of X."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import bayes_sparse as bs
from benchmarks.clock import peak_bytes, race
from benchmarks.peers import ard_regression, kept, ours
from benchmarks.report import Row
from benchmarks.tasks.wide import counts


def run(say: Callable[[str], None], seeds: int = 3) -> list[Row]:
    """One row over all seeds: median times, the worst seed's false features, the largest share of memory."""
    found = []
    for seed in range(seeds):
        say(f"seed {seed}")
        found.append(_one(seed))
    table = {name: np.array([f[name] for f in found]) for name in found[0]}
    ratio = float(np.median(table["ours"] / table["peer"]))
    met = ratio <= 1 and table["false"].max() <= 2 and table["memory"].max() < 1
    quality: dict[str, float | str] = {
        "median ratio": ratio,
        "missed": f"{table['missed'].mean():.1f} (ARDRegression {table['peer missed'].mean():.1f})",
        "false": f"{table['false'].mean():.1f} (ARDRegression {table['peer false'].mean():.1f})",
        "peak memory": f"{table['memory'].max():.0%} of X (ARDRegression {table['peer memory'].max():.0%})",
        "log evidence": float(table["evidence"].mean()),
    }
    seconds = {name: float(np.median(table[name])) for name in ("ours", "peer", "floor")}
    return [
        Row(
            "tall",
            f"1e5 x 100, 10 true, noise 1, {seeds} seeds",
            "not slower, 2 false, no copy of X",
            bool(met),
            seconds["ours"],
            "ARDRegression",
            seconds["peer"],
            "X'X",
            seconds["floor"],
            quality,
        )
    ]


def _one(seed: int) -> dict[str, float]:
    data = bs.datasets.sparse_linear(100_000, 100, 10, noise=1.0, signal=0.5, random_seed=seed)
    X, fit, peer = data.X, ours(data.X, data.y), ard_regression(data.X, data.y)
    seconds, results = race({"ours": fit, "peer": peer, "floor": lambda: X.T @ X}, repeats=3)
    other = counts(results["peer"].coef_ != 0, data.relevant)
    return (
        seconds
        | counts(kept(results["ours"]), data.relevant)
        | {f"peer {name}": value for name, value in other.items()}
        | {"memory": peak_bytes(fit) / X.nbytes, "peer memory": peak_bytes(peer) / X.nbytes}
        | {"evidence": float(results["ours"]["evidence"]["log_evidence"])}
    )
