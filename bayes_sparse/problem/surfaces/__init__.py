"""Surfaces: the log-likelihood as a function of weights, one kind a file."""

from __future__ import annotations

from bayes_sparse.problem.surfaces.softmax import Softmax
from bayes_sparse.problem.surfaces.surface import Linear, Look, Surface

__all__ = ["Linear", "Look", "Softmax", "Surface"]
