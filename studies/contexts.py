"""Shape contexts: how the other points of a shape lie around each of them (Belongie, Malik & Puzicha, 2002)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from studies.contours import FloatArray

__all__ = ["Counts", "context_distances", "mean_distance", "shape_contexts"]

type Counts = NDArray[np.float32]  # whole numbers, which float32 holds exactly


def mean_distance(points: FloatArray) -> float:
    """Mean distance between two different points: the unit of length of a shape."""
    n = len(points)
    apart = points[:, None] - points
    return float(np.hypot(apart[..., 0], apart[..., 1]).sum() / (n * (n - 1)))


def shape_contexts(points: FloatArray, radial: int, angular: int, inner: float, outer: float) -> Counts:
    """Log-polar histograms of the other points as seen from each point.

    Parameters
    ----------
    points : array (n, 2)
        Points in units of their `mean_distance`, so that contexts do not depend on the size of a shape.
    radial, angular : int
        Number of rings and of sectors.
    inner, outer : float
        Radius of the innermost ring and of the last one; between them radii grow by a constant factor. What is
        further away than the last ring counts as in it.

    Returns
    -------
    array (n, radial * angular)
        Counts, n - 1 in total in every row.
    """
    n, bins = len(points), radial * angular
    apart = points - points[:, None]
    radius = np.hypot(apart[..., 0], apart[..., 1])
    ring = np.minimum(np.searchsorted(np.geomspace(inner, outer, radial), radius), radial - 1)
    turn = np.arctan2(apart[..., 1], apart[..., 0]) / (2 * np.pi) + 0.5
    sector = np.floor(turn * angular).astype(np.int64) % angular
    cell = np.arange(n)[:, None] * bins + ring * angular + sector
    others = cell[~np.eye(n, dtype=bool)]
    return np.bincount(others, minlength=n * bins).reshape(n, bins).astype(np.float32)


def context_distances(one: Counts, other: Counts) -> FloatArray:
    """Chi-squared distances between all contexts of two shapes, ½ Σ (a - b)² / (a + b) of their proportions.

    Parameters
    ----------
    one, other : array (n, bins), array (m, bins)
        Contexts with the same total in every row.

    Returns
    -------
    array (n, m)
        Between 0, the same context, and 1, no bin in common.
    """
    total = np.zeros((len(one), len(other)), dtype=np.float32)
    top, below = np.empty_like(total), np.empty_like(total)
    # Bin by bin in place: an array of all pairs and bins does not fit in the processor's cache and takes twice as long.
    for a, b in zip(np.ascontiguousarray(one.T), np.ascontiguousarray(other.T), strict=True):
        np.subtract.outer(a, b, out=top)
        np.square(top, out=top)
        np.add.outer(a, b, out=below)
        np.maximum(below, 1.0, out=below)  # counts: a sum below one is zero, and so is the difference
        top /= below
        total += top
    return total.astype(np.float64) / (2.0 * float(one[0].sum()))
