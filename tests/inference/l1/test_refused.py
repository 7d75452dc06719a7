"""What `jeffreys_laplace` and its methods cannot do: one clear sentence. And models of the user's own."""

import warnings
from functools import partial

import numpy as np
import pymc as pm
import pytest
from numpy.testing import assert_allclose

import bayes_sparse as bs
from bayes_sparse.models import Declared
from tests.support import fit_path
from tests.support import refused as refused_with

RNG = np.random.default_rng(3)
N = 80
X = RNG.standard_normal((N, 4))
ETA = X @ np.array([1.5, -1.0, 0.5, 0.0])
Y = ETA + 0.4 * RNG.standard_normal(N)
CLASS = (ETA + RNG.logistic(size=N) > 0).astype(int)
COUNTS = RNG.poisson(np.exp(0.5 * ETA + 1.0))
refused = partial(refused_with, kind=(TypeError, ValueError))
METHODS = ["reweighted", "coordinate_descent", "fuzzy", "cv"]


def fit(data=(X, Y), **settings):
    return fit_path(data, **settings)


@pytest.mark.parametrize("method", [*METHODS, "nuts"])
def test_likelihoods_that_are_not_log_concave(method):
    refused(lambda: fit(likelihood="student_t", method=method, draws=1), "log-concave", "'student_t'", "'ard_gaussian'")
    classes = (X, np.arange(N) % 3)
    said = "log-concave", "'categorical'", "'student_multinomial'"
    refused(lambda: fit(classes, likelihood="categorical", method=method, draws=1), *said)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("smoothness", [1.0, "high", np.nan, None], ids=str)
def test_there_is_no_price_a_degree_of_freedom(method, smoothness):
    refused(lambda: fit(method=method, smoothness=smoothness), "leave out `smoothness`")


@pytest.mark.parametrize("method", [*METHODS, "evidence", "nuts"])
def test_there_is_no_gamma_prior(method):
    refused(lambda: fit(method=method, hyper=(1.0, 1.0)), "`hyper`", "leave it out", "bounds=(lo, hi)")


@pytest.mark.parametrize("lam", [0, 0.0, -1.0, np.nan, np.inf, "strong", [1.0]], ids=str)
def test_a_lambda_that_is_none(lam):
    refused(lambda: fit(lam=lam), "`lam`", "positive")


def test_a_lambda_has_one_solution():
    refused(lambda: fit(lam=1.0, all_points=True), "`lam`", "`all_points`")


@pytest.mark.parametrize("rule", ["worst", "1se", None, 1], ids=str)
def test_a_rule_that_is_none(rule):
    refused(lambda: fit(method="cv", rule=rule), "`rule`", "'best'", "'one_se'")


@pytest.mark.parametrize(
    "settings",
    [
        {"points": 1},
        {"points": 2.5},
        {"points": "many"},
        {"folds": 1},
        {"folds": 2.5},
        {"folds": "many"},
        {"weakest": 0.0},
        {"weakest": 1.0},
        {"weakest": np.nan},
        {"weakest": "weak"},
    ],
    ids=str,
)
def test_settings_of_a_cross_validation(settings):
    refused(lambda: fit(method="cv", **settings), f"`{next(iter(settings))}`")


def test_more_folds_than_rows_allow():
    refused(lambda: fit(method="cv", folds=41), "80 rows", "41 folds", "`folds`")


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, "small"], ids=str)
@pytest.mark.parametrize("name", ["eps", "sigma"])
def test_a_smoothing_that_is_none(name, value):
    refused(lambda: fit(method="fuzzy", **{name: value}), f"`{name}`", "positive")


@pytest.mark.parametrize("method", ["coordinate_descent", "fuzzy"])
def test_limits_of_a_search(method):
    refused(lambda: fit(method=method, max_iterations=0), "`max_iterations`")
    refused(lambda: fit(method=method, max_iterations=1.5), "`max_iterations`")
    refused(lambda: fit(method="coordinate_descent", tolerance=0.0), "`tolerance`")
    refused(lambda: fit(method="coordinate_descent", tolerance=np.nan), "`tolerance`")


@pytest.mark.parametrize("setting", ["max_iterations", "tolerance", "expansion", "folds"])
def test_a_setting_that_reweighted_does_not_have(setting):
    refused(lambda: fit(**{setting: 3}), "'reweighted'", repr(setting), "lam")


@pytest.mark.parametrize("sd", [0.0, -1.0, np.nan, "wide"], ids=str)
def test_a_prior_of_the_bias_that_is_none(sd):
    refused(lambda: fit(bias_sd=sd), "bias_sd")


@pytest.mark.parametrize("method", ["sequential", "mackay", "em", "revm", "full_matrix"])
def test_methods_for_other_priors(method):
    refused(lambda: fit(method=method), repr(method), "a jeffreys prior is fitted by", *map(repr, METHODS), "'nuts'")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("model", ["ard_gaussian", "gaussian_eigen", "laplace_eigen"])
