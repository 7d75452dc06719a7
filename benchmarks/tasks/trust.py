"""What trust costs: NUTS beside the evidence fit, warm starts beside cold ones, the price of a diagnosis."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import arviz as az
import numpy as np

import bayes_sparse as bs
from bayes_sparse.methods.nuts import NUTS
from benchmarks import clock
from benchmarks.report import Row

FASTER, FEWER, QUICK = 100, 0.30, 1.0


def run(say: Callable[[str], None], seeds: int = 5) -> list[Row]:
    """Rows of a diagnosis, of warm starts (``seeds`` runs each), and of evidence against NUTS, the longest."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # what a fit warns of stands in its row
        rows = diagnoses(say)
        rows += warm_starts(say, seeds)
        for case, settings in problems().items():
            rows += against_nuts(say, case, settings)
    return rows


def problems() -> dict[str, dict[str, Any]]:
    """Two data sets, as arguments of `fit`."""
    wdbc = {"data": bs.datasets.load("wdbc"), "target": "target"}
    ripley = {"data": bs.datasets.load("ripley_synth_train"), "target": "target", "basis": bs.basis.rbf(width=0.5)}
    return {"WDBC linear": wdbc, "Ripley rbf": ripley}


def proper(settings: dict[str, Any]) -> dict[str, Any]:
    """What NUTS has by default."""
    return {"hyper": (1.0, 0.1), "slab": 5.0 if "basis" in settings else 2.5}


