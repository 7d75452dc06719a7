"""The table people look at first: which basis functions matter, and how much."""

from __future__ import annotations

import pandas as pd
import xarray as xr

__all__ = ["relevance"]


def relevance(tree: xr.DataTree) -> pd.DataFrame:
    """Basis functions by name, most relevant first.

    Parameters
    ----------
    tree : xarray.DataTree
        From an evidence method of `bayes_sparse.fit`.

    Returns
    -------
    pandas.DataFrame
        Columns precision (infinite where pruned), mean and sd of the weight, gamma (how well the data determine it, 0
        to 1) and relevant. Ordered by relevant, then by |mean| / sd.
    """
    if "evidence" not in tree.children:
        raise ValueError(
            "This tree has no group 'evidence': relevance is read off an evidence fit; for NUTS draws see "
            "az.summary(tree)."
        )
    evidence = tree["evidence"].to_dataset()
    names = ["alpha", "mean", "sd", "gamma", "relevant"]
    table = pd.DataFrame(
        {name: evidence[name].to_numpy() for name in names}, index=pd.Index(evidence["basis"].to_numpy(), name="basis")
    ).rename(columns={"alpha": "precision"})
    strength = (table["mean"].abs() / table["sd"]).where(table["relevant"], -1.0)
    return table.loc[strength.sort_values(ascending=False, kind="stable").index]
