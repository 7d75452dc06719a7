"""Bases: formulas against scipy, standardising, names, and functions of the user's own."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import bayes_sparse as bs
from tests.support import assert_one_sentence

RNG = np.random.default_rng(15)
N = 60
X = RNG.standard_normal((N, 2)) * [1.0, 3.0] + [0.5, -2.0]
NEW = RNG.standard_normal((7, 2)) * [1.0, 3.0] + [0.5, -2.0]
Z = (X - X.mean(axis=0)) / X.std(axis=0)
Y = np.sin(2 * Z[:, 0]) + Z[:, 1] + 0.5 * Z[:, 1] ** 2 + 0.1 * RNG.standard_normal(N)


def squares_and_products(X):
    """A basis function of a user's own."""
    return np.column_stack([X, X**2, X[:, :1] * X[:, 1:]])


def one_short(X):
    return X[1:]


def flat(X):
    return X[:, 0]


def masked(X):
    return np.ma.masked_less(X, 0.0)


def unmasked(X):
    return np.ma.array(X)


def complex_valued(X):
    return X + 1j


def words(X):
    return np.full(X.shape, "x")


def writes(X):
    X[:] = 0.0
    return X + 1.0


def broken(X):
    return np.full((len(X), 2), np.nan)


KERNELS = {
    "rbf": (bs.basis.rbf(width=1.3), lambda A, C: np.exp(-(cdist(A, C) ** 2) / (2 * 1.3**2))),
    "rbf as printed": (bs.basis.rbf(width=1.3, squared=False), lambda A, C: np.exp(-cdist(A, C) / (2 * 1.3**2))),
    "polynomial": (
        bs.basis.polynomial(degree=3, constant=0.5, scale=0.1),
        lambda A, C: (0.1 * A @ C.T + 0.5) ** 3,
    ),
    "inner product": (bs.basis.inner_product(), lambda A, C: A @ C.T),
}


@pytest.mark.parametrize("kernel", KERNELS)
def test_kernels_are_their_formulas(kernel):
    basis, formula = KERNELS[kernel]
    for scale in (1.0, 0.05):
        A, C = scale * NEW, scale * X + 3.0
        np.testing.assert_allclose(basis.matrix(A, C), formula(A, C), rtol=1e-8, atol=1e-12)


def test_an_rbf_keeps_its_digits_far_from_the_origin():
    basis, formula = KERNELS["rbf"]
    far = Z + 1e6
    np.testing.assert_allclose(basis.matrix(far[:9], far), formula(far[:9], far), rtol=1e-6)
    assert np.all(np.diag(basis.matrix(far, far)) > 1 - 1e-6)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("standardise", [True, False])
def test_a_kernel_fit_is_the_fit_of_its_columns(kernel, bias, standardise):
    basis, formula = KERNELS[kernel]
    basis = type(basis)(**{**basis.__dict__, "bias": bias, "standardise": standardise})
    inputs, new = (Z, (NEW - X.mean(axis=0)) / X.std(axis=0)) if standardise else (X, NEW)
    model = bs.models.ARDGaussian(bias_sd=3.0)
    settings = {"smoothness": 2.0, "draws": 0}  # the automatic price is not the same for kernels and columns
    tree = bs.fit(model, (X, Y), basis=basis, **settings)
    columns = bs.fit(model, (formula(inputs, inputs), Y), basis=bs.basis.precomputed(bias=bias), **settings)
    np.testing.assert_allclose(tree["evidence"]["log_evidence"], columns["evidence"]["log_evidence"], rtol=1e-5)
    np.testing.assert_array_equal(tree["evidence"]["kept"], columns["evidence"]["kept"])
    expected = bs.predict(columns, formula(new, inputs))
    found = bs.predict(tree, NEW)
    for name in ("mean", "sd"):
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-3, atol=1e-4)
    assert ("bias" in tree["evidence"]) == bias


