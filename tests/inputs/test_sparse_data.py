"""Sparse features through the front door: the fit of the dense matrix, in every form, by every method."""

import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

import bayes_sparse as bs
from bayes_sparse.inputs import declaration
from bayes_sparse.inputs.declaration import standardised
from bayes_sparse.inputs.named_model import kept_precision
from bayes_sparse.inputs.prepare import prepare
from bayes_sparse.models import ARDGaussian
from tests.support import refused

RNG = np.random.default_rng(11)
N, P = 120, 12
X = np.round(8 * RNG.standard_normal((N, P))) / 8 * (RNG.random((N, P)) < 0.3)
X[:, 3] += 40.0  # a column that is nowhere zero, and far from it
ETA = 2.0 * X[:, 0] - 1.5 * X[:, 5] + 0.5 * X[:, 3] - 20.0
TARGETS = {
    "normal": ETA + 0.3 * RNG.standard_normal(N) + 1.0,
    "bernoulli": (ETA + RNG.logistic(size=N) > 0).astype(int),
    "poisson": RNG.poisson(np.exp(0.4 * ETA)),
}
NAMES = [f"word {j}" for j in range(P)]
FORMATS = ["bsr", "coo", "csc", "csr", "dia", "dok", "lil"]
METHODS = ["sequential", "mackay", "em", "revm", "full_matrix"]


def sparse_frame(matrix=X):
    return pd.DataFrame.sparse.from_spmatrix(sp.csr_matrix(matrix), columns=NAMES)


def assert_same_fit(tree, dense, rtol=1e-6):
    names = ["log_evidence", "mean", "sd", "alpha", "gamma", "relevant"]
    for name in names:
        found, truth = tree["evidence"][name].to_numpy(), dense["evidence"][name].to_numpy()
        # Beside the largest: a weight or a precision next to nothing is not known to so many digits of its own.
        finite = np.abs(truth[np.isfinite(truth)].astype(float))
        assert_allclose(found, truth, rtol=rtol, atol=1e-9 * finite.max(initial=0.0), err_msg=name)


def assert_same_prediction(found, truth, rtol=1e-6):
    assert list(found.data_vars) == list(truth.data_vars)
    for name in set(truth.data_vars) - {"label"}:
        assert_allclose(found[name], truth[name], rtol=rtol, atol=1e-9, err_msg=name)


def assert_sparse_and_dense_agree(data, y, new, **settings):
    dense = bs.fit("ard_gaussian", (data, y), draws=0, **settings)
    tree = bs.fit("ard_gaussian", (sp.csr_array(data), y), draws=0, **settings)
    assert_same_fit(tree, dense)
    truth = bs.predict(dense, new)
    assert_same_prediction(bs.predict(tree, sp.coo_array(new)), truth)
    assert_same_prediction(bs.predict(tree, new), truth)
    assert_same_prediction(bs.predict(dense, sp.csc_matrix(new)), truth)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("likelihood", TARGETS)
def test_every_method_gives_the_fit_of_the_dense_matrix(method, likelihood):
    assert_sparse_and_dense_agree(X, TARGETS[likelihood], X[:30], method=method, likelihood=likelihood)


@pytest.mark.parametrize("method", METHODS)
def test_more_columns_than_rows(method):
    rng = np.random.default_rng(12)
    wide = rng.standard_normal((40, 60)) * (rng.random((40, 60)) < 0.3)
    y = wide[:, :2] @ np.array([3.0, -2.0]) + 1.5 * rng.standard_normal(40)
    assert_sparse_and_dense_agree(wide, y, wide[:10], method=method)


@pytest.fixture(scope="module")
def plain():
    return bs.fit("ard_gaussian", (X, TARGETS["normal"]), draws=0)


@pytest.mark.parametrize("kind", [f"{form}_{what}" for form in FORMATS for what in ("array", "matrix")])
def test_every_format(kind, plain):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sp.SparseEfficiencyWarning)  # so many diagonals
        data = getattr(sp, kind)(X)
    tree = bs.fit("ard_gaussian", (data, TARGETS["normal"]), draws=0)
    assert_same_fit(tree, plain)
    assert tree["evidence"]["basis"].to_numpy().tolist() == [f"x{j}" for j in range(P)]


@pytest.mark.parametrize("basis", [bs.basis.linear(bias=False), bs.basis.linear(standardise=False), "precomputed"])
@pytest.mark.parametrize("keep", [None, ["x3", "x7"]])
def test_every_basis_of_the_features_themselves(basis, keep):
    y, weights = TARGETS["normal"], np.linspace(0.5, 2.0, N)
    settings = {"basis": basis, "keep": keep, "weights": weights, "offset": 0.1 * weights, "draws": 0}
    dense = bs.fit("ard_gaussian", (X, y), **settings)
    tree = bs.fit("ard_gaussian", (sp.csc_array(X), y), **settings)
    assert_same_fit(tree, dense)
    assert_same_prediction(bs.predict(tree, sp.csc_array(X), offset=weights), bs.predict(dense, X, offset=weights))


