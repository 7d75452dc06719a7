"""Numbers under the user's names and in their units: weights, nuisance parameters, observations."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bayes_sparse.common.checks import small_enough
from bayes_sparse.common.types import FloatArray, IntArray, Variables
from bayes_sparse.inference.claims import FALSE_FINDS, Claims
from bayes_sparse.problem.labelled import LabelledProblem, WeightBlock

__all__ = [
    "chain_and_draw",
    "claimed",
    "finite_logs",
    "fits_in_full",
    "fixed_names",
    "given_back",
    "groups_named",
    "held_in_draws",
    "in_parts",
    "named_draws",
    "of_each_observation",
    "put",
    "put_fixed",
    "put_nuisance",
    "spread",
    "term_labels",
]

_BLOCK = 2**22  # predictors held at once while draws are looked at
_NOTHING_LEFT = -1e150  # nats: the square of it is a number still


def chain_and_draw(shape: tuple[int, int]) -> dict[str, IntArray]:
    """Numbers of chains and draws."""
    return {"chain": np.arange(shape[0]), "draw": np.arange(shape[1])}


def in_parts(count: int, width: int) -> list[IntArray]:
    """Draws some at a time, so that a part of so many numbers each is never large."""
    return np.array_split(np.arange(count), max(1, count * width // _BLOCK))


def named_draws(
    labelled: LabelledProblem,
    index: IntArray,
    w: FloatArray,
    theta: FloatArray,
    shape: tuple[int, int],
    precision: FloatArray | None = None,
) -> xr.Dataset:
    """Draws of the weights (S, k) of the columns ``index`` and of the nuisance parameters (S, t).

    Of a user's own model all variables; what follows from the ``precision`` of its sparse columns, where it has any.
    Draws of precisions (S, M) are told of a named model too.
    """
    if labelled.users is not None and fits_in_full(labelled, len(w)):
        full = np.zeros((len(w), len(labelled.prior_mean)))
        full[:, index] = labelled.in_users_units(w, index)
        return given_back(labelled, full, theta, shape, precision)
    coords: dict[str, Any] = dict(chain_and_draw(shape))
    variables: Variables = {}
    reported = (labelled.in_users_units(w, index) + labelled.prior_mean[index]).reshape(*shape, len(index))
    for block in (*labelled.sparse, *labelled.fixed):
        put(variables, coords, block, reported, index)
    put_nuisance(variables, labelled, theta, shape)
    if labelled.users is None and precision is not None and precision.ndim == 2:
        own = precision if labelled.scale is None else precision * labelled.scale**2
        variables["alpha"] = (("chain", "draw", "basis"), own.reshape(*shape, -1))
        coords["basis"] = np.array(labelled.names)
    return xr.Dataset(variables, coords=coords)


def fits_in_full(labelled: LabelledProblem, count: int) -> bool:
    """Whether so many draws of every weight are stored."""
    return small_enough(8 * count * labelled.M, "Every draw of every weight")


def given_back(
    labelled: LabelledProblem,
    w: FloatArray,
    theta: FloatArray,
    shape: tuple[int, int],
    precision: FloatArray | None = None,
) -> xr.Dataset:
    """Every variable of a user's own model, in its full shape, from draws of all columns (S, width)."""
    assert labelled.users is not None
    coords: dict[str, Any] = dict(chain_and_draw(shape))
    variables: Variables = {}
    known = np.full(labelled.M, np.nan) if precision is None else precision
    for name, (dims, values) in labelled.users(w, theta, known).items():
        sizes = values.shape[1:]
        if any(len(labelled.coords.get(dim, range(size))) != size for dim, size in zip(dims, sizes, strict=True)):
            continue  # a Deterministic that contradicts its dims, as Bambi has of ordered classes
        variables[name] = (("chain", "draw", *dims), values.reshape(*shape, *sizes))
        for dim, size in zip(dims, sizes, strict=True):
            coords[dim] = labelled.coords.get(dim, np.arange(size))
    return xr.Dataset(variables, coords=coords)


def held_in_draws(labelled: LabelledProblem, theta: FloatArray, count: int) -> FloatArray:
    """Nuisance parameters that are held, as draws: of a user's own model, which PyMC wants whole, and of no other."""
    return np.broadcast_to(theta, (count, theta.size)) if labelled.users is not None else np.empty((count, 0))


def put(variables: Variables, coords: dict[str, Any], block: WeightBlock, draws: FloatArray, index: IntArray) -> None:
    """A variable's draws under its own name; of a vector only the entries kept, so that no draw is a constant zero."""
    inside = (index >= block.columns.start) & (index < block.columns.stop)
    own, position = draws[..., inside], index[inside] - block.columns.start
    order = np.argsort(position)
    own, position = own[..., order], position[order]
    if not len(position):
        return
    if len(block.shape) == 1:
        dim, labels = block.dim_and_labels()
        variables[block.name] = (("chain", "draw", dim), own)
        coords[dim] = labels[position]
        return
    full = np.zeros((*draws.shape[:2], int(np.prod(block.shape))))
    full[..., position] = own
    dims = block.dims if block.dims else tuple(f"{block.name}_dim_{i}" for i in range(len(block.shape)))
    variables[block.name] = (("chain", "draw", *dims), full.reshape(*draws.shape[:2], *block.shape))
    coords.update(block.coords)


