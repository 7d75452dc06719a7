"""Cross-validation by refits, against a plain loop of fits and the exact predictive density of what each left out."""

import multiprocessing
import warnings

import arviz as az
import numpy as np
import pandas as pd
import polars as pl
import pymc as pm
import pytest
import xarray as xr
from arviz_stats import ELPDData
from scipy import stats
from scipy.integrate import quad
from scipy.sparse import csr_array
from scipy.special import expit, gammaln, logsumexp
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit, StratifiedKFold, TimeSeriesSplit

import bayes_sparse as bs
from bayes_sparse.common.progress import quiet
from tests.support import assert_one_sentence, without_compiler

RNG = np.random.default_rng(5)
N = 24
X = RNG.standard_normal((N, 4))
NUMBERS = X[:, 0] + 0.6 * RNG.standard_normal(N)
LABELS = np.where(X[:, 0] + RNG.logistic(scale=0.7, size=N) > 0, "yes", "no")
COUNTS = RNG.poisson(np.exp(0.5 + 0.8 * X[:, 0]))
THREE = np.array(["a", "b", "c"])[np.argmax(X[:, :3] + 0.5 * RNG.standard_normal((N, 3)), axis=1)]


def squares(X):
    return np.column_stack([X, X**2])


def moments(tree, x, offset=0.0):
    """Mean and sd of the predictor at a row, of a fit on the columns themselves."""
    evidence = tree["evidence"]
    phi = np.append(x, 1.0)[evidence["column"].to_numpy()]
    sd = np.linalg.norm(phi @ evidence["covariance_factor"].to_numpy())
    return offset + float(phi @ evidence["coordinate_mean"].to_numpy()), float(sd)


def log_predictive(tree, x, y, kind, offset=0.0):
    """Exact log density of a target, by a closed form or adaptive quadrature."""
    mean, sd = moments(tree, x, offset)
    if kind == "normal":
        return stats.norm.logpdf(y, mean, np.hypot(sd, float(tree["evidence"]["sigma"])))
    noise = float(tree["evidence"]["sigma"]) if kind == "student_t" else np.nan
    density = {
        "bernoulli": lambda eta: expit(eta if y == "yes" else -eta),
        "poisson": lambda eta: np.exp(y * eta - np.exp(eta) - gammaln(y + 1)),
        "student_t": lambda eta: 0.375 / noise * (1 + (y - eta) ** 2 / (4 * noise**2)) ** -2.5,
    }[kind]
    if sd == 0:
        return float(np.log(density(mean)))
    return float(
        np.log(
            quad(lambda z: density(mean + sd * z) * stats.norm.pdf(z), -10, 10, epsabs=0, epsrel=1e-12, limit=500)[0]
        )
    )


def one_by_one(y, kind, model="ard_gaussian", **arguments):
    """The plain loop."""
    scores = np.empty(N)
    for i in range(N):
        rest = np.arange(N) != i
        own = {k: v[rest] if k in ("weights", "offset") else v for k, v in arguments.items()}
        with quiet():
            tree = bs.fit(model, (X[rest], y[rest]), likelihood=kind, draws=0, **own)
        offset = arguments["offset"][i] if "offset" in arguments else 0.0
        scores[i] = log_predictive(tree, X[i], y[i], kind, offset)
    return scores


@pytest.mark.parametrize(
    ("kind", "y", "model", "method"),
    [
        ("normal", NUMBERS, "ard_gaussian", "sequential"),
        pytest.param("normal", NUMBERS, "ard_gaussian", "revm", marks=pytest.mark.slow),
        ("normal", NUMBERS, "jeffreys_laplace", "reweighted"),
        ("bernoulli", LABELS, "ard_gaussian", "sequential"),
        ("bernoulli", LABELS, "jeffreys_laplace", "evidence"),
        ("bernoulli", LABELS, "laplace_eigen", "evidence"),
        ("poisson", COUNTS, "ard_gaussian", "mackay"),
        pytest.param("student_t", NUMBERS, "ard_gaussian", "evidence", marks=pytest.mark.slow),
    ],
)
def test_against_a_plain_loop(kind, y, model, method):
    found = bs.kfold(model, (X, y), "loo", method=method, likelihood=kind, workers=1)
    exact = one_by_one(y, kind, model, method=method)
    np.testing.assert_allclose(found.elpd_i, exact, rtol=0, atol=1e-8)
    np.testing.assert_allclose([found.elpd, found.se], [exact.sum(), np.sqrt(N * exact.var())], rtol=1e-8)


