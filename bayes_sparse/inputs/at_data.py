"""A likelihood of this package along the predictor, at the targets of a fit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayes_sparse.common.types import FloatArray, IntArray
from bayes_sparse.inputs.compiled import Compiled
from bayes_sparse.inputs.likelihoods import Likelihood, compiled
from bayes_sparse.problem.likelihood_check import LikelihoodCheck

__all__ = ["LikelihoodAtData", "LikelihoodOfRows"]


_ROWS = 2**14  # of a block of rows: what is computed on the way stays in the cache


@dataclass(frozen=True, eq=False)
class LikelihoodAtData:
    """The likelihood along the predictor at the data; one without a closed form is compiled when first called."""

    likelihood: Likelihood
    y: FloatArray

    def __call__(self, eta: FloatArray, theta: FloatArray) -> tuple[FloatArray, ...]:
        """Value and three derivatives at predictors and logs of the nuisance parameters."""
        if eta.ndim == 1 and len(eta) >= 2 * _ROWS:
            return _in_blocks(self._terms, eta, self.y, theta)
        return tuple(self._terms(eta, self.y, *theta))

    @cached_property
    def _terms(self) -> Compiled:
        return compiled(self.likelihood)

    def __reduce__(self) -> Any:
        """Without what is compiled."""
        return LikelihoodAtData, (self.likelihood, self.y)

    def at(self, rows: IntArray) -> LikelihoodAtData:
        """The same of some rows."""
        return LikelihoodAtData(self.likelihood, self.y[rows])

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


def _in_blocks(terms: Compiled, eta: FloatArray, y: FloatArray, theta: FloatArray) -> tuple[FloatArray, ...]:
    """The terms of very many rows, block by block; derivatives that are one array stay one."""
    out: list[FloatArray] = []
    for start in range(0, len(eta), _ROWS):
        rows = slice(start, start + _ROWS)
        found = terms(eta[rows], y[rows], *theta)
        first = [next(at for at, other in enumerate(found) if other is term) for term in found]
        if not out:
            shared = first
            own = {at: np.empty(len(eta)) for at in first}
            out = [own[at] for at in first]
        if first != shared:
            return tuple(terms(eta, y, *theta))
        for whole, term in zip(out, found, strict=True):
            whole[rows] = term
    return tuple(out)
