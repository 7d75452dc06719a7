"""How long, and how much memory: the best of several repetitions, contestants taking turns."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Mapping
from typing import Any

now = time.perf_counter


def use_processor_time() -> None:
    """Count only the time this process was running: wall time on a shared machine measures the others too."""
    global now
    now = time.process_time


def race(contestants: Mapping[str, Callable[[], Any]], repeats: int = 5) -> tuple[dict[str, float], dict[str, Any]]:
    """Best seconds and last result of each contestant.

    They take turns, so that a slow moment of the machine meets all of them, after one round that does not count.
    """
    best = dict.fromkeys(contestants, float("inf"))
    results: dict[str, Any] = {}
    for turn in range(repeats + 1):
        for name, call in contestants.items():
            start = now()
            results[name] = call()
            if turn:
                best[name] = min(best[name], now() - start)
    return best, results


def seconds(call: Callable[[], Any], repeats: int = 5) -> float:
    """Best seconds of one call, after one that does not count."""
    return race({"": call}, repeats)[0][""]


def once(call: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds and result of one call: for what takes too long to be repeated."""
    start = now()
    result = call()
    return now() - start, result


def peak_bytes(call: Callable[[], Any]) -> int:
    """Most memory that Python and numpy held at once during a call, beyond what they held before."""
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        call()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
