"""The likelihoods of a model: each observed variable, or potential, with the linear predictors that it depends on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pymc as pm
from numpy.typing import NDArray
from pytensor.compile.ops import ViewOp
from pytensor.scalar import basic as scalar
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.math import Sum
from pytensor.tensor.random.basic import CategoricalRV, MultinomialRV
from pytensor.tensor.special import Softmax
from scipy.special import gammaln, log_softmax

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inputs.pm_model.graph import Var, number_of, reached, shape_in_graph
from bayes_sparse.inputs.pm_model.held import MovingCoefficients
from bayes_sparse.inputs.pm_model.latents import Latents
from bayes_sparse.inputs.pm_model.predictor import (
    Columns,
    candidates,
    coefficients_behind,
    ends,
    not_linear,
    obstacle,
    read_columns,
    read_matrix,
)
from bayes_sparse.inputs.pm_model.variables import coords_of, dims_of, family_of, likelihood_parameters

__all__ = ["Output", "Part", "outputs_of", "read_part", "softmax_terms", "unsummed"]


@dataclass(frozen=True, eq=False)
class Output:
    """What a model is told: an observed variable with its values, or a potential.

    Attributes
    ----------
    variable : Var
        The observed variable, or the potential.
    name : str
        Its name.
    y : array, optional
        Observed values; None for a potential.
    dims, coords
        Of the observed values.
    """

    variable: Var
    name: str
    y: NDArray[Any] | None
    dims: tuple[str, ...] | None
    coords: dict[str, NDArray[Any]]

    @property
    def rows(self) -> int | None:
        """Number of observations; of a potential it is not known before it is read."""
        return None if self.y is None else len(self.y)

    @property
    def is_table(self) -> bool:
        """Whether an observation has several numbers."""
        return self.y is not None and self.y.ndim == 2


@dataclass(frozen=True, eq=False)
class Part:
    """An output read.

    Attributes
    ----------
    output : Output
        As it was.
    variable : Var
        The same with random prior means written out.
    n : int
        Number of rows.
    etas : list of Var
        Linear predictors in its graph; one matrix of several where ``softmax``.
    columns : list of Columns
        Of each predictor.
    softmax : bool
        Whether it is a class with the softmax of its predictors as probabilities.
    """

    output: Output
    variable: Var
    n: int
    etas: list[Var]
    columns: list[Columns]
    softmax: bool = False

    @property
    def family(self) -> str:
        """Name of the distribution's family."""
        return "potential" if self.output.y is None else family_of(self.output.variable)


def outputs_of(model: pm.Model, y: FloatArray | None = None) -> list[Output]:
    """Observed variables and potentials, ``y`` in place of the values of the only observed one."""
    found = []
    for rv in model.observed_RVs:
        values = number_of(model.rvs_to_values[rv]) if y is None else y
        if values.ndim not in (1, 2):
            raise ValueError(
                f"The observed variable {rv.name!r} has {values.ndim} dimensions; evidence methods take one, or a "
                "table of two: flatten it, or give each part an observed variable of its own."
            )
        found.append(Output(rv, rv.name, values, dims_of(model, rv), coords_of(model, rv)))
    if not found and not model.potentials:
        last = model.free_RVs[-1].name if model.free_RVs else "y"
        raise ValueError(
            "The model has no observed variable, so there is nothing to fit it to: give the response its values by "
            f"observed=, or hand in pm.observe(model, {{{last!r}: values}})."
        )
    return found + [Output(v, v.name, None, None, {}) for v in model.potentials]


def read_part(output: Output, variable: Var, found: Latents, rvs: set[Var]) -> Part:
    """Find the predictors of an output, a single one if that will do."""
    shapes = {latent.node: latent.shape for latent in found.known}
    params = likelihood_parameters(variable)
    several = _several(output, variable, found, params, shapes) if _logits(variable) is not None else None
    if several is not None:
        return several
    if output.is_table:
        return _table(output, variable, found, params, shapes)
    for eta in candidates(params, found.kinds, set(shapes), rvs):
        n = shape_in_graph(eta)[0] if eta.ndim else 1
        if output.rows not in (None, n):
            continue
        columns = _read(eta, shapes, found.kinds, n)
        if columns is not None:
            return Part(output, variable, n, [eta], [columns])
    part = _several(output, variable, found, params, shapes)
    if part is not None:
        return part
    obstacles = {latent.name: obstacle(params, latent.node, rvs) for latent in found.known}
    name = next((name for name, why in obstacles.items() if why), next(iter(obstacles)))
    moving = coefficients_behind(params, found.kinds, set(shapes), rvs)
    if moving:
        raise MovingCoefficients(not_linear(name, obstacles[name]), tuple(sorted(str(rv.name) for rv in moving)))
    raise ValueError(not_linear(name, obstacles[name]))


