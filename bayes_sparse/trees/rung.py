"""Which rung of the ladder a tree is on: plug-in, approximation, exact at alpha*, or everything."""

from __future__ import annotations

from typing import Literal

import numpy as np
import xarray as xr

__all__ = ["RUNGS", "Rung", "condition", "rung_of", "was_sampled"]

type Rung = Literal["plug_in", "approximation", "conditional", "full"]

RUNGS: tuple[Rung, ...] = ("plug_in", "approximation", "conditional", "full")  # from the least exact to the most


def was_sampled(tree: xr.DataTree) -> bool:
    """Whether the draws of a tree are NUTS's."""
    return "posterior" in tree.children and tree["posterior"].attrs.get("method") == "nuts"


def rung_of(tree: xr.DataTree) -> Rung:
    """The rung of a fit."""
    if was_sampled(tree):
        return "conditional" if tree["posterior"].attrs.get("condition") else "full"
    if "posterior" not in tree.children and not np.any(tree["evidence"]["covariance_factor"].to_numpy()):
        return "plug_in"
    return "approximation"


def condition(evidence: xr.Dataset) -> str:
    """What the log evidence of an evidence fit is given."""
    if "lambda" in evidence:
        return f"the support and lambda* = {float(evidence['lambda']):.4g}; flat priors count as 1"
    terms = "the directions kept and alpha*" if "direction" in evidence.dims else "the terms selected and alpha*"
    return f"{terms}, nuisance parameters at their estimates" if evidence["theta"].size else terms