def test_the_effective_parameters_are_what_a_fit_of_all_rows_gains():
    found = bs.kfold("ard_gaussian", (X, NUMBERS), "loo", workers=1)
    tree = bs.fit("ard_gaussian", (X, NUMBERS), draws=0)
    gained = [log_predictive(tree, X[i], NUMBERS[i], "normal") for i in range(N)] - found.elpd_i
    np.testing.assert_allclose(found.p_loo_i, gained, atol=1e-10)
    np.testing.assert_allclose(found.p, gained.sum())
    assert found.p > 1


def test_weights_and_offset_go_with_their_rows():
    weights, offset = np.where(np.arange(N) % 3, 1.0, 2.0), 0.3 * np.sin(np.arange(N))
    found = bs.kfold("ard_gaussian", (X, NUMBERS), "loo", weights=weights, offset=offset, workers=1)
    exact = weights * one_by_one(NUMBERS, "normal", weights=weights, offset=offset)
    np.testing.assert_allclose(found.elpd_i, exact, atol=1e-8)
    frame = pd.DataFrame(X, columns=list("pqrs")).assign(y=NUMBERS, w=weights, o=offset)
    named = bs.kfold("ard_gaussian", frame, "loo", target="y", weights="w", offset="o", workers=1)
    np.testing.assert_allclose(named.elpd_i, exact, atol=1e-8)


def test_a_row_that_counts_twice_scores_as_two_rows():
    twice = np.append(np.arange(N), [0, 1])
    folds = np.arange(N) % 4
    basis = bs.basis.linear(standardise=False)  # weights do not enter the scale of a column
    found = bs.kfold("ard_gaussian", (X, NUMBERS), folds, weights=np.bincount(twice), workers=1, basis=basis, bias_sd=5)
    written = bs.kfold("ard_gaussian", (X[twice], NUMBERS[twice]), folds[twice], workers=1, basis=basis, bias_sd=5)
    np.testing.assert_allclose(found.elpd, written.elpd, rtol=1e-5)  # the search starts at another noise


def test_every_form_of_the_data_gives_the_same():
    frame = pd.DataFrame(X, columns=list("pqrs"), index=[f"row {i}" for i in range(N)])
    y = pd.Series(NUMBERS, index=frame.index, name="height")
    table = frame.assign(height=y)
    folds = np.arange(N) % 3
    shuffled = pd.Series(folds, index=frame.index).iloc[::-1]
    forms = {
        "arrays": ((X, NUMBERS), {}),
        "frame and series": ((frame, y), {}),
        "series in another order": ((frame, y.iloc[::-1]), {}),
        "frame": (table, {"target": "height"}),
        "polars": (pl.from_pandas(table), {"target": "height"}),
        "dataset": (
            xr.Dataset({"X": (("obs", "c"), X), "height": ("obs", NUMBERS)}, coords={"c": list("pqrs")}),
            {"target": "height"},
        ),
        "sparse": ((csr_array(X), NUMBERS), {}),
    }
    found = {}
    for name, (data, more) in forms.items():
        own = shuffled if name == "frame and series" else folds
        found[name] = bs.kfold("ard_gaussian", data, own, workers=1, **more)
    for name, other in found.items():
        np.testing.assert_allclose(other.elpd_i.to_numpy(), found["arrays"].elpd_i.to_numpy(), atol=1e-8, err_msg=name)
    assert found["frame"].elpd_i["obs"][2] == "row 2"
    assert found["frame"].elpd_i.name == "height"


def test_several_classes_and_features_of_each_class():
    own = {label: X + 0.2 * k for k, label in enumerate("abc")}
    for data in ((X, THREE), (own, THREE)):
        found = bs.kfold("student_multinomial", data, np.arange(N) % 4, workers=1)
        exact = np.empty(N)
        for k in range(4):
            train, test = np.arange(N) % 4 != k, np.flatnonzero(np.arange(N) % 4 == k)
            part = data[0] if data[0] is not own else None
            with quiet():
                inside = X[train] if part is not None else {label: own[label][train] for label in own}
                tree = bs.fit("student_multinomial", (inside, THREE[train]), draws=0)
                new = X[test] if part is not None else {label: own[label][test] for label in own}
                p = bs.predict(tree, new)["probability"].to_numpy()
            exact[test] = np.log(p[np.arange(len(test)), np.searchsorted(["a", "b", "c"], THREE[test])])
        np.testing.assert_allclose(found.elpd_i, exact, atol=1e-10)


