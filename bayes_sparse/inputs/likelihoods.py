"""The likelihoods that have a name. Any other one is a `pm.Model` of your own.

Each says which PyMC distribution it is, how the linear predictor enters it, and its mean and variance. A nuisance
parameter is positive and lives on the log scale: flat there for the evidence methods, a wide log-normal for NUTS.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, ClassVar

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from scipy.special import expit

from bayes_sparse.inputs.compiled import Compiled, compile_pointwise
from bayes_sparse.problem.classes import Link, log_probability
from bayes_sparse.problem.design import FloatArray

__all__ = [
    "Likelihood",
    "bernoulli",
    "categorical",
    "compiled",
    "from_settings",
    "negative_binomial",
    "normal",
    "poisson",
    "resolve",
    "student_t",
]


@dataclass(frozen=True)
class normal:
    """``y ~ Normal(eta, sigma)``."""

    name: ClassVar[str] = "normal"
    nuisance: ClassVar[tuple[str, ...]] = ("sigma",)
    scale_free: ClassVar[bool] = False
    log_concave: ClassVar[bool] = True

    def distribution(self, eta: Any, sigma: Any) -> tuple[Any, dict[str, Any]]:
        """PyMC distribution and its arguments."""
        return pm.Normal, {"mu": eta, "sigma": sigma}

    def start(self, y: FloatArray) -> FloatArray:
        """Where the search over nuisance parameters starts."""
        return np.array([np.std(y)])

    def bias_sd(self, y: FloatArray) -> float:
        """Sd of the wide prior on the bias: ten times the size of the targets."""
        return 10.0 * float(np.sqrt(np.mean(y**2)))

    def wrong(self, y: FloatArray) -> str | None:
        """What this likelihood cannot take, in words, or None."""
        return None

    def moments(self, eta: FloatArray, sigma: float | FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of an observation at a given predictor."""
        return eta, np.broadcast_to(np.asarray(sigma) ** 2, eta.shape)


