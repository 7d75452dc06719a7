"""The quadratic in coordinates that make it a product: the eigenvectors of its Hessian.

``S = Q' diag(h) Q`` is the Hessian with the fixed weights (bias) integrated out under their own prior, ``u = Q w``.
The evidence of the quadratic model is ``exp(height)`` times one integral a direction, whatever the prior on each u.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inference.evidence.state import log_prior
from bayes_sparse.inference.newton import Profile
from bayes_sparse.inference.one_step.expansion import Quadratic

__all__ = ["Eigen", "eigen_coordinates"]


@dataclass(frozen=True, eq=False)
class Eigen:
    """A quadratic model in its eigen-coordinates, those with positive curvature, the most curved first.

    Attributes
    ----------
    h : array (r,)
        Curvatures, all positive.
    u : array (r,)
        Centre of the model, not negative: every direction points towards it.
    Q : array (r, d)
        Directions, orthonormal rows.
    height : float
        Log-likelihood at the centre with the fixed weights integrated out.
    dropped : int
        Directions left out because the likelihood curves the wrong way along them.
    flat : int
        Directions left out because the data say nothing about them.
    """

    h: FloatArray
    u: FloatArray
    Q: FloatArray
    height: float
    dropped: int
    flat: int


def eigen_coordinates(quadratic: Quadratic, fixed: FloatArray) -> Eigen:
    """Diagonalise a quadratic model; ``fixed`` are the prior precisions of its last q weights."""
    d = len(quadratic.gradient)
    profile = Profile.of(quadratic.H, d, fixed)
    x0 = quadratic.v[d:]
    height = quadratic.value + log_prior(fixed, x0) - float(np.log(profile.L.diagonal()).sum())
    if not d:
        return Eigen(np.empty(0), np.empty(0), np.empty((0, 0)), height, 0, 0)
    h, V = eigh(profile.S, driver="evd", check_finite=False)
    # Rounding errors are those of H, which may be far larger than what is left of it without the fixed weights.
    taken = np.linalg.norm(profile.L.T @ profile.link, 2) ** 2 if profile.link.size else 0.0
    floor = d * np.finfo(float).eps * max(float(np.abs(h).max() + taken), 1e-300)
    positive = h > floor
    negative = int(np.sum(h < -floor))
    h, Q = h[positive][::-1], np.ascontiguousarray(V[:, positive].T[::-1])
    u = Q @ quadratic.v[:d]
    if quadratic.gradient.any():  # the centre lies where the slope has run out
        pull = Q @ quadratic.gradient
        u, height = u + pull / h, height + 0.5 * float(np.sum(pull**2 / h))
    sign = np.where(u < 0, -1.0, 1.0)
    return Eigen(h, u * sign, Q * sign[:, None], height, negative, int(d - positive.sum() - negative))
