"""The quadratic of an approximation that matches sites, in the place of the likelihood's own at a point.

What one-step methods ask of a point (`Look`) they then get from the sites: their value, slope and curvature.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inference.approximations import approximate
from bayes_sparse.inference.approximations._sites import SiteApproximation
from bayes_sparse.inference.evidence.state import Objective, State
from bayes_sparse.inference.newton import Peak
from bayes_sparse.problem.surfaces import Linear, Surface

__all__ = ["check_approximation", "matched_peak"]


@dataclass(frozen=True, eq=False)
class _SiteLook:
    """What the sites of a state look like at its mean."""

    surface: Linear
    state: State

    @property
    def value(self) -> float:
        """Log of all sites together."""
        return self.state.log_likelihood

    @property
    def gradient(self) -> FloatArray:
        """Along every column."""
        assert self.state.terms is not None
        return self.surface.problem.design.transposed_times(self.state.terms[1])

    def curvature(self) -> FloatArray:
        """``Phi' B Phi`` with B the precisions of the sites."""
        assert self.state.terms is not None
        return self.surface.problem.design.gram(-self.state.terms[2])

    def steps(self) -> FloatArray:
        """The same: no site curves upwards."""
        return self.curvature()

    @property
    def separates(self) -> bool:
        """Every observation of a two-valued target on its own side of zero."""
        assert self.state.eta is not None
        return self.surface.scale_free and self.surface.problem.separates(self.state.eta)


def check_approximation(name: str) -> bool:
    """Whether sites are to be matched; refuse what is no approximation that one-step methods know."""
    if name in ("auto", "laplace"):
        return False
    if name == "exact":
        raise ValueError("approximation='exact' is what a one-step method of a normal likelihood is: leave it out.")
    return True


def matched_peak(
    surface: Surface, name: str, precision: FloatArray, theta: FloatArray, rounds: int | None = None
) -> Peak:
    """Mean and sites under a normal prior; after so many plain rounds, if they are counted."""
    if not isinstance(surface, Linear):
        raise ValueError(
            f"approximation={name!r} needs one linear predictor per observation; leave it out for several classes and "
            "for models without one."
        )
    approximation = approximate(surface.problem, Objective(), name)
    if not isinstance(approximation, SiteApproximation):
        raise ValueError(
            f"approximation={name!r} has no sites to make a quadratic of: use 'ep', 'kl' or 'variational'."
        )
    index = np.arange(surface.d + surface.q)
    if rounds is None:
        state = approximation.at(index, precision, theta)
    else:
        state = approximation.after(index, precision, theta, rounds)
    return Peak(state.mean, _SiteLook(surface, state), rounds or 1, converged=True)
