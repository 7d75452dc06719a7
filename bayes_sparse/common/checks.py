"""What is refused or left out: settings that are no numbers, results too large to store or too slow to judge."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np

__all__ = ["check_search", "count", "positive", "quick_enough", "small_enough"]

_log = logging.getLogger("bayes_sparse")


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


LARGEST_LOG_LIKELIHOOD = 200 * 2**20  # bytes
MOST_LOG_DENSITIES = 5 * 10**7  # three seconds


def small_enough(need: int, what: str = "The pointwise log-likelihood") -> bool:
    """Whether something of so many bytes is stored; a message says so if it is not."""
    if need <= LARGEST_LOG_LIKELIHOOD:
        return True
    _log.info("%s would take %.0f MB and is left out; ask for fewer draws to have it.", what, need / 2**20)
    return False


def quick_enough(values: int) -> bool:
    """Whether so many log densities of observations are evaluated to judge a fit; a message says so if not."""
    if values <= MOST_LOG_DENSITIES:
        return True
    _log.info(
        "The exact posterior is not evaluated at %.0f million pairs of a draw and an observation, so bs.diagnose has "
        "nothing to judge by; ask for fewer draws to have it.",
        values / 10**6,
    )
    return False
