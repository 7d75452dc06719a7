"""The front door: arguments, statuses with their warnings, and what is recorded about a fit."""

import inspect
import json
import warnings

import numpy as np
import pytest
import xarray as xr
from scipy import stats

import bayes_sparse as bs

pytestmark = pytest.mark.quick

RNG = np.random.default_rng(23)
N = 60
X = RNG.standard_normal((N, 4))
Y = X @ np.array([2.0, 0.0, -1.0, 0.0]) + 0.4 * RNG.standard_normal(N)
NOISE = RNG.standard_normal((N, 30))
SMALL = {"draws": 20, "chains": 2}
EVIDENCE_METHODS = ["sequential", "mackay", "em"]


def test_the_signature_is_the_contract():
    parameters = inspect.signature(bs.fit).parameters
    defaults = {name: p.default for name, p in parameters.items() if p.default is not p.empty}
    assert list(parameters)[:2] == ["model", "data"]
    assert all(p.kind is p.KEYWORD_ONLY for name, p in parameters.items() if name not in ("model", "data", "settings"))
    assert parameters["settings"].kind is inspect.Parameter.VAR_KEYWORD
    assert defaults == {
        "data": None,
        "method": "evidence",
        "target": None,
        "likelihood": "auto",
        "basis": "linear",
        "keep": None,
        "keep_columns": None,
        "weights": None,
        "offset": None,
        "missing": "refuse",
        "formula": None,
        "draws": 1000,
        "chains": 4,
        "random_seed": None,
        "progressbar": True,
    }


@pytest.mark.parametrize("method", EVIDENCE_METHODS)
def test_a_good_fit_warns_nothing_and_says_how_it_was_made(method):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tree = bs.fit("ard_gaussian", (X, Y), method=method, random_seed=0, **SMALL)
    assert isinstance(tree, xr.DataTree)
    attributes = tree["evidence"].attrs
    assert attributes["method"] == method
    assert attributes["approximation"] == "exact"
    assert attributes["status"] == "converged"
    assert attributes["n_iterations"] >= 1
    assert attributes["seconds"] > 0
    assert list(attributes["hyper"]) == [0.0, 0.0]
    assert attributes["smoothness"] > 0
    assert {"bayes_sparse", "pymc", "numpy"} <= set(json.loads(attributes["versions"]))
    history = tree["evidence"]["history"].to_numpy()
    assert np.all(np.diff(history) >= -1e-6)
    assert attributes["reestimated"] == 1  # at no price, which the history has
    assert history[-1] < tree["evidence"]["objective"] == tree["evidence"]["log_evidence"]
    assert tree["evidence"]["kept"].to_numpy().tolist() == [True, False, True, False]


def test_evidence_is_the_models_default():
    default = bs.fit("ard_gaussian", (X, Y), draws=0)
    assert default["evidence"].attrs["method"] == bs.models.ARDGaussian.default_method
    np.testing.assert_array_equal(
        default["evidence"]["mean"],
        bs.fit("ard_gaussian", (X, Y), method=bs.models.ARDGaussian.default_method, draws=0)["evidence"]["mean"],
    )


def test_a_method_may_be_an_object_with_settings():
    from bayes_sparse.methods.mackay import MacKay

    tree = bs.fit("ard_gaussian", (X, Y), method=MacKay(max_iterations=500, tolerance=1e-3), draws=0)
    assert tree["evidence"].attrs["method"] == "mackay"
    closer = bs.fit("ard_gaussian", (X, Y), method=MacKay(max_iterations=500), tolerance=1e-9, draws=0)
    assert closer["evidence"].attrs["n_iterations"] > tree["evidence"].attrs["n_iterations"]


def test_a_model_may_be_an_object_with_settings():
    basis = bs.basis.linear(standardise=False)
    narrow = bs.fit(bs.models.ARDGaussian(bias_sd=1e-3), (X, Y + 3), basis=basis, draws=0)["evidence"]
    wide = bs.fit("ard_gaussian", (X, Y + 3), basis=basis, draws=0)["evidence"]
    assert abs(narrow["bias"].item()) < 0.1
    np.testing.assert_allclose(wide["bias"], 3.0, atol=4 * wide["bias_sd"].item())


