"""Wide again, made hard: correlated columns, heavy tails, signals near the noise, two classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import bayes_sparse as bs
from benchmarks.clock import race
from benchmarks.peers import glmnet, kept, ours
from benchmarks.report import Row
from benchmarks.tasks.wide import Z, counts, summary

REGRESSION = {
    "neighbours correlated 0.9": {"correlation": 0.9},
    "heavy-tailed X": {"heavy_tails": True},
    "signals near the noise": {"signal": 0.25},
}
CLASSES = {"two classes, weights about 1": {"signal": 1.0}, "two classes, weights about 2": {"signal": 2.0}}
BINS = 10


def run(say: Callable[[str], None], seeds: int = 10) -> list[Row]:
    """Our row and glmnet's for each case; the target holds for every seed."""
    rows = []
    for case, settings in {**REGRESSION, **CLASSES}.items():
        found: dict[str, list[dict[str, float]]] = {"ours": [], "glmnet": []}
        for seed in range(seeds):
            say(f"{case}, seed {seed}")
            for name, measured in _one(settings, case in CLASSES, seed).items():
                found[name].append(measured)
        table = {name: {key: np.array([f[key] for f in fs]) for key in fs[0]} for name, fs in found.items()}
        rows += _rows(case, table, seeds)
    return rows


def _one(settings: dict[str, Any], classify: bool, seed: int) -> dict[str, dict[str, float]]:
    make = bs.datasets.sparse_logistic if classify else bs.datasets.sparse_linear
    data = make(n_test=5000, random_seed=seed, **settings)
    contestants = {"ours": ours(data.X, data.y), "glmnet": glmnet(data.X, data.y, classify=classify)}
    seconds, results = race(contestants, repeats=1)
    predicted = bs.predict(results["ours"], data.X_test)
    chosen = {"ours": kept(results["ours"]), "glmnet": np.ravel(results["glmnet"].coef_) != 0}
    out = {name: counts(chosen[name], data.relevant) | {"seconds": seconds[name]} for name in chosen}
    if classify:
        probability = predicted["probability"].to_numpy()[:, 1]
        out["ours"] |= judge(probability, data.y_test)
        out["glmnet"] |= judge(results["glmnet"].predict_proba(data.X_test)[:, 1], data.y_test)
        return out
    means = {"ours": predicted["mean"].to_numpy(), "glmnet": results["glmnet"].predict(data.X_test)}
    for name, mean in means.items():
        out[name]["rmse"] = float(np.sqrt(np.mean((mean - data.mean_test) ** 2)))
    sd = predicted["sd"].to_numpy()
    out["ours"]["coverage"] = float(np.mean(np.abs(data.y_test - means["ours"]) < Z * sd))
    return out


def judge(probability: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Calibration (one less the expected error over bins of equal width) and the log loss of new observations."""
    place = np.minimum((probability * BINS).astype(int), BINS - 1)
    error = sum(abs(np.sum(y[place == b] - probability[place == b])) for b in range(BINS)) / len(y)
    safe = np.clip(probability, 1e-12, 1 - 1e-12)
    loss = -float(np.mean(np.where(y == 1, np.log(safe), np.log1p(-safe))))
    return {"calibration": 1 - float(error), "log loss": loss}


def _rows(case: str, table: dict[str, dict[str, np.ndarray]], seeds: int) -> list[Row]:
    mine = table["ours"]
    if "coverage" in mine:
        good = (mine["coverage"] >= 0.88) & (mine["coverage"] <= 0.99)
        target = "every seed: coverage 88-99%, 5 false"
    else:
        good, target = mine["calibration"] >= 0.88, "every seed: calibration 88%, 5 false"
    met = bool(good.all() and (mine["false"] <= 5).all())
    seconds = {name: float(np.median(found["seconds"])) for name, found in table.items()}
    times = {"seconds": seconds["ours"], "peer": "glmnet", "peer_seconds": seconds["glmnet"]}
    return [
        Row("wide, hard", f"{case}, {seeds} seeds", target, met, seconds["ours"], quality=summary(mine)),
        Row("wide, hard", "the same: glmnet's answers", **times, quality=summary(table["glmnet"])),
    ]
