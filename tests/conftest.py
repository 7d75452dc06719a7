"""One thread for every linear algebra library, Hypothesis without chance or deadlines, long files first, messages."""

import logging
import os
import signal
import sys

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"  # read when numpy is first imported, so before anything else here

import pytest  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402

settings.register_profile(
    "fixed",
    derandomize=True,
    deadline=None,
    max_examples=3 if os.environ.get("BAYES_SPARSE_QUICK") else 5,  # set by `make quick`
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("fixed")
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # begun in the background of a shell, which Ctrl-C is not for
    signal.signal(signal.SIGINT, signal.default_int_handler)
pytest.register_assert_rewrite("tests.support")

# The files that take longest, in this order: what begins last should be short, or one worker waits for the other.
FIRST = [
    "test_notebooks",
    "test_user_models",
    "test_fuzz",
    "test_compiled",
    "test_docs",
    "test_units",
    "test_demo",
    "test_nuts_of_everything",
    "test_families",
    "test_tree",
]


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: (*FIRST, item.path.stem).index(item.path.stem))


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
