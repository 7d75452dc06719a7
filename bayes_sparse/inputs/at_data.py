"""A likelihood of this package along the predictor, at the targets of a fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inputs.likelihoods import Likelihood, compiled
from bayes_sparse.problem.likelihood_check import LikelihoodCheck

__all__ = ["LikelihoodAtData", "LikelihoodOfRows"]


@dataclass(frozen=True, eq=False)
class LikelihoodAtData:
    """The likelihood along the predictor at the data; compiled when it is first called, which a normal one never is."""

    likelihood: Likelihood
    y: FloatArray

    def __call__(self, eta: FloatArray, theta: FloatArray) -> tuple[FloatArray, ...]:
        """Value and three derivatives at predictors and logs of the nuisance parameters."""
        return tuple(compiled(self.likelihood)(eta, self.y, *theta))

    @property
    def broadcasts(self) -> bool:
        """Whether it takes many predictors per observation at once: in closed form, where nothing is compiled."""
        return hasattr(self.likelihood, "terms")

    def many(self, eta: FloatArray, theta: FloatArray) -> FloatArray:
        """The value at many predictors per observation (S, n), and as many theta (S, k) or one (1, k)."""
        return self.likelihood.log_density(self.y, eta, theta)

    def unpack(self, theta: FloatArray) -> dict[str, NDArray[Any]]:
        """Nuisance parameters by name, on their own scale; of many draws too, (k, S)."""
        return dict(zip(self.likelihood.nuisance, np.exp(theta), strict=True))

    def check(self, eta: FloatArray, theta: FloatArray, used: float) -> LikelihoodCheck | None:
        """What the residuals of a fit say of the likelihood."""
        return self.likelihood.check(self.y, eta, used, *np.exp(theta))


@dataclass(frozen=True)
class LikelihoodOfRows:
    """The likelihood along the predictor of any rows; sent to workers, each of which compiles it once."""

    likelihood: Likelihood

    def __call__(self, y: FloatArray, eta: FloatArray, theta: FloatArray) -> tuple[FloatArray, ...]:
        """Value and three derivatives at predictors and logs of the nuisance parameters."""
        return tuple(compiled(self.likelihood)(eta, y, *theta))
