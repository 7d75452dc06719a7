"""Where NUTS of a whole declaration starts, and in what metric: what an evidence fit knows of the posterior.

Weights that the data determine get the fit's mean and covariance, the others stay at their prior; a precision has the
spread that its own Gamma posterior would have at the weight found.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pymc as pm
from numpy.typing import NDArray
from pymc.initial_point import make_initial_point_fn
from scipy.special import polygamma

from bayes_sparse.common.types import FloatArray, IntArray
from bayes_sparse.fitting.found import Found
from bayes_sparse.inference.evidence.state import Outcome
from bayes_sparse.inference.l1.fixed_points import PathOutcome
from bayes_sparse.inference.one_step.finish import EigenOutcome
from bayes_sparse.inputs.named_model import Centred
from bayes_sparse.problem.gaussian import cholesky
from bayes_sparse.problem.labelled import LabelledProblem
from bayes_sparse.trees.draws import factor_of
from bayes_sparse.trees.l1_path import factor_on_support

__all__ = ["Start", "start_of"]

_DETERMINED = 0.05  # of a weight: how well by the data, for its covariance to matter

type Place = tuple[str, int]


@dataclass(frozen=True, eq=False)
class Start:
    """A point and a metric.

    Attributes
    ----------
    values : dict
        Values of free variables, by name; others start where PyMC would start them.
    sds : dict
        Sds of variables on the unconstrained scale; others have 1.
    places : list of (str, int)
        Entries of variables that are correlated.
    factor : array (len(places), len(places))
        F with F F' their covariance.
    """

    values: dict[str, FloatArray]
    sds: dict[str, FloatArray] = field(default_factory=dict)
    places: list[Place] = field(default_factory=list)
    factor: FloatArray = field(default_factory=lambda: np.empty((0, 0)))


def start_of(found: Found, model: pm.Model, centred: Centred = False) -> Start:
    """The start of a declaration, centred or not, at an evidence fit of the same data."""
    draw = make_initial_point_fn(model=model, jitter_rvs=set(), return_transformed=False)
    begin = {name: np.array(value, dtype=float) for name, value in draw(0).items()}
    outcome = found.outcome
    if isinstance(outcome, PathOutcome):
        return _at_support(found.labelled, outcome, begin)
    if isinstance(outcome, EigenOutcome):
        return _at_directions(found.labelled, outcome, begin, np.asarray(centred))
    return _at_weights(found.labelled, outcome, begin, np.asarray(centred))


def _at_weights(
    labelled: LabelledProblem, outcome: Outcome, begin: dict[str, FloatArray], centred: NDArray[np.bool_]
) -> Start:
    """Weights ``w``, or ``z = w sqrt(alpha)`` where the declaration is not centred."""
    state, M = outcome.state, labelled.M
    index, determined = state.index, (state.index >= M) | (state.gamma > _DETERMINED)
    unit = np.ones(len(index))
    alpha = np.full(M, np.inf)
    alpha[index[index < M]] = state.alpha[index < M]
    values, sds = _nuisance(labelled, state.theta, begin), {}
    if "z" in begin and len(labelled.sparse) == 1 and labelled.sparse[0].name not in begin:
        directly = np.broadcast_to(centred, (M,))[index[index < M]]
        unit[index < M] = np.where(directly, 1.0, np.sqrt(state.alpha[index < M]))
    for name, (_, precision) in _hyper(labelled, alpha).items():
        if name in begin and begin[name].shape == precision.shape:
            values[name] = np.where(np.isfinite(precision), precision, begin[name])
            known = np.zeros(M)
            known[index[index < M]] = state.gamma[index < M]
            sds[name] = _log_gamma_sd(known.reshape(precision.shape))
    places = _places(labelled, index, begin)
    return _assembled(begin, values, sds, places, state.mean * unit, unit[:, None] * factor_of(state), determined)


def _at_directions(
    labelled: LabelledProblem, outcome: EigenOutcome, begin: dict[str, FloatArray], centred: NDArray[np.bool_]
) -> Start:
    """Directions ``u``, or z of unit scale where the declaration is not centred."""
    kept, theta = outcome.kept, outcome.quadratic.theta
    alpha = outcome.alpha[kept]
    k, q = len(alpha), labelled.surface.q
    laplace = outcome.prior.name == "laplace"
    unit = np.ones(k + q)
    if "z" in begin:
        directly = np.zeros(kept.shape, dtype=bool)
        directly[: centred.size if centred.ndim else None] = centred
        directly = directly[kept]
        unit[:k] = np.where(directly, 1.0, 0.5 * alpha if laplace else np.sqrt(alpha))
    values = _nuisance(labelled, theta, begin)
    number = np.flatnonzero(kept)
    if "alpha" in begin:
        inside = number < len(begin["alpha"])
        values["alpha"] = begin["alpha"].copy()
        values["alpha"][number[inside]] = alpha[inside]
    name = "z" if "z" in begin else "u"
    there = begin[name].size if name in begin else 0  # a declaration may have the first directions only
    places: list[Place | None] = [(name, int(i)) if i < there else None for i in number]
    places += _places(labelled, np.arange(labelled.M, labelled.M + q), begin)
    factor = unit[:, None] * outcome.posterior.factor
    return _assembled(begin, values, {}, places, outcome.posterior.mean * unit, factor, np.ones(k + q, dtype=bool))


def _at_support(labelled: LabelledProblem, outcome: PathOutcome, begin: dict[str, FloatArray]) -> Start:
    """Weights on the support; lambda where it was found."""
    point, k = outcome.point, len(outcome.point.index)
    values = _nuisance(labelled, point.theta, begin)
    if "log_lambda" in begin and point.N:
        values["log_lambda"] = np.array(np.log(point.lam))
    factor = factor_on_support(outcome)[:k]
    places = _places(labelled, point.index, begin)
    return _assembled(begin, values, {}, places, point.w, factor, np.ones(k, dtype=bool))


def _places(labelled: LabelledProblem, index: IntArray, begin: dict[str, FloatArray]) -> list[Place | None]:
    """Variable and position behind each column; None where the declaration has no such variable."""
    places: list[Place | None] = []
    for column in index.tolist():
        block = next(s for s in (*labelled.sparse, *labelled.fixed) if s.columns.start <= column < s.columns.stop)
        name = block.name if block.name in begin or block in labelled.fixed else "z"
        inside = name in begin and column - block.columns.start < begin[name].size
        places.append((name, column - block.columns.start) if inside else None)
    return places


def _nuisance(labelled: LabelledProblem, theta: FloatArray, begin: dict[str, FloatArray]) -> dict[str, FloatArray]:
    return {name: np.asarray(value) for name, value in labelled.unpack(theta).items() if name in begin}


def _hyper(labelled: LabelledProblem, alpha: FloatArray) -> dict[str, tuple[tuple[str, ...], FloatArray]]:
    return {"alpha": (("basis",), alpha)} if labelled.hyper_points is None else labelled.hyper_points(alpha)


def _log_gamma_sd(known: FloatArray) -> FloatArray:
    """Sd of the log of a precision: that of its Gamma posterior, half a degree of freedom more where w is known."""
    return np.sqrt(polygamma(1, 0.5 + 0.5 * known))


def _assembled(
    begin: dict[str, FloatArray],
    values: dict[str, FloatArray],
    sds: dict[str, FloatArray],
    places: list[Place | None],
    mean: FloatArray,
    factor: FloatArray,
    determined: NDArray[np.bool_],
) -> Start:
    """Put the mean where it belongs, and keep the covariance of what is determined."""
    for place, value in zip(places, mean, strict=True):
        if place is not None:
            name, position = place
            values.setdefault(name, np.zeros(begin[name].shape)).reshape(-1)[position] = value
    chosen = [i for i, place in enumerate(places) if place is not None and determined[i]]
    covariance = factor[chosen] @ factor[chosen].T
    L = cholesky(covariance) if chosen else np.empty((0, 0))
    return Start(values, sds, [place for i in chosen if (place := places[i]) is not None], L)
