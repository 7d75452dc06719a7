"""Models that put several things together: correlated effects, counts of classes, responses on scales of their own."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from .case import case
from .data import rng

N, P, SITES = 240, 6, 12
W = np.array([1.2, 0.0, 0.0, -0.9, 0.0, 0.7])
X = rng(300).normal(size=(N, P))
SITE = rng(301).integers(0, SITES, N)
EACH = "sparse vector, a precision per weight"


def ard(name="w", shape=P):
    return pm.Normal(name, 0, pm.HalfCauchy(f"s_{name}", 1, shape=shape))


@case("varying intercepts and slopes with an LKJ prior", {"w": W}, EACH + "; effects through a matrix that is held")
def correlated_effects():
    effects = rng(302).multivariate_normal([0, 0], [[0.6, 0.2], [0.2, 0.3]], SITES)
    y = X @ W + effects[SITE, 0] + effects[SITE, 1] * X[:, 1] + 0.5 * rng(303).normal(size=N)
    with pm.Model() as model:
        w = ard()
        chol, _, _ = pm.LKJCholeskyCov("chol", n=2, eta=2.0, sd_dist=pm.Exponential.dist(1.0))
        z = pm.Normal("z", 0, 1, shape=(2, SITES))
        ab = pm.Deterministic("ab", (chol @ z).T)
        pm.Normal("y", X @ w + ab[SITE, 0] + ab[SITE, 1] * X[:, 1], pm.HalfNormal("sigma", 1), observed=y)
    return model


@case("slopes of sites around sparse ones", {"mean": W}, EACH + "; slopes of sites with one scale")
def partial_pooling():
    slopes = W + 0.3 * rng(304).normal(size=(SITES, P))
    y = (X * slopes[SITE]).sum(axis=1) + 0.4 * rng(305).normal(size=N)
    with pm.Model() as model:
        mean = ard("mean")
        slope = pm.Normal("slope", mean, pm.HalfNormal("tau", 1), shape=(SITES, P))
        pm.Normal("y", (X * slope[SITE]).sum(axis=-1), pm.HalfNormal("sigma", 1), observed=y)
    return model


@case("columns made orthogonal", {"w": W}, EACH + " of the orthogonal columns")
def orthogonal():
    Q, R = np.linalg.qr(X)
    y = X @ W + 0.5 * rng(316).normal(size=N)
    with pm.Model() as model:
        theta = ard("theta")
        pm.Deterministic("w", np.linalg.inv(R) @ theta)
        pm.Normal("y", Q @ theta, pm.HalfNormal("sigma", 1), observed=y)
    return model


@case("censored survival times by a Potential", {"w": W, "shape": 1.5}, EACH)
def censored_by_potential():
    time = np.exp(0.5 + X @ W) * rng(307).weibull(1.5, N)
    late, seen = time > 3, np.minimum(time, 3)
    with pm.Model() as model:
        scale = pm.math.exp(pm.Normal("b", 0, 5) + X @ ard())
        shape = pm.HalfNormal("shape", 3)
        pm.Weibull("y", alpha=shape, beta=scale[~late], observed=seen[~late])
        pm.Potential("survived", -((seen[late] / scale[late]) ** shape))
    return model


CLASSES = np.zeros((P, 3))
CLASSES[0, 0], CLASSES[3, 1], CLASSES[5, 2] = 1.0, -1.0, 0.8


@case("counts of three classes", {"w": CLASSES}, "sparse matrix, a precision per weight")
def multinomial():
    odds = np.exp(X @ CLASSES)
    y = rng(308).multinomial(20, odds / odds.sum(axis=1, keepdims=True))
    with pm.Model() as model:
        w = ard(shape=(P, 3))
        pm.Multinomial("y", n=20, p=pm.math.softmax(X @ w, axis=-1), observed=y)
    return model


@case("a response that has the predictor of another times a factor", {"w": W, "factor": 0.5}, EACH)
def shared_up_to_a_factor():
    first, second = X @ W + 0.5 * rng(309).normal(size=N), rng(310).poisson(np.exp(0.2 + 0.5 * X @ W))
    with pm.Model() as model:
        eta = X @ ard()
        factor = pm.HalfNormal("factor", 1)
        pm.Normal("first", eta, pm.HalfNormal("sigma", 1), observed=first)
        pm.Poisson("second", pt.exp(pm.Normal("b", 0, 1) + factor * eta), observed=second)
    return model


@case("truncated counts", {"w": 0.5 * W}, EACH)
def truncated_counts():
    y = rng(311).poisson(np.exp(1 + X @ (0.5 * W)))
    with pm.Model() as model:
        rate = pm.math.exp(pm.Normal("b", 0, 5) + X[y > 0] @ ard())
        pm.Truncated("y", pm.Poisson.dist(rate), lower=1, observed=y[y > 0])
    return model


@case("missing values in the columns", refused="'X_unobserved'.*multiplied by 'w'")
def missing_columns():
    holes = np.where(rng(312).random(X.shape) < 0.05, np.nan, X)
    with pm.Model() as model:
        columns = pm.Normal("X", 0, 1, observed=holes)
        pm.Normal("y", columns @ ard(), 1.0, observed=X @ W + rng(313).normal(size=N))
    return model
