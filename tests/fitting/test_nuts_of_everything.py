"""NUTS of the whole declaration from the point and in the metric of an evidence fit: the same posterior, sooner."""

import os
import signal

import arviz as az
import numpy as np
import pymc as pm
import pytest
import xarray as xr
from numpy.testing import assert_allclose
from scipy import stats

import bayes_sparse as bs
from bayes_sparse.inference.sampling import Density
from tests.support import without_compiler

RNG = np.random.default_rng(17)
X = RNG.standard_normal((40, 2)) * [1.0, 20.0] + [0.0, 300.0]
Y = 1.0 + X @ [1.0, -0.03] + 0.5 * RNG.standard_normal(40)
SHORT = {"chains": 2, "random_seed": 3, "progressbar": False, "sample_kwargs": {"cores": 1}}


SHALLOW = {
    "sample_kwargs": {"cores": 1, "max_treedepth": 3, "early_max_treedepth": 3}
}  # for what the draws are like, not where


def sampled(model="ard_gaussian", data=(X, Y), draws=200, tune=200, sampler="pymc", **arguments):
    return bs.fit(model, data, method="nuts", sampler=sampler, draws=draws, tune=tune, **(SHORT | arguments))


@pytest.fixture(scope="module")
def warm():
    return sampled(hyper=(1.0, 0.1), target_accept=0.9)


def agree(one, two):
    """Whether the means of two sets of draws (chain, draw) differ by less than four Monte-Carlo standard errors."""
    error = np.sqrt(sum(float(x.var()) / float(az.ess(x.to_numpy(), method="mean")) for x in (one, two)))
    return abs(float(one.mean() - two.mean())) < 4 * error


@pytest.mark.slow
def test_a_warm_start_samples_the_same_posterior(warm):
    cold = sampled(hyper=(1.0, 0.1), target_accept=0.9, warm=False, centred=False, tune=400)
    for name in ("bias", "sigma"):
        assert agree(warm["posterior"][name], cold["posterior"][name])
    for label in ("x0", "x1"):
        one, two = (tree["posterior"].sel(basis=label) for tree in (warm, cold))
        assert agree(one["w"], two["w"])
        assert agree(one["w"] ** 2, two["w"] ** 2)
        assert agree(np.log(one["alpha"]), np.log(two["alpha"]))
    assert agree(np.log(warm["posterior"]["sigma"]), np.log(cold["posterior"]["sigma"]))
    assert cold["posterior"].attrs["start"] == "cold"
    told = [tree["posterior"].attrs for tree in (warm, cold)]
    assert told[0]["warmup_gradient_evaluations"] < told[1]["warmup_gradient_evaluations"]


def test_what_is_told(warm):
    told = warm["posterior"].attrs
    assert told["method"] == "nuts"
    assert told["condition"] == ""
    assert told["start"] == "mackay"  # the default where the hyper-prior is proper
    assert told["sampler"] == "pymc"
    assert told["tune"] == 200
    assert told["hyper"] == [1.0, 0.1]
    assert told["gradient_evaluations"] == int(warm["sample_stats"]["n_steps"].sum())
    assert told["warmup_gradient_evaluations"] > 200
    assert told["seconds"] > 0
    assert "evidence" not in warm.children


def test_statistics_and_data_as_arviz_wants_them(warm):
    names = {"diverging", "energy", "lp", "tree_depth", "n_steps", "step_size", "acceptance_rate"}
    assert names <= set(warm["sample_stats"].data_vars)
    assert warm["sample_stats"].sizes == {"chain": 2, "draw": 200}
    assert_allclose(warm["observed_data"]["y"], Y)
    assert "w[x1]" in az.summary(warm).index
    assert bs.diagnose(warm).chains == 2


def test_relevance_of_its_draws(warm):
    delta = {"x0": 1.1, "x1": 0.0}
    table, w = bs.relevance(warm, delta=delta), warm["posterior"]["w"]
    gammas = ["gamma", "gamma_low", "gamma_high"]
    rest = ["sign", "beyond", "score", "chance", "kept", "relevant", "word"]
    assert list(table.columns) == ["mean", "sd", "low", "high", *gammas, *rest]
    for label in ("x0", "x1"):
        own = w.sel(basis=label).to_numpy()
        assert_allclose(table.loc[label, "mean"], own.mean())
        assert_allclose(table.loc[label, "sd"], own.std())
        assert_allclose(table.loc[label, ["low", "high"]].astype(float), np.quantile(own, [0.025, 0.975]))
        assert_allclose(table.loc[label, "sign"], max(np.mean(own > 0), np.mean(own < 0)))
        assert_allclose(table.loc[label, "beyond"], np.mean(np.abs(own) > delta[label]))
        assert_allclose(table.loc[label, "score"], (own.mean() / own.std()) ** 2)
    assert 0 < table.loc["x0", "beyond"] < 1
    assert table["relevant"].all()
    assert "beyond" not in bs.relevance(warm)
    assert bs.plot_relevance(warm).get_title() == "2 of 2 terms relevant"


