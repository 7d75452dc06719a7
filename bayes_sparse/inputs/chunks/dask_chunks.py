"""Chunks of rows that dask holds or reads; a pass is one small graph, and dask alone decides where it runs."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, reduce
from importlib import import_module
from operator import attrgetter
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from bayes_sparse.common.types import IntArray
from bayes_sparse.inputs.table import in_words
from bayes_sparse.problem.chunked.passes import Chunk, Narrow

__all__ = ["DaskChunks", "Reader", "need_dask"]

_FAN = 8  # answers merged by one task
_SETS = 16  # of columns whose pieces are remembered

type Narrowed = Callable[[list[str]], tuple[list[tuple[Any, ...]], Callable[..., tuple[Any, Any, Any, Any]]]]


def need_dask(module: str = "dask") -> Any:
    """The library or a part of it, or a sentence."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError("Data in chunks need dask: pip install 'bayes_sparse[dask]'.") from error


@dataclass(frozen=True, eq=False)
class Reader:
    """How a piece of what was handed in becomes a chunk of numbers, on the worker that has it.

    Attributes
    ----------
    parts : callable
        From a piece to features, targets, weights and offset (the last two None where there are none).
    names : list of str
        Of the features.
    inside : int array
        Those that are fitted, of all that were handed in.
    drop : bool
        Whether rows with missing values are left out.
    classes : array, optional
        Labels of the targets, which become 0, 1 ...
    numbers : bool
        Whether the targets become floats; as they are for a first look.
    narrow : int array, optional
        Places of the features that there are, where they are some of those fitted.
    """

    parts: Callable[..., tuple[Any, Any, Any, Any]]
    names: list[str]
    inside: NDArray[np.intp] | None = None
    drop: bool = False
    classes: NDArray[Any] | None = None
    numbers: bool = False
    narrow: NDArray[np.intp] | None = None

    def __call__(self, *piece: Any) -> Chunk:
        """Rows that count."""
        X, y, weights, offset = self.parts(*piece)
        sizes = {len(part) for part in (X, y, weights, offset) if part is not None}
        if len(sizes) > 1:
            raise ValueError(f"X, y, weights and offset of a chunk have {sorted(sizes)} rows; they must be as many.")
        if X.dtype.kind not in "fiub":
            raise ValueError(f"Columns in chunks must be numbers, and one of {in_words(self.names)} holds {X.dtype}.")
        weights, offset = (None if part is None else np.asarray(part, dtype=float) for part in (weights, offset))
        kept = np.ones(len(y), dtype=bool) if weights is None else weights != 0
        if self.drop:
            for part in (X, y, weights, offset):
                if part is not None and part.dtype.kind == "f":
                    lost = np.isnan(part)
                    kept &= ~(lost.any(axis=1) if part.ndim == 2 else lost)
        if not kept.all():
            X, y, weights, offset = (None if part is None else part[kept] for part in (X, y, weights, offset))
        if self.inside is not None:
            X = X[:, self.inside]
        if self.classes is not None:
            y = np.searchsorted(self.classes, y)
        features: Any = X if self.narrow is None else Narrow(X, self.narrow)
        return Chunk(features, y.astype(float) if self.numbers else y, offset, weights)


class DaskChunks:
    """Pieces that dask computes, one for each chunk.

    Parameters
    ----------
    pieces : list of tuple of Delayed
        One a chunk, as `Reader.parts` takes it.
    reader : Reader
        What makes numbers of them.
    narrowed : callable, optional
        ``narrowed(names)`` gives pieces with some of the features, and what takes them apart: files that hold their
        columns apart are read in part.
    """

    def __init__(self, pieces: list[tuple[Any, ...]], reader: Reader, narrowed: Narrowed | None = None) -> None:
        self.pieces, self.reader, self._narrowed = pieces, reader, narrowed
        self._narrow: OrderedDict[bytes, tuple[list[tuple[Any, ...]], Reader]] = OrderedDict()
        self.lengths: list[int] = []
        self.passes = 0

    @property
    def n(self) -> int:
        """Number of rows; known after the first pass."""
        return sum(self.lengths)

    def fold(self, work: Callable[[Chunk], Any], merge: Callable[[Any, Any], Any]) -> Any:
        """One pass: chunks in any order on any worker, what they give in the order of the rows."""
        dask = need_dask()
        self.passes += 1
        pieces, reader = self._with_columns(getattr(work, "needed", None))
        task, look, join = self._task(reader, work, merge), dask.delayed(_looked), dask.delayed(_joined)
        found = [look(task, *piece) for piece in pieces]
        while len(found) > 1:
            found = [join(task, found[at : at + _FAN]) for at in range(0, len(found), _FAN)]
        try:
            with _threads().limit(limits=1):  # chunks run side by side already
                return found[0].compute()
        except FileNotFoundError as error:
            raise ValueError(f"A file of the data is gone ({error}): put it back, or read the folder anew.") from error

    def rows(self, at: IntArray) -> Chunk:
        """Some rows, by their sorted numbers, in memory: one pass."""
        dask = need_dask()
        self.passes += 1
        stops = np.cumsum(self.lengths)
        own = np.split(at, np.searchsorted(at, stops[:-1]))
        starts, task, pick = stops - self.lengths, self._task(self.reader), dask.delayed(_picked)
        parts = [pick(task, some - start, *piece) for some, start, piece in zip(own, starts, self.pieces, strict=True)]
        found: Any = zip(*dask.compute(*parts), strict=True)
        joined: Any = (None if part[0] is None else np.concatenate(part) for part in found)
        return Chunk(*joined)

    def _with_columns(self, needed: IntArray | None) -> tuple[list[tuple[Any, ...]], Reader]:
        """Pieces with the features that are needed, where those are few and can be read by themselves."""
        fitted = len(self.reader.names if self.reader.inside is None else self.reader.inside)
        if self._narrowed is None or needed is None or self.reader.drop or 2 * len(needed) > fitted:
            return self.pieces, self.reader
        key = needed.tobytes()
        if key not in self._narrow:
            places = needed if self.reader.inside is None else self.reader.inside[needed]
            pieces, parts = self._narrowed([self.reader.names[j] for j in places])
            self._narrow[key] = pieces, replace(self.reader, parts=parts, inside=None, narrow=needed)
            while len(self._narrow) > _SETS:
                self._narrow.popitem(last=False)
        return self._narrow[key]

    def _task(self, *own: Callable[..., Any]) -> Any:
        """What the workers need to know, sent to each of them once."""
        return need_dask().delayed(own, traverse=False, name=f"pass-{uuid4().hex}")

    def array(self, name: str) -> Any:
        """Something that every row has, as a dask array: nothing is computed till it is asked for."""
        da, task, look = (
            need_dask("dask.array"),
            self._task(self.reader, attrgetter(name)),
            need_dask().delayed(_looked),
        )
        parts = [
            da.from_delayed(look(task, *piece), shape=(length,), dtype=float)
            for piece, length in zip(self.pieces, self.lengths, strict=True)
        ]
        return da.concatenate(parts)


@cache
def _threads() -> ThreadpoolController:
    return ThreadpoolController()


def _looked(task: tuple[Any, ...], *piece: Any) -> Any:
    reader, work = task[:2]
    return work(reader(*piece))


def _picked(task: tuple[Any, ...], some: IntArray, *piece: Any) -> Chunk:
    chunk: Chunk = task[0](*piece)
    return chunk.rows(some)


def _joined(task: tuple[Any, ...], parts: list[Any]) -> Any:
    return reduce(task[2], parts)
