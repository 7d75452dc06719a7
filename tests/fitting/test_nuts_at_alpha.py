"""The exact posterior at alpha*, sampled: closed forms and quadrature, and a tree like every other."""

import arviz as az
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.special import expit

import bayes_sparse as bs

RNG = np.random.default_rng(21)
N = 50
X = RNG.standard_normal((N, 3)) * [1.0, 100.0, 0.01] + [0.0, 5000.0, -0.3]
Z = (X - X.mean(axis=0)) / X.std(axis=0)
ETA = 0.9 * Z[:, 0] - 0.7 * Z[:, 1]
REAL = 2 * ETA + 7.0 + 0.8 * RNG.standard_normal(N)
BINARY = (2 * ETA + RNG.logistic(size=N) > 0).astype(int)
COUNTS = RNG.poisson(np.exp(ETA + 1.0))
KIND = np.argmax(np.stack([0 * ETA, 2 * Z[:, 0], 2 * Z[:, 1]]) + RNG.gumbel(size=(3, N)), axis=0)
NEW = X[:7] + 0.1 * X.std(axis=0)
GROUPS = {"evidence", "posterior", "sample_stats", "log_likelihood", "observed_data", "constant_data"}


def sampled(data, model="ard_gaussian", draws=300, chains=2, seed=0, sampler="auto", **arguments):
    return bs.fit(
        model,
        data,
        method="nuts",
        condition="alpha",
        sampler=sampler,
        draws=draws,
        chains=chains,
        random_seed=seed,
        progressbar=False,
        **arguments,
    )


def frame(y, name="y"):
    return pd.DataFrame(X, columns=["small", "large", "tiny"]), pd.Series(y, name=name)


@pytest.fixture(scope="module")
def real():
    return sampled(frame(REAL, "height"), sampler="pymc")


@pytest.fixture(scope="module")
def counts():
    return sampled((X, COUNTS), likelihood="poisson")


@pytest.fixture(scope="module")
def kinds():
    return sampled((X, KIND), "student_multinomial", draws=100)


def agree(draws, mean, sd):
    """Means within four Monte-Carlo standard errors of the truth, and so the sds."""
    for_mean, for_sd = (float(az.ess(draws, method=method)) for method in ("mean", "sd"))
    assert abs(draws.mean() - mean) < 4 * sd / np.sqrt(for_mean)
    assert abs(np.log(draws.std() / sd)) < 4 / np.sqrt(2 * for_sd)


def exact_log_evidence(evidence):
    """Of a normal likelihood: y is normal, with what the terms kept add to its covariance."""
    kept = evidence["kept"].to_numpy()
    alpha = evidence["alpha"].to_numpy()[kept] / X.std(axis=0)[kept] ** 2
    Phi = Z[:, kept]
    wide = 10 * np.sqrt(np.mean(REAL**2))
    covariance = float(evidence["sigma"]) ** 2 * np.eye(N) + (Phi / alpha) @ Phi.T + wide**2
    return stats.multivariate_normal.logpdf(REAL, np.zeros(N), covariance)


