"""What a method must be: three kinds, by what they are given."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol, runtime_checkable

from bayes_sparse.common.types import Hyper, Report
from bayes_sparse.inference.evidence.state import Approximation, Outcome
from bayes_sparse.inference.l1.fixed_points import PathOutcome
from bayes_sparse.inference.l1.path import Path
from bayes_sparse.inference.one_step.finish import EigenOutcome
from bayes_sparse.inference.priors import Prior
from bayes_sparse.problem.classes import AnyProblem, Link
from bayes_sparse.problem.surfaces import Surface

__all__ = ["EvidenceMethod", "Method", "OneStepMethod", "PathMethod"]


@runtime_checkable
class Method(Protocol):
    """A way to find hyper-parameters: a frozen dataclass whose fields are its settings, and which is called.

    Attributes
    ----------
    family : str
        Name of the file in `bayes_sparse.fitting.families` that runs it.
    priors : tuple of str, optional
        The priors it knows; None for every prior of one coordinate.
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]
    family: ClassVar[str]
    priors: ClassVar[tuple[str, ...] | None]


@runtime_checkable
class EvidenceMethod(Method, Protocol):
    """Maximises the evidence over precisions; sees a problem and an approximation of its likelihood.

    Attributes
    ----------
    needs_flat_hyper : bool
        It adds and deletes columns, which a proper hyper-prior would make impossible.
    own_hyper : (float, float), optional
        The hyper-prior in force where none is given; None for the model's own. A method with one needs a proper one.
    link : "softmax" or "one_vs_rest"
        How it couples several classes.
    smoothness : "auto" or float
        Price of a degree of freedom in nats.
    reestimate : bool
        Whether terms selected at a price are re-estimated without it.
    approximation : str
        Name of a file in `bayes_sparse.inference.approximations`; ``"auto"`` for the exact one where it serves.
    """

    needs_flat_hyper: ClassVar[bool]
    own_hyper: ClassVar[Hyper | None]
    link: ClassVar[Link]

    @property
    def smoothness(self) -> str | float:
        """Price of a degree of freedom."""

    @property
    def reestimate(self) -> bool:
        """Whether terms are re-estimated without the price."""

    @property
    def approximation(self) -> str:
        """How the likelihood is made Gaussian."""

    def __call__(self, problem: AnyProblem, approximation: Approximation, report: Report) -> Outcome:
        """Run the search; ``report(iteration, objective, active)`` is told of every round."""


@runtime_checkable
class OneStepMethod(Method, Protocol):
    """Finds all hyper-parameters in one pass on eigen-coordinates; sees a surface and a prior of one coordinate."""

    @property
    def smoothness(self) -> str | float:
        """Price of a degree of freedom; ``"auto"`` is none."""

    @property
    def prior(self) -> str | None:
        """Of each direction; None for the model's own."""

    @property
    def expansion(self) -> Any:
        """Where the quadratic is taken; None for the model's own."""

    @property
    def ridge(self) -> float | None:
        """Size of a small ridge to take it at, if one was asked for."""

    def __call__(
        self, surface: Surface, prior: Prior, expansion: Any, smoothness: float, report: Report
    ) -> EigenOutcome:
        """Find the directions that matter and their hyper-parameters."""


@runtime_checkable
class PathMethod(Method, Protocol):
    """Chooses a point of an L1 path."""

    def __call__(self, path: Path, report: Report) -> PathOutcome:
        """Find lambda and the weights."""
