"""Error against the number of features: nothing leaks, the truth comes first, and every number is what it says."""

import importlib
import json

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy.optimize import minimize
from scipy.sparse import csr_array
from sklearn.feature_selection import mutual_info_classif
from sklearn.linear_model import LogisticRegression
from sklearn.svm import l1_min_c

import bayes_sparse as bs
from bayes_sparse.refits import rankings, selection

mpl.use("Agg")
TRUE = ["x1", "x4", "x7"]


def three_classes(n=240, p=10):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p)) * np.linspace(0.5, 5.0, p) + 3.0
    W = np.zeros((p, 3))
    W[1], W[4], W[7] = [3, -3, 0], [-3, 0, 3], [0, 3, -3]
    eta = (X - 3.0) / np.linspace(0.5, 5.0, p) @ W
    return X, np.array(["a", "b", "c"])[(eta + rng.gumbel(size=eta.shape)).argmax(axis=1)]


@pytest.fixture(scope="module")
def data():
    return three_classes()


@pytest.fixture(scope="module")
def tree(data):
    return bs.fit("student_multinomial", data, draws=0, progressbar=False)


@pytest.fixture(scope="module")
def path(tree, data):
    return bs.selection_path(tree, *data, counts=(3, 1, 10), folds=3, progressbar=False)


def quick(tree, X, y, **settings):
    return bs.selection_path(tree, X, y, **{"counts": (1,), "folds": 2, "rivals": (), "progressbar": False} | settings)


@pytest.mark.quick
def test_true_features_come_first_and_suffice(path):
    for name in ("evidence", "l1_svm"):
        first = path["order"].sel(ranking=name, rank=slice(1, 3)).to_numpy()
        assert [sorted(names) for names in first.tolist()] == [TRUE] * 3
    error = path["error"].sel(ranking="evidence").mean("fold")
    assert error.sel(count=3) < 0.2 < 0.35 < error.sel(count=1)


def test_shapes_names_and_storing(path, tmp_path):
    assert dict(path.sizes) == {"ranking": 3, "count": 3, "fold": 3, "rank": 10, "row": 240, "rival": 2}
    assert path["error"].dims == path["log_loss"].dims == ("ranking", "count", "fold")
    assert path["order"].dims == ("ranking", "fold", "rank")
    assert path["count"].to_numpy().tolist() == [1, 3, 10]
    assert (np.sort(path["order"].to_numpy(), axis=2) == sorted(f"x{j}" for j in range(10))).all()
    assert path.attrs["method"] == "mackay"
    assert path.attrs["not_converged"] == 0
    path.to_netcdf(tmp_path / "path.nc")
    with xr.open_dataset(tmp_path / "path.nc") as again:
        xr.testing.assert_equal(again.load(), path)


def test_folds_are_balanced(path, data):
    members = pd.crosstab(path["held_out"].to_numpy(), data[1]).to_numpy()
    assert (np.ptp(members, axis=0) <= 1).all()
    assert members.sum() == 240


def test_a_column_that_knows_the_rows_held_out_changes_no_order_there(tree, data, path):
    X, y = data
    codes = np.unique(y, return_inverse=True)[1]
    planted = X.copy()
    out = path["held_out"].to_numpy() == 0
    planted[out, 0] = 100.0 * codes[out]
    other = bs.selection_path(tree, planted, y, counts=(1,), folds=3, progressbar=False)
    np.testing.assert_array_equal(other["held_out"], path["held_out"])
    np.testing.assert_array_equal(other["order"].sel(fold=0), path["order"].sel(fold=0))
    assert other["kept"][0] == path["kept"][0]
    # In the other folds those rows are seen, and the column is no longer the noise that it was.
    assert other["order"].sel(ranking="mutual_information", fold=1)[0] == "x0"


def test_mutual_information_is_sklearns_on_the_training_rows(path, data):
    X, y = data
    for k in range(3):
        inside = path["held_out"].to_numpy() != k
        information = mutual_info_classif(X[inside], y[inside], random_state=0)
        expected = [f"x{j}" for j in np.argsort(-information, kind="stable")]
        assert path["order"].sel(ranking="mutual_information", fold=k).to_numpy().tolist() == expected


def test_every_ranking_is_scored_on_the_rows_held_out(path, data):
    X, y = data
    codes = np.unique(y, return_inverse=True)[1]
    for name in path["ranking"].to_numpy():
        for k in range(3):
            out = path["held_out"].to_numpy() == k
            first = [int(x[1:]) for x in path["order"].sel(ranking=name, fold=k).to_numpy()[:3]]
            machine = rankings.plain_classifier(X[~out][:, first], codes[~out], 3)
            log_p = machine.log_probability(X[out][:, first])
            found = path.sel(ranking=name, count=3, fold=k)
            assert found["error"] == np.mean(log_p.argmax(axis=1) != codes[out])
            loss = -np.mean(log_p[np.arange(out.sum()), codes[out]])
            np.testing.assert_allclose(found["log_loss"], loss, rtol=1e-5)  # columns in another order
    assert (np.ptp(path["error"].sel(count=10).to_numpy(), axis=0) == 0).all()  # the same features, all of them


