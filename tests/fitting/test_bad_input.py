"""Bad input: one sentence that says what is wrong, where, and what to do. And Ctrl-C."""

import numpy as np
import pandas as pd
import polars as pl
import pymc as pm
import pytest
import xarray as xr

import bayes_sparse as bs
from bayes_sparse.common import memory, progress
from bayes_sparse.inputs import prepare as prepare_module
from tests.support import assert_one_sentence, refused

pytestmark = pytest.mark.quick

RNG = np.random.default_rng(83)
N = 40
NAMES = ["age", "dose", "height"]
X = RNG.standard_normal((N, 3))
Y = X[:, 0] - X[:, 2] + 0.3 * RNG.standard_normal(N)
CLASS = np.where(X[:, 0] + RNG.logistic(size=N) > 0, "sick", "healthy")


def table(**changes):
    return pd.DataFrame(X, columns=NAMES).assign(y=Y, **changes)


def fit(data, **settings):
    return bs.fit("ard_gaussian", data, **({"draws": 0} | settings))


def put(values, where, what):
    out = np.array(values, dtype=float)
    out[where] = what
    return out


# --- values ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", [np.nan, np.inf, -np.inf])
def test_not_finite_features_are_counted_by_column(what):
    dose = put(X[:, 1], [4, 7, 9], what)
    refused(lambda: fit(table(dose=dose), target="y"), "'dose' (3)", "row 4", "remove")
    refused(lambda: fit((put(X, (5, 2), what), Y)), "'x2' (1)", "row 5")
    both = table(dose=dose, age=put(X[:, 0], [1], what))
    refused(lambda: fit(both, target="y"), "'dose' (3)", "'age' (1)")


@pytest.mark.parametrize("what", [np.nan, np.inf])
def test_a_target_that_is_not_finite(what):
    refused(lambda: fit((X, put(Y, [3, 8], what))), "'y'", "2 NaN or infinite values", "row 3", "remove")


def test_a_missing_label():
    labels = CLASS.astype(object)
    labels[6] = None
    refused(lambda: fit((X, labels)), "'y'", "1 NaN", "row 6")
    refused(lambda: fit((X, pd.Series(labels))), "'y'", "1 NaN", "row 6")


def test_missing_values_of_pandas_and_polars():
    refused(lambda: fit(table(dose=pd.array([pd.NA, *X[1:, 1]], dtype="Float64")), target="y"), "'dose'")
    frame = pl.DataFrame({"a": [None, *X[1:, 0].tolist()], "y": Y})
    refused(lambda: fit(frame, target="y"), "'a' (1)")


def test_lengths_that_differ():
    refused(lambda: fit((X, Y[:-3])), "40 rows", "37 values")
    refused(lambda: fit((X, Y), weights=np.ones(5)), "`weights`", "5 values for 40 observations")
    refused(lambda: fit((X, Y), offset=np.ones(41)), "`offset`", "41 values for 40 observations")


@pytest.mark.parametrize("one", [np.repeat("sick", N), np.ones(N, dtype=int), np.zeros(N, dtype=bool)])
def test_one_class_only(one):
    refused(lambda: fit((X, one), target="state"), "'state'", "one class only")


def test_three_classes_for_two():
    labels = np.array(["a", "b", "c"])[np.arange(N) % 3]
    refused(lambda: fit((X, labels), likelihood="bernoulli"), "3 classes", "'a', 'b', 'c'", "takes two")


def test_a_constant_target():
    refused(lambda: fit((X, np.full(N, 2.5)), likelihood="normal"), "'y'", "constant", "2.5")


def test_a_constant_column_that_is_to_be_kept():
    refused(lambda: fit(table(dose=3.0), target="y", keep="dose"), "'dose'", "bias", "drop")
    refused(lambda: fit(table(dose=0.1), target="y", keep="dose"), "'dose'")  # its computed sd is not exactly zero
    refused(lambda: fit((np.ones((N, 2)), Y)), "Every column is constant")
    tree = fit(table(dose=3.0), target="y", basis=bs.basis.linear(bias=False, standardise=False))
    assert tree["evidence"].attrs["status"] == "converged"


