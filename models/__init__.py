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
from bayes_sparse.models.jeffreys_laplace import JeffreysLaplace
from bayes_sparse.models.laplace_eigen import LaplaceEigen
from bayes_sparse.models.student_multinomial import StudentMultinomial

__all__ = ["ARDGaussian", "Declared", "GaussianEigen", "JeffreysLaplace", "LaplaceEigen", "StudentMultinomial"]


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
    prior : "gaussian", "laplace" or "jeffreys"
        The normal prior of the declaration; for one-step methods a Laplace prior on each direction instead; for methods
        on the L1 path Laplace priors of one common scale, which is integrated out.
    """

    model: pm.Model
    weights: str | tuple[str, ...] | None = None
    prior: Literal["gaussian", "laplace", "jeffreys"] = "gaussian"

    coordinates: ClassVar[str] = "weights"
    expansion: ClassVar[str] = "ridge"
    proper_hyper: ClassVar[tuple[float, float]] = ARDGaussian.proper_hyper

    def __post_init__(self) -> None:
        known = ("gaussian", "laplace", "jeffreys")
        if self.prior not in known:
            raise ValueError(f"There is no prior {self.prior!r} for a model of your own; there are {', '.join(known)}.")

    @property
    def default_method(self) -> str:
        """What fits the prior."""
        return "reweighted" if self.prior == "jeffreys" else "sequential"
