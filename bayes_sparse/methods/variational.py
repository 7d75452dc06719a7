"""The variational relevance vector machine (Bishop & Tipping 2000): ``q(w) q(alpha) q(1/sigma^2)``.

Precisions and noise are not maximised over: they have Gamma priors, and Gamma factors of the posterior. The textbook
updates one factor after another, hundreds of times. But with ``q(alpha)`` and ``q(1/sigma^2)`` given by their means,
the bound over the best q(w) is the log evidence at those means, ``a log alpha - b alpha`` for each precision,
``c log beta - d beta`` and constants (`bayes_sparse.inference.evidence.factors`). So it is climbed as by the other
evidence methods: by MacKay's fixed point, then by guarded Newton steps. At the top the textbook's updates change
nothing: ``alpha_i = (a + 1/2) / (b + <w_i^2>/2)``, ``beta = (c + n/2) / (d + <||t - Phi w||^2>/2)``.

Every step is guarded, so the bound never falls. Nothing is pruned. A likelihood that is not normal is bounded from
below too: the logistic by Jaakkola & Jordan's quadratic.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from bayes_sparse.common.checks import check_search
from bayes_sparse.common.types import FloatArray, Hyper, Report
from bayes_sparse.inference.approximations._sites import SiteApproximation
from bayes_sparse.inference.evidence.ascent import Ascent
from bayes_sparse.inference.evidence.factors import Factors, constant_of
from bayes_sparse.inference.evidence.state import Approximation, Objective, Outcome, State
from bayes_sparse.methods.mackay import MacKay
from bayes_sparse.problem.classes import AnyProblem, Link

__all__ = ["Variational"]

_ROUGH = 1e-2  # nats that a round of the fixed point must gain; where Newton steps from afar end, rounding decides
_MANY = 3000  # columns from which Newton steps over all precisions cost more than many rounds of the fixed point


@dataclass(frozen=True)
class Variational:
    """The variational relevance vector machine.

    Attributes
    ----------
    max_iterations : int
        Steps over all precisions at once.
    tolerance : float
        Stop when a step promises less than this, in nats.
    noise_hyper : (float, float)
        Shape c and rate d of the Gamma prior on ``1/sigma^2`` of a normal likelihood, stated for targets divided by
        their spread. Where your own model declares another prior of sigma, that is in force and sigma is a point.
    """

    max_iterations: int = 500
    tolerance: float = 1e-6
    noise_hyper: Hyper = (1e-6, 1e-6)

    needs_flat_hyper: ClassVar[bool] = False
    own_hyper: ClassVar[Hyper | None] = (1e-6, 1e-6)
    smoothness: ClassVar[str | float] = 0.0
    reestimate: ClassVar[bool] = False
    approximation: ClassVar[str] = "variational"
    priors: ClassVar[tuple[str, ...]] = ("gaussian",)
    family: ClassVar[str] = "evidence"
    link: ClassVar[Link] = "softmax"

    def __post_init__(self) -> None:
        check_search(self.max_iterations, self.tolerance)
        pair = self.noise_hyper
        if np.shape(pair) != (2,) or not (np.isfinite(pair).all() and min(pair) > 0):
            raise ValueError(f"`noise_hyper` is the pair (c, d) of a Gamma prior on 1/sigma^2, both > 0, got {pair!r}.")

    def __call__(self, problem: AnyProblem, approximation: Approximation, report: Report) -> Outcome:
        """Run the search; ``report(iteration, objective, active)`` is told of every round."""
        _check(approximation.objective)
        noise = self._noise(problem)
        if noise is not None:
            objective = replace(approximation.objective, log_prior=_LogGamma(*noise))
            approximation = approximation.with_objective(objective)
        outcome = self._climbed(problem, approximation, report)
        state, objective = outcome.state, approximation.objective
        shape = np.where(state.free, objective.a + 0.5 * state.summed(np.ones(len(state.free))), np.nan)
        each = constant_of(shape, objective.a, objective.b) * state.portion
        constant, noise_shape = float(np.nansum(each)), np.nan
        if noise is not None:
            noise_shape = noise[0] + 0.5 * problem.count
            constant += float(constant_of(np.array(noise_shape), *noise))
        bound = state.objective + constant
        return replace(
            outcome,
            state=replace(state, objective=bound),
            history=[value + constant for value in outcome.history],
            factors=Factors(bound, shape, noise_shape),
        )

    def _noise(self, problem: AnyProblem) -> Hyper | None:
        """The prior of 1/sigma^2 in the targets' own units; None where it is known, or has another prior."""
        if not (problem.normal and problem.theta.size and problem.log_prior is None):
            return None
        return self.noise_hyper[0], self.noise_hyper[1] * problem.unit**2

    def _climbed(self, problem: AnyProblem, approximation: Approximation, report: Report) -> Outcome:
        if problem.design.width > _MANY:
            return MacKay(self.max_iterations, self.tolerance)(problem, approximation, report)
        begun = approximation
        if isinstance(approximation, SiteApproximation):  # the bound is wrong by the square of what sites miss
            begun, approximation = (approximation.roughly(0.1 * gain**0.5) for gain in (_ROUGH, self.tolerance))
        first = MacKay(self.max_iterations, max(self.tolerance, _ROUGH))(problem, begun, report)
        state = approximation.at(first.state.index, first.state.alpha, first.state.theta, first.state)
        history = [*first.history, state.objective]

        def told(state: State) -> None:
            history.append(state.objective)
            report(len(history), state.objective, len(state.index))

        ascent = Ascent(approximation, problem.theta_bounds, self.tolerance, prune=False, further=True)
        state, converged = ascent(state, self.max_iterations + 1 - len(history), told=told)
        return Outcome(state, history, converged, len(history) - 1)


@dataclass(frozen=True)
class _LogGamma:
    """What the bound has of a factor with this prior beside its constant, as a function of log sigma."""

    c: float
    d: float

    def __call__(self, theta: FloatArray) -> float:
        return -2 * self.c * float(theta[0]) - self.d * float(np.exp(-2 * theta[0]))


def _check(objective: Objective) -> None:
    """Refuse what has no Gamma factors."""
    if objective.floor:
        raise ValueError(
            "method='variational' has no slab, beside which the posterior of a precision would be no Gamma: leave out "
            "`slab`, or use method='mackay'."
        )
    if objective.inverse:
        raise ValueError(
            "method='variational' is for Gamma priors on precisions, which a Laplace prior on weights has not: use "
            "method='mackay' or 'em', or leave out hyper='declared'."
        )
