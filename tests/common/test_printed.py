"""What is printed is aligned, fits the terminal, and is escaped in a notebook."""

import re

import pytest

from bayes_sparse.common.printed import Grid, as_html, as_text, estimate, figure

TABLE = Grid([("x0", "1.5", "a word"), ("longer", "-12", "another < word")], ("term", "mean", "said"))


def test_numbers_stand_to_the_right_and_words_to_the_left():
    assert as_text([TABLE, "A sentence."]).splitlines() == [
        "term    mean  said",
        "x0       1.5  a word",
        "longer   -12  another < word",
        "",
        "A sentence.",
    ]


@pytest.mark.parametrize(("columns", "widest"), [("60", 60), ("400", 100)])
def test_it_is_as_wide_as_the_terminal_and_at_most_a_hundred(monkeypatch, columns, widest):
    monkeypatch.setenv("COLUMNS", columns)
    words = "a sentence of many words " * 9
    text = as_text([Grid([("name", words, "12")], ("what", "said", "n")), words])
    assert widest - 12 < max(map(len, text.splitlines())) <= widest
    table, below = text.split("\n\n")
    told = [line[6:].removesuffix("12").strip() for line in table.splitlines()[1:]]
    assert " ".join(told) == " ".join(below.split()) == words.strip()  # wrapped, not cut


def test_a_long_name_is_broken_and_not_lost(monkeypatch):
    monkeypatch.setenv("COLUMNS", "50")
    name = "very_long_name_" * 10
    text = as_text([Grid([(name, "1")], ("", "mean"))])
    assert max(map(len, text.splitlines())) <= 50
    assert "".join(line[:45].strip() for line in text.splitlines()[1:]) == name


def test_a_notebook_has_headings_and_nothing_that_runs():
    page = as_html([TABLE, "one <script>\ntwo"])
    assert re.search(r'<th scope="col" style="text-align:right[^>]*>mean</th>', page)
    assert re.search(r'<th scope="row" style="text-align:left[^>]*>longer</th>', page)
    assert ">another &lt; word</td>" in page
    assert page.endswith("<p>one &lt;script&gt;</p><p>two</p>")


def test_nothing_is_shown_of_a_table_without_rows():
    assert as_text([Grid([], ("a", "b")), "Said."]) == "Said."
    assert as_html([Grid([], ("a", "b")), ""]) == ""


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        (-24.0123, 4.923, "-24.0 +- 4.9"),
        (-34.6158, 0.03898, "-34.616 +- 0.039"),
        (-118.753, 2e-16, "-118.75"),
        (-118.753, float("nan"), "-118.75"),
    ],
)
def test_an_estimate_has_the_digits_that_its_error_leaves(value, error, words):
    assert estimate(value, error) == words


def test_figures():
    assert [figure(x) for x in (0.012345, 12.345, 4000.4, 123456.7, float("nan"), float("inf"))] == [
        "0.0123",
        "12.3",
        "4000",
        "123457",
        "",
        "inf",
    ]
