"""The minimax centre by brute force, from training rows alone."""

import numpy as np
import pytest

from studies.anchors import centre, shape_distances, spread
from studies.features import shape_features
from studies.matching import describe, differences
from studies.settings import ShapeSettings

from .drawings import scrawls

IMAGES, LABELS = scrawls(18, seed=5)
QUICK = ShapeSettings(points=20)


def slow_centre(rows):
    """All pairs, and the definition."""
    shapes = {row: describe(IMAGES[row], QUICK) for row in rows}
    worst = {i: max(differences(shapes[i], shapes[j], QUICK)[:, 0].mean() for j in rows) for i in rows}
    return min(worst, key=worst.__getitem__)


@pytest.mark.parametrize("fold", range(3))
def test_anchors_are_the_centres_of_the_training_rows(tmp_path, fold):
    train = np.flatnonzero(np.arange(18) % 3 != fold)
    found = shape_features(IMAGES, LABELS, train, settings=QUICK, directory=tmp_path, progressbar=False)
    assert [anchor.label for anchor in found.anchors] == [0, 1]
    for anchor in found.anchors:
        assert anchor.row == slow_centre(train[LABELS[train] == anchor.label])
        np.testing.assert_array_equal(anchor.image, IMAGES[anchor.row])
        np.testing.assert_array_equal(anchor.points, describe(anchor.image, QUICK).points)


def test_a_centre_outside_the_training_rows_is_not_found(tmp_path):
    """Leave out the best digit of each class: another one is the anchor."""
    best = [slow_centre(np.flatnonzero(label == LABELS)) for label in (0, 1)]
    train = np.setdiff1d(np.arange(18), best)
    for sample in ({}, {"candidates": 3, "others": 5}):
        found = shape_features(IMAGES, LABELS, train, settings=QUICK, directory=tmp_path, progressbar=False, **sample)
        assert set(best).isdisjoint(anchor.row for anchor in found.anchors)


def test_other_rows_and_their_labels_do_not_matter(tmp_path):
    train = np.arange(12)
    other_labels, other_images = LABELS.copy(), IMAGES.copy()
    other_labels[12:], other_images[12:] = 1 - LABELS[12:], IMAGES[:6]
    rows = [
        [anchor.row for anchor in shape_features(x, y, train, settings=QUICK, directory=tmp_path / name).anchors]
        for name, x, y in (("a", IMAGES, LABELS), ("b", other_images, other_labels))
    ]
    assert rows[0] == rows[1]


def test_the_largest_distance_decides():
    assert centre(np.array([[0.0, 0.1, 0.9], [0.4, 0.5, 0.4], [0.5, 0.5, 0.5]])) == 1


def test_distances_have_the_candidate_as_anchor():
    found = shape_distances(IMAGES[:2], IMAGES[2:5], QUICK)
    one, other = describe(IMAGES[1], QUICK), describe(IMAGES[4], QUICK)
    assert found.shape == (2, 3)
    assert found[1, 2] == differences(one, other, QUICK)[:, 0].mean()


def test_a_sample_is_spread_over_all_rows():
    rows = np.arange(100, 200)
    np.testing.assert_array_equal(spread(rows, 4), [100, 125, 150, 175])
    np.testing.assert_array_equal(spread(rows, 100), rows)
    np.testing.assert_array_equal(spread(rows, 1000), rows)
    assert len(set(spread(rows, 73))) == 73
