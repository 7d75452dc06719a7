"""Weights with a prior scale each, declared centred: every way to write the scale, the product and the data."""

import pandas as pd
import pymc as pm
import pytensor.tensor as pt

from .case import case
from .data import FEATURES, REGRESSION, SIGMA, B, N, P, W, X, Y, rng

EACH = "sparse vector w, a precision per weight"


@case("Gamma precisions and tau=", REGRESSION, EACH)
def gamma_precisions():
    with pm.Model() as model:
        alpha = pm.Gamma("alpha", 1e-2, 1e-2, shape=P)
        w = pm.Normal("w", mu=0, tau=alpha, shape=P)
        b = pm.Normal("b", 0, 10)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", mu=b + X @ w, sigma=sigma, observed=Y)
    return model


@case("one over the root of Gamma precisions", REGRESSION, EACH)
def root_of_precisions():
    with pm.Model() as model:
        alpha = pm.Gamma("alpha", alpha=0.5, beta=0.005, shape=P)
        w = pm.Normal("w", 0, 1 / pm.math.sqrt(alpha), shape=P)
        b = pm.Normal("b", 0, 10)
        noise = pm.Gamma("noise", 1, 1)
        pm.Deterministic("sigma", noise**-0.5)
        pm.Normal("y", b + pm.math.dot(X, w), tau=noise, observed=Y)
    return model


@case("InverseGamma variances with dims", REGRESSION, EACH)
def inverse_gamma_variances():
    with pm.Model(coords={"feature": FEATURES, "row": range(N)}) as model:
        variance = pm.InverseGamma("variance", alpha=1, beta=1, dims="feature")
        w = pm.Normal("w", mu=0, sigma=pm.math.sqrt(variance), dims="feature")
        b = pm.Normal("b", mu=0, sigma=10)
        sigma = pm.HalfCauchy("sigma", beta=1)
        mu = pm.Deterministic("mu", b + pm.math.dot(X, w), dims="row")
        pm.Normal("y", mu=mu, sigma=sigma, observed=Y, dims="row")
    return model


@case("HalfNormal scales and pm.Data", REGRESSION, EACH)
def half_normal_scales():
    with pm.Model(coords={"feature": FEATURES}) as model:
        X_data = pm.Data("X", X, dims=("row", "feature"))
        y_data = pm.Data("y_data", Y, dims="row")
        scale = pm.HalfNormal("scale", sigma=2, dims="feature")
        w = pm.Normal("w", mu=0, sigma=scale, dims="feature")
        b = pm.Normal("b", mu=0, sigma=5)
        sigma = pm.HalfNormal("sigma", sigma=1)
        pm.Normal("y", mu=b + pt.dot(X_data, w), sigma=sigma, observed=y_data, dims="row")
    return model


@case("HalfCauchy scales and a sum of products", REGRESSION, EACH)
def half_cauchy_scales():
    with pm.Model() as model:
        scale = pm.HalfCauchy("scale", 1, shape=P)
        w = pm.Normal("w", 0, scale, shape=P)
        b = pm.Normal("b", Y.mean(), Y.std())
        sigma = pm.HalfNormal("sigma", Y.std())
        pm.Normal("y", b + (X * w).sum(axis=-1), sigma, observed=Y)
    return model


@case("Exponential scales, weights before the columns", REGRESSION, EACH)
def exponential_scales():
    with pm.Model() as model:
        scale = pm.Exponential("scale", 1.0, shape=P)
        w = pm.Normal("w", 0, scale)
        b = pm.Normal("b", 0, 5)
        sigma = pm.Exponential("sigma", 1.0)
        pm.Normal("y", w @ X.T + b, sigma, observed=Y)
    return model


@case("LogNormal scales", REGRESSION, EACH)
def log_normal_scales():
    with pm.Model(coords={"feature": FEATURES}) as model:
        X_data = pm.Data("X", X)
        scale = pm.LogNormal("scale", mu=-1, sigma=1.5, dims="feature")
        w = pm.Normal("w", 0, scale, dims="feature")
        b = pm.Normal("b", 0, 5)
        sigma = pm.LogNormal("sigma", 0, 1)
        pm.Normal("y", X_data.dot(w) + b, sigma, observed=Y)
    return model


