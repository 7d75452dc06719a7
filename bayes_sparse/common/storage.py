"""How much a result may store, and how much may be computed only to judge it."""

from __future__ import annotations

import logging

__all__ = ["quick_enough", "small_enough"]

LARGEST_LOG_LIKELIHOOD = 200 * 2**20  # bytes
MOST_LOG_DENSITIES = 5 * 10**7  # three seconds
_log = logging.getLogger("bayes_sparse")


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
