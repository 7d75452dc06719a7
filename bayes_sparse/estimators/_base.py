"""What the estimators share: validation, a fit without a tree, prediction from the posterior at hand."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from bayes_sparse.common.progress import no_messages
from bayes_sparse.common.types import BoolArray, FloatArray
from bayes_sparse.estimators._result import Result
from bayes_sparse.fitting.choices import choose, choose_likelihood
from bayes_sparse.fitting.search import search
from bayes_sparse.inputs import basis as bases
from bayes_sparse.inputs.likelihoods import resolve
from bayes_sparse.inputs.model import Handed
from bayes_sparse.inputs.rows import Rows
from bayes_sparse.inputs.table import Table, vector_of
from bayes_sparse.methods.nuts import NUTS
from bayes_sparse.results.predict.predict import predict_named
from bayes_sparse.results.relevance import relevance

__all__ = ["KeptColumns", "SparseClassifier", "SparseEstimator", "SparseRegressor"]

_OF_FIT = {"basis", "width", "method", "likelihood", "keep"}  # the others are settings of the model or the method
# What is made when asked is made of the data as they were, whatever their owner does with them.
_TAKEN: dict[str, Any] = {"accept_sparse": "csc", "dtype": np.float64, "ensure_min_samples": 2, "copy": True}


@dataclass(kw_only=True, eq=False, repr=False)
class SparseEstimator(BaseEstimator):
    """A fit of `bayes_sparse.fit`, of one model. Its fields are its parameters, under the names they have there."""

    model: ClassVar[str]

    basis: Any = "linear"
    width: float | str = "evidence"
    method: Any = "evidence"
    keep: Any = None

    def __sklearn_tags__(self) -> Any:
        """Sparse rows are taken as they are."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _basis(self) -> bases.Basis:
        rbf = isinstance(self.basis, str) and self.basis == "rbf"
        return bases.rbf(width=self.width) if rbf else bases.resolve(self.basis)  # type: ignore[arg-type]

    def _settings(self) -> dict[str, Any]:
        """What is not as the model and the method have it."""
        own = ((field.name, getattr(self, field.name), field.default) for field in fields(self))
        return {name: value for name, value, default in own if name not in _OF_FIT and value is not default}

    def _fit(self, X: Any, y: NDArray[Any], weights: Any, likelihood: Any, model: str) -> Self:
        """Search, with what was validated."""
        basis = self._basis()
        if weights is not None:
            weights = _weights(weights, len(y))
        varying = np.arange(X.shape[1])
        if isinstance(basis, bases.linear) and basis.bias:
            varying = _varying(X if weights is None else X[weights > 0])
        names = getattr(self, "feature_names_in_", None)
        columns = [f"x{j}" if names is None else str(names[j]) for j in varying.tolist()]
        fitted = X if len(varying) == X.shape[1] else X[:, varying]
        table = Table(fitted, columns, np.arange(len(y)), "obs", y.copy(), "y")
        chosen, method = choose(model, self.method, likelihood, self._settings())
        if isinstance(method, NUTS):
            raise ValueError(
                "An estimator has the posterior of an evidence method: sample by bs.fit(..., method='nuts')."
            )
        likelihood = choose_likelihood(chosen, likelihood, method)
        handed = Handed(Rows([table], False, weights, None), None, likelihood, basis, self.keep)
        with no_messages():
            found = search(chosen, method, handed, progressbar=False)
        self._result = Result(found, varying, X.shape[1])
        self.n_iter_, self.status_ = int(found.attributes["n_iterations"]), found.attributes["status"]
        return self

    def _predicted(self, X: Any, *, warn: bool) -> xr.Dataset:
        """As `bayes_sparse.predict` gives it; it warns of rows far from the data where it is asked how sure it is."""
        result = self._fitted
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        X = X if len(result.columns) == result.features else X[:, result.columns]
        return predict_named(result.at_hand, X, warn=warn)

    @property
    def _fitted(self) -> Result:
        check_is_fitted(self)
        return self._result

    def _shaped(self, values: FloatArray) -> FloatArray:
        """A value per predictor, as linear models of scikit-learn have them."""
        return values

    @property
    def tree_(self) -> xr.DataTree:
        """What `bayes_sparse.fit` gives with ``random_seed=0``, for every function of the package; made when asked."""
        return self._fitted.tree

    @property
    def relevance_(self) -> pd.DataFrame:
        """The table of `bayes_sparse.relevance`."""
        return relevance(self.tree_)

    @property
    def log_evidence_(self) -> float:
        """Log evidence; NaN where a method has none."""
        return float(self._fitted.moments["log_evidence"][1])

    @property
    def coef_(self) -> FloatArray:
        """Mean weight of each feature, zero where pruned."""
        return self._shaped(self._of_features("coef_").weights)

    @property
    def intercept_(self) -> Any:
        """Mean of the bias; zero without one."""
        return self._shaped(self._fitted.intercepts)

    @property
    def sigma_(self) -> FloatArray:
        """Covariance of the weights that are kept, as in `sklearn.linear_model.ARDRegression`."""
        return self._fitted.covariance

    @property
    def dual_coef_(self) -> FloatArray:
        """Mean weight of each kernel that is kept."""
        result = self._of_kernels("dual_coef_")
        return self._shaped(result.weights[:, result.kept])

    @property
    def relevance_vectors_(self) -> FloatArray:
        """The training rows under those kernels."""
        result = self._of_kernels("relevance_vectors_")
        constant = result.at_hand.constant
        rows = constant["X"].to_numpy()
        rows = rows[constant["row_of_centre"].to_numpy()] if "row_of_centre" in constant else rows
        return np.asarray(rows[result.kept])

    def _of_features(self, name: str) -> Result:
        if self._fitted.at_hand.basis.kernel:
            raise AttributeError(f"A fit with kernels has no {name!r}, but `dual_coef_` and `relevance_vectors_`.")
        return self._result

    def _of_kernels(self, name: str) -> Result:
        if not self._fitted.at_hand.basis.kernel:
            raise AttributeError(f"A fit without kernels has no {name!r}, but `coef_`.")
        return self._result


