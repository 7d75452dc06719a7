"""One-step methods on a `pm.Model` of the user's own, linear or not, and on several classes."""

import warnings

import arviz as az
import numpy as np
import pandas as pd
import pymc as pm
import pytensor.tensor as pt
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.datasets import load_iris

import bayes_sparse as bs

RNG = np.random.default_rng(17)
N, P = 70, 4
FEATURES = ["age", "dose", "height", "weight"]
X = RNG.standard_normal((N, P))
NEW = RNG.standard_normal((6, P))
EXPOSURE = RNG.uniform(0.5, 4.0, N)
ETA = 1.5 * X[:, 0] - 1.0 * X[:, 2]
BINARY = (ETA + RNG.logistic(size=N) > 0).astype(int)
COUNT = RNG.poisson(EXPOSURE * np.exp(0.5 * ETA + 0.5))
REAL = ETA + 0.5 * RNG.standard_normal(N)
BARE = bs.basis.precomputed()
SMALL = {"draws": 50, "chains": 2, "random_seed": 0}
NUMBERS = ("log_evidence", "log_evidence_mode", "h", "u_expansion", "alpha", "gamma", "u_mode", "mean", "sd")


def sparse(name="w", p=P, dims=None):
    shape = {"dims": dims} if dims else {"shape": p}
    return pm.Normal(name, 0.0, tau=pm.Gamma(f"alpha_{name}", 0.5, 0.005, **shape), **shape)


def logistic(X=X, y=BINARY, named=False):
    coords = {"feature": FEATURES, "row": np.arange(1000, 1000 + len(y))} if named else None
    with pm.Model(coords=coords) as model:
        table = pm.Data("X", X, dims=("row", "feature") if named else None)
        eta = pm.math.dot(table, sparse(dims="feature" if named else None)) + pm.Normal("b", 0.0, 10.0)
        pm.Bernoulli("y", logit_p=eta, observed=y, dims="row" if named else None)
    return model


def poisson():
    with pm.Model() as model:
        eta = X @ sparse() + pm.Normal("b", 0.0, 10.0)
        pm.Poisson("y", mu=EXPOSURE * pm.math.exp(eta), observed=COUNT)
    return model


def halves(X=X, y=BINARY):
    """The same logistic regression written with two predictors: read as any likelihood, not as a linear one."""
    with pm.Model() as model:
        left, right = X[:, :2] @ sparse("left", 2), X[:, 2:] @ sparse("right", 2) + pm.Normal("b", 0.0, 10.0)
        pm.Bernoulli("y", logit_p=pt.log(pt.exp(left) * pt.exp(right)), observed=y)
    return bs.models.Declared(model, sparse=("left", "right"))


def same(one, two, rtol=1e-6, names=NUMBERS):
    for name in names:
        assert_allclose(one["evidence"][name], two["evidence"][name], rtol=rtol, atol=1e-8, err_msg=name)


# --- a linear predictor ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("expansion", ["ridge", "evidence", "zero", 3])
@pytest.mark.parametrize("method", ["revm", "full_matrix"])
def test_logistic_regression_is_the_named_model(method, expansion):
    settings = {"method": method, "expansion": expansion, "draws": 0}
    same(bs.fit(logistic(), **settings), bs.fit("ard_gaussian", (X, BINARY), basis=BARE, **settings))


@pytest.mark.parametrize("given", ["object", "keyword"])
def test_a_laplace_prior_instead_of_the_declared_one(given):
    named = bs.fit("laplace_eigen", (X, BINARY), basis=BARE, draws=0)
    if given == "object":
        tree = bs.fit(bs.models.Declared(logistic(), prior="laplace"), method="revm", draws=0)
    else:
        tree = bs.fit(logistic(), method="revm", prior="laplace", draws=0)
    same(tree, named)
    assert tree["evidence"].attrs["prior"] == "laplace"


def test_a_laplace_prior_needs_its_method_however_it_is_given():
    for model, settings in ((bs.models.Declared(logistic(), prior="laplace"), {}), (logistic(), {"prior": "laplace"})):
        with pytest.raises(ValueError, match=r"'sequential'.*a laplace prior is fitted by method=.*'revm'"):
            bs.fit(model, **settings)


