"""Points along the outline of a grey image: where the brightness, interpolated between pixels, crosses a level."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from contourpy import contour_generator
from numpy.typing import NDArray

__all__ = ["Contour", "FloatArray", "contour"]

type FloatArray = NDArray[np.float64]

_REACH = 1.0  # pixels along the contour, to either side of a point, over which its tangent is taken


@dataclass(frozen=True)
class Contour:
    """Points of an outline.

    Attributes
    ----------
    points : array (n, 2)
        Column and row, in pixels; the middle of the first pixel is (0, 0).
    tangents : array (n,)
        Direction in which the outline runs there, an angle. The inside is always on the same hand.
    """

    points: FloatArray
    tangents: FloatArray


def contour(image: FloatArray, points: int, level: float) -> Contour:
    """Points equally spaced along all outlines of an image, outer and inner ones together.

    Parameters
    ----------
    image : array (rows, columns)
        Brightness, zero where there is nothing.
    points : int
        How many points.
    level : float
        Height of the contour, as a part of the brightest pixel.

    Returns
    -------
    Contour
        Neighbours on the same outline are the same length apart along it, total length / points.
    """
    top = float(image.max())
    if not (np.isfinite(top) and top > 0):
        raise ValueError("A blank image has no outline; leave it out.")
    # A frame of nothing closes every outline, also that of a shape that touches the border.
    lines = [np.array(line, dtype=np.float64) for line in contour_generator(z=np.pad(image, 1)).lines(level * top)]
    steps = [np.hypot(*np.diff(line, axis=0).T) for line in lines]
    ends = np.cumsum([step.sum() for step in steps])
    along = (np.arange(points) + 0.5) * (ends[-1] / points)
    # The first outline that ends beyond a point is the one it is on.
    which = np.searchsorted(ends[:-1], along, side="right")
    parts = [
        _at(line, step, along[which == i] - (ends[i] - step.sum()))
        for i, (line, step) in enumerate(zip(lines, steps, strict=True))
    ]
    return Contour(np.concatenate([p for p, _ in parts]) - 1.0, np.concatenate([t for _, t in parts]))


def _at(line: FloatArray, steps: FloatArray, along: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Points and tangents at given lengths along one closed outline."""
    lengths = np.concatenate([[0.0], np.cumsum(steps)])

    def place(where: FloatArray) -> FloatArray:
        return np.stack([np.interp(where, lengths, line[:, 0]), np.interp(where, lengths, line[:, 1])], axis=1)

    chord = place((along + _REACH) % lengths[-1]) - place((along - _REACH) % lengths[-1])
    return place(along), np.arctan2(chord[:, 1], chord[:, 0])
