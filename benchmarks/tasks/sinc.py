"""The noisy sinc, n = 2000, against fastrvm: time with the kernel, and the evidence both reach in one definition."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import bayes_sparse as bs
from benchmarks.clock import race
from benchmarks.peers import fast_rvm, fast_rvm_evidence, kept, ours, problem
from benchmarks.report import Row

N = 2000
WIDTHS = (2.0, 1.0)


def run(say: Callable[[str], None], seeds: int = 5) -> list[Row]:
    """Two rows a width: the pure method without a bias, which is what fastrvm does, and our defaults."""
    rows = []
    for width in WIDTHS:
        found = []
        for seed in range(seeds):
            say(f"width {width:g}, seed {seed}")
            found.append(_one(width, seed))
        rows += _rows(width, {name: np.array([f[name] for f in found]) for name in found[0]})
    return rows


def _one(width: float, seed: int) -> dict[str, float]:
    data = bs.datasets.sinc(N, 0.2, random_seed=seed)
    X, y, basis = data.X, data.y, bs.basis.rbf(width, bias=False)
    contestants = {
        "pure": ours(X, y, basis=basis, smoothness=0),
        "default": ours(X, y, basis=bs.basis.rbf(width)),
        "peer": fast_rvm(X, y, kernel="rbf", gamma=1 / (2 * width**2)),
        "floor": lambda: basis.matrix(X, X),
    }
    seconds, results = race(contestants, repeats=3)
    own, climbed = fast_rvm_evidence(results["peer"], problem(X, y, "normal", basis))
    evidence = float(results["pure"]["evidence"]["log_evidence"])
    out = {f"{name} seconds": value for name, value in seconds.items()}
    out |= {"gain": evidence - own, "gain climbed": evidence - climbed, "peer kept": len(results["peer"].relevance_)}
    out["peer rmse"] = float(np.sqrt(np.mean((results["peer"].predict(X) - data.mean) ** 2)))
    for name in ("pure", "default"):
        mean = bs.predict(results[name], X)["mean"].to_numpy()
        out |= {f"{name} kept": kept(results[name]).sum(), f"{name} rmse": np.sqrt(np.mean((mean - data.mean) ** 2))}
    return out


def _rows(width: float, found: dict[str, np.ndarray]) -> list[Row]:
    rows = []
    for name in ("pure", "default"):
        ratio = float(np.median(found[f"{name} seconds"] / found["peer seconds"]))
        quality: dict[str, float | str] = {"median ratio": ratio}
        met, target = ratio <= 1, "not slower"
        if name == "pure":
            for gain, label in (
                ("gain", "evidence less fastrvm's, nats"),
                ("gain climbed", "less its terms re-optimised"),
            ):
                values = found[gain]
                quality[label] = f"{values.mean():+.2f} [{values.min():+.2f}, {values.max():+.2f}]"
            met, target = met and bool(found["gain"].min() > -0.01), "not slower, evidence not lower for any seed"
        quality["kept"] = f"{found[f'{name} kept'].mean():.1f} (fastrvm {found['peer kept'].mean():.1f})"
        quality["RMSE to truth"] = f"{found[f'{name} rmse'].mean():.4f} (fastrvm {found['peer rmse'].mean():.4f})"
        rows.append(
            Row(
                "sinc",
                f"n = {N}, width {width:g}, {'pure, no bias' if name == 'pure' else 'default settings'}",
                target,
                met,
                float(np.median(found[f"{name} seconds"])),
                "fastrvm",
                float(np.median(found["peer seconds"])),
                "kernel matrix",
                float(np.median(found["floor seconds"])),
                quality,
            )
        )
    return rows
