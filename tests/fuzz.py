"""Fits of everything to nasty data, by number: each ends in finite numbers or in one sentence of ours.

``python -m tests.fuzz`` runs cases one after another and goes on where it was; ``--case 123`` runs one again.
"""

import argparse
import json
import time
import traceback
import warnings
from pathlib import Path

import numpy as np
import pymc as pm
from scipy.sparse import csr_array

import bayes_sparse as bs
from tests.support import assert_one_sentence

PACKAGE = str(Path(bs.__file__).parent)
FOUND = Path("fuzz_output") / "cases.jsonl"
SECONDS = 20.0
METHODS = {
    "ard_gaussian": ["evidence", "sequential", "mackay", "em", "variational", "revm", "full_matrix"],
    "laplace_eigen": ["evidence"],
    "gaussian_eigen": ["evidence"],
    "jeffreys_laplace": ["evidence", "coordinate_descent", "fuzzy", "cv"],
    "horseshoe": ["evidence"],
    "student_multinomial": ["evidence", "mackay", "one_vs_rest"],
}
LIKELIHOODS = [
    "normal",
    "student_t",
    "bernoulli",
    "probit",
    "poisson",
    "negative_binomial",
    "gamma",
    "beta",
    "binomial",
    "ordinal",
    "categorical",
]
APPROXIMATIONS = [None, None, None, "laplace", "kl", "ep", "variational"]
SCALES = [1e-300, 1e-155, 1e-100, 1e-30, 1e-8, 1e8, 1e30, 1e100, 1e155, 1e300]


def case(number):
    """Model, data and arguments of `fit` of one case."""
    rng = np.random.default_rng([20_261, number])
    model = rng.choice([*METHODS, "ard_gaussian", "own"])
    n, p = int(rng.choice([1, 3, 8, 20, 25, 40, 40, 60])), int(rng.choice([1, 1, 2, 3, 5, 12, 30]))
    with np.errstate(all="ignore"):
        X = columns(rng, n, p)
    likelihood = str(rng.choice(LIKELIHOODS))
    if model == "student_multinomial":
        likelihood = "categorical"
    with np.errstate(all="ignore"):
        y = targets(rng, X, likelihood)
    arguments = {"draws": int(rng.choice([0, 0, 7])), "random_seed": 1, "progressbar": False}
    if model == "own":
        return own_model(rng, X, y, likelihood), None, arguments
    arguments |= {"likelihood": named(likelihood), "method": str(rng.choice(METHODS[model])), "basis": basis(rng)}
    approximation = rng.choice(np.array(APPROXIMATIONS, dtype=object))
    takes_one = (
        arguments["method"] in ("evidence", "sequential", "mackay", "em", "revm") and model != "jeffreys_laplace"
    )
    if approximation is not None and (takes_one or rng.random() < 0.1):
        arguments["approximation"] = approximation
    if rng.random() < 0.2:
        arguments["weights"] = rng.choice([0.0, 0.5, 1.0, 3.0, 1e6], size=n)
    if rng.random() < 0.2:
        arguments["offset"] = rng.normal(size=n) * rng.choice([0.0, 1.0, 30.0, 1e4, 1e200])
    if rng.random() < 0.1:
        arguments["keep"] = "x0"
    return str(model), (csr_array(X) if rng.random() < 0.1 else X, y), arguments


def columns(rng, n, p):
    """Features, with something wrong with some of them."""
    X = rng.normal(size=(n, p))
    for _ in range(rng.integers(3)):
        j = int(rng.integers(p))
        kind = rng.integers(9)
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
        ][kind]
    if rng.random() < 0.1:
        X = X * rng.choice(SCALES)
    return np.repeat(X[:1], n, axis=0) if rng.random() < 0.03 else X


def targets(rng, X, likelihood):
    """Of a likelihood, perhaps extreme: separable, constant, with an outlier, of another size."""
    eta = np.nan_to_num(X[:, 0] / max(np.abs(X[:, 0]).max(), 1e-300)) * rng.choice([0.0, 1.0, 3.0, 30.0])
    n, noise = len(eta), rng.choice([0.0, 0.1, 1.0])
    kind = rng.integers(8)
    if likelihood in ("normal", "student_t"):
        y = eta + noise * rng.normal(size=n)
        y[0] = y[0] if kind else rng.choice([1e6, 1e40, 1e150])
        return y * rng.choice(SCALES) if kind == 1 else y + 1e9 if kind == 2 else y
    if likelihood in ("bernoulli", "probit"):
        return eta + noise * rng.logistic(size=n) > 0
    if likelihood in ("poisson", "negative_binomial"):
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


