"""A fit by a one-step method, as it is stored: every direction with what was found about it, and the weights it means.

The group ``evidence`` has a dimension ``direction`` (all eigenvectors with positive curvature, the most curved first)
beside ``basis``; no weight is pruned, directions are. ``coordinate_mean`` and ``covariance_factor`` speak of all
weights, so that prediction is the same as from any other evidence tree: they and the draws are the fitted posterior, in
which a direction left out is exactly zero. ``sd`` is about the weights themselves, which the data know no better for
that: the root mean squared distance from ``mean`` of what the likelihood alone says, ``estimate`` with its
``standard_error``. All three are NaN where the data do not determine a weight.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import xarray as xr

from bayes_sparse.common.types import FloatArray, Variables
from bayes_sparse.inference.one_step.finish import EigenOutcome
from bayes_sparse.problem.labelled import LabelledProblem
from bayes_sparse.problem.surfaces import Linear, Surface
from bayes_sparse.trees.description import Drawn
from bayes_sparse.trees.naming import (
    chain_and_draw,
    fits_in_full,
    fixed_names,
    given_back,
    held_in_draws,
    put,
    put_fixed,
    put_nuisance,
    spread,
    term_labels,
)
from bayes_sparse.trees.spread import sds

__all__ = ["DirectionsDescription"]


@dataclass(frozen=True, eq=False)
class DirectionsDescription:
    """The posterior over the directions kept and the fixed weights; x are both, in this order."""

    labelled: LabelledProblem
    outcome: EigenOutcome

    notes: ClassVar[dict[str, str]] = {
        "log_p": "log p(y|w) + log p(u|alpha) at the point values of alpha and nuisance parameters, normalised",
        "log_q": "log density of the approximation; like log_p, of the directions kept and the fixed weights",
    }

    @property
    def approximation(self) -> str:
        """Where the quadratic is from."""
        return self.outcome.approximation

    @property
    def mean(self) -> FloatArray:
        """Of directions, then fixed weights."""
        return self.outcome.posterior.mean

    @property
    def factor(self) -> FloatArray:
        """Of their covariance."""
        return self.outcome.posterior.factor

    @property
    def held(self) -> dict[str, Any]:
        """Nuisance parameters at their estimates."""
        return self.labelled.unpack(self._theta)

    @property
    def _k(self) -> int:
        return int(self.outcome.kept.sum())

    @property
    def _theta(self) -> FloatArray:
        return self.outcome.quadratic.theta

    @cached_property
    def _narrow(self) -> Surface:
        return self.labelled.surface.along(self.outcome.loadings)

    @cached_property
    def _weights(self) -> FloatArray:
        """A matrix that takes x to all columns in the problem's own order."""
        labelled, k, d, q = self.labelled, self._k, self.labelled.surface.d, self.labelled.surface.q
        out = np.zeros((k + q, d + q))
        out[:k, labelled.order[:d]] = self.outcome.loadings
        out[np.arange(k, k + q), labelled.order[d:]] = 1.0
        return out

    def moments(self) -> Variables:
        """Of all weights, in the user's units."""
        outcome, index = self.outcome, np.arange(len(self.labelled.order))
        factor = self.labelled.in_users_units((self._weights.T @ outcome.posterior.factor).T, index).T
        return {
            "log_evidence": ((), outcome.log_evidence),
            "column": (("coordinate",), index),
            "coordinate_mean": (("coordinate",), self.reported(outcome.posterior.mean)),
            "covariance_factor": (("coordinate", "factor"), factor),
            "theta": (("nuisance",), self._theta),
        }

    def stored(self) -> tuple[Variables, dict[str, Any]]:
        """Directions, and the moments of the weights that they mean."""
        labelled, outcome, moments = self.labelled, self.outcome, self.moments()
        M, k, index = labelled.M, self._k, moments["column"][1]
        mean, factor = moments["coordinate_mean"][1], moments["covariance_factor"][1]
        mode = self.reported(outcome.peak.v)
        sd = sds(factor)
        estimate, error = self._alone()
        quadratic, eigen = outcome.quadratic, outcome.eigen
        r, kept = len(eigen.h), np.flatnonzero(outcome.kept)
        variance = np.einsum("ij,ij->i", outcome.posterior.factor[:k], outcome.posterior.factor[:k])
        variables: Variables = {
            **moments,
            "log_evidence_mode": ((), outcome.log_evidence_mode),
            "objective": ((), outcome.objective),
            "h": (("direction",), eigen.h),
            "u_expansion": (("direction",), eigen.u),
            "alpha": (("direction",), outcome.alpha),
            "u_mode": (("direction",), spread(outcome.peak.v[:k], kept, r)),
            "u_mean": (("direction",), spread(outcome.posterior.mean[:k], kept, r)),
            "u_sd": (("direction",), spread(np.sqrt(variance), kept, r)),
            "gamma": (("direction",), outcome.gamma),
            "relevant": (("direction",), outcome.relevant),
            "loading": (("kept_direction", "basis"), self._loadings()),
            "mean": (("basis",), mean[:M]),
            "mode": (("basis",), mode[:M]),
            "sd": (("basis",), np.hypot(error, estimate - mean[:M])),
            "estimate": (("basis",), estimate),
            "standard_error": (("basis",), error),
            "history": (("iteration",), np.asarray(outcome.history)),
        }
        if quadratic.evidence is not None:
            variables["ridge"] = ((), quadratic.evidence.precision)
            variables["ridge_log_evidence"] = ((), quadratic.evidence.log_evidence)
        put_fixed(variables, labelled, mean, sd, index, quadratic.theta)
        number = np.arange(1, r + 1)
        coords = {
            "basis": np.array(labelled.names),
            "coordinate": np.array([*labelled.names, *fixed_names(labelled)]),
            "direction": number,
            "kept_direction": number[kept],
            **term_labels(labelled),
        }
        return variables, coords

    def _alone(self) -> tuple[FloatArray, FloatArray]:
        """What the likelihood alone says of each sparse weight, in the user's units."""
        labelled, alone = self.labelled, self.outcome.alone
        estimate, error = (np.empty(len(labelled.order)) for _ in range(2))
        estimate[labelled.order], error[labelled.order] = alone
        unit = 1.0 if labelled.scale is None else labelled.scale
        M = labelled.M
        return estimate[:M] / unit + labelled.prior_mean[:M], error[:M] / unit

    def _loadings(self) -> FloatArray:
        """The directions kept over the sparse columns, standardised as the fit saw them; zero for those kept anyway."""
        out = np.zeros((self._k, self.labelled.M))
        out[:, self.labelled.order[: self.labelled.surface.d]] = self.outcome.loadings
        return out

    def draw(self, count: int, rng: np.random.Generator) -> Drawn:
        """Nuisance parameters are drawn around those of the ridge of greatest evidence."""
        x, log_q = self.outcome.posterior.draw(count, rng)
        evidence, theta = self.outcome.quadratic.evidence, np.empty((count, 0))
        if evidence is not None and self._theta.size:
            low, high = self.labelled.surface.theta_bounds.T
            theta = np.clip(self._theta + evidence.theta_sd * rng.standard_normal((count, self._theta.size)), low, high)
        return Drawn(x, theta, log_q)

    def look(self, drawn: Drawn, some: Any, *, each: bool) -> tuple[FloatArray | None, dict[str, FloatArray]]:
        """The log target at the point values of the nuisance parameters."""
        x, theta = drawn.x[some], drawn.theta[some]
        if isinstance(self._narrow, Linear) and not each:
            return None, {"log_p": self._narrow.log_joint(x, self._theta) + self._log_prior(x)}
        held = self.pointwise(x)
        pointwise = (self._narrow.log_densities(x, theta) if self._theta.size else held) if each else None
        weights = self.labelled.surface.weights
        total = held.sum(axis=1)
        if weights is not None:  # one a row, which may hold several observations
            total = held.reshape(len(x), len(weights), -1).sum(axis=2) @ weights
        return pointwise, {"log_p": total + self._log_prior(x)}

    @cached_property
    def _fixed(self) -> tuple[FloatArray, float]:
        """Prior precisions of the fixed weights, and the logarithm of their normaliser."""
        precision = self.labelled.surface.fixed_precision(self._theta)
        return precision, 0.5 * float(np.sum(np.log(precision[precision > 0] / (2 * np.pi))))

    def _log_prior(self, x: FloatArray) -> FloatArray:
        k, (precision, constant) = self._k, self._fixed
        of_directions = self.outcome.prior.log_prior(x[..., :k], self.outcome.alpha[self.outcome.kept]).sum(axis=-1)
        return np.asarray(of_directions + constant - 0.5 * x[..., k:] ** 2 @ precision)

    def evaluate(self, x: FloatArray) -> tuple[float, FloatArray]:
        """The log target and its gradient over the directions kept and the fixed weights."""
        look, k = self._narrow.look(x, self._theta), self._k
        slope = self.outcome.prior.slope(x[:k], self.outcome.alpha[self.outcome.kept])
        return look.value + float(self._log_prior(x)), look.gradient + np.append(slope, -self._fixed[0] * x[k:])

    def pointwise(self, x: FloatArray) -> FloatArray:
        """Log-likelihood of each observation, nuisance parameters held."""
        return self._narrow.log_densities(x, np.broadcast_to(self._theta, (len(x), self._theta.size)))

    def reported(self, x: FloatArray) -> FloatArray:
        """All weights in the user's units."""
        index = np.arange(len(self.labelled.order))
        return self.labelled.in_users_units(x @ self._weights, index) + self.labelled.prior_mean

    def named(self, x: FloatArray, theta: FloatArray, shape: tuple[int, int]) -> xr.Dataset:
        """Draws of the directions kept, of every weight where they can be stored, and of the nuisance parameters."""
        labelled, full = self.labelled, fits_in_full(self.labelled, len(x))
        if labelled.users is not None and full:
            known = theta if theta.size else held_in_draws(labelled, self._theta, len(x))
            weights = given_back(labelled, x @ self._weights, known, shape)
        else:
            weights = self._named_weights(x, theta, shape, full=full)
        k = self._k
        if not k:
            return weights
        taken = {
            *weights,
            *(block.name for block in labelled.sparse),
            *(labelled.constant_data or ()),
            labelled.observed,
        }
        name = "u_direction" if "u" in taken else "u"
        drawn = xr.Dataset(
            {name: (("chain", "draw", "direction"), x[:, :k].reshape(*shape, k))},
            coords={"direction": np.flatnonzero(self.outcome.kept) + 1},
        )
        return drawn.merge(weights)

    def _named_weights(self, x: FloatArray, theta: FloatArray, shape: tuple[int, int], *, full: bool) -> xr.Dataset:
        labelled = self.labelled
        coords: dict[str, Any] = dict(chain_and_draw(shape))
        variables: Variables = {}
        blocks = (*labelled.sparse, *labelled.fixed) if self._k and full else labelled.fixed
        if blocks:
            drawn = self.reported(x).reshape(*shape, -1)
            for block in blocks:
                put(variables, coords, block, drawn, np.arange(len(labelled.order)))
        put_nuisance(variables, labelled, theta, shape)
        return xr.Dataset(variables, coords=coords)

    def sampled(self, x: FloatArray, shape: tuple[int, int]) -> xr.Dataset:
        """Draws without the nuisance parameters, which are held, unless the model is the user's own."""
        return self.named(x, held_in_draws(self.labelled, self._theta, len(x)), shape)

    def more(self, x: FloatArray) -> Variables:
        """Moments of the directions."""
        kept, size = np.flatnonzero(self.outcome.kept), len(self.outcome.kept)
        own = x[:, : self._k]
        return {
            "u_mean": (("direction",), spread(own.mean(axis=0), kept, size)),
            "u_sd": (("direction",), spread(own.std(axis=0), kept, size)),
        }
