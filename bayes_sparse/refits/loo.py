"""Leaving one out: by re-weighting the draws of a fit, or in earnest."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from bayes_sparse.fitting.asked import arguments_of
from bayes_sparse.inputs.new_rows import class_features_of, features_of
from bayes_sparse.inputs.rows import Rows
from bayes_sparse.inputs.table import Table
from bayes_sparse.refits.folds import folds_of
from bayes_sparse.refits.kfold import cross_validated
from bayes_sparse.refits.refit import Refit
from bayes_sparse.results.loo import loo as reweighted
from bayes_sparse.trees.damage import reads_a_fit
from bayes_sparse.trees.read import StoredFit, stored
from bayes_sparse.trees.spread import sds

__all__ = ["loo"]

_SAME = 1e-3  # posterior sds by which the fit of all rows may differ from the tree
_CALL = "bs.kfold(model, data, folds='loo', ...) with the arguments of your fit"


@reads_a_fit
def loo(
    tree: xr.DataTree,
    pointwise: bool = False,
    *,
    refit: bool = False,
    data: Any = None,
    workers: int | None = None,
    progressbar: bool = True,
) -> Any:
    """Expected log density of new observations, by leaving each one out.

    By re-weighting the draws, which takes milliseconds. The draws of an evidence fit are weighted towards the exact
    posterior at its hyper-parameters and away from the observation left out in one go (Magnusson et al. 2019); those
    hyper-parameters, and the terms selected, have seen all observations, so that the answer is too high, and says so in
    print and in its ``caveat``. With ``refit=True`` the same model is fitted anew without each observation.

    Parameters
    ----------
    tree : xarray.DataTree
        From `bayes_sparse.fit` or `bayes_sparse.correct`, with draws; to refit, of a named model by an evidence method,
        with or without draws.
    pointwise : bool
        With the value and the k-hat of every observation; refits always have the value.
    refit : bool
        Fit anew without each observation.
    data : tuple, DataFrame, array ...
        To refit: the features that were fitted, in the form that was; a kernel's tree holds them itself. Targets,
        weights and offset are the tree's own.
    workers, progressbar
        To refit: as for `kfold`.

    Returns
    -------
    arviz_stats.ELPDData
        For `az.compare`. ArviZ warns where some observations matter too much for re-weighting.

    Notes
    -----
    Of a row that counts several times (`weights`) re-weighting leaves out one; refits leave out all of them, and count
    its log density so many times. The prior of a fit with lambda integrated out is, for re-weighting, the Laplace
    prior at the lambda found.
    """
    if not refit:
        if data is not None:
            raise ValueError("`data` are for refits alone: give refit=True too, or leave them out.")
        return reweighted(tree, pointwise)
    again = stored(tree, "loo")
    text = _told(again)
    rows = _rows(again, data)
    job = Refit(rows, folds_of("loo", rows, None, None), {**arguments_of(text), "likelihood": again.likelihood})
    return cross_validated(job, workers, progressbar, one_out=True, check=lambda whole: _check(again, whole))


def _told(fit: StoredFit) -> str:
    """What was asked of the fit, refused where it cannot be asked again."""
    if fit.declared:
        raise ValueError("loo refits named models; a pm.Model of your own holds its rows itself: leave out `refit`.")
    if fit.evidence is None or fit.sampled:
        raise ValueError(f"loo refits what an evidence method fitted; for NUTS use {_CALL}.")
    if fit.corrected:
        raise ValueError("loo refits what an evidence method fitted: give the tree as it was before bs.correct.")
    text = fit.evidence.attrs.get("asked")
    if text is None:
        raise ValueError(f"This tree does not tell all that was asked of its fit: use {_CALL}.")
    return str(text)


def _rows(fit: StoredFit, data: Any) -> Rows:
    """The rows of the fit: features as given, everything else from the tree."""
    assert fit.observed is not None
    y: Any = fit.observed.to_numpy()
    classes = fit.constant["class"].to_numpy() if "class" in fit.constant.variables else None
    y = y if classes is None else classes[y.astype(int)]
    X = data[0] if isinstance(data, tuple) and len(data) == 2 else data
    if X is None:
        if "X" not in fit.constant:
            raise ValueError("The tree does not hold the features that were fitted: give them, loo(..., data=(X, y)).")
        X = Table(fit.constant["X"].to_numpy(), fit.columns, np.arange(len(y)), "obs", y, "")
    if fit.by_class:
        assert classes is not None
        parts, _, _ = class_features_of(X, classes, fit.columns, fit.encodings)
        names = fit.columns
    else:
        parts, names = [features_of(X, fit.columns, fit.encodings[0], fill=False).X], [fit.columns]
    if parts[0].shape[0] != len(y):
        raise ValueError(f"`data` have {parts[0].shape[0]} rows, and {len(y)} were fitted; give the same.")
    dim = str(fit.observed.dims[0])
    labels = fit.observed[dim].to_numpy()
    tables = [
        Table(part, own, labels, dim, y, str(fit.observed.name), how)
        for part, own, how in zip(parts, names, fit.encodings, strict=True)
    ]
    beside = [fit.constant[name].to_numpy() if name in fit.constant else None for name in ("weights", "offset")]
    return Rows(tables, fit.by_class, *beside)


def _check(fit: StoredFit, whole: StoredFit) -> None:
    """Refuse to go on with another fit than the tree's."""
    assert fit.evidence is not None
    assert whole.evidence is not None
    column, mean, factor = (
        fit.evidence[name].to_numpy() for name in ("column", "coordinate_mean", "covariance_factor")
    )
    same = np.array_equal(column, whole.evidence["column"].to_numpy())
    if same:
        away = np.abs(mean - whole.evidence["coordinate_mean"].to_numpy())
        same = bool(np.all(away <= _SAME * sds(factor) + 1e-12 * np.abs(mean)))
    if not same:
        raise ValueError(
            f"Fitting all rows again did not give this tree: these are other data, or other versions of the packages; "
            f"use {_CALL}."
        )
