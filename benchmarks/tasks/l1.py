"""L1 logistic regression beside skglm, and the search for lambda without a knob beside cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import bayes_sparse as bs
from bayes_sparse.inference.l1.fixed_points import first_solution
from bayes_sparse.inference.l1.path import Path
from bayes_sparse.inputs.prepare import prepare
from bayes_sparse.problem.labelled import LabelledProblem
from benchmarks import clock
from benchmarks.peers import our_lasso, ours, prox_newton
from benchmarks.report import Row

SIZES, LARGE = ((1000, 100), (500, 2000)), ((10_000, 500), (1000, 10_000), (100_000, 100))
PENALTIES = (0.1, 0.01)  # of the largest
TOLERANCES = 10.0 ** -np.arange(2, 11)
SAME = 1e-8  # relative difference of two objectives that are the same
SLOWER, PART = 1.5, 0.5  # times skglm's time; part of cross-validation's
FOLDS, GRID, ROUGH, FINE = 5, np.geomspace(1.0, 1e-3, 20), 1e-4, 1e-10  # as in the method "cv"


def run(say: Callable[[str], None], seeds: int = 2, large: bool = False) -> list[Row]:
    """A row a size and penalty beside skglm, then a row a size beside cross-validation; ``seeds`` data sets each."""
    rows, sizes = [], (*SIZES, *LARGE) if large else SIZES
    for n, p in sizes:
        for part in PENALTIES:
            say(f"one penalty, {n} x {p}, {part:g} of the largest")
            found = [_solves(*_data(n, p, seed), part) for seed in range(seeds)]
            rows.append(_row_of_solves(f"one penalty, {n} x {p}, {part:g} of the largest", found))
    for n, p in sizes:
        say(f"no knob, {n} x {p}")
        rows.append(_row_of_searches(f"no knob, {n} x {p}", [_searches(*_data(n, p, seed)) for seed in range(seeds)]))
    return rows


def _data(n: int, p: int, seed: int) -> tuple[Any, Any]:
    """Two classes whose log-odds are a sum of ten features, each with a weight of 1 or -1."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    eta = X[:, :10] @ rng.choice([-1.0, 1.0], 10)
    return X, (rng.random(n) < 1 / (1 + np.exp(-eta))).astype(float)


def _race(contestants: Mapping[str, Callable[[], Any]], repeats: int = 5) -> tuple[dict[str, float], dict[str, Any]]:
    """Median seconds and last result of each; they take turns, after a round that does not count."""
    taken: dict[str, list[float]] = {name: [] for name in contestants}
    results: dict[str, Any] = {}
    for _ in range(repeats + 1):
        for name, call in contestants.items():
            start = clock.now()
            results[name] = call()
            taken[name].append(clock.now() - start)
    return {name: float(np.median(times[1:])) for name, times in taken.items()}, results


# One penalty, beside skglm


@dataclass(frozen=True)
class Judge:
    """What both minimise, from its definition."""

    X: Any
    y: Any
    lam: float

    def objective(self, w: Any) -> float:
        eta = self.X @ w[:-1] + w[-1]
        return float(np.logaddexp(0.0, eta).sum() - self.y @ eta + self.lam * np.abs(w[:-1]).sum())

    def violation(self, w: Any) -> float:
        """Largest violation of the conditions of a minimum, relative to the penalty."""
        residual = self.y - 1 / (1 + np.exp(-(self.X @ w[:-1] + w[-1])))
        slope, size = self.X.T @ residual, np.where(w[:-1] == 0, 0.0, self.lam)
        wrong = np.where(size == 0, np.abs(slope) - self.lam, np.abs(slope - size * np.sign(w[:-1])))
        return max(float(wrong.max()), abs(float(residual.sum())), 0.0) / self.lam


def _solves(X: Any, y: Any, part: float) -> dict[str, float]:
    """Both from nothing, each at the loosest tolerance that reaches the best objective known."""
    lam = part * float(np.abs((y - y.mean()) @ X).max())
    judge, columns = Judge(X, y, lam), np.asfortranarray(X)
    makers: dict[str, Callable[[float], Callable[[], Any]]] = {
        "ours": lambda tolerance: our_lasso(X, y, lam, tolerance),
        "skglm": lambda tolerance: prox_newton(columns, y, lam, tolerance),
    }
    best = min(judge.objective(make(TOLERANCES[-1])()) for make in makers.values())
    chosen = {name: _loosest(make, judge, best) for name, make in makers.items()}
    contestants = {name: make(chosen[name]) for name, make in makers.items()}
    seconds, results = _race(contestants | {"fine": makers["ours"](TOLERANCES[-1])})
    out = {"fine": seconds["fine"], "difference": judge.objective(results["ours"]) - judge.objective(results["skglm"])}
    out["difference"] /= best
    for name in makers:
        w = results[name]
        out |= {
            name: seconds[name],
            f"{name} tolerance": chosen[name],
            f"{name} objective": judge.objective(w),
            f"{name} violation": judge.violation(w),
            f"{name} nonzeros": float(np.count_nonzero(w[:-1])),
        }
    return out


def _loosest(make: Callable[[float], Callable[[], Any]], judge: Judge, best: float) -> float:
    for tolerance in TOLERANCES:
        if judge.objective(make(tolerance)()) <= best * (1 + SAME):
            break
    return float(tolerance)


