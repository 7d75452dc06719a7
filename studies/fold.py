"""One fold of the study, step by step: anchors, fits, rankings, and what the first features of each ranking are worth.

Nothing but scores sees the rows held out: anchors, fits and rankings are made from the others.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from bayes_sparse.common.progress import quiet
from bayes_sparse.fitting.fit import fit
from bayes_sparse.refits.rankings import RIVALS, plain_classifier
from bayes_sparse.results.predict.predict import predict
from bayes_sparse.results.relevance import relevance
from studies.columns import Columns, pixel_columns, pooled, shape_columns
from studies.contours import FloatArray
from studies.features import ShapeFeatures, shape_features
from studies.plan import Plan
from studies.results import Record

__all__ = ["FITS", "OWN", "RANKINGS", "Fold", "Step", "first_names"]

type Step = Callable[[dict[str, Record]], Record]  # given what earlier steps found

FITS: dict[str, dict[str, Any]] = {
    "student_t": {"hyper": (1.0, 0.1)},
    "cauchy": {"hyper": (0.5, 0.005)},
    "flat": {"hyper": (0.0, 0.0)},
    "one_vs_rest": {"hyper": (1.0, 0.1), "method": "one_vs_rest"},
    "one_vs_rest_flat": {"hyper": (0.0, 0.0), "method": "one_vs_rest"},
}
# Rankings by a fit: which one, and in which order of `relevance`.
OWN: dict[str, tuple[str, str]] = {
    "student_t": ("student_t", "forward"),
    "student_t_strength": ("student_t", "strength"),
    "cauchy": ("cauchy", "forward"),
    "cauchy_strength": ("cauchy", "strength"),
    "flat_strength": ("flat", "strength"),
}
RANKINGS = (*OWN, *RIVALS)
_TWO, _MORE = ("cauchy_strength", "l1_svm"), ("l1_svm",)  # that compare shapes with pixels, by the number of classes


@dataclass(frozen=True, eq=False)
class Fold:
    """Digits, of which some are held out.

    Parameters
    ----------
    plan : Plan
        Of the whole study.
    images, labels : array (n, rows, columns), int array (n,)
        All digits.
    out : bool array (n,)
        Those held out.
    workers : int
        Processes that compute features.
    cache : path, optional
        Where features are kept (`shape_features`).
    """

    plan: Plan
    images: FloatArray
    labels: NDArray[np.intp]
    out: NDArray[np.bool_]
    workers: int = 1
    cache: Path | None = None

    def steps(self) -> dict[str, Step]:
        """All there is to do, by name, in order; a step reads features only when it is made."""
        steps: dict[str, Step] = {"anchors": lambda _: self._anchors()}
        for name in FITS:
            steps[f"fit-{name}"] = partial(self._fitted, "shapes", name)
        for name in RIVALS:
            steps[f"fit-{name}"] = partial(self._ranked, "shapes", name)
        for name in RANKINGS:
            steps[f"curve-shapes-{name}"] = partial(self._curve, "shapes", f"fit-{_origin(name)[0]}", name)
        for source in ("pixels", "pooled") if self.plan.pixels else ():
            # Beyond two classes a fit to both has thousands of weights, one a class and pixel: minutes each.
            for name in _TWO if len(self._classes) == 2 else _MORE:
                rank = self._fitted if name in OWN else self._ranked
                steps[f"{source}-{name}"] = partial(rank, source, _origin(name)[0])
                steps[f"curve-{source}-{name}"] = partial(self._curve, source, f"{source}-{name}", name)
        return steps

    @cached_property
    def features(self) -> ShapeFeatures:
        """Shape features of all digits."""
        plan = self.plan
        return shape_features(
            self.images,
            self.labels,
            ~self.out,
            settings=plan.settings,
            candidates=plan.candidates,
            others=plan.others,
            workers=self.workers,
            directory=self.cache,
            progressbar=False,
        )

    @cached_property
    def shapes(self) -> Columns:
        """Shape features as columns."""
        return shape_columns(self.features.values, self._classes)

    @cached_property
    def pixels(self) -> Columns:
        """Pixels as columns."""
        return pixel_columns(self.images, ~self.out)

    @cached_property
    def pooled(self) -> Columns:
        """Shape features and pixels."""
        return pooled(self.shapes, self.pixels)

    @property
    def _classes(self) -> list[Any]:
        return sorted(self.plan.classes)

    @property
    def _codes(self) -> NDArray[np.intp]:
        return np.searchsorted(self._classes, self.labels)

    def _anchors(self) -> Record:
        anchors = self.features.anchors
        found = [
            {"label": a.label, "row": a.row, "image": a.image.tolist(), "points": a.points.tolist()} for a in anchors
        ]
        return {"anchors": found}

    def _fitted(self, source: str, name: str, _: dict[str, Record]) -> Record:
        """Fit to the training rows; how it predicts the others, and its order of the columns."""
        columns: Columns = getattr(self, source)
        started = time.perf_counter()
        with quiet():
            data = (columns.tables(~self.out, self._classes), self.labels[~self.out])
            tree = fit("student_multinomial", data, draws=0, progressbar=False, **FITS[name])
            seconds = time.perf_counter() - started
            predicted = predict(tree, columns.tables(self.out, self._classes), random_seed=self.plan.random_seed)
        evidence = tree["evidence"].to_dataset()
        probability = np.maximum(predicted["probability"].to_numpy(), np.finfo(float).tiny)
        size = np.abs(evidence["mean"].to_numpy()) * tree["constant_data"]["basis_scale"].to_numpy()
        weights = pd.Series(size).groupby(evidence["of_column"].to_numpy()).sum()
        return {
            **self._scores(np.log(probability)),
            "kept": int(evidence["kept"].sum()),
            "offered": int(evidence.sizes["basis"]),
            "status": str(evidence.attrs["status"]),
            "iterations": int(evidence.attrs["n_iterations"]),
            "seconds": seconds,
            **{order: self._order(tree, order) for order in ("forward", "strength")},
            "weights": {str(column): float(weight) for column, weight in weights[weights > 0].items()},
        }

    def _order(self, tree: xr.DataTree, order: Any) -> list[str]:
        return [str(column) for column in relevance(tree, by="feature", order=order).index[: self._most]]

    def _ranked(self, source: str, name: str, _: dict[str, Record]) -> Record:
        """The order of another ranking."""
        columns: Columns = getattr(self, source)
        order = RIVALS[name](columns.matrix[~self.out], self._codes[~self.out], self.plan.random_seed)
        return {"order": [columns.names[j] for j in order[: self._most].tolist()], "offered": len(columns.names)}

    def _curve(self, source: str, ranked: str, ranking: str, done: dict[str, Record]) -> Record:
        """Scores of the plain classifier on the first columns of a ranking, and its weights, over all classes."""
        columns: Columns = getattr(self, source)
        names, found, weights = first_names(done[ranked], ranking), [], []
        for m in self.plan.counts:
            first = names[:m]
            X = columns.matrix[:, [columns.names.index(name) for name in first]]
            machine = plain_classifier(X[~self.out], self._codes[~self.out], len(self._classes))
            found.append(self._scores(machine.log_probability(X[self.out])))
            sizes = np.sqrt(np.sum(machine.W**2, axis=1))
            weights.append({name: float(size) for name, size in zip(first, sizes, strict=True)})
        return {**{key: [score[key] for score in found] for key in ("error", "log_loss")}, "weights": weights}

    @property
    def _most(self) -> int:
        return max(self.plan.counts)

    def _scores(self, log_p: FloatArray) -> dict[str, float]:
        """Error rate and mean log loss of the rows held out."""
        truth = self._codes[self.out]
        own = log_p[np.arange(len(truth)), truth]
        return {"error": float(np.mean(log_p.argmax(axis=1) != truth)), "log_loss": -float(np.mean(own))}


def first_names(ranked: Record, ranking: str) -> list[str]:
    """The first features of a ranking, best first, from the step that made it."""
    names: list[str] = ranked[_origin(ranking)[1]]
    return names


def _origin(ranking: str) -> tuple[str, str]:
    """The fit or rival behind a ranking, and which of its orders it is."""
    return OWN.get(ranking, (ranking, "order"))
