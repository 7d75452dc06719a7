"""Which Gaussian is nearest the posterior: Laplace's, Jaakkola's bound, the best by KL, expectation propagation.

At the terms and precisions that Laplace's method finds, so that all four stand for one posterior: log evidence beside
the one by importance sampling, means and sds beside re-weighted draws, and the time of one evaluation. Then each finds
terms and precisions of its own on halves of the data, and predicts the other half.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, log_expit

import bayes_sparse as bs
from bayes_sparse.inference.approximations import approximate
from bayes_sparse.inference.evidence.state import Objective, State
from bayes_sparse.results.importance import importance
from benchmarks import clock
from benchmarks.report import Row
from benchmarks.tasks.expansions import features

NAMES = ("laplace", "variational", "kl", "ep")
DRAWS = 20_000
NEAR = 0.3  # nats that expectation propagation may be off
SLOWER = 5.0  # times that it may take longer than Laplace's method


def run(say: Callable[[str], None], seeds: int = 3) -> list[Row]:
    """A row a data set and approximation; ``seeds`` is how often a set is halved."""
    rows = []
    for name, (X, y, settings) in _sets().items():
        say(f"{name}: one posterior")
        at_one = _of_one_posterior(X, y, settings)
        say(f"{name}: predictions")
        rows += [_row(name, one, at_one, _held_out(X, y, settings, one, seeds)) for one in NAMES]
    return rows


class Seen(NamedTuple):
    """An approximation of one posterior."""

    seconds: float
    log_evidence: float
    error: float
    error_se: float
    mean: float
    sd: float


def _sets() -> dict[str, tuple[Any, Any, dict[str, Any]]]:
    ripley = bs.datasets.load("ripley_synth_train")
    rng = np.random.default_rng(0)
    sonar = rng.standard_normal((208, 60)) @ _neighbours(60)
    classes = rng.random(208) < expit(2 * sonar[:, [5, 20, 40]] @ [1.0, -1.0, 1.0])
    return {
        "heart": (*features("heart_statlog"), {}),
        "Pima": (*_columns("pima"), {}),
        "WDBC": (*_columns("wdbc"), {}),
        "sonar-like, 208 x 60": (sonar, classes, {}),
        "Ripley, kernels": (
            ripley[["xs", "ys"]].to_numpy(),
            ripley["target"].to_numpy(),
            {"basis": bs.basis.rbf(0.5), "smoothness": 0},
        ),
    }


def _columns(name: str) -> tuple[Any, Any]:
    table = bs.datasets.load(name)
    X = table.drop(columns="target").to_numpy(float)
    return (X - X.mean(axis=0)) / X.std(axis=0), np.unique(table["target"], return_inverse=True)[1]


def _neighbours(p: int) -> Any:
    """Columns correlated with their neighbours, as frequencies are."""
    apart = np.abs(np.subtract.outer(np.arange(p), np.arange(p)))
    return np.linalg.cholesky(0.9**apart).T


def _of_one_posterior(X: Any, y: Any, settings: dict[str, Any]) -> dict[str, Seen]:
    columns, log_alpha = _kept(X, y, settings)
    basis, empty = bs.basis.linear(standardise=False), np.empty(0)
    problem = bs.log_evidence_op((columns, y), likelihood="bernoulli", basis=basis).labelled.searched
    alpha, index = np.append(np.exp(log_alpha), 1.0), np.arange(len(log_alpha) + 1)  # the bias has its own precision
    made = {name: approximate(problem, Objective(), name) for name in NAMES}
    calls = {name: lambda one=one: one.at(index.copy(), alpha, empty) for name, one in made.items()}
    best, states = clock.race(calls, 15)
    truth, se, mean, sd = _by_importance(np.column_stack([columns, np.ones(len(y))]), y, states["kl"])
    return {
        name: Seen(
            best[name],
            state.log_evidence,
            state.log_evidence - truth,
            se,
            float(np.abs((state.mean - mean) / sd).max()),
            float(np.abs(np.sqrt(state.variance) / sd - 1).max()),
        )
        for name, state in states.items()
    }


def _kept(X: Any, y: Any, settings: dict[str, Any]) -> tuple[Any, Any]:
    """The columns that Laplace's method keeps, as it sees them, and the logs of their precisions."""
    tree = _fit(X, y, settings, "laplace")
    kept, alpha = (tree["evidence"][name].to_numpy() for name in ("kept", "alpha"))
    basis = settings.get("basis")
    if basis is None:
        return X[:, kept], np.log(alpha[kept])
    apart = np.sum((X[:, None] - X[None, kept]) ** 2, axis=2)
    return np.exp(-apart / (2 * basis.width**2)), np.log(alpha[kept])