@pytest.mark.parametrize("bias", [True, False])
def test_standardising_is_undone_in_every_report(bias):
    # What a fit of columns standardised by hand says, in the units of the columns as they were.
    y = 3.0 * (Z[:, 1] + 100.0 if bias else X[:, 1]) + 0.3 * RNG.standard_normal(N)
    centre = X.mean(axis=0) if bias else 0.0
    by_hand = (X - centre) / X.std(axis=0)
    model = bs.models.ARDGaussian(bias_sd=300.0)
    inside = bs.fit(model, (X, y), basis=bs.basis.linear(bias=bias), draws=4000, chains=1, random_seed=1)
    outside = bs.fit(model, (by_hand, y), basis=bs.basis.linear(bias=bias, standardise=False), draws=0)
    ours, theirs = inside["evidence"], outside["evidence"]
    np.testing.assert_allclose(ours["log_evidence"], theirs["log_evidence"], rtol=1e-9)
    np.testing.assert_array_equal(ours["kept"], theirs["kept"])
    np.testing.assert_allclose(ours["mean"], theirs["mean"] / X.std(axis=0), rtol=1e-6)
    np.testing.assert_allclose(ours["sd"], theirs["sd"] / X.std(axis=0), rtol=1e-6)
    np.testing.assert_allclose(ours["alpha"], theirs["alpha"] * X.var(axis=0), rtol=1e-6)
    np.testing.assert_allclose(ours["gamma"], theirs["gamma"], rtol=1e-6)
    if bias:
        moved = theirs["bias"].item() - np.sum(ours["mean"].to_numpy() * centre)
        np.testing.assert_allclose(ours["bias"], moved, rtol=1e-6)
        draws = inside["posterior"]["bias"].to_numpy()
        assert abs(draws.mean() - moved) < 5 * draws.std() / np.sqrt(draws.size)
        np.testing.assert_allclose(draws.std(), ours["bias_sd"], rtol=0.1)
    ahead = bs.predict(inside, NEW)
    expected = bs.predict(outside, (NEW - centre) / X.std(axis=0))
    for name in ("mean", "sd"):
        np.testing.assert_allclose(ahead[name], expected[name], rtol=1e-6)


def test_the_choices_standardise_as_documented():
    assert bs.basis.linear().standardise
    others = [bs.basis.rbf(1.0), bs.basis.polynomial(), bs.basis.inner_product(), bs.basis.precomputed()]
    assert not any(basis.standardise for basis in [*others, bs.basis.function("numpy:square")])
    assert all(basis.bias for basis in [*others, bs.basis.linear(), bs.basis.function("numpy:square")])


def test_without_standardising_the_units_of_a_column_change_the_weight_alone():
    one = bs.fit("ard_gaussian", (X, Y), basis=bs.basis.linear(standardise=False), draws=0)["evidence"]
    two = bs.fit("ard_gaussian", (X * [1.0, 10.0], Y), basis=bs.basis.linear(standardise=False), draws=0)["evidence"]
    np.testing.assert_allclose(one["log_evidence"], two["log_evidence"], rtol=1e-6)
    np.testing.assert_allclose(one["mean"], two["mean"] * [1.0, 10.0], rtol=1e-4)


@pytest.mark.parametrize("basis", [squares_and_products, "test_basis:squares_and_products", None])
def test_a_function_by_object_and_by_name(basis):
    if isinstance(basis, str):
        basis = bs.basis.function(f"{__name__}:squares_and_products")
    elif basis is None:
        basis = bs.basis.function(squares_and_products)
    tree = bs.fit("ard_gaussian", (Z, Y), basis=basis, draws=0)
    columns = bs.fit("ard_gaussian", (squares_and_products(Z), Y), basis="precomputed", draws=0)
    np.testing.assert_allclose(tree["evidence"]["log_evidence"], columns["evidence"]["log_evidence"], rtol=1e-10)
    assert tree["evidence"]["basis"].to_numpy().tolist() == ["f0", "f1", "f2", "f3", "f4"]
    assert f"{__name__}:squares_and_products" in tree.attrs["bayes_sparse"]
    np.testing.assert_allclose(
        bs.predict(tree, Z[:5])["mean"], bs.predict(columns, squares_and_products(Z[:5]))["mean"], rtol=1e-10
    )


def test_a_library_function_by_object_and_by_name():
    by_object = bs.fit("ard_gaussian", (Z, Y), basis=np.square, draws=0)
    by_name = bs.fit("ard_gaussian", (Z, Y), basis=bs.basis.function("numpy:square"), draws=0)
    np.testing.assert_array_equal(by_object["evidence"]["mean"], by_name["evidence"]["mean"])


def test_a_function_may_be_standardised():
    basis = bs.basis.function(squares_and_products, standardise=True)
    tree = bs.fit("ard_gaussian", (X, Y), basis=basis, draws=0)
    columns = bs.fit("ard_gaussian", (squares_and_products(X), Y), draws=0)
    np.testing.assert_allclose(tree["evidence"]["log_evidence"], columns["evidence"]["log_evidence"], rtol=1e-10)


