"""How fits with the Laplace prior without a knob end: statuses, several solutions, updates that never settle."""

from __future__ import annotations

import warnings
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import bayes_sparse as bs
from benchmarks import clock
from benchmarks.report import Row

SAME = 1e-4  # relative difference of two lambdas that are the same


@dataclass
class Tally:
    """Counts over the problems of one kind."""

    reweighted: Counter[str] = field(default_factory=Counter)
    descent: Counter[str] = field(default_factory=Counter)
    solutions: list[int] = field(default_factory=list)
    same: Counter[str] = field(default_factory=Counter)
    not_weakest: int = 0
    seconds: list[float] = field(default_factory=list)
    descent_seconds: list[float] = field(default_factory=list)


def run(say: Callable[[str], None], seeds: int = 40) -> list[Row]:
    """A row a kind of data and one over all; ``seeds`` is the number of random problems."""
    tallies: dict[str, Tally] = defaultdict(Tally)
    for seed in range(seeds):
        say(f"problem {seed + 1} of {seeds}")
        kind, X, y, likelihood = problem(seed)
        _count((tallies["all"], tallies[kind]), X, y, likelihood)
    return [_row(kind, tally) for kind, tally in sorted(tallies.items())]


def problem(seed: int) -> tuple[str, Any, Any, str]:
    """A small random problem: 12 to 120 rows, 1 to 150 columns, none to four of them true, some correlated."""
    rng = np.random.default_rng([seed, 5])
    n, p = int(rng.integers(12, 121)), int(rng.integers(1, 151))
    X = rng.standard_normal((n, p)) + rng.choice([0.0, 1.0]) * rng.standard_normal((n, 1))
    true = min(p, int(rng.integers(0, 5)))
    eta = X[:, :true] @ (rng.choice([0.3, 1.0, 3.0]) * rng.standard_normal(true))
    likelihood = str(rng.choice(["bernoulli", "normal", "poisson"], p=[0.6, 0.2, 0.2]))
    if likelihood == "bernoulli":
        y: Any = (rng.random(n) < 1 / (1 + np.exp(-eta))).astype(int)
        y[:2] = 0, 1  # never one class alone
    elif likelihood == "normal":
        y = eta + rng.standard_normal(n)
    else:
        y = rng.poisson(np.exp(np.clip(0.3 * eta, -3.0, 3.0))) + (np.arange(n) == 0)
    name = {"bernoulli": "two classes", "normal": "regression", "poisson": "counts"}[likelihood]
    return f"{name}, {'more' if p >= n else 'fewer'} columns than rows", X, y, likelihood


def _count(tallies: tuple[Tally, ...], X: Any, y: Any, likelihood: str) -> None:
    def fit(**settings: Any) -> tuple[Any, float]:
        start = clock.now()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # how a fit ended is counted
            tree = bs.fit("jeffreys_laplace", (X, y), likelihood=likelihood, draws=0, progressbar=False, **settings)
        return tree["evidence"], clock.now() - start

    found, _ = fit(all_points=True)
    _, seconds = fit()
    descent, descent_seconds = fit(method="coordinate_descent")
    same = _compare(found, descent)
    for tally in tallies:
        tally.reweighted[found.attrs["status"]] += 1
        tally.descent[descent.attrs["status"]] += 1
        tally.solutions.append(found.sizes.get("solution", 0))
        tally.same[same] += 1
        tally.not_weakest += not _weakest(found)
        tally.seconds.append(seconds)
        tally.descent_seconds.append(descent_seconds)


def _compare(found: Any, descent: Any) -> str:
    """Where the updates of single weights ended, among the solutions on the path."""
    N, lam = int(descent["N"]), float(descent["lambda"])
    if not N or not int(found["N"]):
        return "the same" if int(found["N"]) == N else "elsewhere"
    if abs(lam / float(found["lambda"]) - 1) < SAME:
        return "the same"
    others = np.abs(found["solution_lambda"].to_numpy() / lam - 1)
    if (others < SAME).any():
        return "another solution"
    return "off the path, one weight more or less at most" if abs(int(found["N"]) - N) <= 1 else "elsewhere"


def _weakest(found: Any) -> bool:
    """Whether the answer is the first of all solutions that a weak penalty meets, as it should be."""
    return not found.sizes.get("solution", 0) or float(found["lambda"]) == float(found["solution_lambda"][0])


def _row(kind: str, tally: Tally) -> Row:
    solutions, total = np.array(tally.solutions), len(tally.solutions)
    quality: dict[str, float | str] = {
        "reweighted": _listed(tally.reweighted),
        "several solutions": f"{int(np.sum(solutions > 1))} (most {solutions.max()})",
        "not the first of them": tally.not_weakest,
        "coordinate_descent": _listed(tally.descent),
        "ended at": _listed(tally.same),
        "its slowest, s": max(tally.descent_seconds),
        "ours, s": max(tally.seconds),
    }
    times = [float(np.median(taken)) for taken in (tally.seconds, tally.descent_seconds)]
    return Row("l1_statuses", f"{total} {kind}", "", None, times[0], "coordinate_descent", times[1], quality=quality)


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.most_common())