def _by_importance(Phi: Any, y: Any, near: State) -> tuple[float, float, Any, Any]:
    """Log evidence with its standard error, means and sds of the weights, from draws of a Gaussian near by."""
    z = np.random.default_rng(0).standard_normal((DRAWS, Phi.shape[1]))
    w = near.mean + z @ near.posterior.factor.T
    eta = w @ Phi.T
    log_p = log_expit(np.where(y == 1, eta, -eta)).sum(axis=1)
    log_p += 0.5 * np.log(near.alpha / (2 * np.pi)).sum() - 0.5 * w**2 @ near.alpha
    log_q = 0.5 * near.posterior.log_determinant - 0.5 * np.sum(z**2 + np.log(2 * np.pi), axis=1)
    found = importance(log_p[None], log_q[None])
    weights = np.exp(found.log_weights)
    mean = weights @ w
    return found.log_mean, found.log_mean_se, mean, np.sqrt(weights @ (w - mean) ** 2)


def _held_out(X: Any, y: Any, settings: dict[str, Any], name: str, seeds: int) -> tuple[float, float, float]:
    """Log loss on the other half, terms kept and seconds, on average."""
    losses, kept, taken, rng = [], [], [], np.random.default_rng(1)
    for _ in range(seeds):
        order = rng.permutation(len(y))
        halves = order[: len(y) // 2], order[len(y) // 2 :]
        for train, test in (halves, halves[::-1]):
            seconds, tree = clock.once(lambda train=train: _fit(X[train], y[train], settings, name))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # of rows far from the kernels
                probability = bs.predict(tree, X[test])["probability"].to_numpy()
            right = probability[np.arange(len(test)), y[test].astype(int)]
            losses.append(-np.mean(np.log(right)))
            kept.append(int(tree["evidence"]["kept"].sum()))
            taken.append(seconds)
    return float(np.mean(losses)), float(np.mean(kept)), float(np.median(taken))


def _fit(X: Any, y: Any, settings: dict[str, Any], name: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return bs.fit(
            "ard_gaussian", (X, y), likelihood="bernoulli", approximation=name, draws=0, progressbar=False, **settings
        )


def _row(name: str, approximation: str, one: dict[str, Seen], held_out: tuple[float, float, float]) -> Row:
    own, log_loss, kept, seconds = one[approximation], *held_out
    quality: dict[str, float | str] = {
        "log evidence": f"{own.log_evidence:.2f}",
        "off by": f"{own.error:+.3f} ± {own.error_se:.3f} nats",
        "means off by": f"{own.mean:.2f} sds",
        "sds off by": f"{100 * own.sd:.0f}%",
        "held-out log loss": f"{log_loss:.4f}",
        "kept": f"{kept:.1f}",
        "fit": f"{1e3 * seconds:.0f} ms",
    }
    reached = approximation == "ep"
    met = abs(own.error) < NEAR + 2 * own.error_se and own.seconds <= SLOWER * one["laplace"].seconds
    return Row(
        "approximations",
        f"{name}, {approximation}",
        target=f"within {NEAR} nats, {SLOWER:g} x Laplace's time" if reached else "",
        met=met if reached else None,
        seconds=own.seconds,
        peer="laplace",
        peer_seconds=one["laplace"].seconds,
        quality=quality,
    )
