"""Frames as they come: categories, missing values, constant columns, single rows; the same as columns made by hand."""

import json
import logging
import sys
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pymc as pm
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.stats import multivariate_normal

import bayes_sparse as bs
from tests.support import refused

RNG = np.random.default_rng(7)
N = 120
FRAME = pd.DataFrame(
    {
        "dose": RNG.normal(size=N),
        "colour": RNG.choice(["red", "green", "blue"], N),
        "smokes": RNG.random(N) < 0.4,
        "site": pd.Categorical(RNG.integers(1, 5, N), categories=[3, 1, 2, 4]),
        "age": RNG.normal(50, 10, N),
    }
)
Y = (FRAME["dose"] + 2.0 * (FRAME["colour"] == "red") - 1.5 * FRAME["smokes"] + 0.4 * RNG.normal(size=N)).to_numpy()
TWO = np.where(Y > 0, "well", "ill")
THREE = np.array(["a", "b", "c"])[np.digitize(Y, [-0.5, 1.0])]
NAMES = ["dose", "colour[green]", "colour[red]", "smokes[True]", "site[1]", "site[2]", "site[4]", "age"]


def data(y=Y, frame=FRAME):
    return frame.assign(y=y)


def by_hand(frame=FRAME, names=NAMES):
    """The columns of numbers, made without any of the code under test."""
    made = {}
    for name in names:
        column, _, level = name.rstrip("]").partition("[")
        made[name] = (frame[column].astype(str) == level).astype(float) if level else frame[column]
    return pd.DataFrame(made)


def fit(frame, y="y", **arguments):
    return bs.fit("ard_gaussian", frame, target=y, draws=0, **arguments)


def assert_same_fit(one, other, rtol=1e-12):
    a, b = one["evidence"], other["evidence"]
    assert a["basis"].to_numpy().tolist() == b["basis"].to_numpy().tolist()
    for name in ("alpha", "mean", "sd", "score", "kept", *(["bias"] if "bias" in b else [])):
        np.testing.assert_allclose(a[name], b[name], rtol=rtol, atol=1e-14, err_msg=name)


@pytest.fixture(scope="module")
def tree():
    return fit(data())


# --- categories ------------------------------------------------------------------------------------------------------


@pytest.mark.quick
def test_categories_are_indicators_made_by_hand(tree):
    assert_same_fit(tree, bs.fit("ard_gaussian", (by_hand(), Y), draws=0))
    one, other = bs.predict(tree, FRAME[:9]), bs.predict(bs.fit("ard_gaussian", (by_hand(), Y), draws=0), by_hand()[:9])
    np.testing.assert_allclose(one["mean"], other["mean"], rtol=1e-12)
    np.testing.assert_allclose(one["sd"], other["sd"], rtol=1e-12)


