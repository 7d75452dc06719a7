"""Predictions of new rows in chunks: made chunk by chunk when they are asked for, and dask's till then."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from bayes_sparse.inputs.chunks import need_dask, new_rows
from bayes_sparse.trees.read import StoredFit

__all__ = ["predict_chunks"]


def predict_chunks(
    fit: StoredFit, X: Any, offset: Any, predict: Callable[[StoredFit, Any, Any], xr.Dataset]
) -> xr.Dataset:
    """The same variables as of rows in memory, backed by dask.

    Parameters
    ----------
    fit : StoredFit
        Of a named model.
    X : dask array, dask DataFrame, Dataset or ChunkedFrame
        New rows.
    offset : array or float, optional
        Known part of their predictor.
    predict : callable
        ``predict(fit, X, offset)`` gives the predictions of rows in memory; it is sent to the workers.
    """
    dask, da = need_dask(), need_dask("dask.array")
    slim, new = replace(fit, tree=_without_rows(fit.tree)), new_rows(X, offset)
    given = fit.encodings[0].given
    sample = pd.DataFrame(np.zeros((1, len(given))), columns=given)
    told = predict(slim, sample, 0.0)  # which variables there will be
    task, one, pick = dask.delayed((slim, predict), traverse=False), dask.delayed(_predicted), dask.delayed(_picked)
    parts = [one(task, rows, own) for rows, own in new.pieces]
    variables: dict[Any, Any] = {}
    for name, variable in told.data_vars.items():
        arrays = [
            da.from_delayed(pick(part, str(name)), (length, *variable.shape[1:]), dtype=variable.dtype)
            for part, length in zip(parts, new.lengths, strict=True)
        ]
        variables[name] = ((new.dim, *variable.dims[1:]), da.concatenate(arrays))
    return xr.Dataset(variables, coords={name: told[name] for name in told.coords if name == "class"})


def _without_rows(tree: xr.DataTree) -> xr.DataTree:
    """What predictions need of a tree, and nothing as long as its rows."""
    groups = {name: tree[name].to_dataset() for name in ("evidence", "posterior") if name in tree.children}
    constant = tree["constant_data"].to_dataset().drop_vars(["weights", "offset"], errors="ignore")
    slim = xr.DataTree.from_dict({**groups, "constant_data": constant})
    slim.attrs.update(tree.attrs)
    return slim


def _predicted(task: tuple[Any, ...], rows: Any, offset: Any) -> xr.Dataset:
    fit, predict = task
    found: xr.Dataset = predict(fit, rows, 0.0 if offset is None else offset)
    return found


def _picked(found: xr.Dataset, name: str) -> Any:
    return found[name].to_numpy()
