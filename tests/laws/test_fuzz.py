"""Whatever is fitted, to whatever data, ends in finite numbers or in one sentence: 300 cases of `tests.fuzz`."""

import pytest

from tests.fuzz.judged import outcome
from tests.support import QUICK

STEP = 20


@pytest.mark.parametrize("first", range(0, 20 if QUICK else 300, STEP))
def test_cases(first):
    ends = [outcome(number) for number in range(first, first + STEP)]
    wrong = [(end["case"], end["wrong"]) for end in ends if end["wrong"]]
    assert not wrong, f"python -m tests.fuzz --case {wrong[0][0]} shows the first of {wrong}"
    assert sum(end["end"] != "refused" for end in ends) > STEP / 10  # a fuzz of refusals alone would find nothing