def test_methods_of_the_path_for_other_models(model, method):
    refused(lambda: bs.fit(model, (X, Y), method=method), repr(method), "common scale of Laplace priors", "'revm'")


@pytest.mark.parametrize("method", METHODS)
def test_a_width_to_be_found_is_found_or_refused_in_words(method):
    """Which of the two is a matter of taste; a traceback is not."""
    data, settings = (X[:40, :1], Y[:40]), {"basis": bs.basis.rbf("evidence"), "method": method}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", bs.FitWarning)
            tree = fit(data, **settings)
    except (TypeError, ValueError):
        refused(lambda: fit(data, **settings), "width")
    else:
        assert tree["evidence"].attrs["width"] > 0


# --- models of the user's own ----------------------------------------------------------------------------------------


def declared(observe):
    with pm.Model(coords={"feature": list("abcd")}) as model:
        w = pm.Normal("w", 0.0, 1.0, dims="feature")
        observe(pm.Flat("b") + pm.math.dot(X, w))
    return Declared(model, sparse="w", prior="jeffreys")


def bernoulli(eta):
    pm.Bernoulli("y", logit_p=eta, observed=CLASS)


def poisson(eta):
    pm.Poisson("y", mu=pm.math.exp(eta), observed=COUNTS)


def written_out(eta):
    """A Poisson likelihood that PyMC does not know as one."""
    pm.CustomDist("y", eta, logp=lambda y, eta: y * eta - pm.math.exp(eta), observed=COUNTS.astype(float))


@pytest.mark.parametrize("method", METHODS[:3])
@pytest.mark.parametrize(
    ("observe", "likelihood", "y"),
    [(bernoulli, "bernoulli", CLASS), (poisson, "poisson", COUNTS), (written_out, "poisson", COUNTS)],
    ids=["bernoulli", "poisson", "custom"],
)
def test_a_log_concave_model_of_the_users_is_the_named_one(observe, likelihood, y, method):
    model = declared(observe)
    ours = bs.fit(model, method=method, draws=5, progressbar=False)["evidence"]
    bare = bs.basis.linear(standardise=False)
    named = fit((X, y), likelihood=likelihood, basis=bare, method=method)["evidence"]
    assert ours.attrs["status"] == named.attrs["status"] != "null"
    for name in ("lambda", "N", "R", "r", "mean", "sd", "pull"):
        assert_allclose(ours[name], named[name], rtol=1e-5, atol=1e-7, err_msg=name)
    assert_allclose(ours["b"], named["bias"], rtol=1e-5)
    assert ours["basis"].to_numpy().tolist() == list("abcd")


def test_a_users_model_has_reweighted_as_its_default_and_predicts():
    model = declared(bernoulli)
    tree = bs.fit(model, draws=5, progressbar=False)
    assert tree["evidence"].attrs["method"] == "reweighted"
    named = fit((X, CLASS), basis=bs.basis.linear(standardise=False))
    found, truth = bs.predict(tree, model=model.model)["probability"], bs.predict(named, X)["probability"]
    assert_allclose(found, truth, rtol=1e-4)


def test_a_users_likelihood_that_is_not_log_concave_is_said():
    """There is a path all the same, and a point on it, but maybe not the only one."""
    model = declared(lambda eta: pm.StudentT("y", nu=3, mu=eta, sigma=0.4, observed=Y))
    with pytest.warns(bs.FitWarning, match="not log-concave") as caught:
        evidence = bs.fit(model, draws=0, progressbar=False)["evidence"]
    assert len(caught) == 1
    z = (Y - float(evidence["b"]) - X @ evidence["mean"].to_numpy()) / 0.4
    slope = X.T @ (4 * z / (3 + z**2) / 0.4)
    inside = evidence["kept"].to_numpy()
    assert_allclose(
        (slope / float(evidence["lambda"]))[inside], np.sign(evidence["mean"].to_numpy()[inside]), rtol=1e-5
    )


def test_what_a_users_model_with_this_prior_cannot_have():
    model = declared(bernoulli)
    refused(lambda: bs.fit(model, method="sequential"), "'sequential'", "'reweighted'")
    refused(lambda: bs.fit(model, smoothness=1.0), "leave out `smoothness`")
    refused(lambda: bs.fit(model.model, method="reweighted"), "'reweighted'", "a gaussian prior is fitted by")
    refused(lambda: bs.fit(Declared(model.model, prior="jefreys")), "'jefreys'", "jeffreys")
    with pytest.raises(ValueError, match="hyper") as error:
        bs.fit(model, hyper=(1.0, 1.0))
    assert "mackay" not in str(error.value)  # which cannot fit this prior either
