"""How many cores there are to share work among."""

from __future__ import annotations

import os

__all__ = ["cores"]


def cores() -> int:
    """Cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on this system
        return os.cpu_count() or 1
