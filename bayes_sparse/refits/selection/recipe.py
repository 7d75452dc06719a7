"""What a tree says of its fit, so that it can be made again on other rows, and those rows as its columns."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from bayes_sparse.inputs import basis as bases
from bayes_sparse.inputs import likelihoods
from bayes_sparse.inputs.class_features import class_features_of
from bayes_sparse.inputs.table import features_of, in_words, plain_labels
from bayes_sparse.problem.design import FloatArray, IntArray

__all__ = ["Columns", "Recipe", "codes_of", "columns_of", "recipe_of"]


@dataclass(frozen=True, eq=False)
class Recipe:
    """What the tree says of its fit: arguments of `fit`, and the columns, or those of each class."""

    arguments: dict[str, Any]
    attributes: dict[str, Any]
    basis: bases.Basis
    columns: list[Any]

    @property
    def by_class(self) -> bool:
        """Whether every class has features of its own."""
        return bool(self.columns) and isinstance(self.columns[0], list)


@dataclass(frozen=True, eq=False)
class Columns:
    """The features side by side; with features of each class's own, the label and the plain name of each column."""

    matrix: FloatArray
    names: NDArray[Any]
    labels: list[Any] | None = None
    plain: list[str] | None = None

    def table(self, rows: NDArray[np.bool_], chosen: IntArray) -> Any:
        """Some rows and columns in the form that `fit` and `predict` take."""
        if self.labels is None or self.plain is None:
            return pd.DataFrame(self.matrix[np.ix_(rows, chosen)], columns=self.names[chosen])
        own: dict[Any, list[int]] = {label: [] for label in dict.fromkeys(self.labels)}
        for j in chosen.tolist():
            own[self.labels[j]].append(j)
        plain = self.plain
        return {
            label: pd.DataFrame(self.matrix[np.ix_(rows, js)], columns=[plain[j] for j in js])
            for label, js in own.items()
        }


def recipe_of(tree: xr.DataTree) -> Recipe:
    """Read model, method and settings off the tree, refusing what has no features to select or no classes."""
    if not isinstance(tree, xr.DataTree) or "bayes_sparse" not in tree.attrs:
        raise TypeError("selection_path takes a tree from bayes_sparse.fit; this has no 'bayes_sparse' attribute.")
    settings = json.loads(tree.attrs["bayes_sparse"])
    if settings["model"] == "declared":
        raise ValueError("selection_path fits a named model anew; a pm.Model of your own it cannot.")
    likelihood = likelihoods.from_settings(settings["likelihood"])
    if likelihood.name not in ("bernoulli", "categorical"):
        raise ValueError(
            f"selection_path counts rows put into the wrong class, and this tree is a regression ({likelihood.name})."
        )
    basis = bases.from_settings(settings["basis"])
    if basis.kernel:
        raise ValueError("The basis functions of this tree are kernels on the rows: they come and go with the folds.")
    if "evidence" not in tree.children or "direction" in tree["evidence"].dims:
        raise ValueError(
            "selection_path needs a fit that ranks features: an evidence method on the weights themselves."
        )
    found = tree["evidence"].attrs
    arguments = {
        "model": settings["model"],
        "method": found["method"],
        "likelihood": likelihood,
        "basis": bases.precomputed(bias=basis.bias, standardise=basis.standardise),
        "bias_sd": settings["bias_sd"],
    }
    hyper = tuple(float(value) for value in found.get("hyper", ()))
    if hyper:
        arguments["hyper"] = hyper
    if "smoothness" in found:
        arguments["smoothness"] = float(found["smoothness"])
    attributes = {name: found[name] for name in ("method", "hyper", "smoothness") if name in found}
    return Recipe(arguments, {"model": settings["model"], **attributes}, basis, settings["columns"])


def columns_of(tree: xr.DataTree, recipe: Recipe, X: Any) -> Columns:
    """Basis functions of all rows: each depends on its own row alone, so nothing is learnt from the rows held out."""
    evidence: Any = tree["evidence"].to_dataset()
    names = evidence["basis"].to_numpy().astype(str)
    if not recipe.by_class:
        Phi = _expanded(features_of(X, recipe.columns)[0], recipe.basis)
        if "of_column" in evidence.coords:
            names = evidence["of_column"].to_numpy().astype(str)[: Phi.shape[1]]  # all classes have the same
        return Columns(Phi, names)
    parts = class_features_of(X, tree["constant_data"]["class"].to_numpy(), recipe.columns)[0]
    return Columns(
        np.hstack([_expanded(part, recipe.basis) for part in parts]),
        names,
        evidence["of_class"].to_numpy().tolist(),
        evidence["of_column"].to_numpy().astype(str).tolist(),
    )


def _expanded(X: Any, basis: bases.Basis) -> FloatArray:
    dense = X if isinstance(X, np.ndarray) else X.toarray()
    return np.asarray(basis.matrix(dense, None), dtype=float)


def codes_of(tree: xr.DataTree, y: Any, n: int) -> tuple[NDArray[np.intp], NDArray[Any]]:
    """Class of each row as a number, and the labels, which must be those of the fit."""
    values = y.to_numpy() if hasattr(y, "to_numpy") else np.asarray(y)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.shape != (n,):
        raise ValueError(f"`y` must be one label a row of X, which has {n} rows; it has the shape {values.shape}.")
    classes, codes = np.unique(plain_labels(values), return_inverse=True)
    known = tree["constant_data"]["class"].to_numpy()
    if sorted(map(str, classes)) != sorted(map(str, known)):
        raise ValueError(f"`y` must have the classes of the fit ({in_words(known)}); it has {in_words(classes)}.")
    return codes.astype(np.intp), classes
