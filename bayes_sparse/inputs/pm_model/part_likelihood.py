"""The log-density of each part of a model along its predictors, and of all parts together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from pytensor.tensor.random.basic import MvNormalRV
from scipy.linalg import solve_triangular

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inputs.pm_model.forecast import Forecast
from bayes_sparse.inputs.pm_model.graph import Var, reached, value_of
from bayes_sparse.inputs.pm_model.held import MovingCoefficients
from bayes_sparse.inputs.pm_model.likelihood import Distribution, GraphLikelihood, add_up
from bayes_sparse.inputs.pm_model.parts import Part, softmax_terms
from bayes_sparse.inputs.pm_model.predictor import Columns
from bayes_sparse.inputs.pm_model.row_density import RowDensity
from bayes_sparse.inputs.pm_model.variables import Nuisance, parameters

__all__ = ["PartLikelihood", "together"]

type Terms = tuple[FloatArray, ...]

_MOVED = 0.37  # of every nuisance parameter, to see whether a covariance keeps its form
_SAME = 1e-8


class PartLikelihood:
    """Log-density of a part's rows as a function of their predictors and theta.

    Parameters
    ----------
    part : Part
        An observed variable or a potential, read.
    rvs : set of Var
        The free variables of the model.
    nuisance : Nuisance
        Those of them behind theta.

    Attributes
    ----------
    y : array (n,)
        The observations; zeros for a potential.
    columns : list of Columns
        Of each predictor, whitened where the errors are correlated.
    pointwise : callable
        ``pointwise(eta, theta)``, eta (n,) or (K, n): the log-density of each row and its first three derivatives.
    fewer : callable, optional
        ``fewer(eta, theta, derivatives)`` gives fewer of them, where that is quicker.
    sigma : float, array or None
        Known noise of a normal likelihood, 1 if theta is its logarithm, None if it is neither.
    forecast : Forecast, optional
        New observations along the predictor, where there is one.
    """

    def __init__(self, part: Part, rvs: set[Var], nuisance: Nuisance) -> None:
        self.n, self.columns = part.n, part.columns
        self.y = np.zeros(part.n) if part.output.y is None else part.output.y.astype(float).ravel()
        self.sigma: float | FloatArray | None = None
        self.forecast: Forecast | None = None
        self.pointwise: Callable[[FloatArray, FloatArray], Terms]
        self.fewer: Callable[[FloatArray, FloatArray, int], Terms] | None = None
        if part.softmax:
            assert part.output.y is not None
            # Counts of classes have no one target.
            self.y = part.output.y.astype(float) if part.output.y.ndim == 1 else np.zeros(part.n)
            self.pointwise = softmax_terms(part.output.y, len(part.columns))
        elif part.output.y is not None and isinstance(part.variable.owner.op, MvNormalRV):
            self._whiten(part, rvs, nuisance)
        elif (
            len(part.etas) > 1
            or part.output.y is None
            or part.output.is_table
            or not self._by_parameters(part, rvs, nuisance)
        ):
            self._by_density(part, rvs, nuisance)

    def _by_parameters(self, part: Part, rvs: set[Var], nuisance: Nuisance) -> bool:
        """Through the parameters of the distribution, if each row's depend on its own predictor alone."""
        [eta], [columns] = part.etas, part.columns
        try:
            distribution = Distribution(part.variable, eta, rvs, nuisance, part.n, columns.moving)
            likelihood = GraphLikelihood(distribution, rvs, self.y)
        except ValueError:
            return False
        self.pointwise, self.sigma, self.forecast = likelihood.pointwise, likelihood.sigma, Forecast(distribution)
        self.fewer = likelihood.pointwise
        return True

    def _by_density(self, part: Part, rvs: set[Var], nuisance: Nuisance) -> None:
        whole = RowDensity(part, rvs, nuisance).pointwise
        moving = [nuisance.function([add_up(c.moving)]) if c.moving else None for c in part.columns]
        if not any(moving):
            self.pointwise = self.fewer = whole
            return

        def pointwise(eta: FloatArray, theta: FloatArray, derivatives: int = 3) -> Terms:
            shifts = [np.zeros(()) if move is None else move(theta)[0] for move in moving]
            if len(shifts) == 1:
                return whole(eta + shifts[0], theta, derivatives)
            return whole(eta + np.stack([np.broadcast_to(shift, part.n) for shift in shifts]), theta, derivatives)

        self.pointwise = self.fewer = pointwise

    def _whiten(self, part: Part, rvs: set[Var], nuisance: Nuisance) -> None:
        """Correlated normal errors as independent ones: all rows times the inverse of the covariance's root."""
        _, covariance = parameters(part.variable)
        size = 1 if part.output.y is None else part.output.y.shape[-1]
        function = nuisance.function([covariance]) if reached([covariance], rvs) else None
        known = None if function else value_of(covariance)

        def at(theta: FloatArray) -> FloatArray:
            value = np.asarray(known if function is None else function(theta)[0], dtype=float)
            first: FloatArray = value.reshape(-1, size, size)[0]
            return first

        C, moved = at(nuisance.start), at(nuisance.start + _MOVED)
        name, [columns] = part.output.name, part.columns
        if np.abs(moved / moved[0, 0] - C / C[0, 0]).max() > _SAME or columns.moving:
            raise MovingCoefficients(
                f"The covariance of {name!r} changes its form with the variables behind it; evidence methods need it "
                "known but for a factor, such as sigma**2 * R with a known R: fix the others, or use method='nuts'.",
                tuple(sorted(str(rv.name) for rv in reached([covariance], rvs))),
            )
        L = np.linalg.cholesky(C)

        def white(rows: FloatArray) -> FloatArray:
            """Of a table each row by itself."""
            tables = np.moveaxis(rows.reshape(-1, len(L), *rows.shape[1:]), 1, 0)
            solved = solve_triangular(L, tables.reshape(len(L), -1), lower=True).reshape(tables.shape)
            return np.asarray(np.moveaxis(solved, 0, 1).reshape(rows.shape))

        self.y = white(self.y)
        blocks = {node: white(block) for node, block in columns.blocks.items()}
        self.columns = [Columns(white(columns.offset), [], blocks, columns.scales)]
        level = float(np.log(np.diag(L)).mean())

        def pointwise(eta: FloatArray, theta: FloatArray) -> Terms:
            variance = at(theta)[0, 0] / C[0, 0]
            r, flat = self.y - eta, np.zeros(part.n)
            density = -0.5 * (r**2 / variance + np.log(2 * np.pi * variance)) - level
            return density, r / variance, flat - 1 / variance, flat

        self.pointwise = pointwise


