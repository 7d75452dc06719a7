"""A million rows of counts, p = 50: it runs, and time and memory grow in proportion to n."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.clock import peak_bytes, race, seconds
from benchmarks.peers import kept, ours
from benchmarks.report import Row
from benchmarks.tasks.wide import counts

SIZES = (250_000, 500_000, 1_000_000)
P, TRUE = 50, 5


def run(say: Callable[[str], None], seeds: int = 2) -> list[Row]:
    """One row a size, then the exponents; ``seeds`` is the number of repetitions."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((max(SIZES), P))
    w = np.zeros(P)
    w[:TRUE] = [0.1, -0.1, 0.08, -0.06, 0.05]
    y = rng.poisson(np.exp(0.5 + X @ w))
    relevant = w != 0
    ours(X[:1000], y[:1000], likelihood="poisson")()  # compiles, so that it is not measured at the first size
    rows, times, peaks = [], [], []
    for n in SIZES:
        say(f"n = {n:,}")
        fit = ours(X[:n], y[:n], likelihood="poisson")
        best, results = race({"ours": fit}, repeats=seeds)
        floor = seconds(lambda n=n: X[:n].T @ X[:n], repeats=2)
        times.append(best["ours"])
        peaks.append(peak_bytes(fit))
        tree = results["ours"]
        quality = {
            **counts(kept(tree), relevant),
            "peak memory": f"{peaks[-1] / 2**20:.0f} MB ({peaks[-1] / X[:n].nbytes:.0%} of X)",
            "log evidence": float(tree["evidence"]["log_evidence"]),
            "iterations": float(tree["evidence"].attrs["n_iterations"]),
            "status": tree["evidence"].attrs["status"],
        }
        case = f"poisson, n = {n:,}, p = {P}"
        times_of_row = {"seconds": best["ours"], "floor": "X'X", "floor_seconds": floor}
        rows.append(Row("million", case, "runs", True, **times_of_row, quality=quality))
    exponents = [float(np.polyfit(np.log(SIZES), np.log(values), 1)[0]) for values in (times, peaks)]
    quality = {"time ~ n^": exponents[0], "memory ~ n^": exponents[1]}
    rows.append(Row("million", "growth with n", "both exponents at most 1.1", max(exponents) <= 1.1, quality=quality))
    return rows
