"""One against the rest: a logistic regression a class, each by itself, as rivals glue binary machines together.

Class c's weights explain ``y = c`` alone, with their own evidence; the fit is the product of these, and predicted
probabilities are divided by their sum. Here to be compared with the softmax, which couples the classes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.linalg import block_diag

from bayes_sparse.common.checks import check_search
from bayes_sparse.common.types import Hyper, Report
from bayes_sparse.inference.approximations import approximate
from bayes_sparse.inference.evidence.state import Approximation, Outcome, State
from bayes_sparse.methods.em import EM
from bayes_sparse.methods.mackay import MacKay
from bayes_sparse.methods.sequential import Sequential
from bayes_sparse.problem.classes import AnyProblem, ClassProblem, Link
from bayes_sparse.problem.gaussian import Primal, cholesky
from bayes_sparse.problem.problem import Problem

__all__ = ["OneVsRest"]

_EACH: dict[str, Any] = {"mackay": MacKay, "em": EM, "sequential": Sequential}


@dataclass(frozen=True)
class OneVsRest:
    """Type-II maximum likelihood of one logistic regression a class.

    Attributes
    ----------
    each : "mackay", "em" or "sequential"
        What fits each of them.
    max_iterations, tolerance : optional
        Of each search; None for the method's own.
    smoothness : "auto" or float
        Price of a degree of freedom in nats. ``"auto"`` grows with the number of basis functions so that chance finds
        do not; 0 is the pure method.
    approximation : str
        How the likelihood is made Gaussian: a name from `bayes_sparse.inference.approximations`, or ``"auto"`` for the
        exact posterior where there is one.
    """

    each: Literal["mackay", "em", "sequential"] = "mackay"
    max_iterations: int | None = None
    tolerance: float | None = None
    smoothness: str | float = "auto"
    approximation: str = "auto"

    needs_flat_hyper: ClassVar[bool] = False
    own_hyper: ClassVar[Hyper | None] = None
    priors: ClassVar[tuple[str, ...]] = ("gaussian",)
    family: ClassVar[str] = "evidence"
    link: ClassVar[Link] = "one_vs_rest"
    reestimate: ClassVar[bool] = False  # no likelihood of all classes to do it with

    def __post_init__(self) -> None:
        if self.each not in _EACH:
            raise ValueError(f"`each` is one of {', '.join(map(repr, _EACH))}, got {self.each!r}.")
        check_search(self.max_iterations, self.tolerance)

    def __call__(self, problem: AnyProblem, approximation: Approximation, report: Report) -> Outcome:
        """Fit the classes in turn; ``report`` is told of every round of each."""
        if not isinstance(problem, ClassProblem):
            raise ValueError(
                "method='one_vs_rest' is for several classes: use the model 'student_multinomial', or "
                "likelihood='categorical'."
            )
        if problem.grouping is not None:
            raise ValueError(
                "method='one_vs_rest' fits every class by itself, with a precision per weight: fit weights that share "
                "precisions by method='mackay', 'sequential' or 'em'."
            )
        limits = {"max_iterations": self.max_iterations, "tolerance": self.tolerance}
        search = replace(_EACH[self.each](), **{name: value for name, value in limits.items() if value is not None})
        outcomes = []
        for c in range(problem.design.classes):
            own = _against_the_rest(problem, c)
            outcomes.append(search(own, approximate(own, approximation.objective, self.approximation), report))
        return Outcome(
            _together(problem, [outcome.state for outcome in outcomes]),
            _one_after_another([outcome.history for outcome in outcomes]),
            all(outcome.converged for outcome in outcomes),
            sum(outcome.iterations for outcome in outcomes),
        )


def _against_the_rest(problem: ClassProblem, c: int) -> Problem:
    assert problem.logistic is not None
    design, y = problem.design.designs[c], (problem.y == c).astype(float)
    own = np.flatnonzero(problem.design.owner == c)
    free = problem.free[own]
    return Problem(
        design=design,
        y=y,
        free=free,
        fixed_precision=problem.precisions(own, np.zeros(len(own)), problem.theta)[~free],
        pointwise=problem.logistic(y),
        offset=np.zeros(design.n),
        weights=problem.weights,
    )


def _together(problem: ClassProblem, states: list[State]) -> State:
    """One posterior over all classes' weights, independent between classes."""
    design = problem.design
    index, factors = [], []
    for c, state in enumerate(states):
        own = design.designs[c].M
        beyond = design.M + (state.index - own) * design.classes + c
        index.append(np.where(state.index < own, state.index + design.starts[c], beyond))
        factors.append(_precision_factor(state))
    etas = [np.zeros(design.n) if state.eta is None else state.eta for state in states]
    joined = np.concatenate(index)
    alpha = np.concatenate([state.alpha for state in states])
    return State(
        index=joined,
        alpha=alpha,
        free=problem.free[joined],
        theta=problem.theta,
        mean=np.concatenate([state.mean for state in states]),
        posterior=Primal.of_factor(np.asfortranarray(block_diag(*factors)), alpha),
        log_likelihood=sum(state.log_likelihood for state in states),
        log_evidence=sum(state.log_evidence for state in states),
        objective=sum(state.objective for state in states),
        eta=np.stack(etas, axis=1),
    )


def _precision_factor(state: State) -> np.ndarray:
    """Lower factor of H + A."""
    if isinstance(state.posterior, Primal):
        return state.posterior.lower
    return cholesky(np.linalg.inv(state.posterior.solve(np.eye(len(state.index)))))


def _one_after_another(histories: list[list[float]]) -> list[float]:
    """The sum of all objectives while the classes are fitted in turn."""
    level, out = sum(history[0] for history in histories), []
    for history in histories:
        out += [level + value - history[0] for value in history]
        level = out[-1]
    return out
