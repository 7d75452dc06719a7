"""The group `evidence` with other moments: those of draws, or of re-weighted ones."""

from __future__ import annotations

import numpy as np
import xarray as xr

from bayes_sparse.common.types import FloatArray

__all__ = ["with_moments"]


def with_moments(evidence: xr.Dataset, mean: FloatArray, factor: FloatArray) -> xr.Dataset:
    """Replace the mean and the covariance of all coordinates, and all that repeats them.

    Parameters
    ----------
    evidence : Dataset
        That group of a fit.
    mean : array (coordinate,)
        In the user's units.
    factor : array (coordinate, any)
        F with F F' the covariance.
    """
    M, column = evidence.sizes["basis"], evidence["column"].to_numpy()
    sd, basis = np.sqrt(np.einsum("ij,ij->i", factor, factor)), column < M
    out = evidence.drop_vars("covariance_factor").assign(
        coordinate_mean=(("coordinate",), mean), covariance_factor=(("coordinate", "factor"), factor)
    )
    for name, values in (("mean", mean), ("sd", sd)):
        full = np.zeros(M)
        full[column[basis]] = values[basis]
        out[name] = (("basis",), full)
    labels = np.array([str(label).split("[")[0] for label in evidence["coordinate"].to_numpy()])
    for label in dict.fromkeys(labels[~basis]):
        inside = ~basis & (labels == label)
        for name, values in ((label, mean), (f"{label}_sd", sd)):
            if name in out:
                out[name] = (out[name].dims, values[inside].reshape(out[name].shape))
    return out