@dataclass(kw_only=True, eq=False, repr=False)
class SparseRegressor(RegressorMixin, SparseEstimator):
    """Numbers or counts."""

    likelihood: Any = "normal"

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame (n, p)
            Features.
        y : array (n,)
            Targets.
        sample_weight : array (n,), optional
            A weight of 2 counts a row twice, one of 0 leaves it out.
        """
        likelihood = resolve(self.likelihood)
        if "classes" in likelihood.targets:
            raise ValueError(f"likelihood={likelihood.name!r} is for classes: use the classifier.")
        X, y = validate_data(self, X, y, **_TAKEN, y_numeric=True)
        return self._fit(X, y, sample_weight, likelihood, self.model)

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Mean of a new observation at each row, and its sd, noise included, if asked for."""
        found = self._predicted(X, warn=return_std)
        mean = found["mean"].to_numpy()
        return (mean, found["sd"].to_numpy()) if return_std else mean

    def _shaped(self, values: FloatArray) -> FloatArray:
        return np.asarray(values[0])

    @property
    def alpha_(self) -> float:
        """Precision of the noise, as in `sklearn.linear_model.ARDRegression`."""
        result = self._fitted
        if not result.at_hand.likelihood.normal:
            raise AttributeError(f"likelihood={result.at_hand.likelihood.name!r} has no precision of the noise.")
        return float(np.exp(-2 * result.moments["theta"][1][0]))


@dataclass(kw_only=True, eq=False, repr=False)
class SparseClassifier(ClassifierMixin, SparseEstimator):
    """Two classes, or several where there is a model for them."""

    several: ClassVar[str | None]

    def __sklearn_tags__(self) -> Any:
        """Whether there may be more than two classes."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self.several is not None
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame (n, p)
            Features.
        y : array (n,)
            Labels of any type.
        sample_weight : array (n,), optional
            A weight of 2 counts a row twice, one of 0 leaves it out.
        """
        X, y = validate_data(self, X, y, **_TAKEN)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if sample_weight is not None:
            sample_weight = _weights(sample_weight, len(y))
        self._present = np.unique(codes if sample_weight is None else codes[sample_weight > 0])
        if len(self._present) <= 2:
            return self._fit(X, y, sample_weight, "bernoulli", self.model)
        if self.several is None:
            raise ValueError(f"Only binary classification is supported. The type of the target is {type_of_target(y)}.")
        return self._fit(X, y, sample_weight, "categorical", self.several)

    def predict_proba(self, X: Any) -> FloatArray:
        """Probability of each class, in the order of `classes_`, averaged over the weights."""
        return self._probabilities(X, warn=True)

    def _probabilities(self, X: Any, *, warn: bool) -> FloatArray:
        found = self._predicted(X, warn=warn)["probability"].to_numpy()
        out = np.zeros((len(found), len(self.classes_)))
        out[:, self._present] = found
        return out

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Their logarithms."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class at each row."""
        best = self._probabilities(X, warn=False).argmax(axis=1)
        return np.asarray(self.classes_[best])


class KeptColumns(SelectorMixin):
    """`get_support` and `transform`, by the features that a fit keeps."""

    def _get_support_mask(self) -> BoolArray:
        result: Result = self._fitted
        if result.at_hand.basis.kernel:
            raise ValueError(
                "A fit with kernels keeps rows, not features: there is nothing to select by; `relevance_vectors_` has "
                "the rows, and basis='linear' selects features."
            )
        return result.kept


def _weights(sample_weight: Any, n: int) -> FloatArray:
    return vector_of(sample_weight, n, "sample_weight", positive=True)


def _varying(X: Any) -> NDArray[np.intp]:
    """Columns that are not constant: beside an intercept no weight of those could be told."""
    high, low = X.max(axis=0), X.min(axis=0)
    if issparse(X):
        high, low = high.toarray().ravel(), low.toarray().ravel()
    varying = np.flatnonzero(high > low)
    if not len(varying):
        raise ValueError("All columns of X are constant: there is nothing to learn from.")
    return varying
