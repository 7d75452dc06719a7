"""Approximations that put a Gaussian in the place of each observation's likelihood, matched until nothing changes.

A site is ``exp(pull eta - precision eta^2 / 2)`` along the observation's predictor. Sites and prior together are a
Gaussian posterior; its mean and variance along each predictor say what the sites should be. What a site is matched by
is the approximation: see `kl`, `variational` and `ep`. Where the sites no longer change, the log evidence does not
change with them to first order, so its gradient in a hyper-parameter is the explicit one alone.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from bayes_sparse.common.types import FloatArray, IntArray
from bayes_sparse.inference.approximations._nodes import Nodes
from bayes_sparse.inference.approximations._pointwise import PointwiseApproximation, newton_step
from bayes_sparse.inference.approximations.laplace import LaplaceApproximation
from bayes_sparse.inference.evidence.state import Objective, Posterior, State, precision_slope
from bayes_sparse.inference.mixing import Mixing
from bayes_sparse.problem.active import Active
from bayes_sparse.problem.classes import AnyProblem
from bayes_sparse.problem.gaussian import Dual
from bayes_sparse.problem.problem import Problem

__all__ = ["Marginals", "Matched", "SiteApproximation"]

_ROUNDS = 200
_PATIENCE = 40  # rounds in which the change should halve: where it does not, more of them lead hardly nearer
_CHANGE = 1e-5  # of a predictor's mean in its sds, and of its variance: the log evidence is then exact to the square
_WORSE = 2.0  # times the smallest change so far: a round that far off is gone back on
_CONCAVE = np.linspace(-4.0, 4.0, 9)  # where a likelihood is looked at, in units of the predictor
_ROUNDING = 1e-8  # of its largest curvature


class Marginals(NamedTuple):
    """The posterior along each predictor, (n,) each; slope at its mean and precision of the sites.

    Where a weight stands for several rows, the site is that of all of them.
    """

    mean: FloatArray
    variance: FloatArray
    slope: FloatArray
    precision: FloatArray


class Matched(NamedTuple):
    """Each observation's part of the log evidence with the sites as they are, and what the sites should be."""

    value: FloatArray
    slope: FloatArray
    precision: FloatArray