def test_duplicate_columns_are_pointed_out_and_one_is_used():
    with pytest.warns(UserWarning, match="Columns") as caught:
        tree = fit(table(copy=X[:, 0], again=X[:, 2]), target="y")
    message = str(caught[0].message)
    assert_one_sentence(message, "'copy' is 'age', 'again' is 'height'")
    relevant = tree["evidence"]["kept"]
    assert relevant.sel(basis=["age", "copy"]).sum() == 1
    assert relevant.sel(basis=["height", "again"]).sum() == 1


def test_the_warning_about_duplicates_points_at_the_callers_line():
    with pytest.warns(UserWarning, match="Columns") as caught:
        bs.fit("ard_gaussian", table(copy=X[:, 0]), target="y", draws=0)
    assert caught[0].filename == __file__


def test_two_columns_of_one_name():
    frame = table()
    frame.columns = ["age", "age", "height", "y"]
    refused(lambda: fit(frame, target="y"), "'age'", "more than once")


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (pd.date_range("2020-01-01", periods=N), "days since the first one"),
        (pd.date_range("2020-01-01", periods=N).date, "days since the first one"),
        (pd.timedelta_range("1h", periods=N), "dates or times"),
        ([f"patient {i}" for i in range(N)], "40 different words in 40 rows"),
        (["unknown", *X[1:, 1].tolist()], "'unknown', for one, among numbers"),
        (pd.Categorical([1, "1"] * (N // 2)), "two levels called '1'"),
    ],
    ids=["dates", "dates as objects", "durations", "names", "numbers and words", "two of one name"],
)
def test_a_column_that_is_neither_numbers_nor_categories(column, said):
    refused(lambda: fit(table(dose=column), target="y"), "'dose'", said)


def test_strings_among_the_values_of_an_array():
    mixed = X.astype(object)
    mixed[3, 1] = "high"
    refused(lambda: fit((mixed, Y)), "'x1'", "'high'")


# --- shape -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "mention"),
    [
        (lambda: table().iloc[:0], "rows"),
        (lambda: pd.DataFrame(), "empty"),
        (lambda: pl.DataFrame(), "empty"),
        (lambda: table()[["y"]], "feature columns"),
        (lambda: (np.empty((0, 3)), np.empty(0)), "rows"),
        (lambda: (np.empty((N, 0)), Y), "feature columns"),
    ],
    ids=["no rows", "nothing", "nothing in polars", "target only", "no rows in arrays", "no columns in arrays"],
)
def test_an_empty_frame(data, mention):
    target = "y" if not isinstance(data(), tuple) else None
    refused(lambda: fit(data(), target=target), "empty", mention)


def test_data_of_the_wrong_kind():
    refused(lambda: fit(None), "(X, y)", "target=")
    refused(lambda: fit((X, Y, Y)), "(X, y)", "3")
    refused(lambda: fit("data.csv"), "str", "DataFrame", kind=TypeError)
    refused(lambda: fit([X, Y]), "list", "(X, y)", kind=TypeError)
    refused(lambda: fit((X[None], Y)), "3 dimensions")
    refused(lambda: fit((X, np.column_stack([Y, Y]))), "target", "(40, 2)")


def test_a_target_that_is_not_there():
    refused(lambda: fit(table()), "target=", "'age'")
    refused(lambda: fit(table(), target="yield"), "'yield'", "'age'")
    refused(lambda: fit(table(), target="y", weights="mass"), "'mass'", "'age'")


def test_a_dataset_whose_variables_do_not_fit_together():
    refused(lambda: fit(xr.Dataset({"m": (("a", "b"), X)}), target="m"), "target")
    odd = xr.Dataset({"x": ("row", Y), "y": ("row", Y), "z": ("other", np.arange(3.0))})
    refused(lambda: fit(odd, target="y"), "'z'", "'row'")


