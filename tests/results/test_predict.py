"""Predictions: closed forms, Monte Carlo, and what new data must look like."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pymc as pm
import pytest
import xarray as xr
from scipy import stats
from scipy.special import expit

import bayes_sparse as bs
from bayes_sparse.trees.read import stored
from tests.support import as_sampled, refused

RNG = np.random.default_rng(52)
N = 80
NAMES = ["a", "b", "c"]
X = RNG.standard_normal((N, 3)) * [1.0, 5.0, 0.2] + [0.0, 20.0, -3.0]
Z = (X - X.mean(axis=0)) / X.std(axis=0)
NEW = X[:12] + 0.1 * RNG.standard_normal((12, 3))
ETA = 0.8 * Z[:, 0] - 0.5 * Z[:, 1]
TARGETS = {
    "normal": 2 * ETA + 7.0 + 0.5 * RNG.standard_normal(N),
    "student_t": 2 * ETA + 7.0 + 0.5 * RNG.standard_t(4, size=N),
    "bernoulli": (2 * ETA + RNG.logistic(size=N) > 0).astype(int),
    "poisson": RNG.poisson(np.exp(ETA + 1.0)),
    "negative_binomial": RNG.poisson(RNG.gamma(4.0, np.exp(ETA + 1.0) / 4.0)),
}
DRAWS = 4000


@pytest.fixture(scope="module")
def trees():
    return {
        name: bs.fit("ard_gaussian", (X, y), likelihood=name, draws=DRAWS // 4, random_seed=3)
        for name, y in TARGETS.items()
    }


def predictors(tree, X):
    """Draws of the linear predictor at new rows, from the posterior group: (rows, draws)."""
    posterior = tree["posterior"].to_dataset().stack(sample=("chain", "draw"))
    columns = [int(str(name)[1:]) for name in posterior["basis"].to_numpy()]
    w = posterior["w"].transpose("basis", "sample").to_numpy()
    return X[:, columns] @ w + posterior["bias"].to_numpy()


@pytest.mark.quick
def test_a_normal_prediction_by_hand(trees):
    """The textbook posterior at the precisions and noise found, in the user's units."""
    tree = trees["normal"]
    evidence = tree["evidence"]
    active = np.flatnonzero(evidence["kept"])
    Phi = np.column_stack([np.ones(N), Z[:, active]])
    sigma = evidence["sigma"].item()
    wide = 10 * np.sqrt(np.mean(TARGETS["normal"] ** 2))
    alpha = np.append(wide**-2.0, evidence["alpha"].to_numpy()[active] / X.std(axis=0)[active] ** 2)
    covariance = np.linalg.inv(np.diag(alpha) + Phi.T @ Phi / sigma**2)
    mean = covariance @ Phi.T @ TARGETS["normal"] / sigma**2
    ahead = np.column_stack([np.ones(len(NEW)), ((NEW - X.mean(axis=0)) / X.std(axis=0))[:, active]])
    prediction = bs.predict(tree, NEW)
    np.testing.assert_allclose(prediction["mean"], ahead @ mean, rtol=1e-8)
    variance = np.einsum("ij,jk,ik->i", ahead, covariance, ahead) + sigma**2
    np.testing.assert_allclose(prediction["sd"], np.sqrt(variance), rtol=1e-8)


def test_a_probability_is_integrated_over_the_weights(trees):
    tree = trees["bernoulli"]
    prediction = bs.predict(tree, NEW)
    probability = prediction["probability"].sel({"class": 1}).to_numpy()
    drawn = expit(predictors(tree, NEW))
    error = drawn.std(axis=1) / np.sqrt(DRAWS)
    assert np.all(np.abs(probability - drawn.mean(axis=1)) < 5 * error + 1e-9)
    plug_in = expit(predictors(tree, NEW).mean(axis=1))
    surer = np.abs(plug_in - 0.5) > 0.05
    assert surer.sum() > 5
    assert np.all(np.abs(probability - 0.5)[surer] < np.abs(plug_in - 0.5)[surer])
    assert np.all((probability > 0.5)[surer] == (plug_in > 0.5)[surer])
    np.testing.assert_allclose(prediction["probability"].sum("class"), 1.0, rtol=1e-12)


MOMENTS = {
    "poisson": lambda eta: (np.exp(eta), np.exp(eta)),
    "negative_binomial": lambda eta, k: (np.exp(eta), np.exp(eta) + np.exp(2 * eta) / k),
    "student_t": lambda eta, sigma: (eta, np.full_like(eta, 2.0 * sigma**2)),
}


