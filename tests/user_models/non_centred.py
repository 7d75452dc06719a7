"""Standard weights multiplied by their scales: before the product, after it, after an index, or around a mean."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from .case import case
from .data import FEATURES, GROUP, GROUPS, REGRESSION, SIGMA, B, N, P, W, X, Y, effects, rng

EACH = "sparse vector w, a precision per weight"
REST = {"b": B, "sigma": SIGMA}


@case("non-centred weights, a scale each", REGRESSION, EACH)
def scale_times_z():
    with pm.Model(coords={"feature": FEATURES}) as model:
        s = pm.HalfCauchy("s", 1, dims="feature")
        z = pm.Normal("z", 0, 1, dims="feature")
        w = pm.Deterministic("w", z * s, dims="feature")
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", b + X @ w, sigma, observed=Y)
    return model


@case("non-centred weights without a name", REST, "sparse vector z * s, a precision per weight")
def without_a_name():
    with pm.Model() as model:
        s = pm.HalfNormal("s", 1, shape=P)
        z = pm.Normal("z", shape=P)
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", b + pm.math.dot(X, s * z), sigma, observed=Y)
    return model


@case("columns multiplied by their scales", {**REST, "mu": B + X @ W}, "sparse vector z * s, a precision per weight")
def scaled_columns():
    with pm.Model() as model:
        s = pm.HalfNormal("s", 1, shape=P)
        z = pm.Normal("z", 0, 1, shape=P)
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        mu = pm.Deterministic("mu", b + (X * s) @ z)
        pm.Normal("y", mu, sigma, observed=Y)
    return model


@case("non-centred weights divided by the root of a precision", REGRESSION, EACH)
def over_root_of_precision():
    with pm.Model() as model:
        alpha = pm.Gamma("alpha", 1, 0.1, shape=P)
        z = pm.Normal("z", 0, 1, shape=P)
        w = pm.Deterministic("w", z / pt.sqrt(alpha))
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", b + pt.dot(X, w), sigma, observed=Y)
    return model


@case("non-centred weights, the root of a variance each", REGRESSION, EACH)
def root_of_variance():
    with pm.Model() as model:
        variance = pm.InverseGamma("variance", 1, 1, shape=P)
        raw = pm.Normal("raw", 0, 1, shape=P)
        w = pm.Deterministic("w", raw * pm.math.sqrt(variance))
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", b + (w * X).sum(axis=1), sigma, observed=Y)
    return model


@case("non-centred weights, log-scales with a Normal prior", REGRESSION, EACH)
def exp_of_log_scale():
    with pm.Model(coords={"feature": FEATURES}) as model:
        log_scale = pm.Normal("log_scale", -1, 1.5, dims="feature")
        z = pm.Normal("z", 0, 1, dims="feature")
        w = pm.Deterministic("w", pt.exp(log_scale) * z, dims="feature")
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", b + X @ w, sigma, observed=Y)
    return model


@case("non-centred weights around a known mean", REGRESSION, "sparse vector w about its known mean")
def around_known_mean():
    guess = np.array([1.0, 0, 0, 0, 0, 0, 0, 0])
    with pm.Model() as model:
        s = pm.HalfNormal("s", 1, shape=P)
        z = pm.Normal("z", 0, 1, shape=P)
        w = pm.Deterministic("w", guess + z * s)
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", b + X @ w, sigma, observed=Y)
    return model


ALIKE = 1 + effects(P, 0.4, 5)


@case("slopes pooled around a common mean", {"w": ALIKE, "mu_w": 1.0, "s": 0.4, "sigma": 0.7}, "vector w, one scale")
def around_a_mean():
    y = X @ ALIKE + 0.7 * rng(6).normal(size=N)
    with pm.Model(coords={"feature": FEATURES}) as model:
        mu_w = pm.Normal("mu_w", 0, 2)
        s = pm.HalfNormal("s", 1)
        z = pm.Normal("z", 0, 1, dims="feature")
        w = pm.Deterministic("w", mu_w + z * s, dims="feature")
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", X @ w, sigma, observed=y)
    return model


@case("one scale after the product", {**REST, "tau": np.sqrt(np.mean(W**2))}, "vector tau * z, one scale")
def scale_after_product():
    with pm.Model() as model:
        tau = pm.HalfNormal("tau", 1)
        z = pm.Normal("z", 0, 1, shape=P)
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", b + tau * (X @ z), sigma, observed=Y)
    return model


GROUP_EFFECTS = effects(GROUPS, 0.9, 7)


@case(
    "a scale after the index beside sparse weights",
    {**REGRESSION, "sigma_a": 0.9},
    "sparse vector w, a precision per weight; vector z_a, one scale",
)
def scale_after_index():
    with pm.Model(coords={"feature": FEATURES, "group": range(GROUPS)}) as model:
        s = pm.HalfCauchy("s", 1, dims="feature")
        z = pm.Normal("z", 0, 1, dims="feature")
        w = pm.Deterministic("w", s * z, dims="feature")
        sigma_a = pm.HalfNormal("sigma_a", 1)
        z_a = pm.Normal("z_a", 0, 1, dims="group")
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        mu = b + sigma_a * z_a[GROUP] + X @ w
        pm.Normal("y", mu, sigma, observed=Y + GROUP_EFFECTS[GROUP])
    return model


@case("two weight vectors, one centred and one not", {"w": W[:4], "v": W[4:], **REST}, "sparse vectors w and v")
def one_of_each():
    with pm.Model() as model:
        s_w = pm.HalfCauchy("s_w", 1, shape=4)
        w = pm.Normal("w", 0, s_w, shape=4)
        s_v = pm.HalfCauchy("s_v", 1, shape=4)
        z_v = pm.Normal("z_v", 0, 1, shape=4)
        v = pm.Deterministic("v", s_v * z_v)
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", b + X[:, :4] @ w + X[:, 4:] @ v, sigma, observed=Y)
    return model


@case("a non-centred intercept too", {"w": W, "b": B, "sigma": SIGMA}, EACH)
def non_centred_intercept():
    with pm.Model() as model:
        s = pm.HalfCauchy("s", 1, shape=P)
        z = pm.Normal("z", 0, 1, shape=P)
        w = pm.Deterministic("w", s * z)
        z_b = pm.Normal("z_b", 0, 1)
        b = pm.Deterministic("b", 5 * z_b)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", b + X @ w, sigma, observed=Y)
    return model
