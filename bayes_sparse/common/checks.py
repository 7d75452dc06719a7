"""Settings that are numbers, checked where they are given."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["check_search", "count", "positive"]


def count(name: str, value: Any, least: int) -> int:
    """A whole number, not too small."""
    if not _is_number(value) or int(value) != value or value < least:
        raise ValueError(f"`{name}` must be a whole number >= {least}, got {value!r}.")
    return int(value)


def positive(name: str, value: Any, below: float = np.inf) -> float:
    """A positive number, below a bound."""
    if not _is_number(value) or not 0 < value < below:
        upper = "" if np.isinf(below) else f" below {below:g}"
        raise ValueError(f"`{name}` must be a positive number{upper}, got {value!r}.")
    return float(value)


def check_search(max_iterations: Any, tolerance: Any = None) -> None:
    """Refuse limits of a search that are no limits; None is left to the method."""
    if max_iterations is not None:
        count("max_iterations", max_iterations, 1)
    if tolerance is not None and not (_is_number(tolerance) and tolerance > 0):
        raise ValueError(f"`tolerance` must be positive (in nats), got {tolerance}.")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool) and bool(np.isfinite(value))
