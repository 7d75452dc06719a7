"""Simulation-based calibration: what the intervals of each rung of the ladder cover.

Weights are drawn from a proper prior, data from the weights, and every rung is fitted with that same prior. The rank of
a true value among independent draws of the exact posterior is uniform (Cook, Gelman & Rubin 2006; Talts et al. 2018); a
rung that takes estimated precisions for known ones is too sure of itself, and the ranks show by how much.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import arviz as az
import numpy as np
import pymc as pm
import xarray as xr
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from scipy.special import expit
from scipy.stats import bernoulli, norm

from bayes_sparse.common.progress import quiet
from bayes_sparse.common.types import FloatArray, IntArray
from bayes_sparse.fitting.fit import fit
from bayes_sparse.inputs.basis import linear
from bayes_sparse.methods import NUTS
from bayes_sparse.models import ARDGaussian, Horseshoe
from bayes_sparse.refits.ladder import ladder
from bayes_sparse.results.predict.predict import predict
from bayes_sparse.results.relevance import unpruned
from bayes_sparse.trees.read import RUNGS
from studies.cells import Array, Cell, Crew, arrays, progress

__all__ = ["CASES", "FITS", "Settings", "Simulated", "calibrate", "data_set_bar", "judged", "quantities", "simulated"]

VERSION = 2  # of the steps: raise it when the same settings give other results
FITS = ("default", *RUNGS)  # the first is what `fit("ard_gaussian", data)` gives: a flat hyper-prior, terms pruned
_LONGEST = 8  # times the draws asked for, where chains move slowly
_INDEPENDENT = 3  # effective draws for each one that is ranked
_OF_ALL = ("tau", "sigma")  # one for all weights


@dataclass(frozen=True)
class Settings:
    """What is simulated, and how it is sampled.

    Attributes
    ----------
    prior : "gamma" or "horseshoe"
        Of the weights, in the simulation and in the fits.
    classes : bool
        Two classes; else numbers with normal noise, by a `pm.Model`: the named models take their units from the
        targets, so that no prior is theirs before the data are seen.
    rows, columns, new_rows : int
        Size of a data set; rows held out.
    hyper : (float, float)
        Shape and rate of the precisions' Gamma prior.
    relevant : float
        How many columns the horseshoe expects to matter.
    slab : float, optional
        Width of the slab; None for none.
    bias_sd, noise_sd : float
        Sds of the normal priors of the bias and of the logarithm of the noise.
    draws, kept : int
        Draws of a chain, and how many of them, evenly spaced, are ranked.
    random_seed : int
        Of everything.
    """

    prior: str = "gamma"
    classes: bool = True
    rows: int = 50
    columns: int = 5
    new_rows: int = 200
    hyper: tuple[float, float] = (2.0, 2.0)
    relevant: float = 2.0
    slab: float | None = 2.5
    bias_sd: float = 1.0
    noise_sd: float = 0.5
    draws: int = 400
    kept: int = 19
    random_seed: int = 0


CASES = {
    "two classes, Gamma(2, 2), slab 2.5": Settings(),
    "two classes, horseshoe, slab 2.5": Settings(prior="horseshoe"),
    "numbers, Gamma(2, 2), a pm.Model": Settings(classes=False, slab=None, rows=30),
}


@dataclass(frozen=True, eq=False)
class Simulated:
    """A data set and the truth behind it: true values of all `quantities`."""

    X: FloatArray
    y: FloatArray | IntArray
    new_X: FloatArray
    new_y: FloatArray | IntArray
    truth: FloatArray


def quantities(settings: Settings) -> list[str]:
    """What is ranked."""
    columns = [f"x{i}" for i in range(settings.columns)]
    logs = [
        name
        for scale in _scales(settings)
        for name in ([f"log {scale}"] if scale in _OF_ALL else [f"log {scale}[{column}]" for column in columns])
    ]
    return [*(f"w[{column}]" for column in columns), "bias", *logs, "log likelihood"]


def _scales(settings: Settings) -> list[str]:
    """Variables that are positive, by the names they have in a tree."""
    of_weights = ["alpha"] if settings.prior == "gamma" else ["lambda", "tau"]
    return of_weights if settings.classes else [*of_weights, "sigma"]


def simulated(settings: Settings, number: int) -> Simulated:
    """A data set from the prior.

    Data of one class alone are drawn again with all that is behind them. The ranks stay uniform, because they are so
    for every data set by itself.
    """
    rng = np.random.default_rng([settings.random_seed, number])
    n, M = settings.rows, settings.columns
    while True:
        X = rng.standard_normal((n + settings.new_rows, M))
        scales, precision = _drawn_scales(settings, rng)
        w, bias = rng.standard_normal(M) / np.sqrt(precision), settings.bias_sd * rng.standard_normal()
        eta = bias + X @ w
        if settings.classes:
            y = (rng.random(len(X)) < expit(eta)).astype(int)
            density = np.sum(bernoulli.logpmf(y[:n], expit(eta[:n])))
        else:
            y = eta + scales[-1] * rng.standard_normal(len(X))
            density = np.sum(norm.logpdf(y[:n], eta[:n], scales[-1]))
        if not settings.classes or len(np.unique(y[:n])) == 2:
            return Simulated(X[:n], y[:n], X[n:], y[n:], np.array([*w, bias, *np.log(scales), density]))


def _drawn_scales(settings: Settings, rng: np.random.Generator) -> tuple[list[float], FloatArray]:
    """Values of `_scales` and the precisions that they give the weights."""
    M, (a, b) = settings.columns, settings.hyper
    if settings.prior == "gamma":
        alpha = rng.gamma(a, 1 / b, M)
        scales = alpha.tolist()
    else:
        tau_0 = settings.relevant / (M - settings.relevant) * 2 / np.sqrt(settings.rows)
        local, tau = np.abs(rng.standard_cauchy(M)), tau_0 * abs(rng.standard_cauchy())
        alpha, scales = (tau * local) ** -2.0, [*local, tau]
    if not settings.classes:
        scales.append(float(np.exp(settings.noise_sd * rng.standard_normal())))
    return scales, alpha + (0.0 if settings.slab is None else settings.slab**-2.0)


def judged(settings: Settings, number: int, version: int = VERSION) -> Array:
    """One data set, all fits: what is found of each quantity, then the scores.

    Returns
    -------
    array (fits, quantities + 1, 3)
        Rank of the truth, share of the draws below it, and whether the fit has a posterior of it that is not a point;
        NaN for what it does not know. The last row has the mean log probability of the rows held out, and what the fit
        itself expects of it, for classes.
    """
    data = simulated(settings, number)
    with quiet():
        trees = _fitted(settings, data, number)
    found = np.full((len(FITS), len(quantities(settings)) + 1, 3), np.nan)
    for own, tree in zip(found, trees, strict=True):
        for row, truth, draws in zip(own, data.truth, _drawn(settings, tree), strict=False):
            thinned = draws[np.linspace(0, len(draws) - 1, settings.kept).round().astype(int)]
            if not np.isnan(draws).any():
                row[:] = np.sum(thinned < truth), np.mean(draws < truth), np.ptp(draws) > 0
        if settings.classes:
            own[-1, :2] = _scores(tree, data)
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
        ``rank``, ``below`` and ``spread`` (data_set, fit, quantity), see `judged`; ``score`` and ``promised``
        (data_set, fit).
    """
    cells = [Cell(judged, (settings, number, VERSION)) for number in range(data_sets)]
    with progress("Simulated data sets", progressbar) as report:
        found = np.stack(arrays(cells, directory, Crew(workers), report))
    ranked, scores = ("data_set", "fit", "quantity"), ("data_set", "fit")
    return xr.Dataset(
        {
            **{name: (ranked, found[:, :, :-1, i]) for i, name in enumerate(("rank", "below", "spread"))},
            **{name: (scores, found[:, :, -1, i]) for i, name in enumerate(("score", "promised"))},
        },
        coords={"fit": list(FITS), "quantity": quantities(settings)},
        attrs={"kept": settings.kept},
    )


