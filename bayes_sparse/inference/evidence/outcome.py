"""What a method hands back, whatever the method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from bayes_sparse.inference.approximations import State

__all__ = ["Outcome", "Report", "Status"]

type Report = Callable[[int, float, int], None]
type Status = Literal["converged", "max_iterations", "separable", "noise_collapsed", "null", "fixed-point", "jump"]


@dataclass(frozen=True, eq=False)
class Outcome:
    """The end of a search over hyper-parameters.

    Attributes
    ----------
    state : State
        Posterior at the hyper-parameters found; columns that are not in it were pruned.
    history : list of float
        Objective by iteration, from the start of the search.
    converged : bool
        False when the iteration limit stopped it.
    iterations : int
        How many there were, including those of a preliminary search that the history leaves out.
    """

    state: State
    history: list[float]
    converged: bool
    iterations: int
