"""What a fit of the user's own model gives back is what PyMC takes: every variable, under its own name, in full."""

import arviz as az
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
import xarray as xr
from numpy.testing import assert_allclose, assert_array_equal
from pytensor.conditional import ifelse

import bayes_sparse as bs
from bayes_sparse.common import checks
from bayes_sparse.inputs.pm_model import give_back
from bayes_sparse.inputs.pm_model.give_back import FittedAs, GiveBack
from bayes_sparse.problem.labelled import LabelledProblem, WeightBlock
from tests.support import UNCOMPILED, refused

from .networks import normal_network

N, P = 60, 5
RNG = np.random.default_rng(8)
X = RNG.standard_normal((N, P))
NEW = RNG.standard_normal((7, P))
ETA = 0.4 + 1.5 * X[:, 0] - X[:, 3]
REAL = ETA + 0.5 * RNG.standard_normal(N)
COUNT = RNG.poisson(np.exp(0.5 * ETA))
FEATURES = list("abcde")
DRAWN = {"draws": 500, "chains": 2, "random_seed": 3, "progressbar": False}
FEW = DRAWN | {"draws": 20}
IN_PYTHON = {"progressbar": False, "compile_kwargs": {"mode": UNCOMPILED}}


def normal():
    """Dims, data, weights about a mean of their own, a scale for all rows, and Deterministics of every kind."""
    with pm.Model(coords={"feature": FEATURES, "row": np.arange(100, 100 + N)}) as model:
        table = pm.Data("X", X, dims=("row", "feature"))
        sd = pm.HalfNormal("sd", 2.0, dims="feature")
        w = pm.Normal("w", 0.1, sd, dims="feature")
        b, sigma = pm.Normal("b", 0.0, 5.0), pm.HalfNormal("sigma", 2.0)
        mu = pm.Deterministic("mu", b + table @ w, dims="row")
        pm.Deterministic("odds", pm.math.softmax(w / sigma), dims="feature")
        pm.Deterministic("length", pt.sqrt((w**2).sum()))
        pm.Deterministic("products", w[:, None] * w[None, :])
        pm.Deterministic("middle", table.mean(axis=0), dims="feature")
        pm.Deterministic("chance", b + pm.Normal.dist(0.0, 1.0))
        y = pm.Normal("y", mu, sigma, observed=REAL, dims="row")
        pm.Deterministic("residual", y - mu, dims="row")
    return model


def poisson():
    """Nothing but shapes: the precisions of the weights follow the number of columns of the data."""
    with pm.Model() as model:
        table = pm.Data("X", X)
        alpha = pm.Gamma("alpha", 0.5, 0.005, shape=table.shape[1])
        w = pm.Normal("w", 0.0, tau=alpha, shape=table.shape[1])
        pm.Poisson("y", pm.math.exp(table @ w + pm.Normal("b", 0.0, 5.0)), observed=COUNT)
    return model


def two_scales():
    """An sd of which only the product of two variables is known."""
    with pm.Model(coords={"feature": FEATURES}) as model:
        wide = pm.HalfNormal("wide", 3.0)
        sd = wide * pm.HalfNormal("own", 1.0 + wide, dims="feature")
        eta = X @ pm.Normal("w", 0.0, sd, dims="feature") + pm.Normal("b", 0.0, 5.0)
        pm.StudentT("y", nu=pm.Gamma("nu", 2.0, 0.1), mu=eta, sigma=pm.HalfNormal("scale", 2.0), observed=REAL)
    return model


def two_vectors():
    """Two sparse vectors along one dim."""
    with pm.Model(coords={"feature": FEATURES}) as model:
        terms = [table @ sparse(name) for name, table in (("straight", X), ("bent", X**2 - 1))]
        pm.Normal("y", sum(terms) + pm.Normal("b", 0.0, 5.0), 0.5, observed=REAL)
    return model


def sparse(name):
    return pm.Normal(name, 0.0, tau=pm.Gamma(f"alpha_{name}", 0.5, 0.005, dims="feature"), dims="feature")


