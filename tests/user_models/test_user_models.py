"""Every model of the corpus is fitted as it stands and finds the truth, or is refused in one sentence that helps."""

import re
import time

import numpy as np
import pytest

import bayes_sparse as bs
from tests.support import assert_one_sentence

from . import (  # noqa: F401
    centred,
    combined,
    counts_and_classes,
    groups,
    hierarchical,
    likelihoods,
    non_centred,
    own_terms,
    priors,
    products,
    refused,
    several,
    smooth,
)
from .case import ALL

PATIENCE = 10.0  # seconds of a processor; a fit takes half of one
SLACK = 0.05  # what shrinkage and pruning may take from a slope of about one
MANY = 10  # comparisons from which one of them may lie a little further out

pytestmark = [
    pytest.mark.filterwarnings("ignore::bayes_sparse.common.warnings.FitWarning"),
    pytest.mark.filterwarnings("ignore:Data in .* contains missing values"),  # PyMC's, as the model is written
]


# Seconds each, most of them for densities of many branches; a neighbour of each is quick.
LONG = {
    "ordered probit regression",
    "zero-inflated negative binomial counts",
    "hurdle negative binomial counts",
    "outliers as a mixture of two normals",
    "censored survival times by a Potential",
    "truncated counts",
    "hurdle Poisson counts",
    "a latent Gaussian process beside sparse weights",
}


def _marked(case):
    return pytest.param(case, id=case.name, marks=[pytest.mark.slow] if case.name in LONG else [])


@pytest.mark.parametrize("case", [_marked(case) for case in ALL])
def test_a_model_as_people_write_it(case):
    model = case.build()
    if case.refused is not None:
        with pytest.raises((ValueError, TypeError)) as refusal:
            fitted(model, case)
        assert_one_sentence(str(refusal.value))
        assert re.search(case.refused, str(refusal.value)), str(refusal.value)
        return
    start = time.process_time()
    tree = fitted(model, case)
    assert time.process_time() - start < PATIENCE
    assert tree["evidence"].attrs["method"] == case.method
    for name, truth in case.truth.items():
        assert name in tree["posterior"], f"{name} is not in the tree"
        assert_near(name, np.asarray(truth, dtype=float), tree["posterior"][name])


def fitted(model, case):
    return bs.fit(model, draws=200, chains=1, random_seed=1, progressbar=False, **case.settings)


def assert_near(name, truth, draws):
    """Within three posterior sds, in the whole shape; of many values one may be beyond, up to four."""
    assert draws.shape[2:] == truth.shape, f"{name} has shape {draws.shape[2:]}"
    mean, sd = draws.mean(("chain", "draw")).to_numpy(), draws.std(("chain", "draw")).to_numpy()
    off = (np.abs(mean - truth) - SLACK) / np.maximum(sd, 1e-12)
    many = truth.size > MANY
    near = np.sum(~(off <= 3)) <= many and (off <= (4 if many else 3)).all()
    assert near, f"{name} is {np.round(mean, 3)}, sd {np.round(sd, 3)}, and in truth {np.round(truth, 3)}"


def test_every_model_has_a_name_of_its_own_and_something_to_check():
    assert len({case.name for case in ALL}) == len(ALL)
    assert all(case.refused or (case.truth and case.read_as) for case in ALL)
