"""Densities, constraints and links of the user's own, and models made from other models."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from .case import case
from .data import ETA, LOW, REGRESSION, SIGMA, B, N, P, W, X, Y, rng

EACH = "sparse vector w, a precision per weight"


def ard():
    """The sparse weights of every model in this file."""
    s = pm.HalfCauchy("s", 1, shape=P)
    return pm.Normal("w", 0, s, shape=P)


@case("a log-density by pm.CustomDist", {"w": W, "b": B, "scale": 0.5}, EACH)
def custom_density():
    y = ETA + rng(126).gumbel(scale=0.5, size=N)

    def logp(value, mu, scale):
        z = (value - mu) / scale
        return -z - pt.exp(-z) - pt.log(scale)

    with pm.Model() as model:
        w = ard()
        b = pm.Normal("b", 0, 5)
        scale = pm.HalfNormal("scale", 1)
        pm.CustomDist("y", b + X @ w, scale, logp=logp, observed=y)
    return model


@case("a generative function by pm.CustomDist", REGRESSION, EACH)
def custom_generator():
    def shifted_log_normal(mu, sigma, size):
        return 1.0 + pm.LogNormal.dist(mu, sigma, size=size)

    with pm.Model() as model:
        w = ard()
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        pm.CustomDist("y", b + X @ w, sigma, dist=shifted_log_normal, observed=1.0 + np.exp(Y))
    return model


@case("the likelihood as a Potential", REGRESSION, EACH)
def potential_likelihood():
    with pm.Model() as model:
        w = ard()
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Potential("likelihood", pm.logp(pm.Normal.dist(b + X @ w, sigma), Y).sum())
    return model


@case("a likelihood weighted by a Potential", {"w": LOW, "b": B}, EACH)
def weighted_likelihood():
    y = rng(127).poisson(np.exp(B + X @ LOW))
    weight = np.where(np.arange(N) % 2, 0.8, 1.2)
    with pm.Model() as model:
        w = ard()
        b = pm.Normal("b", 0, 5)
        mu = pm.math.exp(b + X @ w)
        pm.Potential("weighted", (weight * pm.logp(pm.Poisson.dist(mu), y)).sum())
    return model


BALANCED = np.array([1.2, 0, -0.7, 0, 0, -0.5, 0, 0])


@case("a soft constraint on the sum of the weights", {"w": BALANCED, "b": B, "sigma": SIGMA}, EACH)
def soft_constraint():
    y = B + X @ BALANCED + SIGMA * rng(122).normal(size=N)
    with pm.Model() as model:
        w = ard()
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Potential("balance", pm.logp(pm.Normal.dist(0, 0.01), w.sum()))
        pm.Normal("y", b + X @ w, sigma, observed=y)
    return model


@case("Jeffreys' prior of the noise as a Potential", REGRESSION, EACH)
def prior_of_noise():
    with pm.Model() as model:
        w = ard()
        b = pm.Flat("b")
        sigma = pm.HalfFlat("sigma")
        pm.Potential("jeffreys", -pt.log(sigma))
        pm.Normal("y", b + X @ w, sigma, observed=Y)
    return model


@case("a saturating response of unknown height", {"w": LOW, "b": 0.2, "A": 3.0, "sigma": 0.3}, EACH)
def saturating():
    y = 3.0 * np.tanh(0.2 + X @ LOW) + 0.3 * rng(123).normal(size=N)
    with pm.Model() as model:
        w = ard()
        b = pm.Normal("b", 0, 1)
        A = pm.HalfNormal("A", 5)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", A * pm.math.tanh(b + X @ w), sigma, observed=y)
    return model


@case("a dose-response curve with a floor and a ceiling", {"w": W, "b": B, "floor": 1.0, "ceiling": 4.0}, EACH)
def dose_response():
    y = 1.0 + 3.0 / (1 + np.exp(-ETA)) + 0.2 * rng(124).normal(size=N)
    with pm.Model() as model:
        w = ard()
        b = pm.Normal("b", 0, 2)
        floor = pm.Normal("floor", 0, 5)
        ceiling = pm.Normal("ceiling", 5, 5)
        sigma = pm.HalfNormal("sigma", 1)
        mu = floor + (ceiling - floor) * pm.math.invlogit(b + X @ w)
        pm.Normal("y", mu, sigma, observed=y)
    return model


@case("counts with a softplus link", {"w": 2 * W, "b": 3.0}, EACH)
def softplus():
    y = rng(125).poisson(np.logaddexp(0, 3.0 + X @ (2 * W)))
    with pm.Model() as model:
        w = ard()
        b = pm.Normal("b", 0, 5)
        pm.Poisson("y", pm.math.log1pexp(b + X @ w), observed=y)
    return model


@case("a generative model observed later", REGRESSION, EACH)
def observed_later():
    with pm.Model() as generative:
        w = ard()
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", b + X @ w, sigma)
    return pm.observe(generative, {"y": Y})


@case("a model in which a variable is set", {"w": W, "sigma": SIGMA}, EACH)
def intervened_on():
    with pm.Model() as model:
        w = ard()
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", b + X @ w, sigma, observed=Y)
    return pm.do(model, {"b": B})


@case("a model inside a model", {"slopes::w": W, "b": B, "noise::sigma": SIGMA}, "sparse vector slopes::w")
def nested_models():
    with pm.Model() as model:
        with pm.Model(name="slopes"):
            w = ard()
        b = pm.Normal("b", 0, 5)
        with pm.Model(name="noise"):
            sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", b + X @ w, sigma, observed=Y)
    return model


@case("a model with a name", {"house::w": W, "house::b": B, "house::sigma": SIGMA}, "sparse vector house::w")
def named_model():
    with pm.Model(name="house", coords={"feature": range(P)}) as model:
        s = pm.HalfCauchy("s", 1, dims="feature")
        w = pm.Normal("w", 0, s, dims="feature")
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", b + X @ w, sigma, observed=Y)
    return model
