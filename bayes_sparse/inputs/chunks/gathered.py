"""Some columns of data in chunks, taken into memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from bayes_sparse.inputs.chunks.sources import ChunkedFrame, opened
from bayes_sparse.problem.chunked import Chunk

__all__ = ["gathered", "size_of"]

_MOST_BYTES = 2 * 10**9  # that are taken into memory


def size_of(data: Any) -> str:
    """Rows and columns in words, as far as they are known without reading."""
    X = data[0] if isinstance(data, tuple) else data.frame if isinstance(data, ChunkedFrame) else data
    shape: tuple[Any, ...] = getattr(X, "shape", ())
    if len(shape) == 2 and all(isinstance(size, int | np.integer) for size in shape):
        return f"{shape[0]:,} x {shape[1]:,}, {8 * shape[0] * shape[1] / 1e9:.3g} GB"
    return "in chunks of unknown size"


@dataclass(frozen=True)
class _Taken:
    at: tuple[int, ...]

    def __call__(self, chunk: Chunk) -> list[Any]:
        return [[np.asarray(chunk.X[:, list(self.at)])], [chunk.y], [chunk.weights], [chunk.offset]]


def _longer(one: list[list[Any]], other: list[list[Any]]) -> list[list[Any]]:
    return [a + b for a, b in zip(one, other, strict=True)]


def _rows(chunk: Chunk) -> int:
    return len(chunk.y)


def gathered(handed: Any, names: list[str]) -> tuple[pd.DataFrame, pd.Series[Any], dict[str, Any]]:
    """Features, target, and weights and offset, of all rows; refused where they are too large."""
    found = opened(handed.data, handed.target, handed.weights, handed.offset, drop=handed.missing == "drop")
    there = found.chunks.reader.names
    absent = [name for name in names if name not in there]
    if absent or not names:
        raise ValueError(
            f"The fit of `keep_columns` keeps {absent[0]!r}, which these data have not."
            if absent
            else "The fit of `keep_columns` keeps no column: there is nothing to sample."
        )
    n = found.chunks.fold(_rows, int.__add__)
    if 8 * n * len(names) > _MOST_BYTES:
        raise ValueError(
            f"The {len(names)} columns kept of {n:,} rows are {8 * n * len(names) / 1e9:.3g} GB, more than NUTS can "
            "work with: sample some of the rows, X[::100]; so many leave little to be said by an exact posterior."
        )
    taken = found.chunks.fold(_Taken(tuple(there.index(name) for name in names)), _longer)
    X, y, weights, offset = (None if part[0] is None else np.concatenate(part) for part in taken)
    beside = {"weights": weights, "offset": offset}
    return pd.DataFrame(X, columns=names), pd.Series(y, name=found.target), beside