def together(likelihoods: Sequence[PartLikelihood]) -> Callable[[FloatArray, FloatArray], Terms]:
    """The rows of all parts one after the other, those with fewer predictors padded with zeros."""
    if len(likelihoods) == 1:
        return likelihoods[0].pointwise
    stops = np.cumsum([likelihood.n for likelihood in likelihoods])[:-1]

    def pointwise(eta: FloatArray, theta: FloatArray) -> Terms:
        pieces = np.split(eta, stops, axis=-1)
        found = [_terms(one, piece, theta) for one, piece in zip(likelihoods, pieces, strict=True)]
        return tuple(np.concatenate(terms, axis=-1) for terms in zip(*found, strict=True))

    return pointwise


def _terms(likelihood: PartLikelihood, eta: FloatArray, theta: FloatArray) -> Terms:
    if eta.ndim == 1:
        return likelihood.pointwise(eta, theta)
    K, own = len(eta), len(likelihood.columns)
    terms = likelihood.pointwise(eta[0] if own == 1 else eta[:own], theta)
    return (terms[0], *(_padded(term, order, own, K) for order, term in enumerate(terms[1:], start=1)))


def _padded(term: FloatArray, order: int, own: int, K: int) -> FloatArray:
    """Derivatives along K predictors, those that are not there zero."""
    full: Any = np.zeros((*(K,) * order, term.shape[-1]))
    full[(slice(own),) * order] = term.reshape(*(own,) * order, -1)
    return np.asarray(full)
