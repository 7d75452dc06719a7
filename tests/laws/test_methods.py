"""Laws that hold for every method that finds the precisions of the weights, whatever the likelihood."""

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.special import expit
from scipy.stats import multivariate_normal, norm

import bayes_sparse as bs
from bayes_sparse.common import registry
from bayes_sparse.inputs.likelihoods import compiled, resolve
from tests.support import examples

pytestmark = [pytest.mark.quick, pytest.mark.filterwarnings("ignore::bayes_sparse.FitWarning")]

METHODS = [  # test_one_step.py and test_path.py have the laws of other families, test_classes.py of several classes
    name
    for name in registry.options("bayes_sparse.methods")
    if name not in ("nuts", "one_vs_rest")
    and registry.lookup("bayes_sparse.methods", name, "method").family == "evidence"
]
CHOICES = {name: registry.lookup("bayes_sparse.methods", name, "method") for name in METHODS}
PRUNING = [name for name, choice in CHOICES.items() if "smoothness" in {field.name for field in fields(choice)}]
LIKELIHOODS = ["normal", "student_t", "bernoulli", "probit", "poisson", "negative_binomial", "gamma"]
# A variational bound takes a log-concave likelihood.
CASES = [(m, name) for m in METHODS for name in LIKELIHOODS if (m, name) != ("variational", "student_t")]
seeds = st.integers(0, 2**32 - 1)
few = examples(4)
some = examples(8)


def data(likelihood, seed, n=40, p=5):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) * rng.uniform(0.5, 2, p)
    eta = 0.5 + X[:, 0] - 0.7 * X[:, 1]
    y = {
        "normal": lambda: eta + 0.5 * rng.standard_normal(n),
        "student_t": lambda: eta + 0.5 * rng.standard_t(4, n),
        "bernoulli": lambda: np.append((rng.random(n - 2) < expit(eta[:-2])).astype(int), [0, 1]),
        "probit": lambda: np.append((rng.standard_normal(n - 2) < eta[:-2]).astype(int), [0, 1]),
        "gamma": lambda: rng.gamma(3.0, np.exp(eta) / 3.0),
        "poisson": lambda: rng.poisson(np.exp(np.clip(eta, None, 3))),
        "negative_binomial": lambda: rng.negative_binomial(3, 3 / (3 + np.exp(np.clip(eta, None, 3)))),
    }[likelihood]()
    return X, y


def fit(X, y, method, likelihood="normal", **options):
    options = {"draws": 0, "smoothness": 1.0, **options}
    if method not in PRUNING:  # it has no price, and climbs by gradients, which end where rounding errors do
        options = {**options, "tolerance": 1e-12, "max_iterations": 500}
        del options["smoothness"]
    model = "ard_gaussian" if CHOICES[method].priors == ("gaussian",) else "horseshoe"
    return bs.fit(model, (X, y), method=method, likelihood=likelihood, **options)


def same(one, other, *, mean=1.0, order=slice(None), alpha=1e-3):
    """Two fits of the same problem in another form: equal but for rounding, which a search may magnify a little."""
    a, b = one["evidence"], other["evidence"]
    assert_allclose(b["kept"].to_numpy(), a["kept"].to_numpy()[order])
    assert_allclose(float(b["objective"]), float(a["objective"]), rtol=1e-6, atol=1e-5)
    assert_allclose(b["mean"].to_numpy(), a["mean"].to_numpy()[order] * mean, rtol=alpha, atol=1e-6)
    assert_allclose(b["sd"].to_numpy(), a["sd"].to_numpy()[order] * np.abs(mean), rtol=alpha)
    assert_allclose(b["gamma"].to_numpy(), a["gamma"].to_numpy()[order], rtol=alpha, atol=1e-6)


