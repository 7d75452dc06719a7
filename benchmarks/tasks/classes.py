"""Several classes: digits over random splits, softmax beside one against the rest and beside scikit-learn; n < K."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, train_test_split

import bayes_sparse as bs
from benchmarks import clock
from benchmarks.report import Row

CONTESTANTS: dict[str, dict[str, Any]] = {
    "softmax": {},
    "softmax, hyper (0, 0)": {"hyper": (0.0, 0.0)},
    "one_vs_rest": {"method": "one_vs_rest"},
}


def run(say: Callable[[str], None], seeds: int = 10) -> list[Row]:
    """Rows of the digits (``seeds`` splits), of two small sets by cross-validation, and of more weights than rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # separable classes, and pixels that are the same in 1000 digits
        rows = digits(say, seeds)
        for name, load in (("iris", load_iris), ("wine", load_wine)):
            say(name)
            rows += small(name, load)
        say("wide")
        rows += wide()
    return rows


def fit(X: np.ndarray, y: np.ndarray, **settings: Any) -> Any:
    return bs.fit("student_multinomial", (X, y), draws=0, progressbar=False, **settings)


def score(tree: Any, X: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Error and log loss of integrated probabilities."""
    prediction = bs.predict(tree, X)
    place = np.searchsorted(prediction["class"].to_numpy(), y)
    p = prediction["probability"].to_numpy()[np.arange(len(y)), place]
    return float(np.mean(prediction["label"].to_numpy() != y)), float(-np.log(p).mean())


def digits(say: Callable[[str], None], seeds: int) -> list[Row]:
    X, y = load_digits(return_X_y=True)
    found: dict[str, list[tuple[float, float, float, float, str]]] = {name: [] for name in CONTESTANTS}
    plain = []
    for seed in range(seeds):
        train, test, y_train, y_test = train_test_split(X, y, train_size=1000, random_state=seed)
        varies = train.std(axis=0) > 0
        train, test = train[:, varies], test[:, varies]
        for name, settings in CONTESTANTS.items():
            say(f"digits, split {seed + 1} of {seeds}, {name}")
            seconds, tree = clock.once(partial(fit, train, y_train, **settings))
            evidence = tree["evidence"]
            kept = float(evidence["kept"].sum())
            found[name].append((*score(tree, test, y_test), kept, seconds, evidence.attrs["status"]))
        mean, sd = train.mean(axis=0), train.std(axis=0)
        peer = LogisticRegression(max_iter=2000).fit((train - mean) / sd, y_train)
        p = peer.predict_proba((test - mean) / sd)
        plain.append((np.mean(p.argmax(axis=1) != y_test), -np.log(p[np.arange(len(y_test)), y_test]).mean()))
    rows = []
    for name, scores in found.items():
        error, loss, kept, seconds = (np.array([row[i] for row in scores], dtype=float) for i in range(4))
        first = name == "softmax"
        rows.append(
            Row(
                "classes",
                f"digits 1000 / 797, {name}",
                target="split 0: converged, error 6.0%, log loss 0.22, 10 s" if first else "",
                met=bool(scores[0][4] == "converged" and error[0] <= 0.06 and loss[0] < 0.22 and seconds[0] < 10)
                if first
                else None,
                seconds=float(np.median(seconds)),
                quality={
                    "error": f"{100 * error.mean():.1f} +- {100 * error.std() / np.sqrt(seeds):.1f}%",
                    "split 0": f"{100 * error[0]:.1f}%, {loss[0]:.3f}",
                    "log loss": f"{loss.mean():.3f}",
                    "kept": float(kept.mean()),
                    "converged": f"{sum(row[4] == 'converged' for row in scores)} of {seeds}",
                },
            )
        )
    ridge = np.array(plain)
    quality = {"error": f"{100 * ridge[:, 0].mean():.1f}%", "log loss": f"{ridge[:, 1].mean():.3f}"}
    return [*rows, Row("classes", "digits, scikit-learn's L2 logistic regression", quality=quality)]


def small(name: str, load: Callable[..., Any]) -> list[Row]:
    X, y = load(return_X_y=True)
    rows = []
    for contestant, settings in CONTESTANTS.items():
        scores, seconds = [], []
        for train, test in StratifiedKFold(10, shuffle=True, random_state=0).split(X, y):
            took, tree = clock.once(partial(fit, X[train], y[train], **settings))
            seconds.append(took)
            scores.append((*score(tree, X[test], y[test]), float(tree["evidence"]["kept"].sum())))
        error, loss, kept = np.mean(scores, axis=0)
        quality = {"error": f"{100 * error:.1f}%", "log loss": f"{loss:.3f}", "kept": float(kept)}
        rows.append(
            Row("classes", f"{name}, 10-fold, {contestant}", seconds=float(np.median(seconds)), quality=quality)
        )
    return rows


def wide() -> list[Row]:
    """Time and memory with n = 200 rows and K = 5 d weights: linear in K, through the smaller side."""
    rng = np.random.default_rng(0)
    rows = []
    for d in (400, 800, 1600):
        X = rng.normal(size=(200, d))
        y = np.argmax(2 * X[:, :5] + rng.gumbel(size=(200, 5)), axis=1)
        seconds, tree = clock.once(partial(fit, X, y))
        peak = clock.peak_bytes(partial(fit, X, y))
        quality = {"K": float(5 * d), "peak MB": peak / 1e6, "K x K MB": 8 * (5 * d) ** 2 / 1e6}
        quality["kept"] = float(tree["evidence"]["kept"].sum())
        rows.append(Row("classes", f"n = 200, 5 x {d} weights", seconds=seconds, quality=quality))
    return rows
