"""Whatever is fitted to whatever data ends in finite numbers or in one sentence: cheap cases of `tests.fuzz`."""

import pytest

from tests.fuzz import wrong_with
from tests.support import QUICK

STEP = 10


@pytest.mark.parametrize("first", range(0, 20 if QUICK else 200, STEP))
def test_cases(first):
    wrong = {number: found for number in range(first, first + STEP) if (found := wrong_with(number))}
    assert not wrong, f"python -m tests.fuzz --case {next(iter(wrong))} shows the first of {wrong}"
