"""What is said of each tree, what is left out, and what is refused."""

import json

import arviz_stats
import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import bayes_sparse as bs
from bayes_sparse.results.comparison import compare, plot_compare
from bayes_sparse.results.correct import correct
from bayes_sparse.results.log_evidence import log_evidence
from bayes_sparse.results.loo import loo

from .by_hand import approximate, normal_values, sampled

mpl.use("Agg")


@pytest.fixture(scope="module")
def truth():
    return bs.datasets.sparse_linear(n=60, p=8, k=3, random_seed=0)


@pytest.fixture(scope="module")
def fits(truth):
    data = (truth.X, truth.y)
    return {
        "sequential": bs.fit("ard_gaussian", data, random_seed=0),
        "directions": bs.fit("laplace_eigen", data, random_seed=1),
        "path": bs.fit("jeffreys_laplace", data, random_seed=2),
        "moments": bs.fit("ard_gaussian", data, draws=0),
    }


@pytest.fixture(scope="module")
def comparison(fits):
    return compare(fits)


def two(**settings):
    return {
        "fast": approximate([1.0, 0.0, 0.0], [0.1, 0.0, 0.0]),
        "slow": sampled({"a": normal_values(1.0, 0.1)}),
    } | settings


def test_kinds_in_words(comparison):
    assert comparison.summary["kind"].to_list() == [
        "evidence, exact posterior at alpha*",
        "evidence, quadratic approximation at alpha*",
        "evidence, Laplace approximation at lambda*",
        "evidence, exact posterior at alpha*",
    ]
    trees = two(third=sampled({"a": normal_values(1.0, 0.1)}, condition="alpha"))
    assert compare(trees).summary["kind"].to_list() == [
        "evidence, exact posterior at alpha*",
        "NUTS, everything",
        "NUTS at alpha*",
    ]


def test_weights_made_of_directions_are_not_relevant_or_not(comparison, fits):
    """They have marginals, those of the draws, and a place in no count."""
    assert list(comparison.relevant.columns) == ["sequential", "path", "moments"]
    assert comparison.summary["relevant_terms"].isna().to_list() == [False, True, False, False]
    assert comparison.summary["terms_kept"]["directions"] == 8
    counts = comparison.relevance.drop(columns="rank_correlation").T
    assert counts["sequential"]["directions"].isna().all()
    assert counts["sequential"]["path"].notna().all()
    assert comparison.relevance["rank_correlation"].notna().all()
    own = comparison.parameters.xs("directions", level="tree")
    drawn = fits["directions"]["posterior"]["w"].std(("chain", "draw")).to_numpy()
    np.testing.assert_allclose(own.loc[[f"w[x{i}]" for i in range(8)], "sd"], drawn, rtol=0.1)


def test_the_reference_is_the_most_exact_tree_unless_named():
    third = sampled({"a": normal_values(1.0, 0.1)}, condition="alpha")
    assert compare(two(third=third)).reference == "slow"
    assert compare({"fast": two()["fast"], "third": third}).reference == "third"
    assert compare(two(), reference="fast").reference == "fast"


def test_speed():
    summary = compare(two()).summary
    np.testing.assert_allclose(summary["seconds"], [0.1, 10.0])
    np.testing.assert_allclose(summary["speed_up"], [100.0, 1.0])
    assert "100 times less time" in compare(two()).verdict
    assert "100 times more time" in compare(two(), reference="fast").verdict


def test_effective_draws(fits, comparison):
    corrected = correct(fits["directions"], random_seed=0)
    summary = compare({"directions": fits["directions"], "corrected": corrected}).summary
    assert summary["effective_draws"]["directions"] == 4000
    worth = json.loads(corrected["evidence"].attrs["diagnosis"])["effective_draws"]
    assert summary["effective_draws"]["corrected"] == worth
    assert summary["kind"]["corrected"].endswith("corrected by importance weights")
    assert np.isnan(comparison.summary["effective_draws"]["moments"])