def _row_of_solves(case: str, found: list[dict[str, float]]) -> Row:
    """Medians of times, and the worst differences."""
    table = {name: np.array([f[name] for f in found]) for name in found[0]}
    ratios = table["ours"] / table["skglm"]
    apart = float(np.abs(table["difference"]).max())
    quality: dict[str, float | str] = {
        "ratio": _range(ratios, ".2f"),
        "objective": f"{table['ours objective'][0]:.9g} (skglm {table['skglm objective'][0]:.9g})",
        "relative difference": f"{table['difference'][np.argmax(np.abs(table['difference']))]:+.1e}",
        "violation": f"{table['ours violation'].max():.0e} (skglm {table['skglm violation'].max():.0e})",
        "nonzeros": f"{_range(table['ours nonzeros'], '.0f')} (skglm {_range(table['skglm nonzeros'], '.0f')})",
        "tolerance": f"{table['ours tolerance'].min():.0e} (skglm {table['skglm tolerance'].min():.0e})",
        f"at {FINE:g}, s": float(np.median(table["fine"])),
    }
    met = float(np.median(ratios)) <= SLOWER and apart <= SAME
    target = f"at most {SLOWER} x skglm, objective within {SAME:g}"
    times = [float(np.median(table[name])) for name in ("ours", "skglm")]
    return Row("l1", case, target, met, times[0], "skglm", times[1], quality=quality)


def _range(values: Any, form: str) -> str:
    """Median and, in brackets, the range."""
    ends = "" if values.min() == values.max() else f" [{values.min():{form}}, {values.max():{form}}]"
    return f"{np.median(values):{form}}{ends}"


# No knob, beside cross-validation by the same solver


def _searches(X: Any, y: Any) -> dict[str, Any]:
    """The search and the whole fit, and cross-validation over rows of weight zero and over rows left out."""
    whole = _labelled(X, y)
    fold = np.empty(len(y), dtype=int)
    fold[np.argsort(y, kind="stable")] = np.arange(len(y)) % FOLDS
    folds = [(_labelled(X[fold != k], y[fold != k]), X[fold == k], y[fold == k]) for k in range(FOLDS)]
    front = {"model": "jeffreys_laplace", "likelihood": "bernoulli"}
    contestants = {
        "search": lambda: first_solution(Path(whole.problem), lambda *_: None)[0],
        "fit": ours(X, y, **front),
        "fit by cv": ours(X, y, method="cv", **front),
        "fit by cv to 1e-2": ours(X, y, method="cv", weakest=1e-2, **front),
        "cv": lambda: _cross_validate(whole, folds),
    }
    seconds, results = _race(contestants)
    point = results["search"].point
    return seconds | {
        "status": results["search"].status,
        "N": point.N,
        "N by cv": int(results["fit by cv"]["evidence"]["N"]),
        "lambda R / N": point.lam * point.R / point.N if point.N else np.nan,
        "part": point.lam / Path(whole.problem).largest,
    }


def _labelled(X: Any, y: Any) -> LabelledProblem:
    prepared = prepare((X, y), None, "bernoulli", bs.basis.linear(), None, None, None)
    return bs.models.JeffreysLaplace().problem(prepared)


def _cross_validate(whole: LabelledProblem, folds: list[tuple[LabelledProblem, Any, Any]]) -> Any:
    """The path in every fold, each a problem of its own that was prepared before, and the whole at the best lambda."""
    path = Path(whole.problem)
    knobs, part = path.largest * GRID, 1 - 1 / len(folds)
    losses = np.zeros(len(knobs))
    for inside, X, y in folds:
        own = Path(inside.problem)
        point = own.null
        for i, knob in enumerate(knobs):
            point = own.at(part * knob, point, ROUGH)
            w, basis = inside.in_users_units(point.w, point.index), point.index < inside.M
            eta = X[:, point.index[basis]] @ w[basis] + w[~basis]
            losses[i] += np.mean(np.logaddexp(0.0, eta) - y * eta)
    return path.cold(knobs[np.argmin(losses)], FINE)


def _row_of_searches(case: str, found: list[dict[str, Any]]) -> Row:
    table = {name: np.array([f[name] for f in found]) for name in found[0]}
    parts = {
        "search / cv, rows left out": table["search"] / table["cv"],
        "fit / cv fit, rows of weight 0": table["fit"] / table["fit by cv"],
        "the same, grid to 1e-2": table["fit"] / table["fit by cv to 1e-2"],
    }
    counted = {status: int(np.sum(table["status"] == status)) for status in sorted(set(table["status"]))}
    off = np.abs(table["lambda R / N"] - 1).max()
    quality: dict[str, float | str] = {
        **{name: _range(values, ".2f") for name, values in parts.items()},
        "search, s": float(np.median(table["search"])),
        "cv with rows left out, s": float(np.median(table["cv"])),
        "status": ", ".join(f"{count} {status}" for status, count in counted.items()),
        "N": f"{_range(table['N'], '.0f')} (cv {_range(table['N by cv'], '.0f')})",
        "lambda / largest": _range(table["part"], ".3f"),
        "lambda R / N - 1": f"{off:.0e}",
    }
    met = all(float(np.median(parts[name])) <= PART for name in list(parts)[:2])
    times = [float(np.median(table[name])) for name in ("fit", "fit by cv")]
    return Row("l1", case, f"at most {PART:g} of cross-validation", met, times[0], "cv", times[1], quality=quality)
