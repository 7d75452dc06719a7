"""The same fit under several hyper-priors: every number against fits made one by one."""

import importlib

import matplotlib as mpl
import numpy as np
import pandas as pd
import pymc as pm
import pytest

import bayes_sparse as bs
from bayes_sparse.refits.refit_plots import plot_sensitivity
from bayes_sparse.refits.sensitivity import Sensitivity, sensitivity
from bayes_sparse.results.comparison import compare

module = importlib.import_module("bayes_sparse.refits.sensitivity")  # the package has a function of that name

mpl.use("Agg")
SETTINGS = [(0.0, 0.0), (0.5, 0.005), (2.0, 1.0)]
LABELS = ["(0, 0)", "(0.5, 0.005)", "(2, 1)"]


@pytest.fixture(scope="module")
def data():
    truth = bs.datasets.sparse_linear(n=60, p=8, k=3, random_seed=0)
    return truth.X, truth.y


@pytest.fixture(scope="module")
def found(data):
    return sensitivity("ard_gaussian", data, SETTINGS, random_seed=0, progressbar=False)


@pytest.mark.quick
def test_trees_are_the_fits_themselves(found, data):
    assert list(found.trees) == LABELS
    for tree, hyper in zip(found.trees.values(), SETTINGS, strict=True):
        own = bs.fit("ard_gaussian", data, hyper=hyper, random_seed=0)
        np.testing.assert_array_equal(tree["evidence"]["mean"], own["evidence"]["mean"])
        np.testing.assert_array_equal(tree["posterior"]["w"], own["posterior"]["w"])
    assert [tree["evidence"].attrs["method"] for tree in found.trees.values()] == ["sequential", "mackay", "mackay"]
    assert compare(found.trees).reference == "(0, 0)"


@pytest.mark.quick
def test_changes_by_hand(found, data):
    flat, other = (found.trees[label]["evidence"] for label in ("(0, 0)", "(2, 1)"))
    moved = other["mean"].to_numpy() - flat["mean"].to_numpy()
    unit = np.where(flat["sd"] > 0, flat["sd"], other["sd"])
    table = found.parameters.xs("(2, 1)", level="setting")
    weights = table.loc[[f"w[x{j}]" for j in range(8)]]
    np.testing.assert_allclose(weights["change"], moved / unit, rtol=1e-9)
    np.testing.assert_allclose(weights["mean"], other["mean"], rtol=1e-12)
    assert (found.parameters.xs("(0, 0)", level="setting")["change"] == 0).all()
    largest = table["change"].abs()
    assert found.summary["largest_change"]["(2, 1)"] == largest.max()
    assert found.summary["changed_most"]["(2, 1)"] == largest.idxmax()
    fitted = [bs.predict(tree, data[0])["mean"].to_numpy() for tree in found.trees.values()]
    np.testing.assert_allclose(found.summary["fitted_change"], [np.abs(own - fitted[0]).max() for own in fitted])


def test_the_summary(found):
    assert found.summary["status"].to_list() == ["converged"] * 3
    assert found.summary["terms_kept"].to_list() == [3, 8, 8]  # with b > 0 no precision is infinite
    assert found.summary["relevant_terms"].to_list() == [3, 3, 3]
    expected = [float(tree["evidence"]["log_evidence"]) for tree in found.trees.values()]
    np.testing.assert_allclose(found.summary["log_evidence"], expected)


def test_the_verdict_says_that_nothing_comes_or_goes(found):
    assert "measured against (0, 0)" in found.verdict
    assert "The same 3 terms are relevant under all of them." in found.verdict
    worst = found.parameters["change"].abs().max()
    assert f"No mean changes by more than {worst:.2g} posterior sds" in found.verdict
    table, sentences = str(found).split("\n\n")
    assert " ".join(sentences.split()) == found.verdict
    for label, row in found.summary.iterrows():
        (line,) = [line for line in table.splitlines() if line.startswith(label)]
        assert line.removeprefix(label).split()[:3] == [
            row["status"],
            str(row["terms_kept"]),
            str(row["relevant_terms"]),
        ]
    assert max(map(len, str(found).splitlines())) <= 100


