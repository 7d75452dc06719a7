"""Two classes by the probit link, the whole way: fitted, stored, predicted, judged, sampled."""

import numpy as np
import pymc as pm
import pytest
import xarray as xr
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import log_ndtr, ndtr

import bayes_sparse as bs
from bayes_sparse.trees.spread import variance_along

RNG = np.random.default_rng(11)
N = 200
X = RNG.standard_normal((N, 4)) * [1.0, 3.0, 0.5, 1.0]
ETA = 0.3 + 0.9 * X[:, 0] - 0.3 * X[:, 1]
CODES = (ETA + RNG.standard_normal(N) > 0).astype(int)
WORDS = np.where(CODES == 1, "yes", "no")
NEW = RNG.standard_normal((6, 4)) * [2.0, 6.0, 0.5, 1.0]
EVERY = [
    ("ard_gaussian", "sequential"),
    ("ard_gaussian", "mackay"),
    ("ard_gaussian", "em"),
    ("horseshoe", "global_local"),
    ("ard_gaussian", "revm"),
    ("laplace_eigen", "revm"),
    ("jeffreys_laplace", "reweighted"),
]


def fit(model="ard_gaussian", y=WORDS, likelihood="probit", **options):
    return bs.fit(model, (X, y), likelihood=likelihood, random_seed=0, **options)


@pytest.fixture(scope="module")
def tree():
    return fit()


def test_labels_of_any_kind_are_the_same_fit(tree):
    for y in (CODES, CODES == 1, CODES.astype(float)):
        assert_array_equal(fit(y=y)["evidence"]["mean"], tree["evidence"]["mean"])
    assert_array_equal(tree["constant_data"]["class"], ["no", "yes"])
    with pytest.raises(ValueError, match="3 classes"):
        fit(y=np.arange(N) % 3)


@pytest.mark.parametrize(("model", "method"), EVERY)
def test_every_family_of_methods_finds_the_truth(model, method):
    """Within five sds of the weights that made the data, and predictions by the closed form."""
    found = fit(model, method=method, draws=50)
    evidence = found["evidence"]
    sd = 1 / np.sqrt(N * 2 / np.pi) / X.std(axis=0)  # at even odds; more elsewhere, less by shrinkage
    assert np.all(np.abs(evidence["mean"].to_numpy() - [0.9, -0.3, 0.0, 0.0]) < 5 * 1.5 * sd)
    assert_array_equal(found["posterior"].attrs.get("status", "converged"), "converged")
    probability = bs.predict(found, NEW)["probability"].sel({"class": "yes"})
    Phi = np.column_stack([NEW, np.ones(len(NEW))])[:, evidence["column"].to_numpy()]
    variance = variance_along(evidence.to_dataset(), Phi)
    truth = ndtr(Phi @ evidence["coordinate_mean"].to_numpy() / np.sqrt(1 + variance))
    assert_allclose(probability, truth, atol=1e-9)


def test_a_stored_tree_predicts_the_same(tree, tmp_path):
    tree.to_netcdf(tmp_path / "fit.nc")
    with xr.open_datatree(tmp_path / "fit.nc") as back:
        xr.testing.assert_allclose(bs.predict(back.load(), NEW), bs.predict(tree, NEW))


def test_what_judges_a_fit(tree):
    posterior = bs.unpruned(tree)["posterior"].to_dataset()
    eta = posterior["w"].to_numpy() @ X.T + posterior["bias"].to_numpy()[..., None]
    assert_allclose(tree["log_likelihood"]["y"], log_ndtr((2 * CODES - 1) * eta), atol=1e-10)
    assert abs(bs.loo(tree).elpd - bs.loo(fit(likelihood="bernoulli")).elpd) < 2  # the links hardly differ
    assert bs.diagnose(tree).k_hat < 0.7
    assert abs(bs.correct(tree)["posterior"]["bias"].mean() - tree["posterior"]["bias"].mean()) < 0.1


def test_separable_classes_say_so():
    with pytest.warns(bs.FitWarning, match="separate"):
        found = fit(y=X[:, 0] > 0, draws=0)
    assert found["evidence"].attrs["status"] == "separable"
    assert found["evidence"].attrs["slab"] == bs.models.ARDGaussian().default_slab


def test_weights_count_rows_and_an_offset_moves_the_bias():
    twice = np.r_[np.arange(N), np.arange(50)]
    weights = np.where(np.arange(N) < 50, 2.0, 1.0)
    one = fit(draws=0, weights=weights)
    other = bs.fit("ard_gaussian", (X[twice], WORDS[twice]), likelihood="probit", draws=0)
    assert_allclose(one["evidence"]["mean"], other["evidence"]["mean"], rtol=1e-5)
    moved = fit(draws=0, offset=np.full(N, 0.7), bias_sd=1e6)
    assert_allclose(moved["evidence"]["bias"] + 0.7, fit(draws=0, bias_sd=1e6)["evidence"]["bias"], atol=1e-6)


def test_the_report_and_the_printed_lists_know_it(tree, tmp_path):
    page = bs.report(tree, tmp_path / "report.html").read_text()
    assert "probit" in page
    with pytest.raises(ValueError, match="probit"):
        fit(likelihood="probits")


def test_a_model_of_the_users_own_is_the_same_fit():
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    with pm.Model() as model:
        alpha = pm.Gamma("alpha", 1.0, 0.1, shape=4)
        w = pm.Normal("w", 0.0, tau=alpha, shape=4)
        bias = pm.Normal("bias", 0.0, 10.0)
        pm.Bernoulli("y", p=pm.math.invprobit(bias + Z @ w), observed=CODES)
    theirs = bs.fit(model, hyper=(0.0, 0.0), smoothness=1.0, draws=0)
    slab = theirs["evidence"].attrs.get("slab")
    ours = bs.fit("ard_gaussian", (Z, CODES), likelihood="probit", slab=slab, smoothness=1.0, draws=0)
    # PyMC keeps the link's square root of 2 in single precision.
    assert_allclose(theirs["evidence"]["log_evidence"], ours["evidence"]["log_evidence"], rtol=1e-6)
    assert_allclose(theirs["evidence"]["mean"], ours["evidence"]["mean"], rtol=1e-4, atol=1e-6)


def test_nuts_samples_the_same_model():
    """At the precisions found, where the posterior is nearly normal: means within the Monte-Carlo error."""
    found = fit(draws=1000)
    sampled = fit(method="nuts", condition="alpha", draws=500, tune=300, chains=2, progressbar=False)
    for name in ("w", "bias"):
        a, b = found["posterior"][name], sampled["posterior"][name]
        sd = np.asarray(a.std(("chain", "draw")))
        assert_allclose(b.mean(("chain", "draw")), a.mean(("chain", "draw")), atol=0.25 * sd.max())
        assert_allclose(b.std(("chain", "draw")), sd, rtol=0.15)
