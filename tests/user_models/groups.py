"""Scales shared by some weights or by all, scalar slopes, and weights that are sparse because the user says so."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from .case import case
from .data import FEATURES, SIGMA, STEEP, B, N, P, W, X, Y, rng

REST = {"b": B, "sigma": SIGMA}
BLOCK = np.array([0, 0, 0, 1, 1, 1, 2, 2])  # of each column
BY_BLOCK = np.array([1.2, -0.9, 0.7, 0, 0, 0, 0, 0])  # one block matters
Y_BLOCK = B + X @ BY_BLOCK + SIGMA * rng(37).normal(size=N)
IN_BLOCKS = {"w": BY_BLOCK, **REST}
DENSE = np.array([0.6, -0.8, 0.5, 0.9, -0.4, 0.7, -0.6, 0.3])
Y_DENSE = B + X @ DENSE + SIGMA * rng(31).normal(size=N)
RMS = np.sqrt(np.mean(DENSE**2))
RIDGE = {"w": DENSE, "tau": RMS, **REST}


@case("a scale per group of columns", IN_BLOCKS, "sparse vector w, 3 precisions by group")
def scale_of_group():
    with pm.Model(coords={"feature": FEATURES, "block": ["body", "work", "home"]}) as model:
        s = pm.HalfCauchy("s", 1, dims="block")
        w = pm.Normal("w", 0, s[BLOCK], dims="feature")
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", b + X @ w, sigma, observed=Y_BLOCK)
    return model


@case("a precision per group of columns", IN_BLOCKS, "sparse vector w, 3 precisions by group")
def precision_of_group():
    with pm.Model() as model:
        alpha = pm.Gamma("alpha", 0.1, 0.1, shape=3)
        w = pm.Normal("w", 0, tau=alpha[BLOCK], shape=P)
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", b + pm.math.dot(X, w), sigma, observed=Y_BLOCK)
    return model


@case("a scale per group of columns, non-centred", IN_BLOCKS, "sparse vector w, 3 precisions by group")
def non_centred_group():
    with pm.Model() as model:
        s = pm.HalfNormal("s", 1, shape=3)
        z = pm.Normal("z", 0, 1, shape=P)
        w = pm.Deterministic("w", z * s[BLOCK])
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", b + X @ w, sigma, observed=Y_BLOCK)
    return model


@case("a scale per weight times one per group", IN_BLOCKS, "sparse vector w, a precision per weight")
def local_times_group():
    with pm.Model() as model:
        s = pm.HalfCauchy("s", 1, shape=3)
        lam = pm.HalfCauchy("lam", 1, shape=P)
        w = pm.Normal("w", 0, lam * s[BLOCK], shape=P)
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", b + X @ w, sigma, observed=Y_BLOCK)
    return model


@case(
    "two vectors with a scale each",
    {"w": BY_BLOCK[:3], "v": BY_BLOCK[3:], **REST},
    "vectors w and v, one precision each",
)
def two_vectors():
    with pm.Model() as model:
        s_w = pm.HalfNormal("s_w", 1)
        s_v = pm.HalfNormal("s_v", 1)
        w = pm.Normal("w", 0, s_w, shape=3)
        v = pm.Normal("v", 0, s_v, shape=5)
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", b + X[:, :3] @ w + X[:, 3:] @ v, sigma, observed=Y_BLOCK)
    return model


@case("scales of groups of slopes put side by side", IN_BLOCKS, "sparse vector w, 2 precisions by group")
def scales_concatenated():
    with pm.Model() as model:
        s1 = pm.HalfNormal("s1", 1)
        s2 = pm.HalfNormal("s2", 1)
        w = pm.Normal("w", 0, pt.concatenate([pt.repeat(s1, 3), pt.repeat(s2, 5)]))
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", b + X @ w, sigma, observed=Y_BLOCK)
    return model


@case("ridge regression with a HalfNormal scale", RIDGE, "vector w, one scale, never pruned")
def ridge():
    with pm.Model(coords={"feature": FEATURES}) as model:
        tau = pm.HalfNormal("tau", 1)
        w = pm.Normal("w", 0, tau, dims="feature")
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", b + X @ w, sigma, observed=Y_DENSE)
    return model


@case("ridge regression with a HalfCauchy scale, non-centred", RIDGE, "vector w, one scale, never pruned")
def non_centred_ridge():
    with pm.Model() as model:
        tau = pm.HalfCauchy("tau", 1)
        z = pm.Normal("z", 0, 1, shape=P)
        w = pm.Deterministic("w", tau * z)
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", b + X @ w, sigma, observed=Y_DENSE)
    return model


@case("logistic ridge regression", {"w": 1.5 * DENSE, "b": B}, "vector w, one scale, never pruned")
def logistic_ridge():
    y = rng(32).random(N) < 1 / (1 + np.exp(-(B + 1.5 * X @ DENSE)))
    with pm.Model() as model:
        tau = pm.HalfCauchy("tau", 1)
        w = pm.Normal("w", 0, tau, shape=P)
        b = pm.Normal("b", 0, 5)
        pm.Bernoulli("y", logit_p=b + X @ w, observed=y)
    return model


@case(
    "sparse weights beside a ridge",
    {"w": W, "v": DENSE, **REST},
    "sparse vector w, a precision per weight; vector v, one scale",
)
def sparse_beside_ridge():
    Z = rng(33).normal(size=(N, P))
    with pm.Model() as model:
        s = pm.HalfCauchy("s", 1, shape=P)
        w = pm.Normal("w", 0, s, shape=P)
        tau = pm.HalfNormal("tau", 1)
        v = pm.Normal("v", 0, tau, shape=P)
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", b + X @ w + Z @ v, sigma, observed=Y + Z @ DENSE)
    return model


SCALARS = {"b_age": 1.5, "b_income": 0.0, "b_height": -1.0, "b_score": 0.8, "intercept": B, "sigma": SIGMA}


@case("scalar slopes, a scale each", SCALARS, "scalars b_age, b_income ..., a precision each")
def scalar_slopes():
    age, income, height, score = X[:, 0], X[:, 1], X[:, 2], X[:, 5]
    with pm.Model() as model:
        intercept = pm.Normal("intercept", 0, 5)
        b_age = pm.Normal("b_age", 0, pm.HalfNormal("s_age", 1))
        b_income = pm.Normal("b_income", 0, pm.HalfNormal("s_income", 1))
        b_height = pm.Normal("b_height", 0, pm.HalfNormal("s_height", 1))
        b_score = pm.Normal("b_score", 0, pm.HalfNormal("s_score", 1))
        sigma = pm.HalfNormal("sigma", 1)
        mu = intercept + b_age * age + b_income * income + b_height * height + b_score * score
        pm.Normal("y", mu, sigma, observed=Y)
    return model


def scalar_slopes_of_known_scale():
    age, income, height, score = X[:, 0], X[:, 1], X[:, 2], X[:, 5]
    with pm.Model() as model:
        intercept = pm.Normal("intercept", 0, 5)
        b_age = pm.Normal("b_age", 0, 2)
        b_income = pm.Normal("b_income", 0, 2)
        b_height = pm.Normal("b_height", 0, 2)
        b_score = pm.Normal("b_score", 0, 2)
        sigma = pm.HalfNormal("sigma", 1)
        mu = intercept + b_age * age + b_income * income + b_height * height + b_score * score
        pm.Normal("y", mu, sigma, observed=Y)
    return model


_FOUR = ["b_age", "b_income", "b_height", "b_score"]
case("scalar slopes named as sparse", SCALARS, "the scalars named, a precision each", sparse=_FOUR)(
    scalar_slopes_of_known_scale
)
case("some scalar slopes named as sparse", SCALARS, "the scalars named, a precision each", sparse=_FOUR[1:3])(
    scalar_slopes_of_known_scale
)
case(
    "scalar slopes of which none is named as sparse",
    refused=r"[Nn]o sparse.*'b_age'.*'b_income'.*'b_height'.*'b_score'.*sparse=",
)(scalar_slopes_of_known_scale)


@case("a vector named as sparse", {"w": STEEP, "b": B}, "sparse vector w, a precision per weight", sparse=["w"])
def named_vector():
    y = rng(34).random(N) < 1 / (1 + np.exp(-(B + X @ STEEP)))
    with pm.Model(coords={"feature": FEATURES}) as model:
        w = pm.Normal("w", 0, 2.5, dims="feature")
        b = pm.Normal("b", 0, 2.5)
        pm.Bernoulli("y", logit_p=b + X @ w, observed=y.astype(int))
    return model


@case(
    "a vector and a scalar named as sparse",
    {"w": W[1:], "b_age": W[0], **REST},
    "sparse vector w and scalar b_age, a precision per weight",
    sparse=["b_age", "w"],
)
def named_vector_and_scalar():
    with pm.Model() as model:
        b_age = pm.Normal("b_age", 0, 1)
        w = pm.Normal("w", 0, 1, shape=P - 1)
        b = pm.Normal("b", 0, 5)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", b + b_age * X[:, 0] + X[:, 1:] @ w, sigma, observed=Y)
    return model


LEVEL = rng(35).integers(0, 5, size=N)
LEVELS = np.array([1.0, -0.7, 0.4, 0.0, -0.7])


@case(
    "a factor whose levels share a scale, beside sparse columns",
    {"w": W, "level": LEVELS, "sigma": SIGMA},
    "sparse vector w, a precision per weight; vector level, one scale",
)
def factor():
    with pm.Model(coords={"feature": FEATURES, "levels": list("abcde")}) as model:
        s = pm.HalfCauchy("s", 1, dims="feature")
        w = pm.Normal("w", 0, s, dims="feature")
        level = pm.Normal("level", 0, pm.HalfNormal("s_level", 1), dims="levels")
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", X @ w + level[LEVEL], sigma, observed=Y - B + LEVELS[LEVEL])
    return model


MATRIX = np.array(
    [[1.0, -0.8, 0.6], [0, 0, 0], [0.7, 0.9, -1.1], [0, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0]]
)


@case(
    "several responses, a scale per column for all of them",
    {"w": MATRIX, "sigma": [0.5, 0.5, 0.5]},
    "sparse matrix w, a precision per row of it",
)
def several_responses():
    y = X @ MATRIX + 0.5 * rng(36).normal(size=(N, 3))
    with pm.Model(coords={"feature": FEATURES, "response": ["a", "b", "c"]}) as model:
        s = pm.HalfCauchy("s", 1, dims="feature")
        w = pm.Normal("w", 0, s[:, None], dims=("feature", "response"))
        sigma = pm.HalfNormal("sigma", 1, dims="response")
        pm.Normal("y", X @ w, sigma, observed=y)
    return model