def test_the_verdict_names_terms_that_come_and_go():
    rng = np.random.default_rng(4)
    X = rng.standard_normal((40, 3))
    y = X[:, 0] + 0.53 * X[:, 1] + np.random.default_rng(3).standard_normal(40)
    found = sensitivity("ard_gaussian", (X, y), [(0.5, 1e-4), (0.5, 1.0)], draws=0, progressbar=False)
    weak = ~found.relevant["(0.5, 0.0001)"] & found.relevant["(0.5, 1)"]
    assert weak.sum() == 1
    assert f"these come and go: {weak.idxmax()} (1 of 2)" in found.verdict


def test_classes_change_in_probability():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((80, 3)), columns=list("abc"))
    frame["t"] = np.where(2 * frame["a"] + rng.logistic(size=80) > 0, "yes", "no")
    found = sensitivity("ard_gaussian", frame, [(0.5, 0.01), (0.5, 10.0)], target="t", draws=0, progressbar=False)
    p, q = (bs.predict(tree, frame)["probability"].to_numpy() for tree in found.trees.values())
    np.testing.assert_allclose(found.summary["fitted_change"], [0.0, np.abs(p - q).max()])


def test_the_default_settings_are_around_the_models_own(data):
    found = sensitivity("ard_gaussian", data, draws=0, progressbar=False)
    assert list(found.trees) == ["(1, 0.1)", "(1, 0.01)", "(1, 1)"]
    with_default = sensitivity("ard_gaussian", data, [None, (0.5, 0.005)], draws=0, progressbar=False)
    assert list(with_default.trees) == ["default", "(0.5, 0.005)"]


def test_a_model_of_your_own(data):
    X, y = data
    with pm.Model() as model:
        alpha = pm.Gamma("alpha", 0.5, 0.005, shape=8)
        w = pm.Normal("w", 0.0, tau=alpha, shape=8)
        pm.Normal("y", X @ w, pm.HalfNormal("sigma", 10.0), observed=y)
    found = sensitivity(model, None, [(0.5, 0.005), (0.5, 1.0)], draws=0, progressbar=False)
    assert "w[7]" in found.parameters.index.unique("parameter")
    assert found.summary["fitted_change"]["(0.5, 1)"] > 0
    with pytest.raises(ValueError, match="there is none to vary"):
        sensitivity(model, None, [(0.5, 0.005), (0.5, 1.0)], method="nuts")


def test_one_setting_that_fails_is_reported_in_its_row(data, monkeypatch):
    real = module.fit

    def moody(*arguments, hyper, **others):
        if hyper == (0.5, 0.005):
            raise FloatingPointError("out of range")
        return real(*arguments, hyper=hyper, **others)

    monkeypatch.setattr(module, "fit", moody)
    found = sensitivity("ard_gaussian", data, SETTINGS[1:] + SETTINGS[:1], draws=0, progressbar=False)
    assert found.summary["status"].to_list() == ["failed: out of range", "converged", "converged"]
    assert list(found.trees) == ["(2, 1)", "(0, 0)"]
    assert "measured against (2, 1)" in found.verdict
    assert "Not fitted: (0.5, 0.005)" in found.verdict
    assert found.summary["terms_kept"].isna().to_list() == [True, False, False]


def test_if_all_settings_fail_the_reason_is_raised():
    X = np.random.default_rng(0).standard_normal((20, 2))
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="Missing values in 'x1'"):
        sensitivity("ard_gaussian", (X, X[:, 0]), SETTINGS, progressbar=False)


