"""Laws of fits with several classes, over every method that takes them."""

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import bayes_sparse as bs
from tests.support import examples

pytestmark = [pytest.mark.quick, pytest.mark.filterwarnings("ignore::bayes_sparse.FitWarning")]
METHODS = ["mackay", "em", "sequential", "one_vs_rest"]
LABELS = np.array(["ape", "bee", "cat"])
seeds = st.integers(0, 2**32 - 1)
some = examples(6)
few = examples(3)


def data(seed, n=60, p=4):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) * rng.uniform(0.5, 2, p) + rng.normal(size=p)
    W = rng.normal(size=(p, 3)) * (rng.random((p, 3)) < 0.5)
    codes = np.argmax(X @ W + rng.gumbel(size=(n, 3)), axis=1)
    codes[:3] = [0, 1, 2]  # every class is there
    return X, LABELS[codes]


def fitted(method, X, y, **settings):
    # EM takes its time, and is here to be compared with
    limit = {"max_iterations": 60} if method == "em" else {}
    settings = {"hyper": (0.0, 0.0)} | settings
    return bs.fit("student_multinomial", (X, y), method=method, draws=0, progressbar=False, **limit, **settings)


@pytest.mark.parametrize("method", METHODS)
@given(seed=seeds)
@some
def test_the_objective_never_falls(method, seed):
    evidence = fitted(method, *data(seed))["evidence"]
    history = evidence["history"].to_numpy()
    assert np.all(np.diff(history) >= -1e-8)
    assert float(evidence["objective"]) >= history[-1] - 1e-3 * evidence.sizes["basis"]  # phantoms are deleted after it
    pruned = ~evidence["kept"].to_numpy()
    assert np.all(np.isinf(evidence["alpha"].to_numpy()[pruned]))
    assert np.all(evidence["mean"].to_numpy()[pruned] == 0)


@pytest.mark.parametrize("method", METHODS)
@given(seed=seeds)
@few
def test_new_names_for_the_classes_change_nothing_else(method, seed):
    X, y = data(seed)
    renamed = np.array(["zebra", "yak", "wolf"])[np.searchsorted(LABELS, y)]  # the order of classes turns round
    a, b = fitted(method, X, y), fitted(method, X, renamed)
    assert_allclose(a["evidence"]["log_evidence"], b["evidence"]["log_evidence"], rtol=1e-6)
    p, q = bs.predict(a, X)["probability"].to_numpy(), bs.predict(b, X)["probability"].to_numpy()
    # the average is over other draws
    assert_allclose(p, q[:, ::-1], atol=0.06)


@pytest.mark.parametrize("method", METHODS)
@given(seed=seeds)
@few
def test_the_order_of_rows_and_columns_does_not_matter(method, seed):
    X, y = data(seed)
    rng = np.random.default_rng(seed)
    rows, columns = rng.permutation(len(X)), rng.permutation(X.shape[1])
    a, b = fitted(method, X, y), fitted(method, X[rows][:, columns], y[rows])
    assert_allclose(a["evidence"]["log_evidence"], b["evidence"]["log_evidence"], rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("method", METHODS)
@given(seed=seeds)
@few
def test_units_do_not_matter(method, seed):
    X, y = data(seed)
    scale, shift = 10.0 ** np.arange(-2.0, 2.0), np.arange(4.0)
    a, b = fitted(method, X, y), fitted(method, X * scale + shift, y)
    assert_allclose(a["evidence"]["log_evidence"], b["evidence"]["log_evidence"], rtol=1e-6)
    assert_array_equal(a["evidence"]["kept"], b["evidence"]["kept"])
    assert_allclose(a["evidence"]["mean"], b["evidence"]["mean"] * np.tile(scale, 3), rtol=1e-4, atol=1e-6)
    assert_allclose(
        bs.predict(a, X)["probability"], bs.predict(b, X * scale + shift)["probability"], rtol=1e-4, atol=1e-6
    )


@pytest.mark.parametrize("method", METHODS)
@given(seed=seeds)
@few
def test_probabilities_sum_to_one_and_survive_a_file(method, seed, tmp_path_factory):
    X, y = data(seed)
    tree = fitted(method, X, y)
    prediction = bs.predict(tree, X)
    assert_allclose(prediction["probability"].sum("class"), 1.0, rtol=1e-12)
    assert prediction["class"].to_numpy().tolist() == LABELS.tolist()
    path = tmp_path_factory.mktemp("tree") / "tree.nc"
    tree.to_netcdf(path, engine="h5netcdf")
    with xr.open_datatree(path, engine="h5netcdf") as again:
        assert_array_equal(bs.predict(again, X)["probability"], prediction["probability"])


@pytest.mark.parametrize("method", METHODS)
@given(seed=seeds, kind=st.sampled_from(["separable", "wide", "collinear", "rare"]))
@examples(8)
def test_hard_data_end_in_a_known_status(method, seed, kind):
    rng = np.random.default_rng(seed)
    X, y = data(seed, n=30)
    if kind == "separable":
        X = np.column_stack([X, 5.0 * np.searchsorted(LABELS, y) + rng.random(30)])
    if kind == "wide":
        X = rng.standard_normal((30, 60))
    if kind == "collinear":
        X = np.column_stack([X, X @ rng.normal(size=(4, 3))])
    if kind == "rare":
        y = np.where(np.arange(30) == 0, "ape", np.where(np.arange(30) < 15, "bee", "cat"))
    evidence = fitted(method, X, y)["evidence"]
    assert evidence.attrs["status"] in {"converged", "separable", "null", "max_iterations"}
    assert np.isfinite(evidence["log_evidence"])
    assert np.isfinite(evidence["mean"]).all()
