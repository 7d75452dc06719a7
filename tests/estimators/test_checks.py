"""scikit-learn's own checks of an estimator, every one of them, with none exempted."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from bayes_sparse import estimators

# What the checks fit is tiny, and what is said of it is true.
TRUE = ("::bayes_sparse.FitWarning", ":No features were selected", ":Columns that are the same")
pytestmark = [pytest.mark.filterwarnings(f"ignore{warning}") for warning in TRUE]


@parametrize_with_checks([getattr(estimators, name)() for name in estimators.__all__])
def test_check(estimator, check):
    check(estimator)