@pytest.mark.slow
def test_bounds_of_lambda_by_nuts(data):
    X, y = data[0][:, 4:6], data[1]
    found = sensitivity(
        "jeffreys_laplace",
        (X, y),
        bounds=[(0.1, 10.0), (0.01, 100.0)],
        method="nuts",
        draws=200,
        chains=2,
        tune=200,
        sampler="pymc",
        sample_kwargs={"cores": 1},
        random_seed=0,
        progressbar=False,
    )
    assert list(found.trees) == ["[0.1, 10]", "[0.01, 100]"]
    for tree, (low, high) in zip(found.trees.values(), [(0.1, 10.0), (0.01, 100.0)], strict=True):
        drawn = tree["posterior"]["lambda"].to_numpy()
        assert low < drawn.min() < drawn.max() < high
    assert set(found.parameters.index.unique("parameter")) == {"bias", "w[x0]", "w[x1]", "sigma"}
    assert (found.parameters["mcse"] > 0).all()
    assert "Monte-Carlo errors of up to" in found.verdict
    assert found.summary["log_evidence_kind"].str.startswith("none").all()


def test_a_refused_setting_is_refused_before_anything_is_fitted(data, monkeypatch):
    def never(*arguments, **others):
        raise AssertionError("nothing should be fitted")

    monkeypatch.setattr(module, "fit", never)
    refusals = [
        ({"hyper": [(0.5, 0.005), (0.0, 0.0)], "method": "nuts"}, ValueError, "improper"),
        ({"hyper": [(0.0, 0.0), (1.0, 0.0)]}, ValueError, "drives every precision to infinity"),
        ({"hyper": [(0.0, 0.0), (0.5, 0.1)], "method": "sequential"}, ValueError, "needs the flat hyper-prior"),
        ({"hyper": [(0.0, 0.0), (-1.0, 0.1)]}, ValueError, "a >= 0 and b >= 0"),
        ({"hyper": [(0.0, 0.0), (1.0, 2.0, 3.0)]}, ValueError, r"pair \(a, b\)"),
        ({"hyper": (0.5, 0.005)}, ValueError, "a list of pairs"),
        ({"hyper": [(0.5, 0.005)]}, ValueError, "two settings or more"),
        ({"hyper": [(0.5, 0.005), (0.5, 0.005)]}, ValueError, "every setting once"),
        ({"hyper": SETTINGS, "bounds": [(0.1, 1.0), (0.1, 2.0)]}, ValueError, "not of both"),
        ({"hyper": SETTINGS, "speed": 3}, TypeError, "a setting 'speed'"),
        ({"bounds": [(0.1, 1.0), (0.1, 2.0)]}, TypeError, "a setting 'bounds'"),
    ]
    for arguments, error, said in refusals:
        with pytest.raises(error, match=said):
            sensitivity("ard_gaussian", data, **arguments)
    for arguments, said in [
        ({}, "no Gamma prior"),
        ({"hyper": SETTINGS}, "which this model has none of"),
        ({"bounds": [(0.1, 1.0), (0.1, 2.0)]}, "matter to NUTS alone"),
        ({"bounds": [(0.1, 1.0), (2.0, 1.0)], "method": "nuts"}, "0 < lo < hi"),
    ]:
        with pytest.raises(ValueError, match=said):
            sensitivity("jeffreys_laplace", data, **arguments)


def test_it_shows_as_a_page_and_as_a_picture(found):
    page = found._repr_html_()
    assert "<table" in page
    assert "change of the fit" in page
    assert page.index("<table") < page.index("<p>")
    ax = plot_sensitivity(found, top=3)
    assert [label.get_text() for label in ax.get_xticklabels()] == LABELS
    size = found.parameters["change"].abs().groupby(level="parameter").max().sort_values(ascending=False)
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert sorted(labels[:3]) == sorted(size.index[:3])
    assert labels[3] == "pruned: exactly zero"
    with pytest.raises(TypeError, match="plot_sensitivity draws"):
        plot_sensitivity(found.parameters)


def test_a_page_escapes_what_it_shows(found):
    risky = Sensitivity(found.trees, found.parameters, found.summary.assign(status="<b>"), found.relevant, ("a < b",))
    assert "a &lt; b" in risky._repr_html_()
    assert "<b>" not in risky._repr_html_()
