"""More than one predictor, more than one response, and rows that depend on each other."""

import numpy as np
import pymc as pm
from scipy.linalg import toeplitz
from scipy.special import expit

from .case import case
from .data import ETA, FEATURES, LOW, SIGMA, B, N, P, W, X, Y, rng

EACH = "sparse vector w, a precision per weight"
BOTH = "sparse vectors w and v, a precision per weight"
SPREAD = np.array([0, 0.6, 0, 0, -0.5, 0, 0, 0])  # slopes of a second predictor


def ard(name="w"):
    """The sparse weights of every model in this file."""
    s = pm.HalfCauchy(f"s_{name}", 1, shape=P)
    return pm.Normal(name, 0, s, shape=P)


@case("a predictor of the mean and one of the log-noise", {"w": W, "v": SPREAD, "b": B, "c": -0.5}, BOTH)
def heteroscedastic():
    y = ETA + np.exp(-0.5 + X @ SPREAD) * rng(110).normal(size=N)
    with pm.Model() as model:
        w, v = ard("w"), ard("v")
        b = pm.Normal("b", 0, 5)
        c = pm.Normal("c", 0, 2)
        pm.Normal("y", mu=b + X @ w, sigma=pm.math.exp(c + X @ v), observed=y)
    return model


ABSENT = np.array([0, 2.0, 0, 0, 0, 0, 0, 0])


@case("zero-inflated counts with a predictor of the zeros", {"w": LOW, "v": ABSENT, "b": 1.0, "c": 1.0}, BOTH)
def zero_inflation_with_predictor():
    here = rng(111).random(N) < expit(1.0 + X @ ABSENT)
    y = here * rng(112).poisson(np.exp(1.0 + X @ LOW))
    with pm.Model() as model:
        w, v = ard("w"), ard("v")
        b = pm.Normal("b", 0, 2)
        c = pm.Normal("c", 0, 2)
        psi = pm.Deterministic("psi", pm.math.invlogit(c + X @ v))
        pm.ZeroInflatedPoisson("y", psi=psi, mu=pm.math.exp(b + X @ w), observed=y)
    return model


COUNTS = rng(113).poisson(np.exp(0.3 + X @ LOW))


