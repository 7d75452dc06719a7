"""A self-contained HTML page about one fit or several."""

from __future__ import annotations

from bayes_sparse.report.page import report

__all__ = ["report"]
