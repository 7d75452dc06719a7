"""Kernels on very many rows: time and memory where the matrix is made, and where it is computed in blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import bayes_sparse as bs
from benchmarks.clock import once, peak_bytes, seconds
from benchmarks.peers import kept, ours
from benchmarks.report import Row

SIZES, LARGE = (10_000, 20_000), 50_000
PART = 1000  # rows whose kernels are timed
MOST = 4 * 2**30  # bytes


def run(say: Callable[[str], None], seeds: int = 1, large: bool = False) -> list[Row]:
    """A row per size, and with ``large`` 50,000 rows; ``seeds`` is not used, for one fit takes long enough."""
    return [_row(n, say) for n in (*SIZES, *((LARGE,) if large else ()))]


def _row(n: int, say: Callable[[str], None]) -> Row:
    say(f"n = {n:,}")
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (n, 2))
    truth = np.sinc(np.linalg.norm(X, axis=1))
    basis = bs.basis.rbf(width=0.8)
    found: dict[str, Any] = {}

    def call() -> None:
        found["seconds"], found["tree"] = once(ours(X, truth + 0.1 * rng.standard_normal(n), basis=basis))

    peak = peak_bytes(call)
    tree = found["tree"]
    floor = n / PART * seconds(lambda: basis.matrix(X[:PART], X), repeats=2)
    quality: dict[str, float | str] = {
        "objective": float(tree["evidence"]["objective"]),
        "kept": float(kept(tree).sum()),
        "peak memory": f"{peak / 2**30:.2f} GiB (the matrix: {8 * n * n / 2**30:.1f})",
        "RMSE to truth": float(np.sqrt(np.mean((bs.predict(tree, X[:PART])["mean"] - truth[:PART]) ** 2))),
        "status": tree["evidence"].attrs["status"],
    }
    times = {"seconds": found["seconds"], "floor": "kernel matrix", "floor_seconds": floor}
    return Row("kernels", f"sinc of two features, n = {n:,}", "4 GiB", peak < MOST, **times, quality=quality)
