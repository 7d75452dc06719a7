"""What the likelihood alone says of each weight: the directions left out are no better known for being left out.

A pruned direction is exactly zero under the prior found, so the posterior of a weight ``w = Q'u`` counts only the
directions kept. The data know less: along direction i the quadratic is ``N(centre_i, 1 / h_i)``, kept or not.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inference.newton import Profile
from bayes_sparse.inference.one_step.eigen import Eigen
from bayes_sparse.inference.one_step.expansion import Quadratic

__all__ = ["Alone", "likelihood_alone"]

_FLAT = 1e-8  # squared part of a weight that may lie along directions the data say nothing about


class Alone(NamedTuple):
    """The quadratic without any prior on the free weights.

    Attributes
    ----------
    estimate, error : array (d + q,)
        Its centre, one Newton step from the expansion point, and its sd, free weights first. NaN where the data do not
        determine a weight.
    """

    estimate: FloatArray
    error: FloatArray


def likelihood_alone(
    quadratic: Quadratic, eigen: Eigen, fixed: FloatArray, rotation: FloatArray | None, idle: float
) -> Alone:
    """The likelihood's own estimate of every weight.

    Parameters
    ----------
    quadratic, eigen : Quadratic, Eigen
        The likelihood's stand-in, and that in eigen-coordinates.
    fixed : array (q,)
        Prior precisions of the fixed weights.
    rotation : array, optional
        Rows T with ``w = T' w_reduced`` where those weights are not the user's own.
    idle : float
        Squared part of every free weight that makes no difference to the likelihood by construction: with C classes
        their common part, 1 / C, which is put to zero.
    """
    Q, h, d = eigen.Q, eigen.h, len(quadratic.gradient)
    profile = Profile.of(quadratic.H, d, fixed)
    w0, x0 = quadratic.v[:d], quadratic.v[d:]
    push = quadratic.slope[d:] - fixed * x0
    pull = quadratic.slope[:d] - profile.link.T @ push
    w = Q.T @ (Q @ w0 + Q @ pull / h)
    x, variance_x = x0 - profile.link @ (w - w0), np.zeros(len(x0))
    if len(x0):
        inverse, _ = lapack.dpotrs(profile.L, np.eye(len(x0)), lower=1)
        x = x + inverse @ push
        variance_x = inverse.diagonal() + np.sum((profile.link @ Q.T) ** 2 / h, axis=1)
    if rotation is None:
        variance, share = np.sum(Q**2 / h[:, None], axis=0), np.sum(Q**2, axis=0)
    else:
        share = np.sum(rotation**2, axis=0)
        variance, some = np.zeros(len(share)), share > 1 - idle - _FLAT  # with fewer rows than columns mostly none
        part = Q @ rotation[:, some]
        variance[some], share[some] = np.sum(part**2 / h[:, None], axis=0), np.sum(part**2, axis=0)
        w = rotation.T @ w
    known = np.append(share > 1 - idle - _FLAT, np.ones(len(x), dtype=bool))
    if eigen.dropped:  # the likelihood rises along some directions, so that the quadratic has no centre
        known[:] = False
    estimate, error = np.append(w, x), np.sqrt(np.append(variance, variance_x))
    return Alone(np.where(known, estimate, np.nan), np.where(known, error, np.nan))
