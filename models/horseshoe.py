"""The regularised horseshoe: most weights near zero, a few as large as a slab allows (Piironen & Vehtari 2017).

The declaration, for features (or kernels) Phi and any likelihood with a linear predictor::

    tau      ~ HalfCauchy(tau0)                  how large weights are altogether
    lambda   ~ HalfCauchy(1)                     one a basis function
    w        ~ Normal(0, 1 / sqrt(1/(tau lambda)^2 + 1/c^2))
    bias     ~ Normal(0, s0)                     wide, never pruned
    eta      = offset + bias + Phi w
    y        ~ likelihood(eta, nuisance)

so that ``alpha = 1/(tau lambda)^2`` is the precision beside the slab's, as in `ard_gaussian`. With m of M features
expected to matter, ``tau0 = m/(M - m) s/sqrt(n)``, where s is how much one observation tells of the predictor: the
spread of the targets of a regression, 2 for classes, one over the root of the mean for counts. At that tau about m
weights are free.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import pymc as pm

from bayes_sparse.common.checks import positive
from bayes_sparse.common.types import Hyper
from bayes_sparse.inputs.declaration import coords_of, normal_weights, observe, predictor
from bayes_sparse.inputs.model import Centred, Slab, check_slab, sampled_slab
from bayes_sparse.inputs.named_model import bias_sd, global_scale, named_problem
from bayes_sparse.inputs.prepare import Prepared
from bayes_sparse.problem.labelled import LabelledProblem

__all__ = ["Horseshoe"]


@dataclass(frozen=True)
class Horseshoe:
    """The regularised horseshoe.

    Attributes
    ----------
    relevant : float, optional
        How many basis functions are expected to matter, of each class where there are several; None for 5, or half of
        them where there are fewer than ten.
    slab : float, "auto" or None
        Width c of the slab in units of standardised columns (times the targets' spread for a regression): how large
        the weights that escape may be. ``"auto"`` for `proper_slab`, None for the horseshoe without a slab.
    bias_sd : float, optional
        Sd of the bias's normal prior; None for ten times the size of the targets (of 1 for a link function).
    """

    relevant: float | None = None
    slab: Slab = "auto"
    bias_sd: float | None = None

    default_method: ClassVar[str] = "global_local"
    prior: ClassVar[str] = "horseshoe"
    likelihood: ClassVar[str | None] = None
    hyper: ClassVar[Hyper | None] = None
    default_hyper: ClassVar[Hyper | None] = None
    proper_hyper: ClassVar[Hyper | None] = None
    coordinates: ClassVar[str] = "weights"
    expansion: ClassVar[None] = None
    default_slab: ClassVar[float | None] = 2.0
    kernel_slab: ClassVar[float | None] = 2.0
    proper_slab: ClassVar[float | None] = 2.0

    def __post_init__(self) -> None:
        if self.relevant is not None:
            positive("relevant", self.relevant)
        check_slab(self.slab)

    def problem(self, data: Prepared) -> LabelledProblem:
        """What the evidence methods fit."""
        return replace(named_problem(data, "horseshoe", self.bias_sd), tau0=global_scale(data, self.relevant))

    def declare(self, data: Prepared, hyper: None = None, *, centred: Centred = False) -> pm.Model:
        """The same model as PyMC sees it.

        Parameters
        ----------
        data : Prepared
            Data and basis.
        hyper : None
            This model has no Gamma prior; see `relevant`.
        centred : bool or array
            As for `ARDGaussian`.
        """
        sd = bias_sd(data, self.bias_sd)
        with pm.Model(coords=coords_of(data)) as model:
            tau = pm.HalfCauchy("tau", global_scale(data, self.relevant))
            local = pm.HalfCauchy("lambda", 1.0, dims="basis")
            alpha = pm.Deterministic("alpha", (tau * local) ** -2.0, dims="basis")
            w = normal_weights(data, alpha, sampled_slab(self, kernel=data.basis.kernel), sd, centred=centred)
            observe(data, predictor(data, w, sd))
        return model
