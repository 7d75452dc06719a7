"""Tables 2 to 7 of "Fast Bayesian L1 Regularization for Sparse Logistic Regression": eight sets, and mushrooms.

Linear classifiers, 5 x 2 folds. The five mushroom sets are samples of 202 of its 8124 rows: what the paper calls 200
has errors that are multiples of 1/202.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.svm import SVC

from bayes_sparse.common.progress import quiet
from bayes_sparse.common.types import FloatArray
from bayes_sparse.fitting.fit import fit
from bayes_sparse.inputs.basis import inner_product, linear
from bayes_sparse.results.predict.predict import predict
from studies.cells import Crew, Record
from studies.halves import REPEATS, checked, computed, features, halves, log_score

__all__ = ["METHODS", "MUSHROOMS", "SETS", "cells_of", "data_of", "judged", "run"]

VERSION = 1  # of the steps: raise it when the same settings give other results
MUSHROOMS = tuple(f"mushroom {number}" for number in range(1, 6))
SETS = {
    "BUPA": "bupa",
    "German": "german_numeric",
    "heart": "heart_statlog",
    "Australian": "australian",
    "Pima": "pima",
    "sick.test": "sick_test",
    "WDBC": "wdbc",
    "WPBC": "wpbc",
    **dict.fromkeys(MUSHROOMS, "mushroom"),
}
_SAMPLE = 202  # mushrooms


class Told(NamedTuple):
    """What a classifier says of new rows, how many weights it keeps, and how it ended."""

    label: NDArray[Any]
    log_score: float
    kept: int
    status: str


type Classifier = Callable[[FloatArray, NDArray[Any], FloatArray, NDArray[Any]], tuple[Told, float]]


def ours(model: str, basis: Any = None, **settings: Any) -> Classifier:
    """A fit by its name, with settings of `fit`; columns stay as they were standardised, over all rows."""

    def call(X: FloatArray, y: NDArray[Any], new: FloatArray, new_y: NDArray[Any]) -> tuple[Told, float]:
        start = time.thread_time()
        tree = fit(
            model, (X, y), likelihood="bernoulli", basis=basis or linear(), draws=0, progressbar=False, **settings
        )
        seconds = time.thread_time() - start
        probability = predict(tree, new)["probability"].to_numpy()[:, 1]
        kept, status = int(tree["evidence"]["kept"].sum()), str(tree["evidence"].attrs["status"])
        return Told(probability > 0.5, log_score(probability, new_y), kept, status), seconds

    return call


def linear_svm(X: FloatArray, y: NDArray[Any], new: FloatArray, new_y: NDArray[Any]) -> tuple[Told, float]:
    """The support vector machine with a linear kernel and C = 1; it has no probabilities, and keeps rows."""
    start = time.thread_time()
    machine = SVC(kernel="linear", C=1.0).fit(X, y)
    seconds = time.thread_time() - start
    return Told(machine.predict(new) == 1, np.nan, len(machine.support_), "fitted"), seconds


# The paper's four, then the paper's own procedure, its predecessor, and ours for columns.
METHODS: dict[str, Classifier] = {
    "BLogReg": ours("jeffreys_laplace"),
    "FuzzyBLogReg": ours("jeffreys_laplace", method="fuzzy"),
    "linear SVM": linear_svm,
    "linear RVM": ours("ard_gaussian", inner_product(), smoothness=0, slab=None),
    "BLogReg, one weight at a time": ours("jeffreys_laplace", method="coordinate_descent"),
    "SLogReg, cross-validated": ours("jeffreys_laplace", method="cv"),
    "RVM of columns": ours("ard_gaussian"),
}


def judged(name: str, method: str, repeat: int, half: int) -> Record:
    """One fit, and what it says of the other half."""
    X, y = data_of(name)
    train, test = halves(len(y), repeat, half)
    varied = np.ptp(X[train], axis=0) > 0  # some codes are rare
    with quiet():
        _warm(method)
        told, seconds = METHODS[method](X[train][:, varied], y[train], X[test][:, varied], y[test])
    return {
        "error": 100 * float(np.mean(told.label != (y[test] == 1))),
        "log_score": told.log_score,
        "kept": told.kept,
        "seconds": seconds,
        "status": told.status,
    }


@cache
def _warm(method: str) -> None:
    """A fit of the kind before those that are timed: what is compiled once in a process does not count."""
    X, y = np.random.default_rng(0).standard_normal((20, 2)), np.arange(20) % 2
    METHODS[method](X, y, X, y)


def data_of(name: str) -> tuple[FloatArray, NDArray[np.intp]]:
    """Features and classes; of mushrooms a sample with the classes in their proportion, standardised by itself."""
    X, y = features(SETS[name])
    if name not in MUSHROOMS:
        return X, y
    rng = np.random.default_rng([2, MUSHROOMS.index(name)])
    first = round(_SAMPLE * float(np.mean(y == 0)))
    rows = [rng.choice(np.flatnonzero(y == k), n, replace=False) for k, n in ((0, first), (1, _SAMPLE - first))]
    chosen = np.sort(np.concatenate(rows))
    X = X[chosen]
    X = X[:, np.ptp(X, axis=0) > 0]
    return (X - X.mean(axis=0)) / X.std(axis=0), y[chosen]


def cells_of(
    sets: Sequence[str] = tuple(SETS), methods: Sequence[str] = tuple(METHODS), repeats: int = REPEATS
) -> pd.DataFrame:
    """What is to be computed: a row per cell, which is the call of `judged` with the columns' values."""
    checked(sets, SETS)
    checked(methods, METHODS)
    rows = [
        {"set": name, "method": method, "repeat": repeat, "half": half}
        for repeat in range(repeats)
        for name in sets
        for half in (0, 1)
        for method in methods
    ]
    return pd.DataFrame(rows)


def run(
    plan: pd.DataFrame, output: Path, crew: Crew | None = None, *, retry: bool = False, progressbar: bool = True
) -> pd.DataFrame:
    """All cells of a plan, each stored when it is done: `studies.halves.computed`."""
    return computed(judged, plan, output, crew, version=VERSION, retry=retry, progressbar=progressbar)
