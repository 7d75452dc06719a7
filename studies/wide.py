"""Real data with far more columns than rows: what our fits predict beside a cross-validated lasso, and how soon.

Folds are the same for all, balanced in the classes. Everything, standardising and selection included, is done anew in
each fold. To try another fit, add one line to `CANDIDATES`.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bayes_sparse import datasets
from bayes_sparse.common.progress import quiet
from bayes_sparse.common.types import FloatArray
from bayes_sparse.fitting.fit import fit
from bayes_sparse.refits.kfold import kfold
from bayes_sparse.results.predict.predict import predict
from studies.calibration import data_set_bar

__all__ = ["CANDIDATES", "LASSO", "SETS", "Score", "Told", "score", "table", "wide"]

SETS = ("ovarian", "prostate")
LASSO = "lasso, cross-validated"
_FOLDS = 10
_PENALTIES = np.logspace(-2, 2, 20)
_LEAST = 1e-15  # probability: a log loss stays finite


class Told(NamedTuple):
    """What a candidate says: the probability of class 1 in new rows, and a word on how it ended."""

    probability: FloatArray
    word: str


type Candidate = Callable[[FloatArray, NDArray[Any], FloatArray], Told]


def lasso(X: FloatArray, y: NDArray[Any], new: FloatArray) -> Told:
    """Logistic regression with an L1 penalty, chosen among 20 by the log loss of five inner folds."""
    settings: dict[str, Any] = {"scoring": "neg_log_loss", "solver": "liblinear", "random_state": 0, "max_iter": 1000}
    settings |= {"Cs": _PENALTIES, "cv": 5, "l1_ratios": (1.0,), "use_legacy_attributes": False}
    model = make_pipeline(StandardScaler(), LogisticRegressionCV(**settings)).fit(X, y)
    return Told(model.predict_proba(new)[:, 1], "fitted")


def ours(model: str, **settings: Any) -> Candidate:
    """A fit by its name, with settings of `fit`."""

    def call(X: FloatArray, y: NDArray[Any], new: FloatArray) -> Told:
        tree = fit(model, (X, y), draws=0, progressbar=False, **settings)
        return Told(predict(tree, new)["probability"].to_numpy()[:, 1], str(tree["evidence"].attrs["status"]))

    return call


def best_of(*names: str, folds: int) -> Candidate:
    """The one of `OURS` that predicts best in a cross-validation of the rows that are fitted."""

    def call(X: FloatArray, y: NDArray[Any], new: FloatArray) -> Told:
        def elpd(name: str) -> float:
            model, settings = OURS[name]
            # One process: the time of others would not be counted.
            return float(kfold(model, (X, y), folds, whole=False, workers=1, progressbar=False, **settings).elpd)

        best = max(names, key=elpd)
        model, settings = OURS[best]
        return Told(ours(model, **settings)(X, y, new).probability, best)

    return call


OURS: dict[str, tuple[str, dict[str, Any]]] = {
    "ard_gaussian": ("ard_gaussian", {}),
    "ard_gaussian, smoothness=0": ("ard_gaussian", {"smoothness": 0}),
    "jeffreys_laplace": ("jeffreys_laplace", {}),
    "jeffreys_laplace, fuzzy": ("jeffreys_laplace", {"method": "fuzzy"}),
    "jeffreys_laplace, cv": ("jeffreys_laplace", {"method": "cv"}),
    "jeffreys_laplace, coordinate_descent": ("jeffreys_laplace", {"method": "coordinate_descent"}),
    "revm": ("ard_gaussian", {"method": "revm"}),
    "revm, expansion='ridge'": ("ard_gaussian", {"method": "revm", "expansion": "ridge"}),
    "laplace_eigen": ("laplace_eigen", {}),
    "horseshoe": ("horseshoe", {}),
}
CANDIDATES: dict[str, Candidate] = {
    LASSO: lasso,
    **{name: ours(model, **settings) for name, (model, settings) in OURS.items()},
    "best by kfold of laplace_eigen and fuzzy": best_of("laplace_eigen", "jeffreys_laplace, fuzzy", folds=2),
}


class Score(NamedTuple):
    """What a candidate came to on one set: log loss of each row, share of errors, processor time, how fits ended."""

    loss: FloatArray
    error: float
    seconds: float
    words: Counter[str]


def score(candidate: Candidate, X: FloatArray, y: NDArray[Any], random_seed: int = 0) -> Score:
    """Ten folds of one candidate; columns that are constant in the rows fitted are left out."""
    folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=random_seed)
    probability, words = np.empty(len(y)), Counter[str]()
    with quiet():
        candidate(X[:, X.std(axis=0) > 0], y, X[:1, X.std(axis=0) > 0])  # what is compiled once does not count
        start = time.process_time()
        for train, test in folds.split(X, y):
            varied = X[train].std(axis=0) > 0
            told = candidate(X[train][:, varied], y[train], X[test][:, varied])
            probability[test] = told.probability
            words[told.word] += 1
        seconds = time.process_time() - start
    right = np.where(y == 1, probability, 1 - probability)
    return Score(-np.log(np.maximum(right, _LEAST)), float(np.mean((probability > 0.5) != y)), seconds, words)


def wide(
    repeats: int = 1,
    *,
    sets: tuple[str, ...] = SETS,
    candidates: Mapping[str, Candidate] = CANDIDATES,
    progressbar: bool = True,
) -> dict[tuple[str, str], list[Score]]:
    """Scores by set and candidate, one per split into folds; the splits have seeds 0, 1, ..."""
    found: dict[tuple[str, str], list[Score]] = {}
    with data_set_bar(progressbar) as bar:
        task = bar.add_task("", total=len(sets) * len(candidates) * repeats)
        for name in sets:
            frame = datasets.load(name)
            X, y = frame.drop(columns="target").to_numpy(dtype=float), frame["target"].to_numpy()
            for title, candidate in candidates.items():
                bar.update(task, description=f"{name}: {title}")
                for seed in range(repeats):
                    found.setdefault((name, title), []).append(score(candidate, X, y, seed))
                    bar.advance(task)
    return found


def table(found: Mapping[tuple[str, str], list[Score]]) -> str:
    """Markdown, averaged over splits.

    The standard error of a difference is that of its mean over rows, each averaged over the splits first.
    """
    head = ("set", "candidate", "log loss", "less the lasso's", "error", "seconds", "of the lasso's", "how fits ended")
    lines = [f"| {' | '.join(head)} |", "|" + " --- |" * len(head)]
    for (name, title), scores in found.items():
        loss, seconds = np.mean([one.loss for one in scores], axis=0), np.mean([one.seconds for one in scores])
        beside, share = "", ""
        if (peer := found.get((name, LASSO))) is not None and title != LASSO:
            apart = loss - np.mean([one.loss for one in peer], axis=0)
            beside = f"{apart.mean():+.3f} ± {apart.std(ddof=1) / np.sqrt(len(apart)):.3f}"
            share = f"{seconds / np.mean([one.seconds for one in peer]):.2f}"
        error, words = 100 * np.mean([one.error for one in scores]), Counter[str]()
        for one in scores:
            words += one.words
        ended = ", ".join(f"{times} {word}" for word, times in words.most_common())
        cells = (name, title, f"{loss.mean():.3f}", beside, f"{error:.1f}%", f"{seconds:.2f}", share, ended)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