@case("two responses that share their weights", {"w": LOW, "b": B, "c": 0.3, "sigma": SIGMA}, EACH)
def shared_weights():
    y = B + X @ LOW + SIGMA * rng(114).normal(size=N)
    with pm.Model() as model:
        w = ard()
        b = pm.Normal("b", 0, 5)
        c = pm.Normal("c", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        score = pm.math.dot(X, w)
        pm.Normal("score", b + score, sigma, observed=y)
        pm.Poisson("visits", pm.math.exp(c + score), observed=COUNTS)
    return model


@case("two responses with weights of their own", {"w": W, "v": LOW, "b": B, "c": 0.3, "sigma": SIGMA}, BOTH)
def separate_weights():
    with pm.Model() as model:
        w, v = ard("w"), ard("v")
        b = pm.Normal("b", 0, 5)
        c = pm.Normal("c", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("score", b + X @ w, sigma, observed=Y)
        pm.Poisson("visits", pm.math.exp(c + X @ v), observed=COUNTS)
    return model


@case("two samples of different length that share their weights", {"w": W, "sigma": SIGMA, "delta": 1.0}, EACH)
def two_samples():
    with pm.Model() as model:
        w = ard()
        b = pm.Normal("b", 0, 5)
        delta = pm.Normal("delta", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("first", b + X[:100] @ w, sigma, observed=Y[:100])
        pm.Normal("second", b + delta + X[100:] @ w, sigma, observed=1.0 + Y[100:])
    return model


TABLE = np.zeros((P, 3))
TABLE[[0, 2, 2, 5], [0, 0, 1, 2]] = 1.2, -0.9, 1.0, 0.8


@case(
    "a table of responses and a matrix of weights",
    {"w": TABLE, "b": [0.5, -0.5, 0.0], "sigma": [0.5, 0.5, 0.5]},
    "sparse matrix w, a precision per weight",
)
def matrix_of_weights():
    y = [0.5, -0.5, 0.0] + X @ TABLE + 0.5 * rng(115).normal(size=(N, 3))
    with pm.Model(coords={"feature": FEATURES, "response": ["a", "b", "c"], "row": range(N)}) as model:
        s = pm.HalfCauchy("s", 1, dims=("feature", "response"))
        w = pm.Normal("w", 0, s, dims=("feature", "response"))
        b = pm.Normal("b", 0, 5, dims="response")
        sigma = pm.HalfNormal("sigma", 1, dims="response")
        pm.Normal("y", b + pm.math.dot(X, w), sigma, observed=y, dims=("row", "response"))
    return model


@case("two responses whose errors have a known covariance", {"w": W, "v": LOW, "b": [0.5, -0.5]}, BOTH)
def known_covariance_of_responses():
    covariance = np.array([[0.5, 0.3], [0.3, 0.4]])
    mean = np.c_[0.5 + X @ W, -0.5 + X @ LOW]
    y = mean + rng(116).multivariate_normal([0, 0], covariance, size=N)
    with pm.Model() as model:
        w, v = ard("w"), ard("v")
        b = pm.Normal("b", 0, 5, shape=2)
        mu = b + pm.math.stack([X @ w, X @ v], axis=1)
        pm.MvNormal("y", mu=mu, cov=covariance, observed=y)
    return model


T = 150
RHO = 0.6
CORRELATION = RHO ** toeplitz(np.arange(T))


@case("errors with a known covariance", {"w": W, "b": B}, EACH)
def known_covariance():
    y = ETA[:T] + rng(117).multivariate_normal(np.zeros(T), 0.5 * CORRELATION)
    with pm.Model() as model:
        w = ard()
        b = pm.Normal("b", 0, 5)
        pm.MvNormal("y", mu=b + X[:T] @ w, cov=0.5 * CORRELATION, observed=y)
    return model


SERIES = ETA + np.sqrt(0.5) * np.linalg.cholesky(RHO ** toeplitz(np.arange(N))) @ rng(118).normal(size=N)
INNOVATION = np.sqrt(0.5 * (1 - RHO**2))


@case("autoregressive errors of known correlation, as MvNormal", {"w": W, "b": B, "sd": np.sqrt(0.5)}, EACH)
def autoregressive_covariance():
    with pm.Model() as model:
        w = ard()
        b = pm.Normal("b", 0, 5)
        sd = pm.HalfNormal("sd", 1)
        pm.MvNormal("y", mu=b + X[:T] @ w, cov=sd**2 * CORRELATION, observed=SERIES[:T])
    return model


@case("autoregressive errors of known correlation, differenced", {"w": W, "b": B, "sigma": INNOVATION}, EACH)
def quasi_differences():
    with pm.Model() as model:
        w = ard()
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        mu = b + X @ w
        pm.Normal("y", mu[1:] - RHO * mu[:-1], sigma, observed=SERIES[1:] - RHO * SERIES[:-1])
    return model


@case("autoregressive errors as a Potential", {"w": W, "b": B, "sigma": INNOVATION}, EACH)
def autoregressive_potential():
    with pm.Model() as model:
        w = ard()
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        error = SERIES - b - X @ w
        pm.Potential("errors", pm.logp(pm.Normal.dist(RHO * error[:-1], sigma), error[1:]).sum())
    return model


@case(
    "autoregressive errors of unknown correlation",
    {"w": W, "b": B, "rho": RHO, "sigma": INNOVATION},
    EACH + "; columns that depend on rho",
)
def unknown_correlation():
    with pm.Model() as model:
        w = ard()
        b = pm.Normal("b", 0, 5)
        rho = pm.Uniform("rho", -1, 1)
        sigma = pm.HalfNormal("sigma", 1)
        mu = b + X @ w
        pm.Normal("y", mu[1:] + rho * (SERIES[:-1] - mu[:-1]), sigma, observed=SERIES[1:])
    return model
