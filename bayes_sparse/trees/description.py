"""What the writer of a tree asks of a fit, whichever family it is of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import xarray as xr

from bayes_sparse.common.types import FloatArray, Variables
from bayes_sparse.problem.labelled import LabelledProblem

__all__ = ["Description", "Drawn", "moments_of"]


@dataclass(frozen=True, eq=False)
class Drawn:
    """Draws of an approximate posterior.

    Attributes
    ----------
    x : array (S, dim)
        Coordinates.
    theta : array (S, t)
        Nuisance parameters.
    log_q : array (S,)
        Log density of the approximation.
    precision : array (S, dim), optional
        Prior precisions of the coordinates, where they have a posterior.
    """

    x: FloatArray
    theta: FloatArray
    log_q: FloatArray
    precision: FloatArray | None = None


class Description(Protocol):
    """A fit in coordinates x of its own: weights kept, directions kept, or weights on a support.

    It says what is stored of the fit, draws from its posterior, and knows the exact log target,
    log p(y | x) + log p(x | hyper-parameters), that the posterior stands for.

    Attributes
    ----------
    labelled : LabelledProblem
        What was fitted.
    approximation : str
        How the posterior was made.
    notes : dict
        What the log densities among the sample statistics are of.
    mean, factor : array (dim,), (dim, dim)
        Of the posterior over x; factor times its transpose is the covariance.
    held : dict
        Nuisance parameters that the log target holds, by name.
    """

    labelled: LabelledProblem
    approximation: str
    notes: dict[str, str]

    @property
    def mean(self) -> FloatArray:
        """Of x."""

    @property
    def factor(self) -> FloatArray:
        """Of the covariance of x."""

    @property
    def held(self) -> dict[str, Any]:
        """Nuisance parameters that the log target holds."""

    def moments(self) -> Variables:
        """What predictions need, as `stored` has it: means, covariance, log evidence, nuisance parameters' logs."""

    def stored(self) -> tuple[Variables, dict[str, Any]]:
        """Variables and coordinates of the group `evidence`."""

    def draw(self, count: int, rng: np.random.Generator) -> Drawn:
        """Independent draws."""

    def look(self, drawn: Drawn, some: Any, *, each: bool) -> tuple[FloatArray | None, dict[str, FloatArray]]:
        """Log-likelihood of each observation at some draws if asked for, and the log targets by name."""

    def evaluate(self, x: FloatArray) -> tuple[float, FloatArray]:
        """The log target and its gradient at one point."""

    def pointwise(self, x: FloatArray) -> FloatArray:
        """Log-likelihood of each observation (S, n) at many points, nuisance parameters as the log target has them."""

    def reported(self, x: FloatArray) -> FloatArray:
        """Weights (S, coordinates) in the user's units, a linear function of x (S, dim)."""

    def named(self, x: FloatArray, theta: FloatArray, shape: tuple[int, int]) -> xr.Dataset:
        """Draws under the user's names."""

    def sampled(self, x: FloatArray, shape: tuple[int, int]) -> xr.Dataset:
        """Draws of the log target under the user's names."""

    def more(self, x: FloatArray) -> Variables:
        """Further moments of draws of the log target, for the group `evidence`."""


def moments_of(description: Description, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean of the reported weights over draws (S, dim), and a factor of their covariance."""
    dim = x.shape[1]
    origin = description.reported(np.zeros((1, dim)))
    linear = description.reported(np.eye(dim)) - origin
    values, vectors = np.linalg.eigh(np.atleast_2d(np.cov(x, rowvar=False)))
    factor = vectors * np.sqrt(np.maximum(values, 0.0))
    return np.asarray(description.reported(x.mean(axis=0)[None])[0]), np.asarray(linear.T @ factor)
