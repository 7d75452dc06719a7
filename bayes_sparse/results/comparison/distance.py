"""How far apart two marginals are."""

from __future__ import annotations

import numpy as np
import pandas as pd

from bayes_sparse.problem.design import FloatArray
from bayes_sparse.results.comparison.marginals import Marginals

__all__ = ["differences", "overlap", "wasserstein"]

_MOST = 4000  # values of a parameter that two marginals are compared by
_TOGETHER = 4_000_000  # the same over all parameters
_BINS = 16  # equally likely in both samples together


def differences(own: Marginals, reference: Marginals) -> pd.DataFrame:
    """A row a parameter, for two marginals of the same parameters in the same order.

    The unit of differences is the reference's sd, and the tree's own where the reference has pruned the parameter.
    """
    unit = np.where(reference.sd > 0, reference.sd, own.sd)
    mcse = np.hypot(own.mcse, reference.mcse)
    a, b = (side.sample(_size(own, reference)) for side in (own, reference))
    with np.errstate(divide="ignore", invalid="ignore"):
        table = pd.DataFrame(
            {
                "mean": own.mean,
                "sd": own.sd,
                "reference_mean": reference.mean,
                "reference_sd": reference.sd,
                "difference": (own.mean - reference.mean) / unit,
                "mcse": mcse / unit,
                "sd_ratio": own.sd / reference.sd,
                "overlap": overlap(a, b),
                "wasserstein": wasserstein(a, b) / unit,
            },
            index=pd.Index(own.names, name="parameter"),
        )
    points = unit == 0
    table.loc[points, "mcse"] = 0.0
    table.loc[points & (own.mean == reference.mean), ["difference", "wasserstein"]] = 0.0  # in the same place
    return table


def _size(own: Marginals, reference: Marginals) -> int:
    """How many values of each parameter are compared; a multiple of the bins."""
    counts = [len(side.draws) for side in (own, reference) if side.draws is not None and not side.normal.all()]
    size = min(*counts, _MOST, max(_TOGETHER // max(len(own.names), 1), 500)) if counts else _MOST // 4
    return max(size // _BINS, 1) * _BINS


def overlap(a: FloatArray, b: FloatArray) -> FloatArray:
    """Area that two densities share, from sorted samples (K, S) of equal size S.

    A histogram over bins that are equally likely in both samples together. Chance takes sqrt(bins / (pi S)) off the 1
    of equal densities. A point shares nothing with a density.
    """
    size = a.shape[1]
    from_a = np.argsort(np.concatenate([a, b], axis=1), axis=1, kind="stable") < size
    in_bin = from_a.reshape(len(a), _BINS, 2 * size // _BINS).sum(axis=2)
    shared = np.minimum(in_bin, 2 * size // _BINS - in_bin).sum(axis=1) / size
    points = (a[:, 0] == a[:, -1]) | (b[:, 0] == b[:, -1])
    together = points & (a[:, 0] == b[:, 0]) & (a[:, -1] == b[:, -1])
    unknown = np.isnan(a).any(axis=1) | np.isnan(b).any(axis=1)
    return np.where(unknown, np.nan, np.where(points, together.astype(float), shared))


def wasserstein(a: FloatArray, b: FloatArray) -> FloatArray:
    """Mean distance that the one has to be moved to become the other, from sorted samples (K, S) of equal size."""
    return np.asarray(np.abs(a - b).mean(axis=1))
