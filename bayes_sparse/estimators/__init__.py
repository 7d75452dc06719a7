"""scikit-learn estimators: the fits of `bayes_sparse.fit` in pipelines, grid searches and cross-validation."""

from __future__ import annotations

try:
    import sklearn as _sklearn  # noqa: F401
except ImportError:
    raise ImportError(
        'The estimators need scikit-learn, which is not installed: pip install "bayes_sparse[sklearn]".'
    ) from None

from bayes_sparse.estimators.blogreg import BLogRegClassifier, BLogRegRegressor
from bayes_sparse.estimators.horseshoe import HorseshoeClassifier
from bayes_sparse.estimators.revm import REVMClassifier, REVMRegressor
from bayes_sparse.estimators.rvm import RVMClassifier, RVMRegressor

__all__ = [
    "BLogRegClassifier",
    "BLogRegRegressor",
    "HorseshoeClassifier",
    "REVMClassifier",
    "REVMRegressor",
    "RVMClassifier",
    "RVMRegressor",
]
