"""Shape features and pixels as named columns: some are of one class's own, some are shared by all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_sparse.problem.design import column_moments
from studies.contours import FloatArray

__all__ = ["NUMBERS", "Columns", "pixel_columns", "pooled", "shape_columns"]

NUMBERS = ("context", "patch")  # what a contour point gives


@dataclass(frozen=True, eq=False)
class Columns:
    """Columns side by side.

    Attributes
    ----------
    matrix : array (n, K)
        All rows of them.
    names : list of str
        All different.
    owners : list
        The class whose own a column is; None for one that all classes share.
    """

    matrix: FloatArray
    names: list[str]
    owners: list[Any]

    def tables(self, rows: NDArray[np.bool_], labels: list[Any]) -> Any:
        """Some rows as `bayes_sparse.fit` takes them: by class, or one table if no class has columns of its own."""
        frame = pd.DataFrame(self.matrix[rows], columns=self.names)
        if not any(owner is not None for owner in self.owners):
            return frame
        own = {label: [owner is None or owner == label for owner in self.owners] for label in labels}
        return {label: frame.loc[:, mask] for label, mask in own.items()}


def shape_columns(values: FloatArray, labels: list[Any]) -> Columns:
    """Shape features (n, classes, points, 2), each of its class's own; the last index runs fastest."""
    n, _, points, _ = values.shape
    keys = [(label, i, number) for label in labels for i in range(points) for number in NUMBERS]
    names = [f"{label} {number} {i}" for label, i, number in keys]
    return Columns(values.reshape(n, -1), names, [label for label, _, _ in keys])


def pixel_columns(images: FloatArray, train: NDArray[np.bool_]) -> Columns:
    """Brightness of the pixels that are not constant in the training rows, shared by the classes."""
    pixels = images.reshape(len(images), -1)
    telling = np.flatnonzero(column_moments(pixels[train])[1] > 0)
    return Columns(pixels[:, telling], [f"pixel {j}" for j in telling.tolist()], [None] * len(telling))


def pooled(one: Columns, other: Columns) -> Columns:
    """Both together."""
    return Columns(np.hstack([one.matrix, other.matrix]), one.names + other.names, one.owners + other.owners)
