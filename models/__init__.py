"""The models: one PyMC declaration a file; the file's name is the model's name.

A model of your own needs no file: pass the `pm.Model` itself to `bayes_sparse.fit`, or wrap it in `Declared` to say
which variable is the sparse one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import pymc as pm

from bayes_sparse.models.ard_gaussian import ARDGaussian
from bayes_sparse.models.gaussian_eigen import GaussianEigen
from bayes_sparse.models.laplace_eigen import LaplaceEigen

__all__ = ["ARDGaussian", "Declared", "GaussianEigen", "LaplaceEigen"]


@dataclass(frozen=True)
class Declared:
    """A `pm.Model` of your own with its sparse variable named.

    Attributes
    ----------
    model : pymc.Model
        Any model with a linear predictor; for one-step methods any whose likelihood can be differentiated twice.
    weights : str or tuple of str, optional
        Name of the Normal variable whose precisions are to be found, for one-step methods several. None: found in the
        graph.
    prior : "gaussian" or "laplace"
        On each direction, for one-step methods; the normal prior of the declaration, or a Laplace prior instead.
    """

    model: pm.Model
    weights: str | tuple[str, ...] | None = None
    prior: Literal["gaussian", "laplace"] = "gaussian"

    coordinates: ClassVar[str] = "weights"
    expansion: ClassVar[str] = "ridge"
    default_method: ClassVar[str] = "sequential"
    proper_hyper: ClassVar[tuple[float, float]] = ARDGaussian.proper_hyper

    def __post_init__(self) -> None:
        if self.prior not in ("gaussian", "laplace"):
            raise ValueError(f"There is no prior {self.prior!r} for a model of your own; there are gaussian, laplace.")
