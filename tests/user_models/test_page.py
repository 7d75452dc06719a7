"""The table of models in the docs is the one that the tests run."""

from .page import PAGE, text


def test_the_page_is_up_to_date():
    assert PAGE.read_text(encoding="utf-8") == text(), "run `python -m tests.user_models.page`"
