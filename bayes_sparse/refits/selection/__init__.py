"""How few features will do."""

from __future__ import annotations

from bayes_sparse.refits.selection.path import selection_path
from bayes_sparse.refits.selection.plots import plot_selection

__all__ = ["plot_selection", "selection_path"]
