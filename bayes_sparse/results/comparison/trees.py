"""Whether several trees can be compared at all, and which of them is the reference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from bayes_sparse.inputs.table import in_words
from bayes_sparse.trees.read import RUNGS, rung_of, stored

__all__ = ["checked_trees", "chosen_reference"]


def checked_trees(trees: Any) -> dict[str, xr.DataTree]:
    """The trees by name, refused where they are no trees, too few, or not of the same data."""
    if isinstance(trees, xr.DataTree):
        trees = _rungs(trees)
    if not isinstance(trees, Mapping):
        raise TypeError(f"compare takes trees by name, {{'fast': tree, 'nuts': other}}, not {type(trees).__name__}.")
    named = {str(name): tree for name, tree in trees.items()}
    for name, tree in named.items():
        whole = isinstance(tree, xr.DataTree) and "bayes_sparse" in tree.attrs
        if not whole or not {"evidence", "posterior"} & set(tree.children):
            raise TypeError(f"{name!r} is no tree from bayes_sparse.fit: it is a {type(tree).__name__} without a fit.")
    if len(named) < 2:
        raise ValueError(f"compare needs two trees or more, got {len(named)}: {in_words(named) or 'none'}.")
    seen = [name for name, tree in named.items() if stored(tree).observed is not None]
    for other in seen[1:]:
        _check_same_data(seen[0], named[seen[0]], other, named[other])
    return named


def _rungs(tree: xr.DataTree) -> dict[str, xr.DataTree]:
    """The trees of a ladder."""
    rungs = {str(name): child for name, child in tree.children.items() if "bayes_sparse" in child.attrs}
    if not rungs:
        raise TypeError("compare takes trees by name, {'fast': tree, 'nuts': other}; one tree has nothing beside it.")
    return rungs


def _check_same_data(first: str, tree: xr.DataTree, second: str, other: xr.DataTree) -> None:
    """Refuse trees of different targets or rows."""
    (name, y), (other_name, other_y) = (_observed(t, key) for t, key in ((tree, first), (other, second)))
    if name != other_name:
        raise ValueError(
            f"The trees have different targets: {first!r} is of {name!r}, {second!r} of {other_name!r}; compare fits "
            "of the same one."
        )
    if y.shape != other_y.shape:
        raise ValueError(
            f"The trees have different data: {first!r} has {len(y)} rows and {second!r} has {len(other_y)}; compare "
            "fits of the same rows."
        )
    values, others = y.to_numpy(), other_y.to_numpy()
    differ = (values != others).reshape(len(values), -1).any(axis=1)
    if differ.any():
        row = int(np.argmax(differ))
        label = y[y.dims[0]].to_numpy()[row] if y.dims[0] in y.coords else row
        raise ValueError(
            f"The trees have different data: they differ in {int(differ.sum())} of {len(values)} targets, first in row "
            f"{label} ({values[row]} in {first!r}, {others[row]} in {second!r}); compare fits of the same rows."
        )


def _observed(tree: xr.DataTree, key: str) -> tuple[str, xr.DataArray]:
    variables = tree["observed_data"].to_dataset().data_vars
    if len(variables) != 1:
        raise ValueError(f"The tree {key!r} has {len(variables)} observed variables; compare needs one in each.")
    name = next(iter(variables))
    return str(name), variables[name]


def chosen_reference(trees: dict[str, xr.DataTree], reference: str | None) -> str:
    """The tree asked for, or the most exact one: NUTS of everything before NUTS at alpha* before the others."""
    if reference is None:
        return max(trees, key=lambda name: RUNGS.index(rung_of(trees[name])))
    if reference not in trees:
        raise ValueError(f"There is no tree {reference!r} to be the reference; there are {in_words(trees)}.")
    return reference