def test_own_error_is_that_of_a_fit_to_the_training_rows(path, data):
    X, y = data
    out = path["held_out"].to_numpy() == 2
    fitted = bs.fit("student_multinomial", (X[~out], y[~out]), draws=0, progressbar=False)
    P = bs.predict(fitted, X[out])
    assert path["own_error"][2] == np.mean(P["label"].to_numpy() != y[out])
    chosen = P["probability"].to_numpy()[np.arange(out.sum()), np.unique(y, return_inverse=True)[1][out]]
    np.testing.assert_allclose(path["own_log_loss"][2], -np.log(chosen).mean())
    table = bs.relevance(fitted, by="feature", order="forward")
    assert path["kept"][2] == table["kept"].sum()
    assert path["order"].sel(ranking="evidence", fold=2).to_numpy().tolist() == table.index.to_list()


def test_differences_are_paired_by_fold(path):
    error = path["error"].to_numpy()
    gaps = error[0] - error[2]  # counts by folds, the fit's ranking less the 1-norm SVM's
    np.testing.assert_allclose(path["difference"].sel(rival="l1_svm"), gaps.mean(axis=1))
    np.testing.assert_allclose(path["difference_se"].sel(rival="l1_svm"), gaps.std(axis=1, ddof=1) / np.sqrt(3))


@pytest.mark.parametrize("classes", [2, 3])
def test_l1_svm_order_agrees_with_brute_force(classes):
    rng = np.random.default_rng(classes)
    X = rng.standard_normal((90, 5)) * [1.0, 2.0, 3.0, 4.0, 5.0]
    score = X / [1.0, 2.0, 3.0, 4.0, 5.0] @ rng.standard_normal((5, classes)) * 2
    y = (score + rng.gumbel(size=score.shape)).argmax(axis=1)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    grid = l1_min_c(Z, y, loss="squared_hinge") * np.geomspace(1.0, rankings._WIDEST, rankings._STEPS)
    entry, size = np.full(5, np.inf), np.zeros(5)
    for C in grid:
        signs = [np.where(y == c, 1.0, -1.0) for c in (range(classes) if classes > 2 else [1])]
        w = np.sqrt(np.sum([_hinge(Z, sign, C) ** 2 for sign in signs], axis=0))
        new = np.isinf(entry) & (w > 1e-5)
        entry[new], size[new] = C, w[new]
    assert rankings.l1_svm(X, y, 0).tolist() == np.lexsort((-size, entry)).tolist()


def _hinge(Z, sign, C):
    """Weights that minimise |w|_1 + |b| + C sum max(0, 1 - y f)^2, by bounds on their two halves."""
    A = np.column_stack([Z, np.ones(len(Z))])
    A = np.hstack([A, -A])

    def lack(v):
        left = np.maximum(1 - sign * (A @ v), 0.0)
        return v.sum() + C * left @ left, 1 - 2 * C * A.T @ (sign * left)

    k = A.shape[1]
    options = {"maxiter": 10000, "maxfun": 100000, "ftol": 1e-15, "gtol": 1e-9}
    v = minimize(lack, np.zeros(k), jac=True, bounds=[(0, None)] * k, method="L-BFGS-B", options=options).x
    return (v[: k // 2] - v[k // 2 :])[:-1]


def test_columns_the_svm_never_takes_go_by_their_slope(monkeypatch):
    monkeypatch.setattr(rankings, "_WIDEST", 1.2)
    monkeypatch.setattr(rankings, "_STEPS", 2)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 6))
    y = (X @ [0.2, 4.0, 0.5, 0.0, 1.0, 2.0] + rng.logistic(size=200) > 0).astype(int)
    Z, sign = (X - X.mean(axis=0)) / X.std(axis=0), 2.0 * y - 1
    C = 1.2 * l1_min_c(Z, y, loss="squared_hinge")
    w = _hinge(Z, sign, C)
    assert (np.abs(w) > 1e-6).tolist() == [False, True, False, False, False, False]
    slopes = np.abs(Z.T @ (sign * np.maximum(1 - sign * (Z @ w), 0)))  # the intercept is at zero too
    slopes[1] = np.inf
    assert rankings.l1_svm(X, y, 0).tolist() == np.argsort(-slopes).tolist()


