"""How much memory this machine has."""

from __future__ import annotations

import os

__all__ = ["physical_memory"]


def physical_memory() -> int:
    """In bytes."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # not known on this system: assume a laptop
        return 8 * 2**30
