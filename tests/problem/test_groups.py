"""Which columns belong together, from labels."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from bayes_sparse.problem.groups import Groups, positions_by_size, sums
from tests.support import refused

pytestmark = pytest.mark.quick

LABELS = np.array([7, -2, 7, 0, 7, -2, 0, 3])
FREE = np.array([True, True, True, True, True, True, False, True])


def test_groups_of_columns():
    groups = Groups(LABELS, FREE)
    assert_array_equal(groups.first, [0, 1, 0, 3, 0, 1, 6, 7])
    assert_array_equal(groups.alone, [False, False, False, True, False, False, True, True])
    assert_array_equal(groups.members(4), [0, 2, 4])
    assert_array_equal(groups.members(6), [6])
    assert [at.tolist() for at in groups.by_size] == [[[1, 5]], [[0, 2, 4]]]


def test_a_column_that_is_not_free_is_in_no_group():
    """Whatever its label; and it is none of the terms that are offered."""
    assert Groups(LABELS, FREE).count == 4
    assert_array_equal(Groups(np.zeros(4, dtype=int), np.array([True, False, True, False])).first, [0, 1, 0, 3])


def test_sums_over_groups_stand_on_every_member():
    values = np.arange(8.0)
    assert_array_equal(sums(values, LABELS), [6, 6, 6, 9, 6, 6, 9, 7])
    assert sums(values, None) is values


def test_no_groups_at_all():
    assert positions_by_size(np.empty(0, dtype=int)) == []
    assert Groups(np.arange(3), np.ones(3, dtype=bool)).by_size == []


def test_one_label_per_column():
    refused(lambda: Groups(np.zeros(3, dtype=int), FREE), "`groups`", "8")
