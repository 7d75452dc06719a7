"""The columns of a fitted design at new rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack

from bayes_sparse import basis as bases

__all__ = ["columns_at"]


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
