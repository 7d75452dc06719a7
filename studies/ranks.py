"""Whether ranks are uniform: a true value among independent draws of its posterior is anywhere with the same chance.

The ranks of N data sets are counted in bins of equal size. Two tests look at the counts: chi-square at each bin by
itself, the other at the largest deviation of their running sum, which sees shifts and wrong widths sooner (Säilynoja,
Bürkner & Vehtari 2022, "Graphical test for discrete uniformity").
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, chisquare

from bayes_sparse.common.types import FloatArray, IntArray

__all__ = ["BINS", "Band", "band", "chi_square", "running_share", "running_test"]

BINS = 20
_SIMULATED = 100_000  # samples of uniform ranks: p-values down to 1e-5


def chi_square(ranks: IntArray, kept: int) -> float:
    """Probability of counts as uneven as these.

    Parameters
    ----------
    ranks : int array (N,)
        How many of ``kept`` draws lie below the true value, 0 to ``kept``.
    kept : int
        One less than a multiple of `BINS`.
    """
    return float(chisquare(_counts(ranks, kept)).pvalue)


def running_test(ranks: IntArray, kept: int) -> float:
    """Probability of a running share that leaves the diagonal as far as this one, anywhere."""
    limits = band(len(ranks))
    worst = limits.tails[np.cumsum(_counts(ranks, kept))[:-1], np.arange(BINS - 1)].min()
    return float((1 + np.sum(limits.smallest <= worst)) / (1 + len(limits.smallest)))


def running_share(ranks: IntArray, kept: int) -> FloatArray:
    """Share of the ranks up to the end of each bin but the last."""
    return np.asarray(np.cumsum(_counts(ranks, kept))[:-1] / len(ranks))


@dataclass(frozen=True, eq=False)
class Band:
    """Where the running share of N uniform ranks is.

    Attributes
    ----------
    places : array (BINS - 1,)
        Ends of the bins: what the share would be without chance.
    tails : array (N + 1, BINS - 1)
        Two-sided probability of a running count at one end alone.
    smallest : array
        The smallest of them, in each of many simulated samples.
    """

    places: FloatArray
    tails: FloatArray
    smallest: FloatArray

    def limits(self, coverage: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Shares between which a sample stays at all places at once, with at least this probability."""
        N = len(self.tails) - 1
        level = float(np.quantile(self.smallest, 1 - coverage))
        inside = self.tails > level
        return np.argmax(inside, axis=0) / N, (N - np.argmax(inside[::-1], axis=0)) / N


@cache
def band(N: int) -> Band:
    """The band of N ranks, by simulation with a seed of its own."""
    places = np.arange(1, BINS) / BINS
    count = np.arange(N + 1)[:, None]
    tails = np.minimum(1.0, 2 * np.minimum(binom.cdf(count, N, places), binom.sf(count - 1, N, places)))
    drawn = np.random.default_rng(0).multinomial(N, np.full(BINS, 1 / BINS), size=_SIMULATED)
    running = np.cumsum(drawn, axis=1)[:, :-1]
    return Band(places, tails, tails[running, np.arange(BINS - 1)].min(axis=1))


def _counts(ranks: IntArray, kept: int) -> NDArray[np.intp]:
    if (kept + 1) % BINS:
        raise ValueError(f"Ranks among {kept} draws do not fill {BINS} bins evenly: keep {BINS} k - 1 draws.")
    if np.any((ranks < 0) | (ranks > kept)):
        raise ValueError(f"A rank among {kept} draws is 0 to {kept}; got {ranks.min()} to {ranks.max()}.")
    return np.bincount(np.asarray(ranks) * BINS // (kept + 1), minlength=BINS)
