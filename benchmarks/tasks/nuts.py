"""NUTS by default settings on nine data sets: its own diagnosis over several seeds, beside plain nutpie."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pymc as pm
import xarray as xr
from sklearn.datasets import load_diabetes, load_digits

import bayes_sparse as bs
from bayes_sparse.fitting.readings import reading_of
from bayes_sparse.inputs.declaration import coords_of, gamma_weights, observe, standardised
from bayes_sparse.inputs.model import Handed, sampled_slab
from bayes_sparse.inputs.named_model import bias_sd
from benchmarks import clock
from benchmarks.report import Row

TARGETS = (0.8, 0.9, 0.95, 0.99)  # target_accept of plain nutpie, of which the best counts
FEW = ("diabetes", "Poisson 300 x 20")  # data sets that take seconds each
SECONDS = {"WDBC": 20.0, "Ripley, rbf": 40.0}


class Case(NamedTuple):
    """Data and how they are fitted."""

    data: tuple[np.ndarray, np.ndarray]
    likelihood: str
    model: str = "ard_gaussian"
    basis: Any = "linear"

    @property
    def settings(self) -> dict[str, Any]:
        return {"likelihood": self.likelihood, "basis": self.basis}


def run(
    say: Callable[[str], None], seeds: int | None = None, only: str | None = None, large: bool = False
) -> list[Row]:
    """A row per data set; plain nutpie has one seed at each target_accept. All nine and five seeds if ``large``."""
    rows, seeds = [], (5 if large else 1) if seeds is None else seeds
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for name, make in CASES.items():
            if name == only or (only is None and (large or name in FEW)):
                rows.append(row(name, make(), seeds, lambda what, name=name: say(f"{name}, {what}")))
    return rows


def row(name: str, case: Case, seeds: int, say: Callable[[str], None]) -> Row:
    found = []
    for seed in range(seeds + 1):
        say(f"seed {seed} of {seeds}")
        seconds, tree = clock.once(lambda seed=seed: ours(case, seed))
        if seed:  # the first run compiles what a machine compiles once
            found.append((seconds, bs.diagnose(tree), tree))
    plain = {}
    for target in TARGETS:
        say(f"plain nutpie at {target}")
        seconds, tree = clock.once(lambda target=target: nutpie_alone(case, target))
        plain[target] = fewest(tree) / seconds
    trusted = sum(diagnosis.trusted for _, diagnosis, _ in found)
    rate = float(np.median([fewest(tree) / seconds for seconds, _, tree in found]))
    times = np.array([seconds for seconds, *_ in found])
    within = times.max() <= SECONDS.get(name, np.inf)
    best = max(plain.values())
    return Row(
        "nuts",
        name,
        target=f"trusted in {seeds - 1} of {seeds}, 1.5 x nutpie"
        + (f", {SECONDS[name]:g} s" if name in SECONDS else ""),
        met=bool(trusted >= seeds - 1 and rate >= 1.5 * best and within),
        seconds=float(np.median(times)),
        quality={
            "trusted": f"{trusted} of {seeds}",
            "slowest": float(times.max()),
            "R-hat": max(d.r_hat_max for _, d, _ in found),
            "fewest effective": min(d.ess_bulk_min for _, d, _ in found),
            "divergences": sum(d.divergences for _, d, _ in found),
            "tried again": sum(bool(tree["posterior"].attrs["retried"]) for *_, tree in found),
            "effective per s": rate,
            "plain nutpie, best": best,
            "ratio": rate / best,
            "plain nutpie": ", ".join(f"{target}: {value:.0f}" for target, value in plain.items()),
        },
    )


def ours(case: Case, seed: int) -> xr.DataTree:
    return bs.fit(case.model, case.data, method="nuts", random_seed=seed, progressbar=False, **case.settings)


def nutpie_alone(case: Case, target: float) -> xr.DataTree:
    """The same model, none of its weights centred, as anyone would declare and sample it."""
    with declared(case), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sampled: xr.DataTree = pm.sample(
            nuts_sampler="nutpie",
            draws=1000,
            tune=1000,
            chains=4,
            target_accept=target,
            random_seed=1,
            progressbar=False,
            quiet=True,
            compute_convergence_checks=False,
        )
    return sampled


def declared(case: Case) -> pm.Model:
    """With a bias as it is, which ours has another coordinate for where columns have a mean."""
    model = getattr(bs.models, {"ard_gaussian": "ARDGaussian"}.get(case.model, "StudentMultinomial"))()
    data = reading_of(model, Handed(case.data, **case.settings)).prepared
    sd, Phi = bias_sd(data, None), standardised(data)
    with pm.Model(coords=coords_of(data)) as declaration:
        w = gamma_weights(data, model.proper_hyper, sampled_slab(model, kernel=data.basis.kernel), sd, centred=False)
        bias = pm.Normal("bias", 0.0, sd, dims="class" if data.several else None)
        by_class = w.reshape((len(data.labels), Phi.shape[1])).T if data.several else w
        observe(data, pm.math.dot(Phi, by_class) + bias)
    return declaration


def fewest(tree: xr.DataTree) -> float:
    """Effective draws of the worst of the variables that both samplers have."""
    import arviz as az

    posterior = tree["posterior"].to_dataset().drop_vars("z", errors="ignore")
    return min(float(values.min()) for values in az.ess(posterior).data_vars.values())


def two_classes(name: str, one: str) -> Callable[[], Case]:
    def make() -> Case:
        frame = bs.datasets.load(name).dropna()
        X = frame.drop(columns="target").select_dtypes("number").to_numpy(float)
        return Case((X, (frame["target"].astype(str) == one).to_numpy(int)), "bernoulli")

    return make


def diabetes() -> Case:
    X, y = load_diabetes(return_X_y=True)
    return Case((X, y.astype(float)), "normal")


def boston() -> Case:
    frame = bs.datasets.load("boston_housing")
    return Case((frame.drop(columns="target").to_numpy(float), frame["target"].to_numpy(float)), "normal")


def ripley() -> Case:
    frame = bs.datasets.load("ripley_synth_train")
    X, y = frame.drop(columns="target").to_numpy(float), frame["target"].to_numpy(int)
    return Case((X, y), "bernoulli", basis=bs.basis.rbf(width=0.5))


def poisson() -> Case:
    rng = np.random.default_rng(0)
    X, w = rng.standard_normal((300, 20)), np.zeros(20)
    w[:4] = 0.6, -0.4, 0.3, 0.2
    return Case((X, rng.poisson(np.exp(0.5 + X @ w))), "poisson")


def digits() -> Case:
    X, y = load_digits(n_class=5, return_X_y=True)
    return Case((X[:, X.std(axis=0) > 0], y), "categorical", "student_multinomial")


CASES: dict[str, Callable[[], Case]] = {
    "WDBC": two_classes("wdbc", "M"),
    "Ripley, rbf": ripley,
    "heart": two_classes("heart_statlog", "2"),
    "Pima": two_classes("pima", "1"),
    "German credit": two_classes("german_numeric", "2"),
    "diabetes": diabetes,
    "Boston": boston,
    "Poisson 300 x 20": poisson,
    "digits 0-4": digits,
}
