"""Simulation-based calibration: what the intervals of each rung of the ladder cover.

Weights are drawn from a proper prior, two classes from the weights, and every rung is fitted with that same prior. The
rank of a true value among independent draws of the exact posterior is uniform (Cook, Gelman & Rubin 2006; Talts et al.
2018); a rung that takes estimated precisions for known ones is too sure of itself, and the ranks show by how much.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import arviz as az
import numpy as np
import xarray as xr
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from scipy.special import expit, log_expit

from bayes_sparse.common.types import FloatArray, IntArray
from bayes_sparse.fitting.fit import fit
from bayes_sparse.inputs.basis import linear
from bayes_sparse.models import ARDGaussian
from bayes_sparse.refits.ladder import ladder
from bayes_sparse.results.predict.predict import predict
from bayes_sparse.results.relevance import unpruned
from bayes_sparse.trees.read import RUNGS
from studies.stored import Answer, Task, Workers, answers

__all__ = ["FITS", "Settings", "Simulated", "calibrate", "data_set_bar", "judged", "quantities", "simulated"]

VERSION = 1  # of the steps: raise it when the same settings give other results
FITS = ("default", *RUNGS)  # the first by the flat hyper-prior that evidence methods have by default
_LONGEST = 8  # times the draws asked for, where chains move slowly


@dataclass(frozen=True)
class Settings:
    """What is simulated, and how it is sampled.

    Attributes
    ----------
    rows, columns, new_rows : int
        Size of a data set; rows held out.
    hyper : (float, float)
        Shape and rate of the precisions' Gamma prior, in the simulation and in the fits.
    bias_sd : float
        Sd of the bias's normal prior, likewise.
    draws, kept : int
        Draws of a chain, and how many of them, evenly spaced, are ranked.
    random_seed : int
        Of everything.
    """

    rows: int = 50
    columns: int = 3
    new_rows: int = 200
    hyper: tuple[float, float] = (2.0, 2.0)
    bias_sd: float = 1.0
    draws: int = 500
    kept: int = 99
    random_seed: int = 0


@dataclass(frozen=True, eq=False)
class Simulated:
    """A data set and the truth behind it: true values of all `quantities`."""

    X: FloatArray
    y: IntArray
    new_X: FloatArray
    new_y: IntArray
    truth: FloatArray


def quantities(settings: Settings) -> list[str]:
    """What is ranked."""
    columns = range(settings.columns)
    return [*(f"w[x{i}]" for i in columns), "bias", *(f"log alpha[x{i}]" for i in columns), "log likelihood"]


def simulated(settings: Settings, number: int) -> Simulated:
    """A data set from the prior.

    Data of one class alone are drawn again with all that is behind them. The ranks stay uniform, because they are so
    for every data set by itself.
    """
    rng = np.random.default_rng([settings.random_seed, number])
    n, M, (a, b) = settings.rows, settings.columns, settings.hyper
    while True:
        X = rng.standard_normal((n + settings.new_rows, M))
        alpha = rng.gamma(a, 1 / b, M)
        w, bias = rng.standard_normal(M) / np.sqrt(alpha), settings.bias_sd * rng.standard_normal()
        eta = bias + X @ w
        y = (rng.random(len(X)) < expit(eta)).astype(int)
        if len(np.unique(y[:n])) == 2:
            density = np.sum(log_expit(np.where(y[:n] == 1, eta[:n], -eta[:n])))
            truth = np.concatenate([w, [bias], np.log(alpha), [density]])
            return Simulated(X[:n], y[:n], X[n:], y[n:], truth)


def judged(settings: Settings, number: int, version: int = VERSION) -> Answer:
    """One data set, all fits: rank and posterior probability below the truth of each quantity, then two scores.

    Returns
    -------
    array (fits, quantities + 1, 2)
        NaN for what a fit has no posterior of. The last row has the mean log probability of the rows held out, and what
        the fit itself expects of it.
    """
    data = simulated(settings, number)
    trees = _fitted(settings, data, number)
    found = np.full((len(FITS), len(quantities(settings)) + 1, 2), np.nan)
    for own, tree in zip(found, trees, strict=True):
        for row, truth, draws in zip(own, data.truth, _drawn(settings, tree), strict=False):
            thinned = draws[np.linspace(0, len(draws) - 1, settings.kept).round().astype(int)]
            if not np.isnan(draws).any():
                row[:] = np.sum(thinned < truth), np.mean(draws < truth)
        own[-1] = _scores(tree, data)
    return found


def calibrate(
    settings: Settings, data_sets: int, directory: Path, *, workers: int = 1, progressbar: bool = True
) -> xr.Dataset:
    """All data sets.

    Parameters
    ----------
    settings : Settings
        What to do.
    data_sets : int
        How many.
    directory : Path
        Where each is kept when it is done; a run that was stopped goes on where it was, and one can be made longer.
    workers : int
        Processes. With more than one, call this under ``if __name__ == "__main__":``.
    progressbar : bool
        Show a bar over the data sets.

    Returns
    -------
    xarray.Dataset
        ``rank`` and ``below`` (data_set, fit, quantity); ``score`` and ``promised`` (data_set, fit).
    """
    tasks = [Task(judged, (settings, number, VERSION)) for number in range(data_sets)]
    with data_set_bar(progressbar) as bar, Workers(workers) as who:
        task = bar.add_task("Simulated data sets", total=data_sets)
        found = np.stack(answers(tasks, directory, who, lambda done, _: bar.update(task, completed=done)))
    ranked, scores = ("data_set", "fit", "quantity"), ("data_set", "fit")
    return xr.Dataset(
        {
            "rank": (ranked, found[:, :, :-1, 0]),
            "below": (ranked, found[:, :, :-1, 1]),
            "score": (scores, found[:, :, -1, 0]),
            "promised": (scores, found[:, :, -1, 1]),
        },
        coords={"fit": list(FITS), "quantity": quantities(settings)},
        attrs={"kept": settings.kept},
    )


def _fitted(settings: Settings, data: Simulated, seed: int) -> list[xr.DataTree]:
    """The trees of `FITS`; the chain is made longer until the draws ranked are nearly independent."""
    model = ARDGaussian(bias_sd=settings.bias_sd)
    same: dict[str, Any] = {"likelihood": "bernoulli", "basis": linear(standardise=False), "chains": 1}
    same |= {"random_seed": seed, "progressbar": False}
    given, draws = (data.X, data.y), settings.draws
    with _quiet():
        default = fit(model, given, draws=draws, **same)
        while True:
            # PyMC's own NUTS: compiling for nutpie would take longer than all the draws.
            last = ladder(model, given, hyper=settings.hyper, rungs=RUNGS[-1:], sampler="pymc", draws=draws, **same)
            full = last.children[RUNGS[-1]]
            if _fewest(full) >= 2 * settings.kept or draws >= _LONGEST * settings.draws:
                break
            draws *= 2
        rungs = ladder(model, given, hyper=settings.hyper, rungs=RUNGS[:-1], draws=draws, **same)
    return [default, *(rungs.children[rung] for rung in RUNGS[:-1]), full]


def _fewest(tree: xr.DataTree) -> float:
    """Effective draws of the parameter that has fewest, in the middle and in the tails."""
    posterior = tree["posterior"].to_dataset()[["w", "bias", "alpha"]]
    found = [az.ess(posterior, method=method).to_array().min() for method in ("bulk", "tail")]
    return float(min(found))


def _drawn(settings: Settings, tree: xr.DataTree) -> list[FloatArray]:
    """Draws of each quantity; those of a point are all the same."""
    M = settings.columns
    if "posterior" not in tree.children:
        evidence = tree["evidence"].to_dataset()
        point = [*evidence["mean"].to_numpy(), float(evidence["bias"]), *[np.nan] * (M + 1)]
        return [np.full(settings.kept, value) for value in point]
    posterior = unpruned(tree)["posterior"].to_dataset().isel(chain=0)
    count = posterior.sizes["draw"]
    logs = tree["log_likelihood"].to_dataset().isel(chain=0).to_array().sum(("variable", "obs")).to_numpy()
    alpha = np.log(posterior["alpha"].to_numpy().T) if "alpha" in posterior else np.full((M, count), np.nan)
    weights = posterior["w"].to_numpy().T if "w" in posterior else np.zeros((M, count))
    return [*weights, posterior["bias"].to_numpy(), *alpha, logs]


def _scores(tree: xr.DataTree, data: Simulated) -> tuple[float, float]:
    """Mean log probability of the rows held out, and what the predictions themselves expect of it."""
    p = predict(tree, data.new_X)["probability"].to_numpy()
    tiny = np.finfo(float).tiny
    expected = np.sum(p * np.log(np.maximum(p, tiny)), axis=1)
    return float(np.mean(np.log(np.maximum(p[np.arange(len(p)), data.new_y], tiny)))), float(np.mean(expected))


@contextmanager
def _quiet() -> Iterator[None]:
    """Without what fits tell their user: hundreds of small data sets, some of them separable."""
    log = logging.getLogger("bayes_sparse")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            yield
    finally:
        log.setLevel(before)


def data_set_bar(shown: bool) -> Progress:
    """A bar over data sets."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    return Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True), disable=not shown)
