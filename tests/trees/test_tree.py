"""The tree: what ArviZ and a new process need is in it."""

import json
import subprocess
import sys
import warnings

import arviz as az
import matplotlib as mpl
import numpy as np
import pytest
import xarray as xr
from scipy import stats

import bayes_sparse as bs
from bayes_sparse.common import checks as limits

mpl.use("Agg")

RNG = np.random.default_rng(61)
N = 120
X = RNG.standard_normal((N, 6)) * 2.0 + 1.0
NEW = RNG.standard_normal((9, 6)) * 2.0 + 1.0
ETA = 0.5 * X[:, 0] - 0.5 * X[:, 3]
TARGETS = {
    "normal": ETA + 0.5 * RNG.standard_normal(N),
    "student_t": ETA + 0.5 * RNG.standard_t(4, size=N),
    "bernoulli": np.where(ETA + RNG.logistic(size=N) > 0, "yes", "no"),
    "poisson": RNG.poisson(np.exp(0.5 * ETA + 1.0)),
    "negative_binomial": RNG.poisson(RNG.gamma(5.0, np.exp(0.5 * ETA + 1.0) / 5.0)),
}
NUISANCE = {"normal": ["sigma"], "student_t": ["sigma"], "negative_binomial": ["dispersion"]}


@pytest.fixture(scope="module")
def trees():
    return {
        name: bs.fit("ard_gaussian", (X, y), likelihood=name, draws=250, chains=4, random_seed=9)
        for name, y in TARGETS.items()
    }


@pytest.mark.quick
@pytest.mark.parametrize("likelihood", TARGETS)
def test_groups_and_variables_of_the_contract(trees, likelihood):
    tree, nuisance = trees[likelihood], NUISANCE.get(likelihood, [])
    groups = {"posterior", "sample_stats", "log_likelihood", "observed_data", "constant_data", "evidence"}
    assert groups == set(tree.children)
    posterior, evidence = tree["posterior"], tree["evidence"]
    assert set(posterior.data_vars) == {"w", "bias", *nuisance}
    assert posterior["w"].dims == ("chain", "draw", "basis")
    assert (posterior.sizes["chain"], posterior.sizes["draw"]) == (4, 250)
    assert set(tree["sample_stats"].data_vars) == {"log_p", "log_q"}
    assert tree["log_likelihood"]["y"].shape == (4, 250, N)
    assert tree["observed_data"]["y"].shape == (N,)
    per_term = {"alpha", "mean", "sd", "gamma", "score", "chance", "kept", "relevant"}
    assert all(evidence[name].dims == ("basis",) and evidence[name].size == 6 for name in per_term)
    assert evidence["kept"].dtype == bool
    assert evidence["log_evidence"].ndim == evidence["objective"].ndim == 0
    assert evidence["history"].dims == ("iteration",)
    assert all(evidence[name].item() > 0 for name in nuisance)
    attributes = {"method", "approximation", "status", "n_iterations", "seconds", "hyper", "smoothness", "versions"}
    assert attributes <= set(evidence.attrs)
    assert evidence.attrs["approximation"] == ("exact" if likelihood == "normal" else "laplace")


@pytest.mark.parametrize("likelihood", TARGETS)
def test_pruned_terms_are_not_drawn(trees, likelihood):
    tree = trees[likelihood]
    evidence = tree["evidence"].to_dataset()
    kept = evidence["basis"].to_numpy()[evidence["kept"].to_numpy()]
    assert 0 < len(kept) < 6
    assert tree["posterior"]["basis"].to_numpy().tolist() == kept.tolist()
    assert np.all(tree["posterior"]["w"].std(("chain", "draw")) > 0)


@pytest.mark.parametrize("likelihood", TARGETS)
def test_draws_have_the_moments_of_the_evidence_group(trees, likelihood):
    tree = trees[likelihood]
    evidence = tree["evidence"].to_dataset()
    kept = evidence.sel(basis=tree["posterior"]["basis"])
    w = tree["posterior"]["w"].stack(sample=("chain", "draw"))
    count = w.sizes["sample"]
    assert np.all(np.abs(w.mean("sample") - kept["mean"]) < 5 * kept["sd"] / np.sqrt(count))
    np.testing.assert_allclose(w.std("sample"), kept["sd"], rtol=5 / np.sqrt(2 * count))
    bias = tree["posterior"]["bias"]
    assert abs(bias.mean() - evidence["bias"]) < 5 * evidence["bias_sd"] / np.sqrt(count)
    for name in NUISANCE.get(likelihood, []):
        logs = np.log(tree["posterior"][name])
        assert 0 < logs.std() < 1
        assert abs(logs.mean() - np.log(evidence[name])) < 5 * logs.std() / np.sqrt(count)


