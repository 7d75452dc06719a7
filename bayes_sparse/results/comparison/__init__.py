"""Several fits of the same data side by side: how far apart, how fast, how well they predict."""

from __future__ import annotations

from bayes_sparse.results.comparison.compare import Comparison, compare
from bayes_sparse.results.plots.comparison import plot_compare

__all__ = ["Comparison", "compare", "plot_compare"]
