"""Toy problems whose truth is known, so that an answer can be judged and not only admired."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

__all__ = ["Generated", "friedman", "sinc", "sparse_linear", "sparse_logistic", "two_gaussians"]

type FloatArray = NDArray[np.float64]
type Target = NDArray[np.float64] | NDArray[np.int64]
type Seed = int | np.random.Generator | None

# Two Gaussians a class, as in Ripley's synthetic set: equal weights, one common variance.
_CENTRES = np.array([[[-0.7, 0.3], [0.3, 0.3]], [[-0.3, 0.7], [0.4, 0.7]]])
_VARIANCE = 0.03


@dataclass(frozen=True)
class Generated:
    """Data and the truth they were drawn from.

    Attributes
    ----------
    X : array (n, p)
        Inputs.
    y : array (n,)
        Targets: floats for regression, integers 0 and 1 for classification.
    mean : array (n,)
        Expectation of y at each row of X: the noise-free curve, or the probability of class 1.
    weights : array (p,), optional
        True coefficients, where the truth is linear in X.
    relevant : bool array (p,), optional
        Which columns of X matter.
    noise : float, optional
        Standard deviation of the noise; None for classification.
    X_test, y_test, mean_test : arrays, optional
        New observations of the same truth, where they were asked for.
    """

    X: FloatArray
    y: Target
    mean: FloatArray
    weights: FloatArray | None = None
    relevant: NDArray[np.bool_] | None = None
    noise: float | None = None
    X_test: FloatArray | None = None
    y_test: Target | None = None
    mean_test: FloatArray | None = None


def sinc(n: int = 100, noise: float = 0.2, *, grid: bool = True, random_seed: Seed = None) -> Generated:
    """Noisy ``sin(x) / x`` on [-10, 10].

    Parameters
    ----------
    n : int
        Number of observations.
    noise : float
        Standard deviation of the noise.
    grid : bool
        Inputs on a regular grid; otherwise uniform at random.
    random_seed : int or Generator, optional
        Where the random numbers come from.
    """
    _check(n=n, noise=noise)
    rng = np.random.default_rng(random_seed)
    x = np.linspace(-10, 10, n) if grid else rng.uniform(-10, 10, n)
    mean = np.sinc(x / np.pi)  # numpy's sinc has pi inside, and knows the limit at zero
    return Generated(x[:, None], mean + noise * rng.standard_normal(n), mean, noise=float(noise))


def two_gaussians(n: int = 250, *, random_seed: Seed = None) -> Generated:
    """Two classes in the plane, each a mixture of two Gaussians, as in Ripley's synthetic set.

    The classes are equally likely, so ``mean`` is the exact probability of class 1 and the rule ``mean > 1/2`` is
    the best there can be; it errs on about 8% of new points.

    Parameters
    ----------
    n : int
        Number of observations.
    random_seed : int or Generator, optional
        Where the random numbers come from.
    """
    _check(n=n)
    rng = np.random.default_rng(random_seed)
    y = rng.integers(0, 2, n)
    X = _CENTRES[y, rng.integers(0, 2, n)] + np.sqrt(_VARIANCE) * rng.standard_normal((n, 2))
    squares = ((X[:, None, None] - _CENTRES) ** 2).sum(-1)
    log_density = np.logaddexp.reduce(-0.5 * squares / _VARIANCE, axis=2)
    return Generated(X, y, expit(log_density[:, 1] - log_density[:, 0]))


def friedman(n: int = 240, noise: float = 1.0, extra: int = 5, *, random_seed: Seed = None) -> Generated:
    """Friedman's first function of five uniform inputs, with irrelevant inputs added.

    The mean is ``10 sin(pi x1 x2) + 20 (x3 - 1/2)^2 + 10 x4 + 5 x5``.

    Parameters
    ----------
    n : int
        Number of observations.
    noise : float
        Standard deviation of the noise.
    extra : int
        Number of irrelevant inputs after the first five.
    random_seed : int or Generator, optional
        Where the random numbers come from.
    """
    _check(n=n, noise=noise)
    if extra < 0:
        raise ValueError(f"extra is {extra}, but the number of irrelevant inputs cannot be negative.")
    rng = np.random.default_rng(random_seed)
    X = rng.uniform(size=(n, 5 + extra))
    mean = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    y = mean + noise * rng.standard_normal(n)
    return Generated(X, y, mean, relevant=np.arange(5 + extra) < 5, noise=float(noise))


def sparse_linear(
    n: int = 200,
    p: int = 2000,
    k: int = 10,
    noise: float = 0.5,
    correlation: float = 0.0,
    heavy_tails: bool = False,
    signal: float = 1.0,
    *,
    n_test: int = 0,
    random_seed: Seed = None,
) -> Generated:
    """Linear regression in which k of p features matter.

    Parameters
    ----------
    n, p, k : int
        Number of observations, of features, and of features that matter (at random places).
    noise : float
        Standard deviation of the noise.
    correlation : float
        Correlation of neighbouring columns; it falls off as a power of the distance, as in an AR(1) process.
    heavy_tails : bool
        Features (the innovations, if correlated) from a Student-t with 3 degrees of freedom, scaled to variance 1.
    signal : float
        The coefficients that matter have random signs and sizes uniform in ``signal * [0.5, 1.5]``.
    n_test : int
        Number of new observations in `X_test`, `y_test`, `mean_test`; the others do not depend on it.
    random_seed : int or Generator, optional
        Where the random numbers come from.
    """
    _check_sparse(n, p, k, correlation, n_test)
    _check(n=n, noise=noise)
    rng = np.random.default_rng(random_seed)
    w = _sparse_weights(p, k, signal, rng)
    X = _features(n, p, correlation, heavy_tails, rng)
    y = X @ w + noise * rng.standard_normal(n)
    truth = {"weights": w, "relevant": w != 0, "noise": float(noise)}
    if n_test == 0:
        return Generated(X, y, X @ w, **truth)
    new = _features(n_test, p, correlation, heavy_tails, rng)
    y_new = new @ w + noise * rng.standard_normal(n_test)
    return Generated(X, y, X @ w, **truth, X_test=new, y_test=y_new, mean_test=new @ w)


def sparse_logistic(
    n: int = 200,
    p: int = 2000,
    k: int = 10,
    correlation: float = 0.0,
    heavy_tails: bool = False,
    signal: float = 1.0,
    *,
    n_test: int = 0,
    random_seed: Seed = None,
) -> Generated:
    """Two classes, 0 and 1, whose log-odds are linear in k of p features.

    With the same seed, features and coefficients are those of `sparse_linear`, whose parameters these are.

    Parameters
    ----------
    n, p, k, correlation, heavy_tails, signal, n_test, random_seed
        As in `sparse_linear`.
    """
    _check_sparse(n, p, k, correlation, n_test)
    rng = np.random.default_rng(random_seed)
    w = _sparse_weights(p, k, signal, rng)
    X = _features(n, p, correlation, heavy_tails, rng)
    mean = expit(X @ w)
    y = (rng.uniform(size=n) < mean).astype(np.int64)
    if n_test == 0:
        return Generated(X, y, mean, weights=w, relevant=w != 0)
    new = _features(n_test, p, correlation, heavy_tails, rng)
    mean_new = expit(new @ w)
    y_new = (rng.uniform(size=n_test) < mean_new).astype(np.int64)
    return Generated(X, y, mean, w, w != 0, X_test=new, y_test=y_new, mean_test=mean_new)


def _sparse_weights(p: int, k: int, signal: float, rng: np.random.Generator) -> FloatArray:
    w = np.zeros(p)
    where = rng.choice(p, size=k, replace=False)
    w[where] = signal * rng.uniform(0.5, 1.5, size=k) * rng.choice([-1.0, 1.0], size=k)
    return w


def _features(n: int, p: int, correlation: float, heavy_tails: bool, rng: np.random.Generator) -> FloatArray:
    # A Student-t with 3 degrees of freedom has variance 3.
    X = rng.standard_t(3, size=(n, p)) / np.sqrt(3) if heavy_tails else rng.standard_normal((n, p))
    if correlation:
        # The recursion costs n p; a Cholesky factor of the p x p correlations would cost p^3.
        rest = np.sqrt(1 - correlation**2)
        for j in range(1, p):
            X[:, j] = correlation * X[:, j - 1] + rest * X[:, j]
    return X


def _check(n: int, noise: float = 0.0) -> None:
    if n < 1:
        raise ValueError(f"n is {n}, but at least one observation is needed.")
    if not 0 <= noise < np.inf:
        raise ValueError(f"noise is {noise}, but a standard deviation is a finite number, zero or more.")


def _check_sparse(n: int, p: int, k: int, correlation: float, n_test: int) -> None:
    _check(n)
    if not 0 <= k <= p or p < 1:
        raise ValueError(f"k is {k} and p is {p}, but 0 <= k <= p and p >= 1 are needed: k of the p features matter.")
    if not -1 < correlation < 1:
        raise ValueError(f"correlation is {correlation}, but it must lie strictly between -1 and 1.")
    if n_test < 0:
        raise ValueError(f"n_test is {n_test}, but the number of new observations cannot be negative.")
