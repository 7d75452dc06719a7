"""The tables of "Sparse Modelling with Relevance Vector Machines" (2018), which repeats those of Tipping (2001).

Sinc with and without noise, Boston's houses, Ripley's two classes, and Pima.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import norm
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.svm import SVC, SVR

from bayes_sparse import datasets
from bayes_sparse.common.progress import quiet
from bayes_sparse.common.types import FloatArray
from bayes_sparse.fitting.fit import fit
from bayes_sparse.inputs.basis import rbf
from bayes_sparse.results.predict.predict import predict
from studies.cells import Crew, Record
from studies.halves import checked, computed, log_score

__all__ = ["METHODS", "PROBLEMS", "Data", "Problem", "cells_of", "judged", "run"]

VERSION = 1  # of the steps: raise it when the same settings give other results
_NEW = 1000  # points at which a curve is compared with the truth


class Data(NamedTuple):
    """Rows to learn from, rows held out, and whether targets are classes 0 and 1."""

    X: FloatArray
    y: NDArray[Any]
    new: FloatArray
    new_y: NDArray[Any]
    classes: bool


def _sinc(noise: float, repeat: int) -> Data:
    """100 points of a grid; judged by the root mean squared distance from the curve itself."""
    drawn, x = datasets.sinc(100, noise, random_seed=repeat), np.linspace(-10, 10, _NEW)
    return Data(drawn.X, drawn.y, x[:, None], np.sinc(x / np.pi), classes=False)


def _boston(rows: int, held: int, repeat: int) -> Data:
    """Columns with mean 0 and sd 1 over the rows fitted."""
    return _split(*_table("boston_housing"), rows, held, repeat, classes=False)


def _pima(rows: int, held: int, repeat: int) -> Data:
    return _split(*_table("pima"), rows, held, repeat, classes=True)


def _split(X: FloatArray, y: NDArray[Any], rows: int, held: int, repeat: int, *, classes: bool) -> Data:
    order = np.random.default_rng([18, repeat]).permutation(len(y))
    train, test = order[:rows], order[rows : rows + held]
    mean, sd = X[train].mean(axis=0), X[train].std(axis=0)
    X = (X - mean) / np.where(sd > 0, sd, 1.0)
    return Data(X[train], y[train], X[test], y[test], classes)


def _ripley(repeat: int) -> Data:
    (X, y), (new, new_y) = (_table(f"ripley_synth_{part}") for part in ("train", "test"))
    return Data(X, y, new, new_y, classes=True)


def _like_ripley(repeat: int) -> Data:
    train, test = (datasets.two_gaussians(n, random_seed=np.random.default_rng([18, repeat, n])) for n in (250, 1000))
    return Data(train.X, train.y, test.X, test.y, classes=True)


def _pima_ripley(repeat: int) -> Data:
    (X, y), (new, new_y) = (_table(f"pima_ripley_{part}") for part in ("train", "test"))
    mean, sd = X.mean(axis=0), X.std(axis=0)
    return Data((X - mean) / sd, y, (new - mean) / sd, new_y, classes=True)


def _table(name: str) -> tuple[FloatArray, NDArray[Any]]:
    frame = datasets.load(name)
    X, y = frame.drop(columns="target").to_numpy(float), frame["target"]
    return X, y.to_numpy(float) if name == "boston_housing" else np.unique(y, return_inverse=True)[1]


type Width = float | Literal["evidence"]


class Problem(NamedTuple):
    """Where data come from, how often, and the widths tried."""

    data: Callable[[int], Data]
    repeats: int
    widths: tuple[Width, ...]
    classes: bool = True


PROBLEMS: dict[str, Problem] = {
    "sinc": Problem(lambda repeat: _sinc(0.0, repeat), 1, (1 / 0.6, 3.0), classes=False),
    "sinc, noise 0.2": Problem(lambda repeat: _sinc(0.2, repeat), 40, ("evidence", 1 / 0.4, 3.0), classes=False),
    "Boston, 481 rows": Problem(lambda repeat: _boston(481, 25, repeat), 25, (2.0, 3.0, 5.0), classes=False),
    "Boston, 90 rows": Problem(lambda repeat: _boston(90, 10, repeat), 25, ("evidence", 5.0), classes=False),
    "Ripley": Problem(_ripley, 1, ("evidence", 0.3, 0.5, 0.7)),
    "like Ripley": Problem(_like_ripley, 20, ("evidence", 0.5)),
    "Pima, 200 and 332": Problem(_pima_ripley, 1, ("evidence", 1.0, 2.0, 3.0, 5.0, 10.0)),
    "Pima, of all 768": Problem(lambda repeat: _pima(200, 332, repeat), 20, ("evidence", 5.0)),
}
# The papers' as it is, without a price on degrees of freedom or a slab; ours by default; the peer.
METHODS: dict[str, dict[str, Any]] = {"RVM": {"smoothness": 0, "slab": None}, "RVM, default": {}, "SVM": {}}
_OFFERED = {"C": [1, 10, 100], "gamma": [0.01, 0.03, 0.1, 0.3, 1]}  # to the SVM, by five folds


def judged(problem: str, method: str, width: Width, repeat: int) -> Record:
    """One fit."""
    data = PROBLEMS[problem].data(repeat)
    with quiet():
        _warm(data.classes)
        return _svm(data) if method == "SVM" else _rvm(data, width, METHODS[method])


@cache
def _warm(classes: bool) -> None:
    """A fit of the kind before those that are timed: what is compiled once in a process does not count."""
    x = np.linspace(-1, 1, 12)[:, None]
    y = np.arange(12) // 3 % 2 if classes else np.sin(3 * x[:, 0])
    _rvm(Data(x, y, x, y, classes), 1.0, {})


def _rvm(data: Data, width: Width, settings: dict[str, Any]) -> Record:
    start = time.thread_time()
    tree = fit(
        "ard_gaussian",
        (data.X, data.y),
        likelihood="bernoulli" if data.classes else "normal",
        basis=rbf(width),
        draws=0,
        progressbar=False,
        **settings,
    )
    seconds, found = time.thread_time() - start, predict(tree, data.new)
    if data.classes:
        probability = found["probability"].to_numpy()[:, 1]
        measures = _classified(probability > 0.5, data) | {"log_score": log_score(probability, data.new_y)}
    else:
        mean, sd = found["mean"].to_numpy(), found["sd"].to_numpy()
        measures = _distances(mean, data) | {"log_score": float(np.mean(norm.logpdf(data.new_y, mean, sd)))}
    evidence = tree["evidence"]
    at = float(evidence.attrs.get("width", width))
    rest = {"kept": int(evidence["kept"].sum()), "seconds": seconds, "status": str(evidence.attrs["status"])}
    return measures | rest | {"width_used": at}


def _svm(data: Data) -> Record:
    """With its constants by five-fold cross-validation, whose time is counted."""
    start = time.thread_time()
    spread = float(np.std(data.y)) or 1.0
    target = data.y if data.classes else data.y / spread
    folds = (StratifiedKFold if data.classes else KFold)(5, shuffle=True, random_state=0)
    search = GridSearchCV(SVC() if data.classes else SVR(), _OFFERED, cv=folds)
    chosen = search.fit(data.X, target).best_estimator_
    seconds, said = time.thread_time() - start, chosen.predict(data.new)
    measures = _classified(said == 1, data) if data.classes else _distances(said * spread, data)
    kept = len(chosen.support_)
    return measures | {"log_score": np.nan, "kept": kept, "seconds": seconds, "status": "fitted", "width_used": np.nan}


def _classified(label: NDArray[Any], data: Data) -> Record:
    wrong = label != (data.new_y == 1)
    return {"error": 100 * float(np.mean(wrong)), "wrong": int(wrong.sum()), "largest": np.nan}


def _distances(mean: FloatArray, data: Data) -> Record:
    apart = np.abs(mean - data.new_y)
    return {"error": float(np.mean(apart**2)), "wrong": np.nan, "largest": float(apart.max())}


def cells_of(
    sets: Sequence[str] = tuple(PROBLEMS), methods: Sequence[str] = tuple(METHODS), repeats: int | None = None
) -> pd.DataFrame:
    """What is to be computed: a row per cell, which is the call of `judged` with the columns' values."""
    checked(sets, PROBLEMS)
    checked(methods, METHODS)
    rows = [
        {"set": name, "method": method, "width": width, "repeat": repeat}
        for repeat in range(max(problem.repeats for problem in PROBLEMS.values()))
        for name in sets
        if repeat < min(PROBLEMS[name].repeats, repeats or PROBLEMS[name].repeats)
        for method in methods
        for width in _widths(PROBLEMS[name], method)
    ]
    return pd.DataFrame(rows).astype({"width": object})


def _widths(problem: Problem, method: str) -> tuple[Width | Literal[""], ...]:
    """Those at which a method is tried. At a given width ours by default is the papers' RVM where y are numbers."""
    if method == "SVM":
        return ("",)
    # Without a price evidence prefers narrow kernels, which separate the classes or take the noise for signal.
    found = tuple(width for width in problem.widths if width == "evidence")
    fixed = tuple(width for width in problem.widths if width != "evidence")
    return fixed if method == "RVM" else (*found, *(fixed if problem.classes else ()))


def run(
    plan: pd.DataFrame, output: Path, crew: Crew | None = None, *, retry: bool = False, progressbar: bool = True
) -> pd.DataFrame:
    """All cells of a plan, each stored when it is done: `studies.halves.computed`."""
    return computed(judged, plan, output, crew, version=VERSION, retry=retry, progressbar=progressbar)
