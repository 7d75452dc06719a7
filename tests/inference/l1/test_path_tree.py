"""The tree of a fit on the L1 path: what ArviZ, prediction and a new process need is in it; sparse features too."""

import json
import warnings

import arviz as az
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import xarray as xr
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.special import expit, gammaln

import bayes_sparse as bs
from tests.support import fit_path

RNG = np.random.default_rng(64)
N, P = 200, 10
X = np.round(4 * RNG.standard_normal((N, P))) / 4 * (RNG.random((N, P)) < 0.5) * np.linspace(0.5, 3.0, P)
X[:, 3] += 10.0  # a column that is nowhere zero, and far from it
NEW = X[RNG.permutation(N)[:9]] + 0.25
ETA = 1.5 * X[:, 0] - 0.8 * X[:, 3] + 8.0 + 0.5 * X[:, 5]
TARGETS = {
    "normal": ETA + RNG.standard_normal(N),
    "bernoulli": np.where(ETA + RNG.logistic(size=N) > 0, "yes", "no"),
    "poisson": RNG.poisson(np.exp(0.4 * ETA + 1.0)),
    "negative_binomial": RNG.poisson(RNG.gamma(5.0, np.exp(0.4 * ETA + 1.0) / 5.0)),
}
NUISANCE = {"normal": ["sigma"], "negative_binomial": ["dispersion"]}
METHODS = ["reweighted", "coordinate_descent", "fuzzy", "cv"]
every_likelihood = pytest.mark.parametrize("likelihood", TARGETS)


@pytest.fixture(scope="module")
def trees():
    settings = {"draws": 500, "chains": 4, "random_seed": 9}
    return {name: fit_path((X, y), likelihood=name, **settings) for name, y in TARGETS.items()}


def drawn(tree):
    """The terms kept and the bias, one draw a row, and their moments in the same order."""
    posterior, evidence = tree["posterior"].to_dataset(), tree["evidence"].to_dataset()
    flat = posterior.stack(sample=("chain", "draw"))
    names = [*posterior["basis"].to_numpy(), "bias"]
    draws = np.column_stack([flat["w"].transpose("sample", "basis"), flat["bias"]])
    order = [evidence["coordinate"].to_numpy().tolist().index(name) for name in names]
    factor = evidence["covariance_factor"].to_numpy()[order]
    return draws, evidence["coordinate_mean"].to_numpy()[order], factor @ factor.T


@every_likelihood
def test_groups_and_variables_of_the_contract(trees, likelihood):
    tree, nuisance = trees[likelihood], NUISANCE.get(likelihood, [])
    evidence, posterior = tree["evidence"], tree["posterior"]
    groups = {"posterior", "sample_stats", "log_likelihood", "observed_data", "constant_data", "evidence"}
    assert groups == set(tree.children)
    assert set(posterior.data_vars) == {"w", "bias", *nuisance}
    assert set(tree["sample_stats"].data_vars) == {"log_p", "log_p_marginal", "log_q"}
    assert tree["log_likelihood"]["y"].shape == (4, 500, N)
    for name in ("lambda", "N", "R", "r", "criterion", "log_likelihood_mode", "log_prior", "log_evidence", *nuisance):
        assert evidence[name].ndim == 0
    for name in ("mean", "sd", "kept", "relevant", "pull"):
        assert evidence[name].dims == ("basis",)
    assert evidence["path_w"].dims == ("visited", "ever")
    attributes = {"method", "approximation", "prior", "status", "n_iterations", "seconds", "separable", "violation"}
    assert attributes | {"folded", "conditional_on", "curvature", "versions"} <= set(evidence.attrs)
    assert posterior["basis"].to_numpy().tolist() == evidence["basis"].to_numpy()[evidence["kept"]].tolist()
    assert 0 < posterior.sizes["basis"] < P or likelihood == "normal"


@every_likelihood
def test_draws_have_the_moments_of_the_evidence_group(trees, likelihood):
    draws, mean, covariance = drawn(trees[likelihood])
    sd, count = np.sqrt(np.diag(covariance)), len(draws)
    assert np.all(np.abs(draws.mean(axis=0) - mean) < 5 * sd / np.sqrt(count))
    # Five standard errors of a covariance, which for correlation c is sqrt((1 + c^2) / count).
    assert_allclose(np.cov(draws.T) / np.outer(sd, sd), covariance / np.outer(sd, sd), atol=5 * np.sqrt(2 / count))
    assert_allclose(sd[:-1], trees[likelihood]["evidence"]["sd"].to_numpy()[trees[likelihood]["evidence"]["kept"]])
    for name in NUISANCE.get(likelihood, []):
        logs = np.log(trees[likelihood]["posterior"][name])
        assert abs(logs.mean() - np.log(trees[likelihood]["evidence"][name])) < 5 * logs.std() / np.sqrt(count)


