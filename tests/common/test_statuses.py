"""A status is a word, a sentence and a cure, said in one place."""

import json
from pathlib import Path

import pytest

from bayes_sparse.common.statuses import Status

TRUST = (Path(__file__).parents[2] / "docs" / "trust.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("status", Status)
def test_a_status_is_its_word(status):
    assert status == str(status) == status.value == json.loads(json.dumps(status))
    assert Status.of(status.value) is status


@pytest.mark.parametrize("status", Status)
def test_the_sentence_stands_alone_and_takes_more(status):
    sentence = status.sentence()
    assert sentence.endswith(".")
    assert "{" not in sentence
    if status.level == "bad":
        assert "; " in sentence  # and what to do about it
        assert status.sentence(cure="do this").endswith("; do this.")


@pytest.mark.parametrize("status", Status)
def test_the_page_about_trust_says_the_same(status):
    (row,) = [line for line in TRUST.splitlines() if line.startswith(f"| `{status.value}` |")]
    assert row.endswith(f"| {status.sentence()} |")


def test_the_levels():
    assert {status.value for status in Status if status.level == "good"} == {"converged", "fixed-point", "jump"}
