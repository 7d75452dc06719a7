"""Wide regression, n = 200, p = 2000, 10 true features: found, false, coverage and error beside two rivals."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import bayes_sparse as bs
from benchmarks.clock import race
from benchmarks.peers import ard_regression, glmnet, kept, ours
from benchmarks.report import Row

FORMATS = {
    "missed": ".1f",
    "false": ".1f",
    "kept": ".1f",
    "coverage": ".1%",
    "calibration": ".1%",
    "rmse": ".3f",
    "log loss": ".3f",
}
Z = 1.959964  # half the width of a 95% interval, in sds


def run(say: Callable[[str], None], seeds: int = 10) -> list[Row]:
    """Our row, which must reach the target on every seed, then the rivals'."""
    found: dict[str, list[dict[str, float]]] = {"ours": [], "ARDRegression": [], "glmnet": []}
    for seed in range(seeds):
        say(f"seed {seed}")
        for name, measured in _one(seed).items():
            found[name].append(measured)
    table = {name: {key: np.array([f[key] for f in rows]) for key in rows[0]} for name, rows in found.items()}
    mine = table["ours"]
    met = (
        (mine["missed"] == 0).all()
        and (mine["false"] <= 2).all()
        and ((mine["coverage"] >= 0.90) & (mine["coverage"] <= 0.99)).all()
        and (mine["rmse"] < 0.25).all()
        and np.median(mine["seconds"]) < 0.1
    )
    target = "every seed: none missed, 2 false, coverage 90-99%, RMSE 0.25; 0.1 s"
    case = f"200 x 2000, 10 true, noise 0.5, {seeds} seeds"
    seconds = float(np.median(mine["seconds"]))
    floor = {"floor": "10 columns of X'X", "floor_seconds": float(np.median(mine["floor"]))}
    rows = [Row("wide", case, target, bool(met), seconds, **floor, quality=summary(mine))]
    for name in ("ARDRegression", "glmnet"):
        times = {"seconds": seconds, "peer": name, "peer_seconds": float(np.median(table[name]["seconds"]))}
        rows.append(Row("wide", f"the same: {name}'s answers", **times, quality=summary(table[name])))
    return rows


def _one(seed: int) -> dict[str, dict[str, float]]:
    data = bs.datasets.sparse_linear(n_test=2000, random_seed=seed)
    X, y = data.X, data.y
    contestants = {"ours": ours(X, y), "glmnet": glmnet(X, y), "floor": lambda: X.T @ X[:, :10]}
    seconds, results = race(contestants, repeats=2)
    slow, slow_results = race({"ARDRegression": ard_regression(X, y)}, repeats=1)
    seconds |= slow
    results |= slow_results
    predicted = bs.predict(results["ours"], data.X_test)
    means = {"ours": predicted["mean"].to_numpy(), "glmnet": results["glmnet"].predict(data.X_test)}
    means["ARDRegression"], sd = results["ARDRegression"].predict(data.X_test, return_std=True)
    sds = {"ours": predicted["sd"].to_numpy(), "ARDRegression": sd, "glmnet": None}
    chosen = {"ours": kept(results["ours"])}
    chosen |= {name: results[name].coef_ != 0 for name in ("ARDRegression", "glmnet")}
    out = {}
    for name, mean in means.items():
        out[name] = counts(chosen[name], data.relevant) | {
            "coverage": np.nan if sds[name] is None else np.mean(np.abs(data.y_test - mean) < Z * sds[name]),
            "rmse": float(np.sqrt(np.mean((mean - data.mean_test) ** 2))),
            "seconds": seconds[name],
            "floor": seconds["floor"],
        }
    return out


def counts(chosen: np.ndarray, relevant: np.ndarray) -> dict[str, float]:
    """Features missed and features chosen that do nothing."""
    return {"missed": float(np.sum(relevant & ~chosen)), "false": float(np.sum(chosen & ~relevant))}


def summary(found: dict[str, np.ndarray]) -> dict[str, float | str]:
    """Mean over seeds and, in brackets, the range."""
    out: dict[str, float | str] = {}
    for name, form in FORMATS.items():
        if name in found and not np.isnan(found[name]).any():
            values = found[name]
            ends = form if form != ".1f" else ".0f"
            out[name] = f"{values.mean():{form}} [{values.min():{ends}}, {values.max():{ends}}]"
    return out
