"""Laplace priors of one common scale, and the scale integrated out: sparse regression without a knob.

The declaration, for features Phi and a likelihood that is log-concave along the predictor::

    log lambda ~ Uniform(log lo, log hi)
    w          ~ Laplace(0, 1 / lambda)        p(w) = lambda/2 exp(-lambda |w|), one a column
    bias       ~ Normal(0, s0)                 wide, never pruned
    eta        = offset + bias + Phi w
    y          ~ likelihood(eta, nuisance)

As lo goes to zero and hi to infinity this becomes the Jeffreys prior 1/lambda, and lambda can be integrated out:
p(w) = Gamma(N) / (2R)^N, with R the sum of the |w|. The methods on the path minimise ``Q = -L + N log R`` with N the
number of weights that are *not zero*; NUTS never lands on zero, so for it N is the number of columns, and integrated
over all lambda its posterior would be improper at w = 0. That is why lambda is declared, and between bounds.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayes_sparse.common.types import Hyper
from bayes_sparse.inputs.declaration import observe, standardised
from bayes_sparse.inputs.model import Centred
from bayes_sparse.inputs.named_model import bias_sd, kept_precision, named_problem
from bayes_sparse.inputs.prepare import Prepared
from bayes_sparse.problem.design import weighted_sd
from bayes_sparse.problem.labelled import LabelledProblem

__all__ = ["JeffreysLaplace"]

_LOW, _HIGH = 1e-2, 1e2  # default bounds of lambda; the upper one times the number of columns
_log = logging.getLogger("bayes_sparse")


@dataclass(frozen=True)
class JeffreysLaplace:
    """The Laplace model with a scale-free prior on its scale.

    Attributes
    ----------
    bias_sd : float, optional
        Sd of the bias's normal prior; None leaves the bias free (for NUTS: as wide as the other models').
    bounds : (float, float), optional
        Of lambda in the declaration that NUTS samples, in units of standardised columns; None for 0.01 and 100 times
        the number of columns, divided by the spread of the targets of a regression.
    """

    bias_sd: float | None = None
    bounds: tuple[float, float] | None = None

    default_method: ClassVar[str] = "reweighted"
    prior: ClassVar[str] = "jeffreys"
    coordinates: ClassVar[str] = "weights"
    expansion: ClassVar[None] = None
    likelihood: ClassVar[str | None] = None
    hyper: ClassVar[Hyper | None] = None
    default_hyper: ClassVar[Hyper | None] = None
    proper_hyper: ClassVar[Hyper | None] = None
    slab: ClassVar[None] = None
    default_slab: ClassVar[float | None] = None
    kernel_slab: ClassVar[float | None] = None
    proper_slab: ClassVar[float | None] = None

    def __post_init__(self) -> None:
        if self.bounds is None:
            return
        try:
            low, high = (float(value) for value in self.bounds)
        except (TypeError, ValueError):
            low = high = np.nan
        if not 0 < low < high < np.inf:
            raise ValueError(f"`bounds` of lambda are two numbers 0 < lo < hi, got {self.bounds!r}.")

    def problem(self, data: Prepared) -> LabelledProblem:
        """What the methods on the path fit."""
        if not data.likelihood.log_concave:
            able = "'student_multinomial'" if data.several else "'ard_gaussian'"
            raise ValueError(
                f"jeffreys_laplace needs a likelihood that is log-concave along one predictor, which "
                f"{data.likelihood.name!r} is not; {able} and 'laplace_eigen' take it."
            )
        return named_problem(data, "jeffreys_laplace", np.inf if self.bias_sd is None else self.bias_sd)

    def declare(self, data: Prepared, hyper: Hyper | None = None, *, centred: Centred = True) -> pm.Model:
        """The proper neighbour as PyMC sees it.

        Parameters
        ----------
        data : Prepared
            Data and basis.
        hyper : None
            This model has no Gamma prior; see `bounds`.
        centred : bool
            ``w ~ Laplace(0, 1 / lambda)`` directly, which NUTS explores better: with one scale for all weights the data
            say enough about most of them (five times the effective draws of lambda on heart disease). Else
            ``w = z / lambda`` with z of scale 1, for few observations and many columns.
        """
        sd = bias_sd(data, self.bias_sd)
        low, high = self._bounds(data)
        coords = {data.table.obs_dim: data.table.rows, "basis": data.names}
        with pm.Model(coords=coords) as model:
            lam = pm.Deterministic("lambda", pt.exp(pm.Uniform("log_lambda", np.log(low), np.log(high))))
            if centred and not data.kept.any():
                w = pm.Laplace("w", 0.0, 1.0 / lam, dims="basis")
            else:
                free = len(data.names) - int(data.kept.sum())
                priced = pm.Laplace("z", 0.0, 1.0 / lam if centred else 1.0, shape=free)
                whole = pt.zeros(len(data.names))[~data.kept].set(priced if centred else priced / lam)
                if data.kept.any():
                    wide = pm.Normal("w_kept", 0.0, tau=kept_precision(data, sd), shape=len(data.names) - free)
                    whole = whole[data.kept].set(wide)
                w = pm.Deterministic("w", whole, dims="basis")
            eta = data.offset + pm.math.dot(standardised(data), w)
            if data.basis.bias:
                eta = eta + pm.Normal("bias", 0.0, sd)
            observe(data, eta)
        return model

    def _bounds(self, data: Prepared) -> tuple[float, float]:
        if self.bounds is not None:
            return self.bounds
        unit = 1.0 if data.likelihood.scale_free else weighted_sd(data.y - data.offset, data.weights)
        low, high = _LOW / unit, _HIGH * len(data.names) / unit
        _log.info(
            "NUTS needs a proper prior: lambda is log-uniform between %.3g and %.3g; bounds=(lo, hi) chooses others.",
            low,
            high,
        )
        return low, high
