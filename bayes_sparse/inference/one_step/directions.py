"""A likelihood's directions: expanded, rotated, and what they say of the weights before any prior."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bayes_sparse.common.types import FloatArray, Report
from bayes_sparse.inference.one_step.alone import Alone, likelihood_alone
from bayes_sparse.inference.one_step.eigen import Eigen, eigen_coordinates
from bayes_sparse.inference.one_step.expansion import Quadratic, expand
from bayes_sparse.problem.surfaces import Softmax, Surface

__all__ = ["Directions", "find_directions"]


class Directions(NamedTuple):
    """A likelihood's directions: the surface they belong to, its quadratic and the way back to the user's weights.

    Attributes
    ----------
    surface : Surface
        In at most as many free weights as observations.
    rotation : array, optional
        Rows T with ``w = T' w_reduced`` where those weights are not the user's own.
    quadratic, eigen : Quadratic, Eigen
        Its stand-in, and that in eigen-coordinates.
    alone : Alone
        What the stand-in says of the user's weights without any prior.
    """

    surface: Surface
    rotation: FloatArray | None
    quadratic: Quadratic
    eigen: Eigen
    alone: Alone


def find_directions(
    surface: Surface, expansion: Any, ridge: float, report: Report, approximation: str = "laplace"
) -> Directions:
    """Expand a likelihood, with weights of the user's in ``expansion`` as the surface's own, and diagonalise it."""
    reduced, rotation = surface.reduced()
    if rotation is not None and isinstance(expansion, np.ndarray):
        expansion = rotation @ expansion
    quadratic = expand(reduced, expansion, ridge, report, approximation)
    fixed = reduced.fixed_precision(quadratic.theta)
    eigen = eigen_coordinates(quadratic, fixed)
    idle = 1 / surface.classes if isinstance(surface, Softmax) else 0.0
    return Directions(reduced, rotation, quadratic, eigen, likelihood_alone(quadratic, eigen, fixed, rotation, idle))
