"""The study of evidence beside NUTS: how it counts, that it goes on, and, slowly, that the two agree."""

import bambi as bmb
import numpy as np
import pytest
from numpy.testing import assert_allclose

from bayes_sparse.inputs.bambi_model import graph_of
from studies import own_models as study
from studies.own_models import FITS, MODELS, apart, fitted, own_models, table

pytestmark = [
    pytest.mark.filterwarnings("ignore:Data in .* contains missing values"),  # PyMC's, as the model is written
    pytest.mark.filterwarnings("ignore:For backward compatibility, 'str' dtypes"),  # Bambi's own, of text
]
NUTS = {
    "seconds": 20.0,
    "r_hat": 1.004,
    "draws": 812.3,
    "divergences": 3,
    "mean": {"w[a]": 1.0, "w[b]": 0.2, "b": -1.0},
    "sd": {"w[a]": 0.1, "w[b]": 0.4, "b": 0.5},
}
EVIDENCE = {
    "seconds": 0.5,
    "mean": {"b": -1.2, "w[a]": 1.03, "w[b]": 0.0},  # in another order
    "sd": {"b": 0.45, "w[a]": 0.12, "w[b]": 0.0},
}


def test_differences_are_in_sds_of_nuts():
    found = apart(EVIDENCE, NUTS)
    assert_allclose(found.loc[["w[a]", "w[b]", "b"], "difference"], [0.3, 0.5, 0.4])
    assert_allclose(found.loc[["w[a]", "w[b]", "b"], "ratio"], [1.2, 0.0, 0.9])


def test_the_table_names_the_worst_of_what_is_kept_and_of_what_is_pruned():
    refused = {"refused": "No."}
    fits = {"nuts": NUTS, "evidence": EVIDENCE, "declared": refused, "corrected": refused}
    row = table({"a model": fits}).splitlines()[-1]
    assert row == (
        "| a model | 0.5, nan, 20.0 | 1.004, 812, 3 | 0.40 `b` | 0.50 `w[b]` | 0.40 | 0.90 to 1.20 |  |  |  |  |"
    )
    row = table({"a model": fits | {"declared": EVIDENCE, "corrected": NUTS}}).splitlines()[-1]
    assert row.endswith("| 0.50 `w[b]` | 0.40 | 0.90 to 1.20 | 0.00 `w[a]` |")


def test_a_bar_in_a_name_does_not_end_the_cell():
    one, other = ({"mean": {"1|g": mean}, "sd": {"1|g": 1.0}, "seconds": 1.0} for mean in (0.0, 2.0))
    nuts = NUTS | one
    row = table({"a model": dict.fromkeys(FITS, other) | {"nuts": nuts}}).splitlines()[-1]
    assert r"| 2.00 `1\|g` |" in row


def test_a_second_call_goes_on_with_what_is_stored(tmp_path, monkeypatch):
    calls = []

    def fit(model, way, draws):
        calls.append((model.name, way, draws))
        if len(calls) == 3:
            raise KeyboardInterrupt
        return EVIDENCE

    monkeypatch.setattr(study, "fitted", fit)
    two = dict(list(MODELS.items())[:2])
    with pytest.raises(KeyboardInterrupt):
        own_models(tmp_path, models=two, progressbar=False)
    found = own_models(tmp_path, models=two, progressbar=False)
    assert len(calls) == 2 * len(FITS) + 1
    assert found == {title: dict.fromkeys(FITS, EVIDENCE) for title in two}
    own_models(tmp_path, draws=7, models=two, progressbar=False)  # another plan is another study
    assert len(calls) == 4 * len(FITS) + 1


@pytest.mark.parametrize("title", MODELS)
def test_what_is_compared_is_in_the_model(title):
    built = MODELS[title].build()
    if isinstance(built, bmb.Model):
        built.build()
    assert {*MODELS[title].variables} <= {*graph_of(built).named_vars}


def test_a_refusal_is_kept_as_what_it_says(monkeypatch):
    def refuse(*_, **__):
        raise ValueError("No.")

    monkeypatch.setattr(study, "fit", refuse)
    assert fitted(MODELS["a scale per group of columns"], "declared", 10) == {"refused": "No."}


@pytest.mark.slow
@pytest.mark.parametrize(
    "title", ["a scale per group of columns", "Bambi, categories and groups", "mean and log-noise"]
)
def test_under_the_same_priors_evidence_and_nuts_agree(title):
    nuts, corrected = (fitted(MODELS[title], way, 500) for way in ("nuts", "corrected"))
    found = apart(corrected, nuts)
    error = 4 / np.sqrt(nuts["draws"]) + 4 / np.sqrt(2000)  # of both means, in sds
    assert found["difference"].max() < 0.3 + error, found
    assert found["ratio"].between(0.75, 1.25).all(), found