def test_weights_of_all_kinds_of_trees_meet(comparison):
    table = comparison.parameters
    assert comparison.reference == "sequential"
    assert set(table.index.unique("tree")) == {"directions", "path", "moments"}
    assert len(table.xs("directions", level="tree")) == 8 + 2  # every weight, the bias and sigma
    same = table.xs("moments", level="tree")
    np.testing.assert_allclose(same["difference"], 0.0, atol=1e-9)
    assert "sigma" not in same.index  # known as a point only
    assert comparison.summary["terms_kept"].to_list() == [3, 8, 8, 3]


def test_log_evidences_carry_their_kind_and_are_not_ranked(fits, comparison):
    summary = comparison.summary
    assert list(summary.index) == list(fits)  # as they were given
    for name in ("sequential", "moments"):
        found = log_evidence(fits[name])
        assert summary["log_evidence"][name] == found.value
        assert summary["log_evidence_kind"][name] == found.kind == "exact"
    assert "they are not ranked here" in comparison.verdict
    alike = compare({"one": fits["sequential"], "two": fits["moments"]})
    assert "ranked" not in alike.verdict


def test_the_same_evidence_of_other_terms_is_not_ranked_either():
    trees = {
        "one": approximate([1.0, 0.0, 0.0], [0.1, 0.0, 0.0]),
        "two": approximate([1.0, 1.0, 0.0], [0.1, 0.1, 0.0]),
    }
    assert "of different terms" in compare(trees).verdict


def test_a_tree_that_does_not_hold_its_data_is_said_to():
    trees = two()
    del trees["slow"]["observed_data"]
    comparison = compare(trees)
    assert "'slow' does not hold its data: that they are the same was not checked." in comparison.notes


def test_a_tree_without_evidence_says_so():
    comparison = compare(two())
    assert comparison.summary["log_evidence_kind"].to_list() == ["exact", "none"]
    assert any(note.startswith("'slow'") for note in comparison.notes)


def test_loo_is_arvizs(fits, comparison):
    with pytest.warns(UserWarning, match="Pareto"):
        found = {name: loo(fits[name], pointwise=True) for name in ("sequential", "directions", "path")}
    expected = arviz_stats.compare(found, round_to="none")
    pd.testing.assert_frame_equal(comparison.loo, expected)
    np.testing.assert_allclose(comparison.summary["elpd_loo"]["path"], found["path"].elpd)
    assert np.isnan(comparison.summary["elpd_loo"]["moments"])
    assert "'moments' has no pointwise log-likelihood and is left out of loo." in comparison.notes
    assert any("of 'sequential'" in note and "is too high" in note for note in comparison.notes)
    assert compare(two()).loo is None


def test_whether_the_reference_can_be_trusted():
    rng = np.random.default_rng(0)
    good = sampled({"a": rng.standard_normal((4, 1000))})
    apart = sampled({"a": rng.standard_normal((4, 1000)) + np.arange(4)[:, None]})
    fast = approximate([0.5, 0.0, 0.0], [1.0, 0.0, 0.0])
    trusted, doubted = compare({"fast": fast, "slow": good}), compare({"fast": fast, "slow": apart})
    assert trusted.verdict.startswith("Measured against 'slow' (NUTS, everything), which can be trusted itself.")
    assert "which is not to be trusted itself, so neither is its distance from the others: " in doubted.verdict
    assert "the chains disagree" in doubted.verdict
    assert trusted.summary["trusted"].to_list() == [pd.NA, True]  # a fit without draws is not checked
    assert doubted.summary["trusted"]["slow"] is False
    assert "The reference has no draws, so that it cannot be checked itself." in compare({"a": fast, "b": fast}).notes


def test_other_basis_functions_are_not_matched(truth, fits):
    other = bs.fit("ard_gaussian", (truth.X, truth.y), basis="polynomial", draws=100, random_seed=0)
    comparison = compare({"linear": fits["sequential"], "polynomial": other}, reference="linear")
    assert comparison.parameters.empty
    assert comparison.relevance.empty
    assert len(comparison.loo) == 2
    assert any("'polynomial' has other basis functions" in note for note in comparison.notes)
    assert "polynomial" in str(comparison)
    with pytest.raises(ValueError, match="nothing to draw"):
        plot_compare(comparison)


