"""Whatever the user's names hold is shown as text."""

import pytest

from bayes_sparse.report.markup import joined, tag, text

SCRIPT = "<script>window.flag=1</script>"
IMAGE = '"><img src=x onerror=window.flag=1>'


@pytest.fixture(scope="module")
def page(written, nasty, sampled_like):
    trees = {SCRIPT: nasty, IMAGE: sampled_like(nasty)}
    return written(trees, title=SCRIPT + IMAGE + "</title>")


def test_no_name_becomes_an_element(page):
    assert page.wrong == []
    assert not page.all("script")
    assert not page.all("b")
    assert not page.all("i")
    assert all(picture["src"].startswith("data:image/png;base64,") for picture in page.all("img"))


def test_no_name_becomes_an_attribute(page):
    known = {"alt", "aria-label", "charset", "class", "content", "height", "href", "http-equiv", "id", "lang", "name"}
    known |= {"data-label", "role", "scope", "src", "tabindex", "width"}
    assert {key for _, attributes in page.elements for key in attributes} <= known


def test_names_are_there_as_text(page, nasty):
    for name in nasty["evidence"]["basis"].to_numpy():
        if bool(nasty["evidence"]["kept"].sel(basis=name)):
            assert " ".join(str(name).split()) in page.text
    assert "<i>M</i>" in page.text
    assert "<b>target" in page.text


def test_what_is_not_markup_is_escaped():
    assert tag("p", SCRIPT, title=IMAGE) == (
        '<p title="&quot;&gt;&lt;img src=x onerror=window.flag=1&gt;">&lt;script&gt;window.flag=1&lt;/script&gt;</p>'
    )
    assert joined(["<", tag("br"), 3]) == "&lt;<br>3"
    assert text(text("<")) == "&lt;"
    assert text("a\x00b\ud800") == "a\ufffdb\ufffd"
    assert tag("a", class_="x", aria_label="y", title=None) == '<a class="x" aria-label="y"></a>'
