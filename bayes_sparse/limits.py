"""How much a result may store."""

from __future__ import annotations

import logging

__all__ = ["small_enough"]

LARGEST_LOG_LIKELIHOOD = 200 * 2**20  # bytes
_log = logging.getLogger("bayes_sparse")


def small_enough(need: int, what: str = "The pointwise log-likelihood") -> bool:
    """Whether something of so many bytes is stored; a message says so if it is not."""
    if need <= LARGEST_LOG_LIKELIHOOD:
        return True
    _log.info("%s would take %.0f MB and is left out; ask for fewer draws to have it.", what, need / 2**20)
    return False