@pytest.mark.parametrize("given", ["object", "keyword"])
def test_a_prior_that_does_not_exist(given):
    def fit():
        if given == "object":
            return bs.fit(bs.models.Declared(logistic(), prior="spike"), method="revm")
        return bs.fit(logistic(), method="revm", prior="spike")

    with pytest.raises(ValueError, match=r"spike.*(gaussian|laplace)"):
        fit()


def test_an_exposure_is_the_offset_of_the_named_model():
    settings = {"likelihood": "poisson", "offset": np.log(EXPOSURE), "basis": BARE}
    same(
        bs.fit(poisson(), method="revm", draws=0),
        bs.fit("ard_gaussian", (X, COUNT), method="revm", draws=0, **settings),
    )


def test_names_dims_and_predictions_survive():
    model = logistic(named=True)
    tree = bs.fit(model, method="revm", **SMALL)
    named = bs.fit("ard_gaussian", (X, BINARY), method="revm", basis=BARE, draws=0)
    assert tree["evidence"]["basis"].to_numpy().tolist() == FEATURES
    assert tree["posterior"]["w"].dims == ("chain", "draw", "feature")
    assert tree["posterior"]["u"].dims == ("chain", "draw", "direction")
    assert set(bs.relevance(tree).index) == set(FEATURES)
    prediction = bs.predict(tree, {"X": NEW}, model=model)
    assert_allclose(prediction["probability"], bs.predict(named, NEW)["probability"], rtol=1e-6)
    assert_array_equal(model["X"].get_value(), X)
    held = bs.predict(tree, model=model)
    assert_array_equal(held["row"], np.arange(1000, 1000 + N))
    assert_allclose(held["probability"], bs.predict(named, X)["probability"], rtol=1e-6)


def test_weights_called_u_are_the_users():
    with pm.Model() as model:
        pm.Bernoulli("y", logit_p=X @ sparse("u") + pm.Normal("h", 0.0, 10.0), observed=BINARY)
    tree = bs.fit(model, method="revm", **SMALL)
    same(tree, bs.fit(logistic(), method="revm", draws=0))
    assert tree["posterior"]["u"].shape == (2, 50, P)
    assert tree["posterior"]["h"].shape == (2, 50)


def test_the_normal_prior_is_replaced_not_multiplied():
    """A declared sd of 0.01 is for NUTS: the hyper-parameters are found, not taken."""
    with pm.Model() as model:
        w = pm.Normal("w", 0.0, 0.01, shape=P)
        pm.Bernoulli("y", logit_p=X @ w + pm.Normal("b", 0.0, 10.0), observed=BINARY)
    same(
        bs.fit(bs.models.Declared(model, sparse="w"), method="revm", draws=0),
        bs.fit(logistic(), method="revm", draws=0),
    )


def test_the_noise_keeps_its_declared_prior():
    def normal(scale):
        with pm.Model() as model:
            eta = X @ sparse() + pm.Normal("b", 0.0, 10.0)
            pm.Normal("y", eta, pm.HalfNormal("noise", scale), observed=REAL)
        return bs.fit(model, method="revm", **SMALL)

    wide, narrow = normal(5.0), normal(0.05)
    assert_allclose(wide["evidence"]["noise"], 0.5, rtol=0.25)
    assert narrow["evidence"]["noise"] < 0.9 * wide["evidence"]["noise"]
    assert wide["posterior"]["noise"].std() > 0.01
    assert_allclose(wide["evidence"]["mean"], [1.5, 0.0, -1.0, 0.0], atol=0.25)


def test_what_a_users_model_says_itself():
    with pytest.raises(ValueError, match=r"A pm\.Model of your own says its target, likelihood, basis"):
        bs.fit(logistic(), method="revm", keep="w[0]")
    with pytest.raises(
        TypeError,
        match=r"has a setting .bias_sd.; the method has appr.*the model grouped, hyper, prior, scales, sparse",
    ):
        bs.fit(logistic(), method="revm", bias_sd=3.0)


# --- any likelihood ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prior", ["gaussian", "laplace"])
def test_weights_in_two_variables_are_the_same_model(prior):
    declared = bs.models.Declared(halves().model, sparse=("left", "right"), prior=prior)
    general = bs.fit(declared, method="revm", expansion="zero", **SMALL)
    linear = bs.fit(bs.models.Declared(logistic(), prior=prior), method="revm", expansion="zero", draws=0)
    same(general, linear, rtol=1e-5)
    assert general["evidence"]["basis"].to_numpy().tolist() == ["left[0]", "left[1]", "right[0]", "right[1]"]
    assert general["posterior"]["left"].shape == general["posterior"]["right"].shape == (2, 50, 2)


