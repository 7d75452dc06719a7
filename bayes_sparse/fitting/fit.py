"""The front door: fit(model, data, method)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pymc as pm
import xarray as xr

from bayes_sparse.common.checks import count
from bayes_sparse.common.progress import FitProgress
from bayes_sparse.common.warnings import tell
from bayes_sparse.fitting.choices import (
    check_choices,
    checked_hyper,
    choose_likelihood,
    choose_method,
    choose_model,
    default_hyper,
    with_settings,
)
from bayes_sparse.fitting.found import find
from bayes_sparse.fitting.nuts.at_alpha import conditional_tree
from bayes_sparse.fitting.nuts.whole import full_of_declared, full_tree
from bayes_sparse.fitting.run import rate
from bayes_sparse.inference.sampling import Sampling
from bayes_sparse.inputs import basis as bases
from bayes_sparse.inputs import kernel_width as widths
from bayes_sparse.inputs.basis import Basis
from bayes_sparse.inputs.likelihoods import Likelihood
from bayes_sparse.inputs.pm_model.declared import declared_problem
from bayes_sparse.inputs.prepare import prepare
from bayes_sparse.methods.nuts import NUTS
from bayes_sparse.models import Declared
from bayes_sparse.problem.duplicate_columns import duplicate_columns, in_words
from bayes_sparse.problem.labelled import LabelledProblem
from bayes_sparse.trees.write import with_width

__all__ = ["fit"]


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
    **settings: Any,
) -> xr.DataTree:
    """Fit a sparse Bayesian model.

    Parameters
    ----------
    model : str, model object or pymc.Model
        A name from `bayes_sparse.models` (``"ard_gaussian"``, ``"laplace_eigen"``, ``"jeffreys_laplace"``,
        ``"student_multinomial"``), one of its objects with settings of its own, or any `pm.Model` with a sparse
        Gaussian prior and a linear predictor (for ``"revm"``, any likelihood that can be differentiated twice).
    data : tuple, DataFrame, Dataset or dict
        ``(X, y)``, X dense or sparse, or, with several classes, by class (a dict of tables, an array with a class dim);
        a pandas or polars DataFrame or an xarray Dataset with ``target``; for a
        `pm.Model` None, or new values for its `pm.Data` by name.
    method : str or method object
        ``"evidence"`` (the model's default), ``"sequential"``, ``"mackay"``, ``"em"``, ``"revm"``, ``"full_matrix"``;
        ``"one_vs_rest"`` (several classes); ``"reweighted"``, ``"coordinate_descent"``, ``"fuzzy"``, ``"cv"`` (for
        ``"jeffreys_laplace"``); ``"nuts"``, started from an evidence fit, and with ``condition="alpha"`` at the
        hyper-parameters of that fit.
    target : str, optional
        Name of the target column.
    likelihood : str or likelihood
        ``"auto"`` takes floats for normal and two labels for bernoulli and asks about anything else; ``"normal"``,
        ``"student_t"``, ``"bernoulli"``, ``"poisson"``, ``"negative_binomial"``, ``"categorical"``.
    basis : str, basis or callable
        ``"linear"``, ``bs.basis.rbf(width=...)``, ``bs.basis.polynomial()`` ..., or an importable function.
    hyper : (float, float), optional
        Shape and rate of the Gamma prior on precisions. None: flat (0, 0) for evidence methods, a proper neighbour for
        NUTS; for ``"student_multinomial"`` without kernels (1, 0.1) for both.
    smoothness : "auto" or float
        Cost of a degree of freedom in nats. ``"auto"`` grows with the number of basis functions so that chance finds
        stay rare (0 for one-step methods); 0 is the pure method.
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
        Passed to the sampler by ``method="nuts"``.
    **settings
        Any other setting of the method or of the model by name: ``expansion="evidence"``, ``lam=2.0``,
        ``all_points=True``, ``bias_sd=5.0`` ...

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
    hyper = checked_hyper(hyper)
    draws, chains = count("draws", draws, 0), count("chains", chains, 1)
    chosen_model = choose_model(model)
    own = isinstance(chosen_model, Declared)
    limits = {"max_iterations": max_iterations, "tolerance": tolerance}
    chosen_model, chosen = with_settings(
        chosen_model, choose_method(method, chosen_model, hyper, likelihood), settings, limits
    )
    check_choices(chosen_model, chosen, hyper)
    hyper = default_hyper(chosen_model, chosen, hyper, kernel=bases.resolve(basis).kernel)
    likelihood = choose_likelihood(chosen_model, likelihood, chosen)
    if own and not (target is keep is offset is None and basis == "linear" and likelihood == "auto"):
        raise ValueError(
            "A pm.Model of your own says its target, likelihood, basis and offset itself; leave out target, "
            "likelihood, basis, keep and offset."
        )
    nuts = chosen if isinstance(chosen, NUTS) else None
    sampling = None
    if nuts is not None:
        sampling = nuts(
            draws=draws,
            chains=chains,
            random_seed=random_seed,
            progressbar=progressbar,
            sample_kwargs=sample_kwargs,
        )
        if not nuts.condition:
            return _whole(chosen_model, nuts, sampling, hyper, (data, target, likelihood, basis, keep, weights, offset))
        chosen = choose_method(nuts.start, chosen_model, hyper, likelihood)
        check_choices(chosen_model, chosen, hyper)
        hyper = default_hyper(chosen_model, chosen, hyper, kernel=bases.resolve(basis).kernel)
        likelihood = choose_likelihood(chosen_model, likelihood, chosen)
    tried: widths.WidthSearch | None = None
    if own:
        labelled = declared_problem(chosen_model, data, weights, hyper, any_surface=chosen.family == "one_step")
    else:
        resolved = bases.resolve(basis)
        prepared = prepare(data, target, likelihood, widths.provisional(resolved), keep, weights, offset)
        if widths.wanted(resolved) and chosen.family == "path":
            raise ValueError(
                "rbf(width='evidence') compares evidences, and a method on the L1 path has none: find the width with "
                "bs.fit('ard_gaussian', ...), then give the number."
            )
        if widths.wanted(resolved):
            with FitProgress("Choosing the width", progressbar) as progress:
                prepared, tried = widths.choose(
                    prepared, lambda data: rate(chosen_model, data, chosen, hyper, smoothness), progress.say
                )
        labelled = chosen_model.problem(prepared)
        if chosen.family != "path":
            _warn_duplicates(labelled)
    found = find(labelled, chosen_model, chosen, hyper, smoothness, progressbar)
    if nuts is not None and sampling is not None:
        tree = conditional_tree(found, sampling, cold=not nuts.warm)
    else:
        tree = found.tree(draws, chains, np.random.default_rng(random_seed))
    return tree if tried is None else with_width(tree, tried)


def _whole(
    model: Any, method: NUTS, sampling: Sampling, hyper: tuple[float, float] | None, given: tuple[Any, ...]
) -> xr.DataTree:
    """Everything by NUTS."""
    data, target, likelihood, basis, keep, weights, offset = given
    if isinstance(model, Declared):
        if weights is not None:
            raise ValueError("NUTS samples a pm.Model of your own as it stands: leave out `weights`.")
        return full_of_declared(model, data, hyper, method, sampling)
    prepared = prepare(data, target, likelihood, bases.resolve(basis), keep, weights, offset)
    labelled = model.problem(prepared)
    _warn_duplicates(labelled)
    return full_tree(model, prepared, labelled, hyper, method, sampling)


def _warn_duplicates(labelled: LabelledProblem) -> None:
    """Say which columns are the same; kernels on rows that are the same are nothing unusual."""
    if labelled.interchangeable:
        return
    for design, names in labelled.designs:
        same = duplicate_columns(design, np.arange(design.M))
        if same:
            tell(
                f"Columns that are the same up to sign: {in_words(same, names)}; at most one of them is kept, and "
                "which one is arbitrary.",
                UserWarning,
            )
