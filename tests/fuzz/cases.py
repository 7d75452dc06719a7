"""Model, data and arguments of a case, made of its number."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pymc as pm
from scipy.sparse import csr_array

import bayes_sparse as bs

METHODS = {
    "ard_gaussian": ["evidence", "sequential", "mackay", "em", "variational", "revm", "full_matrix"],
    "laplace_eigen": ["evidence", "revm"],
    "gaussian_eigen": ["evidence", "revm"],
    "jeffreys_laplace": ["evidence", "reweighted", "coordinate_descent", "fuzzy", "cv"],
    "horseshoe": ["evidence", "global_local"],
    "student_multinomial": ["evidence", "mackay", "one_vs_rest"],
}
MEASURED, COUNTS = ("normal", "student_t"), ("poisson", "negative_binomial")
CLASSES = ("bernoulli", "probit", "binomial", "ordinal", "categorical")
LIKELIHOODS = [*MEASURED, *COUNTS, "gamma", "beta", *CLASSES]
APPROXIMATIONS = [None, None, None, "laplace", "kl", "ep", "variational"]
TAKE_ONE = ("evidence", "sequential", "mackay", "em", "revm")
SCALES = [1e-300, 1e-160, 1e-100, 1e-30, 1e-8, 1e8, 1e30, 1e100, 1e160, 1e300]
FORMULAS = ["y ~ x0 * C(colour)", "y ~ poly(x0, 3) + flag", "y ~ log(x0) + colour - 1"]
FOLLOW_UPS = ["relevance", "diagnose", "correct", "loo", "summary", "stored", "compare", "unpruned", "log_evidence"]


@dataclass
class Case:
    """What is handed to `fit`, the rows to predict for, and what is done with the tree."""

    model: Any
    data: Any
    arguments: dict[str, Any]
    rows: Any
    follow_ups: list[str]


def case(number):
    """One case; everything about it follows from its number."""
    rng = np.random.default_rng([20_262, number])
    model = str(rng.choice([*METHODS, "ard_gaussian", "ard_gaussian", "own"]))
    n, p = int(rng.choice([1, 2, 4, 8, 20, 25, 40, 40, 60])), int(rng.choice([1, 1, 2, 3, 5, 12, 30]))
    likelihood = "categorical" if model == "student_multinomial" else str(rng.choice(LIKELIHOODS))
    with np.errstate(all="ignore"):
        X = columns(rng, n, p)
        y = targets(rng, X, likelihood)
    arguments = {"draws": int(rng.choice([0, 0, 7, 60])), "chains": 2, "random_seed": 1, "progressbar": False}
    chosen = [str(name) for name in rng.choice(FOLLOW_UPS, size=2, replace=False)]
    follow_ups = chosen + ["report"] * (rng.random() < 0.01)
    if model == "own":
        return Case(own_model(rng, X, y), None, arguments, None, follow_ups)
    arguments |= {"likelihood": named(likelihood), "method": str(rng.choice(METHODS[model])), "basis": basis(rng)}
    arguments |= approximation(rng, model, arguments["method"]) | by_row(rng, n)
    kind = rng.random()
    if kind < 0.12:
        table = frame(rng, X, y)
        return Case(model, table, arguments | of_frame(rng, model), table, follow_ups)
    if kind < 0.2:
        X = csr_array(X)
    elif kind < 0.23:
        X = np.clip(X, -3e38, 3e38).astype(np.float32)
    if rng.random() < 0.1:
        arguments["keep"] = "x0"
    return Case(model, (X, y), arguments, X, follow_ups)


def approximation(rng, model, method):
    chosen = rng.choice(np.array(APPROXIMATIONS, dtype=object))
    fits = method in TAKE_ONE and model != "jeffreys_laplace"
    return {"approximation": chosen} if chosen is not None and (fits or rng.random() < 0.1) else {}


def by_row(rng, n):
    """Weights and offsets."""
    found = {}
    if rng.random() < 0.2:
        found["weights"] = rng.choice([0.0, 0.5, 1.0, 3.0, 1e6], size=n)
        if rng.random() < 0.5:
            found["weights"] = rng.integers(0, 4, size=n)
    if rng.random() < 0.2:
        found["offset"] = rng.normal(size=n) * rng.choice([0.0, 1.0, 30.0, 1e4, 1e200])
    return found


def columns(rng, n, p):
    """Features, with something wrong with some of them."""
    X = rng.normal(size=(n, p))
    for _ in range(rng.integers(3)):
        j = int(rng.integers(p))
        X[:, j] = [
            np.zeros(n),
            np.full(n, 3.7),
            X[:, 0],
            -2 * X[:, 0] + 1e-9 * X[:, j],
            X[:, j] + 1e8,
            np.round(X[:, j]),
            (np.arange(n) == 0) * 1.0,
            X[:, j] * rng.choice(SCALES),
            rng.standard_cauchy(n) ** 3,
        ][rng.integers(9)]
    if rng.random() < 0.1:
        X = X * rng.choice(SCALES)
    return np.repeat(X[:1], n, axis=0) if rng.random() < 0.03 else X


def targets(rng, X, likelihood):
    """Of a likelihood, perhaps extreme: separable, constant, with an outlier, of another size."""
    eta = np.nan_to_num(X[:, 0] / max(np.abs(X[:, 0]).max(), 1e-300)) * rng.choice([0.0, 1.0, 3.0, 30.0])
    n, noise = len(eta), rng.choice([0.0, 0.1, 1.0])
    kind = rng.integers(8)
    if likelihood in MEASURED:
        y = eta + noise * rng.normal(size=n)
        y[0] = y[0] if kind else rng.choice([1e6, 1e40, 1e150])
        return y * rng.choice(SCALES) if kind == 1 else y + 1e9 if kind == 2 else y
    if likelihood in ("bernoulli", "probit"):
        return eta + noise * rng.logistic(size=n) > 0
    if likelihood in COUNTS:
        y = rng.poisson(np.exp(np.minimum(eta, 20)))
        return y * rng.choice([0, 1000, 10**12]) if kind == 0 else y
    if likelihood == "gamma":
        return rng.gamma(2.0, np.exp(eta)) * (rng.choice(SCALES) if kind == 0 else 1.0) + 1e-300
    if likelihood == "beta":
        return np.clip(rng.beta(1 + 3 * (eta > 0), 1.0, size=n), 1e-300 if kind else 1e-3, 1 - 1e-16)
    if likelihood == "binomial":
        return rng.binomial(9, 1 / (1 + np.exp(-eta)))
    if likelihood == "ordinal":
        return np.digitize(eta + noise * rng.logistic(size=n), [-0.5, 0.5])
    return np.array(list("abc"))[np.argmax(np.outer(eta, [1, 0, -1]) + noise * rng.gumbel(size=(n, 3)), axis=1)]


def frame(rng, X, y):
    """A frame with words, booleans and, in half of the cases, missing values."""
    table = pd.DataFrame(X[:, :5], columns=[f"x{j}" for j in range(min(X.shape[1], 5))])
    words = np.array(["red", "green", "<b>blue</b>", "only once"], dtype=object)
    table["colour"] = np.where(np.arange(len(X)) == 0, words[3], words[rng.integers(3, size=len(X))])
    table["flag"] = rng.random(len(X)) < 0.3
    if rng.random() < 0.5:
        table.loc[rng.random(len(X)) < 0.2, "x0"] = np.nan
        table.loc[rng.random(len(X)) < 0.2, "colour"] = None
    table["y"] = y
    return table


def of_frame(rng, model):
    """What is asked of a frame."""
    asked = {"target": "y"}
    if rng.random() < 0.3:
        asked = {"formula": str(rng.choice(FORMULAS))}
    if rng.random() < 0.7:
        asked["missing"] = str(rng.choice(["drop", "mean"]))
    if model == "ard_gaussian" and rng.random() < 0.4:
        asked["grouped"] = True
    return asked


def named(likelihood):
    own = {"binomial": bs.likelihoods.binomial(trials=9), "ordinal": bs.likelihoods.ordinal(levels=3)}
    return own.get(likelihood, likelihood)


def basis(rng):
    others = {
        0: bs.basis.rbf(width=float(rng.choice([1e-3, 1.0, 1e3]))),
        1: "inner_product",
        2: "polynomial",
        3: bs.basis.linear(bias=False),
        4: bs.basis.linear(standardise=False),
    }
    kind = int(rng.integers(12))
    return bs.basis.rbf(width="evidence") if kind == 5 and rng.random() < 0.3 else others.get(kind, "linear")


def own_model(rng, X, y):
    """A `pm.Model`, of a normal likelihood or of one that named models do not have."""
    y = np.asarray(y, dtype=float) if np.asarray(y).dtype.kind in "fib" else np.zeros(len(X))
    counts, share = np.minimum(np.floor(np.abs(y)), 1e9).astype(int), 0.001 + 0.998 / (1 + np.exp(-np.clip(y, -9, 9)))
    with pm.Model() as model:
        w = pm.Normal("w", 0, pm.HalfNormal("scale", shape=X.shape[1]), shape=X.shape[1])
        eta, s = pm.math.dot(X, w) + pm.Normal("b", 0, 5), pm.HalfNormal("s")
        chance = pm.math.sigmoid(eta)
        [
            lambda: pm.Truncated("y", pm.Normal.dist(eta, s), lower=-1.0, observed=np.maximum(y, -0.99)),
            lambda: pm.SkewNormal("y", mu=eta, sigma=s, alpha=2.0, observed=y),
            lambda: pm.Laplace("y", eta, s, observed=y),
            lambda: pm.Poisson("y", pm.math.exp(eta), observed=counts),
            lambda: pm.Gumbel("y", eta, s, observed=y),
            lambda: pm.Normal("y", eta, s, observed=y),
            lambda: pm.BetaBinomial("y", chance / s, (1 - chance) / s, n=9, observed=np.minimum(counts, 9)),
            lambda: pm.Beta("y", mu=chance, nu=1 / s, observed=share),
            lambda: pm.ZeroInflatedNegativeBinomial("y", 0.7, mu=pm.math.exp(eta), alpha=1 / s, observed=counts),
        ][rng.integers(9)]()
    return model