class SiteApproximation(PointwiseApproximation):
    """For one predictor per observation and a log-concave likelihood.

    Parameters
    ----------
    problem : Problem
        What is fitted.
    objective : Objective
        What is maximised. How its price of a degree of freedom changes through the sites is left out of gradients.
    """

    def __init__(self, problem: AnyProblem, objective: Objective) -> None:
        if not isinstance(problem, Problem):
            raise ValueError(
                f"approximation={self.name!r} needs one predictor per observation; several classes or predictors take "
                "approximation='laplace'."
            )
        super().__init__(problem, objective)
        self._one, self._enough, self._nodes = problem, _CHANGE, Nodes()
        self._laplace = LaplaceApproximation(problem, objective)
        row = _first_convex(problem)
        if row is not None:
            raise ValueError(
                f"approximation={self.name!r} needs a log-concave likelihood, and that of row {row} curves upwards "
                "somewhere; take approximation='laplace', with a method such as 'mackay'."
            )

    def roughly(self, change: float) -> SiteApproximation:
        """The same with sites matched to so much alone, for a search that is far from its end."""
        other = copy(self)
        other._enough = change
        return other

    @abstractmethod
    def matched(self, marginals: Marginals, theta: FloatArray) -> Matched:
        """Match every site to its observation's likelihood, given the posterior along the predictors."""

    def accurate(self, marginals: Marginals, theta: FloatArray) -> bool:
        """Whether averages over the predictors are computed well enough here; they are better after it was denied."""
        sd = np.sqrt(marginals.variance)
        return self._nodes.enough(sd, lambda: float(self.matched(marginals, theta).value.sum()))

    @abstractmethod
    def averaged(self, marginals: Marginals, theta: FloatArray, at: FloatArray) -> float:
        """What the log evidence at ``theta`` sees of the likelihood if only its nuisance parameters move to ``at``."""

    def slope(self, state: State) -> FloatArray:
        """Gradient in (log alpha of free columns, theta): the explicit one alone."""
        slope = self._precision_slope(state)
        if not state.theta.size:
            return slope[state.free]
        return np.append(slope[state.free], self._theta_slope(state, self._by_theta(state), slope))

    def theta_step(self, state: State) -> FloatArray:
        """Newton's step in each nuisance parameter alone with the posterior held, as EM takes it: by averages alone."""
        parts = self._explicit(state, self._by_theta(state), self._precision_slope(state))
        steps = [newton_step(parts, state.theta, unit) for unit in np.eye(state.theta.size)]
        return np.clip(steps, -1.0, 1.0)

    def _precision_slope(self, state: State) -> FloatArray:
        o = self.objective
        return precision_slope(state, o.smoothness, o.a, o.b, o.floor, o.inverse)

    def _by_theta(self, state: State) -> Callable[[FloatArray], float]:
        """What the likelihood adds to the log evidence at a theta with the posterior held."""
        assert state.terms is not None
        assert state.eta is not None
        variance = _variances(self._active(state.index), state.posterior)
        marginals = Marginals(state.eta, variance, state.terms[1], -state.terms[2])
        return lambda at: self.averaged(marginals, state.theta, at)

    def after(self, index: IntArray, alpha: FloatArray, theta: FloatArray, rounds: int) -> State:
        """Where so many plain rounds lead that begin with no effect of anything, converged or not."""
        active, alpha = self._active(index), self.problem.precisions(index, alpha, theta)
        nothing, offset = np.zeros(self._one.design.n), np.asarray(self.problem.offset, dtype=float)
        marginals = Marginals(offset, nothing, nothing, nothing)
        for _ in range(rounds):
            new = self.matched(marginals, theta)
            w, posterior, marginals = self._posterior(active, alpha, _towards(marginals, new))
        value = self.matched(marginals, theta).value
        terms = value, marginals.slope, -marginals.precision, nothing
        return self._state(index, alpha, theta, w, posterior, marginals.mean, terms)

    def _at(self, index: IntArray, alpha: FloatArray, theta: FloatArray, near: State | None) -> State:
        active, start = self._active(index), near
        if start is None or start.terms is None:
            self._laplace.share(index, active)
            start = self._laplace.at(index, alpha, theta)
        assert start.terms is not None
        assert start.eta is not None
        alpha = self.problem.precisions(index, alpha, theta)
        sites = start.ahead
        if sites is None:
            precision = np.maximum(-start.terms[2], 0.0)
            sites = np.array([precision, start.terms[1] + precision * start.eta])  # the second one is the pull
        mixing: Mixing | None = None
        found, best, mark = None, np.inf, (0, np.inf)
        for number in range(_ROUNDS):
            w, posterior, marginals = self._posterior(active, alpha, sites)
            new = self.matched(marginals, theta)
            change = _change(marginals, new)
            if not change <= _WORSE * best:  # nor is it where it is not a number
                shorter = None if mixing is None else mixing.shorter(sites)
                if shorter is None:
                    break
                sites = shorter
                continue
            if change < best:
                best, found = change, (w, posterior, marginals, new)
            if best < 0.5 * mark[1]:
                mark = number, best
            elif number - mark[0] > _PATIENCE:
                break
            if change < self._enough:
                if self.accurate(marginals, theta):
                    break
                # What follows is another map: it has not been anywhere yet.
                mixing, found, best, mark = None, None, np.inf, (number, np.inf)
                continue
            if mixing is None:
                mixing = Mixing(np.array([marginals.variance, np.sqrt(marginals.variance)]))
            sites = mixing.next(sites, _towards(marginals, new))
            np.maximum(sites[0], 0.0, out=sites[0])
        if found is None:
            raise np.linalg.LinAlgError("the likelihood is not finite where the posterior lies")
        w, posterior, marginals, new = found
        terms = new.value, marginals.slope, -marginals.precision, np.zeros_like(new.value)
        state = self._state(index, alpha, theta, w, posterior, marginals.mean, terms)
        return replace(state, ahead=_towards(marginals, new))

    def _posterior(
        self, active: Active, alpha: FloatArray, sites: FloatArray
    ) -> tuple[FloatArray, Posterior, Marginals]:
        """The Gaussian that prior and sites make, over weights and along the predictors."""
        offset, (precision, pull) = self.problem.offset, sites
        posterior: Posterior = active.steps(alpha, (pull, pull, -precision))
        w = posterior.solve(active.pulled_back(pull - precision * offset))
        eta = offset + active.predictor(w)
        return w, posterior, Marginals(eta, _variances(active, posterior), pull - precision * eta, precision)


def _variances(active: Active, posterior: Posterior) -> FloatArray:
    """Of each predictor."""
    if isinstance(posterior, Dual):
        return np.maximum(posterior.leverages, 0.0)
    return active.leverages(lambda v, at: posterior.solve(v))


def _towards(marginals: Marginals, new: Matched) -> FloatArray:
    """Precision and pull of sites that were matched at the mean of these marginals."""
    return np.array([new.precision, new.slope + new.precision * marginals.mean])


def _change(marginals: Marginals, new: Matched) -> float:
    """Of the sites, in units of what is known along each predictor."""
    v = marginals.variance
    by_precision = np.abs(new.precision - marginals.precision) * v
    by_slope = np.abs(new.slope - marginals.slope) * np.sqrt(v)
    return float(max(by_precision.max(initial=0.0), by_slope.max(initial=0.0)))


def _first_convex(problem: Problem) -> int | None:
    """A row whose log-likelihood curves upwards somewhere near, at the nuisance parameters of the start."""
    if problem.normal:
        return None
    seen = [problem.derivatives(problem.offset + problem.unit * step, problem.theta, 2)[2] for step in _CONCAVE]
    curves = np.array(seen)
    finite = np.isfinite(curves)
    top = np.where(finite, curves, -np.inf).max(axis=0)
    scale = np.abs(curves[finite]).max(initial=0.0)
    convex = np.flatnonzero(top > _ROUNDING * scale)
    return int(convex[0]) if len(convex) else None
