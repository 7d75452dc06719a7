"""Leave-one-out cross-validation against leaving every observation out in earnest, by quadrature."""

import warnings

import arviz as az
import numpy as np
import pytest
import xarray as xr
from scipy import stats
from scipy.special import log_expit, logsumexp

import bayes_sparse as bs
from bayes_sparse.common import checks as limits
from bayes_sparse.results.correct import correct
from bayes_sparse.results.importance import log_densities
from bayes_sparse.results.loo import loo
from tests.support import as_sampled, assert_one_sentence

RNG = np.random.default_rng(13)
X = RNG.standard_normal((60, 1))
BINARY = (X[:, 0] + RNG.logistic(size=60) > 0).astype(int)
PLAIN = bs.basis.linear(standardise=False, bias=False)
GRID = np.linspace(-12, 12, 8001) + 1e-4  # off zero, where a Laplace prior has a corner


def exactly(terms, log_prior):
    """Log densities of observations given all others, from log-likelihoods (grid, n)."""
    joint = terms.sum(axis=1) + log_prior
    return np.array([logsumexp(joint) - logsumexp(joint - column) for column in terms.T])


def terms_of(w):
    return log_expit(np.where(BINARY, 1, -1) * X[:, 0] * w[:, None])


@pytest.mark.parametrize("model", ["ard_gaussian", "jeffreys_laplace"])
@pytest.mark.parametrize("way", ["weights", "corrected"])
def test_one_weight_against_quadrature(model, way):
    # A normal's tails are lighter than a logistic posterior's, so that the raw weights have no variance to compute an
    # error from: it is taken from eight sets of draws.
    found = []
    for seed in range(8):
        tree = bs.fit(model, (X, BINARY), likelihood="bernoulli", basis=PLAIN, random_seed=seed)
        found.append(loo(tree if way == "weights" else correct(tree, seed)).elpd)
    evidence = tree["evidence"]
    if model == "ard_gaussian":
        log_prior = stats.norm.logpdf(GRID, 0, float(evidence["alpha"][0]) ** -0.5)
    else:
        log_prior = -float(evidence["lambda"]) * np.abs(GRID)
    error = np.std(found, ddof=1) / np.sqrt(8)
    assert abs(np.mean(found) - exactly(terms_of(GRID), log_prior).sum()) < 4 * error < 0.1


def test_it_is_nearer_than_without_the_weights():
    x, y = X[:10], BINARY[:10]
    settings = {"likelihood": "bernoulli", "basis": PLAIN, "smoothness": 0, "draws": 20_000, "random_seed": 0}
    tree = bs.fit("ard_gaussian", (x, y), **settings)
    terms = log_expit(np.where(y, 1, -1) * x[:, 0] * GRID[:, None])
    truth = exactly(terms, stats.norm.logpdf(GRID, 0, float(tree["evidence"]["alpha"][0]) ** -0.5)).sum()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so few observations matter each
        found, plain = loo(tree).elpd, az.loo(tree).elpd
    assert abs(found - truth) < 0.5 * abs(plain - truth)


def test_arvizs_own_warning_is_heard():
    tree = bs.fit("ard_gaussian", (X, BINARY), likelihood="bernoulli", random_seed=0)
    far = tree.copy()
    stats_ = tree["sample_stats"].to_dataset()
    far["sample_stats"] = xr.DataTree(stats_.assign(log_p=-stats_["log_q"]))
    with pytest.warns(UserWarning, match="shape parameter of Pareto"):
        loo(far)


def test_arviz_is_asked_with_the_densities_of_the_tree():
    tree = bs.fit("ard_gaussian", (X, BINARY), likelihood="bernoulli", random_seed=0)
    truth = az.loo_approximate_posterior(tree, *log_densities(tree))
    assert loo(tree).elpd == truth.elpd
    assert loo(tree).elpd_i is None
    assert loo(tree, pointwise=True).elpd_i.sizes == {"obs": 60}
    sampled = tree.copy()
    sampled["posterior"] = xr.DataTree(tree["posterior"].to_dataset().assign_attrs(method="nuts"))
    assert loo(sampled).elpd == az.loo(tree).elpd


def test_what_has_seen_the_rows_says_so():
    tree = bs.fit("ard_gaussian", (X, BINARY), likelihood="bernoulli", random_seed=0)
    for found in (loo(tree), loo(tree, pointwise=True), loo(correct(tree, 0), pointwise=True)):
        assert " ".join(str(found).split()).endswith(found.caveat)
        assert_one_sentence(found.caveat)
    assert not hasattr(loo(as_sampled(tree)), "caveat")  # NUTS of everything selects nothing
    held = as_sampled(tree)
    held["posterior"].attrs["condition"] = "alpha"
    assert loo(held).caveat


def test_nothing_kept():
    with pytest.warns(bs.FitWarning, match="No basis function"):
        tree = bs.fit("ard_gaussian", (X, BINARY[RNG.permutation(60)]), likelihood="bernoulli", basis=PLAIN)
    with pytest.raises(ValueError, match="every draw is the same"):
        loo(tree)


def test_no_likelihoods(monkeypatch):
    monkeypatch.setattr(limits, "LARGEST_LOG_LIKELIHOOD", 1000)
    with pytest.raises(ValueError, match="fit with fewer draws"):
        loo(bs.fit("ard_gaussian", (X, BINARY), likelihood="bernoulli", random_seed=0))
    with pytest.raises(ValueError, match="draws > 0"):
        loo(bs.fit("ard_gaussian", (X, BINARY), likelihood="bernoulli", draws=0))
