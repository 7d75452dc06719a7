"""The log evidence of a fit by the best means its tree has, with its standard error and what it is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import xarray as xr

from bayes_sparse.results.bridge import bridge_sampling
from bayes_sparse.results.diagnose import Diagnosis, diagnose
from bayes_sparse.trees.rung import condition, was_sampled

__all__ = ["LogEvidence", "log_evidence"]

_METHODS = ("auto", "approximate", "importance", "bridge")


@dataclass(frozen=True)
class LogEvidence:
    """A log evidence.

    Attributes
    ----------
    value : float
        In nats, with every constant.
    se : float
        Monte-Carlo standard error; 0 for a closed form, NaN for an approximation, whose error is not of that kind.
    kind : str
        What it is: "exact", "laplace" or "quadratic" (approximations; of a sampled tree, the one it was started from),
        "importance sampling", "bridge sampling".
    method : str
        How to ask for it again: "approximate", "importance" or "bridge".
    conditional_on : str
        What it is given.
    """

    value: float
    se: float
    kind: str
    method: str
    conditional_on: str

    def __str__(self) -> str:
        error = f" +- {self.se:.3f}" if self.se > 0 else ""
        return f"log evidence {self.value:.3f}{error} ({self.kind}), given {self.conditional_on}"


def log_evidence(
    tree: xr.DataTree, method: Literal["auto", "approximate", "importance", "bridge"] = "auto"
) -> LogEvidence:
    """The log evidence of a fit.

    Parameters
    ----------
    tree : xarray.DataTree
        From `bayes_sparse.fit`.
    method : str
        ``"approximate"``: the evidence method's own. ``"importance"``: the log of the mean importance weight of its
        draws; see `bayes_sparse.diagnose` for when to trust it. ``"bridge"``: bridge sampling, from a fit by NUTS.
        ``"auto"``: the last of these that the tree allows and that can be trusted, or the approximation where that is
        exact.

    Returns
    -------
    LogEvidence
        Compare two of them only where they are given the same kind of thing.
    """
    if method not in _METHODS:
        raise ValueError(f"`method` is one of {', '.join(map(repr, _METHODS))}, got {method!r}.")
    if method == "bridge" or (method == "auto" and "bridge" in tree.children):
        return _by_bridge(tree)
    if method == "importance":
        return _by_importance(_diagnosed(tree))
    if method == "auto" and _worth_weighting(tree):
        diagnosis = _diagnosed(tree)
        if diagnosis.trusted:
            return _by_importance(diagnosis)
    return _approximate(tree)


def _by_bridge(tree: xr.DataTree) -> LogEvidence:
    if "bridge" not in tree.children:
        raise ValueError('This tree has nothing to bridge from: fit with method="nuts", condition="alpha".')
    group = tree["bridge"].to_dataset()
    names = ("proposal_log_p", "proposal_log_q", "posterior_log_p", "posterior_log_q")
    found = bridge_sampling(*(group[name].to_numpy() for name in names))
    return LogEvidence(found.value, found.se, "bridge sampling", "bridge", str(group.attrs["conditional_on"]))


def _by_importance(found: Diagnosis) -> LogEvidence:
    return LogEvidence(
        found.log_evidence_importance, found.log_evidence_se, "importance sampling", "importance", found.conditional_on
    )


def _worth_weighting(tree: xr.DataTree) -> bool:
    if "evidence" not in tree.children or "sample_stats" not in tree.children or was_sampled(tree):
        return False
    return "log_p" in tree["sample_stats"] and tree["evidence"].attrs["approximation"] != "exact"


def _diagnosed(tree: xr.DataTree) -> Diagnosis:
    diagnosis = diagnose(tree)
    if not isinstance(diagnosis, Diagnosis):
        raise ValueError(
            "Importance sampling is from the draws of an evidence fit; a sampled tree has method='bridge', or nothing."
        )
    return diagnosis


def _approximate(tree: xr.DataTree) -> LogEvidence:
    if "evidence" not in tree.children:
        raise ValueError("This tree has no log evidence: it is not from an evidence method, and has nothing to bridge.")
    evidence = tree["evidence"].to_dataset()
    value, kind = float(evidence["log_evidence"]), str(evidence.attrs["approximation"])
    kind = "approximation it was started from" if was_sampled(tree) else kind
    if np.isnan(value):
        raise ValueError(
            "With lambda integrated out the prior is improper, and there is no approximate log evidence; "
            "method='importance' gives the one at the lambda found, from a fit with draws whose k-hat is small enough."
        )
    return LogEvidence(value, 0.0 if kind == "exact" else np.nan, kind, "approximate", condition(evidence))
