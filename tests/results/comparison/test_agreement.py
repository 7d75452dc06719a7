"""Which terms the trees take for relevant, against scikit-learn and by hand."""

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.metrics import cohen_kappa_score, jaccard_score

import bayes_sparse as bs
from bayes_sparse.results.comparison import compare

from .by_hand import approximate, normal_values, sampled

pytestmark = pytest.mark.quick

COLUMNS = [f"x{j}" for j in range(12)]


def test_pairs_against_scikit_learn():
    rng = np.random.default_rng(0)
    keeps = [rng.random(12) < 0.5, rng.random(12) < 0.4]
    means = [np.where(keep, rng.normal(3.0, 1.0, 12), 0.0) for keep in keeps]
    trees = {
        name: approximate(mean, np.where(keep, 0.5, 0.0), columns=COLUMNS)
        for name, mean, keep in zip(("one", "two"), means, keeps, strict=True)
    }
    row = compare(trees).relevance.loc[("one", "two")]
    a, b = keeps
    counts = [np.sum(a & b), np.sum(a & ~b), np.sum(b & ~a), np.sum(~a & ~b)]
    assert row[["both", "only_first", "only_second", "neither"]].to_list() == counts
    np.testing.assert_allclose(row["kappa"], cohen_kappa_score(a, b))
    np.testing.assert_allclose(row["jaccard"], jaccard_score(a, b))
    either = a | b
    strengths = [np.abs(mean[either]) / 0.5 for mean in means]
    np.testing.assert_allclose(row["rank_correlation"], spearmanr(*strengths).statistic)


def test_where_nothing_can_be_pruned_chance_is_judged_by_the_draws():
    """Of three columns the best is 2.39 sds from zero by chance in one of twenty data sets."""
    slow = sampled({"a": normal_values(1.0, 0.40), "b": normal_values(1.0, 0.44)})
    fast = approximate([1.0, 1.0, 0.0], [0.45, 0.55, 0.0])
    relevant = compare({"slow": slow, "fast": fast}).relevant
    assert relevant["slow"].to_list() == [True, False]
    assert relevant["fast"].to_list() == [True, False]  # as its tree says


def test_a_proper_prior_on_precisions_prunes_nothing_either():
    wide = approximate([1.0, 0.1, 0.2], [0.1, 0.1, 0.3], hyper=(0.5, 0.1))
    flat = approximate([1.0, 0.0, 0.0], [0.1, 0.0, 0.0])
    comparison = compare({"wide": wide, "flat": flat})
    assert comparison.relevant["wide"].to_list() == [True, False, False]
    assert comparison.summary["terms_kept"].to_list() == [3, 1]
    assert comparison.relevance["kappa"].to_list() == [1.0]


def test_a_plug_in_calls_relevant_what_the_approximation_does():
    """It has no sds of its own, and without them every weight under a proper prior would be far from zero."""
    rng = np.random.default_rng(8)
    X = rng.standard_normal((80, 6)) * [1, 10, 0.1, 1, 1, 1]
    y = 2 * X[:, 0] - 0.2 * X[:, 1] + rng.standard_normal(80)
    rungs = bs.ladder("ard_gaussian", (X, y), rungs=["plug_in", "approximation"], random_seed=0, progressbar=False)
    compared = bs.compare(rungs)
    relevant = compared.summary["relevant_terms"]
    assert relevant["plug_in"] == relevant["approximation"] < 6