def density(likelihood, y, eta, nuisance):
    if likelihood == "normal":
        return stats.norm.logpdf(y, eta, *nuisance)
    if likelihood == "bernoulli":
        return stats.bernoulli.logpmf(y == "yes", expit(eta))
    if likelihood == "poisson":
        return stats.poisson.logpmf(y, np.exp(eta))
    return stats.nbinom.logpmf(y, *nuisance, nuisance[0] / (nuisance[0] + np.exp(eta)))


@pytest.mark.parametrize("settings", [{}, {"lam": 3.0}], ids=["marginal", "given"])
@every_likelihood
def test_log_likelihood_and_log_p_by_hand(likelihood, settings):
    """Of one draw, with every term of the prior of standardised weights."""
    y = TARGETS[likelihood]
    tree = fit_path((X, y), likelihood=likelihood, draws=3, chains=2, random_seed=1, **settings)
    draw = tree["posterior"].to_dataset().isel(chain=1, draw=2)
    columns = [int(str(name)[1:]) for name in draw["basis"].to_numpy()]
    w, eta = draw["w"].to_numpy(), X[:, columns] @ draw["w"].to_numpy() + float(draw["bias"])
    each = density(likelihood, y, eta, [float(draw[name]) for name in NUISANCE.get(likelihood, [])])
    assert_allclose(tree["log_likelihood"]["y"].isel(chain=1, draw=2), each, rtol=1e-8, atol=1e-10)
    R, count = np.abs(w * X[:, columns].std(axis=0)).sum(), len(w)
    held = 3.0 if settings else float(tree["evidence"]["lambda"])
    priors = {"log_p": count * np.log(held / 2) - held * R}
    if not settings:
        priors["log_p_marginal"] = gammaln(count) - count * np.log(2 * R)
    assert priors.keys() == tree["sample_stats"].data_vars.keys() - {"log_q"}
    for name, prior in priors.items():
        assert_allclose(tree["sample_stats"][name].isel(chain=1, draw=2), each.sum() + prior, rtol=1e-9)


@pytest.mark.parametrize("likelihood", ["bernoulli", "poisson"])
def test_log_q_is_the_density_drawn_from(trees, likelihood):
    """Of weights of standardised columns: the user's are divided by their size, which the density must make up for."""
    tree = trees[likelihood]
    draws, mean, covariance = drawn(tree)
    columns = [int(str(name)[1:]) for name in tree["posterior"]["basis"].to_numpy()]
    own = stats.multivariate_normal(mean, covariance).logpdf(draws[:50])
    found = tree["sample_stats"]["log_q"].to_numpy().ravel()[:50]
    assert_allclose(found, own - np.log(X[:, columns].std(axis=0)).sum(), rtol=1e-8)


@every_likelihood
def test_arviz_takes_the_tree_as_it_is(trees, likelihood):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        summary, loo = az.summary(trees[likelihood]), az.loo(trees[likelihood])
    assert "bias" in summary.index
    assert sum(name.startswith("w[") for name in summary.index) == trees[likelihood]["posterior"].sizes["basis"]
    pointwise = trees[likelihood]["log_likelihood"]["y"].stack(sample=("chain", "draw")).to_numpy()
    in_sample = np.sum(np.log(np.mean(np.exp(pointwise), axis=1)))
    assert in_sample - 25 < loo.elpd < in_sample


@pytest.mark.parametrize("settings", [{"all_points": True}, {"lam": 5.0}, {"method": "cv"}], ids=["all", "lam", "cv"])
@pytest.mark.parametrize("likelihood", ["normal", "bernoulli"])
def test_a_saved_tree_is_the_same_tree(likelihood, settings, tmp_path):
    tree = fit_path((X, TARGETS[likelihood]), likelihood=likelihood, draws=5, **settings)
    tree.to_netcdf(tmp_path / "tree.nc")
    with xr.open_datatree(tmp_path / "tree.nc") as back:
        for name, value in tree["evidence"].data_vars.items():
            assert_array_equal(back["evidence"][name].to_numpy(), value.to_numpy())
        assert bs.predict(back, NEW).identical(bs.predict(tree, NEW))
        assert bs.relevance(back).equals(bs.relevance(tree))
        assert back["evidence"].attrs["status"] == tree["evidence"].attrs["status"]
        assert isinstance(json.loads(back.attrs["bayes_sparse"]), dict)


@pytest.mark.parametrize("copies", [0, 1, 2])
def test_a_saved_tree_knows_what_was_folded(copies, tmp_path):
    more = np.column_stack([X, X[:, :copies]])
    fit_path((more, TARGETS["normal"])).to_netcdf(tmp_path / "tree.nc")
    with xr.open_datatree(tmp_path / "tree.nc") as back:
        assert json.loads(back["evidence"].attrs["folded"]) == [f"x{P + j}" for j in range(copies)]


