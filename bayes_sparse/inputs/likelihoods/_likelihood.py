"""What the likelihoods share: the face each has, and their log density along the predictor, compiled."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inputs.compiled import Compiled, compile_pointwise
from bayes_sparse.problem.likelihood_check import LikelihoodCheck

__all__ = ["REACH", "Likelihood", "OnPredictor", "Targets", "compiled", "level", "rate"]

type Targets = Literal["numbers", "counts", "two classes", "classes"]

REACH = 20.0  # how far a nuisance parameter may move from its start, in logs


@runtime_checkable
class Likelihood(Protocol):
    """How observations depend on a linear predictor, or on one per class.

    Attributes
    ----------
    name : str
        Its option's name.
    targets : "numbers", "counts", "two classes" or "classes"
        What it takes; with "classes" there is one predictor per class.
    normal : bool
        Normal around the predictor, with the noise as its only nuisance parameter: then nothing need be approximated.
    scale_free : bool
        The predictor has no units of its own, as opposed to those of the targets.
    log_concave : bool
        Along one predictor.
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]
    name: ClassVar[str]
    targets: ClassVar[Targets]
    normal: ClassVar[bool]
    scale_free: ClassVar[bool]
    log_concave: ClassVar[bool]

    @property
    def nuisance(self) -> tuple[str, ...]:
        """Names of its nuisance parameters, all positive."""

    @property
    def distribution(self) -> Any:
        """``distribution(eta, *nuisance)`` gives the PyMC distribution and its arguments."""

    @property
    def moments(self) -> Any:
        """``moments(eta, *nuisance)`` gives mean and variance of an observation at a given predictor."""

    @property
    def draw(self) -> Any:
        """``draw(eta, rng, *nuisance)`` gives new observations."""

    def start(self, y: FloatArray, weights: FloatArray | None = None) -> FloatArray:
        """Where the search over nuisance parameters starts; each target counts as often as its weight says."""

    def bounds(self, log_start: FloatArray) -> FloatArray:
        """Box (k, 2) that the logs of the nuisance parameters stay in."""

    def bias_sd(self, y: FloatArray, weights: FloatArray | None = None) -> float:
        """Sd of the wide prior on the bias; each target counts as often as its weight says."""

    def pseudo_sd(self, y: FloatArray, weights: FloatArray | None = None) -> float:
        """What one observation leaves unknown of its predictor, as an sd: the horseshoe's scale is in units of it."""

    def wrong(self, y: FloatArray) -> str | None:
        """What this likelihood cannot take, in words, or None."""

    def check(self, y: FloatArray, eta: FloatArray, used: float, *nuisance: Any) -> LikelihoodCheck | None:
        """What residuals at the predictors of a fit with so many degrees of freedom say of it; None for nothing."""

    def log_density(self, y: FloatArray, eta: FloatArray, logs: FloatArray) -> FloatArray:
        """Log density of each target at many draws of predictors and of the logs of nuisance parameters."""


class OnPredictor:
    """What likelihoods share that depend on a predictor without units and on nothing else."""

    normal: ClassVar[bool] = False
    nuisance: ClassVar[tuple[str, ...]] = ()
    scale_free: ClassVar[bool] = True

    def start(self, y: FloatArray, weights: FloatArray | None = None) -> FloatArray:
        """No nuisance parameters."""
        return np.empty(0)

    def bounds(self, log_start: FloatArray) -> FloatArray:
        """No nuisance parameters."""
        return np.empty((0, 2))

    def bias_sd(self, y: FloatArray, weights: FloatArray | None = None) -> float:
        """Sd of the wide prior on the bias, in units of the predictor."""
        return 10.0


def compiled(likelihood: Likelihood, derivatives: int = 3) -> Compiled:
    """``f(eta, y, *log_nuisance) -> [l, l', l'', l''']``, compiled once a process and likelihood.

    A likelihood that has them in closed form, as ``terms``, is not compiled.
    """
    if hasattr(likelihood, "terms"):
        return partial(likelihood.terms, derivatives=derivatives)

    def build() -> tuple[Any, Any, list[Any]]:
        eta, y = pt.dvector("eta"), pt.dvector("y")
        logs = [pt.dscalar(f"log_{name}") for name in likelihood.nuisance]
        distribution, arguments = likelihood.distribution(eta, *(pt.exp(log) for log in logs))
        return pm.logp(distribution.dist(**arguments), y), eta, [y, *logs]

    return compile_pointwise(("named", likelihood), build, derivatives)


def level(eta: FloatArray) -> FloatArray:
    """The mean behind a logarithm; no larger than what can be squared, for a fit may know nothing of a new row."""
    return np.asarray(np.exp(np.minimum(eta, 300.0)))


def rate(eta: FloatArray) -> FloatArray:
    """The rate of counts; numpy draws none larger."""
    return np.asarray(np.exp(np.minimum(eta, 40.0)))
