"""The front door: fit(model, data, method)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pymc as pm
import xarray as xr

from bayes_sparse.common.checks import count
from bayes_sparse.fitting.choices import (
    check_fits,
    check_method,
    choose,
    choose_likelihood,
    choose_method,
)
from bayes_sparse.fitting.in_chunks import rows_for_nuts
from bayes_sparse.fitting.nuts.sample import sample_at_alpha, sample_whole
from bayes_sparse.fitting.readings import NamedReading, reading_of
from bayes_sparse.fitting.search import search
from bayes_sparse.inference.method import Method
from bayes_sparse.inference.sampling import Sampling
from bayes_sparse.inputs.bambi_model import BambiModel, column_means, is_bambi, of_rows
from bayes_sparse.inputs.basis import Basis
from bayes_sparse.inputs.encoding import Missing
from bayes_sparse.inputs.likelihoods import Likelihood
from bayes_sparse.inputs.model import Handed, Model
from bayes_sparse.methods.nuts import NUTS
from bayes_sparse.trees.centring import uncentred

__all__ = ["fit"]


def fit(
    model: str | Model | pm.Model | BambiModel,
    data: Any = None,
    *,
    method: str | Method = "evidence",
    target: str | None = None,
    likelihood: str | Likelihood = "auto",
    basis: str | Basis | Callable[..., Any] = "linear",
    keep: str | Sequence[str] | None = None,
    weights: Any = None,
    offset: Any = None,
    missing: Missing = "refuse",
    formula: str | None = None,
    draws: int = 1000,
    chains: int = 4,
    random_seed: int | None = None,
    progressbar: bool = True,
    keep_columns: xr.DataTree | None = None,
    **settings: Any,
) -> xr.DataTree:
    """Fit a sparse Bayesian model.

    Parameters
    ----------
    model : str, model object, pymc.Model or bambi.Model
        A name from `bayes_sparse.models` (``"ard_gaussian"``, ``"laplace_eigen"``, ``"jeffreys_laplace"``,
        ``"student_multinomial"``, ``"horseshoe"``), one of its objects with settings of its own, or any `pm.Model` with
        a sparse Gaussian prior and a linear predictor (for ``"revm"``, any that can be differentiated twice). Of a
        Bambi model the population-level slopes are sparse, a categorical term as a whole; neither intercepts nor
        smooths are, and group-specific effects are random effects. Bambi's functions take the tree.
    data : tuple, DataFrame, Dataset or dict
        ``(X, y)``, X dense or sparse, or, with several classes, by class (a dict of tables, an array with a class dim);
        a DataFrame (pandas, polars, pyarrow) or an xarray Dataset with ``target``, whose columns of words, declared
        categories or booleans become indicators, "colour[red]"; rows in chunks, by dask arrays, a dask DataFrame, a
        Dataset backed by dask, or `bs.data.parquet`; for a
        `pm.Model` None, or new values for its `pm.Data` by name; for a Bambi model None.
    method : str or method object
        ``"evidence"`` (the model's default), ``"sequential"``, ``"mackay"``, ``"em"``, ``"variational"``, ``"revm"``,
        ``"full_matrix"``;
        ``"global_local"`` (for ``"horseshoe"``, and a `pm.Model` that declares one);
        ``"one_vs_rest"`` (several classes); ``"reweighted"``, ``"coordinate_descent"``, ``"fuzzy"``, ``"cv"`` (for
        ``"jeffreys_laplace"``); ``"nuts"``, started from an evidence fit, and with ``condition="alpha"`` at the
        hyper-parameters of that fit.
    target : str, optional
        Name of the target column.
    likelihood : str or likelihood
        ``"auto"`` takes floats and more than 20 different whole numbers for normal, two labels for bernoulli, and asks
        about anything else; ``"normal"``, ``"student_t"``, ``"bernoulli"``, ``"probit"``, ``"poisson"``,
        ``"negative_binomial"``, ``"gamma"``, ``"beta"``, ``bs.likelihoods.binomial(trials=10)``,
        ``bs.likelihoods.ordinal(levels=5)``, ``"categorical"``.
    basis : str, basis or callable
        ``"linear"``, ``bs.basis.rbf(width=...)``, ``bs.basis.polynomial()`` ..., or an importable function.
    keep : str or sequence of str, optional
        Basis functions never pruned.
    weights : array or column name, optional
        A weight of 2 counts a row twice, in everything that is computed from the rows; one of 0 leaves it out, of the
        tree too. Rows that are the same share one kernel, however often they are given.
    offset : array or column name, optional
        Known part of the linear predictor.
    missing : "refuse", "drop" or "mean"
        What to do with missing values: refuse them, naming columns and counts; leave out the rows that have any; or put
        the column's mean in their place, with a column beside it that says where (of categories: a level of its own).
    formula : str, optional
        Target and columns of a frame in one, ``"y ~ a*b + poly(x, 3) + C(site)"``, read by formulaic; without its
        intercept (``"y ~ a - 1"``) there is no bias.
    draws, chains : int
        Posterior draws per chain; ``draws=0`` skips them for evidence methods.
    random_seed : int, optional
        Makes draws reproducible.
    progressbar : bool
        Show progress on anything that takes longer than a second.
    keep_columns : DataTree, optional
        For NUTS of data in chunks: a fit of them, of which the columns kept are taken into memory and sampled.
    **settings
        Settings of the model or of the method by name. Of models: ``hyper``, the shape and rate (a, b) of the Gamma
        prior on precisions (flat for evidence methods and a proper neighbour for NUTS where none is given; for
        ``"student_multinomial"`` without kernels (1, 0.1) for both), ``slab``, how large weights may be, ``bias_sd``
        ... Of a `pm.Model`: ``sparse`` and ``grouped``, names of variables with a precision to be found for each weight
        or for all of their weights, and ``hyper="declared"``. Of evidence methods:
        ``smoothness``, the cost of a degree of freedom in nats, ``max_iterations``, ``tolerance``, ``approximation``;
        ``expansion="evidence"``, ``lam=2.0``, ``all_points=True`` ... Of NUTS: ``tune``, ``target_accept``,
        ``sampler``, ``sample_kwargs`` ... Print `bs.methods` and `bs.models` to see what there is.

    Returns
    -------
    xarray.DataTree
        Groups posterior, sample_stats, log_likelihood, observed_data, constant_data and, for evidence methods,
        evidence. The posterior of a `pm.Model` of your own has every variable of it in full, as PyMC would have it;
        that of a named model the terms kept.

    Examples
    --------
    >>> import bayes_sparse as bs
    >>> truth = bs.datasets.sparse_linear(n=100, p=300, k=3, random_seed=0)
    >>> tree = bs.fit("ard_gaussian", (truth.X, truth.y), random_seed=0)
    >>> int(tree["evidence"]["relevant"].sum())
    3
    """
    draws, chains = count("draws", draws, 0), count("chains", chains, 1)
    if is_bambi(model) and data is not None:
        raise ValueError("A Bambi model holds its data: leave out `data`.")
    chosen, chosen_method = choose(model, method, likelihood, settings)
    likelihood = choose_likelihood(chosen, likelihood, chosen_method)
    handed = Handed(data, target, likelihood, basis, keep, weights, offset, missing, formula)
    if isinstance(chosen_method, NUTS):
        handed = rows_for_nuts(handed, keep_columns)
        sampling = chosen_method(draws=draws, chains=chains, random_seed=random_seed, progressbar=progressbar)
        tree = _sampled(chosen, chosen_method, handed, sampling)
    else:
        found = search(chosen, chosen_method, handed, progressbar)
        tree = found.tree(draws, chains, np.random.default_rng(random_seed))
    return uncentred(tree, column_means(model), of_rows(model)) if is_bambi(model) else tree


def _sampled(model: Model, method: NUTS, handed: Handed, sampling: Sampling) -> xr.DataTree:
    """By NUTS: everything, or the weights at the hyper-parameters of an evidence fit."""
    if not method.condition:
        return _whole(model, method, handed, sampling)
    start = choose_method(method.start, model, model.hyper, handed.likelihood)
    check_method(start, model)
    return sample_at_alpha(search(model, start, handed, sampling.progressbar), sampling, cold=not method.warm)


def _whole(model: Model, method: NUTS, handed: Handed, sampling: Sampling) -> xr.DataTree:
    """Everything by NUTS, from an evidence fit of the same model."""
    reading = reading_of(model, handed)
    if isinstance(reading, NamedReading):
        reading = reading.suited_to(method)
        reading.say_duplicates()
    hyper = reading.proper(model.hyper)
    start = choose_method(method.start, model, hyper, reading.likelihood) if method.warm else None
    if start is not None:
        check_fits(start, model)  # one that needs the flat hyper-prior has it
    return sample_whole(reading, model, method, start, hyper, sampling)
