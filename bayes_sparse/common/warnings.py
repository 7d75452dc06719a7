"""Warnings that point at the user's line, however deep inside the package they arise."""

from __future__ import annotations

import warnings
from pathlib import Path

__all__ = ["FitWarning", "LikelihoodWarning", "UndecidedWarning", "tell"]

_HERE = (str(Path(__file__).parents[1]),)  # the package


class FitWarning(UserWarning):
    """Something about a fit that its user should know before trusting it."""


class UndecidedWarning(FitWarning):
    """The data do not decide between a term and columns that could stand in its place."""


class LikelihoodWarning(FitWarning):
    """The residuals of a fit are not what its likelihood says they are."""


def tell(message: str, kind: type[Warning] = FitWarning) -> None:
    """Warn the user."""
    warnings.warn(message, kind, skip_file_prefixes=_HERE)
