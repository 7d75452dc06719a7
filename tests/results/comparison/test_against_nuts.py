"""Evidence against NUTS on small data: where both stand for the same posterior they agree, and one is faster."""

import numpy as np
import pytest

import bayes_sparse as bs
from bayes_sparse.results.comparison import compare

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 4)) * [1.0, 2.0, 0.5, 3.0] + 1.0
Y = 1.5 * X[:, 0] - X[:, 2] + 0.5 * RNG.standard_normal(60)
NEW = RNG.standard_normal((30, 4)) * [1.0, 2.0, 0.5, 3.0] + 1.0
NEW_Y = 1.5 * NEW[:, 0] - NEW[:, 2] + 0.5 * RNG.standard_normal(30)
SHORT = {"draws": 200, "chains": 2, "tune": 200, "random_seed": 0, "progressbar": False, "sampler": "pymc"}


@pytest.fixture(scope="module")
def trees():
    return {
        "evidence": bs.fit("ard_gaussian", (X, Y), random_seed=0),
        "conditional": bs.fit("ard_gaussian", (X, Y), method="nuts", condition="alpha", **SHORT),
        "full": bs.fit("ard_gaussian", (X, Y), method="nuts", sample_kwargs={"cores": 1}, **SHORT),
    }


@pytest.fixture(scope="module")
def comparison(trees):
    return compare(trees, (NEW, NEW_Y))


@pytest.mark.slow
def test_the_exact_posterior_at_alpha_is_what_the_evidence_fit_says(trees):
    """The likelihood is normal, so the second rung and the third are the same but for the sampler's error."""
    table = compare({name: trees[name] for name in ("evidence", "conditional")}).parameters.xs("evidence", level="tree")
    assert set(table.index) == {"bias", "w[x0]", "w[x2]"}
    assert (table["difference"].abs() < 4 * table["mcse"]).all()
    np.testing.assert_allclose(table["sd_ratio"], 1.0, atol=4 / np.sqrt(2 * 100))  # of at least 100 effective draws
    assert (table["overlap"] > 1 - 2.5 * np.sqrt(16 / (np.pi * 200))).all()


def test_the_rungs_beside_each_other(comparison):
    assert comparison.reference == "full"
    assert comparison.summary["kind"].to_list() == [
        "evidence, exact posterior at alpha*",
        "NUTS at alpha*",
        "NUTS, everything",
    ]
    assert comparison.summary["terms_kept"].to_list() == [2, 2, 4]
    assert comparison.relevant.loc[["w[x0]", "w[x2]"]].all(axis=None)
    assert comparison.summary["speed_up"]["evidence"] > 10
    assert comparison.summary["effective_draws_a_second"].idxmax() == "evidence"
    for name in ("evidence", "conditional"):
        kept = comparison.parameters.xs(name, level="tree").loc[["bias", "w[x0]", "w[x2]"]]
        assert (kept["difference"].abs() < 0.5).all()
        assert kept["sd_ratio"].between(0.7, 1.3).all()
    assert "sigma" not in comparison.parameters.xs("conditional", level="tree").index  # held at its estimate


def test_two_ways_to_the_same_evidence(comparison):
    exact, bridge = (comparison.summary.loc[name] for name in ("evidence", "conditional"))
    assert (exact["log_evidence_kind"], bridge["log_evidence_kind"]) == ("exact", "bridge sampling")
    assert abs(exact["log_evidence"] - bridge["log_evidence"]) < 5 * bridge["log_evidence_se"]
    assert (
        "computed in different ways (exact; bridge sampling): of one and the same fit they check" in comparison.verdict
    )


def test_all_predict_rows_held_out(comparison, trees):
    summary = comparison.summary
    assert (summary["log_score_difference"].abs() < 0.1).all()
    predicted = bs.predict(trees["evidence"], NEW)
    z = (NEW_Y - predicted["mean"]) / predicted["sd"]
    exact = float((-0.5 * z**2 - np.log(predicted["sd"]) - 0.5 * np.log(2 * np.pi)).mean())
    assert abs(summary["log_score"]["evidence"] - exact) < 0.03  # its noise is drawn too, not at its estimate
    assert len(comparison.loo) == 3
