"""Laws that hold for every one-step method, whatever the likelihood: what it keeps are directions, not weights."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit
from scipy.stats import ortho_group

import bayes_sparse as bs
from bayes_sparse.common import registry
from tests.support import examples

pytestmark = [pytest.mark.quick, pytest.mark.filterwarnings("ignore::bayes_sparse.FitWarning")]

_FOUND = {
    name: registry.lookup("bayes_sparse.methods", name, "method")
    for name in registry.options("bayes_sparse.methods")
    if name != "nuts"
}
MODELS = {"gaussian": "ard_gaussian", "laplace": "laplace_eigen"}
PRIORS = registry.options("bayes_sparse.inference.priors")
SYSTEMS = [
    (name, prior) for name, method in _FOUND.items() if method.family == "one_step" for prior in method.priors or PRIORS
]
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
SEARCHED = ("student_t", "negative_binomial", "gamma")  # their nuisance parameter is found to a thousandth
BARE = bs.basis.precomputed()
NEW = np.random.default_rng(0).standard_normal((4, 5))
seeds = st.integers(0, 2**32 - 1)
few = examples(2)
every = pytest.mark.parametrize("likelihood", LIKELIHOODS)
method = pytest.mark.parametrize("system", SYSTEMS, ids="-".join)
# Where a nuisance parameter is searched the evidence at zero may hang on its last digit, and the rest takes long.
expanded = pytest.mark.parametrize(
    ("likelihood", "expansion"),
    [
        (name, e)
        for name in LIKELIHOODS
        for e in ("ridge", "evidence", "zero", 3)
        if name not in SEARCHED or e == "ridge"
    ],
)


def data(likelihood, seed, n=40, p=5):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) * rng.uniform(0.5, 2, p)
    eta = 0.5 + X[:, 0] - 0.7 * X[:, 1]
    mean = np.exp(np.clip(eta, None, 3))
    draw = {
        "normal": lambda: eta + 0.5 * rng.standard_normal(n),
        "student_t": lambda: eta + 0.5 * rng.standard_t(4, n),
        "bernoulli": lambda: np.append((rng.random(n - 2) < expit(eta[:-2])).astype(int), [0, 1]),
        "probit": lambda: np.append((rng.standard_normal(n - 2) < eta[:-2]).astype(int), [0, 1]),
        "gamma": lambda: rng.gamma(3.0, np.exp(eta) / 3.0),
        "poisson": lambda: rng.poisson(mean),
        "negative_binomial": lambda: rng.negative_binomial(3, 3 / (3 + mean)),
        "categorical": lambda: np.argmax(np.c_[eta, -eta, 0.3 * X[:, 2]] + rng.gumbel(size=(n, 3)), axis=1),
    }
    return X, draw[likelihood]()


def fit(X, y, system, likelihood, **options):
    name, prior = system
    options = {"draws": 0} | ({} if prior in MODELS else {"prior": prior}) | options
    return bs.fit(MODELS.get(prior, "ard_gaussian"), (X, y), method=name, likelihood=likelihood, **options)


def same(one, other, likelihood, *, turned=lambda w: w, size=1.0):
    """Two fits of one problem in another form: equal but for rounding, and for how well the nuisance was found.

    ``turned`` takes weights of the first to those of the other, whose columns are ``size`` times as large.
    """
    close = {"rtol": 5e-3, "atol": 5e-3} if likelihood in SEARCHED else {"rtol": 1e-5, "atol": 1e-7}
    a, b = one["evidence"], other["evidence"]
    for name in ("log_evidence", "log_evidence_mode", "objective", "gamma"):
        assert_allclose(b[name], a[name], **close, err_msg=name)
    assert_array_equal(b["relevant"], a["relevant"])
    assert_allclose(b["h"], a["h"] * size**2, rtol=close["rtol"])
    assert_allclose(b["u_expansion"] * size, a["u_expansion"], **close)
    assert_allclose(b["u_mode"] * size, a["u_mode"], **close)
    power = 1 if a.attrs["prior"] == "laplace" else 2  # a scale, or a precision
    assert_allclose(1 / b["alpha"] * size**power, 1 / a["alpha"], **close)
    for name in ("mean", "mode"):
        w = a[name].to_numpy().reshape(-1, 5)
        assert_allclose(b[name].to_numpy().reshape(-1, 5) * size, turned(w), **close)


def predicted(tree, X):
    prediction = bs.predict(tree, X)
    return prediction["probability" if "probability" in prediction else "mean"].to_numpy()


@method
@every
@few
@given(seed=seeds)
def test_the_order_of_rows_and_columns_does_not_matter(system, likelihood, seed):
    X, y = data(likelihood, seed)
    rng = np.random.default_rng(seed)
    rows, columns = rng.permutation(len(y)), rng.permutation(5)
    one = fit(X, y, system, likelihood)
    same(one, fit(X[rows], y[rows], system, likelihood), likelihood)
    other = fit(X[:, columns], y, system, likelihood)
    same(one, other, likelihood, turned=lambda w: w[:, columns])
    a, b = (tree["evidence"]["sd"].to_numpy().reshape(-1, 5) for tree in (one, other))
    assert_allclose(b, a[:, columns], rtol=5e-3)


@expanded
@method
@examples(1)
@given(seed=seeds)
def test_columns_in_another_unit_divide_the_weights_and_nothing_else(system, likelihood, expansion, seed):
    """All of them in the same unit: the ridge is in theirs."""
    X, y = data(likelihood, seed)
    options = {"basis": BARE, "expansion": expansion}
    one, other = (fit(size * X, y, system, likelihood, **options) for size in (1.0, 300.0))
    same(one, other, likelihood, size=300.0)
    assert_allclose(predicted(other, 300.0 * NEW), predicted(one, NEW), rtol=1e-2 if likelihood in SEARCHED else 1e-5)


@method
@every
@examples(1)
@given(seed=seeds)
def test_a_rotation_of_the_columns_turns_the_weights_and_nothing_else(system, likelihood, seed):
    X, y = data(likelihood, seed)
    R = ortho_group.rvs(5, random_state=seed)
    one, other = (fit(Z, y, system, likelihood, basis=BARE) for Z in (X, X @ R))
    same(one, other, likelihood, turned=lambda w: w @ R)


@pytest.mark.parametrize("prior", MODELS)
@pytest.mark.parametrize("likelihood", ["normal", "bernoulli", "categorical"])
def test_another_map_of_the_columns_is_another_model(prior, likelihood):
    """The papers claim that none matters."""
    X, y = data(likelihood, 3)
    one, other = (
        fit(X * size, y, ("revm", prior), likelihood, basis=BARE)["evidence"] for size in (1.0, [1, 30, 1, 0.1, 1])
    )
    assert abs(float(one["log_evidence"] - other["log_evidence"])) > 0.05
    assert np.abs(one["gamma"].to_numpy() - other["gamma"].to_numpy()).max() > 0.05


@method
@pytest.mark.parametrize("likelihood", [name for name in LIKELIHOODS if name not in SEARCHED])
@few
@given(seed=seeds, powers=st.lists(st.integers(-3, 3), min_size=5, max_size=5))
def test_standardised_columns_have_no_units(system, likelihood, seed, powers):
    X, y = data(likelihood, seed)
    scale = 10.0 ** np.array(powers) * [1, -1, 1, 1, -1]
    one, other = (fit(Z, y, system, likelihood) for Z in (X, X * scale + 3.0 * np.abs(scale)))
    same(one, other, likelihood, turned=lambda w: w / scale)
    moved = predicted(other, NEW * scale + 3.0 * np.abs(scale))
    assert_allclose(moved, predicted(one, NEW), rtol=1e-5, atol=1e-6)


@method
@pytest.mark.parametrize("likelihood", ["normal", "student_t"])
@few
@given(seed=seeds, factor=st.sampled_from([-1e3, 1e-3, 2.0]))
def test_the_unit_of_the_target_does_not_matter(system, likelihood, seed, factor):
    """Weights, noise and bias scale along, and the evidence is a density of y: n factors of the unit."""
    X, y = data(likelihood, seed)
    one, other = (fit(X, t, system, likelihood)["evidence"] for t in (y, factor * y))
    close = {"rtol": 5e-3, "atol": 5e-3} if likelihood in SEARCHED else {"rtol": 1e-5, "atol": 1e-7}
    assert_allclose(other["log_evidence"] + len(y) * np.log(abs(factor)), one["log_evidence"], **close)
    assert_allclose(other["gamma"], one["gamma"], **close)
    assert_allclose(other["mean"] / factor, one["mean"], **close)
    assert_allclose(other["bias"] / factor, one["bias"], **close)
    assert_allclose(other["sigma"] / abs(factor), one["sigma"], rtol=close["rtol"])


@expanded
@method
@few
@given(seed=seeds)
def test_what_is_kept_and_what_it_gains(system, likelihood, expansion, seed):
    evidence = fit(*data(likelihood, seed), system, likelihood, expansion=expansion)["evidence"]
    h, u, alpha, gamma = (evidence[name].to_numpy() for name in ("h", "u_expansion", "alpha", "gamma"))
    assert np.all(h > 0)
    assert np.all(u >= 0)
    if system[0] != "full_matrix":
        assert np.all(np.diff(h) <= 0)
    # A direction is kept exactly when it is seen more sharply than one standard deviation from zero.
    assert_array_equal(np.isinf(alpha), h * u**2 <= 1)
    assert np.all((gamma >= 0) & (gamma <= 1))
    assert np.all((gamma == 0) == np.isinf(alpha))
    assert_allclose(evidence.attrs["degrees_of_freedom"], gamma.sum())
    assert evidence.attrs["degrees_of_freedom"] <= evidence.attrs["directions"] == len(h)
    pruned = np.isinf(alpha)
    for name in ("u_mode", "u_mean", "u_sd"):
        assert np.all(evidence[name].to_numpy()[pruned] == 0)
    assert np.all(evidence["u_sd"].to_numpy()[~pruned] > 0)
    assert not np.any(evidence["relevant"].to_numpy() & pruned)
    assert_array_equal(evidence["relevant"], evidence["u_mode"].to_numpy() != 0)
    assert_array_equal(evidence["kept_direction"], evidence["direction"].to_numpy()[~pruned])
    Q = evidence["loading"].to_numpy()
    assert_allclose(Q @ Q.T, np.eye(len(Q)), atol=1e-9)
    null, end = evidence["history"].to_numpy()
    assert_allclose(end, evidence["log_evidence"])
    assert (end > null) == bool((~pruned).any())


@every
@few
@given(seed=seeds)
def test_more_freedom_never_lowers_the_evidence(likelihood, seed):
    """R_0 is the maximum over all normal priors, those on eigen-coordinates among them, and all beat none."""
    X, y = data(likelihood, seed)
    full, revm = (fit(X, y, (name, "gaussian"), likelihood)["evidence"] for name in ("full_matrix", "revm"))
    assert full["log_evidence"] >= revm["log_evidence"] - 1e-9
    assert_allclose(full["history"][0], revm["history"][0], rtol=1e-9)


@method
@every
def test_of_more_columns_than_rows_only_the_row_space_counts(system, likelihood):
    """Thirty columns that are combinations of five: the same answer, along the same five directions."""
    X, y = data(likelihood, 8, n=24)
    T = ortho_group.rvs(30, random_state=1)[:5]
    narrow, wide = (fit(Z, y, system, likelihood, basis=BARE, expansion=4)["evidence"] for Z in (X, X @ T))
    close = {"rtol": 2e-3, "atol": 2e-3} if likelihood in SEARCHED else {"rtol": 1e-4, "atol": 1e-5}
    r = narrow.sizes["direction"]
    assert_allclose(wide["log_evidence"], narrow["log_evidence"], **close)
    assert_allclose(wide["h"][:r], narrow["h"], rtol=close["rtol"])
    assert_allclose(wide["gamma"][:r], narrow["gamma"], **close)
    assert np.all(wide["gamma"][r:] == 0)
    w = wide["mean"].to_numpy().reshape(-1, 30)
    assert_allclose(w, narrow["mean"].to_numpy().reshape(-1, 5) @ T, **close)


@pytest.mark.parametrize("seed", [1, 3, 7])
@pytest.mark.parametrize("likelihood", SEARCHED)
def test_how_well_the_nuisance_is_found_does_not_hang_on_units(likelihood, seed):
    """The ridge and the nuisance parameter are the best by evidence, also where the columns' mean square is just 1."""
    X, y = data(likelihood, seed)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    one, other = (
        fit(size * Z, y, ("revm", "gaussian"), likelihood, basis=BARE, expansion="evidence")["evidence"]
        for size in (1.0, 2.7)
    )
    assert_allclose(one["ridge_log_evidence"], other["ridge_log_evidence"], atol=1e-3)
    assert_allclose(one["theta"], other["theta"], atol=5e-3)
