"""Ordered levels, such as ratings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from scipy.special import expit, log_expit, logit

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inputs.likelihoods._likelihood import REACH, Targets
from bayes_sparse.problem.likelihood_check import LikelihoodCheck

__all__ = ["ordinal"]

_MOST = 1000  # levels, more of which are hardly what was meant
_NOWHERE = 1e9  # in the place of infinite cut points: a gradient multiplies them by zero


@dataclass(frozen=True)
class ordinal:
    """``P(y <= k) = sigmoid(cut_k - eta)``: ordered levels 0, 1 ..., the ordered logit.

    The first cut point is zero, since the bias moves all of them; the next ones follow at gaps that are found.

    Attributes
    ----------
    levels : int, optional
        How many levels there are, at least three; the targets are 0, 1 ... levels - 1. None for as many as the targets
        of a fit say.
    """

    levels: int | None = None
    name: ClassVar[str] = "ordinal"
    targets: ClassVar[Targets] = "counts"
    normal: ClassVar[bool] = False
    scale_free: ClassVar[bool] = True
    log_concave: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.levels is None:
            return
        if not isinstance(self.levels, int | np.integer) or self.levels < 3:
            raise ValueError(
                f"An ordinal likelihood has a whole number of levels, three or more, not {self.levels!r}; two levels "
                "are likelihood='bernoulli'."
            )
        object.__setattr__(self, "levels", int(self.levels))

    def counted(self, y: FloatArray) -> ordinal:
        """With as many levels as the targets say, where it was not told how many."""
        return replace(self, levels=int(y.max()) + 1) if self.levels is None else self

    @property
    def _levels(self) -> int:
        assert self.levels is not None
        return self.levels

    @property
    def nuisance(self) -> tuple[str, ...]:
        """Gaps between the cut points."""
        return tuple(f"gap_{k}" for k in range(1, self._levels - 1))

    def distribution(self, eta: Any, *gaps: Any) -> tuple[Any, dict[str, Any]]:
        """PyMC distribution and its arguments."""
        return _Ordered, {"eta": eta, "gaps": pt.stack(gaps)}

    def terms(self, eta: FloatArray, y: FloatArray, *logs: Any, derivatives: int = 3) -> list[FloatArray]:
        """Log-probability of each target and its first three derivatives along the predictor, or none of them."""
        low, high = self._ends(y, np.asarray(logs))
        value = _log_between(low - eta, high - eta)
        if not derivatives:
            return [value]
        below, above = expit(low - eta), expit(high - eta)
        bends = below * expit(eta - low), above * expit(eta - high)
        # The density of a logistic variable is F(1 - F), so that differences of densities divide out.
        return [
            value,
            below + above - 1,
            -bends[0] - bends[1],
            bends[0] * (1 - 2 * below) + bends[1] * (1 - 2 * above),
        ]

    def start(self, y: FloatArray, weights: FloatArray | None = None) -> FloatArray:
        """Gaps between the logits of how many are below."""
        counts = np.bincount(y.astype(int), weights, self._levels)
        if not counts.all():
            raise ValueError(
                f"No target is at level {int(np.argmin(counts))} of the {self._levels} levels of the ordinal "
                "likelihood: merge it with the next one, and number the levels anew."
            )
        return np.diff(logit(np.cumsum(counts)[:-1] / counts.sum()))

    def bounds(self, log_start: FloatArray) -> FloatArray:
        """Box of the logs of the gaps."""
        return np.stack([log_start - REACH, log_start + REACH], axis=1)

    def bias_sd(self, y: FloatArray, weights: FloatArray | None = None) -> float:
        """Sd of the wide prior on the bias, in logits."""
        return 10.0

    def pseudo_sd(self, y: FloatArray, weights: FloatArray | None = None) -> float:
        """Of a logit, from how often each level is seen: with many alike it goes to that of a logistic variable."""
        share = np.bincount(y.astype(int), weights, self._levels) / (len(y) if weights is None else weights.sum())
        return float(((1 - np.sum(share**3)) / 3) ** -0.5)

    def wrong(self, y: FloatArray) -> str | None:
        """What this likelihood cannot take, in words, or None."""
        most = _MOST if self.levels is None else self.levels
        whole = np.all((y >= 0) & (y < most) & (y == np.floor(y)))
        return None if whole else f"levels, whole numbers from 0 {'on' if most == _MOST else f'to {most - 1}'}"

    def check(self, y: FloatArray, eta: FloatArray, used: float, *nuisance: Any) -> LikelihoodCheck | None:
        """Rows of levels, each by itself, cannot contradict any probability."""
        return None

    def probabilities(self, eta: FloatArray, *gaps: Any) -> list[FloatArray]:
        """Probability of each level at a given predictor."""
        cuts = [0.0, *np.cumsum(np.broadcast_arrays(*gaps), axis=0)]
        up = [expit(cut - eta) for cut in cuts]
        down = expit(eta - cuts[-1])
        return [up[0], *(high - low for low, high in pairwise(up)), down]

    def moments(self, eta: FloatArray, *gaps: Any) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of an observation at a given predictor."""
        p = self.probabilities(eta, *gaps)
        mean = np.asarray(sum(k * own for k, own in enumerate(p)))
        return mean, np.asarray(sum((k - mean) ** 2 * own for k, own in enumerate(p)))

    def log_density(self, y: FloatArray, eta: FloatArray, logs: FloatArray) -> FloatArray:
        """Log-probability of each target (S, n) at predictors (S, n) and logs of the gaps (S, k)."""
        logs = np.broadcast_to(logs, (len(eta), logs.shape[1]))
        return np.stack([self.terms(one, y, *own, derivatives=0)[0] for one, own in zip(eta, logs, strict=True)])

    def draw(self, eta: FloatArray, rng: np.random.Generator, *gaps: FloatArray) -> FloatArray:
        """New observations at predictors (S, n) and gaps (S, 1)."""
        level = eta + rng.logistic(size=eta.shape)
        cuts = [0.0, *np.cumsum(gaps, axis=0)]
        return np.asarray(sum((level > cut).astype(float) for cut in cuts))

    def _ends(self, y: FloatArray, logs: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Cut points below and above each target."""
        cuts = np.concatenate([[-_NOWHERE, 0.0], np.cumsum(np.exp(logs)), [_NOWHERE]])
        level = y.astype(int)
        return cuts[level], cuts[level + 1]


def _log_between(low: FloatArray, high: FloatArray) -> FloatArray:
    """``log(sigmoid(high) - sigmoid(low))`` as ``sigmoid(high) sigmoid(-low) (1 - exp(low - high))``."""
    return np.asarray(log_expit(high) + log_expit(-low) + np.log(-np.expm1(low - high)))


class _Ordered:
    """PyMC's ordered logit is a difference of probabilities, which has no digits far out: the same by logarithms."""

    def __new__(cls, name: str, *, eta: Any, gaps: Any, **more: Any) -> Any:
        return pm.CustomDist(name, eta, gaps, logp=_log_probability, signature="(),(k)->()", dtype="int64", **more)

    @classmethod
    def dist(cls, *, eta: Any, gaps: Any) -> Any:
        return pm.CustomDist.dist(eta, gaps, logp=_log_probability, signature="(),(k)->()", dtype="int64")


def _log_probability(value: Any, eta: Any, gaps: Any) -> Any:
    ops: Any = pt  # whose annotations lack these
    cuts = ops.concatenate([[-_NOWHERE, 0.0], ops.cumsum(gaps), [_NOWHERE]])
    level = pt.cast(value, "int64")
    low, high = cuts[level], cuts[level + 1]
    return -pt.softplus(eta - high) - pt.softplus(low - eta) + pt.log(-pt.expm1(low - high))