@pytest.mark.parametrize("smoothness", [0.0, 1.0])
@pytest.mark.parametrize("likelihood", LIKELIHOODS)
@pytest.mark.parametrize("method", PRUNING)
@few
@given(seed=seeds)
def test_the_objective_never_falls(method, likelihood, smoothness, seed):
    """A law of the search: terms re-estimated after it have an objective of their own."""
    given = data(likelihood, seed)
    tree = fit(*given, method, likelihood, smoothness=smoothness, max_iterations=300, reestimate=False)
    evidence = tree["evidence"]
    history = evidence["history"].to_numpy()
    assert np.isfinite(history).all()
    # Deleting what is useless may cost a rounding error of 1e-9 nats.
    assert np.diff(history).min(initial=0.0) >= -1e-8
    assert float(evidence["objective"]) >= history[0] - 1e-8
    assert float(evidence["objective"]) >= history[-1] - 1e-3 * evidence.sizes["basis"]  # phantoms are deleted after it


@pytest.mark.parametrize("hyper", [None, (0.5, 0.1)])
@pytest.mark.parametrize("likelihood", LIKELIHOODS)
@pytest.mark.parametrize("method", PRUNING)
def test_pruned_and_kept(method, likelihood, hyper):
    if hyper and method == "sequential":
        with pytest.raises(ValueError, match="needs the flat hyper-prior"):
            fit(*data(likelihood, 5), method, likelihood, hyper=hyper)
        return
    X, y = data(likelihood, 5, p=8)
    tree = fit(X, y, method, likelihood, hyper=hyper, draws=20, random_seed=0, max_iterations=300)
    evidence = tree["evidence"]
    kept = evidence["kept"]
    assert int(kept.sum()) > 0
    if hyper:
        assert bool(kept.all())
    else:
        assert int(kept.sum()) < 8
    for name, pruned in (("mean", 0.0), ("sd", np.nan), ("gamma", 0.0), ("alpha", np.inf)):
        np.testing.assert_array_equal(evidence[name].where(~kept, pruned), pruned)
        assert bool(np.isfinite(evidence[name].where(kept, 0.0)).all())
    for name in ("sd", "gamma", "alpha"):
        assert bool((evidence[name].where(kept, 1.0) > 0).all())
    assert bool((evidence["gamma"] <= 1).all())
    assert list(tree["posterior"]["basis"].to_numpy()) == list(evidence["basis"].to_numpy()[kept.to_numpy()])
    table = bs.relevance(tree)
    assert int(table["kept"].sum()) == int(kept.sum())


@pytest.mark.parametrize(("method", "likelihood"), CASES)
@few
@given(seed=seeds)
def test_the_order_of_rows_does_not_matter(method, likelihood, seed):
    X, y = data(likelihood, seed)
    order = np.random.default_rng(seed).permutation(len(y))
    same(
        fit(X, y, method, likelihood, max_iterations=300),
        fit(X[order], y[order], method, likelihood, max_iterations=300),
    )


@pytest.mark.parametrize(("method", "likelihood"), CASES)
@few
@given(seed=seeds)
def test_the_order_of_columns_does_not_matter(method, likelihood, seed):
    X, y = data(likelihood, seed)
    order = np.random.default_rng(seed).permutation(X.shape[1])
    one = fit(X, y, method, likelihood, max_iterations=300)
    same(one, fit(X[:, order], y, method, likelihood, max_iterations=300), order=order)