@pytest.mark.parametrize("name", ["weights", "offset"])
def test_weights_and_offsets_are_numbers(name):
    refused(lambda: fit((X, Y), **{name: put(np.ones(N), [0, 1], np.nan)}), f"`{name}`", "2 NaN")
    refused(lambda: fit((X, Y), **{name: CLASS.tolist()}), f"`{name}`", "number")
    refused(lambda: fit((X, Y), **{name: X}), f"`{name}`", "(40, 3)")


def test_weights_are_not_negative():
    refused(lambda: fit((X, Y), weights=np.linspace(-1, 1, N)), "`weights`", "negative")
    refused(lambda: fit((X, Y), weights=np.zeros(N)), "`weights`", "zero")


def test_keep_names_what_is_there():
    refused(lambda: fit(table(), target="y", keep="doze"), "'doze'", "age, dose, height")
    refused(lambda: fit(table(), target="y", keep=["age", "doze"]), "'doze'")


# --- choices ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "wrong", "real", "close"),
    [
        ({"method": "sequentail"}, "'sequentail'", ["em", "mackay", "nuts", "sequential"], "'sequential'"),
        ({"likelihood": "poison"}, "'poison'", ["bernoulli", "negative_binomial", "normal", "poisson"], "'poisson'"),
        ({"basis": "lineer"}, "'lineer'", ["inner_product", "linear", "polynomial", "precomputed", "rbf"], "'linear'"),
        ({"model": "ard_gausian"}, "'ard_gausian'", ["ard_gaussian"], "'ard_gaussian'"),
    ],
    ids=["method", "likelihood", "basis", "model"],
)
def test_an_unknown_name_lists_the_real_ones(settings, wrong, real, close):
    arguments = {"model": "ard_gaussian", "data": (X, Y)} | settings
    message = refused(lambda: bs.fit(**arguments), wrong, *real)
    assert message.endswith(f"Did you mean {close}?")
    kind = next(iter(settings))
    assert f"no {kind}" in message


@pytest.mark.parametrize("choice", ["model", "method", "likelihood", "basis"])
@pytest.mark.parametrize("thing", [3, None, object()], ids=["number", "None", "object"])
def test_a_choice_that_is_no_choice_at_all(choice, thing):
    arguments = {"model": "ard_gaussian", "data": (X, Y), "draws": 0} | {choice: thing}
    refused(lambda: bs.fit(**arguments), choice, kind=(TypeError, ValueError))


@pytest.mark.parametrize(
    "arguments",
    [{"model": bs.models.ARDGaussian}, {"likelihood": bs.likelihoods.normal}, {"basis": bs.basis.linear}],
    ids=["model", "likelihood", "basis"],
)
def test_a_choice_without_its_brackets_is_its_default_or_refused_in_words(arguments):
    kind = next(iter(arguments))
    try:
        tree = bs.fit(**({"model": "ard_gaussian", "data": (X, Y), "draws": 0} | arguments))
    except (TypeError, ValueError) as error:
        assert_one_sentence(str(error), kind)
    else:
        np.testing.assert_array_equal(tree["evidence"]["mean"], fit((X, Y))["evidence"]["mean"])


@pytest.mark.parametrize(
    ("likelihood", "y", "mention"),
    [
        ("poisson", Y, "counts"),
        ("negative_binomial", -np.arange(N), "counts"),
        ("normal", CLASS, "labels"),
        ("poisson", CLASS, "labels"),
    ],
)
def test_a_likelihood_that_cannot_take_the_target(likelihood, y, mention):
    refused(lambda: fit((X, y), likelihood=likelihood), repr(likelihood), "'y'", mention)


