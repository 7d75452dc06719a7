"""The estimators among others of scikit-learn: pipelines, searches, copies, frames, labels, and what they refuse."""

import pickle
import subprocess
import sys
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.feature_selection import SelectFromModel
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import bayes_sparse as bs
from bayes_sparse import estimators as own
from bayes_sparse.common.warnings import FitWarning, UndecidedWarning
from tests.support import assert_one_sentence, refused

RNG = np.random.default_rng(8)
X = RNG.standard_normal((80, 5))
Y = 2 * X[:, 1] - X[:, 3] + 0.3 * RNG.standard_normal(80)
FRAME = pd.DataFrame(X, columns=list("abcde"))
ALL = [getattr(own, name)() for name in own.__all__]


def labels(estimator):
    return np.where(Y > 0, "up", "down") if hasattr(estimator, "predict_proba") else Y


@pytest.mark.quick
@pytest.mark.parametrize("estimator", ALL, ids=lambda estimator: type(estimator).__name__)
def test_a_copy_by_pickle_predicts_and_has_a_tree(estimator):
    """Nothing compiled travels: what is needed is compiled where it arrives."""
    fitted = clone(estimator).fit(X, labels(estimator))
    again = pickle.loads(pickle.dumps(fitted))
    assert again.predict(X).tolist() == fitted.predict(X).tolist()
    evidence, other = again.tree_["evidence"], fitted.tree_["evidence"]
    assert evidence.to_dataset().equals(other.to_dataset())


@pytest.mark.slow
def test_after_another_process_has_fitted_it():
    found = joblib.Parallel(n_jobs=2)(
        joblib.delayed(clone(estimator).fit)(X, labels(estimator))
        for estimator in (own.RVMClassifier(), own.RVMRegressor(likelihood="student_t"))
    )
    expected = own.RVMClassifier().fit(X, labels(found[0]))
    assert_allclose(found[0].predict_proba(X), expected.predict_proba(X), rtol=1e-10)
    assert "posterior" in found[1].tree_.children


def test_what_is_made_later_is_made_of_the_data_as_they_were():
    rows, targets, weights = X.copy(), Y.copy(), np.ones(80)
    fitted, expected = (
        own.RVMRegressor(basis="rbf", width=2.0).fit(*data, weights) for data in ((rows, targets), (X, Y))
    )
    rows[:], targets[:], weights[:] = 7.0, 0.0, 0.0
    assert_allclose(fitted.predict(X), expected.predict(X), rtol=0)
    assert fitted.tree_["posterior"].equals(expected.tree_["posterior"])


def test_a_clone_has_the_parameters_and_no_fit():
    made = own.RVMRegressor(basis=bs.basis.rbf(width=2.0), smoothness=0.0, method=bs.methods.MacKay())
    made.fit(X, Y)
    copy = clone(made)
    assert copy.get_params() == made.get_params()
    assert not hasattr(copy, "status_")
    assert not hasattr(copy, "dual_coef_")
    assert repr(copy) == repr(made)


def test_a_search_over_the_width_of_kernels():
    wave = np.sin(3 * X[:, 0]) + 0.1 * RNG.standard_normal(80)
    widths = [0.02, 0.4, 50.0]
    by_name = GridSearchCV(own.RVMRegressor(basis="rbf"), {"width": widths}, cv=3)
    by_basis = GridSearchCV(own.RVMRegressor(), {"basis": [bs.basis.rbf(width=width) for width in widths]}, cv=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)  # of noise
        by_name.fit(X[:, :1], wave)
        by_basis.fit(X[:, :1], wave)
    assert by_name.best_params_ == {"width": 0.4}
    assert by_basis.best_params_ == {"basis": bs.basis.rbf(width=0.4)}
    assert_allclose(by_name.cv_results_["mean_test_score"], by_basis.cv_results_["mean_test_score"])


def test_in_a_pipeline_at_its_end_and_inside():
    end = make_pipeline(StandardScaler(), own.RVMRegressor())
    inside = make_pipeline(own.RVMRegressor(), LinearRegression())
    assert cross_val_score(end, X, Y).mean() > 0.9
    inside.fit(X, Y)
    assert inside[-1].n_features_in_ == 2
    assert_allclose(end.fit(X, Y).predict(X), own.RVMRegressor().fit(X, Y).predict(X), rtol=1e-6)
    end.fit(X, Y, rvmregressor__sample_weight=np.arange(80) % 2)
    scaled = StandardScaler().fit_transform(X)
    half = own.RVMRegressor().fit(scaled[1::2], Y[1::2])
    assert_allclose(end.predict(X), half.predict(scaled), rtol=1e-6)


def test_weights_by_which_others_select():
    chosen = SelectFromModel(own.HorseshoeClassifier(), threshold=0.2).fit(X, labels(own.HorseshoeClassifier()))
    assert chosen.get_support().tolist() == [False, True, False, True, False]


def test_scores_of_several_folds_with_their_estimators():
    found = cross_validate(own.RVMClassifier(), X, Y > 0, scoring=["neg_log_loss", "roc_auc"], return_estimator=True)
    assert found["test_roc_auc"].mean() > 0.9
    assert all(estimator.classes_.tolist() == [False, True] for estimator in found["estimator"])


def test_frames_give_their_names():
    fitted = own.RVMRegressor(keep="e").fit(FRAME, Y).set_output(transform="pandas")
    assert fitted.feature_names_in_.tolist() == list("abcde")
    assert fitted.get_feature_names_out().tolist() == ["b", "d", "e"]
    pd.testing.assert_frame_equal(fitted.transform(FRAME), FRAME[["b", "d", "e"]])
    assert set(fitted.relevance_.query("relevant").index) == {"b", "d"}
    with pytest.raises(ValueError, match="feature names should match"):
        fitted.predict(FRAME[list("edcba")])


