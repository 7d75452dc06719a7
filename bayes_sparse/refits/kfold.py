"""Cross-validation that has not seen the row: all that a fit finds is found anew without the rows that it scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from bayes_sparse.common.progress import FitProgress, quiet
from bayes_sparse.common.statuses import Status
from bayes_sparse.common.warnings import tell
from bayes_sparse.fitting.choices import choose_model
from bayes_sparse.fitting.fit import fit
from bayes_sparse.inputs.frames import in_the_order_of
from bayes_sparse.inputs.pm_model.declared import Declared
from bayes_sparse.inputs.rows import read_rows
from bayes_sparse.methods.nuts import NUTS
from bayes_sparse.refits.folds import check_classes, folds_of
from bayes_sparse.refits.own_rows import OwnRefit, own_rows
from bayes_sparse.refits.refit import Refit, Scored, left_out
from bayes_sparse.refits.workers import answers
from bayes_sparse.trees.read import StoredFit

__all__ = ["cross_validated", "kfold"]


def kfold(
    model: str | Any,
    data: Any = None,
    folds: Any = 10,
    *,
    groups: Any = None,
    random_seed: int | None = 0,
    whole: bool = True,
    workers: int | None = None,
    progressbar: bool = True,
    **fit_arguments: Any,
) -> Any:
    """Expected log density of new observations, by fits that have not seen them.

    Parameters
    ----------
    model : str, model object or pymc.Model
        As `fit` takes it. Of a `pm.Model` of your own rows are left out by a weight of zero, and scored by its draws.
    data : tuple, DataFrame or Dataset
        As `fit` takes it; None for a `pm.Model` of your own.
    folds : int, "loo", array or splitter
        How many parts, each balanced in the target; ``"loo"`` for one fit per row; one label per row; or an object with
        ``split(X, y, groups)``, such as scikit-learn's GroupKFold and TimeSeriesSplit.
    groups : array, optional
        Passed on to the splitter.
    random_seed : int, optional
        Of the split into so many parts, and of `fit`.
    whole : bool
        Whether all rows are fitted too, to tell the effective number of parameters. False saves that fit where only the
        elpd is asked for; ``p`` is NaN then. A `pm.Model` of your own is always fitted.
    workers : int, optional
        Processes; None for as many as there are cores, where that is quicker. The answer is the same.
    progressbar : bool
        Show progress on anything that takes longer than a second.
    **fit_arguments
        Anything else that `fit` takes: ``method``, ``target``, ``likelihood``, ``basis``, ``weights`` ...

    Returns
    -------
    arviz_stats.ELPDData
        With the value of every row, for `az.compare`, also beside those of `loo`. ``statuses`` counts how the fits
        ended, ``notes`` says what else to know.

    Notes
    -----
    Selection, hyper-parameters and a kernel's width are found in every fold, by the rows that are fitted. A row is
    scored by its log density, averaged over the posterior of that fit: exactly for evidence methods, by quadrature over
    the predictor (nuisance parameters at their estimates); over draws for several classes and for NUTS. A row of weight
    w counts w times. Columns that are constant in the rows fitted, such as a level that none of them has, are left out
    there. Rows that are in no part to be
    scored are not in the answer. The effective number of parameters is how much better a fit of all rows scores them.

    Examples
    --------
    >>> import bayes_sparse as bs
    >>> truth = bs.datasets.sparse_linear(n=60, p=5, k=2, random_seed=0)
    >>> elpd = bs.kfold("ard_gaussian", (truth.X, truth.y), folds="loo")
    >>> elpd.n_data_points
    60
    """
    if isinstance(choose_model(model), Declared):
        return _own(model, data, folds, groups, random_seed, progressbar, fit_arguments)
    given = {name: fit_arguments.pop(name, None) for name in ("target", "weights", "offset")}
    given["formula"] = fit_arguments.pop("formula", None)
    rows = read_rows(data, **given, missing=fit_arguments.pop("missing", "refuse"))
    labelled = data[0] if isinstance(data, tuple) else data
    folds, groups = in_the_order_of(labelled, folds, "`folds`"), in_the_order_of(labelled, groups, "`groups`")
    split = folds_of(rows.of(folds), rows, rows.of(groups), random_seed)
    refit = Refit(rows, split, {"model": model, "random_seed": random_seed, **fit_arguments})
    return cross_validated(refit, workers, progressbar, one_out=isinstance(folds, str), whole=whole)


def _own(
    model: Any,
    data: Any,
    folds: Any,
    groups: Any,
    random_seed: int | None,
    progressbar: bool,
    arguments: dict[str, Any],
) -> Any:
    """Of a model of the user's, in this process: models are not sent to others."""
    method = arguments.get("method")
    if method == "nuts" or isinstance(method, NUTS):
        raise ValueError(
            "By NUTS a pm.Model of your own is sampled with all of its rows: cross-validate it by an evidence "
            "method, or use arviz.loo_kfold with a wrapper of yours."
        )
    given = {"model": model, "data": data, "random_seed": random_seed, **arguments}
    weights = given.pop("weights", None)
    with quiet():
        rows = own_rows(fit(**given | {"draws": 0, "progressbar": False}), weights)
    refit = OwnRefit(rows, folds_of(folds, rows, groups, random_seed), given)
    return cross_validated(refit, 1, progressbar, one_out=isinstance(folds, str))