@pytest.mark.parametrize("likelihood", ["normal", "bernoulli", "probit", "poisson"])
@pytest.mark.parametrize("method", METHODS)
@few
@given(seed=seeds, powers=st.lists(st.integers(-3, 3), min_size=5, max_size=5))
def test_the_units_of_columns_do_not_matter(method, likelihood, seed, powers):
    """Weights scale the other way; the objective, and so what is kept, stays."""
    X, y = data(likelihood, seed)
    scale = 10.0 ** np.array(powers) * [1, -1, 1, 1, -1]
    one, other = (fit(Z, y, method, likelihood, max_iterations=300) for Z in (X, X * scale + 3.0 * np.abs(scale)))
    same(one, other, mean=1 / scale)
    kept = one["evidence"]["kept"].to_numpy()
    ratio = other["evidence"]["alpha"].to_numpy()[kept] / one["evidence"]["alpha"].to_numpy()[kept]
    assert_allclose(ratio, scale[kept] ** 2, rtol=1e-3)
    new = np.random.default_rng(0).standard_normal((4, 5))
    name = "probability" if likelihood in ("bernoulli", "probit") else "mean"
    moved = bs.predict(other, new * scale + 3.0 * np.abs(scale))[name]
    assert_allclose(moved, bs.predict(one, new)[name], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("method", METHODS)
@some
@given(seed=seeds, factor=st.sampled_from([-1e3, -2.0, 1e-3, 0.5, 1e3]))
def test_the_unit_of_the_target_does_not_matter(method, seed, factor):
    """Weights, noise and bias scale along: the prior of the bias does too, so this holds to rounding."""
    X, y = data("normal", seed)
    one, other = fit(X, y, method), fit(X, factor * y, method)
    a, b = one["evidence"], other["evidence"]
    assert_allclose(b["kept"], a["kept"])
    assert_allclose(b["mean"], factor * a["mean"], rtol=1e-3, atol=1e-6 * abs(factor))
    assert_allclose(float(b["bias"]), factor * float(a["bias"]), rtol=1e-3)
    assert_allclose(float(b["sigma"]), abs(factor) * float(a["sigma"]), rtol=1e-3)
    # A density of y: n factors of the unit.
    expected = float(a["objective"]) - len(y) * np.log(abs(factor))
    assert_allclose(float(b["objective"]), expected, rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("method", METHODS)
@some
@given(seed=seeds, shift=st.sampled_from([-20.0, -1.0, 5.0]))
def test_the_origin_of_the_target_hardly_matters(method, seed, shift):
    """The bias takes it up. Its prior is wide (ten times the size of the targets) but not flat: it pulls the bias by a
    hundredth of its variance over that of the targets' mean, 1 / (100 n), and the rest by less.
    """
    X, y = data("normal", seed)
    one, other = (fit(X, t, method)["evidence"] for t in (y, y + shift))
    assert_allclose(other["kept"], one["kept"])
    assert_allclose(other["mean"], one["mean"], rtol=1e-2, atol=1e-3)
    pull = (abs(shift) + np.abs(y).max()) * float(one["sigma"]) ** 2 / (100 * len(y) * np.mean(y**2))
    assert_allclose(float(other["bias"]), float(one["bias"]) + shift, atol=3 * pull + 3e-3)
    assert_allclose(float(other["sigma"]), float(one["sigma"]), rtol=1e-2)


@pytest.mark.parametrize(("method", "likelihood"), CASES)
def test_draws_have_the_moments_and_densities_they_claim(method, likelihood):
    X, y = data(likelihood, 11, n=60)
    basis = bs.basis.linear(standardise=False)
    tree = fit(X, y, method, likelihood, basis=basis, draws=1000, chains=4, random_seed=2)
    evidence, posterior = tree["evidence"], tree["posterior"]
    kept = evidence["kept"].to_numpy()
    w = posterior["w"].to_numpy().reshape(4000, -1)
    draws = np.column_stack([w, posterior["bias"].to_numpy().ravel()])
    order = np.argsort(evidence["column"].to_numpy())
    mean = evidence["coordinate_mean"].to_numpy()[order]
    factor = evidence["covariance_factor"].to_numpy()[order]
    covariance = factor @ factor.T
    sd = np.sqrt(covariance.diagonal())
    assert_allclose(mean[:-1], evidence["mean"].to_numpy()[kept])
    assert_allclose(sd[:-1], evidence["sd"].to_numpy()[kept])
    # 4000 independent draws of a few numbers: four and a half standard errors, a false alarm in 1e4 or so.
    assert np.all(np.abs(draws.mean(axis=0) - mean) < 4.5 * sd / np.sqrt(4000))
    gap = np.cov(draws.T) - covariance
    assert np.all(np.abs(gap) < 4.5 * np.sqrt((np.outer(sd, sd) ** 2 + covariance**2) / 4000))

    stats = tree["sample_stats"]
    log_q, log_p = stats["log_q"].to_numpy().ravel(), stats["log_p"].to_numpy().ravel()
    assert_allclose(log_q, multivariate_normal(mean, covariance).logpdf(draws), rtol=1e-7, atol=1e-7)
    alpha = np.append(evidence["alpha"].to_numpy()[kept], _bias_sd(likelihood, y) ** -2)
    log_prior = norm(0, 1 / np.sqrt(alpha)).logpdf(draws).sum(axis=1)
    eta = draws @ np.column_stack([X[:, kept], np.ones(60)]).T
    expected = log_prior[:50] + [_log_likelihood(likelihood, e, y, evidence).sum() for e in eta[:50]]
    assert_allclose(log_p[:50], expected, rtol=1e-9)
    if likelihood == "normal":  # p(y|w) p(w) / p(w|y) is p(y), at every draw
        assert_allclose(log_p - log_q, float(evidence["log_evidence"]), rtol=1e-8)
    else:  # and nearly so, within the error of Laplace's method with few observations
        assert abs(np.mean(log_p - log_q) - float(evidence["log_evidence"])) < 1.0


@pytest.mark.parametrize("method", METHODS)
def test_units_cancel_in_the_importance_weights(method):
    """Draws are reported in the user's units, both densities in those of the standardised columns."""
    X, y = data("normal", 11, n=60)
    tree = fit(X * [1, 10, 0.1, 1, 1], y, method, draws=20, random_seed=0)
    weights = tree["sample_stats"]["log_p"] - tree["sample_stats"]["log_q"]
    assert_allclose(weights, float(tree["evidence"]["log_evidence"]), rtol=1e-8)


def _bias_sd(likelihood, y):
    return resolve(likelihood).bias_sd(np.asarray(y, dtype=float))


def _log_likelihood(likelihood, eta, y, evidence):
    named = resolve(likelihood)
    theta = [np.log(float(evidence[name])) for name in named.nuisance]
    return compiled(named)(eta, np.asarray(y, dtype=float), *theta)[0]


def test_the_methods_agree_on_an_easy_problem():
    """Strong signals, few columns, flat prior: one optimum, which each finds to its own tolerance."""
    truth = bs.datasets.sparse_linear(n=200, p=6, k=3, random_seed=4)
    fits = {m: fit(truth.X, truth.y, m, smoothness=1.0)["evidence"] for m in PRUNING}
    best = max(float(e["objective"]) for e in fits.values())
    for evidence in fits.values():
        assert float(evidence["objective"]) > best - 0.05
        assert_allclose(evidence["mean"], fits["sequential"]["mean"], atol=0.1 * float(evidence["sd"].max()))
        assert_allclose(float(evidence["sigma"]), float(fits["sequential"]["sigma"]), rtol=1e-2)


@pytest.mark.parametrize("method", PRUNING)
def test_nothing_to_find_leaves_the_bias(method):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 4)), rng.standard_normal(60)
    with pytest.warns(bs.FitWarning, match="bias only"):
        tree = fit(X, y, method, smoothness=5.0, draws=10, random_seed=0)
    assert tree["evidence"].attrs["status"] == "null"
    assert not tree["evidence"]["kept"].any()
    assert_allclose(float(tree["evidence"]["bias"]), y.mean(), atol=1e-3)
    assert "w" not in tree["posterior"]
    assert_allclose(bs.predict(tree, X[:3])["mean"], y.mean(), atol=1e-3)