@pytest.mark.parametrize("shape", [(120, 4), (30, 45)])
def test_plain_classifier_is_a_logistic_regression_of_the_same_ridge(shape):
    rng = np.random.default_rng(1)
    X = rng.standard_normal(shape) * rng.uniform(1, 9, shape[1]) - 2.0
    X[:, 2] = 5.0  # constant
    y = (X[:, :2] @ rng.standard_normal((2, 3)) + 3 * rng.gumbel(size=(shape[0], 3))).argmax(axis=1)
    machine = rankings.plain_classifier(X, y, 3)
    scale = X.std(axis=0)
    Z = (X - X.mean(axis=0)) / np.where(scale > 0, scale, 1.0)
    # The bias has the precision 1/100: a column of its own whose weight has the common one.
    Z = np.column_stack([Z, np.full(len(Z), 10 * np.sqrt(machine.ridge))])
    other = LogisticRegression(C=1 / machine.ridge, fit_intercept=False, tol=1e-9, max_iter=20000).fit(Z, y)
    np.testing.assert_allclose(machine.log_probability(X), other.predict_log_proba(Z), atol=2e-5)


def test_features_of_each_classs_own(data):
    X, y = data
    own = {"a": pd.DataFrame(X[:, [1, 0]], columns=["u", "v"]), "b": pd.DataFrame(X[:, [7]], columns=["u"])}
    own["c"] = pd.DataFrame(X[:, [2, 4, 3]], columns=["u", "v", "w"])
    fitted = bs.fit("student_multinomial", (own, y), draws=0, progressbar=False)
    found = quick(fitted, own, y, counts=None, rivals=("mutual_information",))
    assert found["count"].to_numpy().tolist() == [1, 2, 6]
    assert sorted(found["order"][0, 0].to_numpy()) == ["u[a]", "u[b]", "u[c]", "v[a]", "v[c]", "w[c]"]
    for order in found["order"].sel(ranking="evidence").to_numpy().tolist():
        assert sorted(order[:3]) == ["u[a]", "u[b]", "v[c]"]
    out = found["held_out"].to_numpy() == 0
    inside = bs.fit("student_multinomial", ({c: t[~out] for c, t in own.items()}, y[~out]), draws=0, progressbar=False)
    P = bs.predict(inside, {c: t[out] for c, t in own.items()})
    assert found["own_error"][0] == np.mean(P["label"].to_numpy() != y[out])
    assert found["kept"][0] == bs.relevance(inside)["kept"].sum()


def test_a_column_constant_in_training_is_last_there(data):
    X, y = data
    X = X.copy()
    X[:, 0] = 0.0
    X[17, 0] = 1.0
    found = quick(
        bs.fit("student_multinomial", (X, y), draws=0, progressbar=False),
        X,
        y,
        counts=(10,),
        rivals=list(selection.RIVALS),
    )
    k = int(found["held_out"][17])
    assert (found["order"].isel(rank=-1, fold=k) == "x0").all()


@pytest.mark.parametrize("model", ["ard_gaussian", "jeffreys_laplace"])
def test_two_classes(model):
    truth = bs.datasets.sparse_logistic(n=200, p=12, k=2, random_seed=3)
    y = np.where(truth.y > 0, "yes", "no")
    fitted = bs.fit(model, (truth.X, y), draws=0, progressbar=False)
    found = quick(fitted, truth.X, y, counts=(2, 12), rivals="l1_svm")
    true = sorted(f"x{j}" for j in np.flatnonzero(truth.weights))
    assert [sorted(order[:2]) for order in found["order"].sel(ranking="evidence").to_numpy().tolist()] == [true] * 2
    assert found["difference"].sizes == {"rival": 1, "count": 2}


def test_the_trees_own_settings_are_used_in_every_fold(data, monkeypatch, tmp_path):
    X, y = data
    basis = bs.basis.linear(standardise=False)
    fitted = bs.fit(
        "student_multinomial", (X, y), method="em", hyper=(0.1, 0.2), smoothness=0.5, basis=basis, bias_sd=3.0,
        tolerance=0.1, draws=0, progressbar=False,
    )  # fmt: skip
    fitted.to_netcdf(tmp_path / "tree.nc")
    seen = []

    def keep(**arguments):
        seen.append(arguments)
        return bs.fit(**arguments, tolerance=0.1)

    monkeypatch.setattr(selection, "fit", keep)
    with xr.open_datatree(tmp_path / "tree.nc") as stored:
        found = quick(stored, X, y)
    for arguments in seen:
        assert arguments["model"] == "student_multinomial"
        assert [arguments[name] for name in ("method", "hyper", "smoothness", "bias_sd")] == [
            "em",
            (0.1, 0.2),
            0.5,
            3.0,
        ]
        assert (arguments["basis"].bias, arguments["basis"].standardise) == (True, False)
    assert len(seen) == 2
    assert found.attrs["method"] == "em"


