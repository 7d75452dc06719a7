"""Distances between marginals against their closed forms."""

import arviz_stats
import numpy as np
import pytest
import xarray as xr
from scipy.integrate import quad
from scipy.stats import foldnorm, gamma, norm, wasserstein_distance

import bayes_sparse as bs
from bayes_sparse.results.comparison import compare
from bayes_sparse.results.comparison.marginals import overlap, wasserstein

from .by_hand import approximate, normal_values, sampled

pytestmark = pytest.mark.quick

GRAIN = 2e-3  # of 4000 quantiles in place of a density


def pair(first, second, **settings):
    """Two trees of one weight with the given mean and sd, and the row that compares them."""
    trees = {
        "own": sampled({"a": normal_values(*first, seed=1)}),
        "reference": sampled({"a": normal_values(*second, seed=2)}),
    }
    return compare(trees, reference="reference", **settings).parameters.loc[("w[a]", "own")]


@pytest.mark.parametrize("d", [0.0, 0.3, -1.0, 2.5])
def test_a_shift_of_a_normal(d):
    row = pair((1.0 + 0.7 * d, 0.7), (1.0, 0.7))
    np.testing.assert_allclose(row["difference"], d, atol=1e-12)
    np.testing.assert_allclose(row["sd_ratio"], 1.0, rtol=1e-12)
    np.testing.assert_allclose(row["overlap"], 2 * norm.cdf(-abs(d) / 2), atol=GRAIN)
    np.testing.assert_allclose(row["wasserstein"], abs(d), atol=1e-12)


@pytest.mark.parametrize("ratio", [0.25, 1.5, 4.0])
def test_a_wider_or_narrower_normal(ratio):
    row = pair((2.0, 0.3 * ratio), (2.0, 0.3))
    shared = quad(lambda x: min(norm.pdf(x), norm.pdf(x, 0.0, ratio)), -30, 30, limit=500, points=[-2, -1, 0, 1, 2])[0]
    np.testing.assert_allclose(row["difference"], 0.0, atol=1e-12)
    np.testing.assert_allclose(row["sd_ratio"], ratio, rtol=1e-12)
    # the two densities cross inside a bin, which only rounds off what is left over
    np.testing.assert_allclose(row["overlap"], shared, atol=8e-3)
    np.testing.assert_allclose(row["wasserstein"], abs(ratio - 1) * np.sqrt(2 / np.pi), rtol=2e-3)


