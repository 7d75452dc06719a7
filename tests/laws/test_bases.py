"""Laws that hold for every basis, through every method that finds the precisions of the weights."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import bayes_sparse as bs
from bayes_sparse.common import registry
from tests.support import examples

pytestmark = [pytest.mark.quick, pytest.mark.filterwarnings("ignore::bayes_sparse.FitWarning")]

METHODS = [  # test_one_step.py and test_path.py have the laws of other families, test_classes.py of several classes
    name
    for name in registry.options("bayes_sparse.methods")
    if name not in ("nuts", "one_vs_rest")
    and registry.lookup("bayes_sparse.methods", name, "method").family == "evidence"
    and registry.lookup("bayes_sparse.methods", name, "method").priors == ("gaussian",)
]
BASES = {
    "linear": bs.basis.linear(),
    "linear bare": bs.basis.linear(bias=False, standardise=False),
    "rbf": bs.basis.rbf(width=1.0),
    "rbf unsquared": bs.basis.rbf(width=1.0, squared=False, standardise=True),
    "polynomial": bs.basis.polynomial(degree=2),
    "inner_product": bs.basis.inner_product(),
    "precomputed": bs.basis.precomputed(),
    "function": bs.basis.function("numpy:sinh"),
}
UNITS = {name: basis for name, basis in BASES.items() if getattr(basis, "standardise", False)}
seeds = st.integers(0, 2**32 - 1)
few = examples(3)


def data(seed, n=30, p=3):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.standard_normal(n)


def fit(X, y, basis, method="sequential", **options):
    priced = {} if method == "variational" else {"smoothness": 2.0}
    options = {"draws": 0, **priced, **options}
    return bs.fit("ard_gaussian", (X, y), basis=basis, method=method, likelihood="normal", **options)


def expanded(basis, X, centres):
    return basis.matrix(np.asarray(X, dtype=float), centres if basis.kernel else None)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", BASES)
@few
@given(seed=seeds)
def test_the_objective_never_falls_and_pruned_means_pruned(name, method, seed):
    X, y = data(seed)
    evidence = fit(X, y, BASES[name], method)["evidence"]
    history = evidence["history"].to_numpy()
    assert np.diff(history).min(initial=0.0) >= -1e-8  # a deletion may cost a rounding error
    assert float(evidence["objective"]) >= history[0] - 1e-8  # also without the price that the history has
    kept = evidence["kept"].to_numpy()
    for variable, pruned in (("mean", 0.0), ("sd", np.nan), ("gamma", 0.0), ("alpha", np.inf)):
        values = evidence[variable].to_numpy()
        np.testing.assert_array_equal(values[~kept], pruned)
        assert np.isfinite(values[kept]).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", BASES)
@few
@given(seed=seeds)
def test_the_order_of_rows_does_not_matter(name, method, seed):
    """Kernels sit on the rows, so theirs are in another order too; predictions are the same."""
    if BASES[name].kernel and method != "sequential":
        # Kernels are nearly collinear; a fixed point that starts with all of them stops on a ridge so flat that only
        # its height is determined.
        close = {"rtol": 0.05, "atol": 0.05}
    else:
        close = {"rtol": 1e-3, "atol": 1e-4}
    X, y = data(seed)
    order = np.random.default_rng(seed).permutation(len(y))
    one, other = fit(X, y, BASES[name], method), fit(X[order], y[order], BASES[name], method)
    assert_allclose(float(other["evidence"]["objective"]), float(one["evidence"]["objective"]), rtol=1e-4, atol=2e-3)
    new, _ = data(1, n=5)
    a, b = predictions(one, new), predictions(other, new)
    assert_allclose(b["mean"], a["mean"], **close)
    assert_allclose(b["sd"], a["sd"], **close)


def predictions(tree, new):
    return bs.predict(tree, 0.3 * new)  # well inside what was seen


@pytest.mark.parametrize("name", BASES)
@few
@given(seed=seeds)
def test_the_order_of_columns_does_not_matter(name, seed):
    X, y = data(seed)
    order = np.array([2, 0, 1])
    one, other = fit(X, y, BASES[name]), fit(X[:, order], y, BASES[name])
    assert_allclose(float(other["evidence"]["objective"]), float(one["evidence"]["objective"]), rtol=1e-6, atol=1e-4)
    new, _ = data(1, n=5)
    assert_allclose(predictions(other, new[:, order])["mean"], predictions(one, new)["mean"], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", UNITS)
@few
@given(seed=seeds, powers=st.tuples(*[st.integers(-3, 3)] * 3))
def test_a_standardised_basis_does_not_see_units(name, seed, powers):
    X, y = data(seed)
    scale = 10.0 ** np.array(powers)
    one, other = fit(X, y, UNITS[name]), fit(X * scale - 2 * scale, y, UNITS[name])
    assert_allclose(float(other["evidence"]["objective"]), float(one["evidence"]["objective"]), rtol=1e-6, atol=1e-4)
    assert_allclose(other["evidence"]["kept"], one["evidence"]["kept"])
    new, _ = data(1, n=5)
    moved = predictions_at(other, 0.3 * new * scale - 2 * scale)
    assert_allclose(moved, predictions(one, new)["mean"], rtol=1e-3, atol=1e-4)


def predictions_at(tree, X):
    return bs.predict(tree, X)["mean"]


@pytest.mark.parametrize("name", BASES)
@few
@given(seed=seeds, factor=st.sampled_from([-100.0, 0.01]))
def test_the_unit_of_the_target_does_not_matter(name, seed, factor):
    X, y = data(seed)
    one, other = fit(X, y, BASES[name]), fit(X, factor * y, BASES[name])
    expected = float(one["evidence"]["objective"]) - len(y) * np.log(abs(factor))
    assert_allclose(float(other["evidence"]["objective"]), expected, rtol=1e-6, atol=1e-4)
    assert_allclose(other["evidence"]["kept"], one["evidence"]["kept"])
    assert_allclose(other["evidence"]["mean"] / factor, one["evidence"]["mean"], rtol=2e-3, atol=1e-4 * np.abs(y).max())


@pytest.mark.parametrize("name", BASES)
def test_predictions_are_those_of_the_reported_weights(name):
    """In the user's units: basis functions at new rows, times the weights, plus the bias."""
    X, y = data(3)
    basis = BASES[name]
    evidence = (tree := fit(X, y, basis))["evidence"]
    assert bool(evidence["kept"].any())
    new, centres = data(1, n=5)[0] * 0.3, X
    inputs = new
    if basis.kernel and basis.standardise:
        inputs, centres = (new - X.mean(axis=0)) / X.std(axis=0), (X - X.mean(axis=0)) / X.std(axis=0)
    Phi = expanded(basis, inputs, centres)
    bias = float(evidence["bias"]) if basis.bias else 0.0
    assert ("bias" in evidence) == basis.bias
    assert_allclose(bs.predict(tree, new)["mean"], Phi @ evidence["mean"].to_numpy() + bias, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("name", BASES)
def test_draws_have_the_moments_of_the_evidence_group(name):
    X, y = data(3)
    tree = fit(X, y, BASES[name], draws=1000, chains=4, random_seed=0)
    evidence = tree["evidence"]
    w = tree["posterior"]["w"]
    kept = evidence.to_dataset().sel(basis=w["basis"])
    # 4000 independent draws of at most a few dozen numbers: five standard errors.
    assert bool((np.abs(w.mean(("chain", "draw")) - kept["mean"]) < 5 * kept["sd"] / np.sqrt(4000)).all())
    assert bool((np.abs(np.log(w.std(("chain", "draw")) / kept["sd"])) < 5 / np.sqrt(2 * 4000)).all())
    weights = tree["sample_stats"]["log_p"] - tree["sample_stats"]["log_q"]
    # p(y|w) p(w) / p(w|y) = p(y) at every draw; kernels are nearly collinear, which costs digits.
    assert_allclose(weights, float(evidence["log_evidence"]), rtol=1e-5)
