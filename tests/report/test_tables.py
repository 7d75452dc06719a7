"""Numbers in words, and the parts of tables."""

import numpy as np
import pandas as pd
import pytest

from bayes_sparse.report.markup import number, table, with_error
from bayes_sparse.report.sections.differences import _summary
from bayes_sparse.results.comparison.compare import compare
from bayes_sparse.results.terms import known_terms, terms_of
from bayes_sparse.trees.read import StoredFit


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0.123456, "0.123"),
        (-1234.5, "−1,230"),
        (1.0e-7, "1e−07"),
        (12345678.0, "12,300,000"),
        (np.inf, "∞"),
        (-np.inf, "−∞"),
        (np.nan, "–"),
        (12345, "12,345"),
        (np.int64(-3), "−3"),
        (True, "yes"),
        ("<b>", "<b>"),
    ],
)
def test_numbers(value, words):
    assert number(value) == words


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        (-22.84, 5.46, "−22.8 ± 5.5"),
        (-31.912, 0.021, "−31.91 ± 0.02"),
        (3.0, np.nan, "3.0"),
        (3.0, 0.0, "3.0"),
        (np.nan, 1.0, "–"),
        (12345.6, 100.0, "12,345.6 ± 100.0"),
    ],
)
def test_estimates(value, error, words):
    assert with_error(value, error) == words


def test_a_table_has_its_names_escaped_and_its_numbers_to_the_right():
    frame = pd.DataFrame({"<n>": [1.5], "words": ["a<b"], "mixed": ["−2 ± 1"]}, index=pd.Index(["<t>"], name="<i>"))
    made = table(frame, "<label>")
    assert '<th scope="col" class="number">&lt;n&gt;</th>' in made
    assert '<td class="number">1.5</td><td class="words">a&lt;b</td><td class="number">−2 ± 1</td>' in made
    assert '<span class="name">&lt;t&gt;</span>' in made
    assert 'aria-label="&lt;label&gt;"' in made


def test_terms_are_the_moments_of_an_evidence_fit_and_the_quantiles_of_draws(linear, sampled_like):
    fits = [StoredFit("a", linear), StoredFit("b", sampled_like(linear))]
    known = known_terms(fits)
    assert known == {f"w[x{j}]": f"x{j}" for j in range(6)}
    own, drawn = (terms_of(fit, known) for fit in fits)
    evidence = linear["evidence"].to_dataset().sel(basis=list(own.index))
    np.testing.assert_allclose(own["mean"], evidence["mean"])
    np.testing.assert_allclose(own["high"] - own["low"], 2 * 1.959964 * evidence["sd"])
    assert sorted(drawn.index) == [f"x{j}" for j in range(6)]
    draws = fits[1].draws["w[x3]"]
    assert drawn.loc["x3", "low"] == pytest.approx(np.quantile(draws, 0.025))
    assert drawn.loc["x3", "sd"] == pytest.approx(draws.std(ddof=1))
    np.testing.assert_allclose(drawn["scale"], linear["constant_data"]["basis_scale"].sel(basis=list(drawn.index)))


def test_the_summary_shows_what_compare_found(linear, sampled_like, written):
    trees = {"evidence": linear, "nuts": sampled_like(linear)}
    found = compare(trees)
    shown = _summary(found.summary)
    largest = found.summary.loc["evidence", "largest_difference"]
    assert shown.loc["largest difference of means (sd)"].tolist() == [number(largest), "–"]
    page = written(trees)
    assert number(largest) in page.section("differences")
    worst = found.parameters["difference"].abs().idxmax()[0]
    assert page.section("differences").index(f">{worst}<") > 0