@pytest.mark.quick
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_normal_likelihood_is_exact(seed):
    tree = sampled((X, REAL), draws=1000, seed=seed)
    reference = bs.fit("ard_gaussian", (X, REAL), draws=1000, chains=2, random_seed=seed)
    evidence, posterior = reference["evidence"], tree["posterior"]
    for label in posterior["basis"].to_numpy():
        draws = posterior["w"].sel(basis=label).to_numpy()
        agree(draws, float(evidence["mean"].sel(basis=label)), float(evidence["sd"].sel(basis=label)))
    agree(posterior["bias"].to_numpy(), float(evidence["bias"]), float(evidence["bias_sd"]))
    truth = exact_log_evidence(evidence)
    bridge, importance = bs.log_evidence(tree, method="bridge"), bs.log_evidence(reference, method="importance")
    assert 0 < bridge.se < 0.05
    assert abs(bridge.value - truth) < 3 * bridge.se
    assert abs(importance.value - truth) < 3 * importance.se + 1e-7
    assert_allclose(float(evidence["log_evidence"]), truth, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_skewed_posterior_against_quadrature(seed):
    """A dozen observations, one a class of its own, and normal priors that are known: a weight and a bias on a grid."""
    x = np.linspace(-1.0, 2.0, 12)
    z, y = (x - x.mean()) / x.std(), (np.arange(12) >= 11).astype(int)
    model = bs.models.ARDGaussian(bias_sd=3.0)
    tree = sampled((x[:, None], y), model, draws=2000, seed=seed, keep=["x0"], likelihood="bernoulli")
    w, b = np.meshgrid(np.linspace(-5, 16, 801), np.linspace(-18, 6, 801), indexing="ij")
    log_p = stats.norm.logpdf(w, scale=3.0) + stats.norm.logpdf(b, scale=3.0)
    for z_n, y_n in zip(z, y, strict=True):
        log_p -= np.logaddexp(0.0, (1 - 2 * y_n) * (b + w * z_n))
    p = np.exp(log_p)
    total = p.sum() * (21 / 800) * (24 / 800)
    p /= p.sum()
    for draws, values in (
        (tree["posterior"]["w"].isel(basis=0).to_numpy() * x.std(), w),
        ((tree["posterior"]["bias"] + tree["posterior"]["w"].isel(basis=0) * x.mean()).to_numpy(), b),
    ):
        mean = np.sum(p * values)
        agree_skewed(draws, mean, np.sum(p * (values - mean) ** 2))
    bridge = bs.log_evidence(tree)
    assert bridge.method == "bridge"
    assert abs(bridge.value - np.log(total)) < 3 * bridge.se
    reference = bs.fit(model, (x[:, None], y), keep=["x0"], likelihood="bernoulli", draws=4000, random_seed=seed)
    importance = bs.log_evidence(reference, method="importance")
    assert abs(importance.value - np.log(total)) < 3 * importance.se


def agree_skewed(draws, mean, variance):
    square = (draws - mean) ** 2
    for values, truth in ((draws, mean), (square, variance)):
        assert abs(values.mean() - truth) < 4 * values.std() / np.sqrt(float(az.ess(values, method="mean")))


def test_the_layout_of_an_evidence_tree(real):
    reference = bs.fit("ard_gaussian", frame(REAL, "height"), draws=300, chains=2, random_seed=0)
    assert set(reference.children) == GROUPS
    assert set(real.children) == GROUPS | {"bridge"}
    for group in ("posterior", "log_likelihood", "observed_data"):
        ours, other = real[group].to_dataset(), reference[group].to_dataset()
        assert set(ours.data_vars) == set(other.data_vars) - {"sigma"}  # which is held
        for name in ours.data_vars:
            assert ours[name].dims == other[name].dims
            assert ours[name].sizes == other[name].sizes
            for dim in ours[name].dims:
                assert_array_equal(ours[name][dim], other[name][dim])
    assert real.attrs == reference.attrs
    assert set(real["evidence"].data_vars) == set(reference["evidence"].data_vars)
    assert_allclose(real["constant_data"]["sigma"], reference["evidence"]["sigma"])
    assert_allclose(real["observed_data"]["height"], REAL)


def test_what_is_told(real):
    told = real["posterior"].attrs
    assert told["method"] == "nuts"
    assert told["condition"] == "alpha"
    assert told["start"] == "sequential"
    assert told["sampler"] == "pymc"
    assert told["conditional_on"] == "the terms selected and alpha*, nuisance parameters at their estimates"
    assert told["gradient_evaluations"] == int(real["sample_stats"]["n_steps"].sum())
    assert told["warmup_gradient_evaluations"] > 0
    assert told["seconds"] > 0
    assert real["evidence"].attrs["method"] == "nuts"
    assert {"diverging", "energy", "lp", "tree_depth", "n_steps", "step_size", "acceptance_rate", "log_p"} <= set(
        real["sample_stats"].data_vars
    )


def test_log_likelihood_and_log_p_of_its_own_draws(real):
    posterior = real["posterior"].to_dataset()
    w, bias = posterior["w"].to_numpy(), posterior["bias"].to_numpy()
    evidence = real["evidence"].to_dataset()
    kept = evidence["kept"].to_numpy()
    eta, sigma = w @ X[:, kept].T + bias[..., None], float(evidence["sigma"])
    expected = stats.norm.logpdf(REAL, eta, sigma)
    assert_allclose(real["log_likelihood"]["height"], expected, rtol=1e-7)
    scale, shift = X.std(axis=0)[kept], X.mean(axis=0)[kept]
    alpha = evidence["alpha"].to_numpy()[kept] / scale**2
    prior = stats.norm.logpdf(w * scale, scale=alpha**-0.5).sum(axis=-1)
    prior += stats.norm.logpdf(bias + w @ shift, scale=10 * np.sqrt(np.mean(REAL**2)))
    assert_allclose(real["sample_stats"]["log_p"], expected.sum(axis=-1) + prior, rtol=1e-7)


def test_moments_are_those_of_the_draws(real):
    """In the user's units, with columns whose sizes differ by ten thousand."""
    evidence, posterior = real["evidence"].to_dataset(), real["posterior"].to_dataset()
    count = 2 * 300
    for label in posterior["basis"].to_numpy():
        draws = posterior["w"].sel(basis=label).to_numpy()
        assert_allclose(evidence["mean"].sel(basis=label), draws.mean(), rtol=1e-9)
        assert_allclose(evidence["sd"].sel(basis=label), draws.std(ddof=1), rtol=1e-6)
    assert_allclose(evidence["bias"], posterior["bias"].mean(), rtol=1e-9)
    assert_allclose(evidence["bias_sd"], posterior["bias"].to_numpy().std() * np.sqrt(count / (count - 1)), rtol=1e-6)
    factor, labels = evidence["covariance_factor"].to_numpy(), evidence["coordinate"].to_numpy().tolist()
    pair = [labels.index("bias"), labels.index("large")]
    expected = np.cov(posterior["bias"].to_numpy().ravel(), posterior["w"].sel(basis="large").to_numpy().ravel())
    assert_allclose((factor @ factor.T)[np.ix_(pair, pair)], expected, rtol=1e-6)


def test_a_regression_predicts_by_its_draws(real):
    posterior = real["posterior"].to_dataset().stack(sample=("chain", "draw"))
    sigma = float(real["constant_data"]["sigma"])
    kept = real["evidence"]["kept"].to_numpy()
    eta = NEW[:, kept] @ posterior["w"].transpose("basis", "sample").to_numpy() + posterior["bias"].to_numpy()
    prediction = bs.predict(real, pd.DataFrame(NEW, columns=["small", "large", "tiny"]))
    assert_allclose(prediction["mean"], eta.mean(axis=1), rtol=1e-10)
    assert_allclose(prediction["sd"], np.sqrt(eta.var(axis=1) + sigma**2), rtol=1e-10)


def test_counts_predict_by_their_draws(counts):
    posterior = counts["posterior"].to_dataset().stack(sample=("chain", "draw"))
    kept = counts["evidence"]["kept"].to_numpy()
    eta = NEW[:, kept] @ posterior["w"].transpose("basis", "sample").to_numpy() + posterior["bias"].to_numpy()
    prediction = bs.predict(counts, NEW)
    assert_allclose(prediction["mean"], np.exp(eta).mean(axis=1), rtol=1e-10)
    assert_allclose(prediction["sd"], np.sqrt(np.exp(eta).mean(axis=1) + np.exp(eta).var(axis=1)), rtol=1e-10)


def test_two_classes_predict_by_their_draws():
    tree = sampled((X, BINARY), likelihood="bernoulli", draws=100)
    posterior = tree["posterior"].to_dataset().stack(sample=("chain", "draw"))
    kept = tree["evidence"]["kept"].to_numpy()
    eta = NEW[:, kept] @ posterior["w"].transpose("basis", "sample").to_numpy() + posterior["bias"].to_numpy()
    assert_allclose(bs.predict(tree, NEW)["probability"].sel({"class": 1}), expit(eta).mean(axis=1), rtol=1e-10)


def test_several_classes_predict_by_their_draws(kinds):
    posterior = bs.unpruned(kinds)["posterior"].to_dataset().stack(sample=("chain", "draw"))
    w = posterior["w"].transpose("sample", "basis").to_numpy().reshape(-1, 3, 3)
    eta = np.einsum("scm,nm->nsc", w, NEW) + posterior["bias"].transpose("sample", "class").to_numpy()
    p = np.exp(eta - eta.max(axis=2, keepdims=True))
    expected = (p / p.sum(axis=2, keepdims=True)).mean(axis=1)
    assert_allclose(bs.predict(kinds, NEW)["probability"], expected, rtol=1e-7)


@pytest.mark.parametrize("which", ["real", "counts", "kinds"])
def test_a_tree_read_back_predicts_the_same(which, request, tmp_path):
    tree = request.getfixturevalue(which)
    new = pd.DataFrame(NEW, columns=["small", "large", "tiny"]) if which == "real" else NEW
    tree.to_netcdf(tmp_path / "fit.nc")
    with xr.open_datatree(tmp_path / "fit.nc") as back:
        assert bs.predict(back, new).identical(bs.predict(tree, new))
        assert bs.log_evidence(back) == bs.log_evidence(tree)
        pd.testing.assert_frame_equal(bs.relevance(back), bs.relevance(tree))


def test_what_is_done_with_any_tree(real):
    table = bs.relevance(real)
    assert set(table.index[table["kept"]]) == {"small", "large"}
    assert_allclose(table.loc["small", "mean"], real["posterior"]["w"].sel(basis="small").mean())
    whole = bs.unpruned(real)["posterior"]["w"]
    assert whole.sizes["basis"] == 3
    assert not whole.sel(basis="tiny").any()
    assert "w[small]" in az.summary(real).index
    assert np.isfinite(az.loo(real).elpd)
    assert bs.diagnose(real).draws == 600
    assert bs.plot_relevance(real).get_title() == "2 of 3 terms kept"


def test_the_same_seed_gives_the_same_tree():
    one, two, other = (sampled((X, COUNTS), likelihood="poisson", draws=20, seed=seed) for seed in (4, 4, 5))
    assert one["posterior"]["w"].identical(two["posterior"]["w"])
    assert not one["posterior"]["w"].identical(other["posterior"]["w"])


def test_the_flat_hyper_prior_is_allowed():
    tree = sampled((X, COUNTS), likelihood="poisson", draws=20, hyper=(0, 0))
    assert tree["posterior"].sizes["basis"] < 3


def test_a_cold_start_finds_the_same(counts):
    tree = sampled((X, COUNTS), likelihood="poisson", draws=300, warm=False, tune=400)
    assert tree["posterior"].attrs["start"] == "cold"
    for label in counts["posterior"]["basis"].to_numpy():
        one, two = (t["posterior"]["w"].sel(basis=label).to_numpy() for t in (tree, counts))
        error = np.sqrt(sum(d.var() / float(az.ess(d, method="mean")) for d in (one, two)))
        assert abs(one.mean() - two.mean()) < 4 * error


def test_no_draws_are_refused():
    with pytest.raises(ValueError, match=r"^`draws`[^.]*\.$"):
        sampled((X, REAL), draws=0)


def test_nothing_kept_is_refused():
    noise = np.random.default_rng(3).standard_normal(N)
    with (
        pytest.warns(bs.FitWarning, match="No basis function pays"),
        pytest.raises(ValueError, match=r"^Nothing was kept and there is no bias"),
    ):
        sampled((Z, noise), basis=bs.basis.linear(bias=False))


def test_only_a_bias_is_sampled_and_predicted():
    noise = np.random.default_rng(3).standard_normal(N)
    with pytest.warns(bs.FitWarning, match="No basis function pays"):
        tree = sampled((Z, noise), draws=100)
    assert "w" not in tree["posterior"]
    assert_allclose(bs.predict(tree, Z[:3])["mean"], float(tree["posterior"]["bias"].mean()))


@pytest.mark.parametrize("model", ["laplace_eigen", "gaussian_eigen"])
def test_directions(model):
    tree = sampled((X, COUNTS), model, likelihood="poisson", draws=200)
    reference = bs.fit(model, (X, COUNTS), likelihood="poisson", draws=200, chains=2, random_seed=0)
    assert set(tree["posterior"].data_vars) == set(reference["posterior"].data_vars)
    assert_allclose(tree["evidence"]["mean"], tree["posterior"]["w"].mean(("chain", "draw")), rtol=1e-9)
    kept = tree["posterior"]["direction"].to_numpy()
    assert_allclose(tree["evidence"]["u_mean"].sel(direction=kept), tree["posterior"]["u"].mean(("chain", "draw")))
    eta = NEW @ tree["posterior"]["w"].to_numpy().reshape(-1, 3).T + tree["posterior"]["bias"].to_numpy().ravel()
    assert_allclose(bs.predict(tree, NEW)["mean"], np.exp(eta).mean(axis=1), rtol=1e-10)
    assert bs.relevance(tree, space="eigen")["relevant"].sum() == len(kept)


def test_the_support_with_its_noise():
    tree = sampled((X, REAL), "jeffreys_laplace", draws=200)
    assert set(tree["posterior"].data_vars) == {"w", "bias", "sigma"}  # no nuisance parameter is held
    lam = float(tree["evidence"]["lambda"])
    assert tree["posterior"].attrs["conditional_on"] == f"the support and lambda* = {lam:.4g}; flat priors count as 1"
    posterior = tree["posterior"].to_dataset().stack(sample=("chain", "draw"))
    kept = tree["evidence"]["kept"].to_numpy()
    eta = NEW[:, kept] @ posterior["w"].transpose("basis", "sample").to_numpy() + posterior["bias"].to_numpy()
    prediction = bs.predict(tree, NEW)
    variance = eta.var(axis=1) + np.mean(posterior["sigma"].to_numpy() ** 2)
    assert_allclose(prediction["mean"], eta.mean(axis=1), rtol=1e-10)
    assert_allclose(prediction["sd"], np.sqrt(variance), rtol=1e-10)


def test_too_few_draws_for_a_bridge(messages):
    tree = sampled((X, REAL), draws=20, chains=1)
    assert "bridge" not in tree.children
    assert any("10 are too few for 3 coordinates" in message for message in messages)
    with pytest.raises(ValueError, match="nothing to bridge from"):
        bs.log_evidence(tree, method="bridge")


def test_a_log_likelihood_too_large_to_store(monkeypatch, messages):
    monkeypatch.setattr("bayes_sparse.common.checks.LARGEST_LOG_LIKELIHOOD", 8 * 40 * N - 1)
    tree = sampled((X, COUNTS), likelihood="poisson", draws=20)
    assert "log_likelihood" not in tree.children
    assert np.isfinite(tree["sample_stats"]["log_p"]).all()
    assert any("log-likelihood would take" in message for message in messages)


@pytest.mark.parametrize(
    ("model", "likelihood", "y"),
    [("ard_gaussian", "poisson", COUNTS), ("laplace_eigen", "poisson", COUNTS), ("jeffreys_laplace", "normal", REAL)],
)
def test_an_evidence_fit_is_judged_although_its_log_likelihood_is_too_large(model, likelihood, y, monkeypatch):
    whole = bs.fit(model, (X, y), likelihood=likelihood, draws=100, random_seed=0)
    monkeypatch.setattr("bayes_sparse.common.checks.LARGEST_LOG_LIKELIHOOD", 8 * 400 * N - 1)
    tree = bs.fit(model, (X, y), likelihood=likelihood, draws=100, random_seed=0)
    assert "log_likelihood" in whole.children
    assert "log_likelihood" not in tree.children
    assert_allclose(tree["sample_stats"]["log_p"], whole["sample_stats"]["log_p"], rtol=1e-12)


@pytest.mark.parametrize(
    ("model", "likelihood", "y"),
    [("ard_gaussian", "poisson", COUNTS), ("laplace_eigen", "poisson", COUNTS), ("jeffreys_laplace", "normal", REAL)],
)
def test_too_many_draws_to_judge_by(model, likelihood, y, monkeypatch, messages):
    monkeypatch.setattr("bayes_sparse.common.checks.MOST_LOG_DENSITIES", 400 * N - 1)
    tree = bs.fit(model, (X, y), likelihood=likelihood, draws=100, random_seed=0)
    assert "log_p" not in tree["sample_stats"]
    assert "log_q" in tree["sample_stats"]
    assert any("bs.diagnose has nothing to judge by; ask for fewer draws" in message for message in messages)
    with pytest.raises(ValueError, match="log target was left out"):
        bs.diagnose(tree)


def test_weights_too_large_to_store_are_not_taken_for_zeros(monkeypatch):
    """Directions are drawn, and every draw of every weight is left out: predictions cannot do without them."""
    monkeypatch.setattr("bayes_sparse.common.checks.LARGEST_LOG_LIKELIHOOD", 8 * 200 * 3 - 1)
    tree = sampled((X, COUNTS), "laplace_eigen", likelihood="poisson", draws=100)
    assert "w" not in tree["posterior"]
    with pytest.raises(ValueError, match="fewer draws"):
        bs.predict(tree, NEW)