def test_the_width_of_a_kernel_is_found_in_every_fold():
    folds, basis = np.arange(N) % 3, bs.basis.rbf(width="evidence")
    found = bs.kfold("ard_gaussian", (X[:, :1], NUMBERS), folds, basis=basis, workers=1)
    widths = []
    for k in range(3):
        train, test = folds != k, folds == k
        with quiet():
            tree = bs.fit("ard_gaussian", (X[train, :1], NUMBERS[train]), basis=basis, draws=0)
            predicted = bs.predict(tree, X[test, :1])
        widths.append(tree["evidence"].attrs["width"])
        exact = stats.norm.logpdf(NUMBERS[test], predicted["mean"], predicted["sd"])
        np.testing.assert_allclose(found.elpd_i[test], exact, atol=1e-8)
    assert len(set(widths)) == 3


def test_a_function_of_yours_and_columns_that_are_kept():
    folds = np.arange(N) % 3
    basis = bs.basis.function("numpy:atleast_2d")
    found = bs.kfold("ard_gaussian", (X, NUMBERS), folds, basis=basis, keep="f1", workers=1)
    for k in range(3):
        with quiet():
            tree = bs.fit("ard_gaussian", (X[folds != k], NUMBERS[folds != k]), basis=basis, keep="f1", draws=0)
        exact = [log_predictive(tree, X[i], NUMBERS[i], "normal") for i in np.flatnonzero(folds == k)]
        np.testing.assert_allclose(found.elpd_i[folds == k], exact, atol=1e-8)
    with pytest.raises(ValueError, match="cannot be imported again by name"):
        bs.kfold("ard_gaussian", (X, NUMBERS), basis=lambda X: X)


def test_splitters_of_scikit_learn():
    groups = np.arange(N) // 4
    by_group = bs.kfold("ard_gaussian", (X, NUMBERS), GroupKFold(3), groups=groups, workers=1)
    labels = np.empty(N)
    for k, (_, test) in enumerate(GroupKFold(3).split(X, NUMBERS, groups)):
        labels[test] = k
    same = bs.kfold("ard_gaussian", (X, NUMBERS), labels, workers=1)
    np.testing.assert_array_equal(by_group.elpd_i, same.elpd_i)
    assert by_group.n_folds == 3
    strata = bs.kfold("ard_gaussian", (X, LABELS), StratifiedKFold(3), workers=1)
    assert strata.n_data_points == N


def test_rows_that_are_never_scored_are_left_out_and_said():
    found = bs.kfold("ard_gaussian", (X, NUMBERS), TimeSeriesSplit(3), workers=1)
    folds = list(TimeSeriesSplit(3).split(X))
    assert found.elpd_i["obs"].to_numpy().tolist() == np.concatenate([test for _, test in folds]).tolist()
    train, test = folds[1]
    with quiet():
        tree = bs.fit("ard_gaussian", (X[train], NUMBERS[train]), draws=0)
    exact = [log_predictive(tree, X[i], NUMBERS[i], "normal") for i in test]
    np.testing.assert_allclose(found.elpd_i.sel(obs=test), exact, atol=1e-8)
    assert found.notes[0] == "6 of 24 rows are in no part to be scored, and not in the elpd."
    assert found.notes[0] in str(found)


