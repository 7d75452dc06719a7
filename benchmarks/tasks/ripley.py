"""Ripley's synthetic set, rbf width 0.5: error on the 1000 test rows and number of relevance vectors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import bayes_sparse as bs
from benchmarks.clock import race
from benchmarks.peers import fast_rvm, kept, ours
from benchmarks.report import Row


def run(say: Callable[[str], None], seeds: int = 5) -> list[Row]:
    """One row a setting and fastrvm's beside them; ``seeds`` is the number of repetitions."""
    say("fitting")
    train, test = (bs.datasets.load(f"ripley_synth_{part}") for part in ("train", "test"))
    X, y = train.drop(columns="target").to_numpy(float), train["target"].to_numpy()
    X_test, y_test = test.drop(columns="target").to_numpy(float), test["target"].to_numpy()
    basis = bs.basis.rbf(0.5)
    contestants = {
        "default settings": ours(X, y, basis=basis, likelihood="bernoulli"),
        "pure, no slab": ours(X, y, basis=basis, likelihood="bernoulli", smoothness=0, slab=None),
        "fastrvm": fast_rvm(X, y, classify=True, kernel="rbf", gamma=2.0, fit_intercept=True),
    }
    seconds, results = race(contestants, seeds)
    peer = results.pop("fastrvm")
    peer_error = np.mean(peer.predict(X_test) != y_test)
    rows = []
    for name, tree in results.items():
        vectors, error = int(kept(tree).sum()), np.mean(bs.predict(tree, X_test)["label"].to_numpy() != y_test)
        quality = {
            "error": f"{error:.1%} (fastrvm {peer_error:.1%}; Tipping 2001 9.3%)",
            "vectors": f"{vectors} (fastrvm {len(peer.relevance_)}; Tipping 2001 4)",
            "log evidence": float(tree["evidence"]["log_evidence"]),
        }
        met = bool(error <= 0.1 and vectors <= 6)
        times = {"seconds": seconds[name], "peer": "fastrvm", "peer_seconds": seconds["fastrvm"]}
        rows.append(Row("Ripley", name, "error 10.0%, 6 vectors", met, **times, quality=quality))
    return rows
