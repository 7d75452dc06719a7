"""Choices and settings as text."""

import click
import pytest

import bayes_sparse as bs
from bayes_sparse.command_line.choices import choice_of, hyper_of, settings_of
from tests.support import refused

BASIS, LIKELIHOODS = "bayes_sparse.inputs.basis", "bayes_sparse.inputs.likelihoods"

pytestmark = pytest.mark.quick


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("linear", bs.basis.linear()),
        ("linear:bias=False", bs.basis.linear(bias=False)),
        ("rbf:0.5", bs.basis.rbf(width=0.5)),
        ("rbf:evidence", bs.basis.rbf(width="evidence")),
        ("rbf:0.5,standardise=true", bs.basis.rbf(width=0.5, standardise=True)),
        ("rbf:standardise=true,width=2", bs.basis.rbf(width=2.0, standardise=True)),
        ("polynomial:3,0.5", bs.basis.polynomial(degree=3, constant=0.5)),
        ("function:numpy:abs", bs.basis.function("numpy:abs")),
    ],
)
def test_a_basis_with_its_settings(text, made):
    assert choice_of(BASIS, "basis", text) == made


def test_likelihoods_too():
    assert choice_of(LIKELIHOODS, "likelihood", "binomial:10") == bs.likelihoods.binomial(trials=10)
    assert choice_of(LIKELIHOODS, "likelihood", "auto") == "auto"
    refused(lambda: choice_of(LIKELIHOODS, "likelihood", "gaussian"), "called 'normal' here")


@pytest.mark.parametrize(
    ("text", "mentions"),
    [
        ("rbf", ["The basis 'rbf' needs its width: --basis rbf:WIDTH"]),
        ("rbf:wide=2", ["no setting 'wide'", "width, squared, bias, standardise"]),
        ("linear:1,2,3", ["no setting '3'"]),
        ("rbf:-1", ["width > 0"]),
        ("rbd:1", ["There is no basis 'rbd'", "Did you mean 'rbf'?"]),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(text, mentions):
    refused(lambda: choice_of(BASIS, "basis", text), *mentions)


def test_values_are_json_or_else_text():
    given = ["max-iterations=5", "tolerance=1e-3", "bounds=[0, 1]", "expansion=evidence", "warm=false", "start=None"]
    assert settings_of([*given, 'sample_kwargs={"cores": 1}', "text=a=b"]) == {
        "max_iterations": 5,
        "tolerance": 1e-3,
        "bounds": (0, 1),
        "expansion": "evidence",
        "warm": False,
        "start": None,
        "sample_kwargs": {"cores": 1},
        "text": "a=b",
    }
    with pytest.raises(click.BadParameter, match="'tolerance' is not name=value"):
        settings_of(["tolerance"])


def test_the_hyper_prior_is_two_numbers():
    assert hyper_of("1,0.1") == (1.0, 0.1)
    for text in ("1", "1,2,3", "a,b"):
        with pytest.raises(click.BadParameter, match="not two numbers"):
            hyper_of(text)