def horseshoe():
    with pm.Model() as model:
        sd = pm.HalfCauchy("tau", 0.1) * pm.HalfCauchy("lam", 1.0, shape=P)
        eta = X @ pm.Normal("w", 0.0, sd, shape=P) + pm.Normal("b", 0.0, 5.0)
        pm.Normal("y", eta, pm.HalfNormal("sigma", 2.0), observed=REAL)
    return model


def softmax():
    with pm.Model(coords={"feature": FEATURES, "class": ["low", "middle", "high"]}) as model:
        alpha = pm.Gamma("alpha", 0.5, 0.005, dims=("feature", "class"))
        w = pm.Normal("w", 0.0, tau=alpha, dims=("feature", "class"))
        p = pm.math.softmax(X @ w + pm.Normal("b", 0.0, 5.0, dims="class"), axis=-1)
        pm.Categorical("y", pm.Deterministic("p", p), observed=np.digitize(REAL, [-0.5, 1.0]))
    return model


def jeffreys():
    return bs.models.Declared(poisson(), sparse="w", prior="jeffreys")


MODELS = {
    "normal": (normal, {}),
    "poisson": (poisson, {}),
    "two scales": (two_scales, {}),
    "two vectors": (two_vectors, {}),
    "horseshoe": (horseshoe, {}),
    "L1 path": (jeffreys, {}),
    "directions": (poisson, {"method": "revm"}),
    "softmax": (softmax, {"method": "revm"}),
    "network": (normal_network, {"method": "revm", "ridge": 1.0}),
}


@pytest.fixture(scope="module", params=MODELS)
def fitted(request):
    make, settings = MODELS[request.param]
    model = make()
    tree = bs.fit(model, **FEW, **settings)
    return getattr(model, "model", model), tree


@pytest.fixture(scope="module")
def own():
    model = normal()
    return model, bs.fit(model, **DRAWN)


def flat(tree, name):
    return tree["posterior"][name].stack(sample=("chain", "draw")).transpose("sample", ...).to_numpy()


def test_every_variable_has_the_dims_and_labels_that_pymc_gives_it(fitted):
    model, tree = fitted
    posterior = tree["posterior"].to_dataset()
    names = [rv.name for rv in (*model.free_RVs, *model.deterministics)]  # counts may overflow under a wide prior
    drawn = pm.sample_prior_predictive(
        2, model=model, var_names=names, random_seed=0, compile_kwargs={"mode": UNCOMPILED}
    )
    prior = drawn["prior"].to_dataset()
    assert {rv.name for rv in model.free_RVs} <= set(posterior)
    for name in set(prior) & set(posterior):
        assert posterior[name].dims == prior[name].dims
        for dim in posterior[name].dims[2:]:
            assert_array_equal(posterior[dim], prior[dim])
    assert np.isfinite(posterior.to_array()).all()


def test_pymc_has_the_same_log_likelihood_at_every_draw(fitted):
    model, tree = fitted
    found = pm.compute_log_likelihood(tree, model=model, extend_inferencedata=False, **IN_PYTHON)
    assert_allclose(found["y"], tree["log_likelihood"]["y"], rtol=1e-8, atol=1e-8)


def test_a_pruned_weight_is_at_its_prior_mean_and_its_sd_is_negligible(own):
    _, tree = own
    kept = tree["evidence"]["kept"].to_numpy()
    assert kept.tolist() == [True, False, False, True, False]
    posterior = tree["posterior"].to_dataset()
    assert_array_equal(posterior["w"][..., ~kept], 0.1)
    assert np.ptp(posterior["w"][..., kept].to_numpy(), axis=(0, 1)).all()
    sd = posterior["sd"].to_numpy()
    assert_allclose(sd[..., kept], np.broadcast_to(tree["evidence"]["alpha"][kept] ** -0.5, sd[..., kept].shape))
    assert_allclose(sd[..., ~kept], 1e-6 * sd[0, 0, kept].min())


def test_the_scales_of_a_horseshoe_give_the_weights_their_precisions():
    tree = bs.fit(horseshoe(), **FEW)
    sd = tree["posterior"]["tau"] * tree["posterior"]["lam"]
    assert_allclose(sd.to_numpy() ** -2, np.broadcast_to(tree["evidence"]["alpha"], sd.shape), rtol=1e-8)