def test_gamma_by_hand(warm):
    """A normal likelihood: h = n / sigma^2 for a standardised column, the precision with the slab's."""
    posterior, unit = warm["posterior"], Y.std()
    h = len(Y) / float(posterior["sigma"].mean()) ** 2
    precision = posterior["alpha"].to_numpy() / X.std(axis=0) ** 2 + (2.5 * unit) ** -2.0
    assert_allclose(posterior.attrs["hyper_unit"], unit)
    draws = (h / (h + precision)).reshape(-1, 2)
    table = bs.relevance(warm).loc[["x0", "x1"]]
    assert_allclose(table["gamma"], draws.mean(axis=0), rtol=1e-9)
    assert_allclose(table["gamma_low"], np.quantile(draws, 0.025, axis=0), rtol=1e-9)


@pytest.mark.parametrize(
    ("delta", "why"), [({"x7": 1.0}, "names 'x7', which is none of the 2"), (-1.0, "is a size, 0 or larger")]
)
def test_a_delta_that_makes_no_sense(warm, delta, why):
    with pytest.raises(ValueError, match=why):
        bs.relevance(warm, delta=delta)


def test_delta_is_for_draws():
    with pytest.raises(ValueError, match="`delta` is asked of the draws of method='nuts'"):
        bs.relevance(bs.fit("ard_gaussian", (X, Y), draws=0), delta=1.0)


def test_no_objective_to_plot(warm):
    with pytest.raises(ValueError, match=r"^NUTS climbs no objective: az\.plot_trace\(tree\) shows its chains\.$"):
        bs.plot_history(warm)


def test_a_tree_read_back_predicts_the_same(warm, tmp_path):
    warm.to_netcdf(tmp_path / "fit.nc")
    with xr.open_datatree(tmp_path / "fit.nc") as back:
        assert bs.predict(back, X[:4]).identical(bs.predict(warm, X[:4]))


def test_nutpie_samples_the_same_posterior(warm):
    pytest.importorskip("nutpie")
    tree = sampled(hyper=(1.0, 0.1), sampler="nutpie", target_accept=0.9)
    assert tree["posterior"].attrs["sampler"] == "nutpie"
    assert tree["posterior"].attrs["gradient_evaluations"] == int(tree["sample_stats"]["n_steps"].sum())
    assert tree["posterior"].attrs["warmup_gradient_evaluations"] > 0
    for label in ("x0", "x1"):
        one, two = (t["posterior"].sel(basis=label) for t in (warm, tree))
        assert agree(one["w"], two["w"])
        assert agree(np.log(one["alpha"]), np.log(two["alpha"]))
    assert set(tree["sample_stats"].data_vars) == set(warm["sample_stats"].data_vars)
    assert set(tree.children) == set(warm.children)


@pytest.fixture
def uncompiled(monkeypatch):
    """No C compiler for a handful of draws."""
    without_compiler(monkeypatch)


def test_bounds_that_exclude_the_lambda_of_the_start(uncompiled):
    found = float(bs.fit("jeffreys_laplace", (X, Y), draws=0)["evidence"]["lambda"])
    low, high = 10 * found, 20 * found
    tree = sampled(bs.models.JeffreysLaplace(bounds=(low, high)), draws=5, tune=5, **SHALLOW)
    drawn = tree["posterior"]["lambda"].to_numpy()
    assert tree["posterior"].attrs["start"] == "reweighted"
    assert drawn.min() >= low
    assert drawn.max() <= high
    assert drawn.std() > 0
    assert bs.relevance(tree).index.size == 2


def declared():
    with pm.Model(coords={"feature": ["small", "large"], "person": [f"p{i}" for i in range(40)]}) as model:
        data = pm.Data("table", (X - X.mean(axis=0)) / X.std(axis=0), dims=("person", "feature"))
        alpha = pm.Gamma("alpha", 1.0, 0.1, dims="feature")
        w = pm.Normal("w", 0.0, 1 / pm.math.sqrt(alpha), dims="feature")
        eta = pm.Deterministic("eta", pm.Normal("b", 0.0, 20.0) + data @ w, dims="person")
        pm.Normal("y", eta, pm.HalfNormal("sigma", 3.0), observed=Y, dims="person")
    return model


