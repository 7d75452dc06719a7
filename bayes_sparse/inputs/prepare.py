"""A table of features and a choice of basis become basis functions ready for a named model."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import hstack

from bayes_sparse.common.types import BoolArray, FloatArray, IntArray
from bayes_sparse.inputs import likelihoods
from bayes_sparse.inputs.basis import Basis, check_dense, without_bias
from bayes_sparse.inputs.categories import is_time
from bayes_sparse.inputs.chunks import ChunkedData, chunked_data, is_chunked
from bayes_sparse.inputs.encoding import Encoding, Missing, lost_in
from bayes_sparse.inputs.kernels import StreamedKernels, kernel_matrix
from bayes_sparse.inputs.likelihoods import Likelihood
from bayes_sparse.inputs.rows import read_rows
from bayes_sparse.inputs.table import Table, check_constant, check_size, filled, in_words, labels_of, plain_labels
from bayes_sparse.problem.design import column_moments
from bayes_sparse.problem.sparse_design import Features, as_csc, sparse_moments

__all__ = ["Prepared", "check_reach", "prepare"]

_FARTHEST = 100.0  # offset in logs: a factor of 1e43
_DIGITS = 1e-13  # of the larger of target and offset: what their difference has no digit below
_BLOCK = 2**20  # kernels looked at together
_MANY = 20  # distinct whole numbers, from which on they are hardly classes
_log = logging.getLogger("bayes_sparse")


@dataclass(frozen=True, eq=False)
class Prepared:
    """Everything a named model needs to know about the data.

    Attributes
    ----------
    table : Table
        Features and target with their names.
    y : array (n,)
        Target as numbers; class labels as 0, 1 ...
    classes : array, optional
        The labels behind 0, 1 ...
    likelihood : Likelihood
        Chosen or found.
    basis : Basis
        How features became basis functions.
    Phi : array, sparse array or StreamedKernels (n, M)
        Basis functions before standardising (the user's own array for a linear basis).
    names : list of str
        Name of each basis function.
    shift, scale : array (M,), optional
        ``(Phi - shift) / scale`` is what the prior speaks of.
    input_shift, input_scale : array (p,), optional
        How features were standardised before a kernel was taken.
    kept : bool array (M,)
        Basis functions never pruned.
    weights : array (n,), optional
        Weight of each observation.
    offset : array (n,)
        Known part of the predictor.
    centres : int array (M,), optional
        Rows that kernels sit on, where not every row has one: of rows that are the same the first.
    encodings : tuple of Encoding
        How the columns handed in became those of the table, or of each class's.
    own : list of list of str, optional
        Columns of each class's features, where every class has features of its own: Phi then holds those of the first
        class, of the second ..., and names are "column[class]".
    chunked : ChunkedData, optional
        Rows that lie in chunks. Then there is no Phi, and y and weights are values that stand for all targets less
        their offset, and how often they do.
    """

    table: Table
    y: FloatArray
    classes: NDArray[Any] | None
    likelihood: Likelihood
    basis: Basis
    Phi: Features | StreamedKernels
    names: list[str]
    shift: FloatArray | None
    scale: FloatArray | None
    input_shift: FloatArray | None
    input_scale: FloatArray | None
    kept: NDArray[np.bool_]
    weights: FloatArray | None
    offset: FloatArray
    encodings: tuple[Encoding, ...]
    centres: IntArray | None = None
    own: list[list[str]] | None = None
    chunked: ChunkedData | None = None

    @property
    def several(self) -> bool:
        """One predictor a class, as opposed to one an observation."""
        return self.likelihood.targets == "classes"

    @property
    def unit(self) -> float:
        """Spread of the targets, in whose units weights are; one for a likelihood without a location."""
        if self.likelihood.scale_free:
            return 1.0
        return float(self.likelihood.start(self.unexplained, self.weights)[0])

    @property
    def unexplained(self) -> FloatArray:
        """The targets less their offset, where that is in the same units."""
        return self.y if self.likelihood.scale_free else self.y - self.offset

    @property
    def labels(self) -> NDArray[Any]:
        """The labels of a classification."""
        if self.classes is None:
            raise ValueError(f"A {self.likelihood.name} likelihood has no classes.")
        return self.classes


def prepare(
    data: Any,
    target: str | None,
    likelihood: str | Likelihood,
    basis: Basis,
    keep: str | Sequence[str] | None,
    weights: Any,
    offset: Any,
    missing: Missing = "refuse",
    formula: str | None = None,
) -> Prepared:
    """Read the data, decide the likelihood, expand the basis; that of each class where every class has its own.

    Rows of weight zero are left out of everything, and so are, beside a bias, columns that are constant.
    """
    if is_chunked(data):
        return _in_chunks(chunked_data(data, target, basis, weights, offset, missing, formula), likelihood, basis, keep)
    handed = read_rows(data, target, weights, offset, missing, formula)
    if handed.weights is not None and not handed.weights.all():
        handed = handed.at(np.flatnonzero(handed.weights))
    tables, own = handed.tables, handed.by_class
    made = tables[0].how.formula
    if made is not None and not made["intercept"]:
        basis = without_bias(basis)
    if own:
        if basis.kernel:
            raise ValueError("Features of each class's own take no kernels on the rows: leave out `basis`.")
        likelihood = "categorical" if likelihood == "auto" else likelihood
    y, classes, chosen = _target(tables[0], likelihood)
    if own and chosen.targets != "classes":
        raise ValueError(f"Features of each class's own need likelihood='categorical', not {chosen.name!r}.")
    if own and classes is not None and len(classes) < len(tables):
        raise ValueError("All rows of one of the classes have weight 0: leave out its features too.")
    if handed.offset is not None:
        _check_offset(handed.offset, y, chosen)
    wanted = _wanted(keep)
    parts = [_expand(table, basis, handed.weights, wanted) for table in tables]
    _say_constant([name for part in parts for name in part.table.how.constant])
    columns = [part.names for part in parts]
    names = columns[0]
    if own and classes is not None:
        names = [f"{name}[{label}]" for part, label in zip(columns, classes.tolist(), strict=True) for name in part]
    return Prepared(
        table=parts[0].table,
        y=y,
        classes=classes,
        likelihood=chosen,
        basis=basis,
        Phi=_beside([part.Phi for part in parts]),
        names=names,
        shift=_joined([part.shift for part in parts]),
        scale=_joined([part.scale for part in parts]),
        input_shift=parts[0].input_shift,
        input_scale=parts[0].input_scale,
        kept=_kept(wanted, names, parts[0].table.how),
        weights=handed.weights,
        offset=np.zeros(handed.n) if handed.offset is None else handed.offset,
        encodings=tuple(part.table.how for part in parts),
        centres=parts[0].centres,
        own=columns if own else None,
    )


def _in_chunks(data: ChunkedData, likelihood: str | Likelihood, basis: Basis, keep: Any) -> Prepared:
    """The same for rows in chunks, by what the first pass over them has found."""
    if likelihood != "auto" and likelihoods.resolve(likelihood).targets == "classes":
        raise ValueError("Data in chunks take likelihoods with one predictor per row: fit one class against the rest.")
    y, classes, chosen = _target(data.table, likelihood)
    if data.shifted:
        _check_offset(np.array([data.survey.beside[2]]), np.append(y, y[:1] + 1), chosen)
    values, counts = data.targets(chosen, classes)
    sd, wanted = data.survey.sd, _wanted(keep)
    table, inside = _beside_a_bias(data.table, sd, wanted) if basis.bias else (data.table, np.ones(len(sd), bool))
    _say_constant(table.how.constant)
    places = np.flatnonzero(inside)
    data.chunks.reader = replace(
        data.chunks.reader, inside=None if inside.all() else places, classes=classes, numbers=True
    )
    scale = np.where(sd > 0, sd, 1.0)[places] if basis.standardise else None
    return Prepared(
        table=table,
        y=values,
        classes=classes,
        likelihood=chosen,
        basis=basis,
        Phi=table.X,
        names=table.columns,
        shift=data.survey.mean[places] if basis.bias and basis.standardise else None,
        scale=scale,
        input_shift=None,
        input_scale=None,
        kept=_kept(wanted, table.columns, table.how),
        weights=counts,
        offset=np.zeros(len(values)),
        encodings=(table.how,),
        chunked=data,
    )


def _joined(parts: Sequence[FloatArray | None]) -> FloatArray | None:
    given = [part for part in parts if part is not None]
    return np.concatenate(given) if given else None


def _beside(parts: Sequence[Features | StreamedKernels]) -> Features | StreamedKernels:
    """Matrices side by side, sparse if all of them are; one by itself is not copied."""
    if len(parts) == 1:
        return parts[0]
    sparse = [part for part in parts if not isinstance(part, np.ndarray | StreamedKernels)]
    if len(sparse) == len(parts):
        return as_csc(hstack(sparse))
    return np.hstack([_in_full(part) for part in parts])


def _in_full(part: Features | StreamedKernels) -> FloatArray:
    return np.asarray(part if isinstance(part, np.ndarray) else part.toarray(), dtype=float)


def _target(table: Table, likelihood: str | Likelihood) -> tuple[FloatArray, NDArray[Any] | None, Likelihood]:
    """Target as numbers, class labels if it has any, and the likelihood; asks where two would be defensible."""
    y, name = table.y, table.target
    chosen = _without_doubt(y, name) if likelihood == "auto" else likelihoods.resolve(likelihood)
    if chosen.targets in ("two classes", "classes"):
        codes, classes = labels_of(y, name, several=chosen.targets == "classes")
        return codes, classes, chosen
    if y.dtype.kind not in "fiub":
        _refuse_labels(y, name, chosen)
    numbers = y.astype(float)
    check_size(numbers[:, None], [name], "target", squared=False)
    wrong = chosen.wrong(numbers)
    if wrong:
        raise ValueError(f"The likelihood {chosen.name!r} takes {wrong}; the target {name!r} holds other values.")
    if not chosen.scale_free and np.ptp(numbers) == 0:
        raise ValueError(f"The target {name!r} is constant (always {numbers[0]:g}): there is nothing to explain.")
    return numbers, None, chosen.counted(numbers) if isinstance(chosen, likelihoods.ordinal) else chosen


def _refuse_labels(y: NDArray[Any], name: str, likelihood: Likelihood) -> None:
    if is_time(y):
        raise ValueError(
            f"The target {name!r} holds dates or times: give a number, such as the days since the first one, "
            "(when - when.min()).dt.total_seconds() / 86400 of a pandas column."
        )
    cure = "make them numbers first (pandas.to_numeric)"
    if isinstance(likelihood, likelihoods.ordinal):
        cure = "give their places, 0 for the lowest, as the `cat.codes` of an ordered pandas column has them"
    raise ValueError(f"The target {name!r} holds labels, which the likelihood {likelihood.name!r} cannot take: {cure}.")


def _check_offset(offset: FloatArray, y: FloatArray, likelihood: Likelihood) -> None:
    """Refuse an offset on another scale than the predictor's, and one beside which nothing is left of the target."""
    largest = float(np.abs(offset).max(initial=0.0))
    if likelihood.scale_free:
        if largest > _FARTHEST:
            raise ValueError(
                f"The offset holds values as large as {largest:.3g}, and {likelihood.name!r} takes it on "
                "the scale of its predictor, as logs: give np.log(exposure) in the place of an exposure."
            )
        return
    if largest > 0:
        check_size(offset[:, None], ["offset"], "column", squared=False)
    if np.ptp(y - offset) <= _DIGITS * max(largest, float(np.abs(y).max(initial=0.0))):
        raise ValueError(
            "The target less its offset is constant, or too small beside the offset to be told from rounding errors: "
            "there is nothing to explain."
        )


def _without_doubt(y: NDArray[Any], name: str) -> Likelihood:
    if is_time(y):
        _refuse_labels(y, name, likelihoods.normal())
    y = plain_labels(y)
    distinct = len(np.unique(y))
    if y.dtype.kind == "f" and distinct > 2:
        return likelihoods.normal()
    if y.dtype.kind != "f" and distinct <= 2:
        return likelihoods.bernoulli()
    if y.dtype.kind in "iu" and distinct > _MANY:
        _log.info(
            "The target %r holds whole numbers with %d values, and is taken as normal: likelihood='normal' says so "
            "without this message, 'poisson' and 'negative_binomial' are for counts, 'categorical' for classes.",
            name,
            distinct,
        )
        return likelihoods.normal()
    if y.dtype.kind in "iu":
        what = f"whole numbers with {distinct} values"
        say = (
            "'normal', 'poisson' or 'negative_binomial' for counts, 'ordinal' for levels, or 'categorical' for classes"
        )
    elif y.dtype.kind == "f":
        what, say = f"floats with {distinct} distinct values", "'bernoulli' or 'probit' for two classes, or 'normal'"
    else:
        what = f"{distinct} labels ({in_words(np.unique(y))})"
        say = "'categorical' (the model 'student_multinomial' is for it), or 'bernoulli' after merging them into two"
        if 2 * distinct > len(y):
            say += "; numbers written as words are made numbers by pandas.to_numeric"
    raise ValueError(f"The target {name!r} holds {what}, which can mean several things: say likelihood={say}.")


@dataclass(frozen=True, eq=False)
class _Expanded:
    """Basis functions, their names, what standardises them (or the inputs of a kernel), and what they are made of."""

    table: Table
    Phi: Features | StreamedKernels
    names: list[str]
    shift: FloatArray | None = None
    scale: FloatArray | None = None
    input_shift: FloatArray | None = None
    input_scale: FloatArray | None = None
    centres: IntArray | None = None


def _expand(table: Table, basis: Basis, weights: FloatArray | None, keep: list[str]) -> _Expanded:
    table = _filled(table, weights)
    X = check_dense(table.X, basis)
    check_size(X, table.columns, "column", squared=True)
    if basis.kernel:
        return _kernels(table, basis, weights)
    Phi: Any = basis.matrix(X, None)
    names = basis.names(table.columns, list(table.rows)) or [f"f{j}" for j in range(Phi.shape[1])]
    if Phi is not X:
        check_size(Phi, names, "basis function", squared=basis.standardise)
    mean, sd = (column_moments if isinstance(Phi, np.ndarray) else sparse_moments)(Phi, weights)
    if basis.bias and basis.takes_sparse:  # the basis functions are the columns
        table, inside = _beside_a_bias(table, sd, keep)
        if not inside.all():
            Phi, names, mean, sd = table.X, table.columns, mean[inside], sd[inside]
    elif basis.bias:
        check_constant([names[j] for j in np.flatnonzero(sd == 0)])
    if not basis.standardise:
        return _Expanded(table, Phi, names)
    # Without a bias, centring would change the model; scaling does not.
    return _Expanded(table, Phi, names, mean if basis.bias else None, np.where(sd > 0, sd, 1.0))


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
    return float(np.dot(own, np.where(known, values, 0.0)) / own.sum()) if own.any() else np.nan


def _beside_a_bias(table: Table, sd: FloatArray, keep: list[str]) -> tuple[Table, BoolArray]:
    """The table without constant columns, and without one level of each category, which the bias stands for."""
    how, names = table.how, np.array(table.columns)
    inside = sd > 0
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


def _say_constant(names: list[str]) -> None:
    if names:
        _log.info(
            "Constant columns say nothing beside a bias, and are left out: %s.",
            in_words(dict.fromkeys(names)),
        )


def _kernels(table: Table, basis: Basis, weights: FloatArray | None) -> _Expanded:
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
    return _Expanded(
        table, kernel_matrix(basis, X, centres), names, input_shift=shift, input_scale=scale, centres=centres
    )


def check_reach(data: Prepared) -> None:
    """Refuse kernels that tell nothing of one row to another: too large, or of no use at their width."""
    if not data.basis.kernel:
        return
    if not getattr(data.basis, "local", False):  # a local one is 1 on its own row, and nowhere larger
        check_size(data.Phi, data.names, "kernel", squared=False)
    same, alone = _same_or_alone(data.Phi) if len(data.names) > 1 else (False, False)
    if same:
        raise ValueError(
            "The kernels are the same at all rows, which lie too close together to be told apart: standardise=True "
            "gives the features sd 1, or give a smaller width."
        )
    if alone:
        raise ValueError(
            "No kernel reaches from one row to another, which lie too far apart: standardise=True gives the features "
            "sd 1, or give a larger width."
        )


def _same_or_alone(kernels: Any) -> tuple[bool, bool]:
    """Whether all kernels are the same at all rows, and whether none is above zero but on its own row."""
    n, m = kernels.shape
    same, alone, step, first = True, True, max(1, _BLOCK // m), kernels[:1, :1]
    for start in range(0, n, step):
        block = kernels[start : start + step]
        same = same and bool(np.all(block == first))
        alone = alone and np.count_nonzero(block) == len(block)
        if not (same or alone):  # nearly always after the first few rows
            break
    return same, alone


def _wanted(keep: Any) -> list[str]:
    """Names of what is never pruned."""
    if isinstance(keep, str):
        return [keep]
    if keep is not None and not isinstance(keep, Iterable):
        raise TypeError(f"`keep` is the name of a basis function or several of them in a list, not {keep!r}.")
    return [str(name) for name in ([] if keep is None else keep)]


def _kept(wanted: list[str], names: list[str], how: Encoding) -> NDArray[np.bool_]:
    """Basis functions that are never pruned; the name of a category means all of its levels."""
    if not wanted:
        return np.zeros(len(names), dtype=bool)
    owners = {how.owner(name) for name in names}
    unknown = [k for k in wanted if k not in names and k not in owners]
    if unknown:
        shown = ", ".join(names[:6]) + (" ..." if len(names) > 6 else "")
        raise ValueError(f"`keep` names {unknown[0]!r}, which is not a basis function; there are {shown}.")
    return np.array([name in wanted or how.owner(name) in wanted for name in names])
