"""What reading a model gives: the problem, and the way back to the user's own names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayes_sparse.inputs.pm_model.power_law import PowerLaw
from bayes_sparse.problem.design import FloatArray
from bayes_sparse.problem.problem import Problem
from bayes_sparse.problem.slot import Slot

__all__ = ["ReadModel"]


@dataclass(frozen=True)
class ReadModel:
    """A user's model, read.

    Attributes
    ----------
    problem : Problem
        What an evidence method needs.
    sparse, fixed : tuple of Slot
        The variables behind the columns whose precision is to be found, and behind all others.
    precision : dict
        For each sparse variable the names of the variables its prior sd depends on.
    observed : str
        Name of the observed variable.
    obs_dims : tuple of str, optional
        Its dims.
    obs_coords : dict
        Their coordinate values.
    describe : str
        The family of the likelihood: "normal", "bernoulli", "student_t" ..., "custom" for a user's own.
    nuisance : tuple of str
        Names of the variables behind theta, in order.
    unpack : callable
        ``unpack(theta)`` gives the nuisance variables on their own scale, by name.
    simulate : callable
        ``simulate(eta, theta, rng)`` draws one observation a row from the user's own distribution.
    mean : callable, optional
        ``mean(eta, theta)`` gives the expected observation; None where PyMC knows no formula.
    """

    problem: Problem
    sparse: tuple[Slot, ...]
    fixed: tuple[Slot, ...]
    precision: dict[str, tuple[str, ...]]
    observed: str
    obs_dims: tuple[str, ...] | None
    obs_coords: dict[str, NDArray[Any]]
    describe: str
    nuisance: tuple[str, ...]
    unpack: Callable[[FloatArray], dict[str, NDArray[Any]]]
    simulate: Callable[[FloatArray, FloatArray, np.random.Generator], NDArray[Any]]
    mean: Callable[[FloatArray, FloatArray], FloatArray] | None
    _laws: dict[str, Callable[[], PowerLaw | None]]

    def hyper(self, name: str, precision: FloatArray) -> dict[str, FloatArray] | None:
        """Values of the variable behind a sparse prior that give the named weights these precisions.

        Parameters
        ----------
        name : str
            A sparse variable.
        precision : array
            Prior precisions of its weights; infinite where a weight is pruned.

        Returns
        -------
        dict or None
            ``{"alpha": values}`` where the prior sd is a power law of a single variable, else None.
        """
        law = self._laws[name]()
        return None if law is None else {law.hyper: law.invert(np.asarray(precision, dtype=float))}
