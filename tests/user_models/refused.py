"""Models that no evidence method fits: one sentence names the variable and the edit that helps."""

import numpy as np
import pymc as pm

from .case import case
from .data import B, N, P, X, Y, rng


def ard():
    """The sparse weights of every model in this file."""
    s = pm.HalfCauchy("s", 1, shape=P)
    return pm.Normal("w", 0, s, shape=P)


@case("minibatches", refused=r"[Mm]inibatch.*all (the )?(rows|data)|all (the )?(rows|data).*[Mm]inibatch")
def minibatches():
    X_batch, y_batch = pm.Minibatch(X, Y, batch_size=50)
    with pm.Model() as model:
        w = ard()
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", b + X_batch @ w, sigma, observed=y_batch, total_size=N)
    return model


@case("spike and slab by indicators", refused=r"'gamma' is discrete.*(sum|marginal|observe|precision|scale)")
def indicators():
    with pm.Model() as model:
        gamma = pm.Bernoulli("gamma", 0.3, shape=P)
        beta = pm.Normal("beta", 0, 2, shape=P)
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", b + X @ (gamma * beta), sigma, observed=Y)
    return model


@case("a change point of unknown place", refused=r"'place' is discrete.*(sum|marginal|observe)")
def change_point():
    with pm.Model() as model:
        w = ard()
        place = pm.DiscreteUniform("place", 0, N - 1)
        before = pm.Normal("before", 0, 5)
        after = pm.Normal("after", 0, 5)
        level = pm.math.switch(place > np.arange(N), before, after)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", level + X @ w, sigma, observed=Y)
    return model


@case("nothing observed", refused=r"observed variable.*(none|observed=)|no(thing| variable).*observed")
def nothing_observed():
    with pm.Model() as model:
        w = ard()
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", b + X @ w, sigma)
    return model


@case("weights that enter squared", refused=r"'w'.*linear|linear.*'w'")
def squared_weights():
    with pm.Model() as model:
        w = ard()
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", b + X @ w**2, sigma, observed=Y)
    return model


@case("two weight vectors multiplied by each other", refused=r"'[wv]'.*linear|linear.*'[wv]'")
def product_of_weights():
    with pm.Model() as model:
        w = ard()
        v = pm.Normal("v", 0, 1, shape=P)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", (X @ w) * (X @ v), sigma, observed=Y)
    return model


@case("Laplace noise", refused=r"'y'.*curvature.*Student-t")
def laplace_noise():
    y = B + X[:, 0] + rng(140).laplace(size=N)
    with pm.Model() as model:
        w = ard()
        b = pm.Normal("b", 0, 5)
        scale = pm.HalfNormal("scale", 1)
        pm.Laplace("y", mu=b + X @ w, b=scale, observed=y)
    return model


@case("quantile regression", refused=r"'y'.*curvature.*(Student-t|nuts)")
def quantile_regression():
    with pm.Model() as model:
        w = ard()
        b = pm.Normal("b", 0, 5)
        scale = pm.HalfNormal("scale", 1)
        pm.AsymmetricLaplace("y", mu=b + X @ w, b=1 / scale, q=0.9, observed=Y)
    return model


@case("a vector of known scale that is not named as sparse", refused=r"[Nn]o sparse.*'w'.*sparse=")
def no_scale():
    with pm.Model() as model:
        w = pm.Normal("w", 0, 1, shape=P)
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", b + X @ w, sigma, observed=Y)
    return model


@case("a name that is no variable", refused=r"'wages'.*'w'", sparse=["wages"])
def unknown_name():
    return no_scale()