@pytest.mark.parametrize("likelihood", MOMENTS)
def test_mean_and_sd_against_monte_carlo(trees, likelihood):
    tree = trees[likelihood]
    eta = predictors(tree, NEW)
    nuisance = {"negative_binomial": ["dispersion"], "student_t": ["sigma"]}.get(likelihood, [])
    level, spread = MOMENTS[likelihood](eta, *(tree["evidence"][name].item() for name in nuisance))
    prediction = bs.predict(tree, NEW)
    error = level.std(axis=1) / np.sqrt(DRAWS)
    assert np.all(np.abs(prediction["mean"] - level.mean(axis=1)) < 5 * error + 1e-9)
    sd = np.sqrt(spread.mean(axis=1) + level.var(axis=1))
    np.testing.assert_allclose(prediction["sd"], sd, rtol=0.04)


def test_a_heavy_tail_has_no_sd():
    y = TARGETS["student_t"]
    tree = bs.fit("ard_gaussian", (X, y), likelihood=bs.likelihoods.student_t(nu=2.0), draws=0)
    assert np.isposinf(bs.predict(tree, NEW)["sd"]).all()


def test_predictions_have_the_shape_of_the_contract(trees):
    regression, classes = bs.predict(trees["normal"], NEW), bs.predict(trees["bernoulli"], NEW)
    assert isinstance(regression, xr.Dataset)
    assert set(regression.data_vars) == {"mean", "sd"}
    assert regression["mean"].dims == regression["sd"].dims == ("obs",)
    assert set(classes.data_vars) == {"probability", "label"}
    assert classes["probability"].dims == ("obs", "class")
    assert classes["label"].dims == ("obs",)


@pytest.mark.parametrize("likelihood", TARGETS)
def test_a_tree_without_draws_predicts_the_same(trees, likelihood):
    bare = bs.fit("ard_gaussian", (X, TARGETS[likelihood]), likelihood=likelihood, draws=0)
    assert "posterior" not in bare.children
    assert bs.predict(bare, NEW).identical(bs.predict(trees[likelihood], NEW))


def test_rows_are_predicted_one_by_one_as_together(trees):
    together = bs.predict(trees["negative_binomial"], NEW)
    alone = [bs.predict(trees["negative_binomial"], NEW[i : i + 1]) for i in range(len(NEW))]
    np.testing.assert_allclose(together["mean"], [p["mean"].item() for p in alone], rtol=1e-12)
    np.testing.assert_allclose(together["sd"], [p["sd"].item() for p in alone], rtol=1e-12)


def test_intervals_cover_new_observations(trees):
    rng = np.random.default_rng(0)
    ahead = rng.standard_normal((2000, 3))
    y = 2 * (0.8 * ahead[:, 0] - 0.5 * ahead[:, 1]) + 7.0 + 0.5 * rng.standard_normal(2000)
    prediction = bs.predict(trees["normal"], ahead * X.std(axis=0) + X.mean(axis=0))
    inside = np.abs(y - prediction["mean"]) < 1.96 * prediction["sd"]
    assert 0.88 < inside.mean() < 0.99


@pytest.fixture(scope="module")
def framed():
    table = pd.DataFrame(X, columns=NAMES)
    return bs.fit("ard_gaussian", (table, TARGETS["normal"]), draws=0)


def test_every_form_of_new_data_gives_the_same(framed):
    expected = bs.predict(framed, NEW)
    table = pd.DataFrame(NEW, columns=NAMES)
    forms = {
        "frame": table,
        "other order": table[["c", "a", "b"]],
        "more columns": table.assign(extra="text"),
        "polars": pl.DataFrame(NEW, schema=NAMES),
        "dataset": xr.Dataset({name: ("obs", NEW[:, j]) for j, name in enumerate(NAMES)}),
        "data array": xr.DataArray(NEW, dims=("obs", "kind"), coords={"kind": NAMES}),
        "turned data array": xr.DataArray(NEW[:, ::-1], dims=("obs", "kind"), coords={"kind": NAMES[::-1]}),
        "matrix in a dataset": xr.Dataset({"m": (("obs", "kind"), NEW)}, coords={"kind": NAMES}),
        "lists": NEW.tolist(),
        "fortran": np.asfortranarray(NEW),
    }
    for form, data in forms.items():
        prediction = bs.predict(framed, data)
        np.testing.assert_allclose(prediction["mean"], expected["mean"], rtol=1e-12, err_msg=form)
        np.testing.assert_allclose(prediction["sd"], expected["sd"], rtol=1e-12, err_msg=form)


