"""The relevance vector machine: a normal prior on every weight, its precision found by the evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bayes_sparse.common.types import FloatArray, Hyper
from bayes_sparse.estimators._base import KeptColumns, SparseClassifier, SparseEstimator, SparseRegressor
from bayes_sparse.inputs.model import Slab

__all__ = ["RVMClassifier", "RVMRegressor"]


@dataclass(kw_only=True, eq=False, repr=False)
class _RVM(KeptColumns, SparseEstimator):
    model: ClassVar[str] = "ard_gaussian"

    smoothness: float | str = "auto"
    hyper: Hyper | None = None
    slab: Slab = "auto"
    bias_sd: float | None = None
    max_iterations: int | None = None
    tolerance: float | None = None

    @property
    def lambda_(self) -> FloatArray:
        """Precision of each weight, infinite where pruned."""
        result = self._of_features("lambda_")
        precision = result.tree["evidence"]["alpha"].to_numpy().reshape(result.found.labelled.predictors, -1)
        return self._shaped(result.over_features(precision, np.inf))


@dataclass(kw_only=True, eq=False, repr=False)
class RVMRegressor(_RVM, SparseRegressor):
    """Relevance vector machine for numbers and counts: ``bayes_sparse.fit("ard_gaussian", ...)``.

    Parameters
    ----------
    basis : str or basis
        ``"linear"``, ``"rbf"`` with ``width``, or one of `bayes_sparse.basis`.
    width : float or "evidence"
        Of ``basis="rbf"``, in the units of X; ``"evidence"`` has it found. Other bases do not look at it.
    likelihood : str or likelihood
        ``"normal"``, ``"student_t"``, ``"poisson"``, ``"negative_binomial"``, or one of `bayes_sparse.likelihoods`.
    method : str or method
        ``"evidence"`` (the model's own, sequential), ``"sequential"``, ``"mackay"``, ``"em"``, or one of
        `bayes_sparse.methods`.
    keep : str or sequence of str, optional
        Features never pruned, by name (``"x0"`` ... where X has none).
    smoothness : float or "auto"
        Cost of a degree of freedom, in nats; 0 for the pure method.
    hyper : (float, float), optional
        Shape and rate of a Gamma prior on the precisions.
    slab : float, "auto" or None
        How large weights may be, in units of standardised features (and of the spread of y).
    bias_sd : float, optional
        Sd of the intercept's prior.
    max_iterations, tolerance : optional
        Of the method.

    Attributes
    ----------
    coef_, intercept_
        Means of the weights, zero where pruned, and of the bias. With kernels: ``dual_coef_`` of the
        ``relevance_vectors_``.
    sigma_, lambda_, alpha_
        Covariance of the weights kept, precisions of the prior, precision of normal noise.
    log_evidence_, n_iter_, status_
        What was maximised, in how many iterations, and how it ended in a word.
    relevance_, tree_
        The table of `bayes_sparse.relevance`, and what `bayes_sparse.fit` gives, both made when asked.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.
    """


@dataclass(kw_only=True, eq=False, repr=False)
class RVMClassifier(_RVM, SparseClassifier):
    """Relevance vector machine for classes.

    Two classes are ``bayes_sparse.fit("ard_gaussian", ...)``, more of them, by a softmax,
    ``bayes_sparse.fit("student_multinomial", ...)``.

    Parameters
    ----------
    basis, width, keep, smoothness, hyper, slab, bias_sd, max_iterations, tolerance
        As for `RVMRegressor`.
    method : str or method
        ``"evidence"`` (sequential for two classes, MacKay's for more), ``"mackay"``, ``"em"`` ..., and for several
        classes ``"one_vs_rest"``.

    Attributes
    ----------
    classes_ : array
        The labels.
    coef_, intercept_
        One row per class, or a single one for two classes.
    sigma_, lambda_, log_evidence_, n_iter_, status_, relevance_, tree_
        As for `RVMRegressor`.
    """

    several: ClassVar[str | None] = "student_multinomial"
