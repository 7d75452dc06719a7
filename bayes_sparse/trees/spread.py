"""The variance of predictors that a fit stores: a factor of the weights' covariance, or a thin one beside the prior.

A fit that keeps more weights than there are rows knows more of them than their prior along as many directions as rows.
It stores the factor F of those alone, with ``r``, by how much the data have narrowed each; elsewhere the weights have
their prior's variance d: ``Sigma = D - S S' + F F'`` with ``S = F diag(r)``. The prior is of centred columns, so that
in D the bias takes up the weights times the centres.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from bayes_sparse.common.types import FloatArray

__all__ = ["THIN", "draws_of", "is_thin", "sds", "variance_along"]

THIN = ("prior_variance", "prior_centre", "prior_bias", "narrowed")


def is_thin(evidence: xr.Dataset) -> bool:
    """Whether the factor is that of the directions that the data see alone."""
    return THIN[0] in evidence


def sds(factor: FloatArray) -> FloatArray:
    """Of each coordinate, from a factor F with ``F F' = Sigma``, also where their squares are no numbers."""
    sd = np.sqrt(np.einsum("ij,ij->i", factor, factor))
    far = ~((sd > 1e-150) & (sd < np.inf))
    sd[far] = np.hypot.reduce(factor[far], axis=1)
    return np.asarray(sd)


def variance_along(evidence: xr.Dataset, Phi: Any) -> FloatArray:
    """Variance of the predictor of each row of the columns Phi (rows, coordinates), dense or sparse."""
    spread = np.asarray(Phi @ evidence["covariance_factor"].to_numpy())
    variance = np.einsum("ij,ij->i", spread, spread)
    if not is_thin(evidence):
        return np.asarray(variance)
    d, centre, is_bias, narrowed = (evidence[name].to_numpy() for name in THIN)
    square = Phi**2 if isinstance(Phi, np.ndarray) else Phi.power(2)
    bias = Phi @ is_bias
    prior = square @ d - 2 * bias * (Phi @ (centre * d)) + bias**2 * (centre**2 @ d)
    spread *= narrowed
    return np.asarray(np.maximum(prior - np.einsum("ij,ij->i", spread, spread), 0.0) + variance)


def draws_of(evidence: xr.Dataset, count: int, rng: np.random.Generator) -> FloatArray:
    """Draws (count, coordinates) of the normal posterior."""
    mean, factor = evidence["coordinate_mean"].to_numpy(), evidence["covariance_factor"].to_numpy()
    # A factor over weights and nuisance parameters together has more columns than rows: the same normal.
    w = mean + rng.standard_normal((count, factor.shape[1])) @ factor.T
    if not is_thin(evidence):
        return np.asarray(w)
    d, centre, is_bias, narrowed = (evidence[name].to_numpy() for name in THIN)
    bias, U = is_bias > 0, factor * narrowed
    U[bias] += centre @ U
    U /= np.sqrt(d)[:, None]
    v = rng.standard_normal((count, len(d)))
    unseen = (v - (v @ U) @ U.T) * np.sqrt(d)
    unseen[:, bias] -= (unseen @ centre)[:, None]
    return np.asarray(w + unseen)
