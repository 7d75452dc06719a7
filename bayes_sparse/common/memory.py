"""How much memory this machine has, and what is too much for it."""

from __future__ import annotations

import os

__all__ = ["check_fits", "fits", "physical_memory"]


def physical_memory() -> int:
    """In bytes."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # not known on this system: assume a laptop
        return 8 * 2**30


def fits(need: int) -> bool:
    """Whether so many bytes are at most half of the memory."""
    return need <= physical_memory() // 2


def check_fits(need: int, what: str, cure: str) -> None:
    """Refuse what does not fit, before anything is allocated."""
    if not fits(need):
        raise ValueError(
            f"{what} would take {need / 2**30:.1f} GiB, more than half of this machine's "
            f"{physical_memory() / 2**30:.1f} GiB: {cure}."
        )