def _fitted(settings: Settings, data: Simulated, seed: int) -> list[xr.DataTree]:
    """The trees of `FITS`; the chain is made longer until the draws ranked are nearly independent."""
    same: dict[str, Any] = {"chains": 1, "random_seed": seed, "progressbar": False}
    likelihood = "bernoulli" if settings.classes else "normal"
    default = fit("ard_gaussian", (data.X, data.y), likelihood=likelihood, draws=settings.draws, **same)
    hyper = settings.hyper if settings.prior == "gamma" else None
    model: Any = _model(settings, data)
    if settings.classes:
        same |= {"data": (data.X, data.y), "likelihood": likelihood, "basis": linear(standardise=False)}
    rungs = ladder(model, hyper=hyper, rungs=RUNGS[:-1], draws=settings.draws, **same)
    proper: dict[str, Any] = {"hyper": hyper} if settings.classes else {}  # a pm.Model has its own
    draws = settings.draws
    while True:
        full = fit(model, method=NUTS(sampler="nutpie", retry=False), draws=draws, **proper, **same)
        if _fewest(settings, full) >= _INDEPENDENT * settings.kept or draws >= _LONGEST * settings.draws:
            return [default, *(rungs.children[rung] for rung in RUNGS[:-1]), full]
        draws *= 2


