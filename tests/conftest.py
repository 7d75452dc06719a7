"""One thread for every linear algebra library, Hypothesis without chance or deadlines, and the package's messages."""

import logging
import os
import sys

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"  # read when numpy is first imported, so before anything else here

import pytest  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402

settings.register_profile(
    "fixed",
    derandomize=True,
    deadline=None,
    max_examples=25,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("fixed")


@pytest.fixture(autouse=True)
def no_pictures_left_open():
    """A test's figures are its own: pyplot keeps them all, and warns when they are many."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture
def messages():
    """What the package says to its user beside warnings; its logger does not propagate, so caplog does not see it."""
    logger, seen = logging.getLogger("bayes_sparse"), []

    class Keep(logging.Handler):
        def emit(self, record):
            seen.append(record.getMessage())

    handler = Keep()
    logger.addHandler(handler)
    yield seen
    logger.removeHandler(handler)