def named(likelihood):
    own = {"binomial": bs.likelihoods.binomial(trials=9), "ordinal": bs.likelihoods.ordinal(levels=3)}
    return own.get(likelihood, likelihood)


def basis(rng):
    kind = rng.integers(10)
    if kind == 0:
        return bs.basis.rbf(width=float(rng.choice([1e-3, 1.0, 1e3])))
    if kind == 1:
        return bs.basis.rbf(width="evidence")
    others = {
        2: "inner_product",
        3: "polynomial",
        4: bs.basis.linear(bias=False),
        5: bs.basis.linear(standardise=False),
    }
    return others.get(int(kind), "linear")


def own_model(rng, X, y, likelihood):
    """A `pm.Model`, of a normal likelihood or of one that named models do not have."""
    y = np.asarray(y, dtype=float) if np.asarray(y).dtype.kind in "fib" else np.zeros(len(X))
    kind = rng.integers(6)
    with pm.Model() as model:
        w = pm.Normal("w", 0, pm.HalfNormal("scale", shape=X.shape[1]), shape=X.shape[1])
        eta, s = pm.math.dot(X, w) + pm.Normal("b", 0, 5), pm.HalfNormal("s")
        if kind == 0:
            pm.Truncated("y", pm.Normal.dist(eta, s), lower=-1.0, observed=np.maximum(y, -0.99))
        elif kind == 1:
            pm.SkewNormal("y", mu=eta, sigma=s, alpha=2.0, observed=y)
        elif kind == 2:
            pm.Laplace("y", eta, s, observed=y)
        elif kind == 3:
            pm.Poisson("y", pm.math.exp(eta), observed=np.minimum(np.floor(np.abs(y)), 1e9).astype(int))
        elif kind == 4:
            pm.Gumbel("y", eta, s, observed=y)
        else:
            pm.Normal("y", eta, s, observed=y)
    return model


def wrong_with(number):
    """What a case does that no fit may; None for nothing."""
    model, data, arguments = case(number)
    started = time.process_time()
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            found = judged(bs.fit(model, data, **arguments), data)
        except Exception as error:  # whatever it is, it is looked at
            found = refused(error)
    seconds = time.process_time() - started
    leaked = [str(w.message) for w in heard if issubclass(w.category, RuntimeWarning)]
    if found is None and leaked:
        found = f"a warning: {leaked[0]}"
    return f"{seconds:.0f} seconds" if found is None and seconds > SECONDS else found


def refused(error):
    last = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{Path(last.filename).name}:{last.lineno}"
    if not isinstance(error, ValueError | TypeError) or not last.filename.startswith(PACKAGE):
        return f"{type(error).__name__} at {where}: {error}"
    try:
        assert_one_sentence(str(error))
    except AssertionError:
        return f"not one sentence at {where}: {error}"
    return None


def judged(tree, data):
    """Numbers of a tree, and of its predictions, that are not finite."""
    evidence = tree["evidence"].to_dataset()
    on_path = "lambda" in evidence and "alpha" not in evidence
    for name in ("coordinate_mean", "covariance_factor", "mean", "theta", *(() if on_path else ("log_evidence",))):
        if not np.isfinite(evidence[name].to_numpy()).all():
            return f"{name} is not finite ({evidence.attrs['status']})"
    for name, values in tree["posterior"].data_vars.items() if "posterior" in tree.children else ():
        if values.dtype.kind == "f" and np.isnan(values.to_numpy()).any():
            return f"draws of {name} are not numbers ({evidence.attrs['status']})"
    if data is not None:
        predicted = bs.predict(tree, data[0])
        for name in ("mean", "sd", "probability"):
            if name in predicted and not np.isfinite(predicted[name].to_numpy()).all():
                return f"the {name} predicted is not finite ({evidence.attrs['status']})"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", type=int, help="run this one alone, and show it")
    parser.add_argument("--cases", type=int, default=2000, help="how many")
    asked = parser.parse_args()
    if asked.case is not None:
        print(case(asked.case))
        print(wrong_with(asked.case) or "nothing wrong")
        return
    FOUND.parent.mkdir(exist_ok=True)
    done = [json.loads(line) for line in FOUND.read_text().splitlines()] if FOUND.exists() else []
    known = {one["case"] for one in done}
    for number in range(asked.cases):
        if number not in known:
            done.append({"case": number, "wrong": wrong_with(number)})
            with FOUND.open("a") as file:
                file.write(json.dumps(done[-1]) + "\n")
            if done[-1]["wrong"]:
                print(f"{number}: {done[-1]['wrong']}", flush=True)
    bad = [one["case"] for one in done if one["wrong"]]
    print(f"{len(done)} cases, {len(bad)} with something wrong: {bad[:20]}")


if __name__ == "__main__":
    main()
