"""Ranks, reliability, weights and replicated data against closed forms and ArviZ."""

import warnings

import arviz as az
import numpy as np
import pytest
from scipy.stats import beta, norm

import bayes_sparse as bs
from bayes_sparse.report.replicates import band, coverage, left_out_weights, ranks, reliability, replicates
from bayes_sparse.results.loo import loo
from bayes_sparse.trees.read import StoredFit


def test_reliability_by_hand():
    p = np.array([0.1] * 10 + [0.8] * 10)
    truth = np.array([True] + [False] * 9 + [True] * 9 + [False])
    found = reliability(truth, p, bins=2)
    np.testing.assert_allclose(found["probability"], [0.1, 0.8])
    np.testing.assert_allclose(found["frequency"], [0.1, 0.9])
    assert found["n"].tolist() == [10, 10]
    np.testing.assert_allclose(found["low"], beta.ppf(0.05, [1.5, 9.5], [9.5, 1.5]))


def test_ranks_are_normal_probabilities_and_uniform_only_if_calibrated():
    rng = np.random.default_rng(0)
    y, drawn = rng.normal(size=2000), rng.normal(size=(4000, 2000))
    found = ranks(y, drawn)
    np.testing.assert_allclose(found, norm.cdf(y), atol=5 * 0.5 / np.sqrt(4000))
    grid = np.sort(found)
    assert np.abs(np.arange(1, 2001) / 2000 - grid).max() < band(2000)
    assert np.abs(np.arange(1, 2001) / 2000 - np.sort(ranks(2 * y, drawn))).max() > band(2000)
    for level, share in coverage(found).items():
        assert share == pytest.approx(level, abs=4 * np.sqrt(level * (1 - level) / 2000))


def test_ranks_of_counts_are_uniform():
    rng = np.random.default_rng(1)
    found = ranks(rng.poisson(1.5, size=3000).astype(float), rng.poisson(1.5, size=(2000, 3000)).astype(float))
    assert np.abs(np.arange(1, 3001) / 3000 - np.sort(found)).max() < band(3000)


def test_weighted_ranks_are_those_of_the_weighted_law():
    rng = np.random.default_rng(2)
    y, drawn = np.linspace(-1, 2, 5), rng.normal(size=(40000, 5))
    weights = np.exp(drawn - 0.5)  # towards Normal(1, 1)
    found = ranks(y, drawn, weights / weights.sum(axis=0))
    np.testing.assert_allclose(found, norm.cdf(y, 1.0), atol=0.02)


def test_the_band_is_that_of_massart():
    assert band(100) == pytest.approx(np.sqrt(np.log(40) / 200))


@pytest.mark.parametrize("kind", ["evidence", "sampled"])
def test_weights_leave_out_what_arviz_leaves_out(logistic, sampled_like, kind):
    tree = logistic if kind == "evidence" else sampled_like(logistic)
    weights = left_out_weights(StoredFit("", tree))
    log_likelihood = tree["log_likelihood"]["label"].to_numpy().reshape(400, 150)
    np.testing.assert_allclose(weights.sum(axis=0), 1.0)
    by_hand = np.log(np.sum(weights * np.exp(log_likelihood), axis=0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of large Pareto k
        expected = loo(tree, pointwise=True) if kind == "evidence" else az.loo(tree, pointwise=True, reff=1.0)
    np.testing.assert_allclose(by_hand, expected.elpd_i.to_numpy(), rtol=1e-6)


def test_replicates_have_the_moments_of_predict(linear, linear_data):
    X, _ = linear_data
    drawn, predicted = replicates(StoredFit("", linear), X, every=True), bs.predict(linear, X)
    assert drawn.shape == (400, 120)
    sd = predicted["sd"].to_numpy()
    assert np.abs((drawn.mean(axis=0) - predicted["mean"].to_numpy()) / sd).max() < 4.5 / np.sqrt(400)
    assert np.mean(drawn.std(axis=0) / sd) == pytest.approx(1.0, abs=0.03)


def test_replicates_of_counts(counts, counts_data):
    X, _ = counts_data
    drawn, predicted = replicates(StoredFit("", counts), X), bs.predict(counts, X)
    sd = predicted["sd"].to_numpy()
    assert np.all(drawn == np.floor(drawn))
    assert np.abs((drawn.mean(axis=0) - predicted["mean"].to_numpy()) / sd).max() < 5 / np.sqrt(400)
    assert np.mean(drawn.std(axis=0) / sd) == pytest.approx(1.0, abs=0.03)


@pytest.mark.parametrize("likelihood", ["student_t", "negative_binomial"])
def test_replicates_of_other_likelihoods_without_draws(likelihood):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 3))
    rate = np.exp(1 + 0.5 * X[:, 0])
    y = (
        rng.poisson(rng.gamma(2.0, rate / 2.0))
        if likelihood == "negative_binomial"
        else X[:, 0] + rng.standard_t(4, 200)
    )
    tree = bs.fit("ard_gaussian", (X, y), likelihood=likelihood, draws=0)
    drawn, predicted = replicates(StoredFit("", tree), X), bs.predict(tree, X)
    error = (drawn.mean(axis=0) - predicted["mean"].to_numpy()) / predicted["sd"].to_numpy()
    assert np.abs(error.mean()) < 4 / np.sqrt(500 * 200) * 2  # draws of a parameter are shared by all rows
    assert np.mean(drawn.std(axis=0) / predicted["sd"].to_numpy()) == pytest.approx(1.0, abs=0.08)
