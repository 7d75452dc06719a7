"""Fits whose conditional density is looked at, and how their draws go back to the coordinates of that density."""

from dataclasses import replace

import numpy as np

import bayes_sparse as bs
from bayes_sparse.fitting.choices import choose_method
from bayes_sparse.fitting.families import Task, find
from bayes_sparse.inputs.prepare import prepare

N = 60
RNG = np.random.default_rng(5)
X = RNG.standard_normal((N, 3)) * [1.0, 5.0, 0.2] + [0.0, 20.0, -3.0]
Z = (X - X.mean(axis=0)) / X.std(axis=0)
ETA = 0.9 * Z[:, 0] - 0.6 * Z[:, 1]
TARGETS = {
    "normal": 2 * ETA + 7.0 + 0.5 * RNG.standard_normal(N),
    "student_t": 2 * ETA + 7.0 + 0.5 * RNG.standard_t(4, size=N),
    "bernoulli": (2 * ETA + RNG.logistic(size=N) > 0).astype(int),
    "poisson": RNG.poisson(np.exp(ETA + 1.0)),
    "negative_binomial": RNG.poisson(RNG.gamma(4.0, np.exp(ETA + 1.0) / 4.0)),
    "categorical": np.argmax(np.stack([0 * ETA, 1.5 * Z[:, 0], 1.5 * Z[:, 1]]) + RNG.gumbel(size=(3, N)), axis=0),
}
WEIGHTS, OFFSET = np.linspace(0.5, 2.0, N), np.linspace(-0.4, 0.4, N)
MIDDLE = np.average(X, axis=0, weights=WEIGHTS)  # weights are numbers of rows, for the columns' units too
ZW = (X - MIDDLE) / np.sqrt(np.average((X - MIDDLE) ** 2, axis=0, weights=WEIGHTS))


def fitted(model, data, likelihood, method="evidence", hyper=None, smoothness=0.0, **given):
    """What was prepared, and what a method found."""
    arguments = {"keep": None, "weights": None, "offset": None} | given
    prepared = prepare(data, None, likelihood, bs.basis.linear(), **arguments)
    chosen = choose_method(method, model, hyper, likelihood)
    if chosen.family != "l1_path":
        chosen = replace(chosen, smoothness=smoothness)
    return prepared, find(Task(model.problem(prepared), model, chosen, hyper), False)


def standardised_draws(prepared, tree):
    """All weights (S, M), zeros where pruned, and biases (S, ...) of the standardised columns."""
    posterior = bs.unpruned(tree)["posterior"].to_dataset()
    w = posterior["w"].to_numpy().reshape(-1, posterior.sizes["basis"])
    bias = posterior["bias"].to_numpy().reshape(len(w), -1)
    classes = w.shape[1] // len(prepared.names)  # 1 also where every class has columns of its own
    shift, scale = np.tile(prepared.shift, classes), np.tile(prepared.scale, classes)
    moved = (w * shift).reshape(len(w), bias.shape[1], -1).sum(axis=2)
    return w * scale, bias + moved


def slopes(density, x, step=1e-5):
    """Central differences."""
    return np.array([(density(x + s)[0] - density(x - s)[0]) / (2 * step) for s in step * np.eye(len(x))])


def points(density, count=3, seed=0):
    """Points about a density's mean, two of its sds away."""
    rng = np.random.default_rng(seed)
    return density.mean + 2 * rng.standard_normal((count, len(density.mean))) @ density.factor.T