def test_deterministics_are_those_of_numpy(own):
    _, tree = own
    w, b, sigma = (flat(tree, name) for name in ("w", "b", "sigma"))
    assert_allclose(flat(tree, "mu"), b[:, None] + w @ X.T, rtol=1e-10, atol=1e-12)
    odds = np.exp(w / sigma[:, None])
    assert_allclose(flat(tree, "odds"), odds / odds.sum(axis=1, keepdims=True), rtol=1e-10)
    assert_allclose(flat(tree, "length"), np.linalg.norm(w, axis=1), rtol=1e-10)
    assert_allclose(flat(tree, "products"), w[:, :, None] * w[:, None, :], rtol=1e-10)
    assert_allclose(flat(tree, "middle"), np.broadcast_to(X.mean(axis=0), w.shape), rtol=1e-10)
    assert_allclose(flat(tree, "residual"), REAL - flat(tree, "mu"), rtol=1e-10, atol=1e-12)


def test_what_has_chance_of_its_own_is_left_out(own):
    assert "chance" not in own[1]["posterior"]


def test_what_is_too_large_is_left_out_and_said(monkeypatch, messages):
    monkeypatch.setattr(give_back, "_MOST", 2 * 20 * P**2 - 1)
    monkeypatch.setattr(give_back, "_BLOCK", 7 * N * P)  # and the others come in parts of seven draws
    tree = bs.fit(normal(), **FEW)
    assert set(tree["posterior"]) == {"sd", "w", "b", "sigma", "odds", "length", "middle"}
    assert_allclose(flat(tree, "length"), np.linalg.norm(flat(tree, "w"), axis=1), rtol=1e-10)
    assert "Left out of the tree, because 40 draws of it are too large: mu, products, residual." in messages


def test_a_posterior_too_large_in_full_has_the_terms_kept(monkeypatch, messages):
    monkeypatch.setattr(checks, "LARGEST_LOG_LIKELIHOOD", 8 * 40 * P - 1)
    tree = bs.fit(normal(), **FEW)
    assert tree["posterior"]["feature"].to_numpy().tolist() == ["a", "d"]
    assert any(message.startswith("Every draw of every weight") for message in messages)
    assert bs.unpruned(tree)["posterior"]["w"].shape == (2, 20, P)


def test_of_two_scales_the_one_of_each_weight_makes_the_precision():
    tree = bs.fit(two_scales(), **FEW)
    assert_array_equal(tree["posterior"]["wide"], 3.0)  # where PyMC starts it
    kept = tree["evidence"]["kept"].to_numpy()
    sd = 3.0 * flat(tree, "own")[0]
    assert_allclose(sd[kept], tree["evidence"]["alpha"].to_numpy()[kept] ** -0.5)
    assert_allclose(sd[~kept], 1e-6 * sd[kept].min())


def test_free_variables_of_which_nothing_is_known_are_at_their_support_points():
    with pm.Model() as model:
        aside = pm.HalfNormal("aside", 3.0)
        pm.HalfNormal("above", 1.0 + aside, shape=2)
        pm.Normal("y", X @ pm.Normal("w", 0.0, pm.HalfNormal("sd", 1.0, shape=P)), 0.5, observed=REAL)
    posterior = bs.fit(model, **FEW)["posterior"]
    assert_array_equal(posterior["aside"], 3.0)
    assert_array_equal(posterior["above"], 4.0)


def test_a_choice_is_made_draw_by_draw():
    with pm.Model() as model:
        w = pm.Normal("w", 0.0, pm.HalfNormal("sd", 1.0, shape=P), shape=P)
        pm.Deterministic("largest", ifelse(pt.gt(w[0], 1.5), w, -w))
        pm.Normal("y", X @ w, 0.5, observed=REAL)
    tree = bs.fit(model, **FEW)
    w = flat(tree, "w")
    assert_allclose(flat(tree, "largest"), np.where(w[:, :1] > 1.5, w, -w))
    assert 0 < np.mean(w[:, 0] > 1.5) < 1


