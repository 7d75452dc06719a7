"""The front door: fit(model, data, method). The only orchestration."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
import pymc as pm
import xarray as xr

from bayes_sparse import basis as bases
from bayes_sparse import registry
from bayes_sparse.approximations import Approximation, approximate
from bayes_sparse.basis import Basis
from bayes_sparse.declared import declared_subject, nuts_of_declared
from bayes_sparse.likelihoods import Likelihood
from bayes_sparse.methods.nuts import NUTS
from bayes_sparse.models import Declared
from bayes_sparse.objective import Objective
from bayes_sparse.outcome import Outcome
from bayes_sparse.prepare import prepare
from bayes_sparse.progress import FitProgress
from bayes_sparse.smoothness import prices
from bayes_sparse.subject import Subject
from bayes_sparse.tree import evidence_tree, nuts_tree, versions
from bayes_sparse.verdict import judge, warn

__all__ = ["fit"]

_GREEDY = 0.25  # of the observations: a fit that uses more degrees of freedom has too few left for the noise
_log = logging.getLogger("bayes_sparse")


def fit(
    model: str | Any | pm.Model,
    data: Any = None,
    *,
    method: str | Any = "evidence",
    target: str | None = None,
    likelihood: str | Likelihood = "auto",
    basis: str | Basis | Callable[..., Any] = "linear",
    hyper: tuple[float, float] | None = None,
    smoothness: str | float = "auto",
    keep: str | Sequence[str] | None = None,
    weights: Any = None,
    offset: Any = None,
    draws: int = 1000,
    chains: int = 4,
    max_iterations: int | None = None,
    tolerance: float | None = None,
    random_seed: int | None = None,
    progressbar: bool = True,
    sample_kwargs: dict[str, Any] | None = None,
) -> xr.DataTree:
    """Fit a sparse Bayesian model.

    Parameters
    ----------
    model : str, model object or pymc.Model
        A name from `bayes_sparse.models` (``"ard_gaussian"``), one of its objects with settings of its own, or any
        `pm.Model` with a sparse Gaussian prior and a linear predictor.
    data : tuple, DataFrame, Dataset or dict
        ``(X, y)``; a pandas or polars DataFrame or an xarray Dataset with ``target``; for a `pm.Model` None, or new
        values for its `pm.Data` by name.
    method : str or method object
        ``"evidence"`` (the model's default), ``"sequential"``, ``"mackay"``, ``"em"`` or ``"nuts"``.
    target : str, optional
        Name of the target column.
    likelihood : str or likelihood
        ``"auto"`` takes floats for normal and two labels for bernoulli and asks about anything else; ``"normal"``,
        ``"student_t"``, ``"bernoulli"``, ``"poisson"``, ``"negative_binomial"``.
    basis : str, basis or callable
        ``"linear"``, ``bs.basis.rbf(width=...)``, ``bs.basis.polynomial()`` ..., or an importable function.
    hyper : (float, float), optional
        Shape and rate of the Gamma prior on precisions. None: flat (0, 0) for evidence methods, a proper neighbour for
        NUTS.
    smoothness : "auto" or float
        Cost of a degree of freedom in nats. ``"auto"`` grows with the number of basis functions so that chance finds
        stay rare; 0 is the pure method.
    keep : str or sequence of str, optional
        Basis functions never pruned.
    weights : array or column name, optional
        A weight of 2 counts a row twice.
    offset : array or column name, optional
        Known part of the linear predictor.
    draws, chains : int
        Posterior draws a chain; ``draws=0`` skips them for evidence methods.
    max_iterations, tolerance : optional
        Of the search; None for the method's own.
    random_seed : int, optional
        Makes draws reproducible.
    progressbar : bool
        Show progress on anything that takes longer than a second.
    sample_kwargs : dict, optional
        Passed to `pm.sample` by ``method="nuts"``.

    Returns
    -------
    xarray.DataTree
        Groups posterior, sample_stats, log_likelihood, observed_data, constant_data and, for evidence methods,
        evidence.

    Examples
    --------
    >>> import bayes_sparse as bs
    >>> truth = bs.datasets.sparse_linear(n=100, p=300, k=3, random_seed=0)
    >>> tree = bs.fit("ard_gaussian", (truth.X, truth.y), random_seed=0)
    >>> int(tree["evidence"]["relevant"].sum())
    3
    """
    hyper = _checked_hyper(hyper)
    draws, chains = _count("draws", draws, 0), _count("chains", chains, 1)
    chosen_model: Any = Declared(model) if isinstance(model, pm.Model) else model
    if isinstance(model, str):
        chosen_model = registry.lookup("bayes_sparse.models", model, "model")()
    if isinstance(chosen_model, type) or not (isinstance(chosen_model, Declared) or hasattr(chosen_model, "subject")):
        raise TypeError(
            f"The model must be a name ({', '.join(registry.options('bayes_sparse.models'))}), an object of "
            f"bayes_sparse.models or a pm.Model, not {chosen_model!r}."
        )
    own = isinstance(chosen_model, Declared)
    chosen = _method(method, chosen_model, hyper, max_iterations, tolerance)
    if own and not (target is keep is offset is None and basis == "linear" and likelihood == "auto"):
        raise ValueError(
            "A pm.Model of your own says its target, likelihood, basis and offset itself; leave out target, "
            "likelihood, basis, keep and offset."
        )
    if isinstance(chosen, NUTS):
        sampling = {
            "draws": draws,
            "chains": chains,
            "random_seed": random_seed,
            "progressbar": progressbar,
            "sample_kwargs": sample_kwargs,
        }
        if own and weights is not None:
            raise ValueError("NUTS samples a pm.Model of your own as it stands: leave out `weights`.")
        if own:
            return nuts_of_declared(chosen_model, data, hyper, chosen, sampling)
        prepared = prepare(data, target, likelihood, bases.resolve(basis), keep, weights, offset)
        return _sample(chosen_model, prepared, hyper, chosen, sampling)
    if own:
        subject = declared_subject(chosen_model, data, weights, hyper)
    else:
        prepared = prepare(data, target, likelihood, bases.resolve(basis), keep, weights, offset)
        subject = chosen_model.subject(prepared)
    a, b = hyper or (0.0, 0.0)
    search = _maximise(
        subject,
        chosen,
        [Objective(c, a, b, subject.problem.log_prior) for c in prices(smoothness, subject, flat=not (a or b))],
        progressbar,
    )
    rng = np.random.default_rng(random_seed)
    return evidence_tree(subject, *search, draws=draws, chains=chains, rng=rng)


def _maximise(
    subject: Subject, method: Any, objectives: list[Objective], progressbar: bool
) -> tuple[Approximation, Outcome, dict[str, Any]]:
    """Run an evidence method, at the first price that leaves enough of the data, and say what its user should know."""
    started = time.perf_counter()
    name, n = type(method).__name__.lower(), subject.problem.design.n
    with FitProgress(f"Fitting ({name})", progressbar) as progress:
        for objective in objectives:
            approximation = approximate(subject.problem, objective)
            outcome = method(subject.problem, approximation, progress)
            used = float(outcome.state.gamma.sum())
            if used <= _GREEDY * n:
                break
    if objective.smoothness > objectives[0].smoothness:
        _log.info(
            "The kernels are narrow for so few rows: the pure method would use up the data, so a degree of freedom was "
            "given a price of %.2f nats; smoothness=0 forces the pure method.",
            objective.smoothness,
        )
    seconds = time.perf_counter() - started
    status = judge(subject.problem, outcome)
    warn(status, subject.problem, outcome, name)
    attributes = {
        "method": name,
        "status": status,
        "n_iterations": outcome.iterations,
        "seconds": seconds,
        "hyper": [objective.a, objective.b],
        "smoothness": objective.smoothness,
        "degrees_of_freedom": used,
        "versions": versions(),
    }
    return approximation, outcome, attributes


def _sample(
    model: Any, prepared: Any, hyper: tuple[float, float] | None, method: NUTS, sampling: dict[str, Any]
) -> xr.DataTree:
    """Sample the declaration of a named model."""
    if hyper is None:
        hyper = model.proper_hyper
        _log.info(
            "NUTS needs a proper prior on the precisions: Gamma(%g, %g) stands in for the flat one of the evidence "
            "methods; hyper=(a, b) chooses another.",
            *hyper,
        )
    declaration = model.declare(prepared, hyper)
    started = time.perf_counter()
    sampled = method(declaration, **sampling)
    attributes = {
        "method": "nuts",
        "hyper": list(hyper),
        "seconds": time.perf_counter() - started,
        "versions": versions(),
    }
    return nuts_tree(model.subject(prepared), sampled, attributes)


def _method(
    method: str | Any,
    model: Any,
    hyper: tuple[float, float] | None,
    max_iterations: int | None,
    tolerance: float | None,
) -> Any:
    """The method object, with its limits set and its needs checked before any arithmetic."""
    proper = hyper is not None and hyper[1] > 0
    if method == "evidence":
        method = "mackay" if proper else model.default_method
    chosen = registry.lookup("bayes_sparse.methods", method, "method")() if isinstance(method, str) else method
    if isinstance(chosen, type) or not callable(chosen):
        raise TypeError(
            f"The method must be a name ({', '.join(registry.options('bayes_sparse.methods'))}) or an object of "
            f"bayes_sparse.methods, not {chosen!r}."
        )
    if isinstance(chosen, NUTS):
        if max_iterations is not None or tolerance is not None:
            raise ValueError("NUTS has draws and chains, not iterations: leave out max_iterations and tolerance.")
        if hyper is not None and not (hyper[0] > 0 and hyper[1] > 0):
            a, b = model.proper_hyper
            raise ValueError(
                f"hyper={hyper} is an improper prior: the posterior under NUTS would be improper too; a proper "
                f"neighbour is hyper=({a:g}, {b:g})."
            )
        return chosen
    if hyper is not None and hyper[0] > 0 and hyper[1] == 0:
        raise ValueError(
            f"hyper={hyper} drives every precision to infinity; give b > 0 too, or hyper=None for a flat one."
        )
    if proper and chosen.needs_flat_hyper:
        raise ValueError(
            f"The method {type(chosen).__name__.lower()!r} needs the flat hyper-prior (0, 0): with hyper={hyper} no "
            "precision is ever infinite, so there is nothing to add or delete; use method='mackay' or 'em'."
        )
    limits: dict[str, Any] = {}
    if max_iterations is not None:
        limits["max_iterations"] = _count("max_iterations", max_iterations, 1)
    if tolerance is not None:
        if not tolerance > 0:
            raise ValueError(f"`tolerance` must be positive (in nats), got {tolerance}.")
        limits["tolerance"] = float(tolerance)
    return replace(chosen, **limits) if limits else chosen


def _checked_hyper(hyper: tuple[float, float] | None) -> tuple[float, float] | None:
    if hyper is None:
        return None
    try:
        a, b = (float(value) for value in hyper)
    except (TypeError, ValueError):
        raise ValueError(f"`hyper` is the pair (a, b) of a Gamma prior on the precisions, got {hyper!r}.") from None
    if not (np.isfinite([a, b]).all() and a >= 0 and b >= 0):
        raise ValueError(f"`hyper` needs a >= 0 and b >= 0, got ({a:g}, {b:g}).")
    return a, b


def _count(name: str, value: int, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, Real) or int(value) != value or value < least:
        raise ValueError(f"`{name}` must be a whole number >= {least}, got {value!r}.")
    return int(value)
