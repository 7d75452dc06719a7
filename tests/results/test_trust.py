"""How far to trust a fit: the worst of its diagnosis, its ending and its residuals, and why."""

import numpy as np
import pytest

import bayes_sparse as bs
from bayes_sparse.results.diagnose import SamplingDiagnosis, diagnose
from bayes_sparse.results.trust import trust_of
from bayes_sparse.trees.read import stored


def chains(**changes):
    """Of a sample that can be trusted, but for this."""
    good = {"r_hat_max": 1.002, "ess_bulk_min": 900.0, "ess_tail_min": 900.0, "divergences": 0, "draws": 4000}
    good |= {"chains": 4, "max_treedepth": 0, "worst": "w[a]", "bfmi_min": 1.0, "verdict": ""}
    wrong = tuple(changes)
    return SamplingDiagnosis(**(good | changes), trusted=not wrong, wrong=wrong)


@pytest.fixture(scope="module")
def tree():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    return bs.fit("ard_gaussian", (X, X[:, 0] + rng.normal(size=60)), draws=200, random_seed=0)


@pytest.mark.parametrize(
    ("changes", "level"),
    [
        ({}, "good"),
        ({"r_hat_max": 1.03}, "care"),  # stopped early
        ({"r_hat_max": 1.2}, "bad"),
        ({"divergences": 10}, "care"),
        ({"divergences": 400}, "bad"),
        ({"ess_bulk_min": 60.0}, "care"),
        ({"ess_tail_min": 20.0}, "bad"),
    ],
    ids=str,
)
def test_chains_that_were_stopped_early_are_not_as_bad_as_those_that_went_wrong(tree, changes, level):
    found = trust_of(stored(tree), chains(**changes))
    assert found.level == level
    assert found.because == "; ".join(changes)


@pytest.mark.parametrize(
    ("attributes", "level", "because"),
    [
        ({}, "good", ""),
        ({"status": "null"}, "care", "no term pays for itself"),
        ({"status": "separable"}, "bad", "the fit ended as 'separable'"),  # by its diagnosis
        ({"status": "noise_collapsed"}, "bad", "the fit ended as 'noise_collapsed'"),
        ({"likelihood_check": "Heavy tails."}, "care", "the residuals do not look like its likelihood"),
    ],
    ids=str,
)
def test_the_ending_and_the_residuals_count(tree, attributes, level, because):
    ended = tree.copy()
    ended["evidence"].attrs.update(attributes)
    found = trust_of(stored(ended), diagnose(ended))
    assert (found.level, found.because) == (level, because)


def test_what_was_not_checked_is_read_with_care_and_its_ending_counts(tree):
    assert trust_of(stored(tree), None).words == "to be read with care: it was not checked"
    ended = tree.copy()
    ended["evidence"].attrs["status"] = "max_iterations"
    said = trust_of(stored(ended), None).words
    assert said == "not to be trusted: it was not checked; the fit ended as 'max_iterations'"
