"""The same model on new data of the same shape: nothing recompiled, little time outside the numerical core."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pymc as pm

import bayes_sparse as bs
from bayes_sparse.inputs import compiled
from benchmarks.peers import ours
from benchmarks.report import Row

N, P = 500, 50
LIMIT = 0.010


def run(say: Callable[[str], None], seeds: int = 20) -> list[Row]:
    """One row a likelihood, for the named model; then a kernel and a `pm.Model` of the user's own."""
    rows = []
    for name in ("normal", "student_t", "bernoulli", "poisson", "negative_binomial"):
        say(name)
        rows.append(_repeat(f"{name}, {N} x {P}", lambda seed, name=name: _named(name, seed), seeds))
    say("rbf")
    rows.append(_repeat(f"normal, rbf kernel n = {N} (its matrix counted as outside)", _kernel, seeds))
    say("declared")
    model = _declare()
    rows.append(_repeat(f"pm.Model of one's own, poisson, {N} x {P}", lambda seed: _declared(model, seed), seeds))
    return rows


def _repeat(case: str, prepare: Callable[[int], Callable[[], Any]], count: int) -> Row:
    prepare(0)()
    compiled_before = len(compiled._cache)
    totals, around, tree = [], [], None
    for seed in range(1, count + 1):
        call = prepare(seed)
        start = time.perf_counter()
        tree = call()
        totals.append(time.perf_counter() - start)
        around.append(totals[-1] - tree["evidence"].attrs["seconds"])
    recompiled = len(compiled._cache) - compiled_before
    quality = {
        "outside the core, ms (best)": 1000 * min(around),
        "(median)": 1000 * float(np.median(around)),
        "recompiled": float(recompiled),
        "log evidence (last)": float(tree["evidence"]["log_evidence"]),
    }
    met = recompiled == 0 and min(around) < LIMIT
    return Row("repeated fit", case, "none recompiled, core + 10 ms", met, min(totals), quality=quality)


def _draw(name: str, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, P))
    eta = 0.7 * (X[:, 0] - X[:, 1])
    if name == "normal":
        return X, eta + rng.standard_normal(N)
    if name == "student_t":
        return X, eta + rng.standard_t(4, N)
    if name == "bernoulli":
        return X, (eta + rng.logistic(size=N) > 0).astype(int)
    return X, rng.poisson(np.exp(eta) * (1 if name == "poisson" else rng.gamma(2, 0.5, N)))


def _named(name: str, seed: int) -> Callable[[], Any]:
    return ours(*_draw(name, seed), likelihood=name)


def _kernel(seed: int) -> Callable[[], Any]:
    data = bs.datasets.sinc(N, random_seed=seed)
    return ours(data.X, data.y, basis=bs.basis.rbf(2.0))


def _declare() -> pm.Model:
    X, y = _draw("poisson", 0)
    with pm.Model() as model:
        data = pm.Data("X", X)
        alpha = pm.Gamma("alpha", 1e-3, 1e-3, shape=P)
        w = pm.Normal("w", 0.0, tau=alpha, shape=P)
        b = pm.Normal("b", 0.0, 10.0)
        pm.Poisson("y", pm.math.exp(data @ w + b), observed=pm.Data("counts", y))
    return model


def _declared(model: pm.Model, seed: int) -> Callable[[], Any]:
    X, y = _draw("poisson", seed)
    return lambda: bs.fit(model, {"X": X, "counts": y}, draws=0, progressbar=False)