def test_variables_that_were_fitted_as_something_else_of_them():
    """Weights as their product with a scale that is declared after them, offsets without their random mean."""
    with pm.Model() as model:
        z = pm.Normal("z", 0.0, 1.0, shape=P)
        w = pm.Deterministic("w", z * pm.HalfNormal("sd", 1.0, shape=P))
        middle, sigma = pm.Normal("middle", 0.0, 5.0), pm.HalfNormal("sigma", 1.0)
        offset = pm.Normal("offset", middle, 0.3, shape=2)
        pm.Normal("y", X @ w + offset[np.arange(N) % 2], sigma, observed=REAL)
    sparse_block = WeightBlock("w", (P,), None, {}, slice(0, P), np.zeros(P))
    fixed = (
        WeightBlock("middle", (), None, {}, slice(P, P + 1), np.zeros(())),
        WeightBlock("above", (2,), None, {}, slice(P + 1, P + 3), np.zeros(2)),
    )
    labelled = LabelledProblem(
        None, None, REAL, (sparse_block,), fixed, FEATURES, "y", "row", np.arange(N),
        unpack=lambda theta: {"sigma": np.exp(theta[0])}, settings={},
        hyper_points=lambda precision: {"sd": ((), precision**-0.5)},
    )  # fmt: skip
    known = {"w": FittedAs(z, scale=model["sd"]), "above": FittedAs(offset, make=lambda values: middle + values)}
    columns, theta = RNG.standard_normal((9, P + 3)), RNG.standard_normal((9, 1))
    columns[:, 1] = 0.0
    precision = np.array([0.5, np.inf, 2.0, 1.0, 4.0])
    found = {name: values for name, (_, values) in GiveBack(model, labelled, known)(columns, theta, precision).items()}
    sd = np.array([0.5, 1e6**2 * 4, 2.0, 1.0, 4.0]) ** -0.5
    assert_allclose(found["sd"], np.broadcast_to(sd, (9, P)))
    assert_allclose(found["z"], columns[:, :P] / sd)
    assert_allclose(found["w"], columns[:, :P], rtol=1e-12)
    assert_allclose(found["offset"], columns[:, P + 1 :] + columns[:, [P]])
    assert_allclose(found["sigma"], np.exp(theta[:, 0]))
    assert set(found) == {"z", "sd", "middle", "sigma", "offset", "w"}


def assert_predicts(drawn, predicted):
    """Mean and sd of new observations against `bs.predict`: five standard errors, and the noise's own uncertainty."""
    y, mean, sd = drawn["y"], predicted["mean"], predicted["sd"]
    S = y.sizes["chain"] * y.sizes["draw"]
    assert np.abs((y.mean(("chain", "draw")).to_numpy() - mean) / sd).max() < 5 / np.sqrt(S)
    assert_allclose(y.std(("chain", "draw")), sd, rtol=5 / np.sqrt(2 * S) + 1 / N)


def test_pymc_predicts_what_bs_predict_does(own):
    model, tree = own
    drawn = pm.sample_posterior_predictive(tree, model, random_seed=1, **IN_PYTHON)["posterior_predictive"]
    assert_predicts(drawn, bs.predict(tree, model=model))


def test_and_at_new_rows():
    model = normal()
    tree = bs.fit(model, **DRAWN)
    predicted = bs.predict(tree, {"X": NEW}, model=model)
    with model:
        pm.set_data({"X": NEW}, coords={"row": np.arange(7)})
        drawn = pm.sample_posterior_predictive(
            tree, random_seed=1, var_names=["y", "mu"], predictions=True, **IN_PYTHON
        )
    found = drawn["predictions"]
    assert_predicts(found, predicted)
    means = flat(tree, "b")[:, None] + flat(tree, "w") @ NEW.T
    assert_allclose(found["mu"].stack(sample=("chain", "draw")).T, means, rtol=1e-10, atol=1e-12)


def test_precisions_whose_number_follows_the_data_are_taken_from_the_tree():
    model = poisson()
    tree = bs.fit(model, **DRAWN)
    drawn = pm.sample_posterior_predictive(tree, model, random_seed=1, **IN_PYTHON)["posterior_predictive"]
    rate = np.exp(flat(tree, "b")[:, None] + flat(tree, "w") @ X.T)
    sd = np.sqrt((rate.mean(axis=0) + rate.var(axis=0)) / len(rate))
    assert np.abs((drawn["y"].mean(("chain", "draw")).to_numpy() - rate.mean(axis=0)) / sd).max() < 5


