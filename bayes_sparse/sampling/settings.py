"""How long to sample, and with what."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bayes_sparse.design import FloatArray

__all__ = ["Chains", "Sampling", "choose_sampler", "counted", "standard_stats"]

_SAMPLERS = ("auto", "nutpie", "pymc")
# What the samplers call the same thing, and what ArviZ does.
_NAMES = {
    "diverging": "diverging",
    "energy": "energy",
    "lp": "lp",
    "logp": "lp",
    "tree_depth": "tree_depth",
    "depth": "tree_depth",
    "n_steps": "n_steps",
    "step_size": "step_size",
    "acceptance_rate": "acceptance_rate",
    "mean_tree_accept": "acceptance_rate",
    "reached_max_treedepth": "reached_max_treedepth",
    "maxdepth_reached": "reached_max_treedepth",
}


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
    """

    x: FloatArray
    stats: dict[str, NDArray[Any]]
    gradients: int
    warmup_gradients: int


def choose_sampler(asked: str) -> str:
    """The sampler asked for; ``"auto"`` is nutpie where it is installed, else PyMC's own."""
    if asked not in _SAMPLERS:
        raise ValueError(f"`sampler` is one of {', '.join(map(repr, _SAMPLERS))}, got {asked!r}.")
    there = importlib.util.find_spec("nutpie") is not None
    if asked == "nutpie" and not there:
        raise ValueError("sampler='nutpie' needs the package nutpie: pip install nutpie, or take sampler='pymc'.")
    return asked if asked != "auto" else ("nutpie" if there else "pymc")


def standard_stats(stats: xr.Dataset) -> dict[str, NDArray[Any]]:
    """Statistics of the draws under ArviZ's names, whichever sampler they are from."""
    found: dict[str, NDArray[Any]] = {}
    for theirs, ours in _NAMES.items():
        if theirs in stats and ours not in found:
            found[ours] = stats[theirs].transpose("chain", "draw", ...).to_numpy()
    return found


def counted(sampled: xr.DataTree) -> tuple[int, int]:
    """Evaluations of the gradient after and during warm-up."""
    groups = ("sample_stats", "warmup_sample_stats")
    after, before = (
        int(np.sum(sampled[name]["n_steps"].to_numpy())) if name in sampled.children else 0 for name in groups
    )
    return after, before