@every_likelihood
def test_predictions_are_averages_over_the_posterior(trees, likelihood):
    tree = trees[likelihood]
    draws, _, _ = drawn(tree)
    columns = [int(str(name)[1:]) for name in tree["posterior"]["basis"].to_numpy()]
    eta = NEW[:, columns] @ draws[:, :-1].T + draws[:, -1]
    found = bs.predict(tree, NEW)
    if likelihood == "bernoulli":
        average, of = found["probability"].sel({"class": "yes"}).to_numpy(), expit(eta)
        assert_array_equal(found["label"], np.where(average > 0.5, "yes", "no"))
    else:
        average, of = found["mean"].to_numpy(), eta if likelihood == "normal" else np.exp(eta)
    assert np.all(np.abs(average - of.mean(axis=1)) < 5 * of.std(axis=1) / np.sqrt(len(draws)))


def test_relevance_and_what_was_left_out(trees):
    tree = trees["bernoulli"]
    table, evidence = bs.relevance(tree), tree["evidence"].to_dataset()
    named = ["score", "chance", "kept", "relevant", "word", "rival", "rival_loss", "alternatives"]
    assert table.columns.tolist() == ["mean", "sd", "pull", *named]
    for name in table.columns.drop(["word", "rival", "rival_loss", "alternatives"]):
        assert_array_equal(table[name].sort_index(), evidence[name].sortby("basis"))
    count = int(evidence["N"])
    assert table["kept"].tolist() == [True] * count + [False] * (P - count)
    assert np.all(np.diff((table["mean"] / table["sd"]).abs()[:count]) <= 0)
    assert np.all(np.diff(table["pull"].abs()[count:]) <= 0)
    whole = bs.unpruned(tree)["posterior"]["w"]
    assert whole["basis"].to_numpy().tolist() == [f"x{j}" for j in range(P)]
    left_out = whole.sel(basis=evidence["basis"].to_numpy()[~evidence["kept"].to_numpy()])
    assert left_out.size > 0
    assert not left_out.any()


def test_nothing_kept_is_a_tree_too():
    with pytest.warns(bs.FitWarning, match="bias only"):
        tree = fit_path((X, TARGETS["bernoulli"]), lam=1e4, draws=50, random_seed=0)
    assert set(tree["posterior"].data_vars) == {"bias"}
    assert not bs.unpruned(tree)["posterior"]["w"].any()
    share = np.mean(TARGETS["bernoulli"] == "yes")
    assert_allclose(bs.predict(tree, NEW)["probability"].sel({"class": "yes"}), share, atol=0.01)
    assert not bs.relevance(tree)["kept"].any()


@every_likelihood
def test_the_path_holds_the_points_visited(trees, likelihood):
    evidence = trees[likelihood]["evidence"].to_dataset()
    lam = evidence["path_lambda"].to_numpy()
    assert np.all(np.diff(lam) >= 0)
    assert_array_equal(evidence["path_N"], (evidence["path_w"] != 0).sum("ever"))
    scale = X.std(axis=0)[[int(str(name)[1:]) for name in evidence["ever"].to_numpy()]]
    assert_allclose(evidence["path_R"], np.abs(evidence["path_w"].to_numpy() * scale).sum(axis=1), rtol=1e-9)
    at = fit_path((X, TARGETS[likelihood]), likelihood=likelihood, lam=lam[0])["evidence"]["mean"]
    gap = np.abs(at.sel(basis=evidence["ever"].to_numpy()).to_numpy() - evidence["path_w"][0].to_numpy())
    assert np.all(gap * scale < 0.01 * np.abs(at.to_numpy() * X.std(axis=0)).max())  # points on the way are rough


def assert_same_fit(tree, dense):
    for name in ("lambda", "N", "R", "criterion", "mean", "sd", "pull", "kept", "relevant"):
        found, truth = tree["evidence"][name].to_numpy(), dense["evidence"][name].to_numpy()
        assert_allclose(found, truth, rtol=1e-5, atol=1e-6 * np.nanmax(np.abs(truth)), err_msg=name)


CASES = [(likelihood, "reweighted") for likelihood in TARGETS]
CASES += [(likelihood, method) for likelihood in ("normal", "bernoulli") for method in METHODS[1:]]


@pytest.mark.parametrize(("likelihood", "method"), CASES)
def test_sparse_features_give_the_fit_of_the_dense_ones(likelihood, method):
    y, settings = TARGETS[likelihood], {"likelihood": likelihood, "method": method}
    dense, tree = (fit_path((data, y), **settings) for data in (X, sp.csr_array(X)))
    assert_same_fit(tree, dense)
    found, truth = bs.predict(tree, sp.csr_array(NEW)), bs.predict(dense, NEW)
    for name in set(truth.data_vars) - {"label"}:
        assert_allclose(found[name], truth[name], rtol=1e-5)


def test_every_kind_of_sparse_features():
    frame = pd.DataFrame.sparse.from_spmatrix(sp.csr_matrix(X), columns=[f"x{j}" for j in range(P)])
    dense = fit_path((X, TARGETS["bernoulli"]), keep="x7")
    for data in (sp.csc_matrix(X), sp.coo_array(X), frame, frame.astype({"x3": float, "x4": float})):
        assert_same_fit(fit_path((data, TARGETS["bernoulli"]), keep="x7"), dense)
