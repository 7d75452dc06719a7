"""Data for the methods on the L1 path, and the conditions that their answers must satisfy, in plain numpy and scipy."""

import numpy as np
from numpy.testing import assert_allclose
from scipy import stats
from scipy.special import expit

RNG = np.random.default_rng(0)
N, P = 150, 8
X = RNG.standard_normal((N, P)) @ (np.eye(P) + 0.1) * np.linspace(0.5, 4.0, P) + np.arange(P)
Z = (X - X.mean(axis=0)) / X.std(axis=0)
ETA = Z @ np.array([1.2, -0.9, 0.6, 0.25, 0.0, 0.0, 0.0, 0.0])
TARGETS = {
    "normal": ETA + 0.7 * RNG.standard_normal(N) + 3.0,
    "bernoulli": (ETA + RNG.logistic(size=N) > 0).astype(int),
    "poisson": RNG.poisson(np.exp(0.5 * ETA + 1.0)),
    "negative_binomial": RNG.poisson(RNG.gamma(3.0, np.exp(0.6 * ETA + 1.0) / 3.0)),
}


def standardised(X, weights=None):
    centred = X - np.average(X, axis=0, weights=weights)
    return centred / np.sqrt(np.average(centred**2, axis=0, weights=weights))


def log_density(likelihood, y, eta, nuisance):
    """Of each observation, by scipy."""
    if likelihood == "normal":
        return stats.norm.logpdf(y, eta, *nuisance)
    if likelihood == "bernoulli":
        return stats.bernoulli.logpmf(y, expit(eta))
    if likelihood == "poisson":
        return stats.poisson.logpmf(y, np.exp(eta))
    (a,) = nuisance
    return stats.nbinom.logpmf(y, a, a / (a + np.exp(eta)))


def score(likelihood, y, eta, nuisance):
    """Slope of each observation's log-density along the predictor."""
    if likelihood == "normal":
        return (y - eta) / nuisance[0] ** 2
    if likelihood == "bernoulli":
        return y - expit(eta)
    mean = np.exp(eta)
    return y - mean if likelihood == "poisson" else (y - mean) / (1 + mean / nuisance[0])


def nuisance_of(evidence):
    return [float(evidence[name]) for name in ("sigma", "dispersion") if name in evidence]


def predictor(evidence, X, offset=0.0):
    return offset + X @ evidence["mean"].to_numpy() + float(evidence.get("bias", 0.0))


def assert_minimum(evidence, likelihood, y, *, X=X, Z=Z, offset=0.0, weights=1.0, kept=()):
    """Slopes of the log-likelihood: lambda on the support, less elsewhere, none along the bias and what is kept."""
    eta, nuisance = predictor(evidence, X, offset), nuisance_of(evidence)
    along = weights * score(likelihood, y, eta, nuisance)
    lam, mean = float(evidence["lambda"]), evidence["mean"].to_numpy()
    priced = ~np.isin(np.arange(len(mean)), kept)
    pull, inside = Z.T @ along / lam, priced & (mean != 0)
    assert_allclose(pull[inside], np.sign(mean[inside]), atol=2e-6)
    assert np.all(np.abs(pull[priced]) <= 1 + 2e-6)
    assert_allclose(pull[~priced], 0.0, atol=2e-6)
    assert_allclose(evidence["pull"], pull, atol=2e-6)
    if "bias" in evidence:
        assert abs(along.sum()) < 2e-6 * lam
    for i in range(len(nuisance)):
        ends = [[v * (1 + h * (j == i)) for j, v in enumerate(nuisance)] for h in (1e-4, -1e-4)]
        up, down = (np.sum(weights * log_density(likelihood, y, eta, end)) for end in ends)
        assert abs(up - down) < 1e-4 * (2e-4 * len(y))  # of what n observations can tell
