"""The relevance eigenvector machine: one-step evidence on eigen-coordinates (Kropotov & Vetrov 2007, 2008).

The likelihood is replaced by a quadratic, ``exp(L(w0) - (w - w0)'H(w - w0)/2)``, and rotated into the eigenvectors of
H, ``u = Q w``. There its evidence is a product of one-dimensional integrals,

    f_i(alpha_i) = integral of exp(-h_i (u - u0_i)^2 / 2) p(u | alpha_i) du,

each maximised by itself: for a normal prior ``alpha_i = h_i / (h_i u0_i^2 - 1)``, for a Laplace prior by a search in
one variable; both are infinite exactly when ``h_i u0_i^2 <= 1``. The last step maximises the true likelihood under the
prior found. Nothing here asks more of a likelihood than its value, gradient and Hessian.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from bayes_sparse.common.types import Report
from bayes_sparse.inference.one_step.directions import find_directions
from bayes_sparse.inference.one_step.expansion import SMALL_RIDGE, check_expansion, check_ridge
from bayes_sparse.inference.one_step.finish import EigenOutcome, finish
from bayes_sparse.inference.one_step.matched import check_approximation
from bayes_sparse.inference.priors import Prior
from bayes_sparse.problem.surfaces import Surface

__all__ = ["REVM"]


@dataclass(frozen=True)
class REVM:
    """One-step evidence; GREVM for a normal prior, LREVM for a Laplace prior.

    Attributes
    ----------
    expansion : str, int, array or dict, optional
        Where the quadratic is taken: ``"ridge"``, at the maximum under a small ridge; ``"evidence"``, under the ridge
        of greatest evidence; ``"zero"``; a number of Newton steps; weights of yours. None: as the model says, and if
        it does not, ``"evidence"`` for classes with linear predictors and ``"ridge"`` for anything else. The papers'
        results are those of ``"ridge"``.
    ridge : float, optional
        Size of the small ridge, in units of the mean squared column (and of the noise, where there is one); None for
        0.01. Given without ``expansion`` it means ``expansion="ridge"``.
    octant : bool
        Confine the last step of a Laplace prior to the octant of the expansion point, as the papers do.
    posterior : "mode" or "quadratic"
        Take the posterior with the likelihood looked at anew at the mode, or the exact one of the quadratic model.
    smoothness : "auto" or float
        Price of a degree of freedom in nats; ``"auto"`` is none.
    prior : str, optional
        Of each direction: a name from `bayes_sparse.inference.priors`; None for the model's own.
    approximation : str
        ``"auto"`` is the likelihood's own quadratic at the expansion point. ``"variational"`` (the papers' VGREVM and
        VLREVM), ``"kl"`` and ``"ep"`` take the quadratic, and the last step of a normal prior, from sites matched to
        the likelihood under the ridge of ``expansion``.
    steps : int, optional
        Another word for ``expansion=steps``: so many Newton steps, or rounds of matching, without a ridge.
        ``approximation="variational", steps=10`` is the papers' early stop.
    """

    expansion: Any = None
    ridge: float | None = None
    octant: bool = False
    posterior: Literal["mode", "quadratic"] = "mode"
    smoothness: str | float = "auto"
    prior: str | None = None
    approximation: str = "auto"
    steps: int | None = None

    priors: ClassVar[tuple[str, ...] | None] = None  # every prior of one coordinate
    family: ClassVar[str] = "one_step"

    def __post_init__(self) -> None:
        if self.steps is not None:
            if self.expansion is not None and self.expansion != self.steps:
                raise ValueError(
                    "`steps` says where the quadratic is taken, and so does `expansion`: give one of them."
                )
            object.__setattr__(self, "expansion", self.steps)
        if self.expansion is not None:
            check_expansion(self.expansion)
        if self.ridge is not None:
            check_ridge(self.ridge)
        if self.posterior not in ("mode", "quadratic"):
            raise ValueError(f"`posterior` is 'mode' or 'quadratic', got {self.posterior!r}.")

    def __call__(
        self, surface: Surface, prior: Prior, expansion: Any, smoothness: float, report: Report
    ) -> EigenOutcome:
        """Find the directions that matter and their hyper-parameters, in one pass."""
        if self.octant and not prior.octants:
            raise ValueError("octant=True is about the last step of a Laplace prior; a normal prior has no octant.")
        name = self.approximation if check_approximation(self.approximation) else "laplace"
        found = find_directions(surface, expansion, self.ridge or SMALL_RIDGE, report, name)
        return finish(
            *found,
            prior,
            smoothness=smoothness,
            octant=self.octant,
            posterior=self.posterior,
            approximation=name,
        )
