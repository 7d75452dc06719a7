"""The anchor of a class: the digit whose largest distance to the others of its class is smallest."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from studies.contours import FloatArray
from studies.matching import correspondence, describe
from studies.settings import ShapeSettings

__all__ = ["centre", "shape_distances", "spread"]


def spread(rows: NDArray[np.intp], size: int) -> NDArray[np.intp]:
    """At most ``size`` of some rows, evenly spread over them."""
    if len(rows) <= size:
        return rows
    return rows[np.arange(size) * len(rows) // size]


def shape_distances(candidates: FloatArray, others: FloatArray, settings: ShapeSettings) -> FloatArray:
    """Mean distance between matched contexts, with each candidate as the anchor of each other image.

    Parameters
    ----------
    candidates, others : array (m, rows, columns), array (n, rows, columns)
        Images; the same image may be in both.
    settings : ShapeSettings
        How they are compared.

    Returns
    -------
    array (m, n)
        Shape distances.
    """
    shapes = [describe(image, settings) for image in others]
    anchors = [describe(image, settings) for image in candidates]
    return np.array([[correspondence(anchor, digit, settings)[1].mean() for digit in shapes] for anchor in anchors])


def centre(distances: FloatArray) -> int:
    """The candidate whose largest distance is smallest; the first of equals."""
    return int(np.argmin(distances.max(axis=1)))