@pytest.mark.parametrize("likelihood", TARGETS)
def test_draws_are_independent(trees, likelihood):
    ess = az.ess(trees[likelihood]["posterior"].to_dataset()["w"])
    assert np.all(np.asarray(ess["w"] if "w" in getattr(ess, "data_vars", {}) else ess) > 600)


def test_the_factor_is_the_covariance_over_the_kept_ones(trees):
    tree = trees["normal"]
    evidence = tree["evidence"].to_dataset()
    factor = evidence["covariance_factor"].to_numpy()
    assert evidence["coordinate"].to_numpy().tolist()[0] == "bias"
    covariance = factor @ factor.T
    for position, name in enumerate(evidence["coordinate"].to_numpy()):
        sd = evidence["bias_sd"].item() if name == "bias" else evidence["sd"].sel(basis=name).item()
        np.testing.assert_allclose(np.sqrt(covariance[position, position]), sd, rtol=1e-10)
    w = tree["posterior"]["w"].stack(sample=("chain", "draw")).transpose("basis", "sample").to_numpy()
    order = [evidence["coordinate"].to_numpy().tolist().index(n) for n in tree["posterior"]["basis"].to_numpy()]
    expected = covariance[np.ix_(order, order)]
    np.testing.assert_allclose(np.cov(w), expected, atol=6 * expected.max() / np.sqrt(w.shape[1]))


def test_normal_pointwise_log_likelihood_by_hand(trees):
    tree = trees["normal"]
    draw = tree["posterior"].to_dataset().isel(chain=2, draw=17)
    columns = [int(str(name)[1:]) for name in draw["basis"].to_numpy()]
    eta = X[:, columns] @ draw["w"].to_numpy() + draw["bias"].item()
    np.testing.assert_allclose(
        tree["log_likelihood"]["y"].isel(chain=2, draw=17),
        stats.norm.logpdf(TARGETS["normal"], eta, draw["sigma"].item()),
        rtol=1e-9,
    )


def test_log_p_less_log_q_is_the_log_evidence_of_an_exact_fit(trees):
    """With a normal likelihood the approximation is exact, so the ratio is the same at every draw."""
    sample_stats = trees["normal"]["sample_stats"]
    ratio = (sample_stats["log_p"] - sample_stats["log_q"]).to_numpy()
    np.testing.assert_allclose(ratio, trees["normal"]["evidence"]["log_evidence"].item(), rtol=1e-8)


def test_log_p_less_log_q_is_near_the_laplace_evidence(trees):
    sample_stats = trees["bernoulli"]["sample_stats"]
    ratio = (sample_stats["log_p"] - sample_stats["log_q"]).to_numpy().ravel()
    importance = np.log(np.mean(np.exp(ratio - ratio.max()))) + ratio.max()
    assert abs(importance - trees["bernoulli"]["evidence"]["log_evidence"].item()) < 0.5
    assert ratio.std() > 1e-3


@pytest.mark.parametrize("likelihood", TARGETS)
def test_arviz_takes_the_tree_as_it_is(trees, likelihood):
    """Warnings are errors here: none about constant draws, k-hat or anything else."""
    tree = trees[likelihood]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        summary = az.summary(tree)
        loo = az.loo(tree)
    assert "bias" in summary.index
    assert np.isfinite(summary["mean"].astype(float)).all()
    assert sum(name.startswith("w[") for name in summary.index) == tree["posterior"].sizes["basis"]
    assert np.isfinite(loo.elpd)
    pointwise = tree["log_likelihood"]["y"].stack(sample=("chain", "draw")).to_numpy()
    in_sample = np.sum(np.log(np.mean(np.exp(pointwise), axis=1)))
    assert in_sample - 15 < loo.elpd < in_sample


def test_arviz_draws_a_forest(trees):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # A deprecation inside matplotlib's own dependencies is not about the tree.
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        assert az.plot_forest(trees["normal"], var_names=["w"]) is not None
    mpl.pyplot.close("all")


