"""A number for each row of data that lie in chunks: told how to compute, and computed chunk by chunk when it is summed.

Nothing as long as the data is ever held in one place. A `RowVector` stands where a method has an array (n,): a linear
predictor is its weights, the likelihood's terms are the predictor they are taken at, and arithmetic makes longer
recipes of these. A sum or a product with the columns asks the source for a pass over the chunks.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from bayes_sparse.common.types import FloatArray, IntArray

if TYPE_CHECKING:
    from bayes_sparse.problem.chunked.passes import Seen
    from bayes_sparse.problem.chunked.source import RowSource

__all__ = ["Given", "Leverages", "Mapped", "Node", "Predictor", "RowVector", "Term"]

_tokens = count()


@dataclass(frozen=True, eq=False)
class Node:
    """A recipe; what has the same key has the same values."""

    @property
    def key(self) -> Hashable:
        """Equal for equal recipes."""
        raise NotImplementedError

    @property
    def columns(self) -> list[IntArray]:
        """The columns that it is made of."""
        return []

    def at(self, seen: Seen) -> Any:
        """The values at some rows."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Given(Node):
    """Something that every row has: "y" or "weights"."""

    name: str

    @property
    def key(self) -> Hashable:
        """Its name."""
        return self.name

    def at(self, seen: Seen) -> Any:
        """As it was read."""
        return getattr(seen.chunk, self.name)


@dataclass(frozen=True, eq=False)
class Predictor(Node):
    """A linear predictor.

    Attributes
    ----------
    index, w : array (k,)
        Columns and their weights.
    share : float
        How many times the offset is in it: once, or not at all.
    """

    index: IntArray
    w: FloatArray
    share: float
    token: int = field(default_factory=lambda: next(_tokens))

    @property
    def key(self) -> Hashable:
        """A number of its own: predictors are known again by being the same object."""
        return self.token

    @property
    def columns(self) -> list[IntArray]:
        """Those with a weight."""
        return [self.index]

    def at(self, seen: Seen) -> Any:
        """Columns times weights, and the offset."""
        eta = seen.columns(self.index) @ self.w
        return eta + self.share * seen.chunk.offset if self.share and seen.chunk.offset is not None else eta

    def plus(self, other: Predictor, times: float) -> Predictor:
        """With some of another added: over the other's columns first, which are those last worked on."""
        both = other.index
        missing = self.index[~np.isin(self.index, both) & (self.w != 0)]
        index = np.append(both, missing) if len(missing) else both
        w = _spread(self, index) + times * _spread(other, index)
        return Predictor(index, w, self.share + times * other.share)

    def scaled(self, times: float) -> Predictor:
        """A multiple of it."""
        return Predictor(self.index, times * self.w, times * self.share)


def _spread(predictor: Predictor, index: IntArray) -> FloatArray:
    """Its weights in the places of other columns, which have all that are not zero."""
    if predictor.index is index:
        return predictor.w
    own = dict(zip(predictor.index.tolist(), predictor.w.tolist(), strict=True))
    return np.array([own.get(column, 0.0) for column in index.tolist()])


@dataclass(frozen=True, eq=False)
class Term(Node):
    """The log-likelihood of each row along the predictor, or a derivative of it.

    Attributes
    ----------
    order : int
        Which derivative; 0 is the log-likelihood itself.
    eta : Node
        The predictor.
    theta : array
        Nuisance parameters.
    weighted : bool
        Whether each row counts as often as its weight says.
    """

    order: int
    eta: Node
    theta: FloatArray
    weighted: bool

    @property
    def key(self) -> Hashable:
        """By order, predictor and nuisance parameters."""
        return (self.order, self.eta.key, self.theta.tobytes(), self.weighted)

    @property
    def columns(self) -> list[IntArray]:
        """The predictor's."""
        return self.eta.columns

    def at(self, seen: Seen) -> Any:
        """All derivatives come out of one call."""
        term = seen.terms(self.eta, self.theta)[self.order]
        return term if not self.weighted or seen.chunk.weights is None else seen.chunk.weights * term


@dataclass(frozen=True, eq=False)
class Leverages(Node):
    """``Phi M Phi'`` of each row by itself, over some columns."""

    index: IntArray
    M: FloatArray
    token: int = field(default_factory=lambda: next(_tokens))

    @property
    def key(self) -> Hashable:
        """A number of its own."""
        return ("leverages", self.token)

    @property
    def columns(self) -> list[IntArray]:
        """Those of Phi."""
        return [self.index]

    def at(self, seen: Seen) -> Any:
        """By two products with the columns."""
        Phi = seen.columns(self.index)
        return np.einsum("ij,ij->i", Phi @ self.M, Phi)


@dataclass(frozen=True, eq=False)
class Mapped(Node):
    """A function of numpy's, element by element, of recipes and numbers."""

    function: np.ufunc
    inputs: tuple[Any, ...]

    @property
    def key(self) -> Hashable:
        """By the function and what it is of."""
        return (self.function.__name__, *(x.key if isinstance(x, Node) else x for x in self.inputs))

    @property
    def columns(self) -> list[IntArray]:
        """Of all that it is of."""
        return [index for x in self.inputs if isinstance(x, Node) for index in x.columns]

    def at(self, seen: Seen) -> Any:
        """Of the values."""
        return self.function(*(seen.values(x) if isinstance(x, Node) else x for x in self.inputs))


class RowVector(NDArrayOperatorsMixin):
    """A number for each row, in the place of an array (n,).

    Parameters
    ----------
    source : RowSource
        The rows.
    node : Node
        How to compute it.
    """

    def __init__(self, source: RowSource, node: Node) -> None:
        self.source, self.node = source, node

    def __len__(self) -> int:
        return self.source.n

    @property
    def shape(self) -> tuple[int]:
        """One number a row."""
        return (self.source.n,)

    @property
    def size(self) -> int:
        """Number of rows."""
        return self.source.n

    def sum(self) -> float:
        """Over all rows."""
        return float(self.source.ask("total", self.node))

    def max(self, initial: float = -np.inf) -> float:
        """The largest, and no less than ``initial``."""
        return max(float(self.source.ask("most", self.node)), initial)

    def any(self) -> bool:
        """Whether any is not zero, of those that are not negative."""
        return bool(self.max() > 0)

    def __array_ufunc__(self, function: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if method != "__call__" or options:
            return NotImplemented
        nodes = tuple(x.node if isinstance(x, RowVector) else x for x in inputs)
        if function is np.matmul:
            return float(self.source.ask("dot", *nodes)) if all(isinstance(x, Node) for x in nodes) else NotImplemented
        if any(np.ndim(x) for x in nodes if not isinstance(x, Node)):
            return NotImplemented
        return RowVector(self.source, _simplified(function, nodes))

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        return self @ args[1] if function is np.vdot and args[0] is self else NotImplemented


def _simplified(function: np.ufunc, nodes: tuple[Any, ...]) -> Node:
    """Sums and multiples of predictors stay predictors, however many there are."""
    a, b = (*nodes, None)[:2]
    if isinstance(a, Predictor) and isinstance(b, Predictor) and function in (np.add, np.subtract):
        return a.plus(b, 1.0 if function is np.add else -1.0)
    if function is np.multiply and isinstance(b, Predictor) and not isinstance(a, Node):
        return b.scaled(float(a))
    return Mapped(function, nodes)
