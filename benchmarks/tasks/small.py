"""Small problems, where a fixed cost would show: sinc, Ripley's set and WDBC, within milliseconds of fastrvm."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
from fastrvm import _sparsebayes_bindings as solver

import bayes_sparse as bs
from benchmarks.clock import race
from benchmarks.peers import fast_rvm, fast_rvm_evidence, kept, ours, problem
from benchmarks.report import Row

LIMIT = 0.020  # seconds above fastrvm's, but for these:
TIGHT = {
    "sinc n = 100, rbf width 2, default settings": 0.008,
    "Ripley, rbf width 0.5, default settings": 0.008,
    "WDBC, inner products with all rows, pure, no bias": 0.015,
    "WDBC, the 30 features (fastrvm's solver called directly), pure, no bias": 0.015,
}


def run(say: Callable[[str], None], seeds: int = 9) -> list[Row]:
    """Two rows a problem, pure and default settings; ``seeds`` is the number of repetitions."""
    rows = []
    for case, X, y, basis, peer in _problems():
        say(case)
        rows += _race(case, X, y, basis, peer, seeds)
    return rows


def _problems() -> list[tuple[str, Any, Any, Any, Callable[[], Any]]]:
    """Case, data, basis without a bias, and fastrvm on the same basis functions."""
    out = []
    for n in (100, 500):
        data = bs.datasets.sinc(n, 0.2, random_seed=0)
        peer = fast_rvm(data.X, data.y, kernel="rbf", gamma=1 / 8)
        out.append((f"sinc n = {n}, rbf width 2", data.X, data.y, bs.basis.rbf(2.0, bias=False), peer))
    X, y = _load("ripley_synth_train")
    peer = fast_rvm(X, y, classify=True, kernel="rbf", gamma=2.0)
    out.append(("Ripley, rbf width 0.5", X, y, bs.basis.rbf(0.5, bias=False), peer))
    X, y = _load("wdbc")
    X = (X - X.mean(0)) / X.std(0)
    peer = fast_rvm(X, y, classify=True, kernel="linear")
    out.append(("WDBC, inner products with all rows", X, y, bs.basis.inner_product(bias=False), peer))
    # Its estimator takes square kernels only; the solver inside it takes any columns.
    features = bs.basis.linear(bias=False, standardise=False)
    out.append(("WDBC, the 30 features (fastrvm's solver called directly)", X, y, features, lambda: _solve(X, y)))
    return out


def _solve(X: Any, y: Any) -> SimpleNamespace:
    machine = solver.SparseBayes(solver.Likelihood.Bernoulli, 10000, False, False, False, True)
    found = machine.inference(X, y)
    return SimpleNamespace(relevance_=found["relevant_idx"].ravel(), alpha_=found["alpha"])


def _race(case: str, X: Any, y: Any, basis: Any, peer: Callable[[], Any], repeats: int) -> list[Row]:
    likelihood = "bernoulli" if y.dtype.kind == "i" else "normal"
    with_bias = type(basis)(**{**basis.__dict__, "bias": True})
    contestants = {
        "pure": ours(X, y, basis=basis, smoothness=0, slab=None, likelihood=likelihood),
        "default": ours(X, y, basis=with_bias, likelihood=likelihood),
        "peer": peer,
    }
    seconds, results = race(contestants, repeats)
    evidence = float(results["pure"]["evidence"]["log_evidence"])
    own, climbed = fast_rvm_evidence(results["peer"], problem(X, y, likelihood, basis))
    gains = {"evidence less fastrvm's, nats": f"{evidence - own:+.2f}"}
    gains["less its terms re-optimised"] = f"{evidence - climbed:+.2f}"
    rows = []
    for name, setting in (("pure", "pure, no bias"), ("default", "default settings")):
        terms = {"kept": f"{kept(results[name]).sum()} (fastrvm {len(results['peer'].relevance_)})"}
        full = f"{case}, {setting}"
        limit = TIGHT.get(full, LIMIT)
        met = seconds[name] <= seconds["peer"] + limit
        quality = (gains if name == "pure" else {}) | terms
        times = {"seconds": seconds[name], "peer": "fastrvm", "peer_seconds": seconds["peer"]}
        rows.append(Row("small", full, f"within {1000 * limit:.0f} ms", met, **times, quality=quality))
    return rows


def _load(name: str) -> tuple[Any, Any]:
    table = bs.datasets.load(name)
    return table.drop(columns="target").to_numpy(float), np.unique(table["target"], return_inverse=True)[1]