def test_models_made_of_the_model(own):
    model, tree = own
    without = pm.do(model, {"b": np.float64(0.0)})
    drawn = pm.sample_posterior_predictive(tree, without, var_names=["mu"], sample_vars=["mu"], **IN_PYTHON)
    found = drawn["posterior_predictive"]["mu"].stack(sample=("chain", "draw")).T
    assert_allclose(found, flat(tree, "w") @ X.T, rtol=1e-10, atol=1e-12)
    known = pm.observe(pm.do(model, {"sigma": np.float64(0.5)}), {"b": 0.5})
    density = pm.compute_log_likelihood(tree, model=known, var_names=["b"], extend_inferencedata=False, **IN_PYTHON)
    expected = -0.5 * (0.5 / 5) ** 2 - np.log(5 * np.sqrt(2 * np.pi))
    assert_allclose(density["b"], expected, rtol=1e-7)  # PyMC has the logarithm of a constant in single precision


def test_nuts_starts_at_the_fit(own):
    model, tree = own
    start = bs.initvals(tree, model)
    assert set(start) == {"sd", "w", "b", "sigma"}
    kept = tree["evidence"]["kept"].to_numpy()
    assert_allclose(start["w"][kept], flat(tree, "w").mean(axis=0)[kept])
    assert_allclose(start["w"][~kept], 0.1)
    assert_allclose(start["sd"][kept], tree["evidence"]["alpha"][kept] ** -0.5)
    assert_allclose(start["sd"][~kept], np.exp(model.initial_point()["sd_log__"])[~kept])
    sampled = pm.sample(
        2,
        tune=2,
        chains=1,
        initvals=start,
        init="adapt_diag",
        nuts_sampler="pymc",
        random_seed=1,
        model=model,
        **IN_PYTHON,
    )
    assert set(start) <= set(sampled["posterior"])


def test_a_start_needs_draws_of_the_model_s_own_variables(own):
    model, tree = own
    refused(lambda: bs.initvals(bs.fit(model, draws=0), model), "draws")
    refused(lambda: bs.initvals(tree, poisson()), "'alpha'")


def test_arviz_summarises_it(own):
    with np.errstate(all="ignore"):  # of constants
        table = az.summary(own[1], round_to="none")
    assert table.loc["w[a]", "r_hat"] < 1.02
    assert np.isnan(table.loc["sd[a]", "r_hat"])


def test_the_exact_posterior_at_alpha_holds_every_variable_too(own):
    model, _ = own
    tree = bs.fit(model, method="nuts", condition="alpha", sampler="pymc", tune=100, **DRAWN | {"draws": 100})
    assert {"sd", "w", "b", "sigma", "mu"} <= set(tree["posterior"])
    assert_allclose(tree["posterior"]["sigma"], tree["constant_data"]["sigma"])
    found = pm.compute_log_likelihood(tree, model=model, extend_inferencedata=False, **IN_PYTHON)
    assert_allclose(found["y"], tree["log_likelihood"]["y"], rtol=1e-8, atol=1e-8)
    diagnosis = bs.diagnose(tree)  # of what was drawn: neither constants nor a value per observation
    assert diagnosis.worst.split("[")[0] in {"w", "b", "odds", "length", "products"}
    r_hat = az.rhat(tree["posterior"].to_dataset()[["w", "b"]].isel(feature=[0, 3]))
    assert diagnosis.r_hat_max >= float(max(r_hat["w"].max(), r_hat["b"]))


def test_a_comparison_is_of_parameters_and_not_of_every_prediction(own):
    model, tree = own
    other = bs.fit(model, method="mackay", **DRAWN)
    parameters = bs.compare({"one": tree, "other": other}).parameters.index.get_level_values("parameter")
    assert {"w[a]", "b", "sigma", "length", "odds[a]"} <= set(parameters)
    assert not any(name.startswith(("mu[", "residual[", "sd[")) for name in parameters)


