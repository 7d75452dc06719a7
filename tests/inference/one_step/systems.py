"""Data and systems that the tests of one-step methods share."""

import matplotlib as mpl
import numpy as np

import bayes_sparse as bs

mpl.use("Agg")

RNG = np.random.default_rng(93)
N, P = 60, 4
X = RNG.standard_normal((N, P)) * [1.0, 5.0, 0.2, 1.0] + [0.0, 20.0, -3.0, 0.0]
Z = (X - X.mean(axis=0)) / X.std(axis=0)
NEW = X[:7] + 0.1 * RNG.standard_normal((7, P))
ETA = 1.2 * Z[:, 0] - 0.8 * Z[:, 1]
TARGETS = {
    "normal": ETA + 7.0 + 0.5 * RNG.standard_normal(N),
    "student_t": ETA + 0.5 * RNG.standard_t(4, N),
    "bernoulli": np.where(ETA + RNG.logistic(size=N) > 0, "yes", "no"),
    "poisson": RNG.poisson(np.exp(ETA + 0.5)),
    "negative_binomial": RNG.poisson(RNG.gamma(4.0, np.exp(ETA + 0.5) / 4.0)),
    "categorical": np.array(["a", "b", "c"])[np.argmax(np.c_[ETA, -ETA, Z[:, 2]] + RNG.gumbel(size=(N, 3)), axis=1)],
}
BINARY = (TARGETS["bernoulli"] == "yes").astype(int)
NUISANCE = {"normal": ["sigma"], "student_t": ["sigma"], "negative_binomial": ["dispersion"]}
SYSTEMS = {
    "GREVM": ("ard_gaussian", {"method": "revm"}),
    "LREVM": ("laplace_eigen", {}),
    "R_0": ("ard_gaussian", {"method": "full_matrix"}),
}
BARE = bs.basis.precomputed()
SMALL = {"draws": 20, "chains": 2, "random_seed": 0}


def fit(system, data, **settings):
    model, own = SYSTEMS[system]
    return bs.fit(model, data, **({"draws": 0} | own | settings))
