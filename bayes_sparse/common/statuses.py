"""How a fit ended: a word, what it means and what to do about it. Warnings, verdicts, reports and docs read it here."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, Self

__all__ = ["Status"]

type Level = Literal["good", "care", "bad"]


class Status(StrEnum):
    """The end of a fit, as ``tree["evidence"].attrs["status"]`` says it.

    Attributes
    ----------
    level : "good", "care" or "bad"
        Whether the answer can be used as it is.
    """

    CONVERGED = "converged", "good", "{who} converged.", ""
    FIXED_POINT = "fixed-point", "good", "Lambda is N/R exactly: a solution of the criterion.", ""
    JUMP = (
        "jump",
        "good",
        "No lambda on the path satisfies lambda R = N exactly: the number of weights jumps past it. The sparser side "
        "is the answer{aside}.",
        "",
    )
    NULL = "null", "care", "No basis function pays for itself: the answer is the model without any (bias only).", ""
    SEPARABLE = (
        "separable",
        "care",
        "The terms kept separate the classes perfectly: only the prior holds their weights, and probabilities near 0 "
        "and 1 should not be taken literally",
        "check with method='nuts'",
    )
    MAX_ITERATIONS = (
        "max_iterations",
        "bad",
        "{who} did not converge within its limit of iterations{aside}",
        "raise max_iterations or tolerance",
    )
    NOISE_COLLAPSED = (
        "noise_collapsed",
        "bad",
        "The noise has collapsed: the fit explains the data exactly{aside}, and its intervals mean nothing",
        "raise `smoothness` or offer fewer basis functions",
    )

    level: Level
    _meaning: str
    _cure: str

    def __new__(cls, word: str, level: Level, meaning: str, cure: str) -> Self:
        """A word with its sentence."""
        own = str.__new__(cls, word)
        own._value_, own.level, own._meaning, own._cure = word, level, meaning, cure
        return own

    @classmethod
    def of(cls, word: str) -> Status:
        """The status that a tree stores as a word."""
        return next(status for status in cls if status == word)

    def sentence(self, *, who: str = "The search", aside: str = "", cure: str | None = None) -> str:
        """What it means and the cure; a family may say who did it, more of it, and a cure of its own."""
        meaning, cure = self._meaning.format(who=who, aside=aside), self._cure if cure is None else cure
        return f"{meaning.removesuffix('.')}; {cure}." if cure else meaning
