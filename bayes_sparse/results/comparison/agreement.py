"""Whether the trees agree on which terms matter."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import xarray as xr
from scipy.stats import spearmanr

from bayes_sparse.results.comparison.marginals import Marginals
from bayes_sparse.trees.rung import rung_of

__all__ = ["agreement", "prunes", "relevant_terms"]

_STRONG = 2.0  # |mean| / sd above which a term counts as relevant where no term can be pruned


def prunes(tree: xr.DataTree) -> bool:
    """Whether the fit can set weights to exactly zero.

    NUTS of everything cannot, nor can one-step methods, nor those with a proper prior on the precisions, under which
    none is ever infinite, but for several classes, where useless terms are deleted all the same.
    """
    if rung_of(tree) == "full" or "direction" in tree["evidence"].dims:
        return False
    hyper = np.ravel(tree["evidence"].attrs.get("hyper", ()))
    return len(hyper) < 2 or not hyper[1] > 0 or "of_class" in tree["evidence"].coords


def relevant_terms(trees: dict[str, xr.DataTree], aligned: dict[str, Marginals]) -> pd.DataFrame:
    """A row a term, a column a tree: kept, or, where the tree cannot prune, |mean| / sd > 2."""
    columns = {}
    for name, own in aligned.items():
        strong = np.abs(own.mean) > _STRONG * own.sd
        columns[name] = (own.kept if prunes(trees[name]) else strong & own.kept)[own.weight]
    first = next(iter(aligned.values()))
    return pd.DataFrame(columns, index=pd.Index(first.names[first.weight], name="parameter"))


def agreement(relevant: pd.DataFrame, aligned: dict[str, Marginals], terms: int) -> pd.DataFrame:
    """A row a pair of trees; ``terms`` is how many there were to choose among."""
    rows: dict[tuple[str, str], dict[str, float]] = {}
    for first, second in combinations(relevant.columns, 2):
        a, b = relevant[first].to_numpy(), relevant[second].to_numpy()
        both, either = int(np.sum(a & b)), int(np.sum(a | b))
        rows[first, second] = {
            "both": both,
            "only_first": int(np.sum(a & ~b)),
            "only_second": int(np.sum(b & ~a)),
            "neither": terms - either,
            "jaccard": both / either if either else 1.0,
            "kappa": _kappa(both, int(a.sum()), int(b.sum()), terms),
            "rank_correlation": _rank_correlation(aligned[first], aligned[second]),
        }
    index = pd.MultiIndex.from_arrays([[a for a, _ in rows], [b for _, b in rows]], names=["first", "second"])
    return pd.DataFrame(list(rows.values()), index=index)


def _kappa(both: int, first: int, second: int, terms: int) -> float:
    """Cohen's kappa: agreement beyond what two such numbers of terms would have by chance."""
    observed = (terms - first - second + 2 * both) / terms
    chance = (first * second + (terms - first) * (terms - second)) / terms**2
    return 1.0 if chance == 1 else (observed - chance) / (1 - chance)


def _rank_correlation(first: Marginals, second: Marginals) -> float:
    """Of |mean| / sd, pruned terms last; NaN for a plug-in, which has no sd."""
    strengths = []
    for own in (first, second):
        mean, sd = own.mean[own.weight], own.sd[own.weight]
        strengths.append(np.divide(np.abs(mean), sd, out=np.zeros_like(mean), where=sd > 0))
    a, b = strengths
    if len(a) < 3 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return float("nan")
    return float(spearmanr(a, b).statistic)