def _model(settings: Settings, data: Simulated) -> Any:
    """What the data were simulated from."""
    if not settings.classes:
        return _declared(settings, data)
    if settings.prior == "gamma":
        return ARDGaussian(bias_sd=settings.bias_sd, slab=settings.slab)
    return Horseshoe(relevant=settings.relevant, bias_sd=settings.bias_sd, slab=settings.slab)


def _declared(settings: Settings, data: Simulated) -> pm.Model:
    """A regression with priors that do not look at the targets."""
    with pm.Model(coords={"basis": [f"x{i}" for i in range(settings.columns)]}) as model:
        alpha = pm.Gamma("alpha", *settings.hyper, dims="basis")
        w = pm.Normal("w", 0.0, 1 / pm.math.sqrt(alpha), dims="basis")
        bias = pm.Normal("bias", 0.0, settings.bias_sd)
        sigma = pm.LogNormal("sigma", 0.0, settings.noise_sd)
        pm.Normal("y", bias + pm.math.dot(data.X, w), sigma, observed=data.y)
    return model


def _fewest(settings: Settings, tree: xr.DataTree) -> float:
    """Effective draws of the parameter that has fewest, in the middle and in the tails."""
    posterior = tree["posterior"].to_dataset()[["w", "bias", *_scales(settings)]]
    found = [az.ess(posterior, method=method).to_array().min() for method in ("bulk", "tail")]
    return float(min(found))


def _drawn(settings: Settings, tree: xr.DataTree) -> list[FloatArray]:
    """Draws of each quantity; those of a point are all the same."""
    M, scales = settings.columns, _scales(settings)
    if "posterior" not in tree.children:
        evidence = tree["evidence"].to_dataset()
        point = [*evidence["mean"].to_numpy(), float(evidence["bias"])]
        unknown = [np.nan] * (len(quantities(settings)) - len(point))
        return [np.full(settings.kept, value) for value in (*point, *unknown)]
    posterior = unpruned(tree)["posterior"].to_dataset().isel(chain=0)
    count = posterior.sizes["draw"]
    terms = tree["log_likelihood"].to_dataset().isel(chain=0).to_array()
    logs = terms.sum(set(terms.dims) - {"draw"}).to_numpy()
    weights = posterior["w"].to_numpy().T if "w" in posterior else np.zeros((M, count))
    rows = [*weights, posterior["bias"].to_numpy()]
    for name in scales:
        size = 1 if name in _OF_ALL else M
        values = np.log(posterior[name].to_numpy()) if name in posterior else np.full((count, size), np.nan)
        rows += list(values.reshape(count, size).T)
    return [*rows, logs]


def _scores(tree: xr.DataTree, data: Simulated) -> tuple[float, float]:
    """Mean log probability of the rows held out, and what the predictions themselves expect of it."""
    p = predict(tree, data.new_X)["probability"].to_numpy()
    tiny = np.finfo(float).tiny
    expected = np.sum(p * np.log(np.maximum(p, tiny)), axis=1)
    return float(np.mean(np.log(np.maximum(p[np.arange(len(p)), data.new_y], tiny)))), float(np.mean(expected))


def data_set_bar(shown: bool) -> Progress:
    """A bar over data sets."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    return Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True), disable=not shown)
