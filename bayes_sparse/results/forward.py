"""The order in which a greedy search would take up again the terms that a fit keeps.

The log posterior of a fit is ``b'w - w'Pw / 2`` with ``P = Sigma^-1`` and ``b = P mean``. With some terms S taken up
and the others at zero its maximum is worth ``b_S' P_SS^-1 b_S / 2`` nats; each step takes up the term, or the group of
them, that adds most. A size alone would put first whatever is large beside all the others; this puts first what is
worth most alone, and then what is worth most beside it.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

__all__ = ["taken_up"]


def taken_up(evidence: xr.Dataset, owner: pd.Series) -> pd.Series:
    """Gain of each group of kept terms when it is taken up, in nats, best first.

    Parameters
    ----------
    evidence : xarray.Dataset
        The group of that name of a fit with a posterior over the terms kept.
    owner : pandas.Series
        The group of each basis function, by its name. Coordinates that have none (a bias) are in from the start.
    """
    labels = evidence["coordinate"].to_numpy()
    factor = evidence["covariance_factor"].to_numpy()
    sd = np.sqrt(np.einsum("ij,ij->i", factor, factor))
    scaled = factor / sd[:, None]  # units do not matter to the order, but to rounding errors
    P = np.linalg.inv(scaled @ scaled.T)
    b = P @ (evidence["coordinate_mean"].to_numpy() / sd)
    groups: dict[object, list[int]] = {}
    start: list[int] = []
    inside = evidence["column"].to_numpy() < evidence.sizes["basis"]
    for position, (name, basis) in enumerate(zip(labels.tolist(), inside.tolist(), strict=True)):
        (groups.setdefault(owner[name], []) if basis else start).append(position)
    gains: dict[object, float] = {}
    at = start
    while True:
        b, P = _set_free(b, P, np.array(at, dtype=np.intp))
        if not groups:
            return pd.Series(gains, dtype=float)
        gain = {name: _worth(b, P, np.array(own)) for name, own in groups.items()}
        best = max(gain, key=lambda name: gain[name])
        gains[best], at = gain[best], groups.pop(best)


def _set_free(
    b: NDArray[np.float64], P: NDArray[np.float64], at: NDArray[np.intp]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The posterior of the others once some coordinates follow them: a Schur complement."""
    if not len(at):
        return b, P
    K = np.linalg.solve(P[np.ix_(at, at)], P[at])
    return b - K.T @ b[at], P - P[:, at] @ K


def _worth(b: NDArray[np.float64], P: NDArray[np.float64], at: NDArray[np.intp]) -> float:
    return 0.5 * float(b[at] @ np.linalg.solve(P[np.ix_(at, at)], b[at]))