@pytest.mark.parametrize(
    "settings",
    [
        {"draws": -1},
        {"draws": 1.5},
        {"draws": True},
        {"draws": None},
        {"draws": "many"},
        {"chains": 0},
        {"max_iterations": 0},
        {"tolerance": 0.0},
        {"tolerance": np.nan},
        {"smoothness": -1.0},
        {"smoothness": "high"},
        {"smoothness": np.nan},
        {"smoothness": None},
        {"hyper": 3},
        {"hyper": (1, 2, 3)},
        {"hyper": (-1.0, 1.0)},
        {"hyper": (np.nan, 1.0)},
    ],
    ids=str,
)
def test_settings_out_of_range(settings):
    name = next(iter(settings))
    refused(lambda: fit((X, Y), **settings), f"`{name}`", kind=(TypeError, ValueError))


def test_hyper_priors_that_a_method_cannot_use():
    refused(lambda: fit((X, Y), hyper=(1.0, 0.0)), "hyper=(1.0, 0.0)", "b > 0")
    refused(lambda: fit((X, Y), hyper=(1.0, 1.0), method="sequential"), "'sequential'", "'mackay'")


@pytest.mark.parametrize("hyper", [(0, 0), (0.0, 1.0), (1.0, 0.0)])
def test_nuts_refuses_an_improper_hyper_prior_and_names_a_neighbour(hyper):
    refused(lambda: fit((X, Y), method="nuts", hyper=hyper), "improper", "hyper=(1, 0.1)")


def test_settings_of_likelihoods():
    refused(lambda: bs.likelihoods.student_t(nu=0.0), "nu > 0")


# --- size ------------------------------------------------------------------------------------------------------------


NEED_ALL_KERNELS = [
    ("ard_gaussian", "mackay"),
    ("ard_gaussian", "em"),
    ("ard_gaussian", "full_matrix"),
    ("ard_gaussian", "variational"),
    ("ard_gaussian", "nuts"),
    ("horseshoe", "global_local"),
    ("laplace_eigen", "revm"),
    ("jeffreys_laplace", "reweighted"),
]


@pytest.mark.parametrize(("model", "method"), NEED_ALL_KERNELS)
def test_a_kernel_matrix_that_does_not_fit_is_refused_before_it_is_made(monkeypatch, model, method):
    monkeypatch.setattr(memory, "physical_memory", lambda: 2 * 8 * N * N - 2)
    sizes, matrix = [], bs.basis.rbf.matrix

    def watched(self, rows, centres):
        sizes.append(len(rows))
        return matrix(self, rows, centres)

    monkeypatch.setattr(bs.basis.rbf, "matrix", watched)
    monkeypatch.setattr(prepare_module, "_BLOCK", 0)  # looked at row by row
    needs = ("kernel matrix", f"{N} rows", "0.0 GiB", "as a whole", "'sequential'", "sample")
    refused(lambda: bs.fit(model, (X, Y), basis=bs.basis.rbf(1.0), method=method), *needs)
    assert N not in sizes


def test_a_kernel_matrix_that_fits_is_made(monkeypatch):
    monkeypatch.setattr(memory, "physical_memory", lambda: 2 * 8 * N * N)
    tree = fit((X, Y), basis=bs.basis.inner_product(), method="mackay", smoothness=1.0)
    assert tree["evidence"].sizes["basis"] == N


# --- models of the user's own ----------------------------------------------------------------------------------------


def test_a_model_without_a_sparse_prior():
    with pm.Model() as model:
        pm.Normal("y", X @ pm.Normal("w", 0.0, 1.0, shape=3), 1.0, observed=Y)
    refused(lambda: bs.fit(model), "'w'", "sparse prior", "sparse=['w']")


def test_a_model_with_discrete_latent_variables():
    with pm.Model() as model:
        w = pm.Normal("w", 0.0, tau=pm.Gamma("alpha", 1.0, 1.0, shape=3), shape=3)
        switch = pm.Bernoulli("switch", 0.5, shape=3)
        pm.Normal("y", X @ (w * switch), 1.0, observed=Y)
    refused(lambda: bs.fit(model), "'switch'", "discrete")


def test_a_model_without_observations():
    with pm.Model() as model:
        pm.Normal("w", 0.0, tau=pm.Gamma("alpha", 1.0, 1.0, shape=3), shape=3)
    refused(lambda: bs.fit(model), "observed")


