"""The columns of a fitted design at new rows."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack

from bayes_sparse.inputs import basis as bases

__all__ = ["columns_at", "columns_drawn"]


def columns_drawn(tree: xr.DataTree) -> tuple[NDArray[np.intp], int]:
    """Which of the basis functions the draws of a tree are of, and how many there are in all."""
    labels = json.loads(tree.attrs["bayes_sparse"])["vectors"]["w"][1]
    if "w" not in tree["posterior"]:
        if "evidence" in tree.children and tree["evidence"]["sd"].to_numpy().any():
            raise ValueError("The draws of the weights were too large to be stored: fit with fewer draws to predict.")
        return np.empty(0, dtype=np.intp), len(labels)
    place = {label: i for i, label in enumerate(labels)}
    drawn = tree["posterior"]["w"]["basis"].to_numpy().tolist()
    return np.array([place[label] for label in drawn], dtype=np.intp), len(labels)


def columns_at(tree: xr.DataTree, basis: bases.Basis, X: Any, column: NDArray[Any], M: int) -> Any:
    """The active columns of the design at new rows, sparse if those are; a constant for those beyond the M."""
    inside = column < M
    if not isinstance(X, np.ndarray):
        ones = csr_array(np.ones((X.shape[0], int((~inside).sum()))))
        order = np.argsort(np.append(np.flatnonzero(inside), np.flatnonzero(~inside)))
        return hstack([X[:, column[inside]], ones], format="csr")[:, order]
    out = np.ones((len(X), len(column)))
    if basis.kernel:
        constant = tree["constant_data"].to_dataset()
        centres = constant["X"].to_numpy()
        if "input_shift" in constant:
            shift, scale = constant["input_shift"].to_numpy(), constant["input_scale"].to_numpy()
            X, centres = (X - shift) / scale, (centres - shift) / scale
        out[:, inside] = basis.matrix(X, centres[column[inside]])
    else:
        out[:, inside] = basis.matrix(X, None)[:, column[inside]]
    return out
