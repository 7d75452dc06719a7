"""The page in a real browser: no error, no request, no sideways scrolling, no name that runs."""

import os
import shutil
from itertools import pairwise

import pytest

from bayes_sparse.report import report

SCRIPT = "<script>window.flag=1</script>"
IMAGE = '"><img src=x onerror=window.flag=1>'
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="pip install playwright to open the report")
    program = next((found for found in map(shutil.which, _BROWSERS) if found), None)
    if program is None:
        assert "BAYES_SPARSE_NEEDS_BROWSER" not in os.environ, "the automatic checks have lost their browser"
        pytest.skip("no browser to open the report in: install Chromium (Debian: apt install chromium)")
    with playwright.sync_playwright() as running:
        opened = running.chromium.launch(executable_path=program, args=list(_QUIET), headless=True)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def place(tmp_path_factory, nasty, sampled_like):
    trees = {SCRIPT: nasty, IMAGE: sampled_like(nasty)}
    return report(trees, tmp_path_factory.mktemp("browser") / "report.html", title=f"{IMAGE}{SCRIPT}")


def _own(address):
    return address.startswith(("file:", "data:"))


def opened(browser, place, width, **settings):
    """The page in a window of its own, and whatever went wrong while it was opened."""
    context = browser.new_context(viewport={"width": width, "height": 800}, **settings)
    page, trouble = context.new_page(), []
    page.on("console", lambda message: trouble.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: trouble.append(f"error: {error}"))
    page.on("requestfailed", lambda request: trouble.append(f"failed: {request.url[:100]}"))
    page.on(
        "request",
        lambda request: (
            None if request.url.startswith(("file:", "data:")) else trouble.append(f"request: {request.url}")
        ),
    )
    page.goto(place.as_uri(), wait_until="load")
    return page, trouble


@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (390, "light"), (320, "dark")])
def test_it_opens_in_silence_and_does_not_scroll_sideways(browser, place, width, scheme):
    page, trouble = opened(browser, place, width, color_scheme=scheme)
    assert trouble == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("[...document.images].every(image => image.complete && image.naturalWidth > 0)")
    assert page.evaluate("document.images.length") > 12
    page.context.close()


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
def test_the_first_screen_has_the_sentence_and_the_fits(browser, tmp_path, linear, width, height):
    place = report({"one": linear, "two": linear}, tmp_path / "report.html")
    page, _ = opened(browser, place, width)
    ends = page.evaluate("[...document.querySelectorAll('.status, .fits')].map(e => e.getBoundingClientRect().bottom)")
    assert len(ends) == 2
    assert max(ends) <= height
    inside = page.evaluate("[...document.querySelectorAll('header .scroll')].map(e => e.scrollWidth - e.clientWidth)")
    assert max(inside) == 0
    levels = page.evaluate("[...document.querySelectorAll('h1, h2, h3')].map(e => Number(e.tagName[1]))")
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert page.evaluate("[...document.querySelectorAll('header th')].every(e => e.scope)")
    page.context.close()


def test_no_name_runs(browser, place):
    page, trouble = opened(browser, place, 1200)
    assert page.evaluate("window.flag === undefined")
    assert page.title() == f"{IMAGE}{SCRIPT}"
    assert page.inner_text("h1") == f"{IMAGE}{SCRIPT}"
    assert page.evaluate("document.scripts.length") == 0
    assert trouble == []
    page.context.close()


def test_every_link_of_the_contents_leads_somewhere(browser, place):
    page, _ = opened(browser, place, 1200)
    links = page.locator("nav a")
    assert links.count() >= 8
    for i in range(links.count()):
        links.nth(i).click()
        assert page.evaluate("document.querySelector(':target') !== null")
    page.context.close()


def test_a_wide_table_scrolls_inside_itself(browser, place):
    page, _ = opened(browser, place, 390)
    wider = page.evaluate("[...document.querySelectorAll('.scroll')].some(e => e.scrollWidth > e.clientWidth)")
    assert wider
    page.context.close()


def test_it_prints(browser, place, tmp_path):
    page, trouble = opened(browser, place, 1200, color_scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("getComputedStyle(document.querySelector('figure')).breakInside") == "avoid"
    printed = page.pdf(path=tmp_path / "report.pdf", format="A4")
    assert printed.startswith(b"%PDF")
    assert len(printed) > 50_000
    assert trouble == []
    page.context.close()
