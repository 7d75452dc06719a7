"""What named models share: the problem behind them, and what is stored of it."""

from __future__ import annotations

import itertools
import logging
from dataclasses import asdict, fields, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from bayes_sparse.common.checks import positive
from bayes_sparse.common.types import FloatArray, IntArray
from bayes_sparse.inputs import basis as bases
from bayes_sparse.inputs.at_data import LikelihoodAtData, LikelihoodOfRows
from bayes_sparse.inputs.chunks import ChunkedData, DaskChunks
from bayes_sparse.inputs.encoding import Encoding
from bayes_sparse.inputs.likelihoods import Likelihood, bernoulli, categorical
from bayes_sparse.inputs.prepare import Prepared
from bayes_sparse.problem.chunked import (
    ChunkedDesign,
    ChunkedProblem,
    CondensedProblem,
    RowSource,
    RowVector,
    Standard,
    condensed,
)
from bayes_sparse.problem.classes import ClassDesign, ClassProblem
from bayes_sparse.problem.design import column_moments
from bayes_sparse.problem.labelled import LabelledProblem, WeightBlock
from bayes_sparse.problem.likelihood_check import LikelihoodCheck
from bayes_sparse.problem.problem import Problem
from bayes_sparse.problem.sparse_design import make_design, sparse_moments
from bayes_sparse.problem.surfaces import Softmax

__all__ = [
    "bias_sd",
    "class_slices",
    "global_scale",
    "grouped_by_column",
    "kept_precision",
    "kept_weights",
    "named_problem",
    "weight_names",
]

_CHECKED_ROWS = 10**6  # of data in chunks, whose residuals are looked at
_log = logging.getLogger("bayes_sparse")


def named_problem(data: Prepared, name: str, wide: float | None) -> LabelledProblem:
    """What the evidence methods fit; ``wide`` is the sd of the bias's prior, None for the likelihood's own."""
    sd = bias_sd(data, wide)
    problem = _searched(data, sd)
    w, bias = _blocks(data)
    pointwise = LikelihoodAtData(data.likelihood, data.y)
    rows = data.chunked
    return LabelledProblem(
        search=problem,
        other=_surface(problem) if isinstance(problem, ClassProblem) else None,
        y=data.y if rows is None else rows.chunks.array("y"),
        sparse=(w,),
        fixed=(bias,) if problem.design.q else (),
        names=weight_names(data),
        observed=data.table.target,
        obs_dim=data.table.obs_dim,
        obs=data.table.rows if rows is None else None,
        unpack=pointwise.unpack,
        settings={
            "model": name,
            "bias_sd": sd,
            "likelihood": {"name": data.likelihood.name, **asdict(data.likelihood)},
            "basis": bases.settings(data.basis),
            "columns": data.table.columns if data.own is None else data.own,
            **_encodings(data),
        },
        shift=_full(data, data.shift),
        scale=_full(data, data.scale),
        labels=_labels(data),
        constant_data=_stored(data),
        interchangeable=data.basis.kernel,
        scale_free=data.likelihood.scale_free,
        classes=data.classes is not None or hasattr(data.likelihood, "trials"),
        check=pointwise.check if rows is None else partial(_checked_in_chunks, data.likelihood),
        passes=None if rows is None else partial(getattr, rows.chunks, "passes"),
    )


def grouped_by_column(labelled: LabelledProblem, data: Prepared) -> LabelledProblem:
    """The same with one precision for all levels of a category, or all columns of a formula's term, of each class."""
    owners = [data.encodings[0].owner(name) for name in data.names]
    classes = data.labels.tolist() if data.several and data.own is None else [None]
    names = [owner if label is None else f"{owner}[{label}]" for label in classes for owner in owners]
    if len({*names}) == len(names):
        return labelled
    groups = np.unique(names, return_inverse=True)[1]
    search: Any = labelled.search
    groups = np.append(groups, groups.max() + 1 + np.arange(search.design.q))
    return replace(labelled, search=replace(search, groups=groups), group_names=names)


def _encodings(data: Prepared) -> dict[str, Any]:
    """How the columns handed in became these, one for all or one a class; nothing where they are the same."""
    columns = [data.table.columns] if data.own is None else data.own
    if all(how == Encoding(own) for how, own in zip(data.encodings, columns, strict=True)):
        return {}
    # `asdict` would copy every name of very many columns by itself.
    return {"encodings": [{own.name: getattr(how, own.name) for own in fields(how)} for how in data.encodings]}


def global_scale(data: Prepared, relevant: float | None) -> float:
    """Scale of the horseshoe's tau where so many basis functions (of each class) are expected to matter."""
    M, n = int((~data.kept).sum()), data.table.n if data.weights is None else float(data.weights.sum())
    if data.own is not None:
        M = M // len(data.own)
    m = min(5.0, M / 2) if relevant is None else relevant
    if m >= M > 0:
        raise ValueError(f"`relevant` is how many of the {M} basis functions are expected to matter, got {m:g}.")
    return float(m / max(M - m, 1e-300) * data.likelihood.pseudo_sd(data.unexplained, data.weights) / np.sqrt(n))


