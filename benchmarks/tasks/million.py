"""A million rows of counts, p = 50: it runs, and time and memory grow in proportion to n."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.clock import peak_bytes, race
from benchmarks.peers import kept, ours
from benchmarks.report import Row
from benchmarks.tasks.wide import counts

SIZES = (250_000, 500_000, 1_000_000)
P, TRUE = 50, 5
MOST, STEEPEST = 20, 1.1


def run(say: Callable[[str], None], seeds: int = 5) -> list[Row]:
    """One row a size over all seeds, then the exponents of medians.

    A column that a fit keeps by chance costs it passes over all rows, at whatever size that happens: so there are
    several seeds, and beside all fits stand those that keep the true columns alone.
    """
    found = []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((max(SIZES), P))
        w = np.zeros(P)
        w[:TRUE] = [0.1, -0.1, 0.08, -0.06, 0.05]
        y = rng.poisson(np.exp(0.5 + X @ w))
        if not seed:
            ours(X[:1000], y[:1000], likelihood="poisson")()  # compiles, so that it is not measured at the first size
        for n in SIZES:
            say(f"seed {seed}, n = {n:,}")
            found.append({"n": n, "seed": seed} | _one(X[:n], y[:n], w != 0))
    table = {name: np.array([one[name] for one in found]) for name in found[0]}
    return [*(_at_size(table, n) for n in SIZES), _growth(table)]


def _one(X: np.ndarray, y: np.ndarray, relevant: np.ndarray) -> dict[str, float]:
    fit = ours(X, y, likelihood="poisson")
    seconds, results = race({"ours": fit, "floor": lambda: X.T @ X}, repeats=3)
    evidence = results["ours"]["evidence"]
    return (
        seconds
        | counts(kept(results["ours"]), relevant)
        | {"peak": peak_bytes(fit), "evidence": float(evidence["log_evidence"])}
        | {"done": float(evidence.attrs["status"] == "converged")}
    )


def _at_size(table: dict[str, np.ndarray], n: int) -> Row:
    own = {name: values[table["n"] == n] for name, values in table.items()}
    ratio, peak = own["ours"] / own["floor"], own["peak"] / 2**20
    quality: dict[str, float | str] = {
        "missed": float(own["missed"].mean()),
        "false": f"{own['false'].mean():.1f}, at most {own['false'].max():.0f}",
        "slowest seed": f"{ratio.max():.1f} x X'X",
        "peak memory": f"{np.median(peak):.0f} MB, at most {peak.max():.0f} (X has {8 * n * P / 2**20:.0f})",
        "log evidence, seed 0": float(own["evidence"][0]),
    }
    met = bool(own["done"].all() and ratio.max() <= MOST)
    times = {"seconds": float(np.median(own["ours"])), "floor_seconds": float(np.median(own["floor"]))}
    case = f"poisson, n = {n:,}, p = {P}, {len(ratio)} seeds"
    return Row("million", case, f"converged, {MOST} x X'X", met, floor="X'X", **times, quality=quality)


def _growth(table: dict[str, np.ndarray]) -> Row:
    every = np.ones(len(table["n"]), dtype=bool)
    medians = _exponents(table, every)
    by_seed = [_exponents(table, table["seed"] == seed) for seed in np.unique(table["seed"])]
    steepest = np.max(by_seed, axis=0)
    quality: dict[str, float | str] = {
        "time ~ n^": medians[0],
        "memory ~ n^": medians[1],
        "steepest seed": f"{steepest[0]:.2f} and {steepest[1]:.2f}",
        "X'X ~ n^": medians[2],
    }
    plain = table["false"] + table["missed"] == 0
    if all(plain[table["n"] == n].any() for n in SIZES):
        alone = _exponents(table, plain)
        quality["true columns alone"] = f"{alone[0]:.2f} and {alone[1]:.2f}"
    met = max(medians[:2]) <= STEEPEST
    return Row("million", "growth with n", f"exponents of medians at most {STEEPEST}", met, quality=quality)


def _exponents(table: dict[str, np.ndarray], which: np.ndarray) -> list[float]:
    """Of time, peak memory and the floor's time, each by its medians over the fits chosen."""
    logs = {
        name: [np.log(np.median(table[name][which & (table["n"] == n)])) for n in SIZES]
        for name in ("ours", "peak", "floor")
    }
    return [float(np.polyfit(np.log(SIZES), values, 1)[0]) for values in logs.values()]
