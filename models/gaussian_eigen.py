"""Normal priors on the eigenvectors of the likelihood's Hessian: the ARD Gaussian in other coordinates.

As `laplace_eigen`, with ``u ~ Normal(0, 1 / sqrt(alpha + 1/c^2))`` and ``alpha ~ h Gamma(a, b)``. Its one-step
evidence fit is GREVM, the same as ``fit("ard_gaussian", ..., method="revm")``; declared by itself so that NUTS can
sample that model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import pymc as pm
import pytensor.tensor as pt

from bayes_sparse.common.types import Hyper
from bayes_sparse.inputs.declaration import scaled
from bayes_sparse.inputs.model import Centred, Slab, check_slab, sampled_slab, slab_precision
from bayes_sparse.inputs.named_model import named_problem
from bayes_sparse.inputs.prepare import Prepared
from bayes_sparse.models._eigen import declare_eigen, directions_of, first_of
from bayes_sparse.problem.labelled import LabelledProblem

__all__ = ["GaussianEigen"]


@dataclass(frozen=True)
class GaussianEigen:
    """The normal model on eigen-coordinates.

    Attributes
    ----------
    bias_sd, expansion, directions
        As for `LaplaceEigen`.
    hyper : (float, float), optional
        Shape and rate of the Gamma prior on precisions; None for a flat one in evidence methods and a proper one, see
        `proper_hyper`, in NUTS.
    slab : float, "auto" or None
        As for `ARDGaussian`, of each direction.
    """

    bias_sd: float | None = None
    expansion: Any = None
    directions: int | None = None
    hyper: Hyper | None = None
    slab: Slab = "auto"

    default_method: ClassVar[str] = "revm"
    prior: ClassVar[str] = "gaussian"
    likelihood: ClassVar[str | None] = None
    default_hyper: ClassVar[Hyper | None] = None
    coordinates: ClassVar[str] = "eigen"
    # A Cauchy prior of scale 1 in units of the likelihood's own sd along a direction: heavy tails, and proper.
    proper_hyper: ClassVar[Hyper | None] = (0.5, 0.5)
    default_slab: ClassVar[float | None] = None
    kernel_slab: ClassVar[float | None] = None
    proper_slab: ClassVar[float | None] = 2.5

    def __post_init__(self) -> None:
        check_slab(self.slab)

    def problem(self, data: Prepared) -> LabelledProblem:
        """What the evidence methods fit."""
        return named_problem(data, "gaussian_eigen", self.bias_sd)

    def declare(self, data: Prepared, hyper: Hyper, *, centred: Centred = False) -> pm.Model:
        """The same model as PyMC sees it; parameters as for `LaplaceEigen.declare`."""
        h, Q = directions_of(self.problem(data), self.expansion, self.directions)

        def draw() -> Any:
            alpha = pm.Gamma("alpha", hyper[0], hyper[1] / h, dims="direction")
            precision = alpha + slab_precision(sampled_slab(self, kernel=data.basis.kernel), data.unit)
            return scaled(pm.Normal, "u", 1.0 / pt.sqrt(precision), "direction", first_of(centred, len(h)))

        return declare_eigen(data, Q, self.bias_sd, draw)