@pytest.mark.parametrize(("smoothness", "kept"), [(0, "more"), (50.0, "none")])
def test_smoothness_is_the_price_of_a_term(smoothness, kept):
    columns = np.column_stack([X, NOISE])
    auto = bs.fit("ard_gaussian", (columns, Y), draws=0)["evidence"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bs.FitWarning)
        priced = bs.fit("ard_gaussian", (columns, Y), smoothness=smoothness, draws=0)["evidence"]
    assert priced.attrs["smoothness"] == smoothness
    if kept == "more":
        assert priced["kept"].sum() > auto["kept"].sum()
        np.testing.assert_allclose(priced["objective"], priced["log_evidence"], rtol=1e-10)
    else:
        assert priced["kept"].sum() < auto["kept"].sum() + 1
    assert set(np.flatnonzero(auto["kept"])) == {0, 2}


@pytest.mark.parametrize("method", EVIDENCE_METHODS)
@pytest.mark.parametrize("basis", [bs.basis.linear(bias=False, standardise=False), bs.basis.rbf(1.5, bias=False)])
def test_the_log_evidence_is_the_density_of_the_targets(method, basis):
    evidence = bs.fit("ard_gaussian", (X, Y), method=method, basis=basis, smoothness=1.0, draws=0)["evidence"]
    active = evidence["kept"].to_numpy()
    Phi = basis.matrix(X, X)[:, active]
    covariance = evidence["sigma"].item() ** 2 * np.eye(N) + (Phi / evidence["alpha"].to_numpy()[active]) @ Phi.T
    expected = stats.multivariate_normal.logpdf(Y, np.zeros(N), covariance)
    np.testing.assert_allclose(evidence["log_evidence"], expected, rtol=1e-9)


def test_a_proper_hyper_prior_prunes_nothing():
    tree = bs.fit("ard_gaussian", (X, Y), hyper=(0.5, 0.005), draws=0)["evidence"]
    assert list(tree.attrs["hyper"]) == [0.5, 0.005]
    assert tree.attrs["smoothness"] == 0
    assert tree["kept"].all()
    assert np.isfinite(tree["alpha"]).all()


@pytest.mark.parametrize("likelihood", ["normal", "bernoulli"])
@pytest.mark.parametrize("bias", [True, False])
def test_status_null(likelihood, bias):
    y = RNG.standard_normal(N)
    with pytest.warns(bs.FitWarning, match="No basis function pays for itself"):
        tree = bs.fit(
            "ard_gaussian",
            (X, y if likelihood == "normal" else y > 0),
            smoothness=40.0,
            basis=bs.basis.linear(bias=bias),
            **SMALL,
        )
    evidence = tree["evidence"]
    assert evidence.attrs["status"] == "null"
    assert not evidence["kept"].any()
    assert np.isposinf(evidence["alpha"]).all()
    assert np.all(evidence["mean"] == 0)
    assert "w" not in tree["posterior"]
    prediction = bs.predict(tree, X)
    if likelihood == "normal":
        np.testing.assert_allclose(prediction["mean"], evidence["bias"] if bias else 0.0)
    elif not bias:
        np.testing.assert_allclose(prediction["probability"], 0.5)


def test_status_max_iterations():
    with pytest.warns(bs.FitWarning, match="did not converge .* raise max_iterations or tolerance"):
        tree = bs.fit("ard_gaussian", (X, Y), method="mackay", max_iterations=1, draws=0)
    assert tree["evidence"].attrs["status"] == "max_iterations"
    assert np.isfinite(tree["evidence"]["objective"])


@pytest.mark.parametrize("method", ["sequential", "em"])
def test_every_search_has_a_limit(method):
    with pytest.warns(bs.FitWarning, match="did not converge"):
        tree = bs.fit("ard_gaussian", (X, Y), method=method, max_iterations=1, draws=0)
    assert tree["evidence"].attrs["status"] == "max_iterations"


