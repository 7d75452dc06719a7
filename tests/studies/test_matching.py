"""The cheapest matching against all permutations, and what the features of easy pairs must be."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

from studies.matching import correspondence, describe, differences
from studies.settings import ShapeSettings

from .drawings import disc, ring, scrawls

IMAGES, _ = scrawls(8, seed=3)
FEW = ShapeSettings(points=6)
ALL = ShapeSettings()


def cost(anchor, digit, settings, i, j):
    """What matching two points costs, from the definition."""
    a, b = anchor.contexts[i].astype(float), digit.contexts[j].astype(float)
    context = 0.5 * sum((p - q) ** 2 / (p + q) for p, q in zip(a, b, strict=True) if p + q) / a.sum()
    place = ((anchor.places[i] - digit.places[j]) ** 2).sum()
    angle = 0.5 * (1 - np.cos(anchor.tangents[i] - digit.tangents[j]))
    return context, context + settings.position * place + settings.tangent * angle


@pytest.mark.parametrize("settings", [FEW, replace(FEW, position=0.0, tangent=0.0), replace(FEW, position=5.0)])
def test_matching_is_the_best_of_all_permutations(settings):
    for one, other in zip(IMAGES[:4], IMAGES[4:], strict=True):
        anchor, digit = describe(one, settings), describe(other, settings)
        table = np.array([[cost(anchor, digit, settings, i, j) for j in range(6)] for i in range(6)])
        least = min(sum(table[i, j, 1] for i, j in enumerate(order)) for order in permutations(range(6)))
        matched, distance = correspondence(anchor, digit, settings)
        assert sorted(matched) == list(range(6))
        assert table[np.arange(6), matched, 1].sum() == pytest.approx(least, abs=1e-6)
        np.testing.assert_allclose(distance, table[np.arange(6), matched, 0], atol=1e-6)


@pytest.mark.parametrize("image", [*IMAGES[:2], ring(), disc(0, 13, 6)])
def test_a_digit_matched_to_itself_differs_by_nothing(image):
    shape = describe(image, ALL)
    matched, _ = correspondence(shape, shape, ALL)
    np.testing.assert_array_equal(matched, np.arange(100))
    np.testing.assert_array_equal(differences(shape, shape, ALL), np.zeros((100, 2)))


def test_a_digit_moved_by_whole_pixels_differs_by_nothing():
    moved = np.roll(IMAGES[1], (2, -1), axis=(0, 1))
    assert moved[:3].max() == moved[-3:].max() == 0  # nothing was carried around the edge
    found = differences(describe(IMAGES[1], ALL), describe(moved, ALL), ALL)
    # A rounding error may move a point across the edge of a bin, which is one count of 99 in two bins.
    assert np.median(found[:, 0]) < 1e-3
    np.testing.assert_allclose(found[:, 1], 0.0, atol=1e-3)


def test_brightness_does_not_matter():
    anchor = describe(IMAGES[0], ALL)
    one, other = (differences(anchor, describe(scale * IMAGES[1], ALL), ALL) for scale in (1.0, 2.0))
    np.testing.assert_array_equal(one, other)


def test_patches_are_sums_of_squared_differences():
    """Without blur, at a point in the middle of a pixel, a patch is the pixels around it."""
    settings = ShapeSettings(points=400, blur=0.0, patch=3)
    image = np.random.default_rng(0).uniform(0.0, 1.0, (9, 9))
    shape = describe(image, settings)
    padded = np.pad(image / image.max(), 3)

    def at(x, y):
        column, row = int(np.floor(x)), int(np.floor(y))
        u, v = x - column, y - row
        four = padded[row + 3 : row + 5, column + 3 : column + 5]
        return np.array([1 - v, v]) @ four @ np.array([1 - u, u])

    expected = [[at(x + i, y + j) for j in (-1, 0, 1) for i in (-1, 0, 1)] for x, y in shape.points]
    np.testing.assert_allclose(shape.patches, expected, atol=1e-12)
    other = describe(image[::-1], settings)
    matched, _ = correspondence(shape, other, settings)
    squares = ((shape.patches - other.patches[matched]) ** 2).sum(axis=1)
    np.testing.assert_allclose(differences(shape, other, settings)[:, 1], squares, rtol=1e-12)


def test_a_disc_is_nearer_to_a_disc_than_to_a_ring():
    anchor = describe(disc(), ALL)
    to_disc, to_ring = (
        differences(anchor, describe(image, ALL), ALL).mean(axis=0) for image in (disc(12, 14, 9), ring())
    )
    assert (to_disc < 0.5 * to_ring).all()


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"points": 1}, "`points`"),
        ({"level": 1.0}, "`level`"),
        ({"inner": 3.0}, "`inner`"),
        ({"patch": 4}, "odd"),
        ({"blur": -1.0}, "`blur`"),
        ({"position": np.nan}, "`position`"),
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong, says):
    with pytest.raises(ValueError, match=says):
        ShapeSettings(**wrong)
