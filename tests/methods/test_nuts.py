"""Plain NUTS through the front door: the layout of an evidence tree, a proper prior, predictions that agree."""

import logging

import numpy as np
import pytest
from numpy.testing import assert_allclose
from pytensor.compile.mode import Mode

import bayes_sparse as bs

# Models this small are quicker without compiling.
QUICK = {
    "cores": 1,
    "compile_kwargs": {"mode": Mode(linker="py", optimizer="fast_run").excluding("fusion", "BlasOpt")},
}
METHOD = bs.methods.nuts.NUTS(tune=300, target_accept=0.9)
X = np.random.default_rng(0).standard_normal((60, 2)) * [1.0, 5.0] + [0.0, 3.0]
Y = 2.0 + X @ [1.0, -0.2] + 0.4 * np.random.default_rng(1).standard_normal(60)


@pytest.fixture(scope="module")
def said():
    return []


@pytest.fixture(scope="module")
def tree(said):
    """One run for the module, with what it said."""
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())
    logger = logging.getLogger("bayes_sparse")  # has a handler of its own and does not propagate
    logger.addHandler(handler)
    try:
        return bs.fit(
            "ard_gaussian",
            (X, Y),
            method=METHOD,
            draws=300,
            chains=2,
            random_seed=3,
            progressbar=False,
            sample_kwargs=QUICK,
        )
    finally:
        logger.removeHandler(handler)


@pytest.fixture(scope="module")
def evidence_tree():
    return bs.fit("ard_gaussian", (X, Y), draws=300, chains=2, random_seed=3, smoothness=0)


def test_the_neighbour_is_said_and_recorded(tree, said):
    assert any("Gamma(0.5, 0.005)" in message for message in said)
    assert_allclose(tree["posterior"].attrs["hyper"], bs.models.ARDGaussian.proper_hyper)
    assert tree["posterior"].attrs["method"] == "nuts"


def test_the_layout_is_that_of_an_evidence_tree(tree, evidence_tree):
    for group in ("posterior", "sample_stats", "log_likelihood", "observed_data", "constant_data"):
        assert group in tree.children
        assert group in evidence_tree.children
    for name in evidence_tree["posterior"].data_vars:  # NUTS has precisions and its own coordinates besides
        ours, other = tree["posterior"][name], evidence_tree["posterior"][name]
        assert ours.dims == other.dims
        assert ours.sizes == other.sizes
        for dim in ours.dims:
            assert (ours[dim] == other[dim]).all()
    assert tree["log_likelihood"]["y"].dims == evidence_tree["log_likelihood"]["y"].dims
    assert_allclose(tree["observed_data"]["y"], Y)
    assert tree["posterior"]["alpha"].dims == ("chain", "draw", "basis")


def test_weights_are_in_the_users_units(tree, evidence_tree):
    """Within the Monte-Carlo error of a few hundred draws, plus the pull of a prior that differs, of half an sd."""
    evidence, posterior = evidence_tree["evidence"], tree["posterior"]
    for name, mean, sd in (("w", "mean", "sd"), ("bias", "bias", "bias_sd")):
        gap = posterior[name].mean(("chain", "draw")) - evidence[mean]
        assert bool((np.abs(gap) < 1.0 * evidence[sd]).all())
        ratio = posterior[name].std(("chain", "draw")) / evidence[sd]
        assert bool(((ratio > 0.7) & (ratio < 1.5)).all())


def test_the_log_likelihood_is_that_of_the_draws(tree):
    posterior = tree["posterior"].isel(chain=0, draw=7)
    eta = float(posterior["bias"]) + X @ posterior["w"].to_numpy()
    sigma = float(posterior["sigma"])
    expected = -0.5 * ((Y - eta) / sigma) ** 2 - np.log(sigma) - 0.5 * np.log(2 * np.pi)
    assert_allclose(tree["log_likelihood"]["y"].isel(chain=0, draw=7), expected, rtol=1e-8)


def test_predictions_agree(tree, evidence_tree):
    new = np.array([[0.0, 3.0], [1.0, -4.0], [-2.0, 8.0]])
    ours, other = bs.predict(tree, new), bs.predict(evidence_tree, new)
    assert_allclose(ours["mean"], other["mean"], atol=0.5 * float(other["sd"].min()))
    assert_allclose(ours["sd"], other["sd"], rtol=0.2)


@pytest.mark.parametrize("hyper", [(0, 0), (0.5, 0), (0, 0.5)])
def test_an_improper_prior_is_refused_and_its_neighbour_named(hyper):
    with pytest.raises(ValueError, match=r"improper.*hyper=\(0\.5, 0\.005\)"):
        bs.fit("ard_gaussian", (X, Y), method="nuts", hyper=hyper)


def test_an_explicit_proper_prior_is_taken_as_it_is():
    tree = bs.fit(
        "ard_gaussian",
        (X[:20], Y[:20] > Y[:20].mean()),
        method=bs.methods.nuts.NUTS(tune=50, target_accept=0.8),
        hyper=(2.0, 1.0),
        draws=20,
        chains=1,
        random_seed=0,
        progressbar=False,
        sample_kwargs=QUICK,
    )
    assert_allclose(tree["posterior"].attrs["hyper"], [2.0, 1.0])
    assert_allclose(bs.predict(tree, X[:3])["probability"].sum("class"), 1.0)