@pytest.mark.parametrize("kind", [str, object, bool, int, float])
def test_labels_of_every_type(kind):
    given = np.array(["a", "b"])[(Y > 0).astype(int)] if kind in (str, object) else (Y > 0)
    fitted = own.RVMClassifier().fit(X, given.astype(kind))
    assert fitted.predict(X).dtype == fitted.classes_.dtype == given.astype(kind).dtype
    assert np.mean(fitted.predict(X) == given.astype(kind)) > 0.9


def test_a_class_whose_rows_all_have_weight_zero_has_probability_zero():
    iris = load_iris()
    weights = (iris.target != 1).astype(float)
    with pytest.warns(FitWarning, match="separate"):
        fitted = own.RVMClassifier().fit(iris.data, iris.target, sample_weight=weights)
    found = fitted.predict_proba(iris.data)
    assert found.shape == (150, 3)
    assert not found[:, 1].any()
    assert_allclose(found.sum(axis=1), 1.0)


def test_a_constant_column_has_no_weight():
    """A fold may have one: it is left out, where `fit` would refuse it."""
    more = np.insert(X, 2, 7.0, axis=1)
    fitted, without = own.RVMRegressor().fit(more, Y), own.RVMRegressor().fit(X, Y)
    assert_allclose(fitted.coef_, np.insert(without.coef_, 2, 0.0))
    assert_allclose(fitted.lambda_, np.insert(without.lambda_, 2, np.inf))
    assert_allclose(fitted.predict(more, return_std=True), without.predict(X, return_std=True))
    assert fitted.get_support().tolist() == [False, True, False, False, True, False]
    several = own.RVMClassifier().fit(more, np.digitize(Y, [-1, 1]))
    assert several.coef_.shape == several.lambda_.shape == (3, 6)
    refused(lambda: own.RVMRegressor().fit(np.ones((5, 2)), np.arange(5.0)), "constant")


def test_warnings_are_given_and_messages_are_not(messages):
    noise = np.random.default_rng(0).standard_normal(80)
    with pytest.warns(FitWarning, match="No basis function pays"):
        null = own.RVMRegressor().fit(X, noise)
    assert null.status_ == "null"
    with pytest.warns(UserWarning, match="No features were selected"):
        assert null.transform(X).shape == (80, 0)
    own.BLogRegRegressor().fit(X, Y)
    assert messages == []


@pytest.mark.filterwarnings("default::bayes_sparse.common.warnings.UndecidedWarning")
def test_columns_that_could_stand_in_are_told_of_with_the_tree():
    """To find them takes as long as the fit: they are looked for when somebody looks at the terms."""
    twins = np.column_stack([X, X[:, 1] + 0.02 * RNG.standard_normal(80)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = own.RVMRegressor().fit(twins, Y)
    with pytest.warns(UndecidedWarning, match="x1 or x5|x5 or x1"):
        assert fitted.tree_["evidence"].attrs["status"] == "converged"


def test_rows_far_from_the_kernels_are_told_of_where_one_asks_how_sure_it_is():
    far = np.full((1, 5), 50.0)
    model, classes = (make(basis="rbf", width=2.0) for make in (own.RVMRegressor, own.RVMClassifier))
    model.fit(X, Y)
    classes.fit(X, Y > 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(far)
        classes.predict(far)
    for ask in (lambda: model.predict(far, return_std=True), lambda: classes.predict_proba(far)):
        with pytest.warns(UserWarning, match="1 of 1 rows lie far"):
            ask()


def test_one_sentence_for_each_thing_that_cannot_be():
    kernels = own.RVMRegressor(basis="rbf", width=1.0).fit(X, Y)
    linear = own.RVMRegressor(likelihood="student_t").fit(X, Y)
    refused(kernels.get_support, "relevance_vectors_", "basis='linear'")
    refused(lambda: kernels.coef_, "dual_coef_", kind=AttributeError)
    refused(lambda: linear.dual_coef_, "coef_", kind=AttributeError)
    refused(lambda: linear.alpha_, "student_t", kind=AttributeError)
    refused(lambda: own.RVMRegressor(likelihood="bernoulli").fit(X, Y), "classifier")
    refused(lambda: own.RVMRegressor().fit(X, Y, sample_weight=-np.ones(80)), "sample_weight")
    refused(lambda: own.RVMRegressor(smoothness=-1.0).fit(X, Y), "smoothness")
    refused(lambda: own.RVMRegressor(method="nuts").fit(X, Y), "bs.fit")
    refused(lambda: own.BLogRegRegressor(basis="rbf").fit(X, Y), "width")


def test_without_scikit_learn():
    """The package does not import it, and its estimators say in one sentence what is missing."""
    program = """
import sys
import bayes_sparse as bs
assert "sklearn" not in sys.modules
sys.modules["sklearn"] = None
try:
    bs.estimators
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert_one_sentence(done.stdout.strip(), "scikit-learn", "bayes_sparse[sklearn]")


@pytest.mark.parametrize("estimator", ALL, ids=lambda estimator: type(estimator).__name__)
def test_neither_fit_nor_predict_makes_a_tree_or_judges_terms(estimator, monkeypatch):
    """Which is half of the time of a small fit."""
    monkeypatch.setattr("bayes_sparse.fitting.families._family.fit_tree", None)
    monkeypatch.setattr("bayes_sparse.trees.weights.claims", None)
    monkeypatch.setattr("bayes_sparse.trees.support.claims", None)
    fitted = clone(estimator).fit(X, labels(estimator))
    assert len(fitted.predict(X)) == len(np.ravel(fitted.coef_)) * 16
    with pytest.raises(TypeError, match="not callable"):
        _ = fitted.tree_
