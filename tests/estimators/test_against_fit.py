"""Every estimator says what `bayes_sparse.fit` and `bayes_sparse.predict` say, to the last digits."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array
from sklearn.linear_model import ARDRegression

import bayes_sparse as bs
from bayes_sparse import estimators as own

pytestmark = [pytest.mark.quick, pytest.mark.filterwarnings("ignore::bayes_sparse.FitWarning")]

RNG = np.random.default_rng(3)
N = 90
X = RNG.standard_normal((N, 6)) * [1.0, 5.0, 0.2, 1.0, 1.0, 1.0] + [0.0, 20.0, -3.0, 0.0, 0.0, 0.0]
ETA = 0.9 * X[:, 0] - 0.2 * (X[:, 1] - 20.0)
NEW = X[:20] + 0.05 * RNG.standard_normal((20, 6))
Y = {
    "normal": 2 * ETA + 7.0 + 0.5 * RNG.standard_normal(N),
    "poisson": RNG.poisson(np.exp(0.5 * ETA + 1.0)),
    "bernoulli": np.where(2 * ETA + RNG.logistic(size=N) > 0, "yes", "no"),
    "categorical": np.digitize(ETA + 0.3 * RNG.logistic(size=N), [-0.7, 0.7]) * 10,
}
RBF = bs.basis.rbf(width=2.0, standardise=True)
CASES = {
    "rvm": (own.RVMRegressor, {}, "ard_gaussian", "normal"),
    "rvm, student_t": (own.RVMRegressor, {"likelihood": "student_t"}, "ard_gaussian", "normal"),
    "rvm, poisson": (own.RVMRegressor, {"likelihood": "poisson"}, "ard_gaussian", "poisson"),
    "rvm, mackay": (own.RVMRegressor, {"method": "mackay", "hyper": (1.0, 0.1)}, "ard_gaussian", "normal"),
    "rvm, kept": (own.RVMRegressor, {"keep": ["x4"], "smoothness": 0.0}, "ard_gaussian", "normal"),
    "rvm, kernels": (own.RVMRegressor, {"basis": RBF}, "ard_gaussian", "normal"),
    "rvm, two classes": (own.RVMClassifier, {"slab": 2.0}, "ard_gaussian", "bernoulli"),
    "rvm, kernels, two classes": (own.RVMClassifier, {"basis": RBF}, "ard_gaussian", "bernoulli"),
    "rvm, softmax": (own.RVMClassifier, {}, "student_multinomial", "categorical"),
    "rvm, one against the rest": (own.RVMClassifier, {"method": "one_vs_rest"}, "student_multinomial", "categorical"),
    "revm": (own.REVMRegressor, {"method": "revm"}, "ard_gaussian", "normal"),
    "lrevm": (own.REVMRegressor, {"method": "revm", "prior": "laplace"}, "ard_gaussian", "normal"),
    "revm, two classes": (own.REVMClassifier, {"method": "revm"}, "ard_gaussian", "bernoulli"),
    "revm, softmax": (own.REVMClassifier, {"method": "revm"}, "ard_gaussian", "categorical"),
    "blogreg": (own.BLogRegRegressor, {}, "jeffreys_laplace", "normal"),
    "blogreg, two classes": (own.BLogRegClassifier, {"lam": 3.0}, "jeffreys_laplace", "bernoulli"),
    "horseshoe": (own.HorseshoeClassifier, {"relevant": 2.0}, "horseshoe", "bernoulli"),
}
CLASSES = [case for case, (_, _, _, targets) in CASES.items() if targets in ("bernoulli", "categorical")]
NUMBERS = [case for case in CASES if case not in CLASSES]


def both(case, X=X, weights=None):
    make, settings, model, targets = CASES[case]
    y = Y[targets]
    tree = bs.fit(model, (X, y), draws=0, weights=weights, progressbar=False, **{"likelihood": targets} | settings)
    return make(**settings).fit(X, y, sample_weight=weights), tree


@pytest.mark.parametrize("case", NUMBERS)
def test_mean_and_sd_of_new_rows(case):
    estimator, tree = both(case)
    mean, sd = estimator.predict(NEW, return_std=True)
    expected = bs.predict(tree, NEW)
    assert_allclose(mean, expected["mean"], rtol=1e-10)
    assert_allclose(sd, expected["sd"], rtol=1e-10)
    assert_allclose(estimator.predict(NEW), mean, rtol=0)


@pytest.mark.parametrize("case", CLASSES)
def test_probabilities_of_new_rows(case):
    estimator, tree = both(case)
    expected = bs.predict(tree, NEW)
    assert_allclose(estimator.predict_proba(NEW), expected["probability"], rtol=1e-10)
    assert_allclose(np.exp(estimator.predict_log_proba(NEW)), expected["probability"], rtol=1e-10)
    assert estimator.predict(NEW).tolist() == expected["label"].to_numpy().tolist()
    assert estimator.classes_.tolist() == np.unique(Y[CASES[case][3]]).tolist()


@pytest.mark.parametrize("case", [case for case in CASES if "kernels" not in case])
def test_what_was_found(case):
    estimator, tree = both(case)
    evidence = tree["evidence"]
    bias = np.ravel(evidence["bias"])
    assert_allclose(np.ravel(estimator.coef_), evidence["mean"], rtol=1e-10, atol=1e-14)
    assert_allclose(np.ravel(estimator.intercept_), bias, rtol=1e-10)
    assert_allclose(estimator.log_evidence_, evidence["log_evidence"], rtol=1e-12)
    assert (estimator.status_, estimator.n_iter_) == (evidence.attrs["status"], evidence.attrs["n_iterations"])
    rows = {"bernoulli": (1,), "categorical": (3,)}.get(CASES[case][3], ())
    assert estimator.coef_.shape == (*rows, 6)
    if "revm" not in case:
        kept = np.flatnonzero(evidence["kept"])
        assert_allclose(np.sqrt(estimator.sigma_.diagonal()), evidence["sd"].to_numpy()[kept], rtol=1e-10)
    if hasattr(estimator, "get_support"):
        kept = evidence["kept"].to_numpy().reshape(-1, 6).any(axis=0)
        assert estimator.get_support().tolist() == kept.tolist()
        assert_allclose(estimator.transform(NEW), NEW[:, kept])
    if hasattr(estimator, "lambda_"):
        assert_allclose(np.ravel(estimator.lambda_), evidence["alpha"], rtol=1e-10)
    if CASES[case][3] == "normal" and "student" not in case:
        assert_allclose(estimator.alpha_, evidence["sigma"] ** -2.0, rtol=1e-12)


@pytest.mark.parametrize("case", ["rvm, kernels", "rvm, kernels, two classes"])
def test_rows_under_the_kernels_that_are_kept(case):
    """They and their weights are the whole of the predictor."""
    estimator, tree = both(case)
    evidence = tree["evidence"]
    kept = np.flatnonzero(evidence["kept"])
    assert_allclose(np.ravel(estimator.dual_coef_), evidence["mean"].to_numpy()[kept], rtol=1e-10)
    assert_allclose(estimator.relevance_vectors_, X[kept])
    if case == "rvm, kernels":
        at, centres = ((rows - X.mean(axis=0)) / X.std(axis=0) for rows in (NEW, estimator.relevance_vectors_))
        square = ((at[:, None] - centres) ** 2).sum(axis=2)
        by_hand = np.exp(-square / (2 * RBF.width**2)) @ estimator.dual_coef_ + estimator.intercept_
        assert_allclose(estimator.predict(NEW), by_hand, rtol=1e-9)


@pytest.mark.parametrize("case", ["rvm", "rvm, softmax", "revm", "blogreg", "horseshoe"])
def test_the_tree_is_the_one_that_fit_gives(case):
    make, settings, model, targets = CASES[case]
    told = {"likelihood": targets} | settings
    tree = bs.fit(model, (X, Y[targets]), random_seed=0, progressbar=False, **told)
    made = make(**settings).fit(X, Y[targets]).tree_
    del tree["evidence"].attrs["seconds"], made["evidence"].attrs["seconds"]
    assert made.identical(tree)


def test_the_table_of_relevance():
    estimator, tree = both("rvm")
    pd.testing.assert_frame_equal(estimator.relevance_, bs.relevance(tree))


@pytest.mark.parametrize("case", ["rvm", "rvm, kernels", "rvm, softmax", "revm, two classes", "blogreg"])
def test_weights_are_rows_repeated(case):
    """As they are for `fit`; rows of weight zero are left out."""
    weights = np.random.default_rng(1).integers(0, 3, size=N)
    estimator, tree = both(case, weights=weights)
    expected = bs.predict(tree, NEW)
    make, settings, _, targets = CASES[case]
    repeated = make(**settings).fit(X.repeat(weights, axis=0), Y[targets].repeat(weights))
    for other in (estimator, repeated):
        if case in CLASSES:
            assert_allclose(other.predict_proba(NEW), expected["probability"], rtol=1e-6, atol=1e-8)
        else:
            assert_allclose(other.predict(NEW, return_std=True)[1], expected["sd"], rtol=1e-6)


def test_a_width_found():
    found = own.RVMRegressor(basis="rbf").fit(X[:, :1], Y["normal"])
    tree = bs.fit("ard_gaussian", (X[:, :1], Y["normal"]), basis=bs.basis.rbf(width="evidence"), draws=0)
    assert_allclose(found.predict(NEW[:, :1]), bs.predict(tree, NEW[:, :1])["mean"], rtol=1e-10)
    assert found.tree_["evidence"].attrs["width"] == tree["evidence"].attrs["width"]


def test_sparse_rows():
    some = np.where(RNG.random(X.shape) < 0.6, 0.0, X)
    y = some[:, 0] - some[:, 3] + 0.1 * RNG.standard_normal(N)
    dense, sparse = (own.RVMRegressor().fit(rows, y) for rows in (some, csr_array(some)))
    assert_allclose(sparse.predict(csr_array(some)), dense.predict(some), rtol=1e-8)


def test_beside_ard_regression():
    """The same model by another package, with a tolerance for its own, slower search and its hyper-prior."""
    ours, theirs = own.RVMRegressor(smoothness=0.0).fit(X, Y["normal"]), ARDRegression(tol=1e-8, max_iter=3000)
    theirs.fit(X, Y["normal"])
    strong = [0, 1]
    assert_allclose(ours.coef_[strong], theirs.coef_[strong], rtol=0.02)
    assert_allclose(ours.alpha_, theirs.alpha_, rtol=0.05)
    (mean, sd), (other, other_sd) = (model.predict(NEW, return_std=True) for model in (ours, theirs))
    assert np.abs(mean - other).max() < 0.3 * other_sd.min()
    assert_allclose(sd, other_sd, rtol=0.05)
