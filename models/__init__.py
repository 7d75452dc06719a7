"""The models: one PyMC declaration a file; the file's name is the model's name.

A model of your own needs no file: pass the `pm.Model` itself to `bayes_sparse.fit`, or wrap it in `Declared` to say
which variable is the sparse one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pymc as pm

from bayes_sparse.models.ard_gaussian import ARDGaussian

__all__ = ["ARDGaussian", "Declared"]


@dataclass(frozen=True)
class Declared:
    """A `pm.Model` of your own with its sparse variable named.

    Attributes
    ----------
    model : pymc.Model
        Any model with a linear predictor.
    weights : str, optional
        Name of the Normal variable whose precisions are to be found. None: found in the graph.
    """

    model: pm.Model
    weights: str | None = None

    default_method: ClassVar[str] = "sequential"
    proper_hyper: ClassVar[tuple[float, float]] = ARDGaussian.proper_hyper
