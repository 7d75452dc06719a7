"""The data that the honesty study simulates: what the default model says of them, and what it does not.

Every data set has columns of unit variance, a few true weights and rows held out. In some the noise, its level or the
form of the mean is not what the likelihood fitted says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy import stats
from scipy.special import expit

from bayes_sparse.common.types import FloatArray, IntArray

__all__ = ["REGIMES", "Regime", "Sample", "sample"]

type Noise = Literal["normal", "t2", "uneven", "skewed", "bernoulli", "poisson", "overdispersed"]

NEW_ROWS = 500
_SHARE = 2.0  # shape of the Gamma factor, of mean 1, that the rates of overdispersed counts have


@dataclass(frozen=True)
class Regime:
    """How data are drawn.

    Attributes
    ----------
    rows, columns, true : int
        Size of a data set, and how many columns have a weight.
    size : float
        True weights have random signs and sizes uniform between half of this and one and a half times it.
    noise : str
        What is drawn around the predictor, see `sample`.
    correlation : float
        Of neighbouring columns, an AR(1) sequence.
    """

    rows: int
    columns: int
    true: int
    size: float
    noise: Noise = "normal"
    correlation: float = 0.0

    @property
    def likelihood(self) -> str:
        """The likelihood that is fitted."""
        return {"bernoulli": "bernoulli", "poisson": "poisson", "overdispersed": "poisson"}.get(self.noise, "normal")


# With normal noise a weight of middle size lies 7 standard errors from zero, "weak" ones 3 and the 40 fewer.
REGIMES = {
    "200 x 30": Regime(200, 30, 6, 0.5),
    "100 x 30, weak": Regime(100, 30, 6, 0.3),
    "100 x 500": Regime(100, 500, 6, 0.7),
    "100 x 300, 40 true": Regime(100, 300, 40, 0.5),
    "AR(1) 0.95": Regime(200, 30, 6, 2.2, correlation=0.95),
    "30 x 20": Regime(30, 20, 4, 1.3),
    "t2 noise": Regime(200, 30, 6, 0.8, "t2"),
    "uneven noise": Regime(200, 30, 6, 0.5, "uneven"),
    "skewed, not linear": Regime(200, 30, 6, 0.5, "skewed"),
    "bernoulli": Regime(200, 30, 6, 1.0, "bernoulli"),
    "bernoulli, AR(1) 0.95": Regime(500, 30, 6, 2.0, "bernoulli", correlation=0.95),
    "poisson": Regime(150, 30, 6, 0.3, "poisson"),
    "overdispersed poisson": Regime(150, 30, 6, 0.3, "overdispersed"),
}


@dataclass(frozen=True, eq=False)
class Sample:
    """A data set, rows held out, and the truth behind them.

    Attributes
    ----------
    X, y, new_X, new_y : arrays
        Rows to fit, rows held out.
    weights : array (columns,)
        True ones; where the mean is not linear, those of the best linear predictor.
    oracle : array
        True log density of each row held out.
    """

    X: FloatArray
    y: FloatArray | IntArray
    new_X: FloatArray
    new_y: FloatArray | IntArray
    weights: FloatArray
    oracle: FloatArray


def sample(regime: Regime, seed: list[int]) -> Sample:
    """Draw a data set.

    Around the predictor ``eta = X w``: ``"normal"`` noise of sd 1; ``"t2"``, Student's t with 2 degrees of freedom;
    ``"uneven"``, normal with sd exp(x/2), x the first column with a weight; ``"skewed"``, exponential less its mean,
    and ``(x^2 - 1)/2`` is added to the predictor; two classes; counts; counts whose rate is multiplied by a Gamma
    variable of mean 1 and variance 1/2.
    """
    rng = np.random.default_rng(seed)
    n = regime.rows
    X = rng.standard_normal((n + NEW_ROWS, regime.columns))
    rho = regime.correlation
    for j in range(1, regime.columns if rho else 0):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho**2) * X[:, j]
    true = np.sort(rng.choice(regime.columns, regime.true, replace=False))
    weights = np.zeros(regime.columns)
    weights[true] = regime.size * rng.uniform(0.5, 1.5, regime.true) * rng.choice([-1.0, 1.0], regime.true)
    y, density = _DRAWN[regime.noise](X @ weights, X[:, true[0]], rng)
    return Sample(X[:n], y[:n], X[n:], y[n:], weights, density[n:])


type Drawn = tuple[FloatArray | IntArray, FloatArray]


def _around(eta: FloatArray, noise: Any, rng: np.random.Generator) -> Drawn:
    y = eta + noise.rvs(len(eta), random_state=rng)
    return y, np.asarray(noise.logpdf(y - eta))


def _skewed(eta: FloatArray, x: FloatArray, rng: np.random.Generator) -> Drawn:
    return _around(eta + (x**2 - 1) / 2, stats.expon(-1.0), rng)


def _bernoulli(eta: FloatArray, rng: np.random.Generator) -> Drawn:
    y = (rng.random(len(eta)) < expit(eta)).astype(int)
    return y, np.asarray(stats.bernoulli.logpmf(y, expit(eta)))


def _poisson(eta: FloatArray, rng: np.random.Generator) -> Drawn:
    y = rng.poisson(np.exp(eta))
    return y, np.asarray(stats.poisson.logpmf(y, np.exp(eta)))


def _overdispersed(eta: FloatArray, rng: np.random.Generator) -> Drawn:
    rate = np.exp(eta)
    y = rng.poisson(rate * rng.gamma(_SHARE, 1 / _SHARE, len(eta)))
    return y, np.asarray(stats.nbinom.logpmf(y, _SHARE, _SHARE / (_SHARE + rate)))


_DRAWN: dict[Noise, Callable[[FloatArray, FloatArray, np.random.Generator], Drawn]] = {
    "normal": lambda eta, _, rng: _around(eta, stats.norm(), rng),
    "t2": lambda eta, _, rng: _around(eta, stats.t(2), rng),
    "uneven": lambda eta, x, rng: _around(eta, stats.norm(0.0, np.exp(x / 2)), rng),
    "skewed": _skewed,
    "bernoulli": lambda eta, _, rng: _bernoulli(eta, rng),
    "poisson": lambda eta, _, rng: _poisson(eta, rng),
    "overdispersed": lambda eta, _, rng: _overdispersed(eta, rng),
}
