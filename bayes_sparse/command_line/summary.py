"""What `bayes-sparse fit` says of a fit, in a screenful."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from bayes_sparse.command_line.files import as_text
from bayes_sparse.results.diagnose import SamplingDiagnosis, diagnose
from bayes_sparse.results.relevance import relevance
from bayes_sparse.trees.read import stored

__all__ = ["Summary", "for_people"]

_ROWS, _WIDTH = 30, 100
_COLUMNS = ["mean", "sd", "low", "high", "gamma", "chance", "word", "or"]
_RIVALS = 2  # named in a row


class Summary:
    """What to say of a fit.

    Attributes
    ----------
    table : str
        The terms kept: of a method that keeps all, the strongest.
    text : str
        How the fit ended, the table, and how far to trust it.
    bad : str
        Why the answer is not to be used as it is: the search did not end well, or the chains do not agree.
    """

    def __init__(self, tree: xr.DataTree, called: str) -> None:
        fit, terms = stored(tree), relevance(tree)
        kept = terms[terms["kept"]] if "kept" in terms else terms
        verdict, self.bad = _verdict(tree)
        self.table = _table(kept)
        if fit.status is not None and fit.status.level == "bad":
            self.bad = f"The fit ended as {str(fit.status)!r}, and is not to be used as it is."
        self.text = "\n\n".join(part for part in (_head(fit, called, terms, kept), self.table, verdict) if part)


def _head(fit: Any, called: str, terms: pd.DataFrame, kept: pd.DataFrame) -> str:
    said = [f"{called} by {fit.method}: {len(terms)} terms"]
    if "kept" in terms and "relevant" in terms:  # else directions were chosen, and no terms
        said = [f"{said[0]}, {len(kept)} kept, {int(terms['relevant'].sum())} relevant"]
    if fit.status is not None:
        said.append(str(fit.status))
    evidence = np.nan if fit.evidence is None or fit.sampled else float(fit.evidence.get("log_evidence", np.nan))
    if np.isfinite(evidence):
        said.append(f"log evidence {evidence:.2f}")
    return "; ".join([*said, f"{fit.seconds:.2g} s"]) + "."


def _table(kept: pd.DataFrame) -> str:
    """A row a term, without columns that say nothing."""
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


def _verdict(tree: xr.DataTree) -> tuple[str, str]:
    """How far to trust it, and why not if it is for the chains; nothing of a fit without draws."""
    if "posterior" not in tree.children:
        return "", ""
    try:
        found = diagnose(tree)
    except ValueError as reason:  # what it needs was too large to store
        return textwrap.fill(str(reason), _WIDTH), ""
    bad = found.verdict if isinstance(found, SamplingDiagnosis) and not found.trusted else ""
    return textwrap.fill(found.verdict, _WIDTH, break_on_hyphens=False), bad
