"""L1 regression without a knob: Laplace priors of one common scale, which is integrated out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bayes_sparse.estimators._base import KeptColumns, SparseClassifier, SparseEstimator, SparseRegressor

__all__ = ["BLogRegClassifier", "BLogRegRegressor"]


@dataclass(kw_only=True, eq=False, repr=False)
class _BLogReg(KeptColumns, SparseEstimator):
    model: ClassVar[str] = "jeffreys_laplace"

    lam: float | None = None
    bias_sd: float | None = None


@dataclass(kw_only=True, eq=False, repr=False)
class BLogRegRegressor(_BLogReg, SparseRegressor):
    """L1 regression of numbers and counts without a knob: ``bayes_sparse.fit("jeffreys_laplace", ...)``.

    Parameters
    ----------
    basis, width, keep
        As for `RVMRegressor`; a width must be a number.
    likelihood : str or likelihood
        A log-concave one: ``"normal"``, ``"poisson"``, ``"negative_binomial"``.
    method : str or method
        ``"evidence"`` (the model's own, reweighted), ``"coordinate_descent"``, ``"fuzzy"``, ``"cv"``, or one of
        `bayes_sparse.methods`.
    lam : float, optional
        A penalty of your own, for standardised features.
    bias_sd : float, optional
        Sd of the intercept's prior; None leaves it free.

    Attributes
    ----------
    coef_, intercept_, sigma_, alpha_, n_iter_, status_, relevance_, tree_
        As for `RVMRegressor`; the covariance is conditional on the features kept.
    log_evidence_
        NaN: a point of the L1 path has none.
    """


@dataclass(kw_only=True, eq=False, repr=False)
class BLogRegClassifier(_BLogReg, SparseClassifier):
    """L1 regression of two classes without a knob (BLogReg).

    Parameters
    ----------
    basis, width, method, keep, lam, bias_sd
        As for `BLogRegRegressor`.

    Attributes
    ----------
    classes_, coef_, intercept_, sigma_, n_iter_, status_, relevance_, tree_
        As for `RVMClassifier`, of two classes.
    """

    several: ClassVar[str | None] = None
