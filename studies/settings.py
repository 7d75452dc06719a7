"""How shapes are described and compared."""

from __future__ import annotations

from dataclasses import dataclass

from bayes_sparse.common.checks import count, positive

__all__ = ["VERSION", "ShapeSettings"]

VERSION = 1  # of the algorithm: raise it when the same settings give other numbers, so that stored ones are left alone


@dataclass(frozen=True)
class ShapeSettings:
    """Settings of contours, contexts, matching and patches.

    Parameters
    ----------
    points : int
        Points along the contour of a shape.
    level : float
        Height of the contour, as a part of the brightest pixel.
    radial, angular : int
        Number of rings and of sectors of a context.
    inner, outer : float
        Radius of the innermost ring and of the last one, in units of the mean distance between points.
    position, tangent : float
        What a squared distance between the places of two points, and the angle between their tangents, add to the
        cost of matching them. Both help to find the right point; neither is in the features.
    patch : int
        Pixels along a side of the patch around a point; an odd number.
    blur : float
        Standard deviation of the blur of an image before patches are taken, in pixels.
    """

    points: int = 100
    level: float = 0.5
    radial: int = 5
    angular: int = 12
    inner: float = 0.125
    outer: float = 2.0
    position: float = 0.3
    tangent: float = 0.3
    patch: int = 5
    blur: float = 0.5

    def __post_init__(self) -> None:
        for name, least in (("points", 2), ("radial", 2), ("angular", 1), ("patch", 1)):
            count(name, getattr(self, name), least)
        positive("level", self.level, below=1.0)
        positive("outer", self.outer)
        positive("inner", self.inner, below=self.outer)
        for name in ("position", "tangent", "blur"):
            if getattr(self, name) != 0:
                positive(name, getattr(self, name))
        if self.patch % 2 == 0:
            raise ValueError(f"`patch` must be an odd number, so that a point is in its middle, got {self.patch}.")
