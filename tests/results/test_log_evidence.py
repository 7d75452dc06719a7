"""Which log evidence is given when, and that each is the one it says."""

import numpy as np
import pytest
import xarray as xr
from scipy import stats

import bayes_sparse as bs
from bayes_sparse.results.correct import correct
from bayes_sparse.results.diagnose import diagnose
from bayes_sparse.results.log_evidence import LogEvidence, bridge_sampling, log_evidence

pytestmark = pytest.mark.quick

RNG = np.random.default_rng(3)
X = RNG.standard_normal((50, 3))
BINARY = (1.5 * X[:, 0] + RNG.logistic(size=50) > 0).astype(int)
REAL = 1.5 * X[:, 0] + 0.5 * RNG.standard_normal(50)


@pytest.fixture(scope="module")
def binary():
    return bs.fit("ard_gaussian", (X, BINARY), likelihood="bernoulli", random_seed=0)


def with_bridge(tree, condition="the terms selected and alpha*"):
    rng, q = np.random.default_rng(0), stats.norm(0.2, 1.1)
    x, z = q.rvs(500, random_state=rng), rng.standard_normal((4, 200))
    group = xr.Dataset(
        {
            "proposal_log_p": ("proposal_draw", stats.norm.logpdf(x) - 7.0),
            "proposal_log_q": ("proposal_draw", q.logpdf(x)),
            "posterior_log_p": (("chain", "half_draw"), stats.norm.logpdf(z) - 7.0),
            "posterior_log_q": (("chain", "half_draw"), q.logpdf(z)),
        },
        attrs={"conditional_on": condition},
    )
    return tree.assign({"bridge": xr.DataTree(group)})


def test_an_exact_fit():
    tree = bs.fit("ard_gaussian", (X, REAL), random_seed=0)
    found = log_evidence(tree)
    assert found == LogEvidence(
        float(tree["evidence"]["log_evidence"]),
        0.0,
        "exact",
        "approximate",
        "the terms selected and alpha*, nuisance parameters at their estimates",
    )
    assert str(found).startswith(f"log evidence {found.value:.3f} (exact), given the terms selected")
    by_weights = log_evidence(tree, "importance")
    assert by_weights.value == pytest.approx(found.value, abs=1e-9)


def test_weights_where_they_can_be_trusted(binary):
    found, diagnosis = log_evidence(binary), diagnose(binary)
    assert diagnosis.trusted
    assert (found.value, found.se) == (diagnosis.log_evidence_importance, diagnosis.log_evidence_se)
    assert (found.kind, found.method) == ("importance sampling", "importance")
    assert "+-" in str(found)
    assert log_evidence(correct(binary, 0)) == found
    own = log_evidence(binary, "approximate")
    assert (own.value, own.kind) == (float(binary["evidence"]["log_evidence"]), "laplace")
    assert np.isnan(own.se)
    assert "nan" not in str(own)


def test_the_approximation_where_they_cannot(binary):
    far = binary.copy()
    stats_ = binary["sample_stats"].to_dataset()
    far["sample_stats"] = xr.DataTree(stats_.assign(log_p=-stats_["log_q"]))
    assert log_evidence(far).method == "approximate"
    assert log_evidence(far, "importance").method == "importance"  # for those who insist
    without = bs.fit("ard_gaussian", (X, BINARY), likelihood="bernoulli", draws=0)
    assert log_evidence(without).value == pytest.approx(float(binary["evidence"]["log_evidence"]), abs=1e-12)
    with pytest.raises(ValueError, match="draws > 0"):
        log_evidence(without, "importance")


def test_bridge_sampling_comes_first(binary):
    tree = with_bridge(binary)
    found = log_evidence(tree)
    assert (found.kind, found.method) == ("bridge sampling", "bridge")
    assert found.conditional_on == "the terms selected and alpha*"
    assert abs(found.value + 7.0) < 4 * found.se
    group = tree["bridge"].to_dataset()
    names = ("proposal_log_p", "proposal_log_q", "posterior_log_p", "posterior_log_q")
    assert found.value == bridge_sampling(*(group[name].to_numpy() for name in names)).value
    assert log_evidence(tree, "approximate").value == float(binary["evidence"]["log_evidence"])


def test_sampled_trees():
    sampled = xr.DataTree.from_dict({"/posterior": xr.Dataset({"w": (("chain", "draw"), RNG.random((4, 100)))})})
    sampled["posterior"].attrs["method"] = "nuts"
    nothing = "nothing: the hyper-parameters are integrated out"
    assert log_evidence(with_bridge(sampled, nothing)).conditional_on == nothing
    with pytest.raises(ValueError, match="has no log evidence"):
        log_evidence(sampled)
    given = sampled.assign(
        {"evidence": bs.fit("ard_gaussian", (X, BINARY), likelihood="bernoulli", draws=0)["evidence"]}
    )
    assert log_evidence(given).kind == "approximation it was started from"
    assert np.isnan(log_evidence(given).se)
    with pytest.raises(ValueError, match="draws of an evidence fit"):
        log_evidence(sampled, "importance")


def test_lambda_integrated_out():
    tree = bs.fit("jeffreys_laplace", (X, BINARY), likelihood="bernoulli", random_seed=0)
    found = log_evidence(tree)
    assert (found.method, found.value) == ("importance", diagnose(tree).log_evidence_importance)
    assert "lambda*" in found.conditional_on
    with pytest.raises(ValueError, match="no approximate log evidence"):
        log_evidence(tree, "approximate")


def test_refusals(binary):
    with pytest.raises(ValueError, match="one of 'auto', 'approximate'"):
        log_evidence(binary, "laplace")
    with pytest.raises(ValueError, match="nothing to bridge from"):
        log_evidence(binary, "bridge")
