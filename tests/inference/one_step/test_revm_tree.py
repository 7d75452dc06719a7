"""The tree of a one-step fit, and every basis."""

import json

import arviz as az
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from numpy.testing import assert_allclose, assert_array_equal

import bayes_sparse as bs
from bayes_sparse.trees.read import stored

from .systems import BINARY, ETA, NEW, NUISANCE, SMALL, SYSTEMS, TARGETS, N, P, X, fit


@pytest.fixture(scope="module")
def trees():
    made = {}

    def make(system, likelihood):
        if (system, likelihood) not in made:
            made[system, likelihood] = fit(
                system, (X, TARGETS[likelihood]), likelihood=likelihood, draws=250, chains=4, random_seed=9
            )
        return made[system, likelihood]

    return make


EVERY = [(system, likelihood) for system in SYSTEMS for likelihood in TARGETS]


@pytest.mark.parametrize(("system", "likelihood"), EVERY)
def test_groups_and_dims(trees, system, likelihood):
    tree = trees(system, likelihood)
    evidence, posterior = tree["evidence"], tree["posterior"]
    groups = {"posterior", "sample_stats", "log_likelihood", "observed_data", "constant_data", "evidence"}
    assert groups == set(tree.children)
    several = likelihood == "categorical"
    kept, total = int(np.isfinite(evidence["alpha"]).sum()), evidence.sizes["direction"]
    assert 0 < kept <= total
    assert posterior["u"].dims == ("chain", "draw", "direction")
    assert posterior["u"].shape == (4, 250, kept)
    assert posterior["w"].dims == ("chain", "draw", "basis")
    assert posterior["w"].shape == (4, 250, 3 * P if several else P)
    assert set(posterior.data_vars) == {"u", "w", "bias", *NUISANCE.get(likelihood, [])}
    assert tree["log_likelihood"]["y"].shape == (4, 250, N)
    for name in ("h", "u_expansion", "alpha", "u_mode", "u_mean", "u_sd", "gamma", "relevant"):
        assert evidence[name].dims == ("direction",)
    for name in ("mean", "mode", "sd", "estimate", "standard_error"):
        assert evidence[name].dims == ("basis",)
    assert evidence.sizes["basis"] == (3 * P if several else P)
    assert evidence["loading"].dims == ("kept_direction", "basis")
    assert_array_equal(posterior["direction"], evidence["kept_direction"])
    assert all(evidence[name].item() > 0 for name in NUISANCE.get(likelihood, []))


@pytest.mark.parametrize(("system", "likelihood"), EVERY)
def test_attributes(trees, system, likelihood):
    evidence = trees(system, likelihood)["evidence"]
    attributes = evidence.attrs
    assert attributes["method"] == {"R_0": "full_matrix"}.get(system, "revm")
    assert attributes["prior"] == {"LREVM": "laplace"}.get(system, "gaussian")
    assert attributes["approximation"] == "quadratic"
    assert attributes["status"] == "converged"
    assert attributes["expansion"] == ("evidence" if likelihood in ("bernoulli", "categorical") else "ridge")
    assert attributes["separable"] == attributes["directions_dropped"] == attributes["smoothness"] == 0
    assert attributes["directions"] == evidence.sizes["direction"]
    assert attributes["directions_kept"] == int(evidence["relevant"].sum())
    assert_allclose(attributes["degrees_of_freedom"], evidence["gamma"].sum())
    assert attributes["n_iterations"] > 0
    assert attributes["seconds"] > 0
    assert {"bayes_sparse", "pymc"} <= set(json.loads(attributes["versions"]))


