"""What sampling at given hyper-parameters needs to know of a fit, whichever family it is of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import xarray as xr

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inference.sampling import Density

__all__ = ["Conditional"]


@dataclass(frozen=True, eq=False)
class Conditional:
    """p(w | alpha*, data) over the coordinates kept.

    Attributes
    ----------
    density : Density
        Normalised likelihood and prior; mean and covariance are the evidence fit's.
    reported : callable
        ``reported(x)`` gives the weights (S, coordinates) in the user's units, a linear function of draws (S, dim).
    posterior : callable
        ``posterior(x, shape)`` gives the draws under the user's names.
    pointwise : callable
        ``pointwise(x)`` gives the log-likelihood of each observation, (S, n).
    held : dict
        Nuisance parameters that are held, by name.
    more : callable
        ``more(x)`` gives further moments for the group `evidence`, as ``name: (dims, values)``.
    """

    density: Density
    reported: Callable[[FloatArray], FloatArray]
    posterior: Callable[[FloatArray, tuple[int, int]], xr.Dataset]
    pointwise: Callable[[FloatArray], FloatArray]
    held: dict[str, Any] = field(default_factory=dict)
    more: Callable[[FloatArray], dict[str, tuple[tuple[str, ...], FloatArray]]] = lambda x: {}

    def moments(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean of the reported weights over draws (S, dim), and a factor of their covariance."""
        dim = x.shape[1]
        origin = self.reported(np.zeros((1, dim)))
        linear = self.reported(np.eye(dim)) - origin
        values, vectors = np.linalg.eigh(np.atleast_2d(np.cov(x, rowvar=False)))
        factor = vectors * np.sqrt(np.maximum(values, 0.0))
        return np.asarray(self.reported(x.mean(axis=0)[None])[0]), np.asarray(linear.T @ factor)