def put_nuisance(variables: Variables, labelled: LabelledProblem, theta: FloatArray, shape: tuple[int, int]) -> None:
    """Draws (S, t) of the nuisance parameters on their own scale, by name."""
    if not theta.shape[1]:
        return
    if labelled.users is None:
        drawn = labelled.unpack(theta.T)
    else:
        rows = [labelled.unpack(row) for row in theta]
        drawn = {name: np.stack([np.asarray(row[name]) for row in rows]) for name in rows[0]}
    for name, values in drawn.items():
        extra = tuple(f"{name}_dim_{i}" for i in range(values.ndim - 1))
        variables[name] = (("chain", "draw", *extra), values.reshape(*shape, *values.shape[1:]))


def finite_logs(densities: FloatArray) -> FloatArray:
    """Log densities at draws, with a number where there is none.

    A draw so far out that its density cannot be computed (a rate beyond the largest number or below the smallest, a
    probability of one to all digits) has a lower one than any other: it counts for nothing, and leaves sums and LOO of
    the others alone.
    """
    return np.where(densities < np.inf, np.maximum(densities, _NOTHING_LEFT), _NOTHING_LEFT)


def of_each_observation(labelled: LabelledProblem, pointwise: FloatArray, shape: tuple[int, int]) -> xr.Dataset:
    """The log-likelihood of each observation at each draw, (S, n)."""
    parts = labelled.observations
    pieces = np.split(pointwise, np.cumsum([np.prod(part.shape, dtype=int) for part in parts])[:-1], axis=1)
    told = [(part, own) for part, own in zip(parts, pieces, strict=True) if part.told]
    variables: Variables = {
        part.name: (("chain", "draw", *part.dims[: len(part.shape)]), finite_logs(own).reshape(*shape, *part.shape))
        for part, own in told
    }
    inside = {dim for part, _ in told for dim in part.dims[: len(part.shape)]}
    labels = {dim: v for part, _ in told for dim, v in part.coords.items() if dim in inside}
    return xr.Dataset(variables, coords={**chain_and_draw(shape), **labels})


def put_fixed(
    variables: Variables,
    labelled: LabelledProblem,
    mean: FloatArray,
    sd: FloatArray,
    index: IntArray,
    theta: FloatArray,
) -> None:
    """Point values of the fixed weights (with their sd) and of the nuisance parameters, under the user's names."""
    for block in labelled.fixed:
        inside = (index >= block.columns.start) & (index < block.columns.stop)
        dims = block.dims if block.dims is not None else tuple(f"{block.name}_dim_{i}" for i in range(len(block.shape)))
        _add(variables, block.name, dims, mean[inside].reshape(block.shape))
        _add(variables, f"{block.name}_sd", dims, sd[inside].reshape(block.shape))
    for name, value in labelled.unpack(theta).items():
        value = np.asarray(value)
        _add(variables, name, tuple(f"{name}_dim_{i}" for i in range(value.ndim)), value)


def _add(variables: Variables, name: str, dims: tuple[str, ...], values: NDArray[Any]) -> None:
    """A variable of the user's under its own name, or beside ours where the name is taken (a dispersion "alpha")."""
    taken = {*variables, *(dim for own, _ in variables.values() for dim in own)}
    variables[name if name not in taken else f"{name}_point"] = (dims, values)


def spread(values: NDArray[Any], index: IntArray, size: int, fill: float | bool = 0.0) -> NDArray[Any]:
    """Values of some of ``size`` basis functions, and ``fill`` for the others."""
    full = np.full(size, fill)
    full[index] = values
    return full


def claimed(claims: Claims, kept: IntArray, size: int) -> Variables:
    """Which basis functions are kept, which of them are relevant, and what else could stand in their place."""
    is_kept = spread(np.ones(len(kept), dtype=bool), kept, size, False)
    term, rival, loss = zip(*claims.exchanges, strict=True) if claims.exchanges else ((), (), ())
    return {
        "kept": (("basis",), is_kept),
        "score": (("basis",), claims.score),
        "chance": (("basis",), claims.chance),
        "relevant": (("basis",), is_kept & (claims.chance <= FALSE_FINDS)),
        "exchange_term": (("exchange",), np.array(term, dtype=np.intp)),
        "exchange_rival": (("exchange",), np.array(rival, dtype=np.intp)),
        "exchange_loss": (("exchange",), np.array(loss, dtype=float)),
    }


def term_labels(labelled: LabelledProblem) -> dict[str, Any]:
    """The column and the class of each basis function, where there are several classes."""
    return {name: ("basis", values) for name, values in labelled.labels.items()}


def groups_named(labelled: LabelledProblem) -> Variables:
    """The group of each basis function, where some share their precision."""
    return {} if labelled.group_of is None else {"group": (("basis",), np.array(labelled.group_of))}


def fixed_names(labelled: LabelledProblem) -> list[str]:
    """One name a fixed weight."""
    names: list[str] = []
    for block in labelled.fixed:
        size = int(np.prod(block.shape))
        names += [block.name] if not block.shape else [f"{block.name}[{i}]" for i in range(size)]
    return names