def test_arviz_compares_it():
    tree = bs.fit("ard_gaussian", (X, NUMBERS), random_seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of large Pareto k
        plain = bs.loo(tree, pointwise=True)
    refitted = bs.kfold("ard_gaussian", (X, NUMBERS), "loo", workers=1)
    null = bs.kfold("ard_gaussian", (X, NUMBERS), "loo", smoothness=50.0, workers=1)
    table = az.compare({"plain": plain, "refitted": refitted, "null": null}, round_to="none")
    assert table.index[-1] == "null"
    assert table["elpd"]["refitted"] == refitted.elpd < plain.elpd == table["elpd"]["plain"]
    gap = refitted.elpd_i - plain.elpd_i
    np.testing.assert_allclose(table["dse"]["refitted"], np.sqrt(N) * gap.std(), rtol=1e-6)
    parts = bs.kfold("ard_gaussian", (X, NUMBERS), 6, workers=1)
    assert (
        az.compare({"parts": parts, "null": bs.kfold("ard_gaussian", (X, NUMBERS), 6, smoothness=50.0)}).shape[0] == 2
    )
    with pytest.warns(UserWarning, match="Comparing LOO-CV to K-fold-CV"):
        az.compare({"parts": parts, "refitted": refitted})
    assert isinstance(parts, ELPDData)
    assert (parts.kind, refitted.kind) == ("loo_kfold", "loo")
    assert str(parts).startswith("Computed from 6-fold")
    assert str(refitted).startswith("Computed from 24 fits, each without the row that it scores.")
    assert refitted.statuses == {"converged": N}
    assert null.statuses == {"null": N}
    assert "24 null" in str(null)


def test_folds_are_balanced_and_the_seed_decides():
    one, same, other = (bs.kfold("ard_gaussian", (X, LABELS), 4, random_seed=s, workers=1) for s in (1, 1, 2))
    np.testing.assert_array_equal(one.elpd_i, same.elpd_i)
    assert one.elpd != other.elpd


@pytest.mark.slow
def test_two_processes_give_what_one_gives():
    data, basis = (X, NUMBERS), bs.basis.function("numpy:atleast_2d")
    one, two = (bs.kfold("ard_gaussian", data, "loo", basis=basis, workers=w) for w in (1, 2))
    np.testing.assert_array_equal(one.elpd_i, two.elpd_i)
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize("condition", ["alpha", pytest.param(None, marks=pytest.mark.slow)])
def test_nuts(condition, monkeypatch):
    without_compiler(monkeypatch)
    arguments = {"method": "nuts", "condition": condition, "draws": 150, "chains": 2, "tune": 150, "sampler": "pymc"}
    data, halves, hyper = (X[:, :1], NUMBERS), np.arange(N) % 2, (1.0, 0.1)
    with quiet():
        found = bs.kfold("ard_gaussian", data, halves, hyper=hyper, sample_kwargs={"cores": 1}, **arguments)
    assert found.statuses == {"sampled": 2}
    assert found.n_samples == 300
    near = bs.kfold("ard_gaussian", data, halves, hyper=hyper, workers=1)
    # Two weights, well known: what is integrated over beside them moves the density of a row by little.
    assert abs(found.elpd - near.elpd) < (0.5 if condition else 2.0)


def test_columns_that_are_constant_without_a_row_are_left_out_there():
    once = np.zeros(N)
    once[3] = 1.0
    wide = np.column_stack([once, X])
    for data in ((wide, NUMBERS), (csr_array(wide), NUMBERS)):
        found = bs.kfold("ard_gaussian", data, "loo", workers=1)
        rest = np.arange(N) != 3
        tree = bs.fit("ard_gaussian", (X[rest], NUMBERS[rest]), draws=0)
        np.testing.assert_allclose(found.elpd_i[3], log_predictive(tree, X[3], NUMBERS[3], "normal"), atol=1e-8)
        assert found.notes == ("In 1 of 24 fits some columns were constant, and left out.",)
    with pytest.raises(ValueError, match="The fit without row 3: Constant columns cannot be told from the bias: 'x0'"):
        bs.kfold("ard_gaussian", (wide, NUMBERS), "loo", keep="x0", workers=1)


def test_folds_have_the_likelihood_of_all_rows():
    """Whole numbers of more than 20 values are normal, and stay so in folds that have no more than 20."""
    many, rows = np.arange(24) % 21, {"workers": 1}
    found = bs.kfold("ard_gaussian", (X, many), "loo", **rows)
    np.testing.assert_array_equal(
        found.elpd_i, bs.kfold("ard_gaussian", (X, many), "loo", likelihood="normal", **rows).elpd_i
    )


def test_bad_ends_are_told():
    with pytest.warns(bs.FitWarning, match="2 of 2 fits of the cross-validation ended 'max_iterations'"):
        found = bs.kfold("ard_gaussian", (X, NUMBERS), np.arange(N) % 2, method="em", max_iterations=1, workers=1)
    assert found.statuses == {"max_iterations": 2}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"folds": 1}, "`folds` must be a whole number >= 2"),
        ({"folds": 100}, "100 folds are more than the 24 rows"),
        ({"folds": "many"}, "got 'many'"),
        ({"folds": np.zeros(3)}, r"the shape \(3,\) for 24 rows"),
        ({"folds": np.zeros(N)}, "the same label for all rows"),
        ({"folds": np.full(N, np.nan)}, "one label a row"),
        ({"groups": np.zeros(N)}, "`groups` go with an object"),
        ({"folds": ShuffleSplit(5, random_state=0)}, "scores some rows more than once"),
        ({"workers": 0}, "`workers` must be a whole number >= 1"),
        ({"basis": "rbf"}, "width"),
    ],
)
def test_refused(arguments, said):
    with pytest.raises(ValueError, match=said) as refusal:
        bs.kfold("ard_gaussian", (X, NUMBERS), **arguments)
    assert_one_sentence(str(refusal.value))