def _read(eta: Var, shapes: Mapping[Var, tuple[int, ...]], kinds: Mapping[Var, str], n: int) -> Columns | None:
    try:
        return read_columns(eta, shapes, kinds, n)
    except ValueError:
        return None


def _table(
    output: Output, variable: Var, found: Latents, params: Sequence[Var], shapes: Mapping[Var, tuple[int, ...]]
) -> Part:
    """A table of observations around a matrix that is linear in the weights, read as one long vector."""
    assert output.y is not None
    for eta in ends(params, found.kinds, set(shapes)):
        alone = not reached(params, {eta, *shapes}) - {eta}
        if eta.ndim == 2 and found.kinds[eta] == "affine" and shape_in_graph(eta) == output.y.shape and alone:
            return Part(output, variable, output.y.size, [eta], [_flattened(read_matrix(eta, shapes, len(output.y)))])
    raise ValueError(
        f"The observed variable {output.name!r} is a table, and its distribution has no table of linear predictors of "
        "the same shape with known coefficients; declare a variable for each of its columns, or use method='nuts'."
    )


def _flattened(columns: list[Columns]) -> Columns:
    """Predictors of the columns of a table as one, row after row."""
    offset = np.stack([one.offset for one in columns], axis=1).ravel()
    blocks = {
        node: np.stack([one.blocks[node] for one in columns], axis=1).reshape(len(offset), -1)
        for node in columns[0].blocks
    }
    return Columns(offset, [], blocks, {})


def _several(
    output: Output, variable: Var, found: Latents, params: Sequence[Var], shapes: Mapping[Var, tuple[int, ...]]
) -> Part | None:
    """Several predictors an observation: parameters with one each, or a softmax of a matrix of them."""
    nodes, n = set(shapes), output.rows
    if n is None:
        return None
    matrix = _logits(variable)
    if matrix is not None and found.kinds.get(matrix) == "affine" and not reached(params, {matrix, *nodes}) - {matrix}:
        return Part(output, variable, n, [matrix], read_matrix(matrix, shapes, n), softmax=True)
    etas = ends(params, found.kinds, nodes)
    if any(eta.ndim != 1 or shape_in_graph(eta)[0] != n for eta in etas):
        return None
    read = [_read(eta, shapes, found.kinds, n) for eta in etas]
    columns = [one for one in read if one is not None]
    if len(columns) < len(etas) or reached(params, {*etas, *nodes}) - set(etas):
        return None
    return Part(output, variable, n, etas, columns)


def _logits(variable: Var) -> Var | None:
    """The matrix whose softmax is the class probabilities, if they are one."""
    if variable.owner is None or not isinstance(variable.owner.op, CategoricalRV | MultinomialRV):
        return None
    p = likelihood_parameters(variable)[-1]
    while p.owner is not None and isinstance(p.owner.op, ViewOp):
        p = p.owner.inputs[0]
    if p.owner is None or not isinstance(p.owner.op, Softmax) or p.ndim != 2 or p.owner.op.axis not in ((1,), (-1,)):
        return None
    return p.owner.inputs[0]


def softmax_terms(y: NDArray[Any], K: int) -> Callable[[FloatArray, FloatArray], tuple[FloatArray, ...]]:
    """Log-probability of each observation and its first three derivatives along the predictors (K, n).

    Parameters
    ----------
    y : array (n,) or (n, K)
        The class of each observation, or how often it is of each.
    K : int
        Number of classes.
    """
    own = y.T.astype(float) if y.ndim == 2 else np.eye(K)[:, y.astype(int)]
    total = own.sum(axis=0)
    level = gammaln(total + 1) - gammaln(own + 1).sum(axis=0)

    def pointwise(eta: FloatArray, theta: FloatArray) -> tuple[FloatArray, ...]:
        log_p = log_softmax(eta, axis=0)
        p, one = np.exp(log_p), np.eye(K)
        spread = one[:, :, None] * p - p[:, None] * p  # dp_a / d eta_b
        third = (
            p[:, None, None] * spread[None, :, :]
            + spread[:, None, :] * p[None, :, None]
            - one[:, :, None, None] * spread[:, None, :]
        )
        return level + np.sum(own * log_p, axis=0), own - total * p, -total * spread, total * third

    return pointwise


def unsummed(potential: Var) -> Var:
    """A potential without the sum over its rows."""
    while potential.owner is not None and (
        isinstance(potential.owner.op, ViewOp)
        or (isinstance(potential.owner.op, Elemwise) and isinstance(potential.owner.op.scalar_op, scalar.Identity))
    ):
        potential = potential.owner.inputs[0]
    summed = potential.owner is not None and isinstance(potential.owner.op, Sum)
    return potential.owner.inputs[0] if summed and potential.owner.inputs[0].ndim == 1 else potential
