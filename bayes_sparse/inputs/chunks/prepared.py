"""Data in chunks prepared for a named model: a first pass says all that is needed to know before fitting."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayes_sparse.common.types import FloatArray
from bayes_sparse.inputs.basis import Basis
from bayes_sparse.inputs.chunks.dask_chunks import DaskChunks
from bayes_sparse.inputs.chunks.sources import opened
from bayes_sparse.inputs.chunks.survey import Survey, merged, survey_of
from bayes_sparse.inputs.encoding import Encoding
from bayes_sparse.inputs.likelihoods import Likelihood
from bayes_sparse.inputs.table import Table, check_size

__all__ = ["ChunkedData", "chunked_data"]

_KERNEL = "Kernels on the rows need every row at every other: take a sample of a few thousand rows into memory for them"


class ChunkedData:
    """What the first pass found.

    Attributes
    ----------
    chunks : DaskChunks
        Rows as they are fitted.
    survey : Survey
        Of all of them.
    table : Table
        Names, without the rows.
    """

    def __init__(self, chunks: DaskChunks, survey: Survey, table: Table, weighted: bool, shifted: bool) -> None:
        self.chunks, self.survey, self.table = chunks, survey, table
        self.weighted, self.shifted = weighted, shifted

    @property
    def sd(self) -> FloatArray:
        """Of each column that is fitted."""
        inside = self.chunks.reader.inside
        return self.survey.sd if inside is None else self.survey.sd[inside]

    def targets(self, likelihood: Likelihood, classes: NDArray[Any] | None) -> tuple[FloatArray, FloatArray]:
        """Values that stand for all targets less their offset, and how often: what a likelihood is started from."""
        survey = self.survey
        if classes is not None:
            return np.arange(float(len(classes))), survey.counts
        if likelihood.normal or (not likelihood.scale_free and self.shifted):
            return survey.targets()
        return survey.values.astype(float), survey.counts


def chunked_data(
    data: Any, target: str | None, basis: Basis, weights: Any, offset: Any, missing: str, formula: str | None
) -> ChunkedData:
    """Open the data and look at all rows once."""
    if basis.kernel or not basis.takes_sparse:
        raise ValueError(f"Data in chunks take basis='linear'. {_KERNEL}, or make the columns with dask first.")
    if formula is not None or missing == "mean":
        raise ValueError(
            "Data in chunks take plain columns of numbers: leave out `formula`, and missing='mean' in favour of 'drop'."
        )
    found = opened(data, target, weights, offset, drop=missing == "drop")
    chunks, names = found.chunks, found.chunks.reader.names
    if not names or not chunks.pieces:
        raise ValueError(f"The data are empty: there are no {'feature columns' if chunks.pieces else 'chunks'}.")
    survey = chunks.fold(survey_of, merged)
    if not isinstance(survey, Survey):
        raise ValueError("The data are empty: there are no rows, or each has a missing value or weight 0.")
    survey.check(names, found.target)
    chunks.lengths = survey.lengths
    check_size(np.stack([survey.low, survey.high]), names, "column", squared=True)
    if chunks.n <= len(names) + 1:
        raise ValueError(
            f"Data in chunks are for many more rows than columns, and these have {chunks.n:,} rows of {len(names):,} "
            "columns: take them into memory with .compute()."
        )
    rows: Any = range(chunks.n)  # their number; labels would be as long as the data
    table = Table(np.empty((0, len(names))), names, rows, found.dim, survey.values, found.target, Encoding(names))
    return ChunkedData(chunks, survey, table, found.weighted, found.shifted)