class Overlapping:
    def split(self, X, y, groups):
        yield np.arange(10), np.arange(5)


class Empty:
    def split(self, X, y, groups):
        yield np.arange(10), np.arange(0)


def test_splitters_that_do_not_split_are_refused():
    with pytest.raises(ValueError, match="scores rows that it fits"):
        bs.kfold("ard_gaussian", (X, NUMBERS), Overlapping())
    with pytest.raises(ValueError, match="no rows to score"):
        bs.kfold("ard_gaussian", (X, NUMBERS), Empty())


def test_a_class_that_a_fold_has_not_seen_is_named_with_the_fold():
    y = np.where(np.arange(N) == 7, "once", THREE)
    with pytest.raises(ValueError, match="The fit without row 7 fits no row of 'once'") as refusal:
        bs.kfold("student_multinomial", (X, y), "loo")
    assert_one_sentence(str(refusal.value))
    with pytest.raises(ValueError, match="Fold 0 fits no row of 'no'"):
        bs.kfold("ard_gaussian", (X, np.where(np.arange(N) < 12, "no", "yes")), KFold(2))


def own(y=NUMBERS):
    with pm.Model() as model:
        w = pm.Normal("w", 0.0, pm.HalfCauchy("s", 1.0, shape=X.shape[1]))
        pm.Normal("y", pm.Normal("b", 0.0, 10.0) + X @ w, pm.HalfNormal("sigma", 2.0), observed=y)
    return model


def test_a_model_of_your_own_is_fitted_without_the_rows_that_it_scores():
    labels = np.arange(N) % 3
    found = bs.kfold(own(), None, labels, draws=500, progressbar=False)
    assert found.n_data_points == N
    for fold in range(3):
        out = labels == fold
        tree = bs.fit(own(), weights=(~out).astype(float), draws=500, random_seed=0, progressbar=False)
        density = tree["log_likelihood"]["y"].stack(s=("chain", "draw")).to_numpy()[out]
        np.testing.assert_allclose(found.elpd_i.to_numpy()[out], logsumexp(density, axis=1) - np.log(2000), rtol=1e-10)


def test_a_model_of_your_own_is_refused_where_its_rows_cannot_be_left_out():
    with pytest.raises(ValueError, match="is sampled with all of its rows") as refusal:
        bs.kfold(own(), method="nuts")
    assert_one_sentence(str(refusal.value))
    with pm.Model() as model:
        w = pm.Normal("w", 0.0, pm.HalfCauchy("s", 1.0, shape=X.shape[1]))
        for name in ("one", "two"):
            pm.Normal(name, X @ w, 1.0, observed=NUMBERS)
    with pytest.raises(ValueError, match="one observed variable") as refusal:
        bs.kfold(model)
    assert_one_sentence(str(refusal.value))


@pytest.mark.parametrize(
    ("data", "kind"), [((X, LABELS), {}), ((X, COUNTS), {"likelihood": "poisson"}), ((X, THREE), {})]
)
def test_without_the_fit_of_all_rows(data, kind):
    """The same elpd of every row, and no effective number of parameters."""
    model = "student_multinomial" if data[1] is THREE else "ard_gaussian"
    whole = bs.kfold(model, data, 3, workers=1, **kind)
    found = bs.kfold(model, data, 3, whole=False, workers=1, **kind)
    np.testing.assert_array_equal(found.elpd_i, whole.elpd_i)
    assert (found.statuses, found.notes) == (whole.statuses, whole.notes)
    assert np.isfinite(whole.p)
    assert np.isnan(found.p)
    assert "elpd" in str(found)
    weights = np.where(np.arange(N) < 3, 0.0, 1.0)
    weighted = [bs.kfold(model, data, 3, whole=whole, workers=1, weights=weights, **kind) for whole in (True, False)]
    np.testing.assert_array_equal(weighted[0].elpd_i, weighted[1].elpd_i)


def test_fewer_folds_find_the_likelihood_of_all_rows():
    """Counts of which a fold has two values are no classes there."""
    y = np.r_[np.zeros(8), np.ones(8), [0.5] * 8]
    found = bs.kfold("ard_gaussian", (X, y), np.arange(N) // 8, whole=False, workers=1)
    np.testing.assert_array_equal(found.elpd_i, bs.kfold("ard_gaussian", (X, y), np.arange(N) // 8, workers=1).elpd_i)