@pytest.mark.parametrize(
    ("model", "y", "arguments"),
    [
        ("horseshoe", Y, {}),
        ("jeffreys_laplace", Y, {}),
        ("laplace_eigen", Y, {}),
        ("ard_gaussian", TWO, {"weights": np.repeat([1.0, 2.0], N // 2), "offset": 0.1 * Y}),
        ("student_multinomial", THREE, {}),
        ("ard_gaussian", Y, {"basis": bs.basis.precomputed()}),
    ],
)
def test_of_every_model(model, y, arguments):
    fits = [bs.fit(model, (X, y), draws=0, **arguments) for X in (FRAME, by_hand())]
    np.testing.assert_allclose(*(tree["evidence"]["mean"] for tree in fits), rtol=1e-12)
    offset = {"offset": np.zeros(5)} if "offset" in arguments else {}
    found = [bs.predict(tree, X[:5], **offset) for tree, X in zip(fits, (FRAME, by_hand()), strict=True)]
    name = "probability" if "probability" in found[0] else "mean"
    np.testing.assert_allclose(found[0][name], found[1][name], rtol=1e-12)


def test_without_a_bias_no_level_is_dropped():
    bare = bs.basis.linear(bias=False)
    levels = ["dose", "colour[blue]", *NAMES[1:4], "site[3]", *NAMES[4:]]
    assert_same_fit(fit(data(), basis=bare), bs.fit("ard_gaussian", (by_hand(names=levels), Y), basis=bare, draws=0))


def test_kernels_see_all_levels():
    levels = ["dose", "colour[blue]", *NAMES[1:4], "site[3]", *NAMES[4:]]
    rbf = bs.basis.rbf(width=3.0)
    one, other = fit(data(), basis=rbf), bs.fit("ard_gaussian", (by_hand(names=levels), Y), basis=rbf, draws=0)
    np.testing.assert_allclose(bs.predict(one, FRAME[:5])["mean"], bs.predict(other, by_hand(names=levels)[:5])["mean"])


def test_pandas_polars_pyarrow_and_xarray_agree(tree):
    plain = data().astype({"site": str}).astype({"site": "category"})
    lists = {name: values.tolist() for name, values in plain.items()}
    forms = {
        "polars": pl.DataFrame(lists).with_columns(pl.col("colour").cast(pl.Categorical)),
        "pyarrow": pa.table(lists | {"site": pa.array(lists["site"]).dictionary_encode()}),
        "strings": plain.astype({"site": object, "colour": object}),
        "dataset": xr.Dataset({name: ("obs", np.array(values)) for name, values in lists.items()}),
    }
    expected = fit(plain)
    for form in forms.values():
        assert_same_fit(fit(form), expected)
        np.testing.assert_allclose(bs.predict(expected, form)["mean"], bs.predict(expected, plain)["mean"], rtol=1e-12)
    ordered = pl.DataFrame({**lists, "site": pl.Series(lists["site"], dtype=pl.Enum(["3", "1", "2", "4"]))})
    assert_same_fit(fit(ordered), tree)  # the first of the declared levels is the reference


def test_arrays_of_objects_hold_categories():
    columns = ["dose", "colour"]
    tree = bs.fit("ard_gaussian", (FRAME[columns].to_numpy(dtype=object), Y), draws=0)
    assert tree["evidence"]["basis"].to_numpy().tolist() == ["x0", "x1[green]", "x1[red]"]
    again = bs.fit("ard_gaussian", (FRAME[columns], Y), draws=0)
    row = FRAME[columns].iloc[0]
    np.testing.assert_allclose(bs.predict(tree, row.to_numpy())["mean"], bs.predict(again, row)["mean"], rtol=1e-12)


def test_a_null_among_categories_of_pyarrow_is_missing():
    table = pa.table({"c": pa.array(["u", "v", None] * 20).dictionary_encode(), "y": Y[:60]})
    refused(lambda: fit(table), "Missing values in 'c' (20)")
    two = (FRAME[["dose"]][:60], table["c"])
    refused(lambda: bs.fit("ard_gaussian", two, draws=0), "The target 'y' has 20 NaN")


@given(st.lists(st.sampled_from(["a", "b", "c", "d"]), min_size=12, max_size=40), st.integers(0, 2**16))
@settings(max_examples=15, deadline=None)
def test_any_words(words, seed):
    y = np.random.default_rng(seed).normal(size=len(words))
    frame = pd.DataFrame({"x": np.random.default_rng(seed + 1).normal(size=len(words)), "w": words})
    levels = sorted(set(words))[1:]
    made = frame[["x"]].assign(**{f"w[{level}]": (frame["w"] == level).astype(float) for level in levels})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one, other = fit(frame.assign(y=y)), bs.fit("ard_gaussian", (made, y), draws=0)
    np.testing.assert_allclose(one["evidence"]["mean"], other["evidence"]["mean"], rtol=1e-12)


def test_a_column_as_a_whole(tree):
    whole, each = bs.relevance(tree, by="column"), bs.relevance(tree)
    assert set(whole.index) == set(FRAME.columns)
    own = each.loc[["colour[green]", "colour[red]"]]
    assert whole.loc["colour", "levels"] == own["kept"].sum()
    np.testing.assert_allclose(whole.loc["colour", "gamma"], own["gamma"].sum())
    strength = np.sqrt(((own["mean"] / own["sd"]).where(own["kept"], 0.0) ** 2).sum())
    np.testing.assert_allclose(whole.loc["colour", "strength"], strength)
    assert whole.loc["colour", "relevant"]
    several = bs.fit("student_multinomial", (FRAME, THREE), draws=0)
    assert set(bs.relevance(several, by="column").index) == set(FRAME.columns)
    assert bs.relevance(tree, by="column", order="forward").index[0] in ("dose", "colour", "smokes")
    refused(lambda: bs.relevance(tree, by="levels"), "'weight', 'feature' or 'column'")


def test_keep_takes_a_level_or_a_column():
    assert fit(data(), keep="site")["evidence"]["kept"].sel(basis=["site[1]", "site[2]", "site[4]"]).all()
    assert fit(data(), keep="site[2]")["evidence"]["kept"].sel(basis="site[2]")


def test_levels_that_the_fit_has_not_seen(tree):
    new = FRAME[:3].assign(colour=["red", "violet", "pink"])
    refused(lambda: bs.predict(tree, new), "Column 'colour'", "'pink', 'violet'", "unseen='ignore'")
    refused(lambda: bs.predict(tree, new, unseen="drop"), "`unseen` is 'refuse' or 'ignore'")
    found = bs.predict(tree, new, unseen="ignore")["mean"].to_numpy()
    expected = by_hand(new)
    expected.loc[1:, NAMES[1:3]] = by_hand()[NAMES[1:3]].mean().to_numpy()  # the average row
    hand = bs.fit("ard_gaussian", (by_hand(), Y), draws=0)
    np.testing.assert_allclose(found, bs.predict(hand, expected)["mean"], rtol=1e-12)


def test_two_columns_of_one_name_by_a_level():
    refused(lambda: fit(data().assign(**{"colour[red]": 1.0})), "the same name", "rename")


GROUPS = {"dose": ["dose"], "colour": NAMES[1:3], "smokes": ["smokes[True]"], "site": NAMES[4:7], "age": ["age"]}


@pytest.mark.parametrize("method", ["sequential", "mackay"])
def test_levels_that_share_a_precision_are_at_the_top_of_the_exact_evidence(method):
    tree = fit(data(), grouped=True, smoothness=0.0, method=method)
    Z = by_hand().to_numpy(dtype=float)
    scale = Z.std(axis=0)
    Z = (Z - Z.mean(axis=0)) / scale
    alpha = tree["evidence"]["alpha"].to_numpy() / scale**2
    sd, sigma = json.loads(tree.attrs["bayes_sparse"])["bias_sd"], float(tree["evidence"]["sigma"])

    def log_evidence(precision):
        cov = sigma**2 * np.eye(N) + sd**2 + (Z / precision) @ Z.T
        return multivariate_normal(np.zeros(N), cov).logpdf(Y)

    best = log_evidence(alpha)
    for group, names in GROUPS.items():
        own = np.isin(NAMES, names)
        assert len(set(alpha[own].round(8))) == 1, group
        for factor in (0.8, 1.25) if np.isfinite(alpha[own][0]) else ():
            assert log_evidence(np.where(own, factor * alpha, alpha)) < best
        if not np.isfinite(alpha[own][0]):
            trials = [log_evidence(np.where(own, at, alpha)) for at in np.geomspace(1e-2, 1e6, 60)]
            assert max(trials) < best + 1e-9
    assert set(bs.relevance(tree)["group"]) == set(GROUPS)


def test_what_cannot_share_precisions_is_refused():
    refused(lambda: fit(data(), grouped=True, method="revm"), "method='sequential'")
    sampled = {"method": "nuts", "tune": 10, "progressbar": False}
    refused(lambda: bs.fit("ard_gaussian", data(), target="y", grouped=True, **sampled), "condition='alpha'")
    hand = (by_hand(names=["dose", "age"]), Y)  # nothing to share
    assert "group" not in bs.fit("ard_gaussian", hand, grouped=True, draws=0)["evidence"]


# --- trees stored, folds and refits ----------------------------------------------------------------------------------


def test_a_tree_read_back_reads_new_rows_in_the_same_way(tree, tmp_path):
    frame = FRAME.assign(age=FRAME["age"].where(FRAME["age"] > 40))
    made = fit(data(frame=frame), missing="mean")
    made.to_netcdf(tmp_path / "fit.nc", engine="h5netcdf")
    with xr.open_datatree(tmp_path / "fit.nc", engine="h5netcdf") as back:
        np.testing.assert_array_equal(bs.predict(back, frame[:9])["mean"], bs.predict(made, frame[:9])["mean"])
        pd.testing.assert_frame_equal(bs.relevance(back, by="column"), bs.relevance(made, by="column"))
    assert "encodings" not in json.loads(bs.fit("ard_gaussian", (by_hand(), Y), draws=0).attrs["bayes_sparse"])


def test_folds_without_a_level():
    rare = FRAME.assign(colour=np.where(np.arange(N) == 5, "rare", FRAME["colour"]))
    found = bs.kfold("ard_gaussian", data(frame=rare), 5, target="y", workers=1)
    assert found.notes == ("In 1 of 5 fits some columns were constant, and left out.",)
    wide = bs.kfold("ard_gaussian", data(frame=rare).assign(flat=1.0), 5, target="y", workers=1)
    assert wide.notes == found.notes  # what is constant in all rows is said by the fit
    np.testing.assert_allclose(wide.elpd_i, found.elpd_i, rtol=1e-12)
    hand = pd.get_dummies(rare, columns=["colour", "site"], dtype=float).drop(columns=["colour_blue", "site_3"])
    same = bs.kfold("ard_gaussian", (hand.astype(float), Y), 5, workers=1)
    np.testing.assert_allclose(found.elpd_i, same.elpd_i, rtol=1e-9)


def test_loo_by_refits_and_sensitivity_and_selection():
    some = data()[:40]
    tree = fit(some)
    found = bs.loo(tree, refit=True, data=some, workers=1)
    same = bs.kfold("ard_gaussian", some, "loo", target="y", workers=1)
    np.testing.assert_allclose(found.elpd, same.elpd, atol=0.2)  # a reference level may be another in one of the folds
    bs.sensitivity("ard_gaussian", some, target="y", draws=50, random_seed=0)
    two = bs.fit("ard_gaussian", (FRAME, TWO), draws=0)
    path = bs.selection_path(two, FRAME, TWO, folds=3, rivals=(), progressbar=False)
    assert path.sizes["rank"] == len(NAMES)


@pytest.mark.slow
def test_workers_read_the_same(tree):
    one, two = (bs.kfold("ard_gaussian", data(), 4, target="y", workers=w, progressbar=False) for w in (1, 2))
    np.testing.assert_allclose(one.elpd_i, two.elpd_i, rtol=1e-12)


def test_nuts_and_the_report(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so few draws
        sampled = bs.fit(
            "ard_gaussian",
            data(),
            target="y",
            method="nuts",
            draws=20,
            tune=20,
            chains=1,
            random_seed=0,
            progressbar=False,
        )
    assert bs.relevance(sampled, by="column")["kept"].all()
    assert np.isfinite(bs.predict(sampled, FRAME[:4])["mean"]).all()
    made = bs.fit("ard_gaussian", data().assign(flat=1.0), target="y", draws=50, random_seed=0)
    page = bs.report(made, tmp_path / "page.html", data=data().assign(flat=1.0), target="y").read_text()
    assert "measured from blue" in page
    assert "flat" in page


# --- missing values --------------------------------------------------------------------------------------------------

HOLES = data().assign(
    age=FRAME["age"].where(np.arange(N) % 7 > 0), colour=FRAME["colour"].where(np.arange(N) % 11 > 0, None)
)


def test_missing_values_are_refused_by_name_and_number():
    refused(lambda: fit(HOLES), "'colour' (11), 'age' (18)", "first in row 0", "missing='drop'", "missing='mean'")
    refused(lambda: fit(HOLES, missing="median"), "`missing` is 'refuse', 'drop' or 'mean', got 'median'")
    refused(lambda: fit(data(np.where(Y > 2, np.nan, Y)), missing="mean"), "The target 'y'", "missing='drop'")
    refused(lambda: fit(HOLES.assign(age=np.nan), missing="drop"), "Every row has a missing value")
    refused(lambda: fit(HOLES.assign(age=np.nan), missing="mean"), "Column 'age' has no value in any row")
    refused(
        lambda: bs.fit("student_multinomial", ({c: by_hand() for c in "abc"}, THREE), missing="drop"), "class's own"
    )


@pytest.mark.parametrize(
    "form", [lambda f: f, pl.from_pandas, pa.Table.from_pandas], ids=["pandas", "polars", "pyarrow"]
)
def test_dropping_is_dropping_by_hand(form):
    frame = HOLES.astype({"site": str})
    y = np.where(np.arange(N) % 13 > 0, Y, np.nan)
    whole = frame.assign(y=y).dropna()
    tree = fit(form(frame.assign(y=y)), missing="drop")
    assert_same_fit(tree, fit(whole))
    new = bs.predict(tree, form(frame))
    np.testing.assert_allclose(new["mean"], bs.predict(tree, frame.drop(columns="y").dropna())["mean"], rtol=1e-12)
    refused(lambda: bs.predict(tree, form(frame), missing="refuse"), "Missing values in")
    refused(lambda: bs.predict(tree, form(frame), missing="mean"), "fit so first")


def test_dropping_with_weights_and_offset():
    weights, offset = np.where(np.arange(N) % 9 > 0, 1.0 + np.arange(N) % 2, np.nan), 0.1 * np.arange(N) / N
    tree = fit(HOLES, missing="drop", weights=weights, offset=offset)
    inside = HOLES.notna().all(axis=1).to_numpy() & np.isfinite(weights)
    other = fit(HOLES[inside], weights=weights[inside], offset=offset[inside])
    assert_same_fit(tree, other)
    lacks = HOLES.notna().all(axis=1).to_numpy()
    new = bs.predict(tree, HOLES, offset=offset)
    np.testing.assert_allclose(new["mean"], bs.predict(tree, HOLES[lacks], offset=offset[lacks])["mean"], rtol=1e-12)
    named = fit(HOLES.assign(w=weights, o=offset), missing="drop", weights="w", offset="o")
    assert_same_fit(named, other)


@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans()), min_size=30, max_size=30))
@settings(max_examples=15, deadline=None)
def test_dropping_any_rows_is_dropping_them_by_hand(lost):
    at = np.array(lost)
    some = data()[:30][["dose", "colour", "y"]].mask(at & (np.arange(30)[:, None] % 2 == 0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one, other = fit(some, missing="drop"), fit(some.dropna())
    assert_same_fit(one, other)


def test_folds_and_sensitivity_without_the_rows_dropped():
    labels, inside = np.arange(N) % 3, HOLES.notna().all(axis=1).to_numpy()
    found = bs.kfold("ard_gaussian", HOLES, pd.Series(labels), target="y", missing="drop", workers=1)
    same = bs.kfold("ard_gaussian", HOLES[inside], labels[inside], target="y", workers=1)
    np.testing.assert_allclose(found.elpd_i, same.elpd_i, rtol=1e-9)
    few = {"target": "y", "offset": 0.1 * FRAME["dose"], "draws": 20, "random_seed": 0}
    one = bs.sensitivity("ard_gaussian", HOLES, missing="drop", **few)
    other = bs.sensitivity("ard_gaussian", HOLES[inside], **few | {"offset": few["offset"][inside]})
    np.testing.assert_allclose(one.summary["fitted_change"], other.summary["fitted_change"], rtol=1e-9)


def filled_by_hand(frame, names=(*NAMES[:3], "colour[missing]", *NAMES[3:], "age[missing]")):
    words = frame.assign(colour=frame["colour"].fillna("missing"))
    out = by_hand(words, [name for name in names if name != "age[missing]"])
    return out.assign(age=out["age"].fillna(HOLES["age"].mean()), **{"age[missing]": frame["age"].isna().astype(float)})


def test_means_and_marks_are_those_made_by_hand():
    tree, hand = fit(HOLES, missing="mean"), bs.fit("ard_gaussian", (filled_by_hand(HOLES), Y), draws=0)
    assert_same_fit(tree, hand)
    new = HOLES[:30].assign(dose=HOLES["dose"][:30].where(np.arange(30) % 4 > 0))  # the fit has seen none missing
    expected = filled_by_hand(new).fillna({"dose": HOLES["dose"].mean()})
    np.testing.assert_allclose(bs.predict(tree, new)["mean"], bs.predict(hand, expected)["mean"], rtol=1e-12)
    assert set(bs.relevance(tree, by="column").index) == set(FRAME.columns)


def test_means_are_those_of_the_rows_fitted():
    """A row of weight two counts twice, one of weight zero not at all; a fold has means of its own."""
    weights = np.resize([0.0, 1.0, 2.0], N)
    rows = np.repeat(np.arange(N), weights.astype(int))
    one, other = fit(HOLES, missing="mean", weights=weights), fit(HOLES.iloc[rows], missing="mean")
    np.testing.assert_allclose(one["evidence"]["mean"], other["evidence"]["mean"], rtol=1e-8, atol=1e-12)
    found = bs.kfold("ard_gaussian", HOLES, np.arange(N) % 2, target="y", missing="mean", workers=1)
    half = fit(HOLES[1::2], missing="mean")
    new = bs.predict(half, HOLES[::2])
    sd = new["sd"].to_numpy()
    score = -0.5 * ((Y[::2] - new["mean"].to_numpy()) / sd) ** 2 - np.log(sd) - 0.5 * np.log(2 * np.pi)
    np.testing.assert_allclose(found.elpd_i.to_numpy()[::2], score, rtol=1e-9)


def test_loo_by_refits_fills_in_anew():
    some = HOLES[:40][["dose", "age", "y"]]
    found = bs.loo(fit(some, missing="mean"), refit=True, data=some, workers=1)
    same = bs.kfold("ard_gaussian", some, "loo", target="y", missing="mean", workers=1)
    np.testing.assert_allclose(found.elpd_i, same.elpd_i, rtol=1e-10)


@pytest.mark.parametrize("missing", ["drop", "mean"])
def test_sparse_and_dense_arrays_agree(missing):
    X = np.where(RNG.random((N, 6)) < 0.4, RNG.normal(size=(N, 6)), 0.0)
    y = X[:, 0] - X[:, 4] + 0.3 * RNG.normal(size=N)
    X[3, 1] = X[50, 1] = X[7, 4] = np.nan
    one, other = (bs.fit("ard_gaussian", (A, y), draws=0, missing=missing) for A in (X, csr_array(X)))
    names = one["evidence"]["basis"].to_numpy().tolist()
    assert names == [f"x{j}" for j in range(6)] + (["x1[missing]", "x4[missing]"] if missing == "mean" else [])
    np.testing.assert_allclose(one["evidence"]["mean"], other["evidence"]["mean"], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(bs.predict(one, X)["mean"], bs.predict(other, csr_array(X))["mean"], rtol=1e-9)


# --- constant columns, targets of whole numbers, one row, pruned columns ----------------------------------------------


@pytest.mark.quick
def test_constant_columns_are_left_out_with_one_message(tree, caplog):
    wide = data().assign(flat=3.0, same="word", none=0)
    with caplog.at_level(logging.INFO, "bayes_sparse"):
        made = fit(wide)
    assert [r.message for r in caplog.records] == [
        "Constant columns say nothing beside a bias, and are left out: 'flat', 'same[word]', 'none'."
    ]
    assert_same_fit(made, tree)
    table = bs.relevance(made)
    assert table.index[-3:].tolist() == ["flat", "same[word]", "none"]
    assert not table[["kept", "relevant"]].iloc[-3:].to_numpy().any()
    assert bs.relevance(made, by="column").index[-3:].tolist() == ["flat", "same", "none"]
    np.testing.assert_allclose(bs.predict(made, wide)["mean"], bs.predict(tree, FRAME)["mean"], rtol=1e-12)
    np.testing.assert_allclose(bs.predict(made, FRAME)["mean"], bs.predict(tree, FRAME)["mean"], rtol=1e-12)


def test_pixels_that_are_never_inked():
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    X, y = X[:150], y[:150]
    blank = X.std(axis=0) == 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trees = [
            bs.fit("student_multinomial", (A, y), draws=0, max_iterations=5) for A in (X, csr_array(X), X[:, ~blank])
        ]
    for one in trees[:2]:
        np.testing.assert_allclose(one["evidence"]["mean"], trees[2]["evidence"]["mean"], rtol=1e-6, atol=1e-9)
        table = bs.relevance(one)
        assert len(table) == 640
        assert not table["kept"].iloc[-10 * blank.sum() :].any()
        whole = bs.relevance(one, by="feature")
        assert sorted(whole.index[-blank.sum() :]) == sorted(f"x{j}" for j in np.flatnonzero(blank))
    both = [bs.predict(trees[0], X[:3])["probability"], bs.predict(trees[2], X[:3, ~blank])["probability"]]
    np.testing.assert_allclose(*both, rtol=1e-9)


def test_whole_numbers_of_many_values_are_normal(caplog):
    y = np.round(20 * Y).astype(int)
    with caplog.at_level(logging.INFO, "bayes_sparse"):
        found = fit(data(y))
    assert "taken as normal" in caplog.text
    assert_same_fit(found, fit(data(y), likelihood="normal"))
    refused(lambda: fit(data(np.arange(N) % 20)), "whole numbers with 20 values")


def test_one_row_by_itself(tree):
    expected = bs.predict(tree, FRAME[3:4])["mean"].to_numpy()
    np.testing.assert_allclose(bs.predict(tree, FRAME.iloc[3])["mean"], expected)
    hand = bs.fit("ard_gaussian", (by_hand().to_numpy(), Y), draws=0)
    row = by_hand().to_numpy()[3]
    labelled = xr.DataArray(row, dims="kind", coords={"kind": [f"x{j}" for j in range(len(row))]})
    for form in (row, row.tolist(), pd.Series(row), csr_array(row[None]), labelled):
        np.testing.assert_allclose(bs.predict(hand, form)["mean"], expected, rtol=1e-9)
    one = bs.fit("ard_gaussian", (FRAME["dose"].to_numpy(), Y), draws=0)
    assert bs.predict(one, FRAME["dose"].to_numpy()).sizes == {"obs": N}  # of one column, many rows
    refused(lambda: bs.predict(hand, row[:-1]), "the 8 columns of the fit", "it has 7")


def test_rows_in_dicts(tree):
    some = FRAME.astype({"site": int})[2:5]
    expected = bs.predict(tree, FRAME[2:5])["mean"].to_numpy()
    for form in (some.to_dict("list"), some.to_dict("records"), {name: some[name].to_numpy() for name in some}):
        np.testing.assert_array_equal(bs.predict(tree, form)["mean"], expected)
    np.testing.assert_array_equal(bs.predict(tree, some.iloc[0].to_dict())["mean"], expected[:1])
    refused(lambda: bs.predict(tree, {"dose": 1.0}), "missing: 'colour', 'smokes'")


def test_a_pruned_column_may_be_missing(tree):
    pruned = [name for name in ("age", "site") if not bs.relevance(tree, by="column").loc[name, "kept"]]
    assert pruned  # or this tests nothing
    expected = bs.predict(tree, FRAME)["mean"]
    np.testing.assert_array_equal(bs.predict(tree, FRAME.drop(columns=pruned))["mean"], expected)
    refused(lambda: bs.predict(tree, FRAME.drop(columns="colour")), "missing: 'colour'")


def test_a_formula_says_what_reads_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "formulaic", None)
    refused(lambda: bs.fit("ard_gaussian", data(), formula="y ~ dose"), "bayes_sparse[formula]", kind=ImportError)


def test_a_model_of_ones_own_reads_its_data_itself():
    with pm.Model() as model:
        w = pm.Normal("w", 0, 1, shape=2)
        pm.Normal("y", by_hand()[["dose", "age"]].to_numpy() @ w, 1.0, observed=Y)
    refused(lambda: bs.fit(model, missing="drop"), "missing and formula")
    tree = bs.fit(model, draws=0, sparse="w")
    refused(lambda: bs.predict(tree, model=model, unseen="ignore"), "leave out `missing` and `unseen`")


@pytest.mark.parametrize(
    ("column", "mentions"),
    [
        ([[1, 2]] * N, ("'odd' holds [1, 2]", "one value per row")),
        (pd.period_range("2020-01", periods=N, freq="M"), ("dates or times", "days since")),
        (pd.to_timedelta(np.arange(N), unit="h"), ("its seconds",)),
    ],
    ids=["lists", "periods", "lengths of time"],
)
def test_columns_that_are_neither_numbers_nor_categories(column, mentions):
    refused(lambda: fit(data().assign(odd=column)), *mentions)


def test_targets_that_are_no_numbers():
    when = pd.Series(pd.date_range("2020-01-01", periods=N))
    for dates in (when, when.dt.date):
        refused(lambda dates=dates: fit(data(dates)), "target 'y' holds dates", "days since")
    refused(lambda: fit(data(when), likelihood="gamma"), "target 'y' holds dates")
    refused(lambda: fit(data(Y.astype(str))), f"{N} labels", "pandas.to_numeric")
    refused(lambda: fit(data(TWO), likelihood="gamma"), "'gamma' cannot take", "pandas.to_numeric")
    levels = pd.Categorical.from_codes(np.digitize(Y, [-0.5, 1.0]), ["low", "mid", "high"], ordered=True)
    refused(lambda: fit(data(levels), likelihood="ordinal"), "0 for the lowest", "cat.codes")
    assert_same_fit(
        fit(data(levels.codes), likelihood="ordinal"),
        fit(data(levels.codes), likelihood=bs.likelihoods.ordinal(levels=3)),
    )


def test_missing_values_of_new_rows_say_what_can_be_done_with_them(tree):
    holes = FRAME.assign(dose=np.nan)
    said = refused(lambda: bs.predict(tree, holes), "'dose' (120)", "if the fit was made with it")
    assert "remove the columns" not in said


def test_a_lazy_frame_is_to_be_collected():
    refused(lambda: fit(pl.DataFrame({"a": [1.0], "y": [1.0]}).lazy()), "collect() it first", kind=TypeError)


def test_one_word_among_numbers_is_a_slip_and_not_a_category():
    age = [str(value) for value in range(20, 60)]
    age[7] = "unknown"
    frame = pd.DataFrame({"age": age, "x": np.arange(40.0), "y": np.arange(40.0) % 7})
    with pytest.raises(ValueError, match=r"Column 'age' holds numbers but for 'unknown' in row 7 \(1 of 40"):
        bs.fit("ard_gaussian", frame, target="y", draws=0)
