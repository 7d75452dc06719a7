"""What a sampler is given, a density of one vector and how long to sample it, and what it gives back."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayes_sparse.common.types import FloatArray, IntArray

__all__ = ["Chains", "Density", "Sampling", "Value", "choose_sampler"]

type Value = tuple[float, FloatArray]

_SAMPLERS = ("auto", "nutpie", "pymc")


@dataclass(frozen=True)
class Sampling:
    """A run of NUTS.

    Attributes
    ----------
    draws, tune, chains : int
        Draws kept and warm-up steps a chain, and how many chains.
    target_accept : float
        What the step size is adapted to.
    sampler : "nutpie" or "pymc"
        Whose NUTS.
    random_seed : int, optional
        Makes the draws reproducible.
    progressbar : bool
        Show progress.
    more : dict
        Passed on to `pm.sample`.
    """

    draws: int
    tune: int
    chains: int
    target_accept: float
    sampler: str
    random_seed: int | None
    progressbar: bool
    more: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Chains:
    """Draws of a density.

    Attributes
    ----------
    x : array (chains, draws, dim)
        The draws.
    stats : dict
        What the sampler says of each, (chains, draws), under ArviZ's names.
    gradients, warmup_gradients : int
        Evaluations of the gradient after and during warm-up, over all chains.
    stopped : bool
        Whether the user stopped them, so that there are fewer draws or chains than were asked for.
    """

    x: FloatArray
    stats: dict[str, NDArray[Any]]
    gradients: int
    warmup_gradients: int
    stopped: bool = False


@dataclass(frozen=True, eq=False)
class Density:
    """A log density and where it is thought to lie.

    Attributes
    ----------
    evaluate : callable
        ``evaluate(x)`` gives the log density and its gradient, (dim,).
    mean : array (dim,)
        Centre.
    factor : array (k, k)
        F with F F' the approximate covariance of the coordinates in `block`.
    block : int array (k,) or slice, optional
        Coordinates that are correlated; None for all. A slice takes no time worth speaking of, an array some.
    """

    evaluate: Callable[[FloatArray], Value]
    mean: FloatArray
    factor: FloatArray
    block: IntArray | slice | None = None

    def __call__(self, z: FloatArray) -> Value:
        """Log density and gradient in the sampler's coordinates."""
        value, gradient = self.evaluate(self.x(z))
        if self.block is None:
            return value, self.factor.T @ gradient
        if len(self.factor):
            gradient[self.block] = gradient[self.block].dot(self.factor)
        return value, gradient

    def x(self, z: FloatArray) -> FloatArray:
        """Natural coordinates of one or many draws (..., dim)."""
        if self.block is None:
            return np.asarray(self.mean + z @ self.factor.T)
        x = self.mean + z
        if len(self.factor):  # called for every gradient, so not by the ellipsis and a second product with a transpose
            turned = z[..., self.block].dot(self.factor.T)
            turned += self.mean[self.block]
            x[..., self.block] = turned
        return x


def choose_sampler(asked: str) -> str:
    """The sampler asked for; ``"auto"`` is nutpie where it is installed, else PyMC's own."""
    if asked not in _SAMPLERS:
        raise ValueError(f"`sampler` is one of {', '.join(map(repr, _SAMPLERS))}, got {asked!r}.")
    there = importlib.util.find_spec("nutpie") is not None
    if asked == "nutpie" and not there:
        raise ValueError("sampler='nutpie' needs the package nutpie: pip install nutpie, or take sampler='pymc'.")
    return asked if asked != "auto" else ("nutpie" if there else "pymc")
