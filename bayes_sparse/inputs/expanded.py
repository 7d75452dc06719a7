"""The columns of a table become basis functions: filled in, without what a bias stands for, standardised."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bayes_sparse.common.types import BoolArray, FloatArray, IntArray
from bayes_sparse.inputs.basis import Basis, check_dense
from bayes_sparse.inputs.encoding import lost_in
from bayes_sparse.inputs.kernels import StreamedKernels, kernel_matrix
from bayes_sparse.inputs.table import Table, check_constant, check_size, filled, in_words
from bayes_sparse.problem.design import column_moments
from bayes_sparse.problem.sparse_design import Features, as_csc, sparse_moments

__all__ = ["Expanded", "beside_a_bias", "expand", "say_constant"]

_log = logging.getLogger("bayes_sparse")


@dataclass(frozen=True, eq=False)
class Expanded:
    """Basis functions, their names, what standardises them (or the inputs of a kernel), and what they are made of."""

    table: Table
    Phi: Features | StreamedKernels
    names: list[str]
    shift: FloatArray | None = None
    scale: FloatArray | None = None
    input_shift: FloatArray | None = None
    input_scale: FloatArray | None = None
    centres: IntArray | None = None


def expand(table: Table, basis: Basis, weights: FloatArray | None, keep: list[str]) -> Expanded:
    """The basis functions of a table; what is to be kept may not be constant beside a bias."""
    table = _filled(table, weights)
    X = check_dense(table.X, basis)
    check_size(X, table.columns, "column", squared=True)
    if basis.kernel:
        return _kernels(table, basis, weights)
    Phi: Any = basis.matrix(X, None)
    labels: Any = table.rows  # of very many rows a list takes as long as a look at all of them
    names = basis.names(table.columns, labels) or [f"f{j}" for j in range(Phi.shape[1])]
    if Phi is not X:
        check_size(Phi, names, "basis function", squared=basis.standardise)
    mean, sd = (column_moments if isinstance(Phi, np.ndarray) else sparse_moments)(Phi, weights)
    if basis.bias and basis.takes_sparse:  # the basis functions are the columns
        table, inside = beside_a_bias(table, sd, keep)
        if not inside.all():
            Phi, names, mean, sd = table.X, table.columns, mean[inside], sd[inside]
    elif basis.bias:
        check_constant([names[j] for j in np.flatnonzero(sd == 0)])
    if not basis.standardise:
        return Expanded(table, Phi, names)
    # Without a bias, centring would change the model; scaling does not.
    return Expanded(table, Phi, names, mean if basis.bias else None, np.where(sd > 0, sd, 1.0))


def _filled(table: Table, weights: FloatArray | None) -> Table:
    """The table with means where values are missing, and the means that new rows may need in its encoding."""
    how = table.how
    if how.missing != "mean" and not how.levels:
        return table
    lost = lost_in(table.X, table.columns)[1]
    means = {}
    for j, name in enumerate(table.columns):
        if how.missing == "mean" or how.owner(name) in how.levels:
            means[name] = _mean(table.X[:, [j]], weights, lost.get(name, 0))
    never = [name for name, mean in means.items() if np.isnan(mean)]
    if never:
        raise ValueError(f"Column {never[0]!r} has no value in any row, so that none can be filled in: leave it out.")
    X = filled(table.X, np.array([means.get(name, np.nan) for name in table.columns]))
    return replace(table, X=X, encoding=replace(how, means=means))


def _mean(column: Any, weights: FloatArray | None, lost: int) -> float:
    """Of the values of one column that are not missing."""
    values = np.ravel(column if isinstance(column, np.ndarray) else column.toarray()).astype(float)
    known = ~np.isnan(values) if lost else np.ones(len(values), dtype=bool)
    own = known if weights is None else weights * known
    return float(np.dot(own / own.sum(), np.where(known, values, 0.0))) if own.any() else np.nan


def beside_a_bias(table: Table, sd: FloatArray, keep: list[str]) -> tuple[Table, BoolArray]:
    """The table without constant columns, and without one level of each category, which the bias stands for."""
    how, inside = table.how, sd > 0
    if not how.levels and inside.all():
        return table, inside
    names = np.array(table.columns)
    check_constant([str(name) for name in names[~inside] if name in keep])
    # A level that no row has is no column of the user's that is constant.
    constant = [str(name) for name in names[~inside]]
    reference = dict(how.reference)
    for source in how.levels:
        own = how.indicators(source)
        found = np.flatnonzero(inside & np.isin(names, own))
        if source in reference or len(own) < len(how.levels[source]) or not len(found):
            continue
        inside[found[0]] = False
        reference[source] = how.levels[source][own.index(str(names[found[0]]))]
    if not inside.any():
        raise ValueError("Every column is constant: there is nothing to explain the target by.")
    if inside.all():
        return table, inside
    X = table.X[:, inside] if isinstance(table.X, np.ndarray) else as_csc(table.X[:, np.flatnonzero(inside)])
    how = replace(how, constant=constant, reference=reference)
    return replace(table, X=X, columns=names[inside].tolist(), encoding=how), inside


def say_constant(names: list[str]) -> None:
    """Which columns are left out."""
    if names:
        _log.info(
            "Constant columns say nothing beside a bias, and are left out: %s.",
            in_words(dict.fromkeys(names)),
        )


def _kernels(table: Table, basis: Basis, weights: FloatArray | None) -> Expanded:
    """One kernel on every row, on rows that are the same one for all: so a row twice is a row of weight two."""
    X = np.ascontiguousarray(table.X, dtype=float)
    shift, scale = None, None
    if basis.standardise:
        shift, scale = column_moments(X, weights)
        scale = np.where(scale > 0, scale, 1.0)
        X = (X - shift) / scale
    first = np.sort(np.unique(np.asarray(table.X), axis=0, return_index=True)[1])
    centres = first if len(first) < table.n else None
    names = basis.names(table.columns, list(table.rows[first]))
    return Expanded(
        table, kernel_matrix(basis, X, centres), names, input_shift=shift, input_scale=scale, centres=centres
    )