def test_a_point_of_several_variables_is_a_dict():
    w = np.array([1.0, 0.2, -0.5, 0.1])
    point = {"left": w[:2], "right": w[2:]}
    general = bs.fit(halves(), method="revm", expansion=point, draws=0)
    same(general, bs.fit(logistic(), method="revm", expansion=w, draws=0), rtol=1e-5)
    for wrong, words in ((w, "'left', 'right'"), ({"left": w[:2]}, "lacks values of 'right'")):
        with pytest.raises(ValueError, match=words):
            bs.fit(halves(), method="revm", expansion=wrong, draws=0)


@pytest.mark.parametrize("make", [logistic, halves], ids=["linear", "any"])
def test_a_weight_of_two_is_a_row_twice(make):
    repeats = np.arange(N) % 3 + 1
    rows = np.repeat(np.arange(N), repeats)
    one = bs.fit(make(), method="revm", expansion="zero", weights=repeats, draws=0)
    same(one, bs.fit(make(X=X[rows], y=BINARY[rows]), method="revm", expansion="zero", draws=0), rtol=1e-5)


def test_other_methods_refuse_what_is_not_linear():
    with pytest.raises(ValueError, match=r"linear"):
        bs.fit(network(), method="sequential")


def test_evidence_methods_see_two_predictors_where_one_step_methods_see_any_likelihood():
    one, two = (bs.fit(model, method="mackay", draws=0)["evidence"] for model in (logistic(), halves()))
    for name in ("mean", "sd", "log_evidence"):
        assert_allclose(two[name], one[name], rtol=1e-4, atol=1e-6)


# --- a small network ---------------------------------------------------------------------------------------------

INPUTS = RNG.uniform(-2, 2, (80, 2))
INSIDE = (np.hypot(*INPUTS.T) + 0.3 * RNG.standard_normal(80) < 1.4).astype(int)
HIDDEN = 3


def network(inputs=INPUTS, y=INSIDE):
    with pm.Model() as model:
        x = pm.Data("x", inputs)
        W1, W2 = sparse("W1", (2, HIDDEN)), sparse("W2", HIDDEN)
        hidden = pt.tanh(x @ W1 + pm.Normal("b1", 0.0, 3.0, shape=HIDDEN))
        pm.Bernoulli("y", logit_p=hidden @ W2 + pm.Normal("b2", 0.0, 10.0), observed=y)
    return model


def log_likelihood(w, b):
    """The network's, from (W1, W2) and (b1, b2) in one row each."""
    hidden = np.tanh(INPUTS @ w[: 2 * HIDDEN].reshape(2, HIDDEN) + b[:HIDDEN])
    return np.sum(log_expit((2 * INSIDE - 1) * (hidden @ w[2 * HIDDEN :] + b[HIDDEN])))


def hessian(f, x, step=1e-4):
    """By central differences; good to about 1e-6."""
    E = step * np.eye(len(x))
    return np.array([[f(x + i + j) - f(x + i - j) - f(x - i + j) + f(x - i - j) for j in E] for i in E]) / (4 * step**2)


@pytest.fixture(scope="module")
def fitted():
    model = network()
    return model, bs.fit(model, method="revm", random_seed=0, draws=100, chains=2)


