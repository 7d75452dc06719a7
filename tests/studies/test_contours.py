"""Points on the level set, equally spaced along all of it."""

import numpy as np
import pytest
from scipy.ndimage import map_coordinates

from studies.contours import contour

from .drawings import bar, disc, ring, scrawls

DRAWINGS = {
    "disc": disc(),
    "ring": ring(),
    "two": disc(7, 8, 4) + disc(19, 18, 5),
    "border": disc(0, 13, 6),
    "corner": bar(0, 0, 5, 9),
    "whole": np.full((28, 28), 200.0),
    "one pixel": bar(3, 4, 4, 5),
    "scrawl": scrawls(1)[0][0],
}
every = pytest.mark.parametrize("name", DRAWINGS)


def brightness(image, points):
    """Along an edge between two pixels the level set is exact; inside a square it is a chord."""
    return map_coordinates(np.pad(image, 1), [points[:, 1] + 1, points[:, 0] + 1], order=1)


@every
def test_there_are_as_many_points_as_asked_for(name):
    for n in (2, 37, 100):
        found = contour(DRAWINGS[name], n, 0.5)
        assert found.points.shape == (n, 2)
        assert found.tangents.shape == (n,)
        assert np.isfinite(found.points).all()
        assert np.isfinite(found.tangents).all()


def test_points_of_a_disc_lie_on_its_circle():
    for radius in (3.0, 7.0, 11.0):
        points = contour(disc(12.3, 14.1, radius), 100, 0.5).points
        away = np.hypot(points[:, 0] - 12.3, points[:, 1] - 14.1)
        np.testing.assert_allclose(away, radius, atol=0.15)


def test_points_lie_on_the_level_of_a_plane():
    """Brightness linear in the column: interpolation is exact and the level set a straight line."""
    image = np.tile(np.arange(28.0), (28, 1))
    points = contour(image, 300, 0.35).points
    inside = (points[:, 1] > 0) & (points[:, 1] < 27) & (points[:, 0] < 26.9)
    assert inside.sum() > 50
    np.testing.assert_allclose(points[inside, 0], 0.35 * 27, atol=1e-12)


@every
def test_points_are_near_the_level_between_pixels(name):
    image = DRAWINGS[name]
    points = contour(image, 100, 0.5).points
    on_edge = (np.abs(points - np.round(points)) < 1e-6).any(axis=1)
    np.testing.assert_allclose(brightness(image, points[on_edge]) / image.max(), 0.5, atol=1e-5)
    # Within a square of four pixels the chord strays from the curve, by at most a quarter of the range.
    assert np.abs(brightness(image, points) / image.max() - 0.5).max() < 0.25 + 1e-9


def test_points_are_equally_spaced_along_a_circle():
    points = contour(disc(radius=9.0), 100, 0.5).points
    gaps = np.hypot(*(np.roll(points, -1, axis=0) - points).T)
    np.testing.assert_allclose(gaps, 2 * np.pi * 9.0 / 100, rtol=0.05)


def test_spacing_is_exact_on_straight_sides():
    """A wide bar's outline has long straight sides; along them the chord is the arc."""
    n = 200
    points = contour(bar(4, 6, 24, 22), n, 0.5).points
    # Corners are cut at half a pixel: a rectangle of 20 by 16 whose four corners are diagonals.
    length = 2 * (19 + 15) + 4 * np.hypot(0.5, 0.5)
    step = np.roll(points, -1, axis=0) - points
    straight = (np.abs(step) < 1e-9).any(axis=1)
    assert straight.sum() > 0.9 * n
    np.testing.assert_allclose(np.hypot(*step[straight].T), length / n, rtol=1e-9)


def test_outer_and_inner_outlines_share_the_points_by_their_lengths():
    away = np.hypot(*(contour(ring(outer=9.0, inner=4.5), 99, 0.5).points - 13.5).T)
    assert (away > 7).sum() == pytest.approx(66, abs=1)
    assert ((away < 7) & (away > 4)).sum() == pytest.approx(33, abs=1)


def test_both_parts_of_an_image_have_points():
    points = contour(DRAWINGS["two"], 90, 0.5).points
    first = np.hypot(points[:, 0] - 7, points[:, 1] - 8) < 5
    assert first.sum() == pytest.approx(40, abs=1)


def test_a_shape_at_the_border_is_closed_there():
    points = contour(DRAWINGS["whole"], 100, 0.5).points
    assert points.min() == pytest.approx(-0.5)
    assert points.max() == pytest.approx(27.5)


def test_tangents_run_along_the_circle_with_the_inside_on_one_hand():
    for image, hand in ((disc(), 1.0), (255.0 - disc(), -1.0)):
        found = contour(image, 60, 0.5)
        around = found.points - 13.5
        near = np.hypot(*around.T) < 10  # not the frame of the second image
        outward = np.arctan2(around[near, 1], around[near, 0])
        side = np.sin(found.tangents[near] - outward)
        assert (np.abs(side) > 0.97).all()
        if hand > 0:
            first = np.sign(side[0])
        assert (np.sign(side) == hand * first).all()


def test_brightness_is_relative():
    np.testing.assert_allclose(contour(disc() / 255, 50, 0.5).points, contour(disc(), 50, 0.5).points, atol=1e-12)


@pytest.mark.parametrize("image", [np.zeros((28, 28)), np.full((28, 28), np.nan)], ids=["zeros", "nan"])
def test_a_blank_image_is_refused(image):
    with pytest.raises(ValueError, match="blank image"):
        contour(image, 100, 0.5)
