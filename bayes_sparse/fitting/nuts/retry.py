"""Sampling that looks at its own chains, and goes on once where they fall short."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from bayes_sparse.fitting.nuts.declaration import Drawn
from bayes_sparse.inference.sampling import Sampling
from bayes_sparse.trees.chains import ChainHealth, health_of

__all__ = ["sample_well"]

_QUICK = 400  # draws a chain: who asks for fewer wants a quick look
_CLOSER = 4.0  # times as small a share of steps refused, after divergences
_MOST = 4  # times as many draws again at most
_log = logging.getLogger("bayes_sparse")


def sample_well(
    sample: Callable[[Sampling], Drawn], sampling: Sampling, *, retry: bool, unseen: Sequence[str] = ()
) -> tuple[Drawn, str]:
    """Draws, and what was done where the first ones were not enough; empty where they were.

    Draws that are too few, or chains that disagree, are gone on with: more draws follow those there are. Draws that
    diverged are not to be kept: all are drawn again with shorter steps. Where the user stops that, the first are left.
    What the user never sees need not be explored as well.
    """
    first = sample(sampling)
    health = _health(first, unseen) if retry and sampling.draws >= _QUICK and not first.stopped else None
    if health is None or not health.wrong:
        return first, ""
    more = replace(sampling, random_seed=None if sampling.random_seed is None else sampling.random_seed + 1)
    if health.divergences:
        more = replace(more, target_accept=1 - (1 - sampling.target_accept) / _CLOSER)
        said = f"all were drawn again, with target_accept {more.target_accept:.3g}"
    else:
        times = _times(health)
        more = replace(more, draws=times * sampling.draws)
        said = f"{more.draws} more were drawn in each chain"
    told = f"The first {sampling.draws} draws of each chain fell short ({'; '.join(health.wrong)}): {said}."
    _log.info(told)
    second = None
    with suppress(KeyboardInterrupt):
        second = sample(more)
    if second is None or second.stopped:
        return first._replace(stopped=True), ""
    return (second if health.divergences else first.extended(second)), told


def _times(health: ChainHealth) -> int:
    """How many times as many draws are likely to be enough, with some to spare."""
    fewest = max(min(health.ess_bulk_min, health.ess_tail_min), 1.0)
    return int(np.clip(np.ceil(2 * health.enough / fewest) - 1, 1, _MOST))


def _health(drawn: Drawn, unseen: Sequence[str]) -> ChainHealth:
    return health_of(drawn.posterior.drop_vars(unseen, errors="ignore"), drawn.stats)