def test_the_quadratic_of_a_network_by_hand(messages):
    """Curvatures, what bends upwards, and the slope kept, at a point of the user's."""
    w = np.random.default_rng(2).standard_normal(3 * HIDDEN)
    point = {"W1": w[: 2 * HIDDEN].reshape(2, HIDDEN), "W2": w[2 * HIDDEN :]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bs.FitWarning)  # the point is arbitrary, and the quadratic there far off
        tree = bs.fit(network(), method="revm", expansion=point, draws=0)
    evidence = tree["evidence"]
    prior = np.append(np.full(HIDDEN, 3.0**-2), 0.01)
    b = minimize(lambda b: -log_likelihood(w, b) + 0.5 * prior @ b**2, np.zeros(HIDDEN + 1), tol=1e-10).x
    d, v = len(w), np.append(w, b)
    H = -hessian(lambda v: log_likelihood(v[:d], v[d:]), v)
    S = H[:d, :d] - H[:d, d:] @ np.linalg.solve(H[d:, d:] + np.diag(prior), H[d:, :d])
    h, V = np.linalg.eigh(S)
    assert np.sum(h < -1e-3) > 0
    assert evidence.attrs["directions_dropped"] == np.sum(h < -1e-3)
    assert "not log-concave" in messages[-1]
    assert f"{np.sum(h < -1e-3)} of {d} directions" in messages[-1]
    up = np.flatnonzero(h > 1e-3)[::-1]
    assert_allclose(evidence["h"][: len(up)], h[up], rtol=1e-4, atol=1e-4)
    steps = 1e-5 * np.eye(d)
    slope = np.array([log_likelihood(w + e, b) - log_likelihood(w - e, b) for e in steps]) / 2e-5
    centre = np.abs(V[:, up].T @ w + V[:, up].T @ slope / h[up])
    assert_allclose(evidence["u_expansion"][: len(up)], centre, rtol=1e-3, atol=1e-3)


def test_a_network_learns_what_no_line_can(fitted):
    model, tree = fitted
    evidence = tree["evidence"]
    assert 0 < evidence.attrs["directions_kept"] <= evidence.attrs["directions"]
    assert evidence.attrs["directions"] + evidence.attrs["directions_dropped"] <= 3 * HIDDEN
    assert evidence.attrs["directions_dropped"] >= 0
    assert np.mean(bs.predict(tree, model=model)["label"] == INSIDE) > 0.8
    assert np.mean(INSIDE) < 0.6  # what a constant would reach
    assert tree["posterior"]["W1"].shape == (2, 100, 2, HIDDEN)
    assert tree["posterior"]["W2"].shape == (2, 100, HIDDEN)
    assert tree["log_likelihood"]["y"].shape == (2, 100, 80)
    assert evidence.sizes["basis"] == 3 * HIDDEN


def test_a_network_predicts_new_rows_from_its_draws(fitted):
    model, tree = fitted
    new = np.random.default_rng(1).uniform(-2, 2, (9, 2))
    prediction = bs.predict(tree, {"x": new}, model=model)
    posterior = tree["posterior"].to_dataset().stack(sample=("chain", "draw"))
    values = (posterior[name].transpose("sample", ...).to_numpy() for name in ("W1", "b1", "W2", "b2"))
    drawn = [expit(np.tanh(new @ W1 + b1) @ W2 + b2) for W1, b1, W2, b2 in zip(*values, strict=True)]
    assert_allclose(prediction["probability"].sel({"class": 1}), np.mean(drawn, axis=0), rtol=1e-10)
    assert_allclose(prediction["probability"].sum("class"), 1.0)
    assert_array_equal(prediction["label"], np.mean(drawn, axis=0) > 0.5)
    assert_array_equal(model["x"].get_value(), INPUTS)


def test_the_pointwise_log_likelihood_of_a_network(fitted):
    _, tree = fitted
    draw = tree["posterior"].isel(chain=1, draw=17)
    w = np.append(draw["W1"].to_numpy().ravel(), draw["W2"])
    b = np.append(draw["b1"], draw["b2"])
    assert_allclose(tree["log_likelihood"]["y"].isel(chain=1, draw=17).sum(), log_likelihood(w, b), rtol=1e-9)


@pytest.mark.filterwarnings("ignore:Estimated shape parameter of Pareto:UserWarning")
def test_arviz_takes_the_tree_of_a_network(fitted):
    _, tree = fitted
    with np.errstate(invalid="ignore"):  # precisions are at points, and a constant has no R-hat
        summary = az.summary(tree)
    loo = az.loo(tree)
    assert sum(name.startswith("W1[") for name in summary.index) == 2 * HIDDEN
    assert np.isfinite(loo.elpd)


def test_prediction_without_draws_is_refused_in_words(fitted):
    model, _ = fitted
    bare = bs.fit(model, method="revm", draws=0)
    with pytest.raises(ValueError, match=r"draws > 0"):
        bs.predict(bare, model=model)


