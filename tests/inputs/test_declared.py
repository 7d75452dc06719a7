"""A `pm.Model` of the user's own, through fit, relevance and predict."""

import warnings

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import Mode

import bayes_sparse as bs
from bayes_sparse.inputs.pm_model import own_problem
from bayes_sparse.inputs.prepare import prepare
from tests.support import refused

RNG = np.random.default_rng(71)
N, P = 80, 4
FEATURES = ["age", "dose", "height", "weight"]
ROWS = np.arange(1000, 1000 + N)
X = RNG.standard_normal((N, P))
NEW = RNG.standard_normal((6, P))
EXPOSURE = RNG.uniform(0.5, 4.0, N)
ETA = 1.2 * X[:, 0] - 0.8 * X[:, 2]
REAL = ETA + 0.5 * RNG.standard_normal(N)
BINARY = (ETA + RNG.logistic(size=N) > 0).astype(int)
COUNT = RNG.poisson(EXPOSURE * np.exp(0.5 * ETA + 0.5))
SPREAD_COUNT = RNG.poisson(RNG.gamma(3.0, np.exp(0.5 * ETA + 1.0) / 3.0))
LINEAR = bs.basis.linear(standardise=False)
SMALL = {"draws": 50, "chains": 2, "random_seed": 0}


def sparse(p=P, dims=None):
    alpha = pm.Gamma("alpha", 0.5, 0.005, **({"dims": dims} if dims else {"shape": p}))
    return pm.Normal("w", 0.0, tau=alpha, **({"dims": dims} if dims else {"shape": p}))


def logistic(*, data=False, named=False, X=X, y=BINARY):
    coords = {"feature": FEATURES, "row": ROWS} if named else None
    with pm.Model(coords=coords) as model:
        table = pm.Data("X", X, dims=("row", "feature") if named else None) if data else X
        w = sparse(dims="feature" if named else None)
        b = pm.Normal("b", 0.0, 10.0)
        pm.Bernoulli("y", logit_p=pm.math.dot(table, w) + b, observed=y, dims="row" if named else None)
    return model


def poisson():
    with pm.Model() as model:
        table, exposure = pm.Data("X", X), pm.Data("exposure", EXPOSURE)
        eta = table @ sparse() + pm.Normal("b", 0.0, 10.0)
        pm.Poisson("y", mu=exposure * pm.math.exp(eta), observed=COUNT)
    return model


def negative_binomial():
    with pm.Model() as model:
        eta = X @ sparse() + pm.Normal("b", 0.0, 10.0)
        pm.NegativeBinomial("y", mu=pm.math.exp(eta), alpha=pm.Exponential("k", 0.1), observed=SPREAD_COUNT)
    return model


def student_t():
    with pm.Model() as model:
        eta = pt.sum(X * sparse(), axis=-1) + pm.Normal("b", 0.0, 10.0)
        pm.StudentT("y", nu=4.0, mu=eta, sigma=pm.HalfNormal("scale", 5.0), observed=REAL)
    return model


def normal(sigma=None, *, prior_mean=0.0, y=REAL):
    with pm.Model() as model:
        eta = X @ sparse() + pm.Normal("b", prior_mean, 10.0)
        pm.Normal("y", eta, pm.HalfNormal("sigma", 5.0) if sigma is None else sigma, observed=y)
    return model


def log_logistic(value, mu, scale):
    z = (value - mu) / scale
    return -z - pt.log(scale) - 2 * pt.softplus(-z)


def draw_logistic(mu, scale, rng=None, size=None):
    return rng.logistic(mu, scale, size=size)


def custom():
    with pm.Model() as model:
        eta = X @ sparse() + pm.Normal("b", 0.0, 10.0)
        scale = pm.HalfNormal("scale", 5.0)
        pm.CustomDist("y", eta, scale, logp=log_logistic, random=draw_logistic, observed=REAL)
    return model


