"""Fits that NUTS starts from."""

from dataclasses import replace

import numpy as np

import bayes_sparse as bs
from bayes_sparse.fitting.choices import choose_method
from bayes_sparse.fitting.families import Task, find
from bayes_sparse.inputs.prepare import prepare

RNG = np.random.default_rng(5)
X = RNG.standard_normal((60, 3)) * [1.0, 5.0, 0.2] + [0.0, 20.0, -3.0]
Z = (X - X.mean(axis=0)) / X.std(axis=0)
ETA = 0.9 * Z[:, 0] - 0.6 * Z[:, 1]
TARGETS = {
    "normal": 2 * ETA + 7.0 + 0.5 * RNG.standard_normal(60),
    "student_t": 2 * ETA + 7.0 + 0.5 * RNG.standard_t(4, size=60),
    "bernoulli": (2 * ETA + RNG.logistic(size=60) > 0).astype(int),
    "probit": (ETA + np.random.default_rng(6).standard_normal(60) > 0).astype(int),
    "poisson": RNG.poisson(np.exp(ETA + 1.0)),
    "gamma": np.random.default_rng(7).gamma(3.0, np.exp(ETA) / 3.0),
    "beta": np.random.default_rng(8).beta(5 * np.exp(ETA), 5.0),
    "ordinal": np.digitize(ETA + np.random.default_rng(9).logistic(size=60), [-0.5, 1.0]),
    "categorical": np.argmax(np.stack([0 * ETA, 1.5 * Z[:, 0], 1.5 * Z[:, 1]]) + RNG.gumbel(size=(3, 60)), axis=0),
}


def fitted(model, likelihood, method="evidence", smoothness=0.0, keep=None, basis=None):
    """What was prepared, and what a method found."""
    prepared = prepare((X, TARGETS[likelihood]), None, likelihood, basis or bs.basis.linear(), keep, None, None)
    chosen = choose_method(method, model, None, likelihood)
    if chosen.family != "l1_path":
        chosen = replace(chosen, smoothness=smoothness)
    return prepared, find(Task(model.problem(prepared), model, chosen, None), False)
