"""Expected log densities as ArviZ has them, with what there is to say about them in print.

Importing this imports ArviZ, which takes a second: functions do it when they are called.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from textwrap import fill
from typing import Any

import xarray as xr
from arviz_stats.utils import ELPDDataLOO, ELPDDataLOOKFold

__all__ = ["CAVEAT", "Refitted", "RefittedKFold", "RefittedLOO", "SelectedLOO"]

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
class Refitted:
    """What fits that have not seen the rows they score have beside their scores.

    Attributes
    ----------
    statuses : dict
        How many of the fits ended how.
    notes : tuple of str
        What else to know; below the table in print.
    made : any
        The fit of all rows, of which `fit` is the tree.
    """

    statuses: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    made: Any = field(default=None, compare=False)

    @cached_property
    def fit(self) -> xr.DataTree:
        """The tree of the fit of all rows, as it would be without any cross-validation; written when asked for."""
        tree: xr.DataTree = self.made.tree
        return tree

    def _footer(self) -> str:
        return "".join(f"\n{fill(note, _WIDTH)}" for note in self.notes)


@dataclass(kw_only=True, repr=False)
class RefittedLOO(Refitted, ELPDDataLOO):
    """Every row scored by a fit that has not seen it."""

    def _header(self) -> str:
        return f"Computed from {self.n_data_points} fits, each without the row that it scores."


@dataclass(kw_only=True, repr=False)
class RefittedKFold(Refitted, ELPDDataLOOKFold):
    """Every row scored by a fit that has not seen its fold."""
