"""Nuisance parameters that the columns themselves depend on: held while a fit is made, and moved between fits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bayes_sparse.common.types import FloatArray

__all__ = ["Held"]


@dataclass(frozen=True, eq=False)
class Held:
    """The length scale of a latent process, the correlation of errors: what a design is made with.

    Attributes
    ----------
    names : tuple of str
        The user's variables.
    x : array
        Where they are held, on the unconstrained scale.
    bounds : array (k, 2)
        How far each may go.
    log_prior : callable
        ``log_prior(x)``.
    at : callable
        ``at(x)`` gives the labelled problem with them held there; ``at(x, factor)`` the same, whose trees have draws of
        them with the covariance ``factor factor'``.
    """

    names: tuple[str, ...]
    x: FloatArray
    bounds: FloatArray
    log_prior: Callable[[FloatArray], float]
    at: Callable[..., Any]