def test_a_model_of_the_user_s(uncompiled):
    tree = sampled(declared(), None, draws=5, tune=5, **SHALLOW)
    posterior = tree["posterior"]
    assert posterior.attrs["start"] == "sequential"
    assert posterior["w"].dims == ("chain", "draw", "feature")
    assert posterior["eta"].dims == ("chain", "draw", "person")
    assert posterior["person"].to_numpy().tolist() == [f"p{i}" for i in range(40)]
    assert tree["observed_data"]["y"].dims == ("person",)
    assert_allclose(tree["observed_data"]["y"], Y)
    assert tree["constant_data"]["table"].dims == ("person", "feature")
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    eta = posterior["w"].to_numpy() @ Z.T + posterior["b"].to_numpy()[..., None]
    assert_allclose(posterior["eta"], eta, rtol=1e-9)
    expected = stats.norm.logpdf(Y, eta, posterior["sigma"].to_numpy()[..., None])
    assert_allclose(tree["log_likelihood"]["y"], expected, rtol=1e-7)


def test_a_model_that_no_evidence_method_fits_starts_cold(messages, uncompiled):
    with pm.Model() as model:
        w = pm.Normal("w", 0.0, tau=pm.Gamma("alpha", 2.0, 1.0, shape=2), shape=2)
        pm.Normal("y", pm.math.tanh(X[:, 0] * w[0]) + w[1] ** 2, 1.0, observed=Y)
    tree = sampled(model, None, draws=5, tune=5, **SHALLOW)
    assert tree["posterior"].attrs["start"] == "cold"
    assert any(m.startswith("NUTS starts cold, because no evidence method fits this model:") for m in messages)


def test_a_log_likelihood_too_large_to_store(monkeypatch, messages, uncompiled):
    monkeypatch.setattr("bayes_sparse.common.checks.LARGEST_LOG_LIKELIHOOD", 8 * 2 * 5 * 40 - 1)
    tree = sampled(declared(), None, draws=5, tune=5, **SHALLOW)
    assert "log_likelihood" not in tree.children
    assert any("log-likelihood would take" in message for message in messages)


def test_a_start_that_is_no_evidence_method():
    with pytest.raises(ValueError, match="`start` is a method that fits by evidence"):
        sampled(start="nuts")


@pytest.mark.slow
@pytest.mark.parametrize("model", ["gaussian_eigen", "laplace_eigen"])
def test_the_first_directions_alone_started_at_a_fit_of_all(uncompiled, model):
    tree = bs.fit(model, (X, Y), method="nuts", directions=1, draws=4, chains=1, tune=3, sampler="pymc", random_seed=0)
    assert tree["posterior"].sizes["direction"] == 1
    assert tree["posterior"].attrs["start"] == "revm"


@pytest.mark.parametrize("warm", [True, False])
def test_laplace_weights_of_one_scale_are_declared_as_they_are(uncompiled, warm, monkeypatch):
    seen = []
    declare = bs.models.JeffreysLaplace.declare
    monkeypatch.setattr(
        bs.models.JeffreysLaplace, "declare", lambda *a, centred, **k: (seen.append(centred), declare(*a, **k))[1]
    )
    asked = {"draws": 4, "chains": 1, "tune": 3, "sampler": "pymc", "random_seed": 0, "warm": warm}
    bs.fit("jeffreys_laplace", (X, Y), method="nuts", progressbar=False, **asked)
    assert seen == [True]


@pytest.mark.parametrize("condition", ["alpha", None])
def test_ctrl_c_hands_over_a_tree_of_the_draws_so_far(condition, monkeypatch):
    """At a gradient after the warm-up; the chain that was begun is all there is."""
    calls, evaluate = 0, Density.__call__

    def stopped(self, z):
        nonlocal calls
        calls += 1
        if calls == 3000:
            os.kill(os.getpid(), signal.SIGINT)
        return evaluate(self, z)

    monkeypatch.setattr(Density, "__call__", stopped)
    settings = {"draws": 100_000, "tune": 100, "condition": condition, **SHORT}
    with pytest.raises(KeyboardInterrupt, match=r"draws of 1 chain are the attribute `tree`") as stop:
        bs.fit("ard_gaussian", (X, Y), method="nuts", **settings)
    tree = stop.value.tree
    assert tree["posterior"].sizes["chain"] == 1
    assert 0 < tree["posterior"].sizes["draw"] < 100_000
    assert np.isfinite(bs.predict(tree, X)["mean"]).all()
