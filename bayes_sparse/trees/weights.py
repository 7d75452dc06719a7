"""A fit by an evidence method, as it is stored: the weights of the columns kept, normal, with their normal priors."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import xarray as xr
from scipy.sparse import eye_array

from bayes_sparse.common.types import FloatArray, Variables
from bayes_sparse.inference.approximations import approximate
from bayes_sparse.inference.claims import Claims
from bayes_sparse.inference.evidence.claims import claims
from bayes_sparse.inference.evidence.factors import Factors
from bayes_sparse.inference.evidence.nearby import Nearby, nearby
from bayes_sparse.inference.evidence.state import Approximation, Outcome, State
from bayes_sparse.problem.active import Active
from bayes_sparse.problem.gaussian import Dual, Primal
from bayes_sparse.problem.labelled import LabelledProblem
from bayes_sparse.problem.problem import Problem
from bayes_sparse.trees.description import Drawn
from bayes_sparse.trees.naming import (
    claimed,
    fixed_names,
    groups_named,
    held_in_draws,
    named_draws,
    put_fixed,
    spread,
    term_labels,
)
from bayes_sparse.trees.spread import THIN, sds, variance_along

__all__ = ["WeightsDescription", "factor_of"]

_FAR = 2.0  # from its point, in units of a nuisance parameter, mostly a logarithm: nearer by, a likelihood is finite
_HALVINGS = 12
_WIDE = 1000  # weights from which a posterior on the side of the rows is stored by its thin factor


@dataclass(frozen=True, eq=False)
class WeightsDescription:
    """The normal posterior that an evidence method ended at; x are the weights of the active columns."""

    labelled: LabelledProblem
    fitted: Approximation
    outcome: Outcome
    selected: State
    searched: Approximation

    notes: ClassVar[dict[str, str]] = {
        "log_p": "log p(y|w) + log p(w|alpha) at the point values of alpha and nuisance parameters, normalised",
        "log_q": "log density of the approximation; like log_p, of the weights of standardised columns",
    }

    @property
    def approximation(self) -> str:
        """Its name."""
        return self.fitted.name

    @property
    def _state(self) -> State:
        return self.outcome.state

    @property
    def mean(self) -> FloatArray:
        """Of the active weights."""
        return self._state.mean

    @cached_property
    def factor(self) -> FloatArray:
        """F with F F' = Sigma."""
        return factor_of(self._state)

    @property
    def held(self) -> dict[str, Any]:
        """Nuisance parameters at their estimates."""
        return self.labelled.unpack(self._state.theta)

    @property
    def _claims(self) -> Claims:
        """Which row a kernel sits on is no statement about the world, so kernels have no rivals.

        Neither have the weights of a horseshoe or of a variational posterior, all of which are kept.
        """
        labelled, state = self.labelled, self._state
        selects = not self.searched.objective.tau0 and self.outcome.factors is None
        rivals, fitted = selects and not labelled.interchangeable, self.fitted
        if fitted.name == "variational":  # its bound curves more than the likelihood: z-scores would be too large
            fitted = approximate(labelled.searched, fitted.objective, "laplace")
            state = fitted.at(state.index, state.alpha, state.theta)
        return claims(labelled.searched, fitted, state, self.selected, self.searched, rivals=rivals)

    def moments(self) -> Variables:
        """Of the active weights, in the user's units."""
        state = self._state
        return {
            "log_evidence": ((), state.log_evidence),
            "column": (("coordinate",), state.index),
            "coordinate_mean": (("coordinate",), self.reported(state.mean)),
            **(self._thin() if self._wide else self._full()),
            "theta": (("nuisance",), state.theta),
        }

    def stored(self) -> tuple[Variables, dict[str, Any]]:
        """One value a basis function, in the user's units; pruned ones have mean 0, infinite precision and no sd."""
        labelled, state, M = self.labelled, self._state, self.labelled.M
        index, moments = state.index, self.moments()
        basis = index < M
        mean, sd = moments["coordinate_mean"][1], _sds(moments, len(index))
        alpha = state.alpha.copy()
        if labelled.scale is not None:
            alpha[basis] *= labelled.scale[index[basis]] ** 2
        kept = index[basis]
        precision = spread(alpha[basis], kept, M, np.inf)
        variables: Variables = {
            **moments,
            "objective": ((), state.objective),
            "alpha": (("basis",), precision),
            "mean": (("basis",), spread(mean[basis], kept, M)),
            "sd": (("basis",), spread(sd[basis], kept, M, np.nan)),
            "gamma": (("basis",), spread(state.gamma[basis], kept, M)),
            **claimed(self._claims, kept, M),
            **groups_named(labelled),
            "history": (("iteration",), np.asarray(self.outcome.history)),
        }
        if self.outcome.factors is not None:
            variables |= _of_factors(self.outcome.factors, M)
        put_fixed(variables, labelled, mean, sd, index, state.theta)
        if labelled.hyper_points is not None:
            points = labelled.hyper_points(precision)
            variables |= {name: point for name, point in points.items() if name not in variables}
        names = np.array([*labelled.names, *fixed_names(labelled)])[index]
        return variables, {"basis": np.array(labelled.names), "coordinate": names, **term_labels(labelled)}

    @property
    def _wide(self) -> bool:
        return isinstance(self._state.posterior, Dual) and len(self._state.index) > _WIDE

    def _full(self) -> Variables:
        """A factor of the covariance, in the user's units."""
        factor = self.labelled.in_users_units(self.factor.T, self._state.index).T
        return {"covariance_factor": (("coordinate", "factor"), factor)}

    def _thin(self) -> Variables:
        """The part of it that the data see, beside the prior (`bayes_sparse.trees.spread`)."""
        labelled, state = self.labelled, self._state
        assert isinstance(state.posterior, Dual)
        U, narrowed = state.posterior.directions
        seen = (U / narrowed).T / np.sqrt(state.alpha)
        basis = state.index < labelled.M
        scale, shift = np.ones(len(basis)), np.zeros(len(basis))
        if labelled.scale is not None:
            scale[basis] = labelled.scale[state.index[basis]]
        if labelled.shift is not None and not basis.all():
            shift[basis] = labelled.shift[state.index[basis]]
        return {
            "covariance_factor": (("coordinate", "factor"), labelled.in_users_units(seen, state.index).T),
            "prior_variance": (("coordinate",), 1 / (state.alpha * scale**2)),
            "prior_centre": (("coordinate",), shift),
            "prior_bias": (("coordinate",), (~basis).astype(float)),
            "narrowed": (("factor",), narrowed),
        }

    def draw(self, count: int, rng: np.random.Generator) -> Drawn:
        """Nuisance parameters are drawn from the normal that the objective's curvature suggests, or from their factor.

        Weights follow those that are drawn together with others; their log density is that of the draws before.
        """
        state, k, m = self._state, len(self._state.index), self._state.theta.size
        z = rng.standard_normal((count, k))
        x = state.mean + (state.posterior.spread(z) if isinstance(state.posterior, Dual) else z @ self.factor.T)
        log_q = -0.5 * (np.sum(z**2, axis=1) + k * np.log(2 * np.pi) - state.posterior.log_determinant)
        factors = self.outcome.factors
        precision = None if factors is None else factors.precisions(state.alpha, state.groups, count, rng)
        if not m:
            return Drawn(x, np.empty((count, 0)), log_q, precision)
        low, high = self.labelled.searched.theta_bounds.T
        if factors is not None and not np.isnan(factors.noise_shape):
            return Drawn(x, np.clip(factors.log_sigma(state.theta, count, rng), low, high), log_q, precision)
        away = rng.standard_normal((count, m)) @ self._nuisance.factor.T
        theta = np.clip(state.theta + away, low, high)  # where the data say little, a normal goes far beyond reason
        self._bring_near(x, theta)
        return Drawn(x + self._followed(theta), theta, log_q, precision)

    def _bring_near(self, x: FloatArray, theta: FloatArray) -> None:
        """Halve, in place, how far nuisance parameters are from their points, where nothing of the likelihood is left.

        A noise drawn far below its point, with weights that know of the point alone, has no finite log-likelihood.
        """
        problem, state = self.labelled.searched, self._state
        far = np.flatnonzero(np.abs(theta - state.theta).max(axis=1) > _FAR)
        for _ in range(_HALVINGS):
            if not len(far):
                return
            eta = problem.predictor((x + self._followed(theta))[far], state.index)
            far = far[~np.isfinite(problem.log_densities(eta, theta[far])).reshape(len(far), -1).all(axis=1)]
            theta[far] = (theta[far] + state.theta) / 2

    @cached_property
    def _nuisance(self) -> Nearby:
        return nearby(self.fitted, self._state)

    def _followed(self, theta: FloatArray) -> FloatArray:
        """How far the weights have moved with their nuisance parameters."""
        return np.asarray((theta - self._state.theta) @ self._nuisance.drift.T) if theta.shape[1] > 1 else np.zeros(1)

    def before(self, drawn: Drawn) -> FloatArray:
        """Draws of the weights as if the nuisance parameters were at their points."""
        return drawn.x - self._followed(drawn.theta)

    def look(self, drawn: Drawn, some: Any, *, each: bool) -> tuple[FloatArray | None, dict[str, FloatArray]]:
        """The log target at the point values of the nuisance parameters."""
        problem, state, x, theta = self.labelled.searched, self._state, drawn.x[some], drawn.theta[some]
        eta = problem.predictor(x, state.index) if each else None
        pointwise = None if eta is None else problem.log_densities(eta, theta)
        known = pointwise if not state.theta.size else None  # then they are at their points already
        if state.theta.size > 1:
            x, eta = x - self._followed(theta), None
        if isinstance(problem, Problem) and eta is None:
            joint = problem.log_joint_at(x, state.index, state.theta[None])
        else:
            eta = problem.predictor(x, state.index) if eta is None else eta
            joint = problem.log_joint(eta, state.theta[None], known)
        return pointwise, {"log_p": joint + self._log_prior(x)}

    def _log_prior(self, x: FloatArray) -> FloatArray:
        return np.asarray(self._normaliser - 0.5 * x**2 @ self._state.alpha)

    @cached_property
    def _normaliser(self) -> float:
        """Logarithm of the prior's; a flat one has none."""
        alpha = self._state.alpha
        return 0.5 * float(np.sum(np.log(alpha[alpha > 0] / (2 * np.pi))))

    @cached_property
    def _active(self) -> Active:
        return self.labelled.searched.active(self._state.index)

    def evaluate(self, x: FloatArray) -> tuple[float, FloatArray]:
        """The log target and its gradient over the active weights."""
        problem, active, alpha = self.labelled.searched, self._active, self._state.alpha
        value, slope = problem.terms(problem.offset + active.predictor(x), self._state.theta)[:2]
        return float(value.sum()) + float(self._log_prior(x)), active.pulled_back(slope) - alpha * x

    def pointwise(self, x: FloatArray) -> FloatArray:
        """Log-likelihood of each observation, nuisance parameters held."""
        problem, theta = self.labelled.searched, self._state.theta
        return problem.log_densities(
            problem.predictor(x, self._state.index), np.broadcast_to(theta, (len(x), theta.size))
        )

    def reported(self, x: FloatArray) -> FloatArray:
        """The active weights in the user's units."""
        index = self._state.index
        return self.labelled.in_users_units(x, index) + self.labelled.prior_mean[index]

    def named(
        self, x: FloatArray, theta: FloatArray, shape: tuple[int, int], drawn: FloatArray | None = None
    ) -> xr.Dataset:
        """Draws under the user's names; of the precisions too, where they have a posterior."""
        index, M = self._state.index, self.labelled.M
        if drawn is not None:  # then all columns are there, in their order
            return named_draws(self.labelled, index, x, theta, shape, drawn[:, :M])
        precision = spread(self._state.alpha[index < M], index[index < M], M, np.inf)
        return named_draws(self.labelled, index, x, theta, shape, precision)

    def sampled(self, x: FloatArray, shape: tuple[int, int]) -> xr.Dataset:
        """Draws without the nuisance parameters, which are held, unless the model is the user's own."""
        return self.named(x, held_in_draws(self.labelled, self._state.theta, len(x)), shape)

    def more(self, x: FloatArray) -> Variables:
        """Nothing."""
        return {}


def factor_of(state: State) -> FloatArray:
    """F with F F' = Sigma over the active columns."""
    if isinstance(state.posterior, Primal | Dual):
        return state.posterior.factor
    covariance = state.posterior.solve(np.eye(len(state.index)))
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def _of_factors(factors: Factors, M: int) -> Variables:
    """The bound, and the shapes of Gamma factors, whose means are told already."""
    told: Variables = {"bound": ((), factors.bound), "alpha_shape": (("basis",), factors.shape[:M])}
    return told if np.isnan(factors.noise_shape) else {**told, "noise_shape": ((), factors.noise_shape)}


def _sds(moments: Variables, k: int) -> FloatArray:
    """Of each coordinate."""
    if THIN[0] in moments:
        return np.sqrt(variance_along(xr.Dataset(moments), eye_array(k, format="csr")))
    return sds(moments["covariance_factor"][1])
