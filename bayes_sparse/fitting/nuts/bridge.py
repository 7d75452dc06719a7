"""What bridge sampling asks of a density besides its draws, computed while the density is still at hand.

A normal is fitted to the first half of every chain; the log density is evaluated at draws of that normal, and the
normal's at the second halves. From these four lists `bs.log_evidence` gets the integral of the density.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import numpy as np
import xarray as xr
from scipy.linalg import solve_triangular

from bayes_sparse.common.types import FloatArray

__all__ = ["bridge_group"]

_ENOUGH = 10  # draws a coordinate that a normal is fitted to
_log = logging.getLogger("bayes_sparse")


def bridge_group(
    log_density: Callable[[FloatArray], float],
    x: FloatArray,
    log_p: FloatArray,
    conditional_on: str,
    rng: np.random.Generator,
) -> xr.Dataset | None:
    """The four lists as a Dataset; None, with a message, where there are too few draws for so many coordinates.

    Parameters
    ----------
    log_density : callable
        Of one point (dim,).
    x : array (chains, draws, dim)
        Draws of it.
    log_p : array (chains, draws)
        The log density there.
    conditional_on : str
        What the integral is conditional on.
    rng : Generator
        For the normal's own draws.
    """
    chains, draws, dim = x.shape
    half = draws // 2
    first, second = x[:, :half].reshape(-1, dim), x[:, half:].reshape(-1, dim)
    if len(first) < _ENOUGH * dim:
        _log.info(
            "Bridge sampling fits a normal to half of the draws, and %d are too few for %d coordinates: "
            "bs.log_evidence will do without it.",
            len(first),
            dim,
        )
        return None
    mean = first.mean(axis=0)
    L = np.linalg.cholesky(np.atleast_2d(np.cov(first, rowvar=False)))
    count = len(second)
    z = rng.standard_normal((count, dim))
    log_determinant = float(np.log(L.diagonal()).sum())

    def log_q(z: FloatArray) -> FloatArray:
        return np.asarray(-0.5 * np.sum(z**2, axis=1) - 0.5 * dim * np.log(2 * np.pi) - log_determinant)

    proposed = mean + z @ L.T
    there = solve_triangular(L, (second - mean).T, lower=True).T
    return xr.Dataset(
        {
            "proposal_log_p": (("proposal_draw",), np.array([log_density(point) for point in proposed])),
            "proposal_log_q": (("proposal_draw",), log_q(z)),
            "posterior_log_p": (("chain", "half_draw"), log_p[:, half:]),
            "posterior_log_q": (("chain", "half_draw"), log_q(there).reshape(chains, -1)),
        },
        attrs={"conditional_on": conditional_on},
    )
