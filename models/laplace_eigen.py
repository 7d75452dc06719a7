"""Laplace priors on the eigenvectors of the likelihood's Hessian: the relevance eigenvector machine's own model.

The declaration, for features (or kernels) Phi and any likelihood::

    alpha ~ sqrt(h) Gamma(a, b)            one a direction
    u     ~ Laplace(0, 2 / alpha)          p(u) = alpha/4 exp(-alpha |u| / 2)
    w     = Q' u
    bias  ~ Normal(0, s0)                  wide, never pruned
    eta   = offset + bias + Phi w
    y     ~ likelihood(eta, nuisance)

The rows of Q are the eigenvectors of minus the log-likelihood's Hessian where it was expanded, with the bias
integrated out, the most curved first; directions along which the data say nothing are left out. Q and the curvatures h
are computed from the data before anything is sampled: the prior knows the directions and how sharply the likelihood
sees each, not how much of it there is. The hyper-prior is in those units, so that one choice suits all directions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pymc as pm

from bayes_sparse.common.types import Hyper
from bayes_sparse.inputs.declaration import scaled
from bayes_sparse.inputs.model import Centred
from bayes_sparse.inputs.named_model import named_problem
from bayes_sparse.inputs.prepare import Prepared
from bayes_sparse.models._eigen import declare_eigen, directions_of, first_of
from bayes_sparse.problem.labelled import LabelledProblem

__all__ = ["LaplaceEigen"]


@dataclass(frozen=True)
class LaplaceEigen:
    """The Laplace model on eigen-coordinates.

    Attributes
    ----------
    bias_sd : float, optional
        Sd of the bias's normal prior; None for ten times the size of the targets (of 1 for a link function).
    expansion : str, int or array, optional
        Where the Hessian is taken: see `bayes_sparse.methods.REVM`.
    directions : int, optional
        Declare at most so many directions to NUTS, the most curved ones; None for all.
    hyper : (float, float), optional
        Shape and rate of the Gamma prior on precisions; None for a flat one in evidence methods and a proper one, see
        `proper_hyper`, in NUTS.
    """

    bias_sd: float | None = None
    expansion: Any = None
    directions: int | None = None
    hyper: Hyper | None = None

    default_method: ClassVar[str] = "revm"
    prior: ClassVar[str] = "laplace"
    likelihood: ClassVar[str | None] = None
    default_hyper: ClassVar[Hyper | None] = None
    coordinates: ClassVar[str] = "eigen"
    # In units of the likelihood's own sd along a direction half of the prior's mass is within 1: heavy-tailed, proper.
    proper_hyper: ClassVar[Hyper | None] = (1.0, 0.5)
    slab: ClassVar[None] = None
    default_slab: ClassVar[float | None] = None
    kernel_slab: ClassVar[float | None] = None
    proper_slab: ClassVar[float | None] = None

    def problem(self, data: Prepared) -> LabelledProblem:
        """What the evidence methods fit."""
        return named_problem(data, "laplace_eigen", self.bias_sd)

    def declare(self, data: Prepared, hyper: Hyper, *, centred: Centred = False) -> pm.Model:
        """The same model as PyMC sees it.

        Parameters
        ----------
        data : Prepared
            Data and basis.
        hyper : (float, float)
            Shape and rate of the Gamma prior, both positive.
        centred : bool or array
            ``u ~ Laplace(0, 2 / alpha)`` directly; else ``u = 2 z / alpha`` with z of scale 1, which NUTS explores
            better unless the data determine u well. An array says it direction by direction.
        """
        h, Q = directions_of(self.problem(data), self.expansion, self.directions)

        def draw() -> Any:
            alpha = pm.Gamma("alpha", hyper[0], hyper[1] / np.sqrt(h), dims="direction")
            return scaled(pm.Laplace, "u", 2.0 / alpha, "direction", first_of(centred, len(h)))

        return declare_eigen(data, Q, self.bias_sd, draw)