def test_labels_of_new_rows_survive(framed):
    table = pd.DataFrame(NEW, columns=NAMES, index=pd.Index([f"new {i}" for i in range(12)], name="who"))
    prediction = bs.predict(framed, table)
    assert prediction["mean"].dims == ("who",)
    assert prediction["who"].to_numpy().tolist() == table.index.tolist()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (pd.DataFrame(NEW, columns=["z", "b", "c"]), "columns of the fit; missing: 'a'"),
        (pd.DataFrame(NEW[:, 1:], columns=["b", "c"]), "columns of the fit; missing: 'a'"),
        (NEW[:, :2], "the 3 columns of the fit .'a', 'b', 'c'.; it has 2"),
        (xr.DataArray(NEW, dims=("o", "k"), coords={"k": ["a", "b", "z"]}), "columns of the fit .*'z'"),
        (np.full((2, 3), np.nan), r"Missing values in 'a' \(2\), .*missing='drop'"),
        (np.full((2, 3), np.inf), r"Infinite values in 'a' \(2\)"),
        (pd.DataFrame(NEW, columns=NAMES).assign(b="x"), "Column 'b' is not numeric"),
        (None, "Nothing to predict"),
    ],
    ids=["renamed", "missing", "too few", "renamed array", "nan", "infinite", "strings", "nothing"],
)
def test_other_columns_are_refused(framed, data, message):
    with pytest.raises(ValueError, match=message):
        bs.predict(framed, data)


def test_an_offset_has_a_value_a_row(framed):
    with pytest.raises(ValueError, match="`offset` has 3 values for 12 observations"):
        bs.predict(framed, NEW, offset=np.zeros(3))
    np.testing.assert_allclose(bs.predict(framed, NEW, offset=2.0)["mean"], bs.predict(framed, NEW)["mean"] + 2.0)


@pytest.mark.parametrize("thing", [None, 3, xr.Dataset(), xr.DataTree()])
def test_only_a_tree_of_fit_can_predict(thing):
    with pytest.raises(TypeError, match=r"predict takes a tree from bayes_sparse\.fit"):
        bs.predict(thing, NEW)


@pytest.fixture(scope="module")
def kernels():
    x = np.linspace(-3, 3, 60)[:, None]
    return bs.fit("ard_gaussian", (x, np.sin(2 * x[:, 0]) + 0.1 * RNG.standard_normal(60)), basis=bs.basis.rbf(0.6))


def test_rows_far_from_every_kernel_are_pointed_out(kernels):
    with pytest.warns(UserWarning, match="1 of 3 rows lie far from the data.*too small") as caught:
        prediction = bs.predict(kernels, [[0.0], [1.0], [50.0]])
    np.testing.assert_allclose(prediction["mean"][2], kernels["evidence"]["bias"])
    assert caught[0].filename == __file__


def test_near_rows_are_not(kernels):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        prediction = bs.predict(kernels, np.linspace(-2, 2, 9)[:, None])
    np.testing.assert_allclose(prediction["mean"], np.sin(2 * np.linspace(-2, 2, 9)), atol=0.2)