def test_status_separable():
    with pytest.warns(bs.FitWarning, match="separate the classes perfectly.*check with method='nuts'"):
        tree = bs.fit("ard_gaussian", (X, X[:, 1] > 0.1), slab=None, draws=0)
    assert tree["evidence"].attrs["status"] == "separable"
    probability = bs.predict(tree, X)["probability"].to_numpy()
    assert np.all((probability > 0) & (probability < 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        held = bs.fit("ard_gaussian", (X, X[:, 1] > 0.1), draws=0)  # a slab is the cure, and there by default
    assert held["evidence"].attrs["status"] == "converged"


def test_status_noise_collapsed():
    wide = RNG.standard_normal((30, 200))
    y = wide[:, 0] + 0.1 * RNG.standard_normal(30)
    with pytest.warns(bs.FitWarning, match="noise has collapsed.*raise `smoothness` or offer fewer basis functions"):
        tree = bs.fit("ard_gaussian", (wide, y), smoothness=0, draws=0)
    assert tree["evidence"].attrs["status"] == "noise_collapsed"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cured = bs.fit("ard_gaussian", (wide, y), draws=0)
    assert cured["evidence"].attrs["status"] == "converged"


def test_noise_collapses_on_a_target_without_noise():
    with pytest.warns(bs.FitWarning, match="noise has collapsed"):
        tree = bs.fit("ard_gaussian", (X, 1.0 + 2.0 * X[:, 0] - X[:, 1]), draws=0)
    assert tree["evidence"].attrs["status"] == "noise_collapsed"
    np.testing.assert_allclose(tree["evidence"]["mean"], [2.0, -1.0, 0.0, 0.0], atol=1e-3)


def test_a_warning_points_at_the_line_that_called_fit():
    with pytest.warns(bs.FitWarning) as caught:
        bs.fit("ard_gaussian", (X, Y), method="mackay", max_iterations=1, draws=0)
    assert [w.filename for w in caught] == [__file__]


def test_a_kept_column_is_not_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tree = bs.fit("ard_gaussian", (X[:, :1], Y), keep="x0", draws=0)
    assert tree["evidence"].attrs["status"] == "converged"


def test_two_fits_with_the_same_seed_are_equal():
    one, two = (bs.fit("ard_gaussian", (X, Y), random_seed=5, **SMALL) for _ in range(2))
    other = bs.fit("ard_gaussian", (X, Y), random_seed=6, **SMALL)
    assert one["posterior"].to_dataset().identical(two["posterior"].to_dataset())
    assert one["log_likelihood"].to_dataset().identical(two["log_likelihood"].to_dataset())
    assert not np.array_equal(one["posterior"]["w"], other["posterior"]["w"])
    np.testing.assert_array_equal(one["evidence"]["mean"], other["evidence"]["mean"])


def test_draws_do_not_touch_the_global_generator():
    np.random.seed(0)  # noqa: NPY002
    expected = np.random.random()  # noqa: NPY002
    np.random.seed(0)  # noqa: NPY002
    bs.fit("ard_gaussian", (X, Y), **SMALL)
    assert np.random.random() == expected  # noqa: NPY002


def test_plain_nuts_says_which_prior_stands_in(messages, monkeypatch):
    """The sampler itself is not run: only what is said and declared before it."""

    class Stop(Exception):
        pass

    def stop(model, start):
        raise Stop(model, start)

    monkeypatch.setattr("bayes_sparse.fitting.nuts.sample.sampler_of", stop)
    with pytest.raises(Stop) as stopped:
        bs.fit(
            "ard_gaussian",
            (X, Y),
            method="nuts",
            centred=False,
            draws=7,
            chains=3,
            random_seed=1,
            sample_kwargs={"cores": 1},
        )
    model, start = stopped.value.args
    assert set(start.values) == {"alpha", "z", "bias", "sigma"}
    assert {rv.name for rv in model.free_RVs} == {"alpha", "z", "bias", "sigma"}
    assert len(messages) == 1
    assert "Gamma(1, 0.1), with a slab of 2.5," in messages[0]
    assert "hyper=(a, b)" in messages[0]
    messages.clear()
    with pytest.raises(Stop):
        bs.fit("ard_gaussian", (X, Y), method="nuts", hyper=(1.0, 1.0))
    assert messages == []


@pytest.mark.parametrize(
    ("by_name", "on_objects"),
    [
        ({"hyper": (1.0, 0.1)}, {"model": bs.models.ARDGaussian(hyper=(1.0, 0.1))}),
        ({"method": "mackay", "smoothness": 0}, {"method": bs.methods.MacKay(smoothness=0)}),
        ({"method": "em", "max_iterations": 3}, {"method": bs.methods.EM(max_iterations=3)}),
        ({"method": "mackay", "approximation": "laplace"}, {"method": bs.methods.MacKay(approximation="laplace")}),
        ({"method": "revm", "prior": "laplace"}, {"method": bs.methods.REVM(prior="laplace")}),
    ],
    ids=["hyper", "smoothness", "max_iterations", "approximation", "prior"],
)
@pytest.mark.filterwarnings("ignore::bayes_sparse.FitWarning")
def test_settings_by_name_are_those_of_the_objects(by_name, on_objects):
    first, second = (
        bs.fit(data=(X, Y), draws=0, **({"model": "ard_gaussian"} | asked)) for asked in (by_name, on_objects)
    )
    xr.testing.assert_equal(first["evidence"].to_dataset(), second["evidence"].to_dataset())


def test_a_laplace_prior_of_the_method_is_the_laplace_model():
    theirs, ours = (
        bs.fit(model, (X, Y), method="revm", draws=0, **asked)["evidence"].to_dataset()
        for model, asked in (("laplace_eigen", {}), ("ard_gaussian", {"prior": "laplace"}))
    )
    xr.testing.assert_equal(theirs, ours)


@pytest.mark.parametrize(
    ("wrong", "meant"), [("smothness", "smoothness"), ("hypr", "hyper"), ("weigths", "weights"), ("lamb", None)]
)
def test_a_misspelt_setting_is_met_with_the_right_one(wrong, meant):
    with pytest.raises(TypeError, match=rf"nor the model has a setting '{wrong}'") as error:
        bs.fit("ard_gaussian", (X, Y), **{wrong: 1})
    assert str(error.value).endswith(f"Did you mean '{meant}'?") == (meant is not None)


def test_settings_of_a_sampler_mean_nothing_to_an_evidence_method():
    bs.fit("ard_gaussian", (X, Y), draws=0, sample_kwargs={"cores": 1})  # a ladder gives them to all its rungs
    for name in ("hyper", "max_iterations", "tolerance", "sample_kwargs"):
        bs.fit("ard_gaussian", (X, Y), draws=0, **{name: None})


def test_the_price_reaches_the_fit_that_nuts_conditions_on():
    asked = {"draws": 4, "chains": 1, "random_seed": 0, "progressbar": False}
    tree = bs.fit(
        "ard_gaussian", (X, Y), method="nuts", condition="alpha", sampler="pymc", tune=2, smoothness=1.25, **asked
    )
    alone = bs.fit("ard_gaussian", (X, Y), smoothness=1.25, draws=0)
    np.testing.assert_array_equal(tree["evidence"]["alpha"], alone["evidence"]["alpha"])
    assert alone["evidence"].attrs["smoothness"] == 1.25


def test_the_grid_is_read_off_the_code():
    models, methods = repr(bs.models), repr(bs.methods)
    for name in ("ard_gaussian", "jeffreys_laplace", "Gamma(1, 0.1)", "any pm.Model of your own"):
        assert name in models
    for name in ("sequential", "l1_path", "smoothness", "condition='alpha'"):
        assert name in methods
    (row,) = [line for line in models.splitlines() if line.split()[:1] == ["laplace_eigen"]]
    assert "revm" in row
    assert "mackay" not in row


@pytest.mark.parametrize(
    "method", [len, bs.methods.MacKay, 3, lambda: None], ids=["function", "class", "number", "lambda"]
)
def test_what_is_no_method_is_refused(method):
    with pytest.raises(TypeError, match=r"^The method must be a name \(coordinate_descent, .*\) or an object of"):
        bs.fit("ard_gaussian", (X, Y), method=method)
