"""Priors made of independent Normals: what is behind a variable, and the way back to it.

A random prior mean is added to values of mean zero; effects that sum to zero, random walks and correlated Normals are
linear maps of such values. Laplace, Student-t and Cauchy variables are Normals with a random scale each.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.continuous import FlatRV
from pymc.distributions.multivariate import ZeroSumNormalRV
from pymc.distributions.timeseries import RandomWalkRV
from pytensor.tensor.random.basic import CauchyRV, LaplaceRV, MvNormalRV, NormalRV, StudentTRV
from scipy.linalg import helmert

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inputs.pm_model.graph import Var, number_of, reached
from bayes_sparse.inputs.pm_model.variables import free_variables, parameters, shape_of

__all__ = ["NormalPrior", "normal_prior"]


@dataclass(frozen=True, eq=False)
class NormalPrior:
    """A variable as a function of independent Normal values.

    Attributes
    ----------
    shape : tuple of int
        Of the values.
    sd : Var
        Their prior sd; of a heavy-tailed variable its scale.
    mean : array
        Their known prior mean.
    make : callable, optional
        The variable as an expression of the values; None where it is the values.
    heavy : bool
        Whether each value has a random scale of its own beside the sd.
    """

    shape: tuple[int, ...]
    sd: Var
    mean: FloatArray
    make: Callable[[Var], Var] | None = None
    heavy: bool = False

    def without_mean(self) -> NormalPrior:
        """The same with a known mean written out."""
        if self.make is not None or not self.mean.any():
            return self
        return replace(self, mean=np.zeros(()), make=lambda values: pt.constant(self.mean) + values)


def normal_prior(model: pm.Model, rv: Var, named: Collection[str] = ()) -> NormalPrior | None:
    """What is behind a free variable; None where that is not Normal.

    Single numbers with heavy tails are None unless they are named: most are intercepts.
    """
    op, shape = rv.owner.op, shape_of(model, rv)
    if isinstance(op, ZeroSumNormalRV):
        return _zero_sum(rv, shape)
    if model.rvs_to_transforms[rv] is not None:  # cutpoints, which are ordered
        return None
    match op:
        case FlatRV():
            return NormalPrior(shape, pt.constant(np.inf), np.zeros(()))
        case NormalRV():
            return _around(model, shape, *parameters(rv), heavy=False)
        case LaplaceRV() | CauchyRV() | StudentTRV() if rv.ndim or rv.name in named:
            return _around(model, shape, *parameters(rv)[-2:], heavy=True)
        case RandomWalkRV():
            return _random_walk(rv, shape)
        case MvNormalRV():
            return _correlated(model, rv, shape)
    return None


def _around(model: pm.Model, shape: tuple[int, ...], mean: Var, sd: Var, *, heavy: bool) -> NormalPrior:
    if reached([mean], set(free_variables(model))):
        return NormalPrior(shape, sd, np.zeros(()), lambda values: mean + values, heavy)
    return NormalPrior(shape, sd, number_of(mean), heavy=heavy)


def _zero_sum(rv: Var, shape: tuple[int, ...]) -> NormalPrior | None:
    """One value less than there are effects, along directions at right angles to their sum."""
    if rv.owner.op.ndim_supp != 1 or shape[-1] < 2:
        return None
    directions = helmert(shape[-1])
    sd = parameters(rv)[0]
    return NormalPrior((*shape[:-1], shape[-1] - 1), sd, np.zeros(()), lambda values: values @ directions)


def _random_walk(rv: Var, shape: tuple[int, ...]) -> NormalPrior | None:
    """The first value and the steps, time first."""
    first, steps, _ = parameters(rv)
    if not all(isinstance(part.owner.op, NormalRV) for part in (first, steps)):
        return None
    series, length = shape[:-1], shape[-1]
    sizes = ((1, *series), (length - 1, *series))
    join: Any = pt.concatenate
    mean, sd = (
        join([pt.broadcast_to(own, size) for own, size in zip(both, sizes, strict=True)])
        for both in zip(parameters(first), parameters(steps), strict=True)
    )
    return NormalPrior(
        (length, *series), sd, np.zeros(()), lambda values: pt.moveaxis((mean + values).cumsum(axis=0), 0, -1)
    )


def _correlated(model: pm.Model, rv: Var, shape: tuple[int, ...]) -> NormalPrior | None:
    """Values of sd one through the Cholesky factor of a known covariance."""
    mean, covariance = parameters(rv)
    if reached([covariance], set(free_variables(model))):
        return None
    known = number_of(covariance)
    if known.size != shape[-1] ** 2:  # one for each of several vectors
        return None
    factor = np.linalg.cholesky(known.reshape(shape[-1], shape[-1]))
    return NormalPrior(shape, pt.constant(1.0), np.zeros(()), lambda values: mean + values @ factor.T)
