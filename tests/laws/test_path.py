"""Laws that hold for every method on the L1 path: how it ends, and what its answer does not depend on."""

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csc_array
from scipy.special import expit

import bayes_sparse as bs
from bayes_sparse.common import registry
from tests.support import examples, fit_path

pytestmark = [pytest.mark.quick, pytest.mark.filterwarnings("ignore::bayes_sparse.FitWarning")]

METHODS = [
    name
    for name in registry.options("bayes_sparse.methods")
    if name != "nuts" and registry.lookup("bayes_sparse.methods", name, "method").family == "l1_path"
]
ENDINGS = {
    "reweighted": {"fixed-point", "jump", "null"},
    "coordinate_descent": {"fixed-point", "jump", "null", "max_iterations"},
    "fuzzy": {"converged", "null", "max_iterations"},
    "cv": {"converged", "null"},
}
LIKELIHOODS = ["normal", "bernoulli", "probit", "poisson"]
# How well a method finds its own answer: to ten digits of a gap, a slope of 1e-6, 1e-10 nats, ten digits of a slope.
CLOSE = defaultdict(lambda: 1e-3, reweighted=1e-6, cv=1e-6)
seeds = st.integers(0, 2**32 - 1)
few = examples(3)
LIMITS = {"cv": {"points": 6, "folds": 2}, "coordinate_descent": {"max_iterations": 2000}}
every_method = pytest.mark.parametrize("method", METHODS)
every_likelihood = pytest.mark.parametrize("likelihood", LIKELIHOODS)
KINDS = ["plain", "duplicated", "opposite", "collinear", "separable", "wide", "one-hot", "constant but for one"]


def data(likelihood, seed, n=40, p=5):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) * rng.uniform(0.5, 2, p)
    eta = 0.5 + X[:, 0] - 0.7 * X[:, 1 % p]
    mean = np.exp(np.clip(eta, None, 3))
    y = {
        "normal": lambda: eta + 0.8 * rng.standard_normal(n),
        "bernoulli": lambda: np.append((rng.random(n - 2) < expit(eta[:-2])).astype(int), [0, 1]),
        "probit": lambda: np.append((rng.standard_normal(n - 2) < eta[:-2]).astype(int), [0, 1]),
        "poisson": lambda: np.append(rng.poisson(mean[:-1]), 1),
        "negative_binomial": lambda: np.append(rng.negative_binomial(3, 3 / (3 + mean[:-1])), 1),
    }[likelihood]()
    return X, y


def difficult(kind, likelihood, seed):
    """Small data with something wrong with the columns, or with how well they explain the target."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(6, 30)), int(rng.integers(1, 8))
    if kind == "wide":
        p = int(rng.integers(n, 3 * n))
    X, y = data(likelihood, seed, n, p)
    if kind in ("duplicated", "opposite"):
        X = np.column_stack([X, (1 if kind == "duplicated" else -1) * X[:, rng.integers(0, p, 2)]])
    if kind == "collinear":
        X = np.column_stack([X, X.sum(axis=1), X @ rng.integers(-2, 3, p)])
    if kind == "one-hot":
        X = np.eye(3)[np.append(rng.integers(0, 3, n - 3), [0, 1, 2])]
    if kind == "constant but for one":
        X = np.column_stack([X, np.arange(n) == 1])
    if kind == "separable":
        eta = X[:, 0] - np.median(X[:, 0])
        y = (eta > 0).astype(int) if likelihood in ("bernoulli", "probit") else eta if likelihood == "normal" else y
    return X[:, np.ptp(X, axis=0) > 0], y


def fit(X, y, method, likelihood, **options):
    return fit_path((X, y), method=method, likelihood=likelihood, **(LIMITS.get(method, {}) | options))


def same(one, other, method, *, mean=1.0, order=slice(None), unit=1.0):
    """Two fits of the same problem in another form; lambda may be in units of another target."""
    a, b, close = one["evidence"], other["evidence"], CLOSE[method]
    if "max_iterations" in (a.attrs["status"], b.attrs["status"]):
        assert method not in ("reweighted", "fuzzy", "cv")  # on its way, each on another
        return
    assert a.attrs["status"] == b.attrs["status"]
    assert int(a["N"]) == int(b["N"])
    truth = a["mean"].to_numpy()[order] * mean
    scale = np.abs(truth).max() if np.abs(truth).max() > 0 else 1.0
    assert_allclose(b["mean"].to_numpy() / scale, truth / scale, atol=close)
    assert_array_equal(b["kept"].to_numpy(), a["kept"].to_numpy()[order])
    assert_allclose(b["sd"].to_numpy(), a["sd"].to_numpy()[order] * np.abs(mean), rtol=10 * close)
    assert_allclose(float(b["lambda"]) * unit, float(a["lambda"]), rtol=close)
    assert_allclose(float(b["R"]), float(a["R"]) * unit, rtol=close)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("likelihood", [*LIKELIHOODS, pytest.param("negative_binomial", marks=pytest.mark.slow)])
@examples(2)
@given(seed=seeds)
def test_reweighted_ends_in_one_of_three_ways(likelihood, kind, seed):
    X, y = difficult(kind, likelihood, seed)
    evidence = fit(X, y, "reweighted", likelihood)["evidence"]
    status, N = evidence.attrs["status"], int(evidence["N"])
    assert status in ENDINGS["reweighted"]
    assert (N == 0) == (status == "null") == np.isnan(float(evidence["lambda"]))
    assert N == int(evidence["kept"].sum()) == np.count_nonzero(evidence["mean"])
    assert np.isfinite([float(evidence[name]) for name in ("R", "criterion", "log_prior", "log_likelihood_mode")]).all()
    assert np.isfinite(evidence["mean"]).all()
    assert np.isfinite(evidence["sd"][evidence["kept"]]).all()
    if status == "fixed-point":
        assert_allclose(float(evidence["lambda"] * evidence["R"]), N, rtol=1e-8)
        assert float(evidence["r"]) < 1


@pytest.mark.parametrize("targets", [[1, 1, 0, 2, 2, 0, 2, 1], [0, 0, 1, 1, 0, 0, 1, 1]])
def test_counts_without_overdispersion_end_too(targets):
    """Poisson's, or less: the best dispersion is as large as it may be."""
    X = np.random.default_rng(3).standard_normal((8, 2))
    evidence = fit(X, np.array(targets), "reweighted", "negative_binomial")["evidence"]
    assert evidence.attrs["status"] in ENDINGS["reweighted"]
    assert np.isfinite(evidence["sd"][evidence["kept"]]).all()


