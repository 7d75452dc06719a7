"""The relevance eigenvector machine: priors on the eigenvectors of the likelihood's Hessian, in one step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from bayes_sparse.estimators._base import SparseClassifier, SparseEstimator, SparseRegressor
from bayes_sparse.inputs.model import Slab

__all__ = ["REVMClassifier", "REVMRegressor"]


@dataclass(kw_only=True, eq=False, repr=False)
class _REVM(SparseEstimator):
    model: ClassVar[str] = "ard_gaussian"

    method: Any = "revm"
    prior: str | None = None
    expansion: Any = None
    smoothness: float | str = "auto"
    slab: Slab = "auto"
    bias_sd: float | None = None


@dataclass(kw_only=True, eq=False, repr=False)
class REVMRegressor(_REVM, SparseRegressor):
    """Relevance eigenvector machine for numbers and counts: ``bayes_sparse.fit(..., method="revm")``.

    It chooses among directions, each a mixture of all features, and prunes no feature: there is no `get_support`.

    Parameters
    ----------
    basis, width, likelihood, keep, smoothness, bias_sd
        As for `RVMRegressor`.
    method : str or method
        ``"revm"``, or ``"full_matrix"``.
    prior : "gaussian" or "laplace", optional
        Of each direction; None for a normal one.
    expansion : str, int or array, optional
        Where the likelihood is made quadratic: ``"evidence"``, ``"ridge"``, ``"zero"`` ...
    slab : float, "auto" or None
        How large a direction may be, for a normal prior.

    Attributes
    ----------
    coef_, intercept_, sigma_, alpha_, log_evidence_, n_iter_, status_, relevance_, tree_
        As for `RVMRegressor`; every feature has a weight.
    """


@dataclass(kw_only=True, eq=False, repr=False)
class REVMClassifier(_REVM, SparseClassifier):
    """Relevance eigenvector machine for two classes, or for more by a softmax.

    Parameters
    ----------
    basis, width, method, keep, prior, expansion, smoothness, slab, bias_sd
        As for `REVMRegressor`.

    Attributes
    ----------
    classes_, coef_, intercept_, sigma_, log_evidence_, n_iter_, status_, relevance_, tree_
        As for `RVMClassifier`; every feature has a weight.
    """

    several: ClassVar[str | None] = "ard_gaussian"
