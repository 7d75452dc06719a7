"""Sequential type-II maximum likelihood: add the basis function that gains most, climb, delete, exchange.

Tipping & Faul (2003) change one precision at a time. Here each round adds one basis function, then climbs in all
precisions and nuisance parameters of the active set together by Newton's method, deleting what no longer pays; when
nothing is left to add, it exchanges active basis functions for better ones until no exchange gains either. With the
smoothness prior a basis function enters at ``alpha = s^2 / (q^2 - (1 + 2c) s)`` if that is positive. Basis functions
that share a precision enter and leave together.

The evidence has many optima, and where a search begins decides which one it ends in. One that begins at the empty
model, with all of the signal taken for noise, misses terms that only pay together. So it begins boldly: with a
smoothness prior at a fraction of its price, without one at a fraction of the noise. Very many rows, and very large
designs, are searched from where it ended on some of their rows or columns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from bayes_sparse.common.checks import check_search
from bayes_sparse.common.types import FloatArray, Hyper, Report
from bayes_sparse.inference.evidence.ascent import Ascent, delete_phantoms, without
from bayes_sparse.inference.evidence.exchanges import addition_gain, exchanges
from bayes_sparse.inference.evidence.groups import alone, put_gains, term_worth
from bayes_sparse.inference.evidence.some_columns import from_some_columns
from bayes_sparse.inference.evidence.some_rows import from_some_rows
from bayes_sparse.inference.evidence.state import Approximation, Outcome, Scores, State
from bayes_sparse.problem.active import columns_counted
from bayes_sparse.problem.classes import AnyProblem, Link
from bayes_sparse.problem.groups import Groups

__all__ = ["Sequential"]

type Away = Literal["far", "near", "close"]

_COARSE = 1e-1  # nats: between additions the active set need not be climbed any closer to its top
_FINE = 1e-4  # nats: close enough to ask whether anything is left to add
_LOOSE = 1e-2  # nats: the same without nuisance parameters, and in a search that is a start for another
_FINAL = 1e-7  # nats promised by the next step: where the last climb ends
_STEPS = 60  # of a climb to the top: a few are enough, but where an objective has no digits left
_EXCHANGE_GAIN = 1e-2  # nats: an exchange for less is not worth a look at every column
_EXCHANGE_STEPS = 5  # of the climb after which an exchange is judged
_HOPE = 0.5  # nats: a move predicted to lose more than this is not tried
_NEXT_HOPE = 0.03  # the same once a better move was tried and lost
_GROUP_HOPE = 5.0  # the same before the others have followed
_TRIES = 8  # candidates tried a round: the predicted gain leaves out what an addition does to the others
_BOLD_ADDITIONS = 20  # basis functions added at most while nuisance parameters are held
_ELSEWHERE = (-2.0, 2.0)  # how far from its start a nuisance parameter is held, on its unconstrained scale


@dataclass(frozen=True)
class Sequential:
    """Fast marginal likelihood maximisation.

    Attributes
    ----------
    max_iterations : int
        Rounds of adding or exchanging a basis function.
    tolerance : float
        Stop when no basis function gains more than this, in nats.
    steps : int
        Newton steps over the active set between additions.
    exchanges : int
        How many of the most promising exchanges of an active basis function for another (or for none) are tried before
        the search ends.
    lenient : float
        With a smoothness prior the search runs twice: first at this fraction of its price, from the empty model, then
        at the full price from there; 1 skips the first run.
    noise : tuple of float
        Without a smoothness prior the first basis functions of a normal likelihood are added with the noise held at
        this share of the targets' sd. Several shares are several starts, of which the best end is kept.
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

    max_iterations: int = 2000
    tolerance: float = 1e-3
    steps: int = 1
    exchanges: int = 6
    lenient: float = 0.7
    noise: tuple[float, ...] = (0.3,)
    smoothness: str | float = "auto"
    reestimate: bool = True
    approximation: str = "auto"

    needs_flat_hyper: ClassVar[bool] = True  # with a proper Gamma prior no precision is infinite: nothing to delete
    own_hyper: ClassVar[Hyper | None] = None
    priors: ClassVar[tuple[str, ...]] = ("gaussian",)
    family: ClassVar[str] = "evidence"
    link: ClassVar[Link] = "softmax"

    def __post_init__(self) -> None:
        check_search(self.max_iterations, self.tolerance)

    def __call__(self, problem: AnyProblem, approximation: Approximation, report: Report) -> Outcome:
        """Run the search; ``report(iteration, objective, active)`` is told of every round."""
        found = from_some_rows(self, problem, approximation, report)
        if found is None:
            found = from_some_columns(self, problem, approximation, report)
        if found is not None:
            # Nearly all is found: to climb to the top takes less time than one more look at every column.
            outcome = self.search(problem, approximation, found.state, report, "close")
            return replace(outcome, iterations=found.iterations + outcome.iterations)
        columns = np.flatnonzero(~problem.free)
        state = approximation.at(columns, np.ones(len(columns)), problem.theta)
        empty, _ = self._ascent(problem, approximation)(state, 50)
        outcome = self._begun_boldly(problem, approximation, empty, report)
        if outcome.state.free.any() or not problem.free.any() or problem.normal or not empty.theta.size:
            return outcome
        # Nothing pays with the nuisance parameters as they are best without any term, where an amplitude may hide every
        # signal: with these held elsewhere while the first terms come in, something may.
        starts = [self._held(problem, approximation, empty, theta, report) for theta in _elsewhere(problem)]
        others = [self.search(problem, approximation, start, report) for start in starts if start.free.any()]
        return max([outcome, *others], key=lambda o: o.state.objective)

    def _begun_boldly(self, problem: AnyProblem, approximation: Approximation, empty: State, report: Report) -> Outcome:
        if approximation.objective.smoothness and self.lenient < 1:
            outcome = self._from_lower_price(problem, approximation, empty, report)
        elif problem.normal and empty.theta.size and self.noise:
            small = [np.maximum(problem.theta + np.log(share), problem.theta_bounds[:, 0]) for share in self.noise]
            starts = [self._held(problem, approximation, empty, theta, report) for theta in small]
            outcomes = [self.search(problem, approximation, start, report) for start in starts]
            outcome = max(outcomes, key=lambda o: o.state.objective)
        else:
            return self.search(problem, approximation, empty, report)
        if outcome.state.objective < empty.objective:  # a bold start may end in a poorer optimum than none at all
            return self.search(problem, approximation, empty, report)
        return outcome

    def _from_lower_price(
        self, problem: AnyProblem, approximation: Approximation, empty: State, report: Report
    ) -> Outcome:
        objective = approximation.objective
        lenient = approximation.with_objective(replace(objective, smoothness=self.lenient * objective.smoothness))
        first = replace(self, exchanges=0)._reached(problem, lenient, empty, report)
        approximation = lenient.with_objective(objective)
        start = approximation.at(first.state.index, first.state.alpha, first.state.theta, first.state)
        outcome = self.search(problem, approximation, start, report, "near")
        return replace(outcome, iterations=first.iterations + outcome.iterations)

    def _held(
        self, problem: AnyProblem, approximation: Approximation, empty: State, theta: FloatArray, report: Report
    ) -> State:
        """A first few basis functions, added while the nuisance parameters are held."""
        ascent = Ascent(approximation, np.stack([theta, theta], axis=1), _FINAL)
        state = approximation.at(empty.index, empty.alpha, theta, empty)
        for addition in range(1, min(_BOLD_ADDITIONS, int(problem.count) // 4) + 1):
            grown = self._add(approximation, problem, state, approximation.scores(state))
            if grown is None:
                break
            state, _ = ascent(grown, 1, tolerance=_COARSE)
            report(addition, state.objective, len(state.index))
        return state

    def _ascent(self, problem: AnyProblem, approximation: Approximation) -> Ascent:
        return Ascent(approximation, problem.theta_bounds, _FINAL)

    def search(
        self, problem: AnyProblem, approximation: Approximation, state: State, report: Report, away: Away = "far"
    ) -> Outcome:
        """Add, climb, delete and exchange until nothing gains, then climb to the top.

        How far ``away`` the end is thought to be: a state that is near is climbed before anything is added, and one so
        close that little will be is climbed to the top before every look at the columns.
        """
        reached = self._reached(problem, approximation, state, report, away)
        if not reached.converged:
            return reached
        ascent = self._ascent(problem, approximation)
        state, _ = ascent(reached.state, _STEPS)
        kept = delete_phantoms(approximation, state, self.tolerance)
        if len(kept.index) < len(state.index):
            kept, _ = ascent(kept, _STEPS)
        return replace(reached, state=kept, history=[*reached.history, state.objective])

    def _reached(
        self, problem: AnyProblem, approximation: Approximation, state: State, report: Report, away: Away = "far"
    ) -> Outcome:
        """The same without the last climb."""
        ascent, history = self._ascent(problem, approximation), [state.objective]
        tolerance = _FINAL if away == "close" else _FINE if self.exchanges and state.theta.size else _LOOSE
        state, settled = ascent(state, self.steps) if away == "far" else ascent(state, _STEPS, tolerance=tolerance)
        for iteration in range(1, self.max_iterations + 1):
            scores = approximation.scores(state)
            grown = self._add(approximation, problem, state, scores)
            if grown is None and not settled:
                state, _ = ascent(state, _STEPS, tolerance=tolerance)
                settled = True
                continue
            if grown is None and self.exchanges:
                grown = self._exchange(problem, ascent, state, scores)
                if grown is None and problem.grouping is not None:
                    grown = self._exchange_groups(problem, problem.grouping, ascent, state)
            if grown is None:
                return Outcome(state, history, True, iteration)
            if away == "close":
                state, settled = ascent(grown, _STEPS)
            else:
                state, settled = ascent(grown, self.steps, tolerance=_COARSE)[0], False
            history.append(state.objective)
            report(iteration, state.objective, len(state.index))
        return Outcome(state, history, False, self.max_iterations)

    def _add(
        self, approximation: Approximation, problem: AnyProblem, state: State, scores: Scores, barred: int | None = None
    ) -> State | None:
        """The state with the most promising basis function, or group of them, added, but not the barred one's.

        None if none gains.
        """
        if columns_counted(state.free) >= problem.design.n:
            return None
        objective, grouping = approximation.objective, problem.grouping
        gain, alpha = addition_gain(scores.S, scores.Q, objective.smoothness, objective.floor)
        gain[~problem.free] = gain[state.index] = 0.0
        put_gains(approximation, problem, state, scores, gain, alpha)
        if barred is not None:
            gain[barred] = 0.0
        for _ in range(_TRIES):
            candidate = int(gain.argmax())
            if gain[candidate] < self.tolerance:
                return None
            columns = np.array([candidate]) if grouping is None else grouping.members(candidate)
            index = np.append(state.index, columns)
            precisions = np.append(state.alpha, np.full(len(columns), alpha[candidate]))
            new = approximation.at(index, precisions, state.theta, state)
            if new.objective > state.objective + 0.1 * self.tolerance:
                return new
            gain[candidate] = 0.0
        return None

    def _exchange(self, problem: AnyProblem, ascent: Ascent, state: State, scores: Scores) -> State | None:
        """The state with an active basis function dropped or exchanged for another, or None if neither gains.

        What is predicted to come near is climbed for real, the best first.
        """
        approximation, hope = ascent.approximation, _HOPE
        beat = state.objective + _EXCHANGE_GAIN
        known = exchanges(state, scores, approximation.objective, alone(problem), within=hope, enough=_EXCHANGE_GAIN)
        for exchange in known[: self.exchanges]:
            if exchange.loss > hope:
                break
            new, _ = ascent(exchange.made(approximation, state), _EXCHANGE_STEPS, _EXCHANGE_GAIN, beat)
            if new.objective > beat:
                return new
            hope = _NEXT_HOPE
        return None

    def _exchange_groups(self, problem: AnyProblem, groups: Groups, ascent: Ascent, state: State) -> State | None:
        """The same where a group comes or goes, made for real: the terms worth least are tried."""
        approximation = ascent.approximation
        worth = term_worth(state, approximation.objective.smoothness)
        terms = np.flatnonzero(state.free & (groups.first[state.index] == state.index))
        for position in terms[np.argsort(worth[terms], kind="stable")][: self.exchanges]:
            rest = approximation.at(*without(state, np.array([position])), state.theta, state)
            other = self._add(approximation, problem, rest, approximation.scores(rest), int(state.index[position]))
            for changed in (rest, other):
                if changed is None or changed.objective < state.objective - _GROUP_HOPE:
                    continue
                beat = state.objective + _EXCHANGE_GAIN
                new, _ = ascent(changed, _EXCHANGE_STEPS, _EXCHANGE_GAIN, beat)
                if new.objective > beat:
                    return new
        return None


def _elsewhere(problem: AnyProblem) -> list[FloatArray]:
    """Nuisance parameters to begin with: at their start, one of them at a time moved from there."""
    low, high = problem.theta_bounds.T
    moves = [np.zeros(len(low)), *(move * unit for unit in np.eye(len(low)) for move in _ELSEWHERE)]
    return [np.clip(problem.theta + move, low, high) for move in moves]
