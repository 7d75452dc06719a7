"""Where NUTS of a whole declaration starts, and in what metric: what an evidence fit knows of the posterior.

Weights that the data determine get the fit's mean and covariance, the others stay at their prior. Each family of
methods fills this in.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from bayes_sparse.common.types import BoolArray, FloatArray, IntArray
from bayes_sparse.problem.gaussian import cholesky
from bayes_sparse.problem.labelled import LabelledProblem

__all__ = ["Place", "Start", "nuisance_values", "places_of", "start_at"]

type Place = tuple[str, int]


@dataclass(frozen=True, eq=False)
class Start:
    """A point and a metric.

    Attributes
    ----------
    values : dict
        Values of free variables, by name; others start where PyMC would start them.
    places : list of (str, int)
        Entries of variables that are correlated.
    factor : array (len(places), len(places))
        F with F F' their covariance.
    """

    values: dict[str, FloatArray]
    places: list[Place] = field(default_factory=list)
    factor: FloatArray = field(default_factory=lambda: np.empty((0, 0)))


def start_at(
    begin: dict[str, FloatArray],
    values: dict[str, FloatArray],
    places: list[Place | None],
    mean: FloatArray,
    factor: FloatArray,
    determined: BoolArray,
) -> Start:
    """Put the mean where it belongs, and keep the covariance of what is determined."""
    for place, value in zip(places, mean, strict=True):
        if place is not None:
            name, position = place
            values.setdefault(name, np.zeros(begin[name].shape)).reshape(-1)[position] = value
    chosen = [i for i, place in enumerate(places) if place is not None and determined[i]]
    chosen = chosen if len(chosen) > 1 else []  # one by itself is correlated with nothing: samplers find its scale
    covariance = factor[chosen] @ factor[chosen].T
    L = cholesky(covariance) if chosen else np.empty((0, 0))
    return Start(values, [place for i in chosen if (place := places[i]) is not None], L)


def places_of(labelled: LabelledProblem, index: IntArray, begin: dict[str, FloatArray]) -> list[Place | None]:
    """Variable and position behind each column; None where the declaration has no such variable."""
    places: list[Place | None] = []
    for column in index.tolist():
        block = next(b for b in (*labelled.sparse, *labelled.fixed) if b.columns.start <= column < b.columns.stop)
        name = block.name if block.name in begin or block in labelled.fixed else "z"
        inside = name in begin and column - block.columns.start < begin[name].size
        places.append((name, column - block.columns.start) if inside else None)
    return places


def nuisance_values(
    labelled: LabelledProblem, theta: FloatArray, begin: dict[str, FloatArray]
) -> dict[str, FloatArray]:
    """Nuisance parameters that the declaration has, by name."""
    return {name: np.asarray(value) for name, value in labelled.unpack(theta).items() if name in begin}
