"""Likelihoods of counts, of yes or no, of ordered answers and of several classes over sparse weights."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from scipy.special import expit, ndtr

from .case import case
from .data import FEATURES, LOW, STEEP, B, N, P, X, rng

EACH = "sparse vector w, a precision per weight"
MATRIX = "sparse matrix w, a precision per weight"
LOG = B + X @ LOW
BINARY = {"w": STEEP, "b": B}
COUNT = {"w": LOW, "b": B}
ONE = 1.0 + X @ LOW  # for counts of which some are taken for zeros


def ard():
    """The sparse weights of most models in this file."""
    s = pm.HalfCauchy("s", 1, shape=P)
    return pm.Normal("w", 0, s, shape=P)


@case("logistic regression", BINARY, EACH)
def logit():
    y = rng(80).random(N) < expit(B + X @ STEEP)
    with pm.Model(coords={"feature": FEATURES}) as model:
        s = pm.HalfNormal("s", 2, dims="feature")
        w = pm.Normal("w", 0, s, dims="feature")
        b = pm.Normal("b", 0, 2.5)
        p = pm.Deterministic("p", pm.math.invlogit(b + pm.math.dot(X, w)))
        pm.Bernoulli("y", p=p, observed=y.astype(int))
    return model


@case("probit regression", BINARY, EACH)
def probit():
    y = rng(81).random(N) < ndtr(B + X @ STEEP)
    with pm.Model() as model:
        w = ard()
        b = pm.Normal("b", 0, 2.5)
        pm.Bernoulli("y", p=pm.math.invprobit(b + X @ w), observed=y)
    return model


@case("complementary log-log regression", BINARY, EACH)
def cloglog():
    y = rng(82).random(N) < -np.expm1(-np.exp(B + X @ STEEP))
    with pm.Model() as model:
        w = ard()
        b = pm.Normal("b", 0, 2.5)
        pm.Bernoulli("y", p=1 - pm.math.exp(-pm.math.exp(b + X @ w)), observed=y.astype(int))
    return model


TRIALS = rng(83).integers(5, 20, size=N)


@case("binomial counts with a number of trials each", COUNT, EACH)
def binomial():
    y = rng(84).binomial(TRIALS, expit(LOG))
    with pm.Model() as model:
        w = ard()
        b = pm.Normal("b", 0, 2.5)
        pm.Binomial("y", n=TRIALS, logit_p=b + X @ w, observed=y)
    return model


@case("beta-binomial counts", {**COUNT, "phi": 10.0}, EACH)
def beta_binomial():
    draw, mean = rng(85), expit(LOG)
    y = draw.binomial(TRIALS, draw.beta(10 * mean, 10 * (1 - mean)))
    with pm.Model() as model:
        w = ard()
        b = pm.Normal("b", 0, 2.5)
        phi = pm.HalfNormal("phi", 20)
        p = pm.math.sigmoid(b + X @ w)
        pm.BetaBinomial("y", alpha=p * phi, beta=(1 - p) * phi, n=TRIALS, observed=y)
    return model


EXPOSURE = rng(86).uniform(0.5, 3, size=N)


@case("Poisson counts with an exposure", COUNT, EACH)
def poisson_exposure():
    y = rng(87).poisson(EXPOSURE * np.exp(LOG))
    with pm.Model() as model:
        w = ard()
        b = pm.Normal("b", 0, 2.5)
        pm.Poisson("y", mu=EXPOSURE * pm.math.exp(b + X @ w), observed=y)
    return model


@case("Poisson counts with a log-exposure as pm.Data", COUNT, EACH)
def poisson_offset():
    y = rng(88).poisson(EXPOSURE * np.exp(LOG))
    with pm.Model(coords={"feature": FEATURES}) as model:
        offset = pm.Data("offset", np.log(EXPOSURE))
        s = pm.Exponential("s", 1, dims="feature")
        w = pm.Normal("w", 0, s, dims="feature")
        b = pm.Normal("b", 0, 2.5)
        rate = pm.Deterministic("rate", pt.exp(offset + b + X @ w))
        pm.Poisson("y", mu=rate, observed=y)
    return model


@case("negative binomial counts", {**COUNT, "dispersion": 3.0}, EACH)
def negative_binomial():
    y = rng(89).negative_binomial(3, 3 / (3 + np.exp(LOG)))
    with pm.Model() as model:
        w = ard()
        b = pm.Normal("b", 0, 2.5)
        dispersion = pm.Exponential("dispersion", 0.3)
        pm.NegativeBinomial("y", mu=pm.math.exp(b + X @ w), alpha=dispersion, observed=y)
    return model


@case("negative binomial counts with an exposure", {**COUNT, "dispersion": 3.0}, EACH)
def negative_binomial_exposure():
    y = rng(102).negative_binomial(3, 3 / (3 + EXPOSURE * np.exp(LOG)))
    with pm.Model(coords={"feature": FEATURES}) as model:
        s = pm.HalfNormal("s", 1, dims="feature")
        w = pm.Normal("w", 0, s, dims="feature")
        b = pm.Normal("b", 0, 2.5)
        dispersion = pm.Exponential("dispersion", 0.3)
        pm.NegativeBinomial("y", mu=EXPOSURE * pm.math.exp(b + X @ w), alpha=dispersion, observed=y)
    return model


def with_zeros(counts, share, seed):
    """Some of the counts taken for zeros."""
    return np.where(rng(seed).random(N) < share, 0, counts)


@case("zero-inflated Poisson counts", {"w": LOW, "b": 1.0, "psi": 0.7}, EACH)
def zero_inflated_poisson():
    y = with_zeros(rng(90).poisson(np.exp(ONE)), 0.3, 91)
    with pm.Model() as model:
        w = ard()
        b = pm.Normal("b", 0, 2.5)
        psi = pm.Beta("psi", 1, 1)
        pm.ZeroInflatedPoisson("y", psi=psi, mu=pm.math.exp(b + X @ w), observed=y)
    return model


@case("zero-inflated negative binomial counts", {"w": LOW, "b": 1.0}, EACH)
def zero_inflated_negative_binomial():
    y = with_zeros(rng(92).negative_binomial(5, 5 / (5 + np.exp(ONE))), 0.3, 93)
    with pm.Model() as model:
        w = ard()
        b = pm.Normal("b", 0, 2.5)
        psi = pm.Beta("psi", 1, 1)
        alpha = pm.Gamma("alpha", 2, 0.3)
        pm.ZeroInflatedNegativeBinomial("y", psi=psi, mu=pm.math.exp(b + X @ w), alpha=alpha, observed=y)
    return model


@case("hurdle Poisson counts", {"w": LOW, "b": 1.0, "psi": 0.7}, EACH)
def hurdle_poisson():
    draw = rng(94)
    y = draw.poisson(np.exp(ONE))
    while (y == 0).any():
        y = np.where(y == 0, draw.poisson(np.exp(ONE)), y)
    with pm.Model() as model:
        w = ard()
        b = pm.Normal("b", 0, 2.5)
        psi = pm.Beta("psi", 1, 1)
        pm.HurdlePoisson("y", psi=psi, mu=pm.math.exp(b + X @ w), observed=with_zeros(y, 0.3, 95))
    return model


@case("hurdle negative binomial counts", {"w": LOW, "b": 1.0, "psi": 0.7}, EACH)
def hurdle_negative_binomial():
    draw = rng(96)
    y = draw.negative_binomial(5, 5 / (5 + np.exp(ONE)))
    while (y == 0).any():
        y = np.where(y == 0, draw.negative_binomial(5, 5 / (5 + np.exp(ONE))), y)
    with pm.Model() as model:
        w = ard()
        b = pm.Normal("b", 0, 2.5)
        psi = pm.Beta("psi", 1, 1)
        alpha = pm.Gamma("alpha", 2, 0.3)
        pm.HurdleNegativeBinomial("y", psi=psi, mu=pm.math.exp(b + X @ w), alpha=alpha, observed=with_zeros(y, 0.3, 97))
    return model


CUTS = np.array([-1.5, 0.0, 1.5])


@case("ordered logistic regression", {"w": STEEP, "cutpoints": CUTS}, EACH)
def ordered_logistic():
    latent = X @ STEEP + rng(98).logistic(size=N)
    with pm.Model() as model:
        w = ard()
        cutpoints = pm.Normal("cutpoints", [-1, 0, 1], 5, transform=pm.distributions.transforms.ordered)
        pm.OrderedLogistic("y", eta=X @ w, cutpoints=cutpoints, observed=np.searchsorted(CUTS, latent))
    return model


@case("ordered probit regression", {"w": STEEP, "cutpoints": CUTS}, EACH)
def ordered_probit():
    latent = X @ STEEP + rng(99).normal(size=N)
    with pm.Model() as model:
        w = ard()
        cutpoints = pm.Normal(
            "cutpoints", mu=0, sigma=5, shape=3, initval=[-1, 0, 1], transform=pm.distributions.transforms.ordered
        )
        pm.OrderedProbit("y", eta=X @ w, cutpoints=cutpoints, observed=np.searchsorted(CUTS, latent))
    return model


BY_CLASS = np.zeros((P, 3))  # a column matters to one class at most
BY_CLASS[[0, 2, 5], [0, 1, 2]] = 2.0, -2.0, 2.0
KIND = np.argmax(X @ BY_CLASS + rng(100).gumbel(size=(N, 3)), axis=1)


@case("softmax regression", {"w": BY_CLASS}, MATRIX)
def softmax():
    with pm.Model(coords={"feature": FEATURES, "kind": ["a", "b", "c"]}) as model:
        s = pm.HalfCauchy("s", 1, dims=("feature", "kind"))
        w = pm.Normal("w", 0, s, dims=("feature", "kind"))
        b = pm.Normal("b", 0, 2, dims="kind")
        p = pm.math.softmax(b + X @ w, axis=1)
        pm.Categorical("y", p=p, observed=KIND)
    return model


PINNED = np.zeros((P, 2))
PINNED[[0, 2], [0, 1]] = 2.0, -2.0
PINNED_KIND = np.argmax(np.c_[np.zeros(N), X @ PINNED] + rng(101).gumbel(size=(N, 3)), axis=1)


@case(
    "softmax regression with a reference class",
    {"w": PINNED, "b": [0.0, 0.0]},
    "sparse matrix w, a precision per weight",
)
def softmax_with_reference():
    with pm.Model() as model:
        s = pm.HalfNormal("s", 2, shape=(P, 2))
        w = pm.Normal("w", 0, s, shape=(P, 2))
        b = pm.Normal("b", 0, 2, shape=2)
        eta = pt.concatenate([pt.zeros((N, 1)), b + pm.math.dot(X, w)], axis=1)
        pm.Categorical("y", p=pm.math.softmax(eta, axis=1), observed=PINNED_KIND)
    return model


@case("softmax regression, a vector per class", {"w1": PINNED[:, 0], "w2": PINNED[:, 1]}, "sparse vectors w1 and w2")
def softmax_stacked():
    with pm.Model() as model:
        w1 = pm.Normal("w1", 0, pm.HalfCauchy("s1", 1, shape=P), shape=P)
        w2 = pm.Normal("w2", 0, pm.HalfCauchy("s2", 1, shape=P), shape=P)
        b1 = pm.Normal("b1", 0, 2)
        b2 = pm.Normal("b2", 0, 2)
        eta = pt.stack([pt.zeros(N), b1 + X @ w1, b2 + X @ w2], axis=1)
        pm.Categorical("y", logit_p=eta, observed=PINNED_KIND)
    return model