def cross_validated(
    refit: Refit,
    workers: int | None,
    progressbar: bool,
    *,
    one_out: bool,
    whole: bool = True,
    check: Callable[[StoredFit], None] = lambda fitted: None,
) -> Any:
    """All folds as ArviZ's object; ``check`` is shown the fit of all rows before any other is made, if it is."""
    fitted = refit.whole() if whole else None
    if fitted is not None:
        check(fitted)
    refit = refit.as_in(fitted)
    targets = refit.arguments["likelihood"].targets if fitted is None else fitted.targets
    if targets in ("two classes", "classes"):
        check_classes(refit.folds, refit.rows.y)
    number = len(refit.folds)
    with FitProgress("Cross-validation", progressbar) as progress:
        scored = answers(
            refit,
            number,
            workers,
            lambda done: progress.say(f"Cross-validation: {done} of {number} fits"),
            alone=refit.samples,
        )
    rows, table = refit.rows, refit.rows.tables[0]
    tested = np.concatenate([fold.test for fold in refit.folds])
    order = np.argsort(tested)
    tested, scores = tested[order], np.concatenate([one.scores for one in scored])[order]
    weights = np.ones(len(tested)) if rows.weights is None else rows.weights[tested]
    elpd = weights * scores
    gained = np.full(len(elpd), np.nan)
    if fitted is not None:
        gained = weights * refit.scores(fitted, rows.at(tested)) - elpd
    statuses = dict(Counter(one.status for one in scored))
    pointwise = xr.DataArray(elpd, dims=[table.obs_dim], coords={table.obs_dim: table.rows[tested]}, name=table.target)
    posterior = None if fitted is None else fitted.posterior
    common: dict[str, Any] = {
        "elpd": float(elpd.sum()),
        "se": float(np.sqrt(len(elpd) * np.var(elpd))),
        "p": float(gained.sum()),
        "n_samples": 0 if posterior is None else posterior.sizes["chain"] * posterior.sizes["draw"],
        "n_data_points": len(elpd),
        "scale": "log",
        "warning": False,
        "good_k": None,
        "elpd_i": pointwise,
        "statuses": statuses,
        "notes": _notes(refit, scored, len(tested), fitted),
    }
    _tell(statuses)
    from bayes_sparse.results.elpd import RefittedKFold, RefittedLOO  # imports ArviZ, which takes a second

    if one_out:
        return RefittedLOO(p_loo_i=pointwise.copy(data=gained), **common)
    return RefittedKFold(n_folds=number, p_kfold_i=pointwise.copy(data=gained), **common)


def _notes(refit: Refit, scored: list[Scored], tested: int, whole: StoredFit | None) -> tuple[str, ...]:
    notes, n, number = [], refit.rows.n, len(scored)
    # What is constant in all rows is so in every fit.
    always = min(one.left_out for one in scored) if whole is None else left_out(whole)
    if tested < n:
        notes.append(f"{n - tested} of {n} rows are in no part to be scored, and not in the elpd.")
    short = sum(one.left_out > always for one in scored)
    if short:
        notes.append(f"In {short} of {number} fits some columns were constant, and left out.")
    odd = Counter(one.status for one in scored if one.status != "sampled" and Status.of(one.status).level != "good")
    if odd:
        words = ", ".join(f"{times} {status}" for status, times in odd.items())
        notes.append(f"Of {number} fits not all ended in the ordinary way: {words}.")
    return tuple(notes)


def _tell(statuses: dict[str, int]) -> None:
    """Warn of fits whose answers are not to be used as they are."""
    for word, times in statuses.items():
        if word != "sampled" and Status.of(word).level == "bad":
            said = Status.of(word).sentence()
            tell(f"{times} of {sum(statuses.values())} fits of the cross-validation ended {word!r}. {said}")
