"""Which point to expand at, for a regression: the noisy sinc, error and coverage of the curve beside the RVM's."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np

import bayes_sparse as bs
from benchmarks import clock
from benchmarks.report import Row

SIZES, NOISES, WIDTHS = (100, 500), (0.01, 0.1, 0.2), (0.7, 1.6, 3.0)
CONTESTANTS: dict[str, dict[str, Any]] = {"RVM": {"model": "ard_gaussian", "smoothness": 0}} | {
    f"{name}, {expansion}": {**model, "expansion": expansion}
    for expansion in ("ridge", "evidence", "zero")
    for name, model in (
        ("GREVM", {"model": "ard_gaussian", "method": "revm"}),
        ("LREVM", {"model": "laplace_eigen"}),
    )
}
type Case = tuple[int, float, float]
type Found = dict[tuple[Case, str], list[tuple[float, float, float, float]]]


def run(say: Callable[[str], None], seeds: int = 10) -> list[Row]:
    """A row a contestant over all cases, then a row a case."""
    found: Found = defaultdict(list)
    cases = [(n, noise, width) for n in SIZES for noise in NOISES for width in WIDTHS]
    for case in cases:
        say(f"n = {case[0]}, noise {case[1]:g}, width {case[2]:g}")
        for seed in range(seeds):
            for contestant in CONTESTANTS:
                found[case, contestant].append(_one(case, contestant, seed))
    return [_over_all(contestant, cases, found) for contestant in CONTESTANTS] + [_row(case, found) for case in cases]


def _one(case: Case, contestant: str, seed: int) -> tuple[float, float, float, float]:
    """RMSE to the true curve, coverage of its 95% intervals, terms kept, seconds."""
    n, noise, width = case
    data, settings = bs.datasets.sinc(n, noise, random_seed=seed), dict(CONTESTANTS[contestant])
    start = clock.now()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        tree = bs.fit(
            settings.pop("model"),
            (data.X, data.y),
            basis=bs.basis.rbf(width),
            likelihood="normal",
            draws=0,
            progressbar=False,
            **settings,
        )
        taken = clock.now() - start
        predicted = bs.predict(tree, data.X)
    off = predicted["mean"].to_numpy() - data.mean
    evidence = tree["evidence"].to_dataset()
    variance = predicted["sd"].to_numpy() ** 2 - float(evidence["sigma"]) ** 2  # of the curve, without the noise
    covered = float(np.mean(np.abs(off) <= 1.96 * np.sqrt(np.maximum(variance, 0.0))))
    return float(np.sqrt(np.mean(off**2))), covered, float(evidence["relevant"].sum()), taken


def _over_all(contestant: str, cases: list[Case], found: Found) -> Row:
    means = np.array([np.mean(found[case, contestant], axis=0) for case in cases])
    rvm = np.array([np.mean(found[case, "RVM"], axis=0) for case in cases])
    quality: dict[str, float | str] = {
        "RMSE beside the RVM's": f"x {np.exp(np.mean(np.log(means[:, 0] / rvm[:, 0]))):.2f}",
        "coverage": f"{means[:, 1].mean():.1%} [{means[:, 1].min():.1%}, {means[:, 1].max():.1%}]",
        "kept": f"{means[:, 2].mean():.1f}",
    }
    return Row("expansions, sinc", f"all cases, {contestant}", seconds=float(np.median(means[:, 3])), quality=quality)


def _row(case: Case, found: Found) -> Row:
    n, noise, width = case
    quality: dict[str, float | str] = {}
    for contestant in CONTESTANTS:
        rmse, covered, kept, _ = np.mean(found[case, contestant], axis=0)
        quality[f"{contestant}:"] = f"{rmse:.4f}, {covered:.0%}, {kept:.1f}"
    return Row(
        "expansions, sinc", f"n = {n}, noise {noise:g}, width {width:g}: RMSE, coverage of 95%, kept", quality=quality
    )
