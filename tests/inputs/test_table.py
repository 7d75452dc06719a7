"""What people hand in: every form of the same data gives the same fit, and its names reach every output."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xarray as xr

import bayes_sparse as bs
from tests.support import refused

pytestmark = pytest.mark.quick

RNG = np.random.default_rng(4)
N = 80
# Quarters and eighths are the same number in single and in double precision.
X = np.round(8 * RNG.standard_normal((N, 4))) / 8
Y = np.round(64 * (X @ np.array([2.0, 0.0, -1.0, 0.0]) + 1.0 + 0.3 * RNG.standard_normal(N))) / 64
NAMES = ["height", "age", "dose", "noise"]
ROWS = np.array([f"patient {i}" for i in range(N)])
CLASS = (X[:, 0] + 0.8 * RNG.standard_normal(N) > 0).astype(int)


def frame():
    return pd.DataFrame(X, columns=NAMES, index=pd.Index(ROWS, name="patient"))


def dataset():
    columns = {name: ("patient", X[:, j]) for j, name in enumerate(NAMES)}
    return xr.Dataset({**columns, "response": ("patient", Y)}, coords={"patient": ROWS})


def matrix_dataset():
    return xr.Dataset(
        {"measurement": (("kind", "patient"), X.T), "response": ("patient", Y)},
        coords={"patient": ROWS, "kind": NAMES},
    )


PAIRS = {
    "float64": (X, Y),
    "float32": (X.astype(np.float32), Y.astype(np.float32)),
    "fortran": (np.asfortranarray(X), Y),
    "strided": (np.repeat(X, 2, axis=1)[:, ::2], np.repeat(Y, 2)[::2]),
    "lists": (X.tolist(), Y.tolist()),
    "column target": (X, Y[:, None]),
    "pandas": (frame(), pd.Series(Y, index=frame().index, name="response")),
    "pandas nullable": (frame().astype("Float64"), pd.Series(Y).astype("Float64")),
    "pandas target frame": (frame(), pd.DataFrame({"response": Y})),
    "polars": (pl.DataFrame(X, schema=NAMES), pl.Series("response", Y)),
    "pyarrow": (pa.table(dict(zip(NAMES, X.T, strict=True))), pa.chunked_array([Y[:5], Y[5:]])),
    "dataset": (dataset().drop_vars("response"), dataset()["response"]),
    "xarray": (
        xr.DataArray(X, dims=("patient", "kind"), coords={"patient": ROWS, "kind": NAMES}),
        xr.DataArray(Y, dims="patient", name="response"),
    ),
}
FRAMES = {
    "pandas": frame().assign(response=Y),
    "pandas target first": frame().assign(response=Y)[["response", *NAMES]],
    "polars": pl.DataFrame({**dict(zip(NAMES, X.T, strict=True)), "response": Y}),
    "pyarrow": pa.table({**dict(zip(NAMES, X.T, strict=True)), "response": Y}),
    "dataset": dataset(),
    "dataset with a matrix": matrix_dataset(),
}


@pytest.fixture(scope="module")
def plain():
    return bs.fit("ard_gaussian", (X, Y), draws=0)


def assert_same_fit(tree, plain):
    for name in ("log_evidence", "alpha", "mean", "sd", "gamma", "relevant", "sigma", "bias"):
        np.testing.assert_allclose(tree["evidence"][name], plain["evidence"][name], rtol=1e-6, err_msg=name)


@pytest.mark.parametrize("form", PAIRS)
def test_every_pair_gives_the_same_fit(form, plain):
    assert_same_fit(bs.fit("ard_gaussian", PAIRS[form], draws=0), plain)


@pytest.mark.parametrize("form", FRAMES)
def test_every_table_gives_the_same_fit(form, plain):
    tree = bs.fit("ard_gaussian", FRAMES[form], target="response", draws=0)
    assert_same_fit(tree, plain)
    assert tree["evidence"]["basis"].to_numpy().tolist() == NAMES
    assert list(tree["observed_data"].data_vars) == ["response"]


def test_whole_numbers_and_floats_mix():
    whole = np.round(4 * X[:, :2]).astype(int)
    mixed = pd.DataFrame({"a": whole[:, 0], "b": X[:, 2], "c": whole[:, 1] > 0})
    as_floats = mixed.astype(float)
    assert mixed.dtypes.nunique() == 3
    assert_same_fit(
        bs.fit("ard_gaussian", (mixed, Y), draws=0), bs.fit("ard_gaussian", (as_floats.to_numpy(), Y), draws=0)
    )


def test_an_array_of_whole_numbers():
    whole = np.round(4 * X).astype(np.int32)
    assert_same_fit(
        bs.fit("ard_gaussian", (whole, Y), draws=0), bs.fit("ard_gaussian", (whole.astype(float), Y), draws=0)
    )


def test_one_feature_may_be_a_vector():
    tree = bs.fit("ard_gaussian", (X[:, 0], Y), draws=0)
    assert_same_fit(tree, bs.fit("ard_gaussian", (X[:, :1], Y), draws=0))
    np.testing.assert_array_equal(bs.predict(tree, X[:5, 0])["mean"], bs.predict(tree, X[:5, :1])["mean"])


@pytest.mark.parametrize("form", ["pandas", "dataset", "dataset with a matrix"])
def test_names_reach_every_output(form):
    data = FRAMES[form]
    tree = bs.fit("ard_gaussian", data, target="response", draws=10, chains=2, random_seed=0)
    assert tree["posterior"]["w"].dims == ("chain", "draw", "basis")
    assert tree["posterior"]["basis"].to_numpy().tolist() == ["height", "dose"]
    assert tree["observed_data"]["response"].dims == ("patient",)
    assert tree["observed_data"]["patient"].to_numpy().tolist() == ROWS.tolist()
    assert tree["log_likelihood"]["response"].dims == ("chain", "draw", "patient")
    assert set(bs.relevance(tree).index) == set(NAMES)
    prediction = bs.predict(tree, data)
    assert prediction["mean"].dims == ("patient",)
    assert prediction["patient"].to_numpy().tolist() == ROWS.tolist()


def test_names_of_a_pair_of_data_arrays_reach_every_output():
    tree = bs.fit("ard_gaussian", PAIRS["xarray"], draws=10, chains=2, random_seed=0)
    assert tree["evidence"]["basis"].to_numpy().tolist() == NAMES
    assert tree["observed_data"]["response"].dims == ("patient",)
    assert tree["observed_data"]["patient"].to_numpy().tolist() == ROWS.tolist()
    assert bs.predict(tree, PAIRS["xarray"][0])["mean"].dims == ("patient",)


def test_arrays_get_names():
    tree = bs.fit("ard_gaussian", (X, Y), draws=0)
    assert tree["evidence"]["basis"].to_numpy().tolist() == ["x0", "x1", "x2", "x3"]
    assert tree["observed_data"]["y"].dims == ("obs",)


def test_target_names_the_y_of_a_pair():
    tree = bs.fit("ard_gaussian", (X, Y), target="response", draws=0)
    assert list(tree["observed_data"].data_vars) == ["response"]


def test_rows_name_the_kernels():
    tree = bs.fit("ard_gaussian", FRAMES["pandas"], target="response", basis=bs.basis.rbf(width=2.0), draws=0)
    assert tree["evidence"]["basis"].to_numpy().tolist() == [f"rbf({row})" for row in ROWS]
    assert tree["constant_data"]["X"].dims == ("patient", "feature")
    assert tree["constant_data"]["feature"].to_numpy().tolist() == NAMES


LABELS = {
    "0/1": (CLASS, [0, 1], "i"),
    "-1/+1": (2 * CLASS - 1, [-1, 1], "i"),
    "booleans": (CLASS == 1, [False, True], "b"),
    "strings": (np.where(CLASS == 1, "sick", "healthy"), ["healthy", "sick"], "U"),
    "unsigned": (CLASS.astype(np.uint8), [0, 1], "u"),
}


@pytest.mark.parametrize("form", LABELS)
def test_predicted_labels_are_those_given(form):
    labels, classes, kind = LABELS[form]
    tree = bs.fit("ard_gaussian", (X, labels), draws=0)
    prediction = bs.predict(tree, X)
    assert prediction["class"].to_numpy().tolist() == classes
    assert prediction["label"].dtype.kind == kind
    assert set(prediction["label"].to_numpy().tolist()) == set(classes)
    chosen = prediction["probability"].to_numpy().argmax(axis=1)
    np.testing.assert_array_equal(prediction["label"], prediction["class"].to_numpy()[chosen])
    assert np.mean(prediction["label"].to_numpy() == labels) > 0.7
    np.testing.assert_array_equal(tree["observed_data"]["y"], CLASS)


@pytest.mark.parametrize(
    "labels",
    [
        pd.Series(np.where(CLASS == 1, "sick", "healthy")).astype("category"),
        pd.Series(np.where(CLASS == 1, "sick", "healthy")),
        pd.Series(np.where(CLASS == 1, "sick", "healthy"), dtype="string"),
        pl.Series(np.where(CLASS == 1, "sick", "healthy").tolist()),
        np.where(CLASS == 1, "sick", "healthy").tolist(),
    ],
    ids=["pandas categorical", "pandas", "pandas string", "polars", "list"],
)
def test_strings_in_any_container(labels):
    tree = bs.fit("ard_gaussian", (X, labels), draws=0)
    expected = bs.fit("ard_gaussian", (X, CLASS), draws=0)
    np.testing.assert_allclose(tree["evidence"]["log_evidence"], expected["evidence"]["log_evidence"], rtol=1e-12)
    assert bs.predict(tree, X)["class"].to_numpy().tolist() == ["healthy", "sick"]


def test_booleans_held_as_objects_stay_booleans():
    tree = bs.fit("ard_gaussian", (X, (CLASS == 1).astype(object)), draws=0)
    assert bs.predict(tree, X)["class"].to_numpy().tolist() == [False, True]


def test_columns_set_aside_are_not_features():
    weights, offset = np.linspace(0.5, 2.0, N), np.linspace(-1.0, 1.0, N)
    table = FRAMES["pandas"].assign(weight=weights, known=offset)
    by_name = bs.fit("ard_gaussian", table, target="response", weights="weight", offset="known", draws=0)
    given = bs.fit("ard_gaussian", FRAMES["pandas"], target="response", weights=weights, offset=offset, draws=0)
    assert by_name["evidence"]["basis"].to_numpy().tolist() == NAMES
    assert_same_fit(by_name, given)


def test_the_users_arrays_are_not_written_to():
    before_X, before_y = X.copy(), Y.copy()
    for basis in (bs.basis.linear(), bs.basis.rbf(width=1.0, standardise=True), bs.basis.precomputed(standardise=True)):
        tree = bs.fit("ard_gaussian", (X, Y), basis=basis, draws=5, chains=1)
        bs.predict(tree, X)
    np.testing.assert_array_equal(X, before_X)
    np.testing.assert_array_equal(Y, before_y)


def test_read_only_arrays_are_taken():
    locked_X, locked_y = X.copy(), Y.copy()
    locked_X.flags.writeable = locked_y.flags.writeable = False
    assert bs.fit("ard_gaussian", (locked_X, locked_y), draws=0)["evidence"].attrs["status"] == "converged"


def test_columns_named_by_numbers_can_be_named_by_numbers():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(40, 4)))
    frame[4] = frame[0] - frame[2] + 0.1 * rng.normal(size=40)
    tree = bs.fit("ard_gaussian", frame, target=4, keep=[1], draws=0)
    assert list(tree["evidence"]["basis"].to_numpy()) == ["0", "1", "2", "3"]
    assert bool(tree["evidence"]["kept"].sel(basis="1"))


def labelled_rows():
    rng = np.random.default_rng(2)
    X = pd.DataFrame(rng.standard_normal((30, 2)), columns=["a", "b"], index=[f"row {i}" for i in range(30)])
    return X, pd.Series(2 * X["a"] + 0.1 * rng.standard_normal(30), name="t")


def test_targets_with_the_labels_of_the_rows_in_another_order_are_put_in_theirs():
    X, y = labelled_rows()
    straight, shuffled = (bs.fit("ard_gaussian", (X, t), draws=0) for t in (y, y.sample(frac=1.0, random_state=0)))
    xr.testing.assert_identical(straight["observed_data"].to_dataset(), shuffled["observed_data"].to_dataset())
    np.testing.assert_array_equal(straight["evidence"]["mean"], shuffled["evidence"]["mean"])
    by_place = bs.fit("ard_gaussian", (X, y.reset_index(drop=True)), draws=0)  # plain numbers are no labels
    np.testing.assert_array_equal(straight["evidence"]["mean"], by_place["evidence"]["mean"])


def test_targets_with_other_labels_than_the_rows_are_refused():
    X, y = labelled_rows()
    other = y.set_axis([f"row {i + 1}" for i in range(30)])
    refused(lambda: bs.fit("ard_gaussian", (X, other)), "'row 0' of X", "y as an array")


@pytest.mark.parametrize("where", ["X", "y", "weights"])
def test_masked_values_are_refused(where):
    X, y = labelled_rows()
    given = {"X": X.to_numpy(), "y": y.to_numpy(), "weights": np.ones(30)}
    given[where] = np.ma.masked_greater(given[where], np.sort(given[where].ravel())[-3] - 1e-9)
    what = {"X": "X is", "y": "The target is", "weights": "`weights` is"}[where]
    refused(lambda: bs.fit("ard_gaussian", (given["X"], given["y"]), weights=given["weights"]), what, "masked")
    unmasked = np.ma.asarray(X.to_numpy())
    bs.fit("ard_gaussian", (unmasked, y.to_numpy()), draws=0)  # nothing is hidden there


@pytest.mark.parametrize("name", ["weights", "offset"])
@pytest.mark.parametrize("frame", [False, True], ids=["pair", "frame"])
def test_other_values_a_row_follow_its_label_too(name, frame):
    X, y = labelled_rows()
    values = pd.Series(np.linspace(0.5, 2.0, 30), index=X.index)
    data, target = (X.assign(t=y), "t") if frame else ((X, y), None)
    straight, shuffled, by_place = (
        bs.fit("ard_gaussian", data, target=target, draws=0, **{name: given})["evidence"]["mean"].to_numpy()
        for given in (values, values.sample(frac=1.0, random_state=0), values.to_numpy())
    )
    np.testing.assert_array_equal(straight, shuffled)
    np.testing.assert_array_equal(straight, by_place)
    other = values.set_axis([f"row {i + 1}" for i in range(30)])
    refused(lambda: bs.fit("ard_gaussian", data, target=target, **{name: other}), f"`{name}`", "'row 0'")
