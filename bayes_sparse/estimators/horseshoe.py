"""The regularised horseshoe: most weights near zero, a few as large as a slab allows.

For classes alone: a regression on few rows and many columns can end with its noise collapsed, at one of several answers
that explain the rows exactly, and a rounding error decides which: rows repeated are then not rows of greater weight.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bayes_sparse.estimators._base import SparseClassifier
from bayes_sparse.inputs.model import Slab

__all__ = ["HorseshoeClassifier"]


@dataclass(kw_only=True, eq=False, repr=False)
class HorseshoeClassifier(SparseClassifier):
    """The horseshoe for two classes, ``bayes_sparse.fit("horseshoe", ...)``: for more features than rows.

    It shrinks and prunes nothing, so that there is no `get_support`; ``relevance_`` says which weights are relevant.

    Parameters
    ----------
    basis, width, keep, bias_sd, max_iterations, tolerance
        As for `RVMRegressor`.
    method : str or method
        ``"evidence"`` (the model's own, global_local), or one of `bayes_sparse.methods`.
    relevant : float, optional
        How many features are expected to matter.
    slab : float, "auto" or None
        How large the weights that escape may be.

    Attributes
    ----------
    classes_, coef_, intercept_, sigma_, log_evidence_, n_iter_, status_, relevance_, tree_
        As for `RVMClassifier`, of two classes; every feature has a weight.
    """

    model: ClassVar[str] = "horseshoe"
    several: ClassVar[str | None] = None

    relevant: float | None = None
    slab: Slab = "auto"
    bias_sd: float | None = None
    max_iterations: int | None = None
    tolerance: float | None = None