def test_a_basis_of_the_users_own_is_ranked_by_function(data):
    X, y = data
    fitted = bs.fit("student_multinomial", (X, y), basis=bs.basis.function("numpy:tanh"), draws=0, progressbar=False)
    found = quick(fitted, X, y)
    assert sorted(found["order"][0, 0].to_numpy()) == [f"f{j}" for j in range(10)]


def test_sparse_rows_and_frames_in_another_order_are_the_same_rows(tree, data):
    X, y = data
    found = quick(tree, X, y)
    xr.testing.assert_equal(quick(tree, csr_array(X), y), found)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(10)])
    xr.testing.assert_equal(quick(tree, frame[frame.columns[::-1]], pd.Series(y)), found)


def test_folds_that_do_not_converge_are_counted_and_nothing_else_is_said(tree, data, monkeypatch, messages):
    monkeypatch.setattr(selection, "fit", lambda **arguments: bs.fit(**arguments, max_iterations=1))
    found = quick(tree, *data)
    assert found.attrs["not_converged"] == 2
    assert (found["status"] == "max_iterations").all()
    assert not messages


def test_counts_by_default_climb_to_all():
    assert selection._counts(None, 256) == [1, 2, 5, 10, 20, 40, 80, 160, 256]
    assert selection._counts(None, 11) == [1, 2, 5, 11]
    assert selection._counts(None, 1) == [1]


def test_without_sklearn(tree, data, monkeypatch):
    real = importlib.import_module

    def absent(name, *rest):
        if name.startswith("sklearn"):
            raise ModuleNotFoundError(name)
        return real(name, *rest)

    monkeypatch.setattr(importlib, "import_module", absent)
    with pytest.raises(ImportError, match=r"scikit-learn's, which is not installed: .*bayes_sparse\[sklearn\]"):
        quick(tree, *data, rivals=("l1_svm",))
    assert quick(tree, *data).sizes["ranking"] == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": np.zeros((240, 9))}, "must have the 10 columns of the fit"),
        ({"y": np.array(["a"] * 10)}, "one label a row of X, which has 240 rows"),
        ({"y": np.array(["a", "b"] * 120)}, "must have the classes of the fit"),
        ({"rivals": ("chi2",)}, "no rival 'chi2'; there are 'mutual_information', 'l1_svm'"),
        ({"counts": (3, 11)}, "there are 10, and the largest is 11"),
        ({"counts": ()}, "`counts` are numbers of features: there are none"),
        ({"counts": (0,)}, "`counts` must be a whole number >= 1"),
        ({"folds": 1}, "`folds` must be a whole number >= 2"),
        ({"folds": 200}, "rows, too few for 200 folds"),
    ],
)
def test_bad_input_gets_one_sentence(tree, data, change, message):
    X, y = data
    with pytest.raises(ValueError, match=message):
        quick(tree, **{"X": X, "y": y} | change)


def test_trees_that_rank_no_features_of_classes_are_refused(data):
    X, y = data
    two = y == "a"
    regression = bs.fit("ard_gaussian", (X, X[:, 0] + X[:, 1] ** 2), draws=0, progressbar=False)
    kernels = bs.fit("ard_gaussian", (X, two), basis=bs.basis.rbf(8.0), draws=0, progressbar=False)
    directions = bs.fit("gaussian_eigen", (X, two), draws=0, progressbar=False)
    for fitted, message in ((regression, "is a regression"), (kernels, "kernels"), (directions, "ranks features")):
        with pytest.raises(ValueError, match=message):
            quick(fitted, X, y)
    declared = xr.DataTree()
    declared.attrs["bayes_sparse"] = json.dumps({"model": "declared"})
    with pytest.raises(ValueError, match="of your own"):
        quick(declared, X, y)
    with pytest.raises(TypeError, match=r"a tree from bayes_sparse\.fit"):
        quick(xr.DataTree(), X, y)


def test_plot_shows_the_path(path):
    ax = bs.plot_selection(path)
    lines = {line.get_label(): line for line in ax.lines}
    drawn = lines["1-norm SVM"]
    np.testing.assert_allclose(drawn.get_xdata(), [1, 3, 10])
    np.testing.assert_allclose(drawn.get_ydata(), 100 * path["error"].sel(ranking="l1_svm").mean("fold"))
    assert "this fit's order (mackay)" in lines
    container = ax.containers[0]
    assert container.get_label().startswith("the fit itself, ")
    np.testing.assert_allclose(float(container[0].get_xdata()[0]), path["kept"].mean())
    np.testing.assert_allclose(float(container[0].get_ydata()[0]), 100 * path["own_error"].mean())
    assert [label.get_text() for label in ax.get_xticklabels()] == ["1", "3", "10"]
    assert bs.plot_selection(path, ax=ax) is ax
    with pytest.raises(TypeError, match="selection_path"):
        bs.plot_selection(xr.Dataset())
