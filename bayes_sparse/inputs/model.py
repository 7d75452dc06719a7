"""What a model must be, named or the user's own, and what people hand in beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

import pymc as pm

from bayes_sparse.common.checks import positive
from bayes_sparse.common.types import BoolArray, Hyper
from bayes_sparse.inputs.basis import Basis
from bayes_sparse.inputs.encoding import Missing
from bayes_sparse.inputs.likelihoods import Likelihood
from bayes_sparse.inputs.prepare import Prepared
from bayes_sparse.problem.labelled import LabelledProblem

__all__ = [
    "Centred",
    "Handed",
    "Model",
    "NamedModel",
    "Slab",
    "check_slab",
    "sampled_slab",
    "slab_precision",
]

type Centred = bool | BoolArray
type Slab = float | str | None


def check_slab(slab: Slab) -> None:
    """Refuse what is no width."""
    if slab is None or slab == "auto":
        return
    if isinstance(slab, str):
        raise ValueError(f"`slab` is a number > 0, None for no slab, or 'auto', got {slab!r}.")
    positive("slab", slab)


def slab_precision(slab: float | None, unit: float) -> float:
    """The least precision ``1/c^2`` that a slab of width c leaves a weight, in the targets' own units."""
    return 0.0 if slab is None else (slab * unit) ** -2.0


def sampled_slab(model: Model, *, kernel: bool) -> float | None:
    """The slab of a declaration, which NUTS samples; twice as wide for kernels, where a narrow one costs more."""
    if model.slab != "auto":
        return None if model.slab is None else float(model.slab)
    return None if model.proper_slab is None else (2.0 if kernel else 1.0) * model.proper_slab


@dataclass(frozen=True, eq=False)
class Handed:
    """What the user handed in beside model and method; see `bayes_sparse.fit`."""

    data: Any = None
    target: str | None = None
    likelihood: str | Likelihood = "auto"
    basis: str | Basis | Callable[..., Any] = "linear"
    keep: str | Sequence[str] | None = None
    weights: Any = None
    offset: Any = None
    missing: Missing = "refuse"
    formula: str | None = None


@runtime_checkable
class Model(Protocol):
    """What is said of every model before its data are looked at.

    Attributes
    ----------
    default_method : str
        What ``method="evidence"`` means.
    prior : str
        Of the weights, or of the directions: a file of `bayes_sparse.inference.priors`, or "jeffreys".
    coordinates : "weights" or "eigen"
        What the prior is on.
    expansion : str, int or array, optional
        Where one-step methods take the quadratic, unless the method says; None for what suits the likelihood.
    proper_hyper : (float, float), optional
        Hyper-prior of precisions that NUTS takes where none is given; None for a model without precisions.
    default_hyper : (float, float), optional
        The one that evidence methods take; None for the flat one.
    likelihood : str, optional
        The one it has; None for any.
    hyper : (float, float), optional
        The one that was asked for.
    slab : float, "auto" or None
        Width c of the slab, ``w_j ~ Normal(0, 1/(alpha_j + 1/c^2))``, that was asked for.
    default_slab, kernel_slab : float, optional
        What ``"auto"`` is for evidence methods, and for those on kernels; see `bayes_sparse.fitting.choices`.
    proper_slab : float, optional
        What it is for NUTS.
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]
    coordinates: ClassVar[str]
    proper_hyper: ClassVar[Hyper | None]
    default_hyper: ClassVar[Hyper | None]
    likelihood: ClassVar[str | None]
    default_slab: ClassVar[float | None]
    kernel_slab: ClassVar[float | None]
    proper_slab: ClassVar[float | None]

    @property
    def prior(self) -> str:
        """Of the weights, or of the directions."""

    @property
    def default_method(self) -> str:
        """What ``method="evidence"`` means."""

    @property
    def expansion(self) -> Any:
        """Where one-step methods take the quadratic."""

    @property
    def hyper(self) -> Hyper | None:
        """The hyper-prior asked for."""

    @property
    def slab(self) -> Slab:
        """The slab asked for."""


@runtime_checkable
class NamedModel(Model, Protocol):
    """A declaration for data that were prepared: one file in models/."""

    def problem(self, data: Prepared) -> LabelledProblem:
        """What the evidence methods fit."""

    def declare(self, data: Prepared, hyper: Any, *, centred: Centred = False) -> pm.Model:
        """The same model as PyMC sees it."""
