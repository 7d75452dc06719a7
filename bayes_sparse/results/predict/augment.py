"""Healing the relevance vector machine: more uncertain, not less, away from its data.

Rasmussen & Quinonero-Candela (2005) add, for each new point x alone, one more basis function centred on it. With
sparsity s and quality q of that basis function and its own value e at x less what the fit already explains, the
prediction gains ``e q / (alpha + s)`` in the mean and ``e^2 / (alpha + s)`` in the variance. Near the data s is large
and nothing changes; far from them s and q vanish and the variance grows by ``1 / alpha``, set to the variance of the
signal the fit has found.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inputs.basis import rbf
from bayes_sparse.problem.design import weighted_sd
from bayes_sparse.trees.read import StoredFit

__all__ = ["augmentation"]


def augmentation(
    fit: StoredFit, X: NDArray[np.float64], train: FloatArray, new: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """What one basis function centred on each new row adds to the mean and variance of its prediction.

    Parameters
    ----------
    fit : StoredFit
        A normal fit with an rbf basis, not standardised.
    X : array (m, p)
        New rows.
    train, new : array (n, k), (m, k)
        Active columns at the training and at the new rows.
    """
    assert fit.evidence is not None
    basis, evidence, constant = fit.basis, fit.evidence, fit.constant
    if not isinstance(basis, rbf) or basis.standardise or "sigma" not in evidence:
        raise ValueError(
            "augment=True mends the variance of a regression with an rbf basis (normal likelihood, standardise=False); "
            "this fit is another kind."
        )
    assert fit.observed is not None
    y = fit.observed.to_numpy()
    weights = constant["weights"].to_numpy() if "weights" in constant else np.ones(len(y))
    offset = constant["offset"].to_numpy() if "offset" in constant else np.zeros(len(y))
    beta = float(evidence["sigma"]) ** -2.0
    fitted = train @ evidence["coordinate_mean"].to_numpy()
    factor = evidence["covariance_factor"].to_numpy()
    added = basis.matrix(constant["X"].to_numpy(), X)
    explained = factor.T @ (beta * (train * weights[:, None]).T @ added)
    s = np.maximum(beta * (weights @ added**2) - np.einsum("ij,ij->j", explained, explained), 0.0)
    q = beta * ((weights * (y - offset - fitted)) @ added)
    e = 1.0 - np.einsum("ij,ji->j", explained, new @ factor)
    alpha = 1.0 / max(weighted_sd(fitted, weights) ** 2, 1.0 / beta)
    return e * q / (alpha + s), e**2 / (alpha + s)
