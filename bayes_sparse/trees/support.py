"""A fit on an L1 path, as it is stored: the point, a normal posterior on its support, and what the path said.

Lambda, R and the criterion speak of standardised columns, as the penalty does; weights are in the user's units. The
posterior is conditional on the support: no draw has a weight outside it, and none of their uncertainty is in it. Where
the exact posterior is asked for lambda is held, for integrated out it would be improper at zero; nuisance parameters
are not: the posterior on the support is one of both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import xarray as xr
from scipy.linalg import lapack

from bayes_sparse.common.types import FloatArray, IntArray, Variables
from bayes_sparse.inference.l1.claims import claims
from bayes_sparse.inference.l1.fixed_points import PathOutcome
from bayes_sparse.inference.l1.path import Point, Record
from bayes_sparse.problem.active import LinearActive
from bayes_sparse.problem.gaussian import cholesky
from bayes_sparse.problem.labelled import LabelledProblem
from bayes_sparse.trees.description import Drawn
from bayes_sparse.trees.naming import claimed, fixed_names, named_draws, put_fixed, spread

__all__ = ["SupportDescription"]

_STEP = 1e-5  # of the numerical derivative along a nuisance parameter


@dataclass(frozen=True, eq=False)
class SupportDescription:
    """The normal posterior on a support; x are its weights, the unpriced ones and the nuisance parameters."""

    labelled: LabelledProblem
    outcome: PathOutcome

    approximation: ClassVar[str] = "laplace"
    held: ClassVar[dict[str, Any]] = {}

    @property
    def notes(self) -> dict[str, str]:
        """What the log densities are of."""
        said = {
            "log_p": "log p(y|w) + log p(w|lambda*) on the support; weights of standardised columns",
            "log_p_marginal": "the same with lambda integrated out, the prior Gamma(N) / (2R)^N: improper at w = 0",
            "log_q": "log density of the approximation, of the same weights and the nuisance parameters",
        }
        return said if self.outcome.marginal else {name: said[name] for name in ("log_p", "log_q")}

    @property
    def _k(self) -> int:
        return len(self.outcome.point.index)

    @property
    def mean(self) -> FloatArray:
        """Weights, then nuisance parameters."""
        return np.append(self.outcome.point.w, self.outcome.point.theta)

    @cached_property
    def factor(self) -> FloatArray:
        """F with F F' the covariance of the active weights and the nuisance parameters."""
        P = self.outcome.precision
        if len(P) and lapack.dpotrf(P, lower=1)[1] != 0:
            # As many weights as observations: what is known about the noise is left aside, and collinear columns are
            # told apart by rounding errors alone.
            P = self.outcome.point.precision.copy()
            P[: self._k, self._k :], P[self._k :, : self._k] = 0.0, 0.0
        L = cholesky(P)
        return np.asarray(lapack.dtrtri(L, lower=1)[0].T) if len(L) else L  # keeps its digits whatever the rows' units

    def moments(self) -> Variables:
        """Of the weights on the support, in the user's units; there is no evidence."""
        point = self.outcome.point
        own = self.labelled.in_users_units(self.factor[: self._k].T, point.index).T
        return {
            "log_evidence": ((), np.nan),
            "column": (("coordinate",), point.index),
            "coordinate_mean": (("coordinate",), self._weights(point)),
            "covariance_factor": (("coordinate", "factor"), own),
            "theta": (("nuisance",), point.theta),
        }

    def stored(self) -> tuple[Variables, dict[str, Any]]:
        """Point, moments on the support, and the path."""
        labelled, outcome, point, M = self.labelled, self.outcome, self.outcome.point, self.labelled.M
        index, moments = point.index, self.moments()
        mean, own = moments["coordinate_mean"][1], moments["covariance_factor"][1]
        sd = np.sqrt(np.einsum("ij,ij->i", own, own))
        basis = index < M
        kept = index[basis]
        variables: Variables = {
            "lambda": ((), point.lam if point.N else np.nan),
            "N": ((), point.N),
            "R": ((), point.R),
            "r": ((), point.r),
            "criterion": ((), point.criterion),
            "log_likelihood_mode": ((), point.log_likelihood),
            "log_prior": ((), float(outcome.log_prior(point.w[None])[0])),
            **moments,
            "mean": (("basis",), spread(mean[basis], kept, M)),
            "sd": (("basis",), spread(sd[basis], kept, M, np.nan)),
            **claimed(claims(point, rivals=not labelled.interchangeable), kept, M),
            "pull": (("basis",), self._pull()),
        }
        variables |= outcome.found
        ever = self._put_path(variables)
        put_fixed(variables, labelled, mean, sd, index, point.theta)
        labels = np.array([*labelled.names, *fixed_names(labelled)])
        coords: dict[str, Any] = {"basis": np.array(labelled.names), "coordinate": labels[index]}
        return variables, coords if ever is None else coords | {"ever": labels[ever]}

    def _weights(self, point: Point | Record) -> FloatArray:
        return self.labelled.in_users_units(point.w, point.index) + self.labelled.prior_mean[point.index]

    def _pull(self) -> FloatArray:
        """Slope of the log-likelihood along each column in units of lambda: 1 or -1 where a weight is not zero."""
        spot, knob, M = self.outcome.point.spot, self.outcome.point.knob, self.labelled.M
        largest = knob if np.isfinite(knob) else float(np.abs(spot.gradient[:M]).max(initial=0.0)) or 1.0
        return np.asarray(spot.gradient[:M] / largest)

    def _put_path(self, variables: Variables) -> IntArray | None:
        """The points visited and the solutions found; gives the columns that were ever in, if any point was visited."""
        outcome, M = self.outcome, self.labelled.M
        visited = sorted((p for p in outcome.visited if p.N), key=lambda point: point.lam)
        ever: IntArray | None = None
        if visited:
            ever = np.unique(np.concatenate([p.index[p.index < M] for p in visited]))
            variables["path_lambda"] = (("visited",), np.array([p.lam for p in visited]))
            variables["path_N"] = (("visited",), np.array([p.N for p in visited]))
            variables["path_R"] = (("visited",), np.array([p.R for p in visited]))
            variables["path_w"] = (("visited", "ever"), self._stacked(visited, ever))
        if outcome.solutions is not None:
            points = [solution.point for solution in outcome.solutions]
            numbers = {
                "lambda": [p.lam for p in points],
                "N": [p.N for p in points],
                "R": [p.R for p in points],
                "r": [p.r for p in points],
                "criterion": [p.criterion for p in points],
                "log_prior": [p.log_prior for p in points],
            }
            for name, values in numbers.items():
                variables[f"solution_{name}"] = (("solution",), np.array(values, dtype=float))
            variables["solution_status"] = (("solution",), np.array([s.status for s in outcome.solutions], dtype=str))
            variables["solution_w"] = (("solution", "basis"), self._stacked(points, np.arange(M)))
        return ever

    def _stacked(self, points: Sequence[Point | Record], ever: IntArray) -> FloatArray:
        """Weights of some columns at several points, one a row, in the user's units."""
        out = np.zeros((len(points), len(ever)))
        for row, point in zip(out, points, strict=True):
            basis = point.index < self.labelled.M
            row[np.searchsorted(ever, point.index[basis])] = self._weights(point)[basis]
        return out

    def draw(self, count: int, rng: np.random.Generator) -> Drawn:
        """Independent draws of the normal posterior."""
        factor, problem, k = self.factor, self.labelled.problem, self._k
        z = rng.standard_normal((count, len(factor)))
        x = self.mean + z @ factor.T
        if x.shape[1] > k:
            x[:, k:] = np.clip(x[:, k:], *problem.theta_bounds.T)
        log_q = -0.5 * np.sum(z**2, axis=1) - 0.5 * len(factor) * np.log(2 * np.pi) - np.log(factor.diagonal()).sum()
        return Drawn(x, x[:, k:], log_q)

    def look(self, drawn: Drawn, some: Any, *, each: bool) -> tuple[FloatArray | None, dict[str, FloatArray]]:
        """The log target, with lambda held and integrated out; nuisance parameters as they were drawn."""
        problem, x, k = self.labelled.problem, drawn.x[some], self._k
        pointwise = self.pointwise(x) if each else None
        if pointwise is None:
            log_likelihood = problem.log_joint_at(x[:, :k], self.outcome.point.index, x[:, k:])
        else:
            log_likelihood = problem.total(pointwise)
        if problem.log_prior is not None:
            log_likelihood += [problem.log_prior(row) for row in x[:, k:]]
        targets = {"log_p": log_likelihood + self.outcome.log_laplace(x[:, :k])}
        if self.outcome.marginal:
            targets["log_p_marginal"] = log_likelihood + self.outcome.log_prior(x[:, :k])
        return pointwise, targets

    @cached_property
    def _active(self) -> LinearActive:
        return self.labelled.problem.active(self.outcome.point.index)

    def evaluate(self, x: FloatArray) -> tuple[float, FloatArray]:
        """The log target and its gradient; along nuisance parameters by differences."""
        problem, point, k = self.labelled.problem, self.outcome.point, self._k
        w, theta = x[:k], x[k:]
        low, high = problem.theta_bounds.T
        if np.any(theta < low) or np.any(theta > high):
            return -np.inf, np.zeros_like(x)
        eta = problem.offset + self._active.predictor(w)
        value = self._log_likelihood(eta, theta) + float(self.outcome.log_laplace(w[None])[0])
        priced, flat = (point.sign != 0).astype(float), point.path.precision[point.index]
        slope = self._active.pulled_back(problem.terms(eta, theta)[1]) - point.lam * priced * np.sign(w) - flat * w
        along = [
            (self._log_likelihood(eta, theta + step) - self._log_likelihood(eta, theta - step)) / (2 * _STEP)
            for step in _STEP * np.eye(theta.size)
        ]
        return value, np.append(slope, along)

    def _log_likelihood(self, eta: FloatArray, theta: FloatArray) -> float:
        problem = self.labelled.problem
        own = 0.0 if problem.log_prior is None else float(problem.log_prior(theta))
        return float(problem.terms(eta, theta)[0].sum()) + own

    def pointwise(self, x: FloatArray) -> FloatArray:
        """Log-likelihood of each observation."""
        problem, k = self.labelled.problem, self._k
        return problem.log_densities(problem.predictor(x[:, :k], self.outcome.point.index), x[:, k:])

    def reported(self, x: FloatArray) -> FloatArray:
        """The active weights in the user's units."""
        index = self.outcome.point.index
        return self.labelled.in_users_units(x[:, : self._k], index) + self.labelled.prior_mean[index]

    def named(self, x: FloatArray, theta: FloatArray, shape: tuple[int, int]) -> xr.Dataset:
        """Draws under the user's names."""
        return named_draws(self.labelled, self.outcome.point.index, x[:, : self._k], theta, shape)

    def sampled(self, x: FloatArray, shape: tuple[int, int]) -> xr.Dataset:
        """Draws with the nuisance parameters, which are part of x."""
        return self.named(x, x[:, self._k :], shape)

    def more(self, x: FloatArray) -> Variables:
        """Nothing."""
        return {}
