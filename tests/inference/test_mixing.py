"""Anderson's acceleration: linear maps end after as many rounds as they have directions, and none are repeated."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from bayes_sparse.inference.mixing import Mixing


@pytest.mark.parametrize("size", [1, 2, 4])
def test_a_slow_linear_map_ends_at_once(size):
    """Plain rounds come nearer by a thousandth each: seven thousand of them would be needed."""
    rng = np.random.default_rng(size)
    turn = np.linalg.qr(rng.normal(size=(size, size)))[0]
    slow, end = turn @ np.diag(np.linspace(0.5, 0.999, size)) @ turn.T, rng.normal(size=size)
    x, mixing = np.zeros(size), Mixing(np.ones(size))
    for _ in range(size + 2):
        x = mixing.next(x, end + slow @ (x - end))
    assert_allclose(x, end, rtol=1e-6)


def test_a_point_that_came_back_is_no_news():
    mixing = Mixing(np.ones(2))
    for _ in range(4):
        step = mixing.next(np.array([1.0, 2.0]), np.array([1.5, 2.0]))
    assert_allclose(step, [1.5, 2.0])
