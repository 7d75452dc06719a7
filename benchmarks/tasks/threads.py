"""Fits as they come, on as many threads as the machine has, beside the same fits on one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable

from benchmarks.report import Row

LIMIT = 1.25  # times as long: what single runs differ by

SCRIPT = """
import json, logging, time, warnings
import numpy as np
import pytensor
import pytensor.tensor as pt
import bayes_sparse as bs
logging.getLogger("bayes_sparse").setLevel(logging.ERROR)
warnings.simplefilter("ignore")
table = bs.datasets.load("wdbc")
X, y = table.drop(columns="target").to_numpy(float), np.unique(table["target"], return_inverse=True)[1]
kernels = bs.basis.rbf(width=5.0)
evidence, log_alpha = bs.log_evidence_op((X, y)), pt.vector("log_alpha")
value = evidence(log_alpha)
gradient = pytensor.function([log_alpha], [value, pytensor.grad(value, log_alpha)], mode="FAST_COMPILE")
cases = {
    "30 features, sequential": lambda: bs.fit("ard_gaussian", (X, y), draws=0),
    "30 features, mackay": lambda: bs.fit("ard_gaussian", (X, y), draws=0, method="mackay"),
    "30 features, em": lambda: bs.fit("ard_gaussian", (X, y), draws=0, method="em"),
    "30 features, variational": lambda: bs.fit("ard_gaussian", (X, y), draws=0, method="variational"),
    "30 features, horseshoe": lambda: bs.fit("horseshoe", (X, y), draws=0),
    "30 features, laplace_eigen": lambda: bs.fit("laplace_eigen", (X, y), draws=0),
    "569 kernels, sequential": lambda: bs.fit("ard_gaussian", (X, y), draws=0, basis=kernels),
    "log_evidence_op, 20 values and gradients": lambda: [gradient(np.zeros(30)) for _ in range(20)],
}
found = {}
for name, call in cases.items():
    call()
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        tree = call()
        seconds.append(time.perf_counter() - start)
    last = float(tree[-1][0] if isinstance(tree, list) else tree["evidence"]["log_evidence"])
    found[name] = min(seconds), last
print(json.dumps(found))
"""


def run(say: Callable[[str], None], seeds: int = 1) -> list[Row]:
    """A row a fit of WDBC; ``seeds`` is the number of pairs of processes, of which the quickest counts."""
    say("one thread, then all")
    pairs = [(_found({"OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}), _found({})) for _ in range(seeds)]
    rows = []
    for name in pairs[0][0]:
        one, all_ = (min(pair[place][name][0] for pair in pairs) for place in (0, 1))
        quality = {"log evidence": pairs[0][1][name][1]}
        times = {"seconds": all_, "peer": "one thread", "peer_seconds": one}
        rows.append(Row("threads", name, f"{LIMIT} x one thread", all_ <= LIMIT * one, **times, quality=quality))
    return rows


def _found(environment: dict[str, str]) -> dict[str, tuple[float, float]]:
    """Seconds and log evidence of each case, in a process whose thread pools are as told, or as they come."""
    own = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    command = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(command, env=own | environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)