def test_a_network_of_which_nothing_is_kept_still_predicts():
    y = np.arange(80) % 4 == 0
    model = network(y=y.astype(int))
    with pytest.warns(bs.FitWarning, match="bias only"):
        tree = bs.fit(model, method="revm", expansion="zero", **SMALL)
    assert tree["evidence"].attrs["status"] == "null"
    prediction = bs.predict(tree, {"x": INPUTS[:3]}, model=model)
    assert_allclose(prediction["probability"].sel({"class": 1}), 0.25, atol=0.04)


# --- several classes ---------------------------------------------------------------------------------------------

IRIS = load_iris()
SPECIES = IRIS.target_names[IRIS.target]


@pytest.fixture(scope="module", params=["ard_gaussian", "laplace_eigen"])
def iris(request):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bs.FitWarning)
        return bs.fit(request.param, (IRIS.data, SPECIES), method="revm", likelihood="categorical", **SMALL)


def test_iris(iris):
    prediction = bs.predict(iris, IRIS.data)
    assert np.mean(prediction["label"].to_numpy() == SPECIES) > 0.95
    assert prediction["class"].to_numpy().tolist() == ["setosa", "versicolor", "virginica"]
    assert_allclose(prediction["probability"].sum("class"), 1.0, rtol=1e-12)
    assert prediction["probability"].dims == ("obs", "class")
    assert_array_equal(prediction["label"], prediction["class"][prediction["probability"].argmax("class")])
    assert 0 < iris["evidence"].attrs["directions_kept"] <= iris["evidence"].attrs["directions"] <= 8
    assert iris["posterior"]["w"].dims == ("chain", "draw", "basis")
    assert iris["posterior"]["basis"].to_numpy()[5] == "x1[versicolor]"
    assert iris["posterior"]["class"].to_numpy().tolist() == ["setosa", "versicolor", "virginica"]
    assert set(bs.relevance(iris).index) == {(f"x{j}", c) for j in range(4) for c in np.unique(SPECIES)}


def test_standardising_is_undone_for_every_class(iris):
    scale, shift = np.array([10.0, 0.01, 1.0, -3.0]), np.array([0.0, 5.0, -100.0, 1.0])
    model = "ard_gaussian" if iris["evidence"].attrs["prior"] == "gaussian" else "laplace_eigen"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bs.FitWarning)
        moved = bs.fit(model, (IRIS.data * scale + shift, SPECIES), method="revm", likelihood="categorical", draws=0)
    assert_allclose(moved["evidence"]["log_evidence"], iris["evidence"]["log_evidence"], rtol=1e-6)
    expected = bs.predict(iris, IRIS.data[::7])["probability"]
    assert_allclose(bs.predict(moved, IRIS.data[::7] * scale + shift)["probability"], expected, atol=1e-5)
    assert_allclose(moved["evidence"]["mean"] * np.tile(scale, 3), iris["evidence"]["mean"], rtol=1e-4, atol=1e-8)


def test_labels_and_names_of_a_frame_are_kept():
    table = pd.DataFrame(IRIS.data[::3], columns=["sl", "sw", "pl", "pw"]).assign(kind=SPECIES[::3])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bs.FitWarning)
        tree = bs.fit("ard_gaussian", table, target="kind", method="revm", likelihood="categorical", draws=0)
    assert ("pl", "virginica") in bs.relevance(tree).index
    prediction = bs.predict(tree, table[["pw", "pl", "sw", "sl"]])
    assert np.mean(prediction["label"].to_numpy() == table["kind"].to_numpy()) > 0.9


def unbalanced():
    """Classes of different sizes: of equal ones the curvatures at zero are equal in pairs, and directions arbitrary."""
    Z, rows = (IRIS.data - IRIS.data.mean(axis=0)) / IRIS.data.std(axis=0), np.r_[0:20, 50:80, 100:140]
    return Z[rows], IRIS.target[rows]


