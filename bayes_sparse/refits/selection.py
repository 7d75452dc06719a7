"""Error against the number of features kept, the ranking made anew in every fold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from bayes_sparse.common.checks import count
from bayes_sparse.common.progress import FitProgress, quiet
from bayes_sparse.common.statuses import Status
from bayes_sparse.common.types import FloatArray, IntArray
from bayes_sparse.fitting.fit import fit
from bayes_sparse.inputs import basis as bases
from bayes_sparse.inputs.frames import values_of
from bayes_sparse.inputs.new_rows import class_features_of, features_of
from bayes_sparse.inputs.table import in_words, plain_labels
from bayes_sparse.problem.design import column_moments
from bayes_sparse.problem.folds import balanced_folds
from bayes_sparse.refits.rankings import IN_WORDS, RIVALS, plain_classifier, sklearn
from bayes_sparse.results.predict.predict import predict
from bayes_sparse.results.relevance import relevance
from bayes_sparse.trees.damage import reads_a_fit
from bayes_sparse.trees.read import StoredFit, stored

__all__ = ["FeatureColumns", "Recipe", "codes_of", "columns_of", "recipe_of", "selection_path"]


@dataclass(frozen=True, eq=False)
class Recipe:
    """What the tree says of its fit: arguments of `fit`, and how it reads its columns."""

    arguments: dict[str, Any]
    attributes: dict[str, Any]
    basis: bases.Basis
    fit: StoredFit

    @property
    def by_class(self) -> bool:
        """Whether every class has features of its own."""
        return self.fit.by_class


@dataclass(frozen=True, eq=False)
class FeatureColumns:
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
    fit = stored(tree, "selection_path")
    settings = fit.settings
    if fit.declared:
        raise ValueError("selection_path fits a named model anew; a pm.Model of your own it cannot.")
    likelihood = fit.likelihood
    if likelihood.targets not in ("two classes", "classes"):
        raise ValueError(
            f"selection_path counts rows put into the wrong class, and this tree is a regression ({likelihood.name})."
        )
    basis = fit.basis
    if basis.kernel:
        raise ValueError("The basis functions of this tree are kernels on the rows: they come and go with the folds.")
    if fit.evidence is None or fit.by_direction:
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
    return Recipe(arguments, {"model": settings["model"], **attributes}, basis, fit)


def columns_of(tree: xr.DataTree, recipe: Recipe, X: Any) -> FeatureColumns:
    """Basis functions of all rows: each depends on its own row alone, so nothing is learnt from the rows held out."""
    evidence: Any = tree["evidence"].to_dataset()
    fit = recipe.fit
    names = evidence["basis"].to_numpy().astype(str)
    if not recipe.by_class:
        Phi = _expanded(features_of(X, fit.columns, fit.encodings[0]).X, recipe.basis)
        if "of_column" in evidence.coords:
            names = evidence["of_column"].to_numpy().astype(str)[: Phi.shape[1]]  # all classes have the same
        return FeatureColumns(Phi, names)
    parts = class_features_of(X, tree["constant_data"]["class"].to_numpy(), fit.columns, fit.encodings)[0]
    return FeatureColumns(
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
    values = values_of(y)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.shape != (n,):
        raise ValueError(f"`y` must be one label a row of X, which has {n} rows; it has the shape {values.shape}.")
    classes, codes = np.unique(plain_labels(values), return_inverse=True)
    known = tree["constant_data"]["class"].to_numpy()
    if sorted(map(str, classes)) != sorted(map(str, known)):
        raise ValueError(f"`y` must have the classes of the fit ({in_words(known)}); it has {in_words(classes)}.")
    return codes.astype(np.intp), classes


_LADDER = (1, 2, 5, 10)  # the first counts; then each is twice the last
_OWN = "evidence"


@reads_a_fit
def selection_path(
    tree: xr.DataTree,
    X: Any,
    y: Any,
    *,
    counts: Sequence[int] | None = None,
    folds: int = 5,
    rivals: Sequence[str] = ("mutual_information", "l1_svm"),
    random_seed: int = 0,
    progressbar: bool = True,
) -> xr.Dataset:
    """Cross-validated error against the number of features kept.

    Parameters
    ----------
    tree : xarray.DataTree
        A classification from an evidence method of `bayes_sparse.fit`. Its model, method, hyper, smoothness and basis
        are fitted anew in every fold; other settings of the method are its defaults, and a tree does not tell of
        weights, offset and keep.
    X, y : array, DataFrame ...
        Rows with the columns of the fit, by class where the fit's were, and their labels.
    counts : sequence of int, optional
        Numbers of features to try; None for 1, 2, 5, 10, 20, 40 ... up to all.
    folds : int
        Parts the rows are split into, balanced in the classes.
    rivals : sequence of str
        Rankings to compare with: ``"mutual_information"``, ``"l1_svm"``; both need scikit-learn.
    random_seed : int
        Of the split and of the rivals.
    progressbar : bool
        Show progress.

    Returns
    -------
    xarray.Dataset
        ``error`` and ``log_loss`` of the plain classifier (ranking, count, fold); ``order``, the names of the features
        as each ranking has them (ranking, fold, rank); ``difference`` (rival, count), the mean over folds of the error
        with the fit's ranking less that with the rival's, negative where the fit's is better, and ``difference_se``,
        its standard error; ``kept``, ``own_error``, ``own_log_loss`` and ``status`` (fold), how many features the fit
        itself keeps, how it predicts the rows held out, integrated over its weights, and how it ended; ``held_out``
        (row), the fold that scores each row. The attribute ``not_converged`` counts the folds whose fit did not.

    Notes
    -----
    Columns that are constant in the training rows of a fold are last there, in every ranking. With features of each
    class's own, each is a column by itself, named "column[class]". Folds share most of their training rows, so the
    standard errors are rough.
    """
    recipe = recipe_of(tree)
    columns = columns_of(tree, recipe, X)
    codes, classes = codes_of(tree, y, len(columns.matrix))
    folds = count("folds", folds, 2)
    held_out = _split(codes, classes, folds, random_seed)
    tried = _counts(counts, len(columns.names))
    rankings = [_OWN, *_rivals(rivals)]
    with FitProgress("Selection path", progressbar) as progress:

        def scored(k: int) -> xr.Dataset:
            fold = _Fold(recipe, columns, codes, classes, held_out == k, random_seed)
            return fold.path(rankings, tried, lambda text: progress.say(f"Fold {k + 1} of {folds}: {text}"))

        whole = xr.concat([scored(k) for k in range(folds)], "fold", data_vars="all")
    whole = whole.transpose("ranking", "count", "fold", "rank", ...)
    whole = whole.assign({"held_out": ("row", held_out), **_differences(whole["error"])}).assign_coords(
        fold=np.arange(folds), rank=np.arange(1, len(columns.names) + 1)
    )
    status = whole["status"].to_numpy()
    return whole.assign_attrs(
        **recipe.attributes,
        folds=folds,
        random_seed=random_seed,
        features=len(columns.names),
        not_converged=int(np.sum(status == Status.MAX_ITERATIONS)),
    )


def _split(codes: NDArray[np.intp], classes: NDArray[Any], folds: int, random_seed: int) -> NDArray[np.intp]:
    """Fold of each row: the rows of a class are dealt out in turn."""
    members = np.bincount(codes)
    if members.min() < folds:
        raise ValueError(
            f"The class {str(classes[members.argmin()])!r} has {members.min()} rows, too few for {folds} folds; give "
            "fewer `folds`."
        )
    return balanced_folds(codes, folds, random_seed)


def _counts(counts: Sequence[int] | None, K: int) -> list[int]:
    """Numbers of features to try, in order."""
    if counts is None:
        ladder = [*_LADDER, *(_LADDER[-1] * 2**i for i in range(1, 40))]
        return [*(m for m in ladder if 1.2 * m < K), K]  # the last two not too near
    tried = sorted({count("counts", m, 1) for m in counts})
    if not tried or tried[-1] > K:
        what = f"there are {K}, and the largest is {tried[-1]}" if tried else "there are none"
        raise ValueError(f"`counts` are numbers of features: {what}; give some between 1 and {K}.")
    return tried


def _rivals(rivals: Sequence[str]) -> list[str]:
    chosen = [rivals] if isinstance(rivals, str) else list(dict.fromkeys(rivals))
    unknown = [name for name in chosen if name not in RIVALS]
    if unknown:
        raise ValueError(f"There is no rival {unknown[0]!r}; there are {', '.join(map(repr, RIVALS))}.")
    if chosen:
        sklearn("svm")  # said before anything is fitted
    return chosen


@dataclass(frozen=True, eq=False)
class _Fold:
    """One split of the rows; nothing but scores ever sees the rows held out."""

    recipe: Recipe
    columns: FeatureColumns
    codes: NDArray[np.intp]
    classes: NDArray[Any]
    out: NDArray[np.bool_]
    random_seed: int

    def path(self, rankings: list[str], counts: list[int], say: Callable[[str], None]) -> xr.Dataset:
        """Orders and scores of all rankings."""
        say("fitting")
        own, variables = self._own()
        orders = {_OWN: own}
        for name in rankings[1:]:
            say(f"ranking by {IN_WORDS[name]}")
            orders[name] = self._by(name)
        scores: dict[frozenset[int], tuple[float, float]] = {}
        found = np.empty((len(rankings), len(counts), 2))
        for i, name in enumerate(rankings):
            for j, m in enumerate(counts):
                say(f"{m} features by {name}")
                first = frozenset(orders[name][:m].tolist())
                if first not in scores:  # different orders of the same features
                    scores[first] = self._plain(np.array(sorted(first)))
                found[i, j] = scores[first]
        named = np.stack([self.columns.names[orders[name]] for name in rankings])
        variables |= {
            "error": (("ranking", "count"), found[..., 0]),
            "log_loss": (("ranking", "count"), found[..., 1]),
            "order": (("ranking", "rank"), named),
        }
        return xr.Dataset(variables, coords={"ranking": rankings, "count": counts})

    def _own(self) -> tuple[IntArray, dict[str, Any]]:
        """The fit's order of all columns, and how it predicts."""
        inside = self._telling() if self.recipe.basis.bias else np.arange(len(self.columns.names))
        labels = self.classes[self.codes]
        with quiet():
            arguments = {**self.recipe.arguments, "draws": 0, "progressbar": False}
            tree = fit(data=(self.columns.table(~self.out, inside), labels[~self.out]), **arguments)
            predicted = predict(tree, self.columns.table(self.out, inside), random_seed=self.random_seed)
        table, names = self._ranked(tree)
        position = {name: j for j, name in enumerate(self.columns.names.tolist())}
        order = self._completed(np.array([position[name] for name in names]))
        probability = np.maximum(predicted["probability"].to_numpy(), np.finfo(float).tiny)
        error, loss = self._scores(np.log(probability))
        return order, {
            "kept": int(table["kept"].sum()),
            "own_error": error,
            "own_log_loss": loss,
            "status": str(tree["evidence"].attrs["status"]),
        }

    def _ranked(self, tree: xr.DataTree) -> tuple[pd.DataFrame, list[str]]:
        if self.recipe.by_class:
            table = relevance(tree, order="forward")
            return table, [f"{column}[{label}]" for column, label in table.index]
        table = relevance(tree, by="feature", order="forward")
        return table, [str(name) for name in table.index]

    def _by(self, rival: str) -> IntArray:
        telling = self._telling()
        X = self.columns.matrix[np.ix_(~self.out, telling)]
        return self._completed(telling[RIVALS[rival](X, self.codes[~self.out], self.random_seed)])

    def _telling(self) -> IntArray:
        """Columns that are not constant in the training rows."""
        return np.flatnonzero(column_moments(self.columns.matrix[~self.out])[1] > 0)

    def _completed(self, order: IntArray) -> IntArray:
        """The same with the columns that were left out at its end."""
        rest = np.setdiff1d(np.arange(len(self.columns.names)), order)
        return np.append(order, rest).astype(np.intp)

    def _plain(self, chosen: IntArray) -> tuple[float, float]:
        X = self.columns.matrix[:, chosen]
        machine = plain_classifier(X[~self.out], self.codes[~self.out], len(self.classes))
        return self._scores(machine.log_probability(X[self.out]))

    def _scores(self, log_p: FloatArray) -> tuple[float, float]:
        """Error rate and mean log loss of the rows held out."""
        truth = self.codes[self.out]
        return float(np.mean(log_p.argmax(axis=1) != truth)), -float(np.mean(log_p[np.arange(len(truth)), truth]))


def _differences(error: xr.DataArray) -> dict[str, xr.DataArray]:
    """Fold by fold the fit's ranking less each rival's: their mean, and its standard error."""
    gap = error.sel(ranking=_OWN, drop=True) - error.isel(ranking=slice(1, None)).rename(ranking="rival")
    gap = gap.transpose("rival", "count", "fold")
    return {"difference": gap.mean("fold"), "difference_se": gap.std("fold", ddof=1) / np.sqrt(gap.sizes["fold"])}
