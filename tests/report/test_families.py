"""Trees of every family, with and without draws, have a page; what they lack is said."""

import numpy as np
import pymc as pm
import pytest
import xarray as xr

import bayes_sparse as bs
from bayes_sparse.report import report


def checked(page):
    assert page.wrong == []
    assert "could not be made" not in page.text
    assert "This failed" not in page.text
    return page


@pytest.fixture(scope="module")
def directions():
    data = bs.datasets.two_gaussians(60, random_seed=0)
    return lambda **settings: bs.fit(
        "laplace_eigen", (data.X, data.y), likelihood="bernoulli", basis=bs.basis.rbf(0.5), random_seed=0, **settings
    )


@pytest.fixture(scope="module")
def path():
    truth = bs.datasets.sparse_linear(n=60, p=12, k=3, random_seed=0)
    return lambda **settings: bs.fit("jeffreys_laplace", (truth.X, truth.y), random_seed=0, **settings)


@pytest.fixture(scope="module")
def classes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 4))
    y = np.array(["a", "b", "c"])[np.argmax(X[:, :3] + 0.7 * rng.gumbel(size=(90, 3)), axis=1)]
    return X, y, lambda **settings: bs.fit("student_multinomial", (X, y), random_seed=0, **settings)


@pytest.mark.parametrize("draws", [0, 150])
def test_one_step(written, directions, draws):
    page = checked(written(directions(draws=draws, chains=2)))
    assert "directions were kept" in page.text
    assert "none is relevant or not by itself" in page.text
    assert "A direction is kept where h u² exceeds 1" in page.text


@pytest.mark.parametrize("draws", [0, 150])
def test_path(written, path, draws):
    page = checked(written(path(draws=draws, chains=2)))
    assert "A solution is where λR meets N" in page.text


def test_path_by_cross_validation(written, path):
    page = checked(written(path(method="cv", draws=50, chains=2)))
    assert "The penalty chosen by cross-validation" in page.text


@pytest.mark.parametrize("draws", [0, 150])
def test_classes(written, classes, draws):
    X, y, fit = classes
    page = checked(written(fit(draws=draws, chains=2), data=(X, y)))
    assert "log loss" in page.text
    assert "a (" in page.section("data")


def test_without_draws(written, linear_data):
    page = checked(written(bs.fit("ard_gaussian", linear_data, draws=0)))
    assert "With care" in page.text
    assert "It was not checked" in page.text
    assert "draws=0" in page.text


def test_counts(written, counts, counts_data):
    page = checked(written(counts, data=counts_data))
    assert "Observed (orange) and counts" in page.text


def test_kernels_are_replicated_from_the_rows_they_stand_on(written, kernel):
    page = checked(written(kernel))
    assert "each row left out" in page.section("predictive")


def test_weights_and_offset(written, linear_data):
    X, y = linear_data
    tree = bs.fit("ard_gaussian", (X, y), weights=np.full(120, 2.0), offset=np.linspace(0, 1, 120), draws=100, chains=2)
    page = checked(written(tree, data=(X, y)))
    assert "a known part of the predictor, from 0 to 1" in page.text
    assert "a weight per observation, from 2 to 2" in page.text
    assert "with an offset are not" in page.section("predictive")


def test_nothing_kept(written):
    rng = np.random.default_rng(0)
    with pytest.warns(bs.FitWarning, match="No basis function"):
        tree = bs.fit("ard_gaussian", (rng.normal(size=(80, 5)), rng.normal(size=80)), draws=100, chains=2)
    page = checked(written(tree))
    assert "No term was kept" in page.text
    assert "No basis function pays for itself" in page.text


@pytest.mark.parametrize(
    "missing",
    [
        "log_likelihood",
        pytest.param("sample_stats", marks=pytest.mark.slow),
        pytest.param("observed_data", marks=pytest.mark.slow),
        "constant_data",
    ],
)
def test_a_group_that_is_missing(written, linear, sampled_like, missing):
    without = {}
    for name, tree in {"evidence": linear, "nuts": sampled_like(linear)}.items():
        groups = {group: child.to_dataset() for group, child in tree.children.items() if group != missing}
        without[name] = xr.DataTree.from_dict(groups)
        without[name].attrs = dict(tree.attrs)
    checked(written(without))


def test_a_plug_in(written, linear):
    evidence = linear["evidence"].to_dataset().copy()
    for name in ("sd", "covariance_factor"):
        evidence[name] = xr.zeros_like(evidence[name])
    groups = {name: linear[name].to_dataset() for name in ("observed_data", "constant_data")}
    tree = xr.DataTree.from_dict({"evidence": evidence, **groups})
    tree.attrs = dict(linear.attrs)
    checked(written({"plug_in": tree, "approximation": linear}))


def test_a_tree_of_another_origin(written, sampled_like, linear):
    other = sampled_like(linear)
    del other.attrs["bayes_sparse"]
    other["posterior"].attrs = {}
    page = checked(written({"own": linear, "other": other}))
    assert "not made by bayes_sparse.fit" in page.text


def test_fits_of_different_data_and_basis(written, linear, kernel):
    page = checked(written({"linear": linear, "kernel": kernel}))
    assert "Fitted to other data than the rest: kernel" in page.text
    assert "The basis is not the same in all fits" in page.text


def test_a_model_of_the_users_own(written):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    with pm.Model(coords={"feature": ["a", "b", "$c$", "<d>"]}) as model:
        alpha = pm.Gamma("alpha", 0.5, 0.005, dims="feature")
        w = pm.Normal("w", 0.0, tau=alpha, dims="feature")
        pm.Normal("y", X @ w, 1.0, observed=2 * X[:, 0] + rng.normal(size=60))
    tree = bs.fit(model, draws=100, chains=2, random_seed=0)
    page = checked(written(tree))
    assert "a pm.Model of the user's own" in page.text
    assert "report(..., model=model)" in page.section("predictive")
    assert "the same rows as in the fit" in checked(written(tree, model=model)).section("predictive")


def test_posterior_predictive_draws_of_the_tree_are_used(written, linear, linear_data):
    y = linear["observed_data"]["y"]
    drawn = y + np.random.default_rng(0).normal(size=(2, 200, 120)) * xr.ones_like(linear["log_likelihood"]["y"])
    tree = linear.copy()
    tree["posterior_predictive"] = xr.DataTree(xr.Dataset({"y": drawn}))
    assert "each row left out" in checked(written(tree)).section("predictive")


@pytest.fixture(scope="module")
def wide():
    truth = bs.datasets.sparse_linear(n=80, p=2000, k=10, random_seed=0)
    return bs.fit("ard_gaussian", (truth.X, truth.y), draws=50, chains=2, random_seed=0)


def test_two_thousand_terms_make_a_small_page(tmp_path, wide):
    place = report(wide, tmp_path / "wide.html")
    assert place.stat().st_size < 1_000_000
    assert "of 2,000" in place.read_text(encoding="utf-8")


@pytest.mark.slow
def test_two_thousand_terms_sampled_make_a_small_page(tmp_path, wide, sampled_like):
    place = report({"evidence": wide, "nuts": sampled_like(wide)}, tmp_path / "wide.html")
    assert place.stat().st_size < 3_000_000
    assert "The first 40 of 2,000 terms" in place.read_text(encoding="utf-8")
