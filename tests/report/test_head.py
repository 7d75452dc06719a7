"""The first screen: one sentence, a row a fit, the terms that matter with their chance and rivals."""

import re

import numpy as np
import pytest

import bayes_sparse as bs


def first_screen(page):
    return page.raw[page.raw.index("<header>") : page.raw.index('class="fit"')]


def cells(html, name):
    """Texts of the cells of the table of that class, row by row, headings included."""
    table = re.search(rf'<table class="{name}".*?</table>|<table[^>]*class="{name}".*?</table>', html, re.S)[0]
    rows = re.findall(r"<tr.*?</tr>", table, re.S)
    return [[re.sub("<[^>]+>", "", cell) for cell in re.findall(r"<t[hd].*?</t[hd]>", row, re.S)] for row in rows]


@pytest.fixture(scope="module")
def twins():
    rng = np.random.default_rng(16)
    X = rng.normal(size=(100, 8))
    X[:, 1] = 0.95 * X[:, 0] + 0.3 * X[:, 1]
    return bs.fit("ard_gaussian", (X, X[:, 0] - 0.3 * X[:, 4] + rng.normal(size=100)), draws=200, random_seed=0)


@pytest.mark.quick
def test_one_fit(written, twins):
    html = first_screen(written(twins))
    sentence = re.search(r'<p class="status">(.*?)</p>', html)[1]
    assert sentence == f"✓ {bs.summary(twins).sentence}"
    (_, row) = cells(html, "fits")
    assert row[0] == "✓ Trust it given the terms kept"
    kept = bs.relevance(twins).query("kept")
    assert row[1] == f"{len(kept)} of 8 kept, {int(kept['relevant'].sum())} relevant"
    head, *terms = cells(html, "terms")
    assert head == ["relevant term", "weight", "chance"]
    relevant = kept.query("relevant")
    assert [term[0].split()[0] for term in terms] == list(relevant.index)
    (rival,) = relevant["rival"].iloc[0]
    assert terms[0][0] == f"{relevant.index[0]} or {rival}"
    assert [term[2] for term in terms] == [
        "&lt; 0.0001" if chance < 1e-4 else f"{chance:.2g}" for chance in relevant["chance"]
    ]


@pytest.mark.quick
def test_several_fits_beside_a_reference(written, twins, sampled_like):
    trees = {"fast": twins, "slow": sampled_like(twins)}
    html = first_screen(written(trees))
    found = bs.compare(trees)
    sentence = re.search(r'<p class="status">(.*?)</p>', html)[1]
    largest = found.summary["largest_difference"]["fast"]
    assert sentence.startswith("! By slow, ")
    assert sentence.endswith(f"; fast differs from it by up to {largest:.2g} sds.")
    head, fast, slow = cells(html, "fits")
    assert head == ["fit", "trust", "terms", "differs from slow", "what it is", "time"]
    worst = found.parameters.xs("fast", level="tree")["difference"].abs().idxmax()
    assert fast[3] == f"by up to {largest:.2g} sds ({worst})"
    assert slow[3] == "the reference"
    assert fast[4] == "evidence, exact posterior at alpha*"
    assert cells(html, "terms")[0] == ["term: its chance by", "fast", "slow"]


def test_sentences_of_the_comparison_stand_beside_its_tables(written, twins, sampled_like):
    trees = {"fast": twins, "slow": sampled_like(twins)}
    page = written(trees)
    for sentence in bs.compare(trees).sentences[1:]:
        assert sentence in page.text


def test_kernels_and_fits_without_a_find_have_no_table_of_terms(written, kernel):
    html = first_screen(written(kernel))
    assert 'class="terms"' not in html
    assert "kernels" in html


def test_fits_that_cannot_be_compared_say_why(written, linear, kernel):
    html = first_screen(written({"linear": linear, "kernel": kernel}))
    assert "2 fits, which are not compared: The trees have different data" in html
