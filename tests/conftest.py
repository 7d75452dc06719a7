"""One thread for every linear algebra library, and Hypothesis without chance or deadlines."""

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"  # read when numpy is first imported, so before anything else here

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
