"""What is being fitted, and how its numbers go back to the user's own names and units."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayes_sparse.design import FloatArray
from bayes_sparse.problem import Problem
from bayes_sparse.slot import Slot

__all__ = ["Subject"]


@dataclass(frozen=True, eq=False)
class Subject:
    """A problem with its names.

    Attributes
    ----------
    problem : Problem
        What a method sees.
    sparse, fixed : tuple of Slot
        The variables behind the columns, under the user's names.
    names : list of str
        One name a basis function.
    observed : str
        Name of the observed variable.
    obs_dim : str
        Name of the dimension of observations.
    obs : array (n,)
        Labels of the observations.
    unpack : callable
        ``unpack(theta)`` gives nuisance parameters by name on their own scale.
    settings : dict
        What prediction needs to know beside numbers: likelihood, basis, columns. Stored as JSON.
    shift, scale : array (M,), optional
        Standardisation to be undone: w is reported as ``w / scale``, the bias less ``shift @ (w / scale)``.
    constant_data : dict
        More arrays to be stored, as ``name: (dims, values)``.
    hyper_points : callable, optional
        Point values, as ``name: (dims, values)``, of variables that follow from the prior precisions of the M columns.
    interchangeable : bool
        The basis functions are kernels on the rows: neighbours say the same, and which of them is kept means little.
    """

    problem: Problem
    sparse: tuple[Slot, ...]
    fixed: tuple[Slot, ...]
    names: list[str]
    observed: str
    obs_dim: str
    obs: NDArray[Any]
    unpack: Callable[[FloatArray], dict[str, NDArray[Any]]]
    settings: dict[str, Any]
    shift: FloatArray | None = None
    scale: FloatArray | None = None
    constant_data: dict[str, tuple[tuple[str, ...], NDArray[Any]]] | None = None
    hyper_points: Callable[[FloatArray], dict[str, tuple[tuple[str, ...], FloatArray]]] | None = None
    interchangeable: bool = False

    @cached_property
    def prior_mean(self) -> FloatArray:
        """Prior mean of every column's weight; the problem's w is relative to it."""
        return np.concatenate([slot.mean.ravel() for slot in (*self.sparse, *self.fixed)])

    def in_users_units(self, w: FloatArray, index: NDArray[np.intp]) -> FloatArray:
        """Undo the standardisation on weights of the active columns ``index``, along the last axis."""
        if self.scale is None:
            return w
        out = w.copy()
        basis = index < self.problem.design.M
        out[..., basis] /= self.scale[index[basis]]
        if self.shift is not None:
            out[..., ~basis] -= (out[..., basis] @ self.shift[index[basis]])[..., None]
        return out