def test_the_quadratic_of_a_softmax_by_hand():
    """At zero the probabilities are the base rates, and the Hessian is a Kronecker product."""
    Z, y = unbalanced()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bs.FitWarning)
        evidence = bs.fit(
            "ard_gaussian", (Z, y), method="revm", likelihood="categorical", basis=BARE, expansion="zero", draws=0
        )["evidence"]
    one_hot = np.eye(3)[y]
    b = minimize(
        lambda b: -np.sum(one_hot * log_softmax(b)) + 0.005 * b @ b,
        np.zeros(3),
        jac=lambda b: -one_hot.sum(axis=0) + len(y) * softmax(b) + 0.01 * b,
        tol=1e-12,
    ).x
    p = softmax(b)
    C, A = np.diag(p) - np.outer(p, p), np.column_stack([Z, np.ones(len(y))])
    H = np.kron(C, A.T @ A)  # classes outside, columns inside, the bias last of each class
    bias = np.arange(3) * 5 + 4
    free = np.setdiff1d(np.arange(15), bias)
    inner = H[np.ix_(bias, bias)] + 0.01 * np.eye(3)
    S = H[np.ix_(free, free)] - H[np.ix_(free, bias)] @ np.linalg.solve(inner, H[np.ix_(bias, free)])
    h, V = np.linalg.eigh(S)
    h, V = h[::-1][:8], V[:, ::-1][:, :8]
    slope = ((one_hot - p).T @ Z).ravel()
    assert_allclose(evidence["h"], h, rtol=1e-6)
    strength = (V.T @ slope) ** 2 / h  # h u^2
    assert_allclose(evidence["h"] * evidence["u_expansion"] ** 2, strength, rtol=1e-5, atol=1e-9)
    height = np.sum(one_hot * log_softmax(b)) - 0.005 * b @ b + 1.5 * np.log(0.01) - 0.5 * np.linalg.slogdet(inner)[1]
    gained = np.where(strength > 1, 0.5 * (strength - 1 - np.log(np.maximum(strength, 1))), 0.0).sum()
    assert_allclose(evidence["log_evidence"], height + gained, rtol=1e-8)


def test_a_softmax_of_the_users_own_is_the_named_one():
    Z, y = unbalanced()
    with pm.Model() as model:
        W = sparse("W", (3, 4))
        pm.Categorical("y", logit_p=pm.math.dot(Z, W.T) + pm.Normal("b", 0.0, 10.0, shape=3), observed=y)
    settings = {"method": "revm", "expansion": "zero"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bs.FitWarning)
        own = bs.fit(model, **settings, draws=100, chains=2, random_seed=0)
        named = bs.fit("ard_gaussian", (Z, y), likelihood="categorical", basis=BARE, **settings, draws=0)
    assert np.isnan(own["evidence"]["sd"]).all()  # nobody has said that its flat directions mean nothing
    same(own, named, rtol=1e-5, names=[name for name in NUMBERS if name != "sd"])
    expected = bs.predict(named, Z)["probability"].to_numpy()
    assert_allclose(bs.predict(own, model=model)["probability"], expected, atol=0.06)  # 200 draws, and 1000


def test_two_classes_are_nearly_those_of_the_bernoulli():
    """Log odds are the difference of two rows of weights, along which curvature and centre give the same h u^2.

    What differs is small: the ridge is on two rows instead of one, and two biases make a wider prior.
    """
    labels = np.where(BINARY, "yes", "no")
    two, one = (
        bs.fit("ard_gaussian", (X, labels), method="revm", likelihood=likelihood, draws=0)
        for likelihood in ("categorical", "bernoulli")
    )
    assert two["evidence"].attrs["directions_kept"] == one["evidence"].attrs["directions_kept"]
    assert_allclose(two["evidence"]["gamma"], one["evidence"]["gamma"], atol=0.02)
    assert_allclose(two["evidence"]["log_evidence"], one["evidence"]["log_evidence"], atol=0.5)
    p, q = bs.predict(two, NEW)["probability"], bs.predict(one, NEW)["probability"]
    assert p["class"].to_numpy().tolist() == q["class"].to_numpy().tolist() == ["no", "yes"]
    assert_allclose(p, q, atol=0.03)  # one averages over 1000 draws


def test_several_labels_ask_for_the_likelihood():
    with pytest.raises(ValueError, match=r"3 labels.*'categorical' \(the model 'student_multinomial'"):
        bs.fit("ard_gaussian", (IRIS.data, SPECIES), method="revm")
    for settings, said in (({"keep": "x0"}, "no `keep`"), ({"offset": np.ones(150)}, "no `offset`")):
        with pytest.raises(ValueError, match=said):
            bs.fit("ard_gaussian", (IRIS.data, SPECIES), method="revm", likelihood="categorical", **settings)