def test_draws_are_those_of_the_dense_matrix(plain):
    settings = {"draws": 50, "chains": 2, "random_seed": 3}
    dense = bs.fit("ard_gaussian", (X, TARGETS["normal"]), **settings)
    tree = bs.fit("ard_gaussian", (sp.csr_array(X), TARGETS["normal"]), **settings)
    assert_allclose(tree["posterior"]["w"], dense["posterior"]["w"], rtol=1e-6)
    assert_allclose(tree["log_likelihood"]["y"], dense["log_likelihood"]["y"], rtol=1e-6)


def test_several_classes():
    y = np.digitize(ETA, [-1.0, 1.0])
    settings = {"likelihood": "categorical", "method": "revm", "draws": 0}
    dense = bs.fit("ard_gaussian", (X, y), **settings)
    tree = bs.fit("ard_gaussian", (sp.csr_array(X), y), **settings)
    assert_allclose(tree["evidence"]["log_evidence"], dense["evidence"]["log_evidence"], rtol=1e-8)
    assert_same_prediction(bs.predict(tree, sp.csr_array(X)), bs.predict(dense, X), rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.uint8, np.bool_, np.float32])
def test_whole_numbers_and_booleans(dtype):
    whole = np.abs(4 * X[:, [0, 1, 2, 4, 5]]).astype(dtype)
    y = 2.0 * whole[:, 1] + 0.3 * RNG.standard_normal(N)
    dense = bs.fit("ard_gaussian", (whole.astype(float), y), draws=0)
    assert_same_fit(bs.fit("ard_gaussian", (sp.csr_array(whole), y), draws=0), dense)


def as_sparse(j, **settings):
    return {NAMES[j]: pd.arrays.SparseArray(X[:, j], **settings)}