def bias_sd(data: Prepared, wide: float | None) -> float:
    """Sd of the bias's normal prior."""
    if wide is None:
        return data.likelihood.bias_sd(data.unexplained, data.weights)
    return np.inf if wide == np.inf else positive("bias_sd", wide)


def kept_precision(data: Prepared, sd: float) -> FloatArray:
    """Columns the user keeps have the bias's wide prior, in units of their own size."""
    if not data.kept.any():
        return np.empty(0)
    if data.scale is not None:
        size = np.ones(data.kept.sum())
    elif data.chunked is not None:
        size = data.chunked.sd[data.kept]
    elif issparse(data.Phi):
        size = sparse_moments(data.Phi[:, data.kept], data.weights)[1]
    else:
        size = column_moments(data.Phi[:, data.kept], data.weights)[1]
    return np.where(size > 0, size, 1.0) ** 2 / sd**2


def kept_weights(data: Prepared, sd: float) -> tuple[NDArray[np.bool_], FloatArray]:
    """Which weights of all classes the user keeps, and their precisions; zero for the others."""
    precision = np.zeros(len(data.names))
    precision[data.kept] = kept_precision(data, sd)
    times = len(weight_names(data)) // len(data.names)
    return np.tile(data.kept, times), np.tile(precision, times)


def _some_rows(data: Prepared, extra: FloatArray | None, sd: float, rows: IntArray) -> Problem:
    own = None if extra is None else extra[rows]
    weights = None if data.weights is None else data.weights[rows]
    part = replace(data, Phi=data.Phi[rows], y=data.y[rows], offset=data.offset[rows], weights=weights)
    return _problem(part, own, sd)


def _some_chunked_rows(data: Prepared, chunks: DaskChunks, sd: float, rows: IntArray) -> Problem:
    chunk = chunks.rows(rows)
    offset = np.zeros(len(rows)) if chunk.offset is None else chunk.offset
    part = replace(data, Phi=chunk.X, y=chunk.y, offset=offset, weights=chunk.weights, chunked=None)
    return _problem(part, np.ones((len(rows), 1)) if data.basis.bias else None, sd)


def _searched(data: Prepared, sd: float) -> Problem | ClassProblem:
    """What an evidence method sees: rows in memory, of several classes, or in chunks."""
    if data.chunked is not None:
        return _chunked_problem(data, data.chunked, sd)
    extra = np.ones((data.table.n, 1)) if data.basis.bias else None
    return _class_problem(data, extra, sd) if data.several else _problem(data, extra, sd)


def _chunked_problem(data: Prepared, rows: ChunkedData, sd: float) -> Problem:
    """Of a normal likelihood a few rows that stand for all; of others products by passes over the chunks."""
    M, likelihood = len(data.names), data.likelihood
    standard = Standard(M, data.shift, data.scale, data.basis.bias)
    source = RowSource(rows.chunks, standard, LikelihoodOfRows(likelihood), rows.weighted)
    log_start = np.log(likelihood.start(data.unexplained, data.weights))
    q = standard.width - M
    common: dict[str, Any] = {
        "free": np.append(~data.kept, np.zeros(q, dtype=bool)),
        "fixed_precision": np.append(kept_precision(data, sd), np.full(q, sd**-2.0)),
        "theta": log_start,
        "theta_bounds": likelihood.bounds(log_start),
        "normal": likelihood.normal,
        "unit": data.unit,
        "trials": float(getattr(likelihood, "trials", 1)),
        "observations": rows.survey.total,
    }
    if not likelihood.normal:
        none: Any = None
        lazy: Any = ChunkedDesign(source, M)
        start = partial(_some_chunked_rows, data, rows.chunks, sd)
        return ChunkedProblem(lazy, none, pointwise=none, offset=none, some_rows=start, **common)
    design, t = condensed(source, M)
    pointwise = LikelihoodAtData(likelihood, t)
    return CondensedProblem(design, t, pointwise=pointwise, offset=np.zeros(len(t)), source=source, **common)


def _problem(data: Prepared, extra: FloatArray | None, sd: float) -> Problem:
    design = make_design(data.Phi, data.shift, data.scale, extra)
    log_start = np.log(data.likelihood.start(data.unexplained, data.weights))
    pointwise = LikelihoodAtData(data.likelihood, data.y)
    return Problem(
        design=design,
        y=data.y,
        free=np.append(~data.kept, np.zeros(design.q, dtype=bool)),
        fixed_precision=np.append(kept_precision(data, sd), np.full(design.q, sd**-2.0)),
        pointwise=pointwise,
        many=pointwise.many,
        offset=data.offset,
        weights=data.weights,
        theta=log_start,
        theta_bounds=data.likelihood.bounds(log_start),
        normal=data.likelihood.normal,
        unit=data.unit,
        trials=float(getattr(data.likelihood, "trials", 1)),
        some_rows=partial(_some_rows, data, extra, sd),
    )


