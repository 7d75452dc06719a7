"""Likelihoods of measurements, durations and proportions over sparse weights."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from scipy.special import expit

from .case import case
from .data import ETA, FEATURES, LOW, REGRESSION, SIGMA, B, N, P, W, X, Y, rng

EACH = "sparse vector w, a precision per weight"
LOG = B + X @ LOW  # a predictor for a log link


def ard():
    """The sparse weights of every model in this file."""
    s = pm.HalfCauchy("s", 1, shape=P)
    return pm.Normal("w", 0, s, shape=P)


@case("Student-t noise", {"w": W, "b": B, "sigma": SIGMA}, EACH)
def student_t():
    y = ETA + SIGMA * rng(60).standard_t(4, size=N)
    with pm.Model() as model:
        w = ard()
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        nu = pm.Gamma("nu", 2, 0.1)
        pm.StudentT("y", nu=nu, mu=b + X @ w, sigma=sigma, observed=y)
    return model


@case("logistic noise", {"w": W, "b": B, "scale": 0.4}, EACH)
def logistic():
    y = ETA + rng(61).logistic(scale=0.4, size=N)
    with pm.Model() as model:
        w = ard()
        b = pm.Normal("b", 0, 5)
        scale = pm.HalfNormal("scale", 1)
        pm.Logistic("y", mu=b + X @ w, s=scale, observed=y)
    return model


@case("Gumbel noise", {"w": W, "b": B, "scale": 0.5}, EACH)
def gumbel():
    y = ETA + rng(62).gumbel(scale=0.5, size=N)
    with pm.Model() as model:
        w = ard()
        b = pm.Normal("b", 0, 5)
        scale = pm.HalfNormal("scale", 1)
        pm.Gumbel("y", mu=b + X @ w, beta=scale, observed=y)
    return model


@case("skew-normal noise", {"w": W, "sigma": 1.0}, EACH)
def skew_normal():
    draw = rng(63)
    delta = 4 / np.sqrt(1 + 4**2)
    y = ETA + delta * np.abs(draw.normal(size=N)) + np.sqrt(1 - delta**2) * draw.normal(size=N)
    with pm.Model() as model:
        w = ard()
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        skew = pm.Normal("skew", 0, 5)
        pm.SkewNormal("y", mu=b + X @ w, sigma=sigma, alpha=skew, observed=y)
    return model


@case("exponentially modified Gaussian noise", {"w": W, "b": B, "nu": 1.0}, EACH)
def ex_gaussian():
    y = ETA + 0.4 * rng(64).normal(size=N) + rng(65).exponential(1.0, size=N)
    with pm.Model() as model:
        w = ard()
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        nu = pm.HalfNormal("nu", 2)
        pm.ExGaussian("y", mu=b + X @ w, sigma=sigma, nu=nu, observed=y)
    return model


@case("outliers as a mixture of two normals", {"w": W, "b": B, "sigma": 0.5}, EACH)
def outliers():
    draw = rng(66)
    y = ETA + np.where(draw.random(N) < 0.1, 5.0, 0.5) * draw.normal(size=N)
    with pm.Model() as model:
        w = ard()
        mu = pm.Normal("b", 0, 5) + X @ w
        sigma = pm.HalfNormal("sigma", 1)
        share = pm.Beta("share", 1, 9)
        parts = [pm.Normal.dist(mu, sigma), pm.Normal.dist(mu, 5.0)]
        pm.Mixture("y", w=pt.stack([1 - share, share]), comp_dists=parts, observed=y)
    return model


@case("a response truncated at zero", REGRESSION, EACH)
def truncated():
    seen = Y > 0
    with pm.Model() as model:
        w = ard()
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Truncated("y", pm.Normal.dist(b + X[seen] @ w, sigma), lower=0, observed=Y[seen])
    return model


@case("a response censored from above", {"w": W, "b": B, "sigma": SIGMA}, EACH)
def censored():
    with pm.Model() as model:
        w = ard()
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        latent = pm.Normal.dist(mu=b + X @ w, sigma=sigma)
        pm.Censored("y", latent, lower=None, upper=2.0, observed=np.minimum(Y, 2.0))
    return model


@case("log-normal response", {"w": W, "b": B, "sigma": SIGMA}, EACH)
def log_normal():
    with pm.Model() as model:
        w = ard()
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        pm.LogNormal("y", mu=b + X @ w, sigma=sigma, observed=np.exp(Y))
    return model


@case("Gamma response with a log link", {"w": LOW, "b": B, "shape": 3.0}, EACH)
def gamma():
    y = rng(68).gamma(3.0, np.exp(LOG) / 3.0)
    with pm.Model() as model:
        w = ard()
        b = pm.Normal("b", 0, 5)
        shape = pm.HalfNormal("shape", 5)
        mu = pm.math.exp(b + X @ w)
        pm.Gamma("y", alpha=shape, beta=shape / mu, observed=y)
    return model


@case("Gamma response by mean and sd", {"w": LOW, "b": 1.0, "sigma": 0.6}, EACH)
def gamma_by_moments():
    mean = np.exp(1.0 + X @ LOW)
    y = rng(69).gamma((mean / 0.6) ** 2, 0.36 / mean)
    with pm.Model() as model:
        w = ard()
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Gamma("y", mu=pm.math.exp(b + X @ w), sigma=sigma, observed=y)
    return model


@case("inverse Gaussian response", {"w": LOW, "b": B, "lam": 4.0}, EACH)
def inverse_gaussian():
    y = rng(70).wald(np.exp(LOG), 4.0)
    with pm.Model() as model:
        w = ard()
        b = pm.Normal("b", 0, 5)
        lam = pm.HalfNormal("lam", 5)
        pm.Wald("y", mu=pm.math.exp(b + X @ w), lam=lam, observed=y)
    return model


def seen_until(time, end):
    """Durations seen until the end of a study, and the limit of each for pm.Censored."""
    return np.minimum(time, end), end


@case("exponential survival times, censored", {"w": LOW, "b": B}, EACH)
def exponential_survival():
    y, end = seen_until(rng(71).exponential(np.exp(LOG)), 4.0)
    with pm.Model() as model:
        w = ard()
        b = pm.Normal("b", 0, 5)
        latent = pm.Exponential.dist(lam=1 / pm.math.exp(b + X @ w))
        pm.Censored("y", latent, lower=None, upper=end, observed=y)
    return model


@case("Weibull survival times, censored", {"w": LOW, "b": B, "shape": 1.6}, EACH)
def weibull_survival():
    y, end = seen_until(np.exp(LOG) * rng(72).weibull(1.6, size=N), 4.0)
    with pm.Model(coords={"feature": FEATURES}) as model:
        s = pm.HalfNormal("s", 1, dims="feature")
        w = pm.Normal("w", 0, s, dims="feature")
        b = pm.Normal("b", 0, 5)
        shape = pm.HalfNormal("shape", 2)
        latent = pm.Weibull.dist(alpha=shape, beta=pm.math.exp(b + pm.math.dot(X, w)))
        pm.Censored("y", latent, lower=None, upper=end, observed=y)
    return model


@case("beta regression", {"w": LOW, "b": B, "phi": 15.0}, EACH)
def beta_regression():
    mean = expit(LOG)
    y = rng(73).beta(15 * mean, 15 * (1 - mean))
    with pm.Model() as model:
        w = ard()
        b = pm.Normal("b", 0, 5)
        phi = pm.HalfNormal("phi", 30)
        mu = pm.math.invlogit(b + X @ w)
        pm.Beta("y", alpha=mu * phi, beta=(1 - mu) * phi, observed=y)
    return model


@case("directions on a circle", {"w": LOW, "b": 0.2, "kappa": 8.0}, EACH)
def directions():
    y = rng(74).vonmises(2 * np.arctan(0.2 + X @ LOW), 8.0)
    with pm.Model() as model:
        w = ard()
        b = pm.Normal("b", 0, 1)
        kappa = pm.HalfNormal("kappa", 10)
        pm.VonMises("y", mu=2 * pt.arctan(b + X @ w), kappa=kappa, observed=y)
    return model


@case("a noise per group of rows", {"w": W, "b": B, "sigma": [0.4, 0.8, 1.2]}, EACH)
def noise_by_group():
    group = np.arange(N) % 3
    y = ETA + np.array([0.4, 0.8, 1.2])[group] * rng(75).normal(size=N)
    with pm.Model() as model:
        w = ard()
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1, shape=3)
        pm.Normal("y", b + X @ w, sigma[group], observed=y)
    return model


@case("missing values as nan", REGRESSION, EACH)
def missing_as_nan():
    y = Y.copy()
    y[::10] = np.nan
    with pm.Model() as model:
        w = ard()
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", b + X @ w, sigma, observed=y)
    return model


@case("missing values masked", REGRESSION, EACH)
def missing_masked():
    y = np.ma.masked_array(np.where(np.arange(N) % 15 == 0, -999, Y), mask=np.arange(N) % 15 == 0)
    with pm.Model() as model:
        w = ard()
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", b + X @ w, sigma, observed=y)
    return model