def test_nothing_has_to_be_put_back(own):
    xr.testing.assert_identical(bs.unpruned(own[1]), own[1])


def test_it_survives_a_file(own, tmp_path):
    _, tree = own
    tree.to_netcdf(tmp_path / "fit.nc")
    again = xr.open_datatree(tmp_path / "fit.nc")
    xr.testing.assert_equal(again["posterior"].to_dataset(), tree["posterior"].to_dataset())
    assert_array_equal(again["constant_data"]["X"], X)
    again.close()


@pytest.mark.filterwarnings("ignore:Data in y contains missing values")
def test_missing_observations_have_the_noise_of_the_others():
    y = np.where(np.arange(N) % 6 == 0, np.nan, REAL)
    with pm.Model() as model:
        w = pm.Normal("w", 0.0, pm.HalfNormal("s", 2.0, shape=P), shape=P)
        mu = pm.Deterministic("mu", X @ w + pm.Normal("b", 0.0, 5.0))
        pm.Normal("y", mu, pm.HalfNormal("sigma", 2.0), observed=y)
    tree, again = (bs.fit(model, **DRAWN)["posterior"] for _ in range(2))
    assert_array_equal(tree["y_unobserved"], again["y_unobserved"])
    z = (tree["y_unobserved"].to_numpy() - tree["mu"].to_numpy()[..., ::6]) / tree["sigma"].to_numpy()[..., None]
    # Standard normal: 10,000 of them, so each within four standard errors.
    assert_allclose(z.mean(), 0.0, atol=4 / np.sqrt(z.size))
    assert_allclose(z.var(), 1.0, atol=4 * np.sqrt(2 / z.size))
    assert np.abs(np.corrcoef(z.reshape(-1, z.shape[-1]).T) - np.eye(10)).max() < 4.5 / np.sqrt(1000)
    assert_array_equal(tree["y"].to_numpy()[..., ::6], tree["y_unobserved"])
    assert_array_equal(tree["y"].to_numpy()[0, 0, 1::6], y[1::6])


@pytest.mark.filterwarnings("ignore:Data in y contains missing values")
def test_missing_counts_are_counts():
    y = np.ma.masked_array(COUNT, mask=np.arange(N) % 4 == 0)
    with pm.Model() as model:
        w = pm.Normal("w", 0.0, pm.HalfNormal("s", 2.0, shape=P), shape=P)
        rate = pm.Deterministic("rate", pm.math.exp(X @ w + pm.Normal("b", 0.0, 5.0)))
        pm.Poisson("y", rate, observed=y)
    tree = bs.fit(model, **DRAWN)["posterior"]
    drawn, expected = tree["y_unobserved"].to_numpy(), tree["rate"].to_numpy()[..., ::4]
    assert drawn.dtype.kind == "i"
    error = np.sqrt(expected.sum()) / expected.size
    assert_allclose(drawn.mean(), expected.mean(), atol=4 * error)
    assert_allclose(((drawn - expected) ** 2 / expected).mean(), 1.0, atol=0.1)


@pytest.mark.filterwarnings("ignore:Data in y contains missing values")
def test_missing_observations_beside_a_single_weight():
    """With one column PyMC gives them a size, of which PyTensor makes no more than one."""
    y = np.where(np.arange(N) % 6 == 0, np.nan, REAL)
    with pm.Model() as model:
        data = pm.Data("X", X[:, :1])
        w = pm.StudentT("w", nu=3, mu=0.0, sigma=1.0, shape=1)
        mu = pm.Deterministic("mu", pm.math.dot(data, w))
        pm.StudentT("y", nu=4, mu=mu, sigma=pm.Exponential("sigma", 1.0), observed=y)
    tree = bs.fit(model, **DRAWN)["posterior"]
    z = (tree["y_unobserved"].to_numpy() - tree["mu"].to_numpy()[..., ::6]) / tree["sigma"].to_numpy()[..., None]
    assert_allclose(np.median(z), 0.0, atol=4 * 1.35 / np.sqrt(z.size))
    assert_allclose(np.mean(np.abs(z) < 0.741), 0.5, atol=4 * 0.5 / np.sqrt(z.size))  # quartiles of four degrees