@pytest.mark.parametrize(
    "basis", [bs.basis.rbf(1.0), bs.basis.polynomial(), bs.basis.inner_product(), bs.basis.function("numpy:square")]
)
def test_a_fit_that_kept_nothing_still_predicts(basis):
    with pytest.warns(bs.FitWarning, match="No basis function pays"):
        tree = bs.fit("ard_gaussian", (Z, TARGETS["normal"]), basis=basis, smoothness=500.0, draws=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        prediction = bs.predict(tree, Z[:4])
    np.testing.assert_allclose(prediction["mean"], tree["evidence"]["bias"])


# --- one-step methods ------------------------------------------------------------------------------------------------

ONE_STEP = {
    "GREVM": ("ard_gaussian", "revm"),
    "LREVM": ("laplace_eigen", "revm"),
    "R_0": ("ard_gaussian", "full_matrix"),
}


@pytest.mark.parametrize("likelihood", TARGETS)
@pytest.mark.parametrize("system", ONE_STEP)
def test_a_one_step_fit_predicts_like_its_draws(system, likelihood):
    """The moments of all weights stand for their draws: exactly for a mean, nearly for what bends the predictor."""
    model, method = ONE_STEP[system]
    settings = {"method": method, "likelihood": likelihood, "draws": DRAWS // 4, "random_seed": 3}
    tree = bs.fit(model, (X, TARGETS[likelihood]), **settings)
    eta = predictors(tree, NEW)
    prediction = bs.predict(tree, NEW)
    if likelihood == "bernoulli":
        level, found = expit(eta), prediction["probability"].sel({"class": 1})
        np.testing.assert_allclose(prediction["probability"].sum("class"), 1.0, rtol=1e-12)
    else:
        level, found = eta if likelihood in ("normal", "student_t") else np.exp(eta), prediction["mean"]
        assert np.all(prediction["sd"] > 0)
    error = level.std(axis=1) / np.sqrt(DRAWS)
    skew = 0.0 if system != "LREVM" or likelihood in ("normal", "student_t") else 0.02  # its draws are not normal
    assert np.all(np.abs(found - level.mean(axis=1)) < 5 * error + skew * level.mean(axis=1) + 1e-9)


@pytest.mark.parametrize("system", ONE_STEP)
def test_a_normal_one_step_prediction_by_hand(system):
    """Mean and covariance of all weights from the group evidence, in the user's units, plus the noise."""
    model, method = ONE_STEP[system]
    tree = bs.fit(model, (X, TARGETS["normal"]), method=method, draws=0)
    evidence = tree["evidence"]
    ahead = np.column_stack([NEW, np.ones(len(NEW))])
    assert evidence["coordinate"].to_numpy().tolist() == ["x0", "x1", "x2", "bias"]
    factor = evidence["covariance_factor"].to_numpy()
    prediction = bs.predict(tree, NEW)
    np.testing.assert_allclose(prediction["mean"], ahead @ evidence["coordinate_mean"].to_numpy(), rtol=1e-10)
    variance = np.sum((ahead @ factor) ** 2, axis=1) + evidence["sigma"].item() ** 2
    np.testing.assert_allclose(prediction["sd"], np.sqrt(variance), rtol=1e-10)


@pytest.mark.parametrize(("far", "method"), [(1.0, "mackay"), (10.0, "mackay"), (3.0, "revm"), (3.0, "one_vs_rest")])
def test_probabilities_of_several_classes_are_those_of_many_draws(far, method):
    """Also where the predictors are little known, far from the data; the order of the columns does not matter."""
    y = np.array(["low", "middle", "top"])[np.digitize(ETA + 0.3 * RNG.standard_normal(N), [-0.5, 0.5])]
    tree = bs.fit("ard_gaussian", (X, y), method=method, likelihood="categorical", draws=0)
    new, rng = far * NEW, np.random.default_rng(0)
    found, evidence = bs.predict(tree, new)["probability"].to_numpy(), tree["evidence"].to_dataset()
    factor = evidence["covariance_factor"].to_numpy()
    total, parts = np.zeros_like(found), 10
    for _ in range(parts):
        z = rng.standard_normal((20_000, factor.shape[1]))
        drawn = evidence["coordinate_mean"].to_numpy() + np.concatenate([z, -z]) @ factor.T
        w = np.zeros((len(drawn), 12))
        w[:, evidence["column"].to_numpy()] = drawn
        eta = np.einsum("nm,scm->snc", new, w[:, :9].reshape(-1, 3, 3)) + w[:, None, 9:]
        total += stored(tree).likelihood.moments(eta)[0].mean(axis=0)
    np.testing.assert_allclose(found, total / parts, atol=3e-3)  # 400,000 draws are off by 1e-3 themselves


def test_several_classes_have_names_and_probabilities():
    y = np.array(["low", "middle", "top"])[np.digitize(ETA + 0.3 * RNG.standard_normal(N), [-0.5, 0.5])]
    table = pd.DataFrame(X, columns=NAMES, index=pd.Index(range(100, 100 + N), name="who"))
    tree = bs.fit("ard_gaussian", (table, y), method="revm", likelihood="categorical", draws=0)
    prediction = bs.predict(tree, table)
    assert prediction["probability"].dims == ("who", "class")
    assert prediction["class"].to_numpy().tolist() == ["low", "middle", "top"]
    assert prediction["who"].to_numpy().tolist() == list(range(100, 100 + N))
    np.testing.assert_allclose(prediction["probability"].sum("class"), 1.0, rtol=1e-12)
    assert np.mean(prediction["label"] == y) > 0.7
    np.testing.assert_array_equal(bs.predict(tree, table, random_seed=1)["probability"], prediction["probability"])
    with pytest.raises(ValueError, match="With several classes there is no `offset`"):
        bs.predict(tree, table, offset=np.zeros(N))


def test_one_step_kernels_far_from_the_data_fall_back_to_the_bias():
    x = np.linspace(-3, 3, 60)[:, None]
    y = np.sin(2 * x[:, 0]) + 0.1 * RNG.standard_normal(60)
    tree = bs.fit("ard_gaussian", (x, y), method="revm", basis=bs.basis.rbf(0.6), draws=0)
    with pytest.warns(UserWarning, match="1 of 2 rows lie far from the data"):
        prediction = bs.predict(tree, [[0.0], [50.0]])
    np.testing.assert_allclose(prediction["mean"][1], tree["evidence"]["bias"])
    wider = bs.predict(tree, [[0.0], [50.0]], augment=True)
    assert wider["sd"][1] > 2 * prediction["sd"][1]


@pytest.mark.parametrize("likelihood", ["normal", *MOMENTS])
def test_a_sampled_tree_predicts_by_its_draws(trees, likelihood):
    """Each draw with its own nuisance parameters: mean of means, mean of variances and variance of means."""
    tree = trees[likelihood]
    posterior = tree["posterior"].to_dataset().stack(sample=("chain", "draw"))
    nuisance = {"negative_binomial": ["dispersion"], "student_t": ["sigma"], "normal": ["sigma"]}.get(likelihood, [])
    moments = MOMENTS | {"normal": lambda eta, sigma: (eta, np.broadcast_to(sigma**2, eta.shape))}
    eta = predictors(tree, NEW)
    level, spread = moments[likelihood](eta, *(posterior[name].to_numpy() + 0 * eta for name in nuisance))
    prediction = bs.predict(as_sampled(tree), NEW)
    np.testing.assert_allclose(prediction["mean"], level.mean(axis=1), rtol=1e-9)
    np.testing.assert_allclose(prediction["sd"], np.sqrt(spread.mean(axis=1) + level.var(axis=1)), rtol=1e-9)


def test_a_sampled_tree_averages_probabilities(trees):
    drawn = expit(predictors(trees["bernoulli"], NEW))
    prediction = bs.predict(as_sampled(trees["bernoulli"]), NEW)
    np.testing.assert_allclose(prediction["probability"].sel({"class": 1}), drawn.mean(axis=1), rtol=1e-9)


def test_draws_of_some_columns_are_told_apart_by_name(trees):
    """Those kept, in another order than the fit's."""
    tree = trees["normal"]
    turned = tree.copy()
    turned["posterior"] = xr.DataTree(tree["posterior"].to_dataset().isel(basis=slice(None, None, -1)))
    expected, found = (bs.predict(t.drop_nodes("evidence"), NEW) for t in (tree, turned))
    np.testing.assert_allclose(found["mean"], expected["mean"], rtol=1e-12)


@pytest.mark.parametrize("shaped", [True, False])
def test_a_mean_and_a_spread_of_another_number_of_rows(shaped):
    """Quantiles by a spread that depends on columns, as the how-to page has them."""
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(300, 4)), rng.normal(size=(2000, 4))
    spread = np.exp(-0.5 + 0.6 * new[:, 3])
    y = X[:, 1] + np.exp(-0.5 + 0.6 * X[:, 3]) * rng.normal(size=300)
    with pm.Model() as model:
        rows = pm.Data("rows", X)
        w, v = (pm.Normal(name, 0, 1, shape=4) for name in "wv")
        middle, log = pm.Normal("level", 0, 5) + rows @ w, pm.Normal("log", 0, 2) + rows @ v
        more = {"shape": middle.shape} if shaped else {}
        pm.Normal("y", middle, pm.math.exp(log), observed=y, **more)
    tree = bs.fit(model, sparse=["w", "v"], draws=500, random_seed=0)
    if not shaped:
        refused(lambda: bs.predict(tree, {"rows": new}, model=model), "shape=mu.shape")
        return
    found = bs.predict(tree, {"rows": new}, model=model)
    high = found["mean"].to_numpy() + stats.norm.ppf(0.9) * found["sd"].to_numpy()
    below = stats.norm.cdf((high - new[:, 1]) / spread)  # the probability of a new observation below its 90% quantile
    assert abs(below.mean() - 0.9) < 0.02
    assert np.abs(below - 0.9).mean() < 0.04
