"""A table of features and a choice of basis become basis functions ready for a named model."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import hstack

from bayes_sparse.common.types import FloatArray, IntArray
from bayes_sparse.inputs import likelihoods
from bayes_sparse.inputs.basis import Basis, without_bias
from bayes_sparse.inputs.chunks import ChunkedData, chunked_data, is_chunked
from bayes_sparse.inputs.encoding import Encoding, Missing
from bayes_sparse.inputs.expanded import beside_a_bias, expand, say_constant
from bayes_sparse.inputs.kernels import StreamedKernels
from bayes_sparse.inputs.likelihoods import Likelihood
from bayes_sparse.inputs.rows import read_rows
from bayes_sparse.inputs.table import Table, check_size
from bayes_sparse.inputs.target import check_offset, target_of
from bayes_sparse.problem.sparse_design import Features, as_csc

__all__ = ["Prepared", "check_reach", "prepare"]

_BLOCK = 2**20  # kernels looked at together
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
    y, classes, chosen = target_of(tables[0], likelihood)
    if own and chosen.targets != "classes":
        raise ValueError(f"Features of each class's own need likelihood='categorical', not {chosen.name!r}.")
    if own and classes is not None and len(classes) < len(tables):
        raise ValueError("All rows of one of the classes have weight 0: leave out its features too.")
    if handed.offset is not None:
        check_offset(handed.offset, y, chosen)
    wanted = _wanted(keep)
    parts = [expand(table, basis, handed.weights, wanted) for table in tables]
    say_constant([name for part in parts for name in part.table.how.constant])
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
    y, classes, chosen = target_of(data.table, likelihood)
    if data.shifted:
        check_offset(np.array([data.survey.beside[2]]), np.append(y, y[:1] + 1), chosen)
    values, counts = data.targets(chosen, classes)
    sd, wanted = data.survey.sd, _wanted(keep)
    table, inside = beside_a_bias(data.table, sd, wanted) if basis.bias else (data.table, np.ones(len(sd), bool))
    say_constant(table.how.constant)
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