def test_a_ladder_is_taken_as_it_is():
    ladder = xr.DataTree(children={"approximation": two()["fast"], "full": two()["slow"]})
    comparison = compare(ladder)
    assert comparison.reference == "full"
    np.testing.assert_allclose(comparison.parameters["difference"], 0.0, atol=1e-9)


def test_it_reads_well(comparison):
    text = str(comparison)
    table, sentences, notes = text.split("\n\n")
    assert table.splitlines()[0].split() == list(comparison.summary.index)
    shown = {line[:24].strip(): line[24:].split() for line in table.splitlines()}
    assert shown["terms kept"] == ["3", "8", "8", "3"]
    assert shown["trusted by itself"] == ["yes", "yes", "yes"]  # the fourth has no draws
    assert shown["median overlap"] == [f"{x:.3g}" for x in comparison.summary["median_overlap"].dropna()]
    assert "nan" not in text
    assert sentences.startswith("Measured against 'sequential'")
    assert " ".join(sentences.split()) == comparison.verdict
    assert " ".join(notes.split()) == " ".join(comparison.notes)
    assert max(map(len, text.splitlines())) <= 100
    page = compare({"<b>": two()["fast"], "slow": two()["slow"]})._repr_html_()
    assert "&lt;b&gt;" in page
    assert "<b>" not in page


def test_the_picture(comparison):
    ax = plot_compare(comparison, top=4)
    shown = [label.get_text() for label in ax.get_yticklabels()]
    size = comparison.parameters["difference"].abs().groupby(level="parameter").max().sort_values(ascending=False)
    assert sorted(shown) == sorted(size.index[:4])
    assert "10 parameters, the 4 that differ most" in ax.get_title()
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels[:4] == ["sequential (evidence, exact posterior at alpha*)", "directions", "path", "moments"]
    with pytest.raises(TypeError, match="plot_compare draws"):
        plot_compare(comparison.parameters)


def test_names_of_several_classes():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 3))
    y = np.array(["u", "v", "w"])[(2 * X @ rng.standard_normal((3, 3)) + rng.gumbel(size=(90, 3))).argmax(axis=1)]
    fits = {
        "drawn": bs.fit("student_multinomial", (X, y), draws=200, random_seed=0),
        "moments": bs.fit("student_multinomial", (X, y), draws=0),
    }
    table = compare(fits).parameters.xs("moments", level="tree")
    kept = bs.relevance(fits["drawn"]).query("kept").index
    assert set(table.index) == {f"bias[{c}]" for c in "uvw"} | {f"w[{column}[{c}]]" for column, c in kept}
    np.testing.assert_allclose(table["difference"], 0.0, atol=1e-9)


@pytest.mark.parametrize(
    ("trees", "error", "said"),
    [
        ({"one": two()["fast"]}, ValueError, "two trees or more, got 1: 'one'"),
        ([two()["fast"], two()["slow"]], TypeError, "trees by name"),
        (two()["fast"], TypeError, "nothing beside it"),
        (two(bad=xr.DataTree()), TypeError, "'bad' is no tree from bayes_sparse.fit"),
        (two(bad=3), TypeError, "'bad' is no tree from bayes_sparse.fit"),
        (two(bad=sampled({}, target="z")), ValueError, "'fast' is of 'y', 'bad' of 'z'"),
        (two(bad=sampled({}, y=np.arange(4.0))), ValueError, "'fast' has 5 rows and 'bad' has 4"),
        (two(bad=sampled({}, y=[-1.0, -0.5, 0.0, 7.0, 8.0])), ValueError, r"2 of 5 targets, first in row 3 \(0.5 in"),
    ],
)
def test_refused(trees, error, said):
    with pytest.raises(error, match=said):
        compare(trees)


def test_an_unknown_reference_is_refused():
    with pytest.raises(ValueError, match="There is no tree 'other' to be the reference; there are 'fast', 'slow'"):
        compare(two(), reference="other")
