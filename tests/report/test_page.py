"""The page is well formed, whole by itself, in order, and shows the numbers of the functions it asks."""

import importlib
import re

import numpy as np
import pytest

import bayes_sparse as bs
from bayes_sparse.report.material import Section
from bayes_sparse.results.diagnose import diagnose
from bayes_sparse.results.loo import loo

ORDER = ["data", "relevance", "search", "importance", "loo", "chains", "differences", "predictive", "settings"]


@pytest.fixture(scope="module")
def page(written, logistic, sampled_like, logistic_data):
    trees = {"evidence": logistic, "nuts": sampled_like(logistic)}
    return written(trees, title="A title", data=logistic_data.iloc[150:], target="label")


@pytest.fixture(scope="module")
def linear_page(written, linear):
    return written(linear)


@pytest.mark.quick
def test_every_element_is_closed_in_order(page):
    assert page.wrong == []


@pytest.mark.quick
def test_sections_come_in_order_after_the_verdict_and_the_contents_lead_to_them(page):
    anchors = [attributes["id"] for attributes in page.all("section") if "id" in attributes]
    assert [anchor for anchor in anchors if anchor in ORDER] == ORDER  # there may be more
    links = [attributes["href"] for attributes in page.all("a")]
    assert links == [f"#{anchor}" for anchor in anchors]
    assert page.raw.index('class="verdict') < page.raw.index("<nav") < page.raw.index('id="data"')


@pytest.mark.quick
def test_nothing_is_loaded_from_elsewhere(page):
    for name, attributes in page.elements:
        assert name not in ("script", "link", "iframe", "object", "embed")
        for key in ("src", "href", "srcset", "action"):
            assert attributes.get(key, "#").startswith(("#", "data:image/png;base64,"))
        assert "url(" not in attributes.get("style", "")
    style = page.raw[page.raw.index("<style>") : page.raw.index("</style>")]
    assert "url(" not in style
    assert "@import" not in style


def test_every_picture_has_words_and_a_size(page):
    pictures = page.all("img")
    assert len(pictures) > 12
    assert all(picture["alt"] and int(picture["width"]) > 0 and int(picture["height"]) > 0 for picture in pictures)


def test_tables_scroll_inside_themselves(page):
    assert len(re.findall('<div class="scroll"[^>]*><table', page.raw)) == len(page.all("table")) > 8
    assert {"name": "viewport", "content": "width=device-width, initial-scale=1"} in page.all("meta")


@pytest.mark.quick
def test_the_first_numbers_are_those_of_diagnose_and_loo(page, logistic):
    found = diagnose(logistic)
    with pytest.warns(UserWarning, match="Pareto"):
        left_out = loo(logistic)
    kept = int(logistic["evidence"]["kept"].sum())
    head = page.raw[: page.raw.index("<nav")]
    assert f"{found.k_hat:.2f}" in head
    assert f">{kept}<" in head
    assert "of 6" in head
    assert f"{left_out.elpd:.1f}".replace("-", "−") in head


def test_a_loo_whose_selection_has_seen_the_rows_is_said_to_be(page):
    said = page.section("loo")
    assert "terms were selected, and the hyper-parameters found, with all rows: this elpd is too high" in said
    assert "ranks by a LOO whose selection has seen the rows" in said


@pytest.mark.quick
def test_the_table_of_terms_is_that_of_relevance(page, logistic):
    table = bs.relevance(logistic).query("kept")
    cells = re.findall(
        r'<th scope="row" class="words"><span class="name">([^<]*)</span></th>', page.section("relevance")
    )
    assert cells[: len(table)] == list(table.index)


@pytest.mark.slow
def test_what_nuts_sampled_and_says_of_a_term_is_on_the_page(written):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    same = {"draws": 1000, "chains": 2, "random_seed": 0, "progressbar": False}
    data = (X, 5 * X[:, 0] + rng.normal(size=60))
    tree = bs.fit("ard_gaussian", data, method="nuts", hyper=(1, 0.1), slab=2.5, **same)
    page = written({"NUTS": tree, "flat": bs.fit("ard_gaussian", data, **same)})
    head = page.raw[: page.raw.index("<nav")]
    assert ">1, 0.1; slab 2.5<" in head
    assert ">flat<" in head
    unit = tree["posterior"].attrs["hyper_unit"]
    chains = page.section("chains")
    assert f"Gamma(1, 0.1), slab 2.5, in units of standardised columns and of targets divided by {unit:.3g}" in chains
    assert "no: the first draws were enough" in chains
    assert "all but the matrix products" in chains
    assert "slab=2.5" in page.section("settings")
    own = bs.relevance(tree).loc["x1"]
    said = f"{100 * own['gamma']:.0f}% ({100 * own['gamma_low']:.0f} to {100 * own['gamma_high']:.0f})"
    assert said in page.section("relevance")
    assert f">{own['sign']:.2f}<" in page.section("relevance")
    beyond = bs.relevance(tree, delta=4.9)["beyond"]
    table = written(tree, delta=4.9).section("relevance")
    assert "P(|w| &gt; 4.9)" in table
    assert f">{beyond['x1']:.2f}<" in table
    tree["posterior"].attrs["retried"] = "The first 400 draws fell short."
    assert "The first 400 draws fell short." in written(tree).section("chains")


def test_sizes_that_matter_are_asked_of_draws(tmp_path, logistic):
    with pytest.raises(ValueError, match="`delta` is asked of the draws of method='nuts'"):
        bs.report(logistic, tmp_path / "page.html", delta=1.0, progressbar=False)


def test_a_title_of_its_own(written, linear, linear_page):
    assert "Sparse fit of y" in linear_page.text
    assert "A title" in written(linear, title="A title").text


def test_an_empty_section_says_why_and_is_not_in_the_contents(linear_page):
    links = [attributes["href"] for attributes in linear_page.all("a")]
    assert "#chains" not in links
    assert "None of these fits was sampled" in linear_page.section("chains")
    assert "nothing to compare" in linear_page.section("differences")


def test_a_fit_is_called_what_it_is_in_words(written, sampled_like, linear, linear_page):
    sampled = sampled_like(linear)
    shift = np.zeros((2, 1))
    shift[1] = 50.0
    apart = sampled["posterior"].to_dataset()
    apart["bias"] = apart["bias"] + shift
    sampled["posterior"] = apart.assign_attrs(sampled["posterior"].attrs)
    page = written(sampled)
    assert "Do not trust it" in page.text
    assert 'class="verdict bad"' in page.raw
    assert 'class="verdict good"' in linear_page.raw
    assert "✓ Trust it" in linear_page.text


def test_the_rungs_of_a_ladder_are_fits(written, linear, sampled_like):
    import xarray as xr

    ladder = xr.DataTree(children={"approximation": linear.copy(), "full": sampled_like(linear)})
    page = written(ladder)
    assert "approximation" in page.text
    assert "full" in page.text
    assert "#differences" in [attributes["href"] for attributes in page.all("a")]


def test_a_section_that_fails_leaves_the_others(written, linear, monkeypatch):
    def broken(material):
        raise KeyError("<b>broken</b>")

    module = importlib.import_module("bayes_sparse.report.sections.data")
    monkeypatch.setattr(module, "SECTION", Section("The data", 10, broken))
    with pytest.warns(bs.FitWarning, match="could not be made"):
        page = written(linear)
    assert "This section could not be made: KeyError" in page.section("data")
    assert "<b>broken" not in page.raw
    assert "#relevance" in [attributes["href"] for attributes in page.all("a")]
