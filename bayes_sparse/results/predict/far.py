"""Rows far from the data of a fit by kernels that vanish away from their own rows.

There every kernel is near zero and the bias alone speaks, as sure as ever; with wide kernels, what is left of a few of
them. Polynomials, inner products and features themselves go on growing instead: the sd of the predictor grows with
them and says how far such a fit may be followed, so nothing is marked there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from bayes_sparse.common.types import BoolArray, FloatArray
from bayes_sparse.common.warnings import tell
from bayes_sparse.results.predict.new_rows import kernel_inputs
from bayes_sparse.trees.read import StoredFit

__all__ = ["with_far"]

_BLOCK = 2**21  # kernels held at once


def with_far(found: xr.Dataset, fit: StoredFit, X: Any, dim: str, *, warn: bool) -> xr.Dataset:
    """Predictions with `far`, and a warning where any row is; as they are where the basis does not vanish anywhere.

    Parameters
    ----------
    found : Dataset
        Predictions of new rows.
    fit : StoredFit
        Of a named model.
    X : array (m, p)
        The rows.
    dim : str
        Their dim.
    warn : bool
        False where the sd has been widened already, or nobody looks at it.
    """
    if "far_below" not in fit.constant:
        return found
    far = _far(fit, X)
    if far.any() and warn:
        meaning = "the sd there is too small, which bs.predict(..., augment=True) mends for a normal likelihood"
        if "probability" in found:
            meaning = "the probabilities there are not to be relied on, however sure they sound"
        tell(
            f"{int(far.sum())} of {len(far)} rows lie far from the data: {meaning}; `far` in what bs.predict gives "
            "marks them.",
            UserWarning,
        )
    return found.assign(far=((dim,), far))


def _far(fit: StoredFit, X: FloatArray) -> BoolArray:
    X, centres = kernel_inputs(fit, X)
    below, parts = float(fit.constant["far_below"]), max(1, len(X) * len(centres) // _BLOCK)
    blocks = np.array_split(np.arange(len(X)), parts)
    return np.concatenate([fit.basis.matrix(X[rows], centres).max(axis=1) < below for rows in blocks])