def priors(settings: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What evidence methods are given, by its name in the table."""
    return {"the prior of NUTS": proper(settings), "default, flat hyper-prior": {}}


def fit(settings: dict[str, Any], **more: Any) -> Any:
    return bs.fit("ard_gaussian", progressbar=False, **settings, **more)


def against_nuts(say: Callable[[str], None], case: str, settings: dict[str, Any], repeats: int = 7) -> list[Row]:
    """The same model and hyper-prior by evidence and by NUTS, 4 x 1000 draws; then the default flat hyper-prior."""
    say(f"{case}: NUTS")
    peer_seconds, nuts = clock.once(lambda: fit(settings, method="nuts", random_seed=0))
    rows = []
    for words, prior in priors(settings).items():
        say(f"{case}: evidence, {words}")
        seconds, _ = _median(settings, repeats, draws=0, **prior)
        with_draws, tree = _median(settings, repeats, random_seed=0, **prior)
        times = {"seconds": seconds, "peer": "NUTS 4 x 1000", "peer_seconds": peer_seconds}
        quality = {
            "times faster": peer_seconds / seconds,
            "with 4 x 1000 draws": f"{with_draws:.2f} s, {peer_seconds / with_draws:.0f} times",
            **_distance(tree, nuts),
        }
        met = peer_seconds / seconds >= FASTER
        rows.append(Row("trust", f"{case}, evidence, {words}", f"{FASTER} times faster", met, **times, quality=quality))
    return rows


def _median(settings: dict[str, Any], repeats: int, **more: Any) -> tuple[float, Any]:
    """Median seconds of a fit, after one that does not count, and its tree."""
    tree = fit(settings, **more)
    return float(np.median([clock.once(lambda: fit(settings, **more))[0] for _ in range(repeats)])), tree


def _distance(tree: Any, nuts: Any) -> dict[str, float | str]:
    """What the speed costs, and whether the chains it is measured against agree."""
    found = bs.compare({"evidence": tree, "nuts": nuts}, reference="nuts").summary.loc["evidence"]
    chains = bs.diagnose(nuts)
    return {
        "largest difference, sds": float(found["largest_difference"]),
        "median": float(found["median_difference"]),
        "median sd ratio": float(found["median_sd_ratio"]),
        "kept": str(found["terms_kept"]),
        "k-hat": bs.diagnose(tree).k_hat,
        "NUTS": f"R-hat {chains.r_hat_max:.3f}, bulk ESS {chains.ess_bulk_min:.0f}, {chains.divergences} divergences, "
        f"{nuts['posterior'].attrs['sampler']}",
    }


def warm_starts(say: Callable[[str], None], seeds: int) -> list[Row]:
    """Evaluations of the gradient an effective draw, warm-up included, beside a cold start."""
    rows = []
    for case, settings in problems().items():
        for words, prior in priors(settings).items():
            rows.append(beside_cold(say, f"rung 3, {case}, {words}", {**settings, **prior}, seeds, "alpha"))
    truth = bs.datasets.sparse_linear(n=80, p=12, k=4, random_seed=0)
    everything = {"WDBC linear": problems()["WDBC linear"], "sparse_linear 80 x 12": {"data": (truth.X, truth.y)}}
    for case, settings in everything.items():
        rows.append(beside_cold(say, f"rung 4, {case}", settings, seeds, None))
    return rows


def beside_cold(say: Callable[[str], None], case: str, settings: dict[str, Any], seeds: int, condition: Any) -> Row:
    """Warm beside cold with its own default warm-up, and for rung 3 beside a cold one as short as the warm one."""
    contestants = {"warm": NUTS(condition), "cold": NUTS(condition, warm=False)}
    if condition:
        contestants["cold and as short"] = NUTS(condition, warm=False, tune=150)
    costs: dict[str, np.ndarray] = {}
    seconds: dict[str, float] = {}
    quality: dict[str, float | str] = {}
    for name, method in contestants.items():
        say(f"{case}, {name}")
        costs[name], seconds[name], told = _cost(settings, method, seeds)
        quality[name] = told
    for name in [name for name in contestants if name != "warm"]:
        ratio = costs["warm"] / costs[name]
        quality[f"warm / {name}"] = f"{np.median(ratio):.2f} [{ratio.min():.2f}, {ratio.max():.2f}]"
    met = bool(np.median(costs["warm"] / costs["cold"]) <= FEWER) if condition else None
    times = {"seconds": seconds["warm"], "peer": "cold", "peer_seconds": seconds["cold"]}
    return Row("trust", case, f"at most {FEWER:.0%} of cold" if condition else "", met, **times, quality=quality)


def _cost(settings: dict[str, Any], method: NUTS, seeds: int) -> tuple[np.ndarray, float, str]:
    """Gradients an effective draw for each seed, median seconds, and both in words."""
    costs, fewest, seconds, diverged = [], [], [], 0
    for seed in range(seeds):
        took, tree = clock.once(lambda seed=seed: fit(settings, method=method, random_seed=seed))
        told = tree["posterior"].attrs
        fewest.append(_bulk(tree))
        costs.append((told["gradient_evaluations"] + told["warmup_gradient_evaluations"]) / fewest[-1])
        seconds.append(took)
        diverged += int(tree["sample_stats"]["diverging"].sum())
    words = f"{np.median(costs):.3g} gradients an effective draw, bulk ESS {np.median(fewest):.0f}"
    return np.array(costs), float(np.median(seconds)), f"{words}, {diverged} divergences"


def _bulk(tree: Any) -> float:
    """Effective draws of the parameter that has fewest."""
    found = az.ess(tree["posterior"].to_dataset(), method="bulk")
    return float(min(np.min(values.to_numpy()) for values in found.data_vars.values()))


def diagnoses(say: Callable[[str], None], repeats: int = 5) -> list[Row]:
    """Fifty coordinates kept, 10,000 rows, 4 x 1000 draws.

    The fit has evaluated both densities at its draws: what that took is stated beside the time of the diagnosis.
    """
    rng = np.random.default_rng(0)
    X = rng.standard_normal((10_000, 50))
    eta = X @ rng.normal(0.0, 0.3, 50)
    targets = {"normal": eta + rng.standard_normal(len(X)), "bernoulli": (eta + rng.logistic(size=len(X)) > 0) * 1}
    rows = []
    for likelihood, y in targets.items():
        say(f"diagnose, {likelihood}")
        settings = {"data": (X, y), "likelihood": likelihood, "keep": [f"x{i}" for i in range(50)], "random_seed": 0}
        plain, _ = _median(settings, 3, draws=0)
        fitted, tree = _median(settings, 3)
        seconds, results = clock.race({"diagnosis": lambda tree=tree: bs.diagnose(tree)}, repeats)
        quality = {
            "k-hat": results["diagnosis"].k_hat,
            "coordinates": float(results["diagnosis"].coordinates),
            "fit without draws, s": plain,
            "draws and their densities, s": fitted - plain,
            "pointwise log-likelihood stored": "yes" if "log_likelihood" in tree.children else "no",
        }
        case, took = f"diagnose, {likelihood}, 10,000 x 50, 4 x 1000 draws", seconds["diagnosis"]
        rows.append(Row("trust", case, f"under {QUICK:.0f} s", took < QUICK, took, quality=quality))
    return rows
