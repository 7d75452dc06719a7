"""The first fit in a new process, from the end of `import pymc`: compiled code on disk, and none."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable

from benchmarks.report import Row

LIKELIHOODS = ("normal", "bernoulli", "poisson", "negative_binomial")

SCRIPT = """
import sys, time
import numpy as np
import pymc
start = time.perf_counter()
import bayes_sparse as bs
rng = np.random.default_rng(0)
X = rng.standard_normal((200, 20))
eta = X[:, 0] - X[:, 1]
y = {
    "normal": eta + rng.standard_normal(200),
    "bernoulli": (eta + rng.logistic(size=200) > 0).astype(int),
    "poisson": rng.poisson(np.exp(eta)),
    "negative_binomial": rng.poisson(np.exp(eta) * rng.gamma(2, 0.5, 200)),
}
tree = bs.fit("ard_gaussian", (X, y[sys.argv[1]]), likelihood=sys.argv[1], draws=0)
print(time.perf_counter() - start, float(tree["evidence"]["log_evidence"]), int(tree["evidence"]["kept"].sum()))
"""


def run(say: Callable[[str], None], seeds: int = 3) -> list[Row]:
    """One row a likelihood and a state of the disk cache; ``seeds`` is the number of processes timed."""
    rows = []
    for name in LIKELIHOODS:
        say(f"{name}, warm")
        _first_fit(name, {})  # whatever is not on disk yet is compiled here
        timed = [_first_fit(name, {}) for _ in range(seeds)]
        rows.append(_row(name, "disk cache warm", min(timed), 3.0))
        say(f"{name}, empty cache")
        with tempfile.TemporaryDirectory() as place:
            flags = ",".join(filter(None, (os.environ.get("PYTENSOR_FLAGS"), f"base_compiledir={place}")))
            timed = [_first_fit(name, {"PYTENSOR_FLAGS": flags, "NUMBA_CACHE_DIR": place})]
        rows.append(_row(name, "disk cache empty", min(timed), 15.0))
    return rows


def _row(name: str, cache: str, found: tuple[float, float, int], limit: float) -> Row:
    seconds, evidence, terms = found
    quality = {"log evidence": evidence, "kept": float(terms)}
    return Row("first fit", f"{name}, {cache}", f"at most {limit:g} s", seconds <= limit, seconds, quality=quality)


def _first_fit(name: str, environment: dict[str, str]) -> tuple[float, float, int]:
    env = {**os.environ, **environment}
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # with bytecode, as any installed package has it
    command = [sys.executable, "-c", SCRIPT, name]
    done = subprocess.run(command, env=env, check=True, capture_output=True, text=True)
    seconds, evidence, terms = done.stdout.splitlines()[-1].split()  # above it may stand a progress line
    return float(seconds), float(evidence), int(terms)
