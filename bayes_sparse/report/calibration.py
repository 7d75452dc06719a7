"""Numbers that say whether predictions are calibrated: reliability of probabilities, ranks of observations."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import beta

from bayes_sparse.problem.design import FloatArray

__all__ = ["band", "coverage", "ranks", "reliability"]

_BINS = 10


def reliability(truth: NDArray[np.bool_], probability: FloatArray, bins: int = _BINS) -> pd.DataFrame:
    """Observed frequency by predicted probability, in bins of equal counts.

    Returns
    -------
    DataFrame
        Mean probability, frequency and the ends of its 90% interval (Jeffreys), and the size of every bin.
    """
    order = np.argsort(probability, kind="stable")
    rows = []
    for some in np.array_split(order, min(bins, max(len(order) // 5, 1))):
        n, hits = len(some), int(truth[some].sum())
        ends = [float(beta.ppf(level, hits + 0.5, n - hits + 0.5)) for level in (0.05, 0.95)]
        rows.append((float(probability[some].mean()), hits / n, *ends, n))
    return pd.DataFrame(rows, columns=["probability", "frequency", "low", "high", "n"])


def ranks(y: FloatArray, drawn: FloatArray, weights: FloatArray | None = None) -> FloatArray:
    """Where each observation lies among its draws (draws, rows), from 0 to 1: uniform if these are calibrated.

    Ties, as of counts, are broken by chance, so that counts are uniform too. ``weights`` of the same shape, which sum
    to 1 over the draws, count a draw for more or less than the others.
    """
    share = np.full(drawn.shape, 1 / len(drawn)) if weights is None else weights
    below, same = np.sum(share * (drawn < y), axis=0), np.sum(share * (drawn == y), axis=0)
    u = np.random.default_rng(0).uniform(size=len(y))
    own = 1 / (len(drawn) + 1)  # the observation is one of them, so that no rank is 0 or 1
    return np.asarray((1 - own) * (below + u * same) + own * u)


def coverage(rank: FloatArray, levels: tuple[float, ...] = (0.5, 0.9, 0.95)) -> dict[float, float]:
    """How many observations lie in the central interval of each level."""
    return {level: float(np.mean(np.abs(rank - 0.5) <= level / 2)) for level in levels}


def band(n: int, level: float = 0.95) -> float:
    """How far the distribution function of n uniform values may be from the diagonal, anywhere (Massart 1990)."""
    return float(np.sqrt(np.log(2 / (1 - level)) / (2 * n)))
