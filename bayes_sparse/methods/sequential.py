"""Sequential type-II maximum likelihood: start from the empty model, add the basis function that gains most.

Tipping & Faul (2003) change one precision at a time. Here each round adds one basis function, then climbs in all
precisions and nuisance parameters of the active set together by Newton's method, deleting what no longer pays.
With the smoothness prior a basis function enters at ``alpha = s^2 / (q^2 - (1 + 2c) s)`` if that is positive.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bayes_sparse.approximations import Approximation, State
from bayes_sparse.ascent import Ascent
from bayes_sparse.design import FloatArray
from bayes_sparse.outcome import Outcome
from bayes_sparse.problem import Problem

__all__ = ["Sequential"]


@dataclass(frozen=True)
class Sequential:
    """Fast marginal likelihood maximisation.

    Attributes
    ----------
    max_iterations : int
        Rounds of adding a basis function.
    tolerance : float
        Stop when no basis function gains more than this, in nats.
    steps : int
        Newton steps over the active set between additions.
    """

    max_iterations: int = 2000
    tolerance: float = 1e-3
    steps: int = 3

    needs_flat_hyper = True  # with a proper Gamma prior no precision is ever infinite: nothing to add or delete

    def __call__(
        self,
        problem: Problem,
        approximation: Approximation,
        smoothness: float,
        report: Callable[[int, float, int], None],
    ) -> Outcome:
        """Run the search; ``report(iteration, objective, active)`` is told of every round."""
        ascent = Ascent(approximation, smoothness, problem.theta_bounds, 1e-8)
        start = np.flatnonzero(~problem.free)
        state = approximation.at(start, np.ones(len(start)), problem.theta)
        state, _ = ascent(state, 50)
        history = [state.objective]
        for iteration in range(1, self.max_iterations + 1):
            grown = self._add(approximation, problem, state, smoothness)
            if grown is None:
                state, settled = ascent(state, 200)
                grown = self._add(approximation, problem, state, smoothness)
                if grown is None:
                    history.append(state.objective)
                    return Outcome(state, history, settled)
            state, _ = ascent(grown, self.steps)
            history.append(state.objective)
            report(iteration, state.objective, len(state.index))
        return Outcome(ascent(state, 200)[0], history, converged=False)

    def _add(
        self, approximation: Approximation, problem: Problem, state: State, smoothness: float
    ) -> State | None:
        """The state with the most promising basis function added, or None if none gains."""
        if len(state.index) >= problem.design.n:
            return None
        S, Q = approximation.scores(state)
        gain, alpha = addition_gain(S, Q, smoothness)
        gain[~problem.free] = gain[state.index] = 0.0
        for candidate in np.argsort(-gain)[:10]:
            if gain[candidate] < self.tolerance:
                return None
            index = np.append(state.index, candidate)
            new = approximation.at(index, np.append(state.alpha, alpha[candidate]), state.theta, state)
            if new.objective > state.objective + 0.1 * self.tolerance:
                return new
        return None


def addition_gain(S: FloatArray, Q: FloatArray, smoothness: float) -> tuple[FloatArray, FloatArray]:
    """Gain in the objective from adding each column at its own best precision, and that precision."""
    with np.errstate(divide="ignore", invalid="ignore"):
        u = Q**2 / S - 2 * smoothness
        pays = (u > 1) & (S > 0)
        gain = np.where(pays, 0.5 * (u - 1 - np.log(u)), 0.0)
        alpha = np.where(pays, S / (u - 1), np.inf)
    return gain, alpha