@dataclass(frozen=True)
class student_t:
    """``y ~ StudentT(nu, eta, sigma)``: regression that does not follow outliers.

    Attributes
    ----------
    nu : float
        Degrees of freedom, kept as given.
    """

    nu: float = 4.0
    name: ClassVar[str] = "student_t"
    nuisance: ClassVar[tuple[str, ...]] = ("sigma",)
    scale_free: ClassVar[bool] = False
    log_concave: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not self.nu > 0:
            raise ValueError(f"student_t needs nu > 0, got {self.nu}.")

    def distribution(self, eta: Any, sigma: Any) -> tuple[Any, dict[str, Any]]:
        """PyMC distribution and its arguments."""
        return pm.StudentT, {"nu": np.float64(self.nu), "mu": eta, "sigma": sigma}  # PyTensor rounds a plain float

    def start(self, y: FloatArray) -> FloatArray:
        """Spread of the targets by their quartiles, which outliers do not move."""
        low, high = np.percentile(y, [25, 75])
        return np.array([(high - low) / 1.349 or np.std(y)])

    def bias_sd(self, y: FloatArray) -> float:
        """Sd of the wide prior on the bias."""
        return 10.0 * float(np.sqrt(np.median(y**2)) or np.sqrt(np.mean(y**2)))

    def wrong(self, y: FloatArray) -> str | None:
        """What this likelihood cannot take, in words, or None."""
        return None

    def moments(self, eta: FloatArray, sigma: float | FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of an observation; the variance is infinite for nu <= 2."""
        scale = self.nu / (self.nu - 2) if self.nu > 2 else np.inf
        return eta, np.broadcast_to(np.asarray(sigma) ** 2 * scale, eta.shape)


@dataclass(frozen=True)
class bernoulli:
    """``y ~ Bernoulli(sigmoid(eta))``: two classes."""

    name: ClassVar[str] = "bernoulli"
    nuisance: ClassVar[tuple[str, ...]] = ()
    scale_free: ClassVar[bool] = True
    log_concave: ClassVar[bool] = True

    def distribution(self, eta: Any) -> tuple[Any, dict[str, Any]]:
        """PyMC distribution and its arguments."""
        return pm.Bernoulli, {"logit_p": eta}

    def start(self, y: FloatArray) -> FloatArray:
        """No nuisance parameters."""
        return np.empty(0)

    def bias_sd(self, y: FloatArray) -> float:
        """Sd of the wide prior on the bias, in logits."""
        return 10.0

    def wrong(self, y: FloatArray) -> str | None:
        """What this likelihood cannot take, in words, or None."""
        return None if np.isin(y, (0.0, 1.0)).all() else "two classes"

    def moments(self, eta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of an observation at a given predictor."""
        p = expit(eta)
        return p, p * (1 - p)


@dataclass(frozen=True)
class categorical:
    """``y ~ Categorical(softmax(eta))``: any number of classes, a predictor each.

    Attributes
    ----------
    link : "softmax" or "one_vs_rest"
        How predictors become probabilities: by softmax, or, for ``method="one_vs_rest"``, as those of one logistic
        regression a class, divided by their sum.
    """

    link: Link = "softmax"
    name: ClassVar[str] = "categorical"
    nuisance: ClassVar[tuple[str, ...]] = ()
    scale_free: ClassVar[bool] = True
    log_concave: ClassVar[bool] = False  # not along one predictor

    def distribution(self, eta: Any) -> tuple[Any, dict[str, Any]]:
        """PyMC distribution and its arguments."""
        return pm.Categorical, {"logit_p": eta}

    def start(self, y: FloatArray) -> FloatArray:
        """No nuisance parameters."""
        return np.empty(0)

    def bias_sd(self, y: FloatArray) -> float:
        """Sd of the wide prior on each class's bias, in logits."""
        return 10.0

    def log_probability(self, eta: FloatArray) -> FloatArray:
        """Log-probability of each class, along the last axis."""
        return log_probability(eta, self.link)

    def wrong(self, y: FloatArray) -> str | None:
        """What this likelihood cannot take, in words, or None."""
        return None

    def moments(self, eta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Probabilities along the last axis of the predictors, and their variance as indicators."""
        p = np.exp(self.log_probability(eta))
        return p, p * (1 - p)


@dataclass(frozen=True)
class poisson:
    """``y ~ Poisson(exp(eta))``: counts; an exposure enters as ``offset=log(exposure)``."""

    name: ClassVar[str] = "poisson"
    nuisance: ClassVar[tuple[str, ...]] = ()
    scale_free: ClassVar[bool] = True
    log_concave: ClassVar[bool] = True

    def distribution(self, eta: Any) -> tuple[Any, dict[str, Any]]:
        """PyMC distribution and its arguments."""
        return pm.Poisson, {"mu": pt.exp(eta)}

    def start(self, y: FloatArray) -> FloatArray:
        """No nuisance parameters."""
        return np.empty(0)

    def bias_sd(self, y: FloatArray) -> float:
        """Sd of the wide prior on the bias, in logs."""
        return 10.0

    def wrong(self, y: FloatArray) -> str | None:
        """What this likelihood cannot take, in words, or None."""
        return None if np.all((y >= 0) & (y == np.floor(y))) else "counts (0, 1, 2 ...)"

    def moments(self, eta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of an observation at a given predictor."""
        mean = np.exp(eta)
        return mean, mean


@dataclass(frozen=True)
class negative_binomial:
    """``y ~ NegativeBinomial(mu=exp(eta), alpha=dispersion)``: counts more spread out than a Poisson's."""

    name: ClassVar[str] = "negative_binomial"
    nuisance: ClassVar[tuple[str, ...]] = ("dispersion",)
    scale_free: ClassVar[bool] = True
    log_concave: ClassVar[bool] = True

    def distribution(self, eta: Any, dispersion: Any) -> tuple[Any, dict[str, Any]]:
        """PyMC distribution and its arguments."""
        return pm.NegativeBinomial, {"mu": pt.exp(eta), "alpha": dispersion}

    def start(self, y: FloatArray) -> FloatArray:
        """Dispersion by the method of moments, within reason."""
        mean, variance = float(np.mean(y)), float(np.var(y))
        return np.array([np.clip(mean**2 / max(variance - mean, 1e-12), 0.1, 100.0)])

    def bias_sd(self, y: FloatArray) -> float:
        """Sd of the wide prior on the bias, in logs."""
        return 10.0

    def wrong(self, y: FloatArray) -> str | None:
        """What this likelihood cannot take, in words, or None."""
        return poisson().wrong(y)

    def moments(self, eta: FloatArray, dispersion: float | FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of an observation at a given predictor."""
        mean = np.exp(eta)
        return mean, mean + mean**2 / dispersion


type Likelihood = normal | student_t | bernoulli | categorical | poisson | negative_binomial

_ALL = (normal, student_t, bernoulli, categorical, poisson, negative_binomial)
_NAMED: dict[str, type[Any]] = {c.name: c for c in _ALL}


def resolve(likelihood: str | Likelihood) -> Likelihood:
    """Turn a name into the likelihood it stands for; a likelihood stays as it is."""
    if isinstance(likelihood, _ALL):
        return likelihood
    if not isinstance(likelihood, str):
        raise TypeError(
            f"The likelihood must be a name ({', '.join(sorted(_NAMED))}) or an object such as "
            f"bs.likelihoods.normal(), not {likelihood!r}."
        )
    if likelihood not in _NAMED:
        close = get_close_matches(likelihood, _NAMED, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"There is no likelihood {likelihood!r}; there are {', '.join(sorted(_NAMED))}.{hint}")
    named: Likelihood = _NAMED[likelihood]()
    return named


def from_settings(stored: dict[str, Any]) -> Likelihood:
    """A likelihood from its stored name and fields."""
    fields = dict(stored)
    made: Likelihood = _NAMED[fields.pop("name")](**fields)
    return made


def compiled(likelihood: Likelihood, derivatives: int = 3) -> Compiled:
    """``f(eta, y, *log_nuisance) -> [l, l', l'', l''']``, compiled once a process and likelihood."""

    def build() -> tuple[Any, Any, list[Any]]:
        eta, y = pt.dvector("eta"), pt.dvector("y")
        logs = [pt.dscalar(f"log_{name}") for name in likelihood.nuisance]
        distribution, arguments = likelihood.distribution(eta, *(pt.exp(log) for log in logs))
        return pm.logp(distribution.dist(**arguments), y), eta, [y, *logs]

    return compile_pointwise(("named", likelihood), build, derivatives)
