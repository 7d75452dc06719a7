"""A fit is the same in one thread of many as it is alone, for every likelihood, also where nothing is compiled yet."""

import subprocess
import sys
from pathlib import Path

import pytest

from bayes_sparse.common.registry import options
from tests.laws.threads import LIKELIHOODS, MODELS, differences

ROOT = Path(__file__).parents[2]
COLD = "from tests.laws.threads import differences; print(differences({}, {!r}, cold=True))"


def cold(fits, models=MODELS):
    done = subprocess.run([sys.executable, "-c", COLD.format(fits, models)], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() or done.stderr[-2000:]


def test_the_law_is_about_every_likelihood():
    assert sorted(LIKELIHOODS) == options("bayes_sparse.inputs.likelihoods")


def test_eight_threads_at_a_cold_start():
    assert cold(1, ["ard_gaussian"]) == "[]"


def test_eight_threads_once_all_is_compiled():
    assert differences(1, ["laplace_eigen"]) == []


@pytest.mark.slow
def test_eight_threads_a_hundred_fits_at_a_cold_start():
    assert cold(100) == "[]"


@pytest.mark.slow
def test_eight_threads_a_hundred_fits_once_all_is_compiled():
    assert differences(100) == []
