"""ARD Gaussian: a normal prior with its own precision on every weight; the relevance vector machine.

The declaration, for features (or kernels) Phi and any likelihood with a linear predictor::

    alpha ~ Gamma(a, b)                    one a basis function
    w     ~ Normal(0, 1 / sqrt(alpha + 1/c^2))   c the slab's width, or infinite
    bias  ~ Normal(0, s0)                  wide, never pruned
    eta   = offset + bias + Phi w
    y     ~ likelihood(eta, nuisance)

The evidence methods integrate w out and maximise over alpha (type-II maximum likelihood; a = b = 0 is the papers'
choice). NUTS samples the same declaration with a proper Gamma prior. Several classes are `student_multinomial`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pymc as pm

from bayes_sparse.common.types import Hyper
from bayes_sparse.inputs.declaration import coords_of, gamma_weights, observe, predictor
from bayes_sparse.inputs.model import Centred, Slab, check_slab, sampled_slab
from bayes_sparse.inputs.named_model import bias_sd, grouped_by_column, named_problem
from bayes_sparse.inputs.prepare import Prepared
from bayes_sparse.problem.labelled import LabelledProblem

__all__ = ["ARDGaussian"]


@dataclass(frozen=True)
class ARDGaussian:
    """The ARD Gaussian model.

    Attributes
    ----------
    bias_sd : float, optional
        Sd of the bias's normal prior; None for ten times the size of the targets (of 1 for a link function).
    hyper : (float, float), optional
        Shape and rate of the Gamma prior on precisions, stated for standardised columns and targets divided by their
        spread, so that the units of neither matter; None for a flat one in evidence methods and a proper one, see
        `proper_hyper`, in NUTS.
    slab : float, "auto" or None
        Width c of the slab, ``w ~ Normal(0, 1/sqrt(alpha + 1/c^2))``, in units of standardised columns (times the
        targets' spread for a regression): no weight is believed to be much larger. None for none; ``"auto"`` for
        `proper_slab` under NUTS (twice that for kernels), whose posterior is then light-tailed. Evidence methods have
        `default_slab` for classes under the flat hyper-prior (`kernel_slab` with kernels), which separable classes
        need, and none elsewhere.
    grouped : bool
        One precision for all levels of a category (all columns of a formula's term), on standardised columns: they are
        kept or left out together. For evidence methods.
    """

    bias_sd: float | None = None
    hyper: Hyper | None = None
    slab: Slab = "auto"
    grouped: bool = False

    default_method: ClassVar[str] = "sequential"
    prior: ClassVar[str] = "gaussian"
    likelihood: ClassVar[str | None] = None
    default_hyper: ClassVar[Hyper | None] = None
    coordinates: ClassVar[str] = "weights"
    expansion: ClassVar[None] = None
    # Student-t weights of two degrees of freedom and scale 0.3 for standardised columns and targets.
    proper_hyper: ClassVar[Hyper | None] = (1.0, 0.1)
    default_slab: ClassVar[float | None] = 5.0
    kernel_slab: ClassVar[float | None] = 10.0
    proper_slab: ClassVar[float | None] = 2.5

    def __post_init__(self) -> None:
        check_slab(self.slab)

    def problem(self, data: Prepared) -> LabelledProblem:
        """What the evidence methods fit."""
        labelled = named_problem(data, "ard_gaussian", self.bias_sd)
        return grouped_by_column(labelled, data) if self.grouped else labelled

    def declare(self, data: Prepared, hyper: Hyper, *, centred: Centred = False) -> pm.Model:
        """The same model as PyMC sees it.

        Parameters
        ----------
        data : Prepared
            Data and basis.
        hyper : (float, float)
            Shape and rate of the Gamma prior, both positive.
        centred : bool or array
            ``w ~ Normal(0, 1/sqrt(alpha))`` directly; else ``w = z / sqrt(alpha)`` with standard normal z, which NUTS
            explores better unless the data determine w well. An array says it weight by weight.
        """
        if self.grouped:
            raise ValueError(
                "NUTS samples a precision for each weight: leave out `grouped`, or sample at those of an evidence fit, "
                "with condition='alpha'."
            )
        sd = bias_sd(data, self.bias_sd)
        with pm.Model(coords=coords_of(data)) as model:
            w = gamma_weights(data, hyper, sampled_slab(self, kernel=data.basis.kernel), sd, centred=centred)
            observe(data, predictor(data, w, sd))
        return model
