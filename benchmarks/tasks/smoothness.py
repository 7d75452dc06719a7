"""What a degree of freedom should cost: wide data at several prices, and kernels with and without one."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import bayes_sparse as bs
from benchmarks.peers import kept
from benchmarks.report import Row
from benchmarks.tasks.wide import Z, counts, summary
from benchmarks.tasks.wide_hard import judge

WIDE = {"noise 0.5": {}, "signals near the noise": {"signal": 0.25}, "two classes, weights about 2": {"signal": 2.0}}
PRICES = {"log(n)/2": np.log(200) / 2, "4": 4.0, "5": 5.0, "6": 6.0, "auto": "auto", "log(M)": np.log(2000)}


def run(say: Callable[[str], None], seeds: int = 5) -> list[Row]:
    """One row a price and kind of data; nothing to reach, these rows are what the default was chosen by."""
    rows = []
    logging.getLogger("bayes_sparse").setLevel(logging.WARNING)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bs.FitWarning)  # low prices are meant to eat the data here
        for case, settings in WIDE.items():
            for name, price in PRICES.items():
                say(f"{case}, price {name}")
                found = [_wide(settings, "classes" in case, price, seed) for seed in range(seeds)]
                rows.append(_row(f"200 x 2000, {case}, price {name}", found))
        for width in (0.2, 0.7, 1.2):
            for name, price in {
                "0": 0.0,
                "auto": "auto",
                "of columns": np.log(240) - 0.5 * np.log(np.log(240)),
            }.items():
                say(f"Friedman, width {width}, price {name}")
                found = [_friedman(width, price, seed) for seed in range(seeds)]
                rows.append(_row(f"Friedman, 240 kernels of width {width}, price {name}", found))
    return rows


def _wide(settings: dict[str, Any], classify: bool, price: Any, seed: int) -> dict[str, float]:
    make = bs.datasets.sparse_logistic if classify else bs.datasets.sparse_linear
    data = make(n_test=2000, random_seed=seed, **settings)
    tree = bs.fit("ard_gaussian", (data.X, data.y), smoothness=price, draws=0, progressbar=False)
    predicted = bs.predict(tree, data.X_test)
    out = counts(kept(tree), data.relevant)
    if classify:
        return out | judge(predicted["probability"].to_numpy()[:, 1], data.y_test)
    return out | _errors(predicted, data.y_test, data.mean_test)


def _friedman(width: float, price: Any, seed: int) -> dict[str, float]:
    data = bs.datasets.friedman(n=640, extra=0, random_seed=seed)
    basis = bs.basis.rbf(width)
    tree = bs.fit(
        "ard_gaussian", (data.X[:240], data.y[:240]), basis=basis, smoothness=price, draws=0, progressbar=False
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # narrow kernels leave some rows far from all of them
        predicted = bs.predict(tree, data.X[240:])
    return {"kept": float(kept(tree).sum()), **_errors(predicted, data.y[240:], data.mean[240:])}


def _errors(predicted: Any, y: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    mean, sd = predicted["mean"].to_numpy(), predicted["sd"].to_numpy()
    inside = np.abs(y - mean) < Z * sd
    return {"coverage": float(inside.mean()), "rmse": float(np.sqrt(np.mean((mean - truth) ** 2)))}


def _row(case: str, found: list[dict[str, float]]) -> Row:
    return Row("smoothness", case, quality=summary({key: np.array([f[key] for f in found]) for key in found[0]}))
