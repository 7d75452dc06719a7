"""Which point of a digit corresponds to which point of an anchor, and how far they differ."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter, map_coordinates
from scipy.optimize import linear_sum_assignment

from studies.contexts import Counts, context_distances, mean_distance, shape_contexts
from studies.contours import FloatArray, contour
from studies.settings import ShapeSettings

__all__ = ["Shape", "correspondence", "describe", "differences"]


@dataclass(frozen=True)
class Shape:
    """What is compared of an image.

    Attributes
    ----------
    points : array (n, 2)
        Contour points, column and row in pixels.
    places : array (n, 2)
        The same around their mean, in units of the mean distance between them.
    tangents : array (n,)
        Angle of the contour at the points.
    contexts : array (n, bins)
        Shape contexts of the points, as counts.
    patches : array (n, patch²)
        The image around the points, as parts of its brightest pixel.
    """

    points: FloatArray
    places: FloatArray
    tangents: FloatArray
    contexts: Counts
    patches: FloatArray


def describe(image: FloatArray, settings: ShapeSettings) -> Shape:
    """Contour, contexts and patches of an image."""
    outline = contour(image, settings.points, settings.level)
    places = outline.points - outline.points.mean(axis=0)
    places /= mean_distance(places)
    contexts = shape_contexts(places, settings.radial, settings.angular, settings.inner, settings.outer)
    return Shape(outline.points, places, outline.tangents, contexts, _patches(image, outline.points, settings))


def correspondence(anchor: Shape, digit: Shape, settings: ShapeSettings) -> tuple[NDArray[np.intp], FloatArray]:
    """The one-to-one matching of points whose cost is least in total.

    Returns
    -------
    matched : array (n,)
        The digit's point for each point of the anchor.
    distance : array (n,)
        Chi-squared distance between the contexts of the two.
    """
    distance = context_distances(anchor.contexts, digit.contexts)
    _, matched = linear_sum_assignment(_cost(distance, anchor, digit, settings))
    return matched, distance[np.arange(len(matched)), matched]


def _cost(distance: FloatArray, anchor: Shape, digit: Shape, settings: ShapeSettings) -> FloatArray:
    apart = anchor.places[:, None] - digit.places
    between = anchor.tangents[:, None] - digit.tangents
    place = settings.position * (apart[..., 0] ** 2 + apart[..., 1] ** 2)
    return distance + place + settings.tangent * 0.5 * (1.0 - np.cos(between))


def differences(anchor: Shape, digit: Shape, settings: ShapeSettings) -> FloatArray:
    """The shape features of a digit against an anchor.

    Returns
    -------
    array (n, 2)
        For each point of the anchor the distance between its context and that of the matched point, and the sum of
        squared differences between the patches around the two.
    """
    matched, distance = correspondence(anchor, digit, settings)
    patches = ((anchor.patches - digit.patches[matched]) ** 2).sum(axis=1)
    return np.stack([distance, patches], axis=1)


def _patches(image: FloatArray, points: FloatArray, settings: ShapeSettings) -> FloatArray:
    """Square patches around points, interpolated between pixels; nothing lies beyond the border."""
    smooth = gaussian_filter(image / image.max(), settings.blur, mode="constant")
    side = np.arange(settings.patch) - settings.patch // 2
    rows = points[:, 1, None, None] + side[:, None] + np.zeros(settings.patch)
    columns = points[:, 0, None, None] + side + np.zeros((settings.patch, 1))
    found = map_coordinates(smooth, [rows, columns], order=1, mode="grid-constant")
    return np.asarray(found, dtype=np.float64).reshape(len(points), -1)
