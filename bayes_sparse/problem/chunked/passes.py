"""What one pass over the chunks computes: several sums of products at once, block by block of rows."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from bayes_sparse.common.types import FloatArray, IntArray
from bayes_sparse.problem.chunked.row_vectors import Node, Predictor, Term
from bayes_sparse.problem.gaussian import weighted_gram

__all__ = ["Chunk", "Chunks", "Narrow", "Question", "Seen", "Standard", "Work", "together"]

_BLOCK_BYTES = 2**20  # rows looked at together: their columns stay in a core's cache
_LINE = 8  # numbers that come into the cache together


class Chunk(NamedTuple):
    """Some rows as they were read: features, targets as numbers, and what belongs to each row beside them."""

    X: NDArray[Any]
    y: FloatArray
    offset: FloatArray | None = None
    weights: FloatArray | None = None

    def rows(self, at: slice | IntArray) -> Chunk:
        """Some of the rows."""
        return Chunk(*(None if part is None else part[at] for part in self))  # type: ignore[arg-type]


class Narrow:
    """Some columns of a table that is not there as a whole, under their places in it.

    Parameters
    ----------
    X : array (rows, k)
        The columns.
    at : int array (k,)
        Their places.
    """

    def __init__(self, X: NDArray[Any], at: IntArray) -> None:
        self._X, self._at = X, at

    def __len__(self) -> int:
        return len(self._X)

    def __getitem__(self, where: Any) -> Any:
        """Some rows, or a column."""
        if isinstance(where, tuple):
            return self._X[where[0], int(np.searchsorted(self._at, where[1]))]
        return Narrow(self._X[where], self._at)


class Chunks(Protocol):
    """Rows that lie somewhere in chunks.

    Attributes
    ----------
    passes : int
        How often all of them have been looked at.
    """

    passes: int

    @property
    def n(self) -> int:
        """Number of rows."""

    def fold(self, work: Callable[[Chunk], Any], merge: Callable[[Any, Any], Any]) -> Any:
        """Look at every chunk, and merge what was found, always in the order of the rows: one pass."""


@dataclass(frozen=True, eq=False)
class Standard:
    """How the features of a chunk become columns of the design.

    Attributes
    ----------
    shift, scale : array (M,), optional
        Column j is ``(X[:, j] - shift[j]) / scale[j]``.
    bias : bool
        Whether a column of ones comes after them.
    mix : array (M + q, width), optional
        Columns of the design as combinations of these.
    """

    M: int
    shift: FloatArray | None
    scale: FloatArray | None
    bias: bool
    mix: FloatArray | None = None

    @property
    def width(self) -> int:
        """Number of columns."""
        return self.M + int(self.bias) if self.mix is None else self.mix.shape[1]

    def columns(self, X: NDArray[Any], index: IntArray) -> FloatArray:
        """Chosen columns (rows, k)."""
        if self.mix is not None:
            return np.asarray(replace(self, mix=None).columns(X, np.arange(self.M + self.bias)) @ self.mix[:, index])
        out = np.ones((len(X), len(index)), order="F")
        if len(index) >= self.M and (index[: self.M] == np.arange(self.M)).all():
            self._write(X, slice(0, self.M), out[:, : self.M])
        else:  # a few of them one by one: a block is in the cache
            for at in np.flatnonzero(index < self.M).tolist():
                self._write(X[:, index[at]], index[at], out[:, at])
        return out

    def _write(self, X: NDArray[Any], own: slice | int, out: FloatArray) -> None:
        """Features standardised."""
        if self.shift is None:
            out[:] = X
        else:
            np.subtract(X, self.shift[own], out=out)
        if self.scale is not None:
            out *= 1 / self.scale[own]


type Pointwise = Callable[[FloatArray, FloatArray, FloatArray], tuple[FloatArray, ...]]


class Seen:
    """A block of rows while it is looked at; what was computed of it is kept till the next block.

    Parameters
    ----------
    chunk : Chunk
        The rows.
    standard : Standard
        What their columns are.
    pointwise : callable
        ``pointwise(y, eta, theta)`` gives the log-likelihood of each row and three derivatives along the predictor.
    """

    def __init__(self, chunk: Chunk, standard: Standard, pointwise: Pointwise) -> None:
        self.chunk, self._standard, self._pointwise = chunk, standard, pointwise
        self._known: dict[Hashable, Any] = {}

    @property
    def all(self) -> IntArray:
        """All columns."""
        return np.arange(self._standard.width)

    def columns(self, index: IntArray) -> FloatArray:
        """Chosen columns (rows, k)."""
        key = ("columns", index.tobytes())
        found: FloatArray = self._kept(key, lambda: self._standard.columns(self.chunk.X, index))
        return found

    def terms(self, eta: Node, theta: FloatArray) -> tuple[FloatArray, ...]:
        """The log-likelihood along a predictor."""
        key = ("terms", eta.key, theta.tobytes())
        found: tuple[FloatArray, ...] = self._kept(key, lambda: self._pointwise(self.chunk.y, self.values(eta), theta))
        return found

    def values(self, node: Node) -> Any:
        """Values of a recipe."""
        return self._kept(("values", node.key), lambda: node.at(self))

    def _kept(self, key: Hashable, make: Callable[[], Any]) -> Any:
        if key not in self._known:
            self._known[key] = make()
        return self._known[key]


@dataclass(frozen=True, eq=False)
class Question:
    """A sum over all rows, or what else can be merged from block to block.

    Attributes
    ----------
    kind : str
        A name from the table below.
    nodes : tuple of Node
        Of which vectors.
    index : int array, optional
        Of which columns; None for all.
    beside : tuple
        More that the kind needs.
    """

    kind: str
    nodes: tuple[Node, ...] = ()
    index: IntArray | None = None
    beside: tuple[Any, ...] = ()

    @property
    def key(self) -> Hashable:
        """Equal for equal questions."""
        return (self.kind, *(node.key for node in self.nodes), None if self.index is None else self.index.tobytes())

    def of(self, seen: Seen) -> Any:
        """The answer for one block."""
        values = [seen.values(node) for node in self.nodes]
        index = seen.all if self.index is None else self.index
        return _ANSWERS[self.kind](seen, index, *values, *self.beside)

    def merged(self, one: Any, other: Any) -> Any:
        """Of two blocks."""
        return _MERGES.get(self.kind, np.add)(one, other)


def _cross(seen: Seen, index: IntArray, b: FloatArray) -> FloatArray:
    return np.asarray(seen.columns(seen.all).T @ (seen.columns(index) * b[:, None]))


def _squares(seen: Seen, index: IntArray, b: FloatArray | None = None) -> FloatArray:
    Phi = seen.columns(index)
    return np.asarray(np.einsum("ij,ij->j", Phi, Phi) if b is None else b @ np.square(Phi))


def _gram(seen: Seen, index: IntArray, b: FloatArray | None = None) -> FloatArray:
    Phi = seen.columns(index)
    return np.asarray(Phi.T @ Phi) if b is None else weighted_gram(Phi, b)


def _sides(seen: Seen, index: IntArray, eta: FloatArray, trials: float) -> FloatArray:
    """How far a predictor is on the wrong side of zero, and whether there are others than the two, ones, and zeros."""
    y = seen.chunk.y if seen.chunk.weights is None else seen.chunk.y[seen.chunk.weights > 0]
    eta = eta if seen.chunk.weights is None else eta[seen.chunk.weights > 0]
    one, zero = y == trials, y == 0
    wrong = np.where(one, -eta, eta)
    return np.array([wrong.max(initial=-np.inf), (~(one | zero)).any(), one.any(), zero.any()], dtype=float)


def _upper(seen: Seen, index: IntArray) -> FloatArray:
    """Upper factor of the cross-products of all columns and the targets less their offset, each row as it counts."""
    chunk = seen.chunk
    t = chunk.y if chunk.offset is None else chunk.y - chunk.offset
    rows = np.column_stack([seen.columns(index), t])
    return np.asarray(np.linalg.qr(rows if chunk.weights is None else np.sqrt(chunk.weights)[:, None] * rows, mode="r"))


def _joint(seen: Seen, index: IntArray, w: FloatArray, theta: FloatArray) -> FloatArray:
    """Log-likelihood (S,) of all rows together at many draws."""
    draws = [Term(0, Predictor(index, own, 1.0), at, True) for own, at in zip(w, theta, strict=True)]
    return np.array([float(np.sum(draw.at(seen))) for draw in draws])


_ANSWERS: dict[str, Callable[..., Any]] = {
    "total": lambda seen, index, v: np.sum(v),
    "most": lambda seen, index, v: np.max(v.astype(float), initial=-np.inf),
    "dot": lambda seen, index, u, v: u @ v,
    "pulled": lambda seen, index, v: v @ seen.columns(index),
    "gram": _gram,
    "cross": _cross,
    "squares": _squares,
    "sides": _sides,
    "upper": _upper,
    "joint": _joint,
    "values": lambda seen, index, v, step: v[::step],
}
_OF_COLUMNS = {"pulled", "gram", "cross", "squares", "upper", "joint"}
_MERGES: dict[str, Callable[[Any, Any], Any]] = {
    "most": np.maximum,
    "sides": np.maximum,
    "upper": lambda one, other: np.linalg.qr(np.vstack([one, other]), mode="r"),
    "values": lambda one, other: np.concatenate([one, other]),
}


@dataclass(frozen=True, eq=False)
class Work:
    """Several questions, answered for a chunk; None for one without rows."""

    questions: tuple[Question, ...]
    standard: Standard
    pointwise: Pointwise

    def __call__(self, chunk: Chunk) -> list[Any] | None:
        """In blocks of rows."""
        found: list[Any] | None = None
        step = max(256, _BLOCK_BYTES // (8 * max(self._columns, 1)))
        for start in range(0, len(chunk.y), step):
            seen = Seen(chunk.rows(slice(start, start + step)), self.standard, self.pointwise)
            with np.errstate(all="ignore"):  # a trial step may overflow; the search judges it by the sum
                found = self.merged(found, [question.of(seen) for question in self.questions])
        return found

    @property
    def needed(self) -> IntArray | None:
        """The features that the answers are made of; None for all."""
        if self.standard.mix is not None or any(
            q.kind == "cross" or (q.index is None and q.kind in _OF_COLUMNS) for q in self.questions
        ):
            return None
        used = [index for q in self.questions for node in q.nodes for index in node.columns]
        used += [q.index for q in self.questions if q.index is not None]
        found = np.unique(np.concatenate([np.empty(0, dtype=np.intp), *used]))
        found = found[found < self.standard.M]
        return None if len(found) == self.standard.M else found

    @property
    def _columns(self) -> int:
        """How many are worked with at once: of those that are not, only what is beside them in memory is read."""
        M, mixed = self.standard.M, self.standard.mix is not None
        asked = [q.index for q in self.questions if q.kind in _OF_COLUMNS]
        return max([M // _LINE, *(M if index is None or mixed else len(index) for index in asked)])

    def merged(self, one: list[Any] | None, other: list[Any] | None) -> list[Any] | None:
        """Of two chunks."""
        if one is None or other is None:
            return other if one is None else one
        return [question.merged(a, b) for question, a, b in zip(self.questions, one, other, strict=True)]


def together(work: Work, chunks: Chunks) -> list[Any]:
    """The answers for all rows: one pass."""
    found = chunks.fold(work, work.merged)
    assert found is not None, "the data have rows"
    return list(found)
