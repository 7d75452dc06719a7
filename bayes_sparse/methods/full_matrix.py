"""The evidence maximised over every prior covariance: the honest limit of more freedom.

For the quadratic model with centre w0 and curvature H the best normal prior has covariance ``(1 - 1/s)+ w0 w0'`` with
``s = w0'H w0``: of rank one. The posterior mean is ``(1 - 1/s) w0``, so a classifier keeps the signs of maximum
likelihood, and nothing is selected: all the freedom goes into repeating the answer that maximum likelihood gave.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from bayes_sparse.common.types import Report
from bayes_sparse.inference.one_step.directions import find_directions
from bayes_sparse.inference.one_step.expansion import SMALL_RIDGE, check_expansion, check_ridge
from bayes_sparse.inference.one_step.finish import EigenOutcome, finish
from bayes_sparse.inference.priors import Prior
from bayes_sparse.problem.surfaces import Surface

__all__ = ["FullMatrix"]


@dataclass(frozen=True)
class FullMatrix:
    """R_0: the prior of greatest evidence among all normal ones.

    Attributes
    ----------
    expansion, ridge
        As for `REVM`.
    smoothness : "auto" or float
        Price of a degree of freedom in nats; ``"auto"`` is none.
    """

    expansion: Any = None
    ridge: float | None = None
    smoothness: str | float = "auto"

    priors: ClassVar[tuple[str, ...]] = ("gaussian",)
    family: ClassVar[str] = "one_step"
    prior: ClassVar[str | None] = None  # the model's own

    def __post_init__(self) -> None:
        if self.expansion is not None:
            check_expansion(self.expansion)
        if self.ridge is not None:
            check_ridge(self.ridge)

    def __call__(
        self, surface: Surface, prior: Prior, expansion: Any, smoothness: float, report: Report
    ) -> EigenOutcome:
        """The closed form, as the one direction from zero to the centre of the quadratic."""
        found = find_directions(surface, expansion, self.ridge or SMALL_RIDGE, report)
        eigen, length = found.eigen, float(np.linalg.norm(found.eigen.u))
        if length > 0:
            towards = eigen.u / length
            one = replace(
                eigen, h=np.array([eigen.h @ towards**2]), u=np.array([length]), Q=(towards @ eigen.Q)[None, :]
            )
            found = found._replace(eigen=one)
        return finish(*found, prior, smoothness=smoothness, octant=False, posterior="quadratic")