@few
@given(seed=seeds)
def test_counts_with_overdispersion_in_another_order(seed):
    """Their dispersion is found to seven digits, and its curvature numerically: less is known of everything else."""
    X, y = data("negative_binomial", seed)
    rng = np.random.default_rng(seed)
    rows, order = rng.permutation(len(y)), rng.permutation(X.shape[1])
    a, b = (fit(Z, t, "reweighted", "negative_binomial")["evidence"] for Z, t in ((X, y), (X[rows][:, order], y[rows])))
    assert_allclose(b["mean"], a["mean"].to_numpy()[order], atol=1e-4)
    for name in ("lambda", "R", "criterion"):
        assert_allclose(float(b[name]), float(a[name]), rtol=1e-4)


@every_method
@every_likelihood
@examples(6)
@given(seed=seeds, kind=st.sampled_from(KINDS))
def test_every_method_ends(method, likelihood, seed, kind):
    # Where classes can be separated, weight and bias have a long way to go in turns.
    limit = {"max_iterations": 200} if method == "coordinate_descent" else {}
    evidence = fit(*difficult(kind, likelihood, seed), method, likelihood, **limit)["evidence"]
    assert evidence.attrs["status"] in ENDINGS.get(method, set.union(*ENDINGS.values()))
    assert np.isfinite(evidence["mean"]).all()


@every_method
@every_likelihood
@few
@given(seed=seeds)
def test_the_order_of_columns_does_not_matter(method, likelihood, seed):
    X, y = data(likelihood, seed)
    order = np.random.default_rng(seed).permutation(X.shape[1])
    same(fit(X, y, method, likelihood), fit(X[:, order], y, method, likelihood), method, order=order)


@every_method
@every_likelihood
@few
@given(seed=seeds)
def test_the_order_of_rows_does_not_matter(method, likelihood, seed):
    """But for the folds of cross-validation, which rows of equal targets are dealt into as they come."""
    if method == "cv" and likelihood != "normal":
        return
    X, y = data(likelihood, seed)
    order = np.random.default_rng(seed).permutation(len(y))
    same(fit(X, y, method, likelihood), fit(X[order], y[order], method, likelihood), method)


@every_method
@every_likelihood
@few
@given(seed=seeds, powers=st.lists(st.integers(-3, 3), min_size=5, max_size=5))
def test_the_units_of_columns_do_not_matter(method, likelihood, seed, powers):
    """Neither do signs: weights scale the other way, and have the other sign."""
    X, y = data(likelihood, seed)
    scale = 10.0 ** np.array(powers) * [1, -1, 1, 1, -1]
    one, other = fit(X, y, method, likelihood), fit(X * scale + 3 * np.abs(scale), y, method, likelihood)
    a, b = one["evidence"], other["evidence"]
    assert a.attrs["status"] == b.attrs["status"]
    assert_allclose(b["mean"] * scale, a["mean"], atol=CLOSE[method] * max(float(np.abs(a["mean"]).max()), 1e-12))
    assert_allclose(b["pull"] * np.sign(scale), a["pull"], atol=10 * CLOSE[method])
    for name in ("lambda", "R", "criterion"):
        assert_allclose(float(b[name]), float(a[name]), rtol=CLOSE[method])


@every_method
@few
@given(seed=seeds, factor=st.sampled_from([-1e3, -2.0, 1e-3, 0.5, 1e3]))
def test_the_unit_of_the_target_does_not_matter(method, seed, factor):
    """Weights scale along and lambda the other way; N stays, and so does what is kept."""
    X, y = data("normal", seed)
    one, other = fit(X, y, method, "normal"), fit(X, factor * y, method, "normal")
    same(one, other, method, mean=factor, unit=abs(factor))
    a, b = one["evidence"], other["evidence"]
    shift = (int(a["N"]) + len(y)) * np.log(abs(factor))  # the density of the target, and N log R
    assert_allclose(float(b["criterion"]), float(a["criterion"]) + shift, rtol=CLOSE[method], atol=1e-6)


@every_method
@every_likelihood
@few
@given(seed=seeds, standardise=st.booleans())
def test_sparse_features_are_features(method, likelihood, seed, standardise):
    X, y = data(likelihood, seed)
    X = np.where(np.abs(X) < 0.6, 0.0, X)
    basis = bs.basis.linear(standardise=standardise)
    one = fit(X, y, method, likelihood, basis=basis)
    same(one, fit(csc_array(X), y, method, likelihood, basis=basis), method)