MODELS = {
    "logistic": (logistic, []),
    "poisson": (poisson, []),
    "negative binomial": (negative_binomial, ["k"]),
    "student t": (student_t, ["scale"]),
    "normal": (normal, ["sigma"]),
    "written by the user": (custom, ["scale"]),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_users_model_works_unchanged(name):
    make, nuisance = MODELS[name]
    model = make()
    tree = bs.fit(model, **SMALL)
    evidence = tree["evidence"]
    assert evidence.attrs["status"] == "converged"
    assert evidence["basis"].to_numpy().tolist() == ["w[0]", "w[1]", "w[2]", "w[3]"]
    assert set(bs.relevance(tree).index[:2]) == {"w[0]", "w[2]"}
    half = 0.5 if name in ("poisson", "negative binomial") else 1.0
    for position, truth in ((0, 1.2 * half), (2, -0.8 * half)):
        assert abs(evidence["mean"][position] - truth) < 4 * evidence["sd"][position]
    for variable in nuisance:
        assert evidence[variable].item() > 0
        assert tree["posterior"][variable].shape == (2, 50)
    assert {"alpha", "w", "b", *nuisance} == set(tree["posterior"].data_vars)
    assert tree["posterior"]["w"].dims == ("chain", "draw", "w_dim_0")
    assert tree["log_likelihood"]["y"].shape == (2, 50, N)
    prediction = bs.predict(tree, model=model)
    if name == "logistic":
        assert np.mean(prediction["label"] == BINARY) > 0.6
    else:
        assert np.all(prediction["sd"] > 0)
        assert np.corrcoef(prediction["mean"], tree["observed_data"]["y"])[0, 1] > 0.4


@pytest.mark.parametrize("data", [True, False])
def test_names_dims_and_coords_survive(data):
    model = logistic(data=data, named=True)
    tree = bs.fit(model, **SMALL)
    assert tree["evidence"]["basis"].to_numpy().tolist() == FEATURES
    assert tree["posterior"]["w"].dims == ("chain", "draw", "feature")
    assert tree["posterior"]["feature"].to_numpy().tolist() == FEATURES
    assert tree["log_likelihood"]["y"].dims == ("chain", "draw", "row")
    np.testing.assert_array_equal(tree["observed_data"]["row"], ROWS)
    assert set(bs.relevance(tree).index) == set(FEATURES)
    prediction = bs.predict(tree, model=model)
    assert prediction["probability"].dims == ("row", "class")
    np.testing.assert_array_equal(prediction["row"], ROWS)


def same_fit(one, two, rtol=1e-6):
    for name in ("log_evidence", "objective", "alpha", "mean", "sd", "gamma", "relevant"):
        np.testing.assert_allclose(one["evidence"][name], two["evidence"][name], rtol=rtol, err_msg=name)


@pytest.mark.parametrize("smoothness", [0, 1.0])
@pytest.mark.parametrize("method", ["sequential", "mackay"])
def test_logistic_regression_is_the_named_model(smoothness, method):
    settings = {"smoothness": smoothness, "method": method, "draws": 0}
    same_fit(bs.fit(logistic(), **settings), bs.fit("ard_gaussian", (X, BINARY), basis=LINEAR, **settings))


def test_an_exposure_is_the_offset_of_the_named_model():
    named = bs.fit("ard_gaussian", (X, COUNT), likelihood="poisson", offset=np.log(EXPOSURE), basis=LINEAR, draws=0)
    same_fit(bs.fit(poisson(), draws=0), named)


@pytest.mark.parametrize("likelihood", ["bernoulli", "poisson"])
def test_the_declaration_of_a_named_model_is_that_model(likelihood):
    y = BINARY if likelihood == "bernoulli" else COUNT
    data = prepare((X, y), None, likelihood, bs.basis.linear(), None, None, None)
    declared = bs.fit(bs.models.ARDGaussian().declare(data, (0.5, 0.005), centred=True), smoothness=1.0, draws=0)
    named = bs.fit("ard_gaussian", (X, y), likelihood=likelihood, smoothness=1.0, draws=0)
    np.testing.assert_allclose(declared["evidence"]["log_evidence"], named["evidence"]["log_evidence"], rtol=1e-6)
    np.testing.assert_allclose(declared["evidence"]["mean"] / data.scale, named["evidence"]["mean"], rtol=1e-5)


def test_known_noise_gives_the_textbook_evidence():
    model = normal(sigma=0.5)
    evidence = bs.fit(model, smoothness=0, draws=0)["evidence"]
    active = evidence["kept"].to_numpy()
    Phi = X[:, active]
    covariance = 0.25 * np.eye(N) + 100.0 + (Phi / evidence["alpha"].to_numpy()[active]) @ Phi.T
    sign, log_determinant = np.linalg.slogdet(2 * np.pi * covariance)
    assert sign == 1
    expected = -0.5 * (log_determinant + REAL @ np.linalg.solve(covariance, REAL))
    np.testing.assert_allclose(evidence["log_evidence"], expected, rtol=1e-9)


def test_the_prior_on_the_noise_is_part_of_the_objective():
    evidence = bs.fit(normal(), smoothness=0, draws=0)["evidence"]
    sigma = evidence["sigma"].item()
    log_prior = pm.logp(pm.HalfNormal.dist(5.0), sigma).eval() + np.log(sigma)
    np.testing.assert_allclose(evidence["objective"] - evidence["log_evidence"], log_prior, rtol=1e-6)


def test_an_intercept_may_have_a_prior_mean():
    """A prior mean of 40 with the data moved by 40 is the same problem, moved."""
    plain = bs.fit(normal(sigma=0.5), **SMALL)
    moved = bs.fit(normal(sigma=0.5, prior_mean=40.0, y=REAL + 40.0), **SMALL)
    same_fit(moved, plain)
    np.testing.assert_allclose(moved["evidence"]["b"], plain["evidence"]["b"] + 40.0, rtol=1e-8)
    np.testing.assert_allclose(moved["posterior"]["b"], plain["posterior"]["b"] + 40.0, rtol=1e-8)
    ahead = bs.predict(moved, model=normal(sigma=0.5, prior_mean=40.0, y=REAL + 40.0))
    np.testing.assert_allclose(ahead["mean"], bs.predict(plain, model=normal(sigma=0.5))["mean"] + 40.0, rtol=1e-8)


def test_new_data_for_the_models_own():
    model = logistic(data=True)
    other = RNG.permutation(X.ravel()).reshape(X.shape)
    settings = {"smoothness": 0, "draws": 0, "method": "mackay", "hyper": (0.5, 0.005)}
    same_fit(bs.fit(model, {"X": other}, **settings), bs.fit(logistic(X=other), **settings))
    same_fit(bs.fit(model, {"X": X}, **settings), bs.fit(logistic(), **settings))


def test_data_that_the_model_does_not_hold():
    with pytest.raises(ValueError, match=r"The model has no pm\.Data 'Z'; it has X\."):
        bs.fit(logistic(data=True), {"Z": X})
    with pytest.raises(TypeError, match=r"new values for its pm\.Data by name.*this model has X\."):
        bs.fit(logistic(data=True), (X, BINARY))
    with pytest.raises(TypeError, match=r"this model has no pm\.Data"):
        bs.fit(logistic(), (X, BINARY))


@pytest.mark.parametrize("by_name", [True, False])
def test_prediction_at_new_rows_leaves_the_model_as_it_was(by_name):
    model = logistic(data=True)
    tree = bs.fit(model, draws=0)
    named = bs.fit("ard_gaussian", (X, BINARY), basis=LINEAR, draws=0)
    prediction = bs.predict(tree, {"X": NEW} if by_name else NEW, model=model)
    np.testing.assert_allclose(prediction["probability"], bs.predict(named, NEW)["probability"], rtol=1e-6)
    np.testing.assert_array_equal(model["X"].get_value(), X)
    held = bs.predict(tree, model=model)
    np.testing.assert_allclose(held["probability"], bs.predict(named, X)["probability"], rtol=1e-6)


def test_prediction_at_new_rows_of_a_model_with_row_labels():
    model = logistic(data=True, named=True)
    tree = bs.fit(model, draws=0)
    prediction = bs.predict(tree, {"X": NEW}, model=model)
    named = bs.fit("ard_gaussian", (X, BINARY), basis=LINEAR, draws=0)
    np.testing.assert_allclose(prediction["probability"], bs.predict(named, NEW)["probability"], rtol=1e-6)
    np.testing.assert_array_equal(model["X"].get_value(), X)
    assert list(model.coords["row"]) == ROWS.tolist()


def test_prediction_with_an_exposure():
    model = poisson()
    tree = bs.fit(model, draws=0)
    named = bs.fit("ard_gaussian", (X, COUNT), likelihood="poisson", offset=np.log(EXPOSURE), basis=LINEAR, draws=0)
    exposure = np.linspace(1, 5, len(NEW))
    prediction = bs.predict(tree, {"X": NEW, "exposure": exposure}, model=model)
    expected = bs.predict(named, NEW, offset=np.log(exposure))
    np.testing.assert_allclose(prediction["mean"], expected["mean"], rtol=1e-6)
    np.testing.assert_allclose(prediction["sd"], expected["sd"], rtol=0.15)  # 2000 simulations of a skew count
    np.testing.assert_array_equal(model["exposure"].get_value(), EXPOSURE)


def test_prediction_with_rows_of_two_lengths_is_refused_in_words():
    model = poisson()
    tree = bs.fit(model, draws=0)
    with pytest.raises(ValueError, match="exposure"):
        bs.predict(tree, {"X": NEW}, model=model)
    np.testing.assert_array_equal(model["X"].get_value(), X)


@pytest.mark.parametrize(("make", "variance"), [(student_t, 2.0), (custom, np.pi**2 / 3)])
def test_prediction_of_other_likelihoods(make, variance):
    model = make()
    tree = bs.fit(model, draws=0)
    prediction = bs.predict(tree, model=model, random_seed=1)
    evidence = tree["evidence"]
    assert prediction["mean"].dims == ("y_dim_0",)
    np.testing.assert_allclose(prediction["mean"], ETA, atol=1.0)
    noise = evidence["scale"].item() * np.sqrt(variance)
    assert 0.9 * noise < np.median(prediction["sd"]) < 1.25 * noise


def test_prediction_needs_the_model():
    tree = bs.fit(logistic(data=True), draws=0)
    with pytest.raises(ValueError, match=r"came from a pm\.Model of your own: pass that model too.*model=model"):
        bs.predict(tree, NEW)
    with pytest.raises(ValueError, match="has its offset inside"):
        bs.predict(tree, NEW, model=logistic(data=True), offset=np.zeros(6))


def test_a_constant_prior_sd_can_be_named():
    def constant():
        with pm.Model() as model:
            w = pm.Normal("w", 0.0, 1.0, shape=P)
            b = pm.Normal("b", 0.0, 10.0)
            pm.Bernoulli("y", logit_p=X @ w + b, observed=BINARY)
        return model

    with pytest.raises(ValueError, match=r"No sparse prior was found.*'w', 'b'.*fit\(model, sparse=\['w'\]\)"):
        bs.fit(constant())
    for named in (bs.models.Declared(constant(), sparse="w"), bs.models.Declared(constant(), sparse=["w"])):
        same_fit(bs.fit(named, draws=0), bs.fit(logistic(), draws=0))
    same_fit(bs.fit(constant(), sparse="w", draws=0), bs.fit(logistic(), draws=0))
    with pytest.raises(ValueError, match=r"sparse='v' does not name a variable.* are 'w', 'b'"):
        bs.fit(constant(), sparse="v")


def test_what_replaces_the_declared_prior_is_said_once(messages):
    own_problem._say_once.cache_clear()
    bs.fit(logistic(), draws=0)
    bs.fit(logistic(), hyper=(0.5, 0.01), draws=0)
    bs.fit(bs.models.Declared(logistic(), sparse="w"), draws=0)
    assert len(messages) == 2
    assert "prior precisions of w under a flat prior; the prior declared on alpha is for NUTS" in messages[0]
    assert "Gamma(0.5, 0.01)" in messages[1]


def test_observation_weights_of_a_users_model():
    repeats = np.arange(N) % 3 + 1
    rows = np.repeat(np.arange(N), repeats)
    weighted = bs.fit(logistic(), weights=repeats, smoothness=1.0, draws=0)
    same_fit(weighted, bs.fit(logistic(X=X[rows], y=BINARY[rows]), smoothness=1.0, draws=0), rtol=1e-5)


SPREAD_REAL = ETA + np.exp(0.8 * X[:, 1]) * np.random.default_rng(6).standard_normal(N)


def two_predictors(X=X, y=SPREAD_REAL):
    with pm.Model() as model:
        left, right = (pm.Normal(n, 0.0, pm.HalfNormal(f"s_{n}", 1.0, shape=P), shape=P) for n in ("left", "right"))
        pm.Normal("y", X @ left, pm.math.exp(X @ right), observed=y)
    return model


def test_observation_weights_along_two_predictors():
    repeats = np.arange(N) % 3 + 1
    rows = np.repeat(np.arange(N), repeats)
    weighted = bs.fit(two_predictors(), weights=repeats, method="mackay", smoothness=1.0, draws=0)
    same_fit(
        weighted,
        bs.fit(two_predictors(X[rows], SPREAD_REAL[rows]), method="mackay", smoothness=1.0, draws=0),
        rtol=1e-5,
    )


def test_predictions_along_two_predictors_need_draws():
    model = two_predictors()
    with pytest.raises(ValueError, match="several predictors average over draws: fit with draws > 0"):
        bs.predict(bs.fit(model, draws=0), model=model)


@pytest.mark.parametrize(
    "settings",
    [{"target": "y"}, {"likelihood": "normal"}, {"basis": "polynomial"}, {"keep": "w[0]"}, {"offset": np.zeros(N)}],
    ids=lambda settings: next(iter(settings)),
)
def test_what_a_users_model_says_itself(settings):
    with pytest.raises(ValueError, match=r"A pm\.Model of your own says its target, likelihood, basis"):
        bs.fit(logistic(), **settings)


TINY = 16
QUICK = Mode(linker="py", optimizer="fast_compile")


def tiny(prior=lambda: pm.Gamma("alpha", 0.5, 0.5, shape=2)):
    with pm.Model() as model:
        w = pm.Normal("w", 0.0, tau=prior(), shape=2)
        pm.Normal("y", X[:TINY, :2] @ w, 0.5, observed=REAL[:TINY])
    return model


def test_nuts_samples_the_users_model_as_it_stands():
    quick = {"tune": 20, "compute_convergence_checks": False, "compile_kwargs": {"mode": QUICK}, "cores": 1}
    model = tiny()
    with pytensor.config.change_flags(mode=QUICK):
        tree = bs.fit(
            model,
            method="nuts",
            sampler="pymc",
            draws=15,
            chains=2,
            random_seed=0,
            progressbar=False,
            sample_kwargs=quick,
        )
    assert {"posterior", "sample_stats", "log_likelihood", "observed_data"} <= set(tree.children)
    assert tree["posterior"]["w"].shape == (2, 15, 2)
    assert tree["posterior"]["alpha"].shape == (2, 15, 2)
    assert tree["log_likelihood"]["y"].shape == (2, 15, TINY)
    assert tree["posterior"].attrs["method"] == "nuts"
    with pytensor.config.change_flags(mode=QUICK):
        prediction = bs.predict(tree, model=model)
    assert prediction["mean"].shape == (TINY,)
    assert np.all(prediction["sd"] > 0.3)
    with pytest.raises(ValueError, match="neither a group 'evidence'"):
        bs.relevance(tree)


@pytest.mark.parametrize(
    "flat", [lambda: pm.HalfFlat("alpha", shape=2), lambda: pm.math.exp(pm.Flat("log_alpha", shape=2))]
)
def test_nuts_refuses_an_improper_prior(flat):
    with pytest.raises(ValueError, match=r"The prior on '.*alpha' is flat, .* improper .*pm\.Gamma\(0\.5, 0\.005\)"):
        bs.fit(tiny(flat), method="nuts")
    assert bs.fit(tiny(flat), draws=0)["evidence"].attrs["status"] == "converged"


def test_nuts_refuses_what_it_would_ignore():
    with pytest.raises(ValueError, match="leave out `hyper`"):
        bs.fit(tiny(), method="nuts", hyper=(1.0, 1.0))
    quick = {"tune": 2, "compute_convergence_checks": False, "compile_kwargs": {"mode": QUICK}, "cores": 1}
    with pytensor.config.change_flags(mode=QUICK), pytest.raises(ValueError, match="weights"):
        bs.fit(
            tiny(),
            method="nuts",
            sampler="pymc",
            weights=np.arange(TINY),
            draws=2,
            chains=1,
            progressbar=False,
            sample_kwargs=quick,
        )


def test_a_dispersion_called_alpha_does_not_hide_the_precisions():
    with pm.Model() as model:
        precision = pm.Gamma("precision", 0.5, 0.005, shape=P)
        w = pm.Normal("w", 0.0, tau=precision, shape=P)
        alpha = pm.Exponential("alpha", 1.0)
        pm.NegativeBinomial("y", mu=pm.math.exp(X @ w), alpha=alpha, observed=np.arange(len(X)) % 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bs.FitWarning)
        evidence = bs.fit(model, draws=0)["evidence"]
    assert evidence["alpha"].dims == ("basis",)
    assert evidence["alpha_point"].dims == ()
    assert float(evidence["alpha_point"]) > 0


@pytest.mark.parametrize("distribution", ["Laplace", "AsymmetricLaplace"])
@pytest.mark.parametrize("method", ["evidence", "mackay", "revm"])
def test_a_likelihood_without_curvature_is_refused(distribution, method):
    rng = np.random.default_rng(0)
    table = rng.standard_normal((40, 3))
    with pm.Model() as model:
        w = pm.Normal("w", 0.0, tau=pm.Gamma("alpha", 1.0, 1.0, shape=3), shape=3)
        more = {"kappa": 1.5} if distribution == "AsymmetricLaplace" else {}
        getattr(pm, distribution)("y", mu=table @ w, b=0.5, observed=table @ [1.0, 0.0, 0.0], **more)
    refused(lambda: bs.fit(model, method=method), "'y'", "no curvature", "Student-t", "method='nuts'")
