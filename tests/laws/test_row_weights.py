"""A weight of two is a row twice and a weight of zero a row left out, for every model, method and likelihood."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.sparse import csr_array
from scipy.special import expit

import bayes_sparse as bs
from bayes_sparse.common import registry
from bayes_sparse.inputs.named_model import bias_sd, kept_precision
from bayes_sparse.inputs.prepare import prepare
from tests.support import examples, refused

pytestmark = [pytest.mark.quick, pytest.mark.filterwarnings("ignore::bayes_sparse.FitWarning")]

FAMILIES = {
    name: registry.lookup("bayes_sparse.methods", name, "method").family
    for name in registry.options("bayes_sparse.methods")
    if name != "nuts"
}
MODELS = {
    "evidence": ["ard_gaussian", "student_multinomial", "horseshoe"],
    "one_step": ["ard_gaussian", "laplace_eigen"],
    "l1_path": ["jeffreys_laplace"],
}
LIKELIHOODS = [
    "normal",
    "student_t",
    "bernoulli",
    "probit",
    "poisson",
    "negative_binomial",
    "gamma",
    "categorical",
]
LIMITS = {
    "global_local": {"tolerance": 1e-12},
    "variational": {"tolerance": 1e-12},
    "cv": {"points": 5, "folds": 3},
    "coordinate_descent": {"max_iterations": 2000},
}
KERNELS = bs.basis.rbf(1.5, standardise=True)


def able(model, method, likelihood):
    """Whether a model with this method takes the likelihood."""
    several = likelihood == "categorical"
    if "horseshoe" in (model, "horseshoe" if method == "global_local" else ""):
        # Of heavy tails its objective has tops far apart, and a rounding error decides which one a climb ends in.
        own = (model, method) == ("horseshoe", "global_local")
        return own and likelihood not in ("categorical", "student_t")
    if method == "variational" and (several or likelihood == "student_t"):
        return False  # one log-concave predictor per observation
    if method == "one_vs_rest" or model == "student_multinomial":
        return several and (method, model) != ("one_vs_rest", "ard_gaussian")
    if model == "jeffreys_laplace":
        return not several and likelihood != "student_t"
    return not (method == "full_matrix" and model == "laplace_eigen")


CASES = [
    (model, method, likelihood)
    for method, family in FAMILIES.items()
    for model in MODELS[family]
    for likelihood in LIKELIHOODS
    if able(model, method, likelihood)
]
# Of the kernels the noise of heavy tails and the dispersion of counts are barely determined by so few rows.
# A horseshoe of as many kernels as rows can explain the noise of a regression, by another way for rows given twice.
ON_ROWS = [
    case
    for case in CASES
    if case[2] in ("normal", "bernoulli", "categorical") and (case[0], case[2]) != ("horseshoe", "normal")
]


def data(likelihood, seed, n=30, p=4):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) * rng.uniform(0.5, 2, p) + 1.0
    eta = 0.5 + X[:, 0] - 0.7 * X[:, 1]
    mean = np.exp(np.clip(eta, None, 2))
    y = {
        "normal": lambda: eta + 0.5 * rng.standard_normal(n),
        "student_t": lambda: eta + 0.5 * rng.standard_t(4, n),
        "bernoulli": lambda: np.append((rng.random(n - 2) < expit(eta[:-2])).astype(int), [0, 1]),
        "probit": lambda: np.append((rng.standard_normal(n - 2) < eta[:-2]).astype(int), [0, 1]),
        "gamma": lambda: rng.gamma(3.0, np.exp(eta) / 3.0),
        "poisson": lambda: rng.poisson(mean),
        "negative_binomial": lambda: rng.poisson(rng.gamma(1.0, mean)),
        "categorical": lambda: np.argmax(np.c_[eta, -eta, 0.3 * X[:, 2]] + rng.gumbel(size=(n, 3)), axis=1),
    }[likelihood]()
    weights = rng.integers(0, 4, n)
    weights[-3:] = 1
    return X, y, weights


def fit(case, X, y, **options):
    model, method, likelihood = case
    options = {"draws": 0, "progressbar": False, **LIMITS.get(method, {}), **options}
    return bs.fit(model, (X, y), method=method, likelihood=likelihood, **options)


def same(one, other, X, close):
    a, b = one["evidence"], other["evidence"]
    assert b.attrs["status"] == a.attrs["status"]
    names = ("log_evidence", "log_evidence_mode", "objective", "criterion", "cv_loss", "mean", "sd", "gamma", "bias")
    for name in (*names, "sigma", "dispersion", "lambda"):
        if name in a:
            assert_allclose(b[name], a[name], rtol=close, atol=close, err_msg=name)
    first, second = bs.predict(one, X), bs.predict(other, X)
    for name in first.data_vars:
        if first[name].dtype.kind == "f":
            assert_allclose(second[name], first[name], rtol=close, atol=close, err_msg=name)


@pytest.mark.parametrize("case", CASES, ids="-".join)
@given(seed=st.integers(0, 2**32 - 1))
@examples(1)
def test_a_weight_counts_rows(case, seed):
    """To the digits that sums in another order leave of a search, which a flat dispersion magnifies."""
    X, y, weights = data(case[2], seed)
    rows = np.repeat(np.arange(len(y)), weights)
    close = 2e-4 if case[2] == "negative_binomial" else 1e-6
    same(fit(case, X, y, weights=weights), fit(case, X[rows], y[rows]), X, close)


@pytest.mark.parametrize("case", ON_ROWS, ids="-".join)
def test_a_weight_counts_rows_that_kernels_sit_on(case):
    """Rows that are the same share one kernel, so that a row twice adds none.

    A variational search stops within 1e-11 nats of a top that is as flat as 0.004 in log alpha: digits from 1e-5 on.
    """
    X, y, weights = data(case[2], 1)
    rows = np.repeat(np.arange(len(y)), weights)
    one, other = fit(case, X, y, weights=weights, basis=KERNELS), fit(case, X[rows], y[rows], basis=KERNELS)
    same(one, other, X, 1e-5 if case[1] == "variational" else 1e-6)
    if "basis" in one["evidence"].dims:
        classes = 3 if case[2] == "categorical" else 1
        assert one["evidence"].sizes["basis"] == classes * np.count_nonzero(weights)


@pytest.mark.parametrize(("method", "likelihood"), [("sequential", "normal"), ("revm", "bernoulli")])
def test_a_weight_counts_rows_in_the_search_for_a_width(method, likelihood):
    X, y, weights = data(likelihood, 4, p=2)
    rows, basis = np.repeat(np.arange(len(y)), weights), bs.basis.rbf("evidence")
    case = ("ard_gaussian", method, likelihood)
    one, other = fit(case, X, y, weights=weights, basis=basis), fit(case, X[rows], y[rows], basis=basis)
    assert_allclose(other["evidence"]["width"], one["evidence"]["width"], rtol=1e-9)
    same(one, other, X, 1e-6)


@pytest.mark.parametrize("standardise", [True, False])
@pytest.mark.parametrize("method", ["sequential", "reweighted"])
def test_a_weight_counts_rows_of_sparse_and_of_kept_columns(method, standardise):
    X, y, weights = data("normal", 5, n=40)
    X[X < 1.0] = 0.0
    rows = np.repeat(np.arange(len(y)), weights)
    basis = bs.basis.linear(standardise=standardise)
    case = ("jeffreys_laplace" if method == "reweighted" else "ard_gaussian", method, "normal")
    one = fit(case, csr_array(X), y, weights=weights, basis=basis, keep="x3")
    same(one, fit(case, csr_array(X[rows]), y[rows], basis=basis, keep="x3"), X, 1e-6)
    same(one, fit(case, X, y, weights=weights, basis=basis, keep="x3"), X, 1e-6)


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_the_declaration_counts_rows_too(likelihood):
    """All that a declaration for NUTS takes from the data beside the likelihood of each row."""
    X, y, weights = data(likelihood, 6)
    rows = np.repeat(np.arange(len(y)), weights)
    basis = bs.basis.linear(standardise=False)
    one = prepare((X, y), None, likelihood, basis, "x2", weights, None)
    other = prepare((X[rows], y[rows]), None, likelihood, basis, "x2", None, None)
    sd = bias_sd(one, None)
    assert_allclose(bias_sd(other, None), sd, rtol=1e-12)
    assert_allclose(kept_precision(other, sd), kept_precision(one, sd), rtol=1e-12)
    assert_allclose(other.likelihood.start(other.y), one.likelihood.start(one.y, one.weights), rtol=1e-12)


def test_rows_of_weight_zero_are_not_in_the_tree():
    X, y, _ = data("bernoulli", 7)
    weights = np.arange(len(y)) % 2
    tree = fit(("ard_gaussian", "sequential", "bernoulli"), X, y, weights=weights, draws=10, random_seed=0)
    there = np.flatnonzero(weights)
    assert tree["observed_data"].sizes["obs"] == tree["log_likelihood"].sizes["obs"] == len(there)
    assert tree["observed_data"]["obs"].to_numpy().tolist() == there.tolist()
    assert_allclose(tree["constant_data"]["weights"], 1.0)


def test_a_class_of_weight_zero():
    X, y, _ = data("categorical", 8)
    case = ("student_multinomial", "mackay", "categorical")
    tree = fit(case, X, y, weights=np.where(y == 2, 0, 1))
    assert bs.predict(tree, X)["class"].to_numpy().tolist() == [0, 1]
    own = {label: X[:, : 2 + label] for label in range(3)}
    refused(lambda: fit(case, own, y, weights=np.where(y == 2, 0, 1)), "weight 0")
    first = fit(case, own, y, weights=np.where(np.arange(len(y)) < 3, 0, 1))
    second = fit(case, {label: part[3:] for label, part in own.items()}, y[3:])
    assert_allclose(first["evidence"]["mean"], second["evidence"]["mean"], rtol=1e-9, atol=1e-12)