def test_a_lambda_is_refused():
    with pytest.raises(ValueError, match="cannot be imported again by name; put it at the top level of a module"):
        bs.fit("ard_gaussian", (Z, Y), basis=lambda X: X)


def test_a_function_inside_a_function_is_refused():
    def inner(X):
        return X

    with pytest.raises(ValueError, match=r"inner.* cannot be imported again by name"):
        bs.basis.function(inner)


@pytest.mark.parametrize("name", ["numpy:no_such_thing", "no_such_module:square", "numpy", ""])
def test_a_name_that_cannot_be_imported(name):
    with pytest.raises(ValueError, match=r"cannot be imported .*'package\.module:name'"):
        bs.basis.function(name)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (one_short, f"must give a 2-D array with {N} rows, .* shape \\({N - 1}, 2\\)"),
        (flat, f"must give a 2-D array with {N} rows"),
        (broken, "gave NaN or infinite values"),
    ],
)
def test_what_a_function_must_give(function, message):
    with pytest.raises(ValueError, match=message) as error:
        bs.fit("ard_gaussian", (Z, Y), basis=function)
    assert function.__name__ in str(error.value)


@pytest.mark.parametrize("width", [0, -1.0, np.nan, np.inf, "wide", "Evidence", None])
def test_an_rbf_needs_a_width(width):
    with pytest.raises(ValueError, match="rbf needs a width > 0 in the units of X, or width='evidence'"):
        bs.basis.rbf(width=width)


def test_a_width_still_to_be_found_has_no_kernel():
    with pytest.raises(ValueError, match=r"no width yet.* then pass the number as rbf\(width=\.\.\.\)"):
        bs.basis.rbf(width="evidence").matrix(NEW, X)


@pytest.mark.parametrize(
    ("basis", "settings", "plain"),
    [
        (bs.basis.rbf, {"width": np.float32(0.5)}, {"width": 0.5}),
        (bs.basis.rbf, {"width": np.int64(2)}, {"width": 2}),
        (bs.basis.polynomial, {"degree": np.int64(2)}, {"degree": 2}),
        (bs.basis.polynomial, {"constant": np.float32(0.5)}, {"constant": 0.5}),
    ],
    ids=["float32 width", "int64 width", "int64 degree", "float32 constant"],
)
def test_settings_may_be_numbers_of_numpy(basis, settings, plain):
    tree = bs.fit("ard_gaussian", (Z, Y), basis=basis(**settings), smoothness=1.0, draws=0)
    expected = bs.fit("ard_gaussian", (Z, Y), basis=basis(**plain), smoothness=1.0, draws=0)
    np.testing.assert_array_equal(bs.predict(tree, Z)["mean"], bs.predict(expected, Z)["mean"])


@pytest.mark.parametrize("degree", [0, 1.5, -2])
def test_a_polynomial_needs_a_whole_degree(degree):
    with pytest.raises(ValueError, match="polynomial needs a whole degree >= 1"):
        bs.basis.polynomial(degree=degree)


def test_the_name_of_a_basis_is_its_default():
    np.testing.assert_array_equal(
        bs.fit("ard_gaussian", (Z, Y), basis="polynomial", draws=0)["evidence"]["mean"],
        bs.fit("ard_gaussian", (Z, Y), basis=bs.basis.polynomial, draws=0)["evidence"]["mean"],
    )


@pytest.mark.parametrize(("name", "needs"), [("rbf", "its width"), ("function", "a function")])
def test_a_basis_without_a_default_says_what_it_needs(name, needs):
    with pytest.raises(ValueError, match=f"The basis '{name}' needs {needs}"):
        bs.fit("ard_gaussian", (Z, Y), basis=name)


@pytest.mark.parametrize(("call", "word"), [(masked, "masked"), (complex_valued, "complex"), (words, "numbers")])
def test_what_a_function_must_not_give(call, word):
    with pytest.raises(ValueError, match=word) as error:
        bs.fit("ard_gaussian", (Z, Y), basis=call, draws=0)
    assert_one_sentence(str(error.value), call.__name__)


def test_a_mask_that_hides_nothing_is_none():
    bs.fit("ard_gaussian", (Z, Y), basis=unmasked, draws=0)


def test_a_function_cannot_write_into_the_rows():
    rows = Z.copy()
    with pytest.raises(ValueError, match="Constant"):
        bs.fit("ard_gaussian", (rows, Y), basis=writes, draws=0)
    np.testing.assert_array_equal(rows, Z)
