"""What a report is about: one tree, several by name, or the rungs of a ladder."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import xarray as xr

from bayes_sparse.common.types import FloatArray

__all__ = ["Fit", "read_trees"]

_ALONE = "this fit"


@dataclass(frozen=True, eq=False)
class Fit:
    """A tree and what its user calls it.

    Attributes
    ----------
    name : str
        Its name in the report.
    tree : xarray.DataTree
        From `bayes_sparse.fit`.
    """

    name: str
    tree: xr.DataTree

    @cached_property
    def settings(self) -> dict[str, Any]:
        """Model, likelihood, basis and columns; empty for a tree that is not ours."""
        stored: dict[str, Any] = json.loads(self.tree.attrs.get("bayes_sparse", "{}"))
        return stored

    @cached_property
    def evidence(self) -> xr.Dataset | None:
        """What an evidence method found."""
        return self._group("evidence")

    @cached_property
    def posterior(self) -> xr.Dataset | None:
        """Draws."""
        return self._group("posterior")

    @cached_property
    def observed(self) -> xr.DataArray | None:
        """The targets of the fit, classes as numbers."""
        group = self._group("observed_data")
        return None if group is None or not group.data_vars else next(iter(group.data_vars.values()))

    @cached_property
    def constant(self) -> xr.Dataset:
        """What was stored beside the targets."""
        group = self._group("constant_data")
        return xr.Dataset() if group is None else group

    @property
    def sampled(self) -> bool:
        """Whether its draws are those of a sampler."""
        return self.posterior is not None and (self.evidence is None or self.posterior.attrs.get("method") == "nuts")

    @cached_property
    def judged(self) -> xr.DataTree:
        """The tree as `diagnose` and `loo` take it: draws of another sampler than ours are marked as such."""
        if not self.sampled or self.tree["posterior"].attrs.get("method") == "nuts":
            return self.tree
        marked = self.tree.copy()
        marked["posterior"].attrs["method"] = "nuts"
        return marked

    @property
    def has_likelihood(self) -> bool:
        """Whether the pointwise log-likelihood was stored."""
        return "log_likelihood" in self.tree.children

    @property
    def attributes(self) -> dict[str, Any]:
        """How the fit was made."""
        own = self.posterior if self.sampled else self.evidence
        return {} if own is None else dict(own.attrs)

    @property
    def method(self) -> str:
        """Name of its method."""
        return str(self.attributes.get("method", "a sampler" if self.sampled else ""))

    @property
    def likelihood(self) -> str:
        """Name of its likelihood, if it is known."""
        return str(self.settings.get("likelihood", {}).get("name", ""))

    @property
    def classes(self) -> list[Any] | None:
        """Labels of the classes, in the order of their numbers."""
        return self.constant["class"].to_numpy().tolist() if "class" in self.constant.variables else None

    @cached_property
    def draws(self) -> dict[str, FloatArray]:
        """Draws of every parameter by its name, "w[label]" for the entry of a vector, each (chain, draw)."""
        if self.posterior is None:
            return {}
        out: dict[str, FloatArray] = {}
        for name, variable in self.posterior.data_vars.items():
            values = variable.transpose("chain", "draw", ...)
            dims = values.dims[2:]
            flat = values.to_numpy().reshape(*values.shape[:2], -1)
            labels = [values[dim].to_numpy().tolist() for dim in dims]
            for i, place in enumerate(np.ndindex(*values.shape[2:])):
                words = ", ".join(str(own[at]) for own, at in zip(labels, place, strict=True))
                out[f"{name}[{words}]" if dims else str(name)] = flat[..., i]
        return out

    def _group(self, name: str) -> xr.Dataset | None:
        return self.tree[name].to_dataset() if name in self.tree.children else None


def read_trees(trees: Any) -> list[Fit]:
    """The trees handed in, with names; the rungs of a ladder one by one."""
    if isinstance(trees, xr.DataTree):
        named = _rungs(trees)
        return (
            [Fit(name, rung) for name, rung in named.items()] if named else [Fit(_ALONE, _checked("the tree", trees))]
        )
    if not isinstance(trees, Mapping):
        raise TypeError(f"report takes a tree from bayes_sparse.fit, or a dict of them by name, not {_kind(trees)}.")
    fits: list[Fit] = []
    for name, tree in trees.items():
        rungs = _rungs(tree) if isinstance(tree, xr.DataTree) else {}
        fits += [Fit(f"{name}: {rung}", below) for rung, below in rungs.items()]
        if not rungs:
            fits.append(Fit(str(name), _checked(f"the tree {name!r}", tree)))
    if not fits:
        raise ValueError("There is nothing to report: the dict of trees is empty.")
    twice = [name for name, times in Counter(fit.name for fit in fits).items() if times > 1]
    if twice:
        raise ValueError(f"Two trees have the name {twice[0]!r}: give every tree its own.")
    return fits


def _rungs(tree: xr.DataTree) -> dict[str, xr.DataTree]:
    """The trees inside a tree, if it is one of trees."""
    if _is_fit(tree):
        return {}
    return {str(name): child for name, child in tree.children.items() if _is_fit(child)}


def _is_fit(tree: xr.DataTree) -> bool:
    return "evidence" in tree.children or "posterior" in tree.children


def _checked(what: str, tree: Any) -> xr.DataTree:
    if not isinstance(tree, xr.DataTree):
        raise TypeError(f"report takes trees from bayes_sparse.fit; {what} is {_kind(tree)}.")
    if not _is_fit(tree):
        raise ValueError(f"There is nothing to report: {what} has neither a group 'evidence' nor a group 'posterior'.")
    return tree


def _kind(thing: Any) -> str:
    return f"of type {type(thing).__name__}"