def _class_problem(data: Prepared, extra: FloatArray | None, sd: float) -> ClassProblem:
    if data.offset.any():
        raise ValueError("With several classes there is no `offset`: leave it out.")
    C = len(data.labels)
    if data.own is None:
        designs = [make_design(data.Phi, data.shift, data.scale, extra)] * C
    else:
        designs = [
            make_design(
                data.Phi[:, own],
                None if data.shift is None else data.shift[own],
                None if data.scale is None else data.scale[own],
                extra,
            )
            for own in class_slices(data)
        ]
    design = ClassDesign(tuple(designs))
    assert isinstance(data.likelihood, categorical)
    kept, precision = kept_weights(data, sd)
    fixed = np.append(precision[kept], np.full(design.q, sd**-2.0))
    return ClassProblem(design, data.y.astype(int), fixed, data.weights, kept, data.likelihood.link, _logistic)


def _surface(problem: ClassProblem) -> Softmax | None:
    """What one-step methods see: features that all classes share, none of them kept."""
    design = problem.design
    if not design.shared or (problem.kept is not None and problem.kept.any()):
        return None
    return Softmax(design.designs[0], problem.y, design.classes, problem.fixed_precision, problem.weights)


def class_slices(data: Prepared) -> list[slice]:
    """Which of the columns are each class's, where every class has its own."""
    assert data.own is not None
    starts = np.cumsum([0, *(len(own) for own in data.own)]).tolist()
    return [slice(start, stop) for start, stop in itertools.pairwise(starts)]


def _blocks(data: Prepared) -> tuple[WeightBlock, WeightBlock]:
    """The weights, those of several classes one after the other, and the bias, one a class."""
    names = weight_names(data)
    M = len(names)
    w = WeightBlock("w", (M,), ("basis",), {"basis": np.array(names)}, slice(0, M), np.zeros(M))
    if not data.several:
        return w, WeightBlock("bias", (), (), {}, slice(M, M + 1), np.zeros(()))
    C = len(data.labels)
    return w, WeightBlock("bias", (C,), ("class",), {"class": data.labels}, slice(M, M + C), np.zeros(C))


def weight_names(data: Prepared) -> list[str]:
    """One name a weight: "column", or "column[class]" where there are several classes."""
    if not data.several or data.own is not None:
        return data.names
    return [f"{name}[{label}]" for label in data.labels.tolist() for name in data.names]


def _labels(data: Prepared) -> dict[str, NDArray[Any]]:
    """Which column and which class each weight belongs to, where there are several classes."""
    if not data.several:
        return {}
    columns = [data.names] * len(data.labels) if data.own is None else data.own
    return {
        "of_column": np.array([name for own in columns for name in own]),
        "of_class": np.repeat(data.labels, [len(own) for own in columns]),
    }


def _full(data: Prepared, values: FloatArray | None) -> FloatArray | None:
    """A value a column for every weight: features that the classes share stand once for each."""
    if values is None or not data.several or data.own is not None:
        return values
    return np.tile(values, len(data.labels))


def _logistic(y: FloatArray) -> LikelihoodAtData:
    return LikelihoodAtData(bernoulli(), y)


def _checked_in_chunks(
    likelihood: Likelihood, eta: RowVector, theta: FloatArray, used: float
) -> LikelihoodCheck | None:
    """What the residuals say of the likelihood: all of them, or evenly spaced ones where there are very many."""
    y, at = eta.source.some(eta, _CHECKED_ROWS)
    return likelihood.check(y, at, used * len(y) / len(eta), *np.exp(theta))


def _stored(data: Prepared) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
    """Arrays that prediction needs: how inputs were standardised, and the training rows under the kernels."""
    stored: dict[str, tuple[tuple[str, ...], np.ndarray]] = {}
    if data.classes is not None:
        stored["classes"] = (("class",), data.classes)
    rows = data.chunked
    if data.weights is not None and rows is None:
        stored["weights"] = ((data.table.obs_dim,), data.weights)
    if data.offset.any():
        stored["offset"] = ((data.table.obs_dim,), data.offset)
    for name, there in (("weights", rows and rows.weighted), ("offset", rows and rows.shifted)):
        if rows is not None and there:
            stored[name] = ((data.table.obs_dim,), rows.chunks.array(name))
    if data.scale is not None:
        full = _full(data, data.scale)
        assert full is not None
        stored["basis_scale"] = (("basis",), full)
    if data.basis.kernel:
        stored["X"] = ((data.table.obs_dim, "feature"), np.asarray(data.table.X, dtype=float))
        if data.centres is not None:
            stored["row_of_centre"] = (("centre",), data.centres)
        if data.input_shift is not None and data.input_scale is not None:
            stored["input_shift"] = (("feature",), data.input_shift)
            stored["input_scale"] = (("feature",), data.input_scale)
        if getattr(data.basis, "local", False):
            stored["far_below"] = ((), np.asarray(bases.far_below(data.Phi, data.centres)))
    return stored
