"""Whatever is fitted to whatever data ends in finite numbers or in one sentence: cheap cases of `tests.fuzz`.

Without approximations other than a method's own and widths found by evidence, which take up to minutes on such data.
"""

import pytest

from tests.fuzz import case, wrong_with
from tests.support import QUICK

STEP = 10


def is_cheap(arguments):
    return "approximation" not in arguments and getattr(arguments.get("basis"), "width", None) != "evidence"


@pytest.mark.parametrize("first", range(0, 20 if QUICK else 180, STEP))
def test_cases(first):
    cheap = [number for number in range(first, first + STEP) if is_cheap(case(number)[2])]
    wrong = {number: found for number in cheap if (found := wrong_with(number))}
    assert not wrong, f"python -m tests.fuzz --case {next(iter(wrong))} shows the first of {wrong}"
