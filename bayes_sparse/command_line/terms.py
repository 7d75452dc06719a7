"""The terms of a fit as a table for people, and whether the fit is not to be used as it is."""

from __future__ import annotations

import pandas as pd
import xarray as xr

from bayes_sparse.command_line.files import as_text
from bayes_sparse.results.diagnose import diagnose
from bayes_sparse.results.relevance import relevance
from bayes_sparse.trees.read import stored

__all__ = ["bad_end", "for_people", "table_of"]

_ROWS = 30
_COLUMNS = ["mean", "sd", "low", "high", "gamma", "chance", "word", "or"]
_RIVALS = 2  # named in a row


def table_of(tree: xr.DataTree) -> str:
    """A row per term kept, without columns that say nothing; of a method that keeps all, the strongest."""
    terms = relevance(tree)
    kept = terms[terms["kept"]] if "kept" in terms else terms
    if not len(kept):
        return ""
    own = for_people(kept.head(_ROWS))
    shown = as_text(own[[name for name in _COLUMNS if name in own]])
    more = len(kept) - _ROWS
    return f"{shown}\n... and {more} more: bayes-sparse relevance" if more > 0 else shown


def for_people(terms: pd.DataFrame) -> pd.DataFrame:
    """What `relevance` says without what stands there twice: the word tells, and the first rivals do."""
    own = terms.drop(columns=["kept", "relevant", "rival", "alternatives"], errors="ignore")
    if "rival" not in terms or not terms["rival"].map(len).any():
        return own
    return own.assign(**{"or": [_first(names) for names in terms["rival"]]})


def _first(names: tuple[str, ...]) -> str:
    more = f" +{len(names) - _RIVALS}" if len(names) > _RIVALS else ""
    return ", ".join(names[:_RIVALS]) + more


def bad_end(tree: xr.DataTree) -> str:
    """Why the answer is not to be used as it is: the search did not end well, or the chains do not agree."""
    fit = stored(tree)
    if fit.status is not None and fit.status.level == "bad":
        return f"The fit ended as {str(fit.status)!r}, and is not to be used as it is."
    if not fit.sampled:
        return ""
    found = diagnose(tree)
    return "" if found.trusted else found.verdict