def test_moments_without_draws_are_those_of_a_normal():
    reference = sampled({"a": normal_values(1.0, 0.5), "b": normal_values(-2.0, 0.25, seed=3)})
    fast = approximate([1.5, -2.0, 0.0], [0.5, 0.5, 0.0])
    table = compare({"fast": fast, "nuts": reference}).parameters.xs("fast", level="tree")
    assert list(table.index) == ["w[a]", "w[b]"]  # c is kept by nobody, and NUTS has no bias here
    np.testing.assert_allclose(table["difference"], [1.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(table["sd_ratio"], [1.0, 2.0], rtol=1e-12)
    np.testing.assert_allclose(table["wasserstein"], [1.0, np.sqrt(2 / np.pi)], rtol=5e-3)
    np.testing.assert_allclose(table["overlap"]["w[a]"], 2 * norm.cdf(-0.5), atol=GRAIN)


def test_what_a_tree_prunes_is_exactly_zero_there():
    fast = sampled({"b": normal_values(1.0, 1.0)}, condition="alpha")
    slow = sampled({"a": normal_values(0.6, 0.5), "b": normal_values(1.0, 1.0, seed=5)})
    row = compare({"fast": fast, "slow": slow}).parameters.loc[("w[a]", "fast")]
    assert row["mean"] == row["sd"] == row["sd_ratio"] == row["overlap"] == 0.0
    np.testing.assert_allclose(row["difference"], -0.6 / 0.5, rtol=1e-12)
    np.testing.assert_allclose(row["wasserstein"], foldnorm.mean(0.6 / 0.5), rtol=1e-3)


def test_where_the_reference_prunes_the_unit_is_the_trees_own():
    fast = sampled({"a": normal_values(0.6, 0.5), "b": normal_values(1.0, 1.0)}, condition="alpha")
    slow = sampled({"b": normal_values(1.0, 1.0)})
    row = compare({"fast": fast, "slow": slow}, reference="slow").parameters.loc[("w[a]", "fast")]
    np.testing.assert_allclose(row["difference"], 0.6 / 0.5, rtol=1e-12)
    assert row["overlap"] == 0.0
    assert np.isinf(row["sd_ratio"])


def test_two_that_prune_the_same_term_do_not_differ():
    trees = {
        "one": approximate([1.0, 0.0, 0.0], [0.1, 0.0, 0.0]),
        "two": approximate([1.0, 0.0, 0.0], [0.2, 0.0, 0.0]),
        "three": approximate([1.0, 2.0, 0.0], [0.2, 0.1, 0.0]),
    }
    row = compare(trees, reference="one").parameters.loc[("w[b]", "two")]
    assert row["difference"] == row["wasserstein"] == 0.0
    assert row["overlap"] == 1.0


def test_a_point_has_no_sd_and_no_overlap():
    point, slow = approximate([0.5, 0.0, 0.0], np.zeros(3)), sampled({"a": normal_values(0.0, 1.0)})
    comparison = compare({"plug": point, "nuts": slow})
    row = comparison.parameters.loc[("w[a]", "plug")]
    assert row["sd_ratio"] == row["overlap"] == 0.0
    np.testing.assert_allclose(row["wasserstein"], foldnorm.mean(0.5), rtol=1e-3)
    assert comparison.summary["kind"]["plug"] == "plug-in"
    assert "says nothing of uncertainty" in comparison.verdict


def test_distances_are_scipys():
    rng = np.random.default_rng(0)
    a, b = rng.gamma(2.0, size=(6, 800)), rng.standard_normal((6, 800)) + np.arange(6)[:, None]
    ours = wasserstein(np.sort(a, axis=1), np.sort(b, axis=1))
    np.testing.assert_allclose(ours, [wasserstein_distance(*both) for both in zip(a, b, strict=True)], rtol=1e-12)


def test_overlap_of_other_shapes_and_what_chance_takes_off():
    size, repeats = 4000, 40
    rng = np.random.default_rng(1)
    a, b = rng.gamma(3.0, size=(repeats, size)), 1.0 + 2.0 * rng.standard_normal((repeats, size))
    shared = quad(lambda x: min(gamma.pdf(x, 3.0), norm.pdf(x, 1.0, 2.0)), -20, 40, limit=500, points=[0, 1, 2, 3, 6])[
        0
    ]
    found = overlap(np.sort(a, axis=1), np.sort(b, axis=1))
    assert abs(found.mean() - shared) < 0.02
    same = overlap(*(np.sort(rng.standard_normal((repeats, size)), axis=1) for _ in range(2)))
    # sqrt(bins / (pi S)), the mean of sixteen half-normals; one such overlap has an sd of 0.008
    np.testing.assert_allclose(1 - same.mean(), np.sqrt(16 / (np.pi * size)), atol=4 * 0.008 / np.sqrt(repeats))


def autocorrelated(rho, shape, seed):
    rng = np.random.default_rng(seed)
    out = rng.standard_normal(shape)
    for t in range(1, shape[1]):
        out[:, t] = rho * out[:, t - 1] + np.sqrt(1 - rho**2) * out[:, t]
    return out


def test_the_monte_carlo_error_is_arvizs_in_the_references_sds():
    draws = autocorrelated(0.9, (4, 500), 0)
    slow, fast = sampled({"a": 3.0 * draws}), approximate([0.1, 0.0, 0.0], [3.0, 0.0, 0.0])
    comparison = compare({"fast": fast, "slow": slow})
    row = comparison.parameters.loc[("w[a]", "fast")]
    data = xr.Dataset({"a": (("chain", "draw"), draws)})
    error = float(arviz_stats.mcse(data)["a"]) / draws.std(ddof=1)
    np.testing.assert_allclose(row["mcse"], error, rtol=1e-9)
    assert row["mcse"] > 3 / np.sqrt(2000)  # a sampler's draws tell less than independent ones: here a twentieth
    effective = comparison.summary["effective_draws"]["slow"]
    np.testing.assert_allclose(effective, float(arviz_stats.ess(data, method="bulk")["a"]), rtol=1e-9)
    np.testing.assert_allclose(comparison.summary["effective_draws_a_second"]["slow"], effective / 10.0)


def test_differences_below_the_error_are_said_to_be_none():
    draws = autocorrelated(0.9, (4, 500), 0)
    slow = sampled({"a": draws})
    centre, spread = draws.mean(), draws.std()
    near, far = (approximate([centre + gap, 0.0, 0.0], [spread, 0.0, 0.0]) for gap in (0.01, 1.0))
    assert "1 of 1 differences are no larger" in compare({"fast": near, "slow": slow}).verdict
    assert "Every difference is larger than its Monte-Carlo error" in compare({"fast": far, "slow": slow}).verdict


def test_an_evidence_fit_is_compared_by_the_moments_it_computed():
    truth = bs.datasets.sparse_linear(n=60, p=8, k=3, random_seed=0)
    tree = bs.fit("ard_gaussian", (truth.X, truth.y), draws=50, chains=2, random_seed=0)
    other = bs.fit("ard_gaussian", (truth.X, truth.y), draws=50, chains=2, random_seed=1)
    table = compare({"one": tree, "other": other}).parameters.xs("other", level="tree")
    weights = table.loc[table.index.str.startswith("w[")]
    np.testing.assert_allclose(weights["difference"], 0.0, atol=1e-9)
    np.testing.assert_allclose(weights["overlap"], 1.0, atol=1e-9)
    assert (weights["mcse"] == 0).all()
    assert table["mcse"]["sigma"] > 0
    evidence = tree["evidence"]
    assert list(weights.index) == [f"w[{name}]" for name in evidence["basis"].to_numpy()[evidence["relevant"]]]


def test_order_of_the_trees_does_not_matter():
    trees = {
        "fast": approximate([1.5, -2.0, 0.0], [0.5, 0.5, 0.0]),
        "point": approximate([1.4, 0.0, 0.3], np.zeros(3)),
        "slow": sampled({"a": normal_values(1.0, 0.5), "b": normal_values(-2.0, 0.25, seed=3)}),
    }
    forth, back = compare(trees), compare(dict(reversed(trees.items())))
    assert forth.reference == back.reference == "slow"
    assert forth.parameters.sort_index().equals(back.parameters.sort_index())
    assert forth.summary.sort_index().equals(back.summary.sort_index())


def test_seen_from_the_other_side():
    trees = {"one": sampled({"a": normal_values(1.0, 0.5)}), "two": sampled({"a": normal_values(1.7, 0.8, seed=4)})}
    there = compare(trees, reference="one").parameters.iloc[0]
    back = compare(trees, reference="two").parameters.iloc[0]
    np.testing.assert_allclose(there["difference"] * 0.5, -back["difference"] * 0.8, rtol=1e-12)
    np.testing.assert_allclose(there["sd_ratio"] * back["sd_ratio"], 1.0, rtol=1e-12)
    np.testing.assert_allclose(there["overlap"], back["overlap"], atol=1e-12)
