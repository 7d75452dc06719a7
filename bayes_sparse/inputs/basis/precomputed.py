"""Columns that are basis functions already."""

from __future__ import annotations

from dataclasses import dataclass

from bayes_sparse.inputs.basis.linear import linear

__all__ = ["precomputed"]


@dataclass(frozen=True)
class precomputed(linear):
    """The columns of X are basis functions already; new data must come in the same form.

    Attributes
    ----------
    bias, standardise : bool
        As for `linear`; not standardised unless asked.
    """

    standardise: bool = False
