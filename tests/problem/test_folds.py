"""Rows dealt out to folds: every copy once, each target's share in each fold, whatever the order of the rows."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from bayes_sparse.problem.folds import fold_weights
from tests.support import refused

RNG = np.random.default_rng(0)
Y, KEY = RNG.integers(0, 3, 40).astype(float), RNG.standard_normal(40)


def test_whole_weights_are_dealt_out_copy_by_copy():
    weights = RNG.integers(0, 4, 40).astype(float)
    rows = np.repeat(np.arange(40), weights.astype(int))
    counted = fold_weights(Y, KEY, weights, 5, 7)
    repeated = fold_weights(Y[rows], KEY[rows], None, 5, 7)
    together = np.zeros((5, 40))
    np.add.at(together.T, rows, repeated.T)
    assert_array_equal(counted, together)
    assert_array_equal(counted.sum(axis=0), weights)
    for value in np.unique(Y):  # each fold has its share, to a copy
        assert np.ptp(counted[:, value == Y].sum(axis=1)) <= 1


def test_other_weights_stay_whole():
    weights = RNG.uniform(0.2, 3.0, 40)
    held = fold_weights(Y, KEY, weights, 5, 7)
    assert_array_equal(np.count_nonzero(held, axis=0), 1)
    assert_array_equal(held.sum(axis=0), weights)


@pytest.mark.parametrize("weights", [None, RNG.integers(1, 4, 40).astype(float)])
def test_the_order_of_rows_does_not_matter_and_the_seed_does(weights):
    order = RNG.permutation(40)
    moved = fold_weights(Y[order], KEY[order], None if weights is None else weights[order], 4, 3)
    assert_array_equal(moved, fold_weights(Y, KEY, weights, 4, 3)[:, order])
    assert (moved != fold_weights(Y, KEY, weights, 4, 4)[:, order]).any()


def test_too_few_rows():
    refused(lambda: fold_weights(Y[:9], KEY[:9], None, 5, 0), "9 rows", "folds")