FRAMES = {
    "from scipy": {},
    "sparse target": {"y": pd.arrays.SparseArray(TARGETS["normal"], fill_value=0.0)},
    "another fill value": as_sparse(3, fill_value=40.0),
    "in blocks": as_sparse(5, fill_value=0.0, kind="block"),
    "nothing left out": as_sparse(5),  # the default fill value of floats is NaN
    "half dense": {NAMES[j]: X[:, j] for j in range(P // 2)},
    "most dense": {NAMES[j]: X[:, j] for j in range(P // 2 + 1)},
}


@pytest.mark.parametrize("make", FRAMES)
def test_every_frame(make, plain):
    frame = sparse_frame().assign(y=TARGETS["normal"]).assign(**FRAMES[make])
    tree = bs.fit("ard_gaussian", frame, target="y", draws=0)
    assert_same_fit(tree, plain)
    assert tree["evidence"]["basis"].to_numpy().tolist() == NAMES
    features = frame.drop(columns="y")
    truth = bs.predict(plain, X)
    assert_same_prediction(bs.predict(tree, features), truth)
    assert_same_prediction(bs.predict(tree, features[NAMES[::-1]].assign(more=1.0)), truth)
    assert_same_fit(bs.fit("ard_gaussian", (features, TARGETS["normal"]), draws=0), plain)
    data = prepare(frame, "y", "normal", bs.basis.linear(), None, None, None)
    assert sp.issparse(data.Phi) == (make != "most dense")


def test_whole_numbers_and_booleans_of_a_frame():
    whole = np.abs(4 * X).astype(int)
    frame = pd.DataFrame({"a": whole[:, 0], "b": whole[:, 1], "c": whole[:, 2] > 0})
    kinds = {"a": "Sparse[int]", "b": pd.SparseDtype("uint8", 0), "c": pd.SparseDtype(bool, False)}
    y = whole[:, 0] - 2.0 * whole[:, 2] + 0.3 * RNG.standard_normal(N)
    dense = bs.fit("ard_gaussian", (frame, y), draws=0)
    assert_same_fit(bs.fit("ard_gaussian", (frame.astype(kinds), y), draws=0), dense)


def test_columns_set_aside_may_be_sparse_too():
    weights = np.linspace(0.5, 2.0, N)
    frame = sparse_frame().assign(y=TARGETS["normal"], weight=pd.arrays.SparseArray(weights, fill_value=0.0))
    tree = bs.fit("ard_gaussian", frame, target="y", weights="weight", draws=0)
    assert_same_fit(tree, bs.fit("ard_gaussian", (X, TARGETS["normal"]), weights=weights, draws=0))


def test_the_users_matrix_is_not_written_to():
    untidy = sp.csc_array(X)
    untidy.data[::7] = 0.0
    untidy.indices[:2], untidy.data[:2] = untidy.indices[1::-1].copy(), untidy.data[1::-1].copy()
    dense, before = untidy.toarray(), untidy.copy()
    for array in (untidy.data, untidy.indices, untidy.indptr):
        array.flags.writeable = False
    tree = bs.fit("ard_gaussian", (untidy, TARGETS["normal"]), draws=0)
    bs.predict(tree, untidy)
    assert_same_fit(tree, bs.fit("ard_gaussian", (dense, TARGETS["normal"]), draws=0))
    assert_array_equal(untidy.data, before.data)
    assert_array_equal(untidy.indices, before.indices)


def test_columns_that_are_the_same_are_said():
    twice = np.hstack([X, X[:, [4]]])
    for data in (twice, sp.csr_array(twice)):
        with pytest.warns(UserWarning, match="the same up to sign: 'x12' is 'x4';"):
            bs.fit("ard_gaussian", (data, TARGETS["normal"]), draws=0)


def test_a_fit_of_the_features_kept_in_their_own_units():
    """Least squares on the columns kept is what the posterior mean tends to: weights and bias in the units of X."""
    tree = bs.fit("ard_gaussian", (sp.csr_array(X), TARGETS["normal"]), draws=0)
    kept = np.flatnonzero(tree["evidence"]["kept"])
    assert kept.tolist() == [0, 3, 5]
    least, *_ = np.linalg.lstsq(np.column_stack([X[:, kept], np.ones(N)]), TARGETS["normal"], rcond=None)
    sd = tree["evidence"]["sd"].to_numpy()[kept]
    assert np.all(np.abs(tree["evidence"]["mean"].to_numpy()[kept] - least[:-1]) < sd)
    assert abs(float(tree["evidence"]["bias"]) - least[-1]) < float(tree["evidence"]["bias_sd"])


def test_prediction_of_many_sparse_rows_is_never_dense():
    n, p = 3000, 3000
    rng = np.random.default_rng(0)
    new = sp.random_array((n, p), density=0.002, format="csr", rng=rng)
    wide = rng.standard_normal((60, p)) * (rng.random((60, p)) < 0.3)
    y = wide @ rng.standard_normal(p) + 0.1 * rng.standard_normal(60)
    with pytest.warns(bs.FitWarning, match="noise has collapsed"):  # which prediction does not mind
        tree = bs.fit("ard_gaussian", (sp.csr_array(wide), y), method="revm", draws=0)
    bs.predict(tree, new[:2])
    tracemalloc.start()
    found = bs.predict(tree, new)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 0.25 * 8 * n * p
    assert_same_prediction(found.isel(obs=slice(20)), bs.predict(tree, new[:20].toarray()))


# --- NUTS -------------------------------------------------------------------------------------------------------------


def prepared(matrix, basis=None, keep=None):
    return prepare((matrix, TARGETS["normal"]), None, "normal", basis or bs.basis.linear(), keep, None, None)


@pytest.mark.parametrize("basis", [bs.basis.linear(), bs.basis.linear(bias=False), bs.basis.precomputed()])
def test_a_declaration_is_that_of_the_dense_matrix(basis, messages):
    sparse, dense = prepared(sp.csr_array(X), basis, "x7"), prepared(X, basis, "x7")
    assert_allclose(standardised(sparse), standardised(dense), rtol=1e-12, atol=1e-12)
    assert any("made dense" in message for message in messages)
    assert_allclose(kept_precision(sparse, 3.0), kept_precision(dense, 3.0), rtol=1e-12)
    one, other = (ARDGaussian().declare(data, (0.5, 0.005)) for data in (sparse, dense))
    point = one.initial_point()
    mode = "FAST_COMPILE"
    assert_allclose(one.compile_logp(mode=mode)(point), other.compile_logp(mode=mode)(point), rtol=1e-10)


def test_a_large_declaration_is_refused(monkeypatch):
    monkeypatch.setattr(declaration, "_DENSE_BYTES", 8 * N * P - 1)
    with pytest.raises(ValueError, match=f"{N} rows of {P} columns .* fit by evidence first"):
        bs.fit("ard_gaussian", (sp.csr_array(X), TARGETS["normal"]), method="nuts")


def test_draws_predict_at_sparse_rows():
    tree = bs.fit("ard_gaussian", (X, TARGETS["normal"]), draws=50, chains=2, random_seed=0)
    drawn = bs.unpruned(tree).drop_nodes("evidence")  # what a tree by NUTS holds
    assert_same_prediction(bs.predict(drawn, sp.csr_array(X)), bs.predict(drawn, X))


@pytest.mark.slow
def test_nuts():
    settings = {"draws": 20, "chains": 1, "method": "nuts", "random_seed": 0, "progressbar": False, "tune": 20}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so few draws
        tree = bs.fit("ard_gaussian", (sp.csr_array(X[:, :3]), TARGETS["normal"]), **settings)
    assert_same_prediction(bs.predict(tree, sp.csr_array(X[:, :3])), bs.predict(tree, X[:, :3]))


# --- bad input --------------------------------------------------------------------------------------------------------


def refused_fit(X_, y, *mentions, **settings):
    assert refused(lambda: bs.fit("ard_gaussian", (X_, y), draws=0, **settings), *mentions)[0].isupper()


@pytest.mark.parametrize(
    "basis",
    [bs.basis.rbf(1.0), bs.basis.rbf("evidence"), "polynomial", "inner_product", bs.basis.function("numpy:sin")],
)
def test_other_bases_take_dense_rows(basis):
    refused_fit(sp.csr_array(X), TARGETS["normal"], "dense rows", "basis='linear'", "X.toarray()", basis=basis)


def test_new_rows_of_a_kernel_are_dense():
    tree = bs.fit("ard_gaussian", (X[:, :2], TARGETS["normal"]), basis=bs.basis.rbf(5.0), draws=0)
    with pytest.raises(ValueError, match="'rbf' takes dense rows"):
        bs.predict(tree, sp.csr_array(X[:, :2]))


def test_a_sparse_target():
    refused_fit(sp.csr_array(X), sp.csr_array(TARGETS["normal"][:, None]), "target", "dense", "y.toarray().ravel()")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_not_numbers(value):
    bad = sp.lil_array(X)
    bad[17, 4] = bad[80, 4] = bad[50, 6] = value
    refused_fit(bad, TARGETS["normal"], "'x4' (2), 'x6' (1)", "first in row 17")
    frame = sparse_frame(bad.toarray())
    refused_fit(frame, TARGETS["normal"], "'word 4' (2), 'word 6' (1)", "first in row 17")
    tree = bs.fit("ard_gaussian", (sp.csr_array(X), TARGETS["normal"]), draws=0)
    with pytest.raises(ValueError, match=r"'x4' \(2\), 'x6' \(1\), first in row 17"):
        bs.predict(tree, bad)


def test_a_frame_that_leaves_out_values_not_known():
    frame = pd.DataFrame(
        {"a": pd.arrays.SparseArray(X[:, 0]), "b": pd.arrays.SparseArray([np.nan] * 5 + [1.0] * (N - 5))}
    )
    refused_fit(frame, TARGETS["normal"], "'b' (5)", "first in row 0")


def test_numbers_too_large_to_add_up_are_numbers():
    """They are not called infinite: what is wrong with them is said."""
    big = sp.csr_array(X * np.where(np.arange(P) == 2, 1e306, 1.0))
    with np.errstate(over="ignore"):
        refused(lambda: prepared(big, bs.basis.precomputed()), "'x2'", "as large as 2.5e+306", "units")


def test_bad_shapes_and_kinds():
    y = TARGETS["normal"]
    refused_fit(sp.csr_array((N, 0)), y, "no feature columns")
    refused_fit(sp.csr_array((0, 3)), y[:0], "no rows")
    refused_fit(sp.coo_array(X[:, 0]), y, f"sparse array of shape ({N},)", "X.reshape(-1, 1)")
    refused_fit(sp.csr_array(X + 1j), y, "real numbers", "complex128")
    refused_fit(sp.csr_array(X[:50]), y, "50 rows", f"{N} values")
    refused_fit(sp.csr_array(np.hstack([X, np.zeros((N, 1))])), y, "Constant columns", "'x12'", keep="x12")
    refused_fit(sp.csr_array(np.hstack([X, np.full((N, 1), 0.1)])), y, "Constant columns", "'x12'", keep="x12")
    text = sparse_frame().assign(**{NAMES[2]: pd.Timestamp("2020-01-01")})
    refused_fit(text, y, "'word 2' is not numeric")
    with pytest.raises(TypeError, match=r"\(X, y\)"):
        bs.fit("ard_gaussian", sp.csr_array(X), target="y")


def test_new_rows_with_other_columns(plain):
    with pytest.raises(ValueError, match="must have the 12 columns of the fit"):
        bs.predict(plain, sp.csr_array(X[:, :5]))
    with pytest.raises(ValueError, match="missing: 'x0'"):
        bs.predict(plain, sparse_frame())
