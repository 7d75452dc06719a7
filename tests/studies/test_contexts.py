"""Contexts against a slow loop, and what they do not depend on."""

import math

import numpy as np
import pytest

from studies.contexts import context_distances, mean_distance, shape_contexts

BINS = {"radial": 5, "angular": 12, "inner": 0.125, "outer": 2.0}


def cloud(n=40, seed=0):
    return np.random.default_rng(seed).standard_normal((n, 2))


def contexts(points):
    return shape_contexts(points / mean_distance(points), **BINS)


def slow_contexts(points, radial, angular, inner, outer):
    """Point by point: the ring is the first whose radius is not exceeded, and sectors are counted from the left."""
    radii = [inner * (outer / inner) ** (i / (radial - 1)) for i in range(radial)]
    counts = np.zeros((len(points), radial, angular))
    for i, (x, y) in enumerate(points):
        for j, (u, v) in enumerate(points):
            if i != j:
                away = math.dist((x, y), (u, v))
                ring = next((k for k, radius in enumerate(radii) if away <= radius), radial - 1)
                degrees = (math.degrees(math.atan2(v - y, u - x)) + 180.0) % 360.0
                counts[i, ring, int(degrees // (360.0 / angular))] += 1
    return counts.reshape(len(points), -1)


@pytest.mark.parametrize("bins", [BINS, {"radial": 3, "angular": 7, "inner": 0.3, "outer": 1.1}])
def test_contexts_are_those_of_the_slow_loop(bins):
    points = cloud() / mean_distance(cloud())
    np.testing.assert_array_equal(shape_contexts(points, **bins), slow_contexts(points, **bins))


def test_every_other_point_is_counted_once():
    for n in (2, 17, 100):
        np.testing.assert_array_equal(contexts(cloud(n)).sum(axis=1), n - 1)


def test_contexts_do_not_depend_on_place_and_size():
    points = cloud(100)
    np.testing.assert_array_equal(contexts(3.7 * points + [11.0, -4.0]), contexts(points))


def test_contexts_depend_on_direction():
    points = cloud(100)
    assert (contexts(points @ [[0.0, 1.0], [-1.0, 0.0]]) != contexts(points)).any()


def test_a_quarter_turn_turns_the_sectors():
    points = cloud(30)
    turned = contexts(points @ [[0.0, 1.0], [-1.0, 0.0]]).reshape(30, 5, 12)
    np.testing.assert_array_equal(turned, np.roll(contexts(points).reshape(30, 5, 12), 3, axis=2))


def test_mean_distance_is_over_pairs():
    assert mean_distance(np.array([[0.0, 0.0], [3.0, 4.0], [0.0, 4.0]])) == pytest.approx((5 + 4 + 3) / 3)


def test_distances_are_those_of_the_formula():
    one, other = contexts(cloud(30, 1)), contexts(cloud(30, 2))[:25]
    expected = np.zeros((30, 25))
    for i, a in enumerate(one / 29.0):
        for j, b in enumerate(other / 29.0):
            expected[i, j] = 0.5 * sum((p - q) ** 2 / (p + q) for p, q in zip(a, b, strict=True) if p + q > 0)
    np.testing.assert_allclose(context_distances(one, other), expected, atol=3e-6)  # sums of 60 in single precision


def test_distances_lie_between_the_same_and_nothing_in_common():
    one = np.array([[5, 0, 0], [0, 2, 3]], dtype=np.float32)
    np.testing.assert_allclose(context_distances(one, one), [[0.0, 1.0], [1.0, 0.0]])