def test_a_model_that_is_not_linear():
    with pm.Model() as model:
        w = pm.Normal("w", 0.0, tau=pm.Gamma("alpha", 1.0, 1.0, shape=3), shape=3)
        pm.Normal("y", pm.math.dot(X, w**2), 1.0, observed=Y)
    refused(lambda: bs.fit(model), "'w'", "linear")


# --- warnings with a cure --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "settings", "cure"),
    [
        ((X, X[:, 1] > 0), {}, "method='nuts'"),
        ((X, 1 + 2 * X[:, 0]), {}, "smoothness"),
        ((X, Y), {"method": "mackay", "max_iterations": 1}, "max_iterations"),
        ((RNG.standard_normal((N, 3)), Y), {"smoothness": 40.0}, "bias only"),
    ],
    ids=["separable", "noise_collapsed", "max_iterations", "null"],
)
def test_what_goes_wrong_in_a_fit_is_one_warning_with_a_cure(data, settings, cure):
    with pytest.warns(bs.FitWarning) as caught:
        fit(data, **settings)
    assert len(caught) == 1
    assert_one_sentence(str(caught[0].message), cure)


# --- Ctrl-C ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["sequential", "mackay", "em"])
@pytest.mark.parametrize("likelihood", ["normal", "bernoulli"])
def test_ctrl_c_leaves_everything_usable(monkeypatch, capfd, method, likelihood):
    data = (X, Y) if likelihood == "normal" else (X, CLASS)
    settings = {"method": method, "smoothness": 0.1}
    before = fit(data, **settings)
    reported, stopped = [], []
    with monkeypatch.context() as patched:
        patched.setattr(progress, "_PATIENCE", 0.0)
        patched.setenv("FORCE_COLOR", "1")  # as on a terminal, where the bar is
        stop = progress.Progress.stop
        patched.setattr(progress.Progress, "stop", lambda self: (stop(self), stopped.append(self)))
        show = progress.FitProgress.__call__

        def interrupt(self, *report):
            show(self, *report)
            reported.append(self)
            raise KeyboardInterrupt

        patched.setattr(progress.FitProgress, "__call__", interrupt)
        with pytest.raises(KeyboardInterrupt):
            fit(data, **settings)
    assert len(reported) == 1
    assert len(stopped) == 1
    assert stopped[0].live.is_started is False
    capfd.readouterr()
    after = fit(data, **settings)
    for name in ("mean", "sd", "alpha", "history"):
        np.testing.assert_array_equal(after["evidence"][name], before["evidence"][name])


def test_ctrl_c_in_a_prediction_restores_the_users_data(monkeypatch):
    from bayes_sparse.results.predict import own_model as declared

    with pm.Model() as model:
        table = pm.Data("X", X)
        w = pm.Normal("w", 0.0, tau=pm.Gamma("alpha", 1.0, 1.0, shape=3), shape=3)
        pm.Normal("y", table @ w, 0.3, observed=Y)
    tree = bs.fit(model, draws=0)
    expected = bs.predict(tree, X[:4], model=model)

    def interrupt(*arguments, **settings):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(declared, "read_model", interrupt)
        with pytest.raises(KeyboardInterrupt):
            bs.predict(tree, X[:4], model=model)
    np.testing.assert_array_equal(model["X"].get_value(), X)
    assert bs.predict(tree, X[:4], model=model).identical(expected)


@pytest.mark.parametrize("setting", [{"max_iterations": 5}, {"tolerance": 0.1}])
def test_nuts_takes_no_limits_of_a_search(setting):
    with pytest.raises(ValueError, match=r"NUTS has draws and chains, not iterations: leave out max_iterations"):
        bs.fit("ard_gaussian", (np.eye(5), np.arange(5.0)), method="nuts", **setting)


def test_a_slash_in_the_name_of_the_target_is_refused():
    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])]).assign(**{"mm/Hg": Y})
    refused(lambda: bs.fit("ard_gaussian", frame, target="mm/Hg"), "'mm/Hg'", "slash", "rename")