def test_draws_and_chains_have_the_numbers_asked_for():
    tree = bs.fit("ard_gaussian", (X, TARGETS["normal"]), draws=7, chains=3)
    assert tree["posterior"]["w"].shape[:2] == (3, 7)
    assert tree["log_likelihood"]["y"].shape == (3, 7, N)
    assert tree["sample_stats"]["log_q"].shape == (3, 7)


def test_no_draws_no_posterior():
    tree = bs.fit("ard_gaussian", (X, TARGETS["bernoulli"]), draws=0)
    assert set(tree.children) == {"evidence", "observed_data", "constant_data"}


def test_a_large_log_likelihood_is_left_out_with_a_message(messages, monkeypatch):
    assert limits.LARGEST_LOG_LIKELIHOOD == 200 * 2**20
    monkeypatch.setattr(limits, "LARGEST_LOG_LIKELIHOOD", 8 * 20 * N - 1)
    tree = bs.fit("ard_gaussian", (X, TARGETS["normal"]), draws=10, chains=2)
    assert "log_likelihood" not in tree.children
    assert tree["posterior"].sizes["draw"] == 10
    assert "log_q" in tree["sample_stats"]
    assert len(messages) == 1
    assert "left out" in messages[0]
    assert "fewer draws" in messages[0]
    monkeypatch.setattr(limits, "LARGEST_LOG_LIKELIHOOD", 8 * 20 * N)
    assert "log_likelihood" in bs.fit("ard_gaussian", (X, TARGETS["normal"]), draws=10, chains=2).children
    assert len(messages) == 1


SAVED = {
    "linear": ((X, TARGETS["normal"]), {}, NEW),
    "rbf": ((X[:, :1], np.sin(X[:, 0]) + 0.1 * X[:, 1]), {"basis": bs.basis.rbf(0.7, standardise=True)}, NEW[:, :1]),
    "string labels": ((X, TARGETS["bernoulli"]), {}, NEW),
    "boolean labels": ((X, TARGETS["bernoulli"] == "yes"), {}, NEW),
    "student_t": ((X, TARGETS["student_t"]), {"likelihood": bs.likelihoods.student_t(nu=5.0)}, NEW),
    "function": ((X, TARGETS["normal"]), {"basis": bs.basis.function("numpy:sinh", standardise=True)}, NEW / 4),
    "poisson": ((X, TARGETS["poisson"]), {"likelihood": "poisson"}, NEW),
}
IN_A_NEW_PROCESS = """
import pathlib, pickle, sys
import numpy as np
import xarray as xr

def refuse(*args, **kwargs):
    raise AssertionError("a saved fit must not need pickle")

folder = pathlib.Path(sys.argv[1])
import bayes_sparse as bs
pickle.load = pickle.loads = pickle.Unpickler = refuse
for path in sorted(folder.glob("*.nc")):
    with xr.open_datatree(path) as tree:
        new = np.load(path.with_suffix(".npy"), allow_pickle=False)
        bs.predict(tree, new, trust=True).to_netcdf(path.with_suffix(".out"), engine="h5netcdf")
        bs.relevance(tree)
"""


def test_a_saved_tree_predicts_the_same_to_the_last_digit_in_a_new_process(tmp_path):
    """One process for all of them: starting it is most of the time."""
    here = {}
    for name, (data, settings, new) in SAVED.items():
        tree = bs.fit("ard_gaussian", data, draws=3, chains=2, random_seed=0, **settings)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a row far from every kernel is predicted all the same
            here[name] = bs.predict(tree, new)
        # As a file gives it back: in another order, sums have other last digits.
        assert tree["evidence"]["covariance_factor"].to_numpy().flags.c_contiguous
        tree.to_netcdf(tmp_path / f"{name}.nc")
        np.save(tmp_path / f"{name}.npy", new)
    command = [sys.executable, "-W", "ignore", "-c", IN_A_NEW_PROCESS, str(tmp_path)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    for name, expected in here.items():
        with xr.open_dataset(tmp_path / f"{name}.out", engine="h5netcdf") as there:
            for variable in expected.variables:
                found = there[variable].to_numpy().tolist()
                assert found == expected[variable].to_numpy().tolist(), (name, variable)
        with xr.open_datatree(tmp_path / f"{name}.nc") as back:
            assert back["evidence"]["kept"].dtype == bool
            assert back["evidence"].attrs["status"] == "converged"
            assert isinstance(json.loads(back.attrs["bayes_sparse"]), dict)
            assert "bias" in az.summary(back, kind="stats").index
