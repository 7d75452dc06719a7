"""A model with some of its variables held at values, because the coefficients of its predictors depend on them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pymc as pm
from numpy.typing import NDArray

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inputs.pm_model.variables import Nuisance, with_parents

__all__ = ["HeldModel", "MovingCoefficients", "held_at"]


class MovingCoefficients(ValueError):
    """A predictor that is linear in its weights once some variables are known.

    Parameters
    ----------
    sentence : str
        The refusal, for methods that cannot hold anything.
    names : tuple of str
        Those variables.
    """

    def __init__(self, sentence: str, names: tuple[str, ...]) -> None:
        super().__init__(sentence)
        self.names = names


def held_at(model: pm.Model, values: dict[str, Any]) -> pm.Model:
    """A model with variables at the values at which a fit held them; the model itself where it held none."""
    if not values:
        return model
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", message="Detected variables likely created by GP objects"
        )  # none is used again
        return pm.do(model, {name: np.asarray(value) for name, value in values.items()})


@dataclass(eq=False)
class HeldModel:
    """A copy of a model in which some variables are data.

    Attributes
    ----------
    model : pymc.Model
        The user's.
    names : tuple of str
        The variables; those that their priors depend on are held too.
    x : array, optional
        Where, on the unconstrained scale; None for where PyMC starts them.
    """

    model: pm.Model
    names: tuple[str, ...]
    x: FloatArray | None = None
    done: pm.Model = field(init=False)

    def __post_init__(self) -> None:
        rvs = with_parents(self.model, {self.model[name] for name in self.names})
        self._nuisance = Nuisance(self.model, rvs)
        self.names = tuple(str(rv.name) for rv in rvs)
        self.x = self._nuisance.start if self.x is None else self.x
        self.done = held_at(self.model, self.values())

    def values(self) -> dict[str, NDArray[Any]]:
        """Of each variable on its own scale."""
        assert self.x is not None
        return self.at(self.x)

    def at(self, x: FloatArray) -> dict[str, NDArray[Any]]:
        """The same at a point on the unconstrained scale."""
        return {name: np.asarray(value) for name, value in self._nuisance.unpack(x).items()}

    def move(self, x: FloatArray) -> None:
        """Hold them elsewhere."""
        self.x = np.asarray(x, dtype=float)
        with self.done:
            pm.set_data(self.values())

    @property
    def bounds(self) -> FloatArray:
        """How far each may go."""
        return self._nuisance.bounds

    def log_prior(self, x: FloatArray) -> float:
        """Their log-density on the unconstrained scale."""
        return self._nuisance.log_prior(x)
