"""MacKay's fixed point: ``alpha_i = gamma_i / w_i^2``, all precisions at once.

With the Gamma(a, b) prior and the smoothness prior, ``alpha_i = (gamma_i + 2a + 2c alpha_i T_ii) / (w_i^2 + 2b)`` with
``T = Sigma H Sigma``; noise ``sigma^2 = ||t - Phi w||^2 / (n - sum gamma - 2c sum alpha_i T_ii)``. A slab is a floor
under the precisions (`Objective.fixed_point`). Columns that share a precision have the sums over their group above and
below the line. The papers' update is not monotone; here a step that would lower the
objective is shortened until it does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bayes_sparse.common.checks import check_search
from bayes_sparse.common.types import FloatArray, Hyper, Report
from bayes_sparse.inference.evidence.fixed_point import iterate, noise_scale
from bayes_sparse.inference.evidence.state import Approximation, Outcome, State
from bayes_sparse.problem.classes import AnyProblem, Link

__all__ = ["MacKay"]


@dataclass(frozen=True)
class MacKay:
    """Type-II maximum likelihood by MacKay's fixed point.

    Attributes
    ----------
    max_iterations : int
        Rounds over all precisions.
    tolerance : float
        Stop when a round gains less than this, in nats.
    smoothness : "auto" or float
        Price of a degree of freedom in nats. ``"auto"`` grows with the number of basis functions so that chance finds
        do not; 0 is the pure method.
    reestimate : bool
        Give the terms selected at a price their precisions once more without it, where that helps: without it they are
        shrunk less, and their intervals cover the truth more often.
    approximation : str
        How the likelihood is made Gaussian: a name from `bayes_sparse.inference.approximations`, or ``"auto"`` for the
        exact posterior where there is one.
    """

    max_iterations: int = 1000
    tolerance: float = 1e-6
    smoothness: str | float = "auto"
    reestimate: bool = True
    approximation: str = "auto"

    needs_flat_hyper: ClassVar[bool] = False
    own_hyper: ClassVar[Hyper | None] = None
    priors: ClassVar[tuple[str, ...]] = ("gaussian",)
    family: ClassVar[str] = "evidence"
    link: ClassVar[Link] = "softmax"

    def __post_init__(self) -> None:
        check_search(self.max_iterations, self.tolerance)

    def __call__(self, problem: AnyProblem, approximation: Approximation, report: Report) -> Outcome:
        """Run the search; ``report(iteration, objective, active)`` is told of every round."""
        o = approximation.objective

        def update(state: State) -> tuple[FloatArray, FloatArray]:
            determined = state.gamma + 2 * o.smoothness * state.freed if o.smoothness else state.gamma
            alpha = o.fixed_point(state.alpha, state.summed(determined), state.summed(state.mean**2))
            return alpha, noise_scale(approximation, state, _variance)

        return iterate(self, problem, approximation, update, report, prune=True)


def _variance(count: float, rss: float, df: float) -> float:
    return rss / max(count - df, 1e-3 * count)
