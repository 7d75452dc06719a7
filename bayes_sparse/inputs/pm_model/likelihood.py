"""The log-density of the observations along the predictor, and its first three derivatives.

A normal density is written down here; every other is compiled, on its first use, once for every structure.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.custom import CustomDistRV
from pymc.logprob.transforms import LogTransform
from pytensor.compile.ops import ViewOp
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.random.basic import NormalRV
from pytensor.tensor.random.op import RandomVariable

from bayes_sparse.inputs.compiled import Compiled, compile_pointwise
from bayes_sparse.inputs.pm_model.distribution import Distribution
from bayes_sparse.inputs.pm_model.evaluate import number_of
from bayes_sparse.inputs.pm_model.nodes import Var, reached
from bayes_sparse.inputs.pm_model.nuisance import Values
from bayes_sparse.inputs.pm_model.own_density import own_density
from bayes_sparse.inputs.pm_model.probit import probit_density
from bayes_sparse.inputs.pm_model.rows import by_row, not_by_row
from bayes_sparse.problem.design import FloatArray

__all__ = ["Likelihood"]


class Likelihood:
    """Log-density of the observations as a function of the predictor and theta.

    Parameters
    ----------
    distribution : Distribution
        The observed variable, cut at the predictor.
    rvs : set of Var
        The free variables of the model.
    y : array (n,)
        The observations.

    Attributes
    ----------
    sigma : float, array or None
        Known noise of a normal likelihood, 1 if theta is its logarithm, None if it is neither.
    """

    def __init__(self, distribution: Distribution, rvs: set[Var], y: FloatArray) -> None:
        self._distribution, self._y = distribution, y
        observed, eta = distribution.observed, distribution.eta
        self._normal = _is_normal(distribution)
        self.sigma = self._known_sigma() if self._normal else None
        self._own: Compiled | None = None
        if isinstance(observed.owner.op, RandomVariable) and not isinstance(observed.owner.op, CustomDistRV):
            if not by_row(distribution.params, {eta: 0}):
                raise ValueError(not_by_row(observed.name))
        else:
            self._own = own_density(observed.name, *self._build(), rvs)

    def pointwise(self, eta: FloatArray, theta: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Log-density and its first three derivatives along eta, observation by observation."""
        if self._normal:
            return self._normal_pointwise(eta, theta)
        density, first, second, third = self._compiled(eta, self._y, *self._distribution.values(theta))
        return density, first, second, third

    def _known_sigma(self) -> float | FloatArray | None:
        sigma, nuisance = self._distribution.params[1], self._distribution.nuisance
        if not nuisance.rvs:
            value = number_of(sigma)
            return float(value.item()) if value.size == 1 else np.broadcast_to(value, self._y.shape)
        while sigma.owner is not None and isinstance(sigma.owner.op, DimShuffle | ViewOp):
            sigma = sigma.owner.inputs[0]
        direct = len(nuisance.rvs) == 1 and sigma is nuisance.rvs[0] and sigma.ndim == 0
        return 1.0 if direct and isinstance(nuisance.transforms[0], LogTransform) else None

    def _normal_pointwise(
        self, eta: FloatArray, theta: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        [sigma] = self._noise(theta)
        residual = (self._y - eta) / sigma
        flat = np.zeros(len(eta))
        density = -0.5 * residual**2 - np.log(sigma) - 0.5 * np.log(2 * np.pi)
        return density, residual / sigma, flat - 1 / np.square(sigma), flat

    @cached_property
    def _noise(self) -> Values:
        return self._distribution.nuisance.function([pt.cast(self._distribution.params[1], "float64")])

    @cached_property
    def _compiled(self) -> Compiled:
        """The compiled density, made on first use: reading a model must not wait for a compiler."""
        if self._own is not None:
            return self._own
        observed = self._distribution.observed
        patterns = tuple(v.type.broadcastable for v in self._distribution.inputs)
        key = (observed.owner.op, observed.dtype, self._distribution.structure, patterns)
        return compile_pointwise(key, self._build)

    def _build(self) -> tuple[Var, Var, list[Var]]:
        """Log-density, the eta it depends on, and its other inputs: y first, then the distribution's."""
        eta, *rest = self._distribution.inputs
        variable = self._distribution.variable
        y = pt.vector("y", dtype="float64")
        value = pt.cast(y, self._distribution.observed.dtype)
        density = probit_density(variable, value)
        if density is None:
            density = pm.logp(variable, value, warn_rvs=False)
        return density, eta, [y, *rest]


def _is_normal(distribution: Distribution) -> bool:
    """Whether the observations are normal around eta itself with a noise that does not depend on it."""
    mu, *noise = distribution.params
    normal = isinstance(distribution.observed.owner.op, NormalRV)
    return normal and mu is distribution.eta and not reached(noise, {distribution.eta})