@pytest.mark.parametrize(("system", "likelihood"), EVERY)
def test_draws_have_the_moments_of_the_evidence_group(trees, system, likelihood):
    tree = trees(system, likelihood)
    evidence, posterior = tree["evidence"], tree["posterior"].to_dataset().stack(sample=("chain", "draw"))
    own = {
        "u": evidence.to_dataset().sel(direction=evidence["kept_direction"])[["u_mean", "u_sd"]],
        "w": evidence,
        "bias": None,
    }
    for name, moments in own.items():
        drawn = posterior[name].transpose(..., "sample").to_numpy().reshape(-1, 1000)
        mean, sd = {"u": ("u_mean", "u_sd"), "w": ("mean", "sd"), "bias": ("bias", "bias_sd")}[name]
        mean, sd = (np.ravel((evidence if moments is None else moments)[key]) for key in (mean, sd))
        if name == "w":  # its own sd is not that of the draws
            sd = stored(tree).posterior_sd
        assert np.all(np.abs(drawn.mean(axis=1) - mean) < 5 * sd / np.sqrt(1000))
        assert_allclose(
            drawn.std(axis=1), sd, rtol=0.25
        )  # a Laplace posterior may have heavier tails than a normal one


@pytest.mark.parametrize(("system", "likelihood"), EVERY)
def test_draws_of_weights_are_those_of_the_directions(trees, system, likelihood):
    """w = Q'u, in the user's units."""
    tree = trees(system, likelihood)
    u = tree["posterior"]["u"].to_numpy()
    w = u @ tree["evidence"]["loading"].to_numpy()
    assert_allclose(tree["posterior"]["w"].to_numpy().reshape(w.shape), w / np.tile(X.std(axis=0), w.shape[-1] // P))


# One row of sixty has much leverage: its k-hat is near the limit for any posterior.
@pytest.mark.filterwarnings("ignore:Estimated shape parameter of Pareto:UserWarning")
@pytest.mark.parametrize(("system", "likelihood"), [*(("LREVM", name) for name in TARGETS), ("GREVM", "normal")])
def test_arviz_takes_the_tree_as_it_is(trees, system, likelihood):
    tree = trees(system, likelihood)
    summary, loo = az.summary(tree), az.loo(tree)
    assert any(name.startswith("u[") for name in summary.index)
    assert np.isfinite(summary["mean"].astype(float)).all()
    pointwise = tree["log_likelihood"]["y"].stack(sample=("chain", "draw")).to_numpy()
    in_sample = np.sum(np.log(np.mean(np.exp(pointwise), axis=1)))
    assert in_sample - 15 < loo.elpd < in_sample


@pytest.mark.parametrize("system", SYSTEMS)
def test_importance_weights_average_to_the_evidence(trees, system):
    """p(y, u) / q(u) at the draws, for a normal likelihood with the slope at the ridge dropped: nearly constant."""
    tree = trees(system, "normal")
    ratio = (tree["sample_stats"]["log_p"] - tree["sample_stats"]["log_q"]).to_numpy()
    assert ratio.std() < 0.2
    assert_allclose(np.log(np.mean(np.exp(ratio))), tree["evidence"]["log_evidence_mode"], atol=0.05)


@pytest.mark.parametrize(("system", "likelihood"), EVERY)
def test_a_tree_without_draws_predicts_the_same(trees, system, likelihood):
    bare = fit(system, (X, TARGETS[likelihood]), likelihood=likelihood)
    assert set(bare.children) == {"evidence", "observed_data", "constant_data"}
    assert bs.predict(bare, NEW).identical(bs.predict(trees(system, likelihood), NEW))


@pytest.mark.parametrize(
    ("system", "likelihood"), [("GREVM", "normal"), ("LREVM", "categorical"), ("R_0", "bernoulli")]
)
def test_a_saved_tree_predicts_the_same(trees, tmp_path, system, likelihood):
    tree = trees(system, likelihood)
    expected = bs.predict(tree, NEW)
    tree.to_netcdf(tmp_path / "fit.nc")
    with xr.open_datatree(tmp_path / "fit.nc") as back:
        found = bs.predict(back, NEW)
        for variable in expected.variables:
            assert found[variable].to_numpy().tolist() == expected[variable].to_numpy().tolist()
        assert back["evidence"].attrs["status"] == "converged"
        assert back["evidence"]["relevant"].dtype == bool
        pd.testing.assert_frame_equal(bs.relevance(back, space="eigen"), bs.relevance(tree, space="eigen"))


@pytest.mark.parametrize("likelihood", TARGETS)
def test_the_gaussian_model_on_eigen_coordinates_is_the_same_fit(trees, likelihood):
    one = trees("GREVM", likelihood)
    two = bs.fit("gaussian_eigen", (X, TARGETS[likelihood]), likelihood=likelihood, draws=250, random_seed=9)
    for group in ("evidence", "posterior", "sample_stats", "log_likelihood"):
        assert one[group].to_dataset().equals(two[group].to_dataset())


@pytest.mark.parametrize("system", SYSTEMS)
def test_seeds(system):
    one, two, other = (fit(system, (X, TARGETS["normal"]), **SMALL | {"random_seed": s}) for s in (5, 5, 6))
    assert one["posterior"].to_dataset().identical(two["posterior"].to_dataset())
    assert one["log_likelihood"].to_dataset().identical(two["log_likelihood"].to_dataset())
    assert not np.array_equal(one["posterior"]["w"], other["posterior"]["w"])
    assert one["evidence"].to_dataset().equals(other["evidence"].to_dataset())


def test_a_fit_without_a_bias_has_none():
    tree = fit("LREVM", (X, TARGETS["poisson"]), likelihood="poisson", basis=bs.basis.linear(bias=False), **SMALL)
    assert "bias" not in tree["posterior"]
    assert "bias" not in tree["evidence"]
    assert bs.predict(tree, NEW)["mean"].shape == (7,)


# --- bases -------------------------------------------------------------------------------------------------------

BASES = {
    "linear": bs.basis.linear(),
    "rbf": bs.basis.rbf(1.5, standardise=True),
    "polynomial": bs.basis.polynomial(standardise=True),
    "precomputed": bs.basis.precomputed(),
    "inner_product": bs.basis.inner_product(standardise=True),
}


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("name", BASES)
def test_predictions_are_those_of_the_reported_weights(system, name):
    basis, y = BASES[name], TARGETS["normal"]
    tree = fit(system, (X, y), basis=basis)
    evidence = tree["evidence"]
    scale = basis.kernel and basis.standardise
    new, old = (((A - X.mean(axis=0)) / X.std(axis=0)) if scale else A for A in (NEW, X))
    Phi = basis.matrix(new, old if basis.kernel else None)
    bias = evidence["bias"].item() if basis.bias else 0.0
    prediction = bs.predict(tree, NEW)
    assert_allclose(prediction["mean"], Phi @ evidence["mean"].to_numpy() + bias, rtol=1e-8)
    assert np.all(prediction["sd"] > evidence["sigma"])
    assert np.corrcoef(bs.predict(tree, X)["mean"], ETA)[0, 1] > 0.9


@pytest.mark.parametrize("system", SYSTEMS)
def test_kernels_learn_a_curve(system):
    x = np.linspace(-3, 3, 60)[:, None]
    y = np.sin(2 * x[:, 0]) + 0.1 * np.random.default_rng(3).standard_normal(60)
    tree = fit(system, (x, y), basis=bs.basis.rbf(0.6))
    assert_allclose(bs.predict(tree, x[5:-5])["mean"], np.sin(2 * x[5:-5, 0]), atol=0.2)
    assert_allclose(tree["evidence"]["sigma"], 0.1, rtol=0.3)


def test_several_columns_can_be_kept():
    evidence = fit("GREVM", (X, BINARY), keep=["x2", "x3"])["evidence"]
    assert evidence.attrs["directions"] == 2
    assert np.all(evidence["loading"].sel(basis=["x2", "x3"]) == 0)
    assert np.all(evidence["sd"] > 0)


@pytest.mark.parametrize("likelihood", ["bernoulli", "normal"])
def test_all_columns_can_be_kept(likelihood):
    """A plain regression with nothing to find, which is not the model without any term."""
    tree = fit("GREVM", (X, TARGETS[likelihood]), keep=["x0", "x1", "x2", "x3"])
    assert tree["evidence"].attrs["directions"] == 0
    assert tree["evidence"].attrs["status"] == "converged"
    assert np.all(tree["evidence"]["sd"] > 0)
    truth = {"bernoulli": lambda: bs.predict(tree, X)["probability"].sel({"class": "yes"})}
    assert np.corrcoef(truth.get(likelihood, lambda: bs.predict(tree, X)["mean"])(), ETA)[0, 1] > 0.9
