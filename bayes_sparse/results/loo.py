"""Leave-one-out cross-validation of a fit by re-weighting its draws: ArviZ's, the approximation allowed for."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from bayes_sparse.results.importance import check_enough, check_target, log_densities
from bayes_sparse.trees.read import rung_of, stored, was_sampled

__all__ = ["loo"]


def loo(tree: xr.DataTree, pointwise: bool = False) -> Any:
    """Expected log density of new observations, by leaving each one out.

    The draws of an evidence fit are weighted towards the exact posterior at its hyper-parameters and away from the
    observation left out in one go (Magnusson et al. 2019); those hyper-parameters, and the terms selected, have seen
    all observations, which the answer says in print and in its ``caveat``. The prior of a fit with lambda integrated
    out is the Laplace prior at the lambda found.

    Parameters
    ----------
    tree : xarray.DataTree
        From `bayes_sparse.fit` or `bayes_sparse.correct`, with draws. Of a row that counts several times (`weights`)
        one is left out.
    pointwise : bool
        With the value and the k-hat of every observation.

    Returns
    -------
    arviz_stats.ELPDData
        As `az.loo` gives it, for `az.compare`. ArviZ warns where some observations matter too much for it.
    """
    import arviz as az  # takes seconds, and fitting does not need it

    if "posterior" not in tree.children:
        raise ValueError(
            "Leaving observations out needs draws: fit with draws > 0 (of a ladder, take one of its rungs)."
        )
    in_chunks = "evidence" in tree.children and "passes" in tree["evidence"].attrs
    if "log_likelihood" not in tree.children and in_chunks:
        raise ValueError(
            "The rows of this fit lie in chunks, so that the log-likelihood of each was left out: fit a sample of the "
            "rows in memory to leave some of them out."
        )
    if "log_likelihood" not in tree.children:
        raise ValueError(
            "This tree has no pointwise log-likelihood, which was too large to be stored: fit with fewer draws."
        )
    check_enough(tree["posterior"].sizes["chain"] * tree["posterior"].sizes["draw"])
    if rung_of(tree) == "full":
        return az.loo(tree, pointwise=pointwise)
    from bayes_sparse.results.elpd import SelectedLOO

    if was_sampled(tree) or stored(tree).corrected:
        return SelectedLOO(**vars(az.loo(tree, pointwise=pointwise)))
    if not tree["evidence"].sizes.get("factor", 0):
        raise ValueError("Nothing was kept and there is no bias: every draw is the same, whatever is left out.")
    log_p, log_q = log_densities(tree)
    check_target((log_p - log_q).to_numpy())
    with np.errstate(all="ignore"):  # weights so far apart that ArviZ divides by nearly nothing
        found = az.loo_approximate_posterior(tree, log_p, log_q, pointwise=pointwise)
    if not np.isfinite(found.elpd):
        raise ValueError(
            "The draws are so far from the exact posterior that leaving a row out cannot be computed from them: "
            "bs.loo(tree, refit=True, data=...) fits without the rows, and bs.diagnose(tree) says how far they are."
        )
    return SelectedLOO(**vars(found))