@case("scales whose logarithms are Normal", REGRESSION, EACH)
def log_scales():
    with pm.Model() as model:
        log_scale = pm.Normal("log_scale", -1, 2, shape=P)
        log_sigma = pm.Normal("log_sigma", 0, 1)
        w = pm.Normal("w", 0, pm.math.exp(log_scale), shape=P)
        b = pm.Normal("b", 0, 5)
        pm.Deterministic("sigma", pm.math.exp(log_sigma))
        pm.Normal("y", b + X @ w, pm.math.exp(log_sigma), observed=Y)
    return model


@case("Uniform scales", REGRESSION, EACH)
def uniform_scales():
    with pm.Model() as model:
        scale = pm.Uniform("scale", 0, 10, shape=P)
        w = pm.Normal("w", 0, scale, shape=P)
        b = pm.Normal("b", 0, 100)
        sigma = pm.Uniform("sigma", 0, 10)
        pm.Normal("y", b + pm.math.dot(w, X.T), sigma, observed=Y)
    return model


@case("HalfStudentT scales around a prior guess of the slopes", REGRESSION, "sparse vector w about its known mean")
def known_prior_mean():
    guess = [1.0, 0, 0, 0, 0, 0, 0, 0]
    with pm.Model() as model:
        scale = pm.HalfStudentT("scale", nu=3, sigma=1, shape=P)
        w = pm.Normal("w", mu=guess, sigma=scale)
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfStudentT("sigma", nu=3, sigma=2)
        pm.Normal("y", b + X @ w, sigma, observed=Y)
    return model


@case("columns centred inside the model", {"w": W, "sigma": SIGMA}, EACH)
def centred_columns():
    with pm.Model() as model:
        X_data = pm.Data("X", 3 + X)
        scale = pm.HalfCauchy("scale", 1, shape=P)
        w = pm.Normal("w", 0, scale, shape=P)
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        mu = b + (X_data - X_data.mean(axis=0)) @ w
        pm.Normal("y", mu, sigma, observed=Y)
    return model


@case("weights as a matrix of one column", {"w": W[:, None], "b": B, "sigma": SIGMA}, EACH)
def one_column():
    with pm.Model() as model:
        alpha = pm.Gamma("alpha", 1, 0.1, shape=(P, 1))
        w = pm.Normal("w", 0, tau=alpha, shape=(P, 1))
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", b + pm.math.dot(X, w).flatten(), sigma, observed=Y)
    return model


@case("a loop over the columns of a frame", REGRESSION, EACH)
def loop_over_columns():
    df = pd.DataFrame(X, columns=FEATURES).assign(price=Y)
    with pm.Model(coords={"feature": FEATURES}) as model:
        scale = pm.HalfNormal("scale", 1, dims="feature")
        w = pm.Normal("w", 0, scale, dims="feature")
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        mu = b
        for i, column in enumerate(FEATURES):
            mu = mu + w[i] * df[column].values
        pm.Normal("y", mu, sigma, observed=df["price"])
    return model


INTERACTIONS = [0.8, 1.2, 0.9, 0.0, 0.0]


@case("interactions and squares by hand", {"w": INTERACTIONS, "sigma": 0.5}, EACH)
def interactions():
    x1, x2 = X[:, 0], X[:, 1]
    y = 0.8 * x1 + 1.2 * x2 + 0.9 * x1 * x2 + 0.5 * rng(3).normal(size=N)
    with pm.Model() as model:
        scale = pm.HalfCauchy("scale", 1, shape=5)
        w = pm.Normal("w", 0, scale, shape=5)
        sigma = pm.HalfNormal("sigma", 1)
        mu = w[0] * x1 + w[1] * x2 + w[2] * x1 * x2 + w[3] * x1**2 + w[4] * x2**2
        pm.Normal("y", mu, sigma, observed=y)
    return model


@case("no intercept and a known noise", {"w": W}, EACH)
def known_noise():
    with pm.Model() as model:
        scale = pm.HalfNormal("scale", 1, shape=P)
        w = pm.Normal("w", 0, scale, shape=P)
        pm.Normal("y", X @ w, SIGMA, observed=Y - B)
    return model
