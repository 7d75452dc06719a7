"""Plain NUTS through the front door: the layout of an evidence tree, a proper prior, predictions that agree."""

import logging

import numpy as np
import pytest
from numpy.testing import assert_allclose

import bayes_sparse as bs
from tests.support import without_compiler

ONE_CORE = {"cores": 1}
METHOD = bs.methods.nuts.NUTS(tune=300, target_accept=0.9, sampler="pymc")
X = np.random.default_rng(0).standard_normal((60, 2)) * [1.0, 5.0] + [0.0, 3.0]
Y = 2.0 + X @ [1.0, -0.2] + 0.4 * np.random.default_rng(1).standard_normal(60)


def sampled():
    """A fit by NUTS under the default prior, and what it said."""
    said = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())
    logger = logging.getLogger("bayes_sparse")  # has a handler of its own and does not propagate
    logger.addHandler(handler)
    try:
        tree = bs.fit(
            "ard_gaussian",
            (X, Y),
            method=METHOD,
            draws=300,
            chains=2,
            random_seed=3,
            progressbar=False,
            sample_kwargs=ONE_CORE,
        )
    finally:
        logger.removeHandler(handler)
    return tree, said


def test_a_tree_by_nuts_is_laid_out_like_one_by_evidence():
    """One run, because it takes seconds, and everything it must satisfy."""
    tree, said = sampled()
    reference = bs.fit("ard_gaussian", (X, Y), draws=300, chains=2, random_seed=3, smoothness=0)

    assert any("Gamma(1, 0.1)" in message for message in said)
    assert_allclose(tree["posterior"].attrs["hyper"], bs.models.ARDGaussian.proper_hyper)
    assert tree["posterior"].attrs["method"] == "nuts"
    same_layout(tree, reference)
    same_units(tree["posterior"], reference["evidence"])
    likelihood_of_its_own_draws(tree)
    same_predictions(tree, reference)


def same_layout(tree, reference):
    for group in ("posterior", "sample_stats", "log_likelihood", "observed_data", "constant_data"):
        assert group in tree.children
        assert group in reference.children
    for name in reference["posterior"].data_vars:  # NUTS has precisions and coordinates of its own besides
        ours, other = tree["posterior"][name], reference["posterior"][name]
        assert ours.dims == other.dims
        assert ours.sizes == other.sizes
        for dim in ours.dims:
            assert (ours[dim] == other[dim]).all()
    assert tree["log_likelihood"]["y"].dims == reference["log_likelihood"]["y"].dims
    assert_allclose(tree["observed_data"]["y"], Y)
    assert tree["posterior"]["alpha"].dims == ("chain", "draw", "basis")


def same_units(posterior, evidence):
    """ColumnStore differ in size by five, so wrong units would show; half an sd is left to the prior, which differs."""
    for name, mean, sd in (("w", "mean", "sd"), ("bias", "bias", "bias_sd")):
        gap = posterior[name].mean(("chain", "draw")) - evidence[mean]
        assert bool((np.abs(gap) < 0.5 * evidence[sd]).all())
        ratio = posterior[name].std(("chain", "draw")) / evidence[sd]
        assert bool(((ratio > 0.7) & (ratio < 1.5)).all())


def likelihood_of_its_own_draws(tree):
    posterior = tree["posterior"].isel(chain=0, draw=7)
    eta = float(posterior["bias"]) + X @ posterior["w"].to_numpy()
    sigma = float(posterior["sigma"])
    expected = -0.5 * ((Y - eta) / sigma) ** 2 - np.log(sigma) - 0.5 * np.log(2 * np.pi)
    assert_allclose(tree["log_likelihood"]["y"].isel(chain=0, draw=7), expected, rtol=1e-8)


def same_predictions(tree, reference):
    new = np.array([[0.0, 3.0], [1.0, -4.0], [-2.0, 8.0]])
    ours, other = bs.predict(tree, new), bs.predict(reference, new)
    assert_allclose(ours["mean"], other["mean"], atol=0.5 * float(other["sd"].min()))
    assert_allclose(ours["sd"], other["sd"], rtol=0.2)


@pytest.mark.parametrize("hyper", [(0, 0), (0.5, 0), (0, 0.5)])
def test_an_improper_prior_is_refused_and_its_neighbour_named(hyper):
    with pytest.raises(ValueError, match=r"improper.*hyper=\(1, 0\.1\)"):
        bs.fit("ard_gaussian", (X, Y), method="nuts", hyper=hyper)


def test_an_explicit_proper_prior_is_taken_as_it_is(monkeypatch):
    without_compiler(monkeypatch)
    tree = bs.fit(
        "ard_gaussian",
        (X[:20], Y[:20] > Y[:20].mean()),
        method=bs.methods.nuts.NUTS(tune=50, target_accept=0.8, sampler="pymc"),
        hyper=(2.0, 1.0),
        draws=20,
        chains=1,
        random_seed=0,
        progressbar=False,
        sample_kwargs=ONE_CORE,
    )
    assert_allclose(tree["posterior"].attrs["hyper"], [2.0, 1.0])
    assert_allclose(bs.predict(tree, X[:3])["probability"].sum("class"), 1.0)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"condition": "beta"}, r"^`condition` is 'alpha' or None, got 'beta'\.$"),
        ({"centred": "some"}, r"^`centred` is 'auto', True or False, got 'some'\.$"),
        ({"tune": 0}, "`tune`"),
        ({"target_accept": 1.0}, "`target_accept`"),
        ({"target_accept": 0.0}, "`target_accept`"),
        ({"sampler": "stan"}, "`sampler` is one of 'auto', 'nutpie', 'pymc', got 'stan'"),
    ],
)
def test_settings_are_refused_in_one_sentence(settings, said):
    with pytest.raises(ValueError, match=said) as refused:
        bs.fit("ard_gaussian", (X, Y), method="nuts", **settings)
    assert str(refused.value).count(". ") == 0


def test_no_draws_are_refused():
    with pytest.raises(ValueError, match=r"^`draws`[^.]*\.$"):
        bs.fit("ard_gaussian", (X, Y), method="nuts", draws=0)


@pytest.mark.parametrize(
    ("settings", "tune", "target_accept"),
    [
        ({}, 400, 0.9),
        ({"warm": False}, 400, 0.9),
        ({"condition": "alpha"}, 150, 0.8),
        ({"condition": "alpha", "warm": False}, 400, 0.8),
        ({"tune": 7, "target_accept": 0.6}, 7, 0.6),
    ],
)
def test_how_long_is_sampled(settings, tune, target_accept):
    method = bs.methods.nuts.NUTS(sampler="pymc", sample_kwargs={"cores": 1}, **settings)
    sampling = method(draws=10, chains=3, random_seed=1, progressbar=False)
    assert (sampling.tune, sampling.target_accept) == (tune, target_accept)
    assert (sampling.draws, sampling.chains, sampling.random_seed) == (10, 3, 1)
    assert sampling.more == {"cores": 1}
