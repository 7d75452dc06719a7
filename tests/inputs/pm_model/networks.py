"""Models without a single linear predictor: a small network, a softmax."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

RNG = np.random.default_rng(5)
INPUTS = RNG.normal(size=(25, 2))
TARGETS = RNG.normal(size=25)
LABELS = RNG.integers(0, 2, size=25)
CLASSES = RNG.integers(0, 3, size=25)


def sparse(name, shape, mean=0.0):
    return pm.Normal(name, mean, tau=pm.Gamma(f"alpha_{name}", 1.0, 1.0, shape=shape), shape=shape)


def network(mean=0.0):
    """Two inputs, three tanh units, one output; the output's bias has a prior of known width."""
    hidden = pt.tanh(pm.Data("inputs", INPUTS) @ sparse("W", (2, 3), mean) + sparse("b", 3))
    return hidden @ sparse("w", 3) + pm.Normal("c", 1.0, 2.0)


def normal_network():
    with pm.Model() as model:
        pm.Normal("y", network(mean=0.3), pm.HalfNormal("sigma", 1.0), observed=TARGETS)
    return model


def bernoulli_network():
    with pm.Model() as model:
        pm.Bernoulli("y", logit_p=network(), observed=LABELS)
    return model


def softmax_model():
    coords = {"feature": ["u", "v"], "class": ["a", "b", "c"], "row": np.arange(25) + 100}
    with pm.Model(coords=coords) as model:
        alpha = pm.HalfFlat("alpha", dims=("feature", "class"))
        W = pm.Normal("W", 0.0, tau=alpha, dims=("feature", "class"))
        bias = pm.Normal("bias", 0.0, 3.0, dims="class")
        pm.Categorical("y", logit_p=INPUTS @ W + bias, observed=CLASSES, dims="row")
    return model
