"""Expected log densities as ArviZ has them, with what there is to say about them in print.

Importing this imports ArviZ, which takes a second: functions do it when they are called.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from textwrap import fill
from typing import Any

from arviz_stats.utils import ELPDDataLOO, ELPDDataLOOKFold

__all__ = ["CAVEAT", "RefittedKFold", "RefittedLOO", "SelectedLOO"]

CAVEAT = (
    "The terms and hyper-parameters of this fit were found with every row, so its elpd is too high; bs.loo(tree, "
    "refit=True, data=...) and bs.kfold find them anew without the rows that they score."
)
_WIDTH = 100


@dataclass(kw_only=True, repr=False)
class SelectedLOO(ELPDDataLOO):
    """Of an evidence fit, by re-weighting its draws: what it selected has seen the rows.

    Attributes
    ----------
    caveat : str
        Just that, in a sentence; it stands below the table in print.
    """

    caveat: str = CAVEAT

    def _footer(self) -> str:
        above: Any = super()
        return f"{above._footer()}\n{fill(self.caveat, _WIDTH)}"


@dataclass(kw_only=True, repr=False)
class RefittedLOO(ELPDDataLOO):
    """Every row scored by a fit that has not seen it.

    Attributes
    ----------
    statuses : dict
        How many of the fits ended how.
    notes : tuple of str
        What else to know; below the table in print.
    """

    statuses: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def _header(self) -> str:
        return f"Computed from {self.n_data_points} fits, each without the row that it scores."

    def _footer(self) -> str:
        return "".join(f"\n{fill(note, _WIDTH)}" for note in self.notes)


@dataclass(kw_only=True, repr=False)
class RefittedKFold(ELPDDataLOOKFold):
    """Every row scored by a fit that has not seen its fold; attributes as those of `RefittedLOO`."""

    statuses: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def _footer(self) -> str:
        return "".join(f"\n{fill(note, _WIDTH)}" for note in self.notes)
