"""What an evidence method sees of rows in chunks: the products of `Design`, `LinearActive` and `Problem`, by passes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayes_sparse.common.types import FloatArray, IntArray
from bayes_sparse.problem.active import Product
from bayes_sparse.problem.chunked.passes import Question
from bayes_sparse.problem.chunked.row_vectors import Node, RowVector, Term
from bayes_sparse.problem.chunked.source import RowSource, bend_of
from bayes_sparse.problem.gaussian import Dual, Primal
from bayes_sparse.problem.problem import Problem

__all__ = ["ChunkedActive", "ChunkedDesign", "ChunkedProblem"]

_NONE = np.empty(0, dtype=np.intp)
_FEW = 8


class ChunkedDesign:
    """The columns of rows in chunks, with the products of `Design`; vectors along the rows are `RowVector`.

    Parameters
    ----------
    source : RowSource
        The rows.
    M : int
        Number of basis functions; the columns after them are never pruned.
    """

    extra = None

    def __init__(self, source: RowSource, M: int) -> None:
        self.source, self.M = source, M
        self.n, self.width = source.n, source.standard.width
        self.q = self.width - M

    def columns(self, index: IntArray) -> ChunkedActive:
        """Chosen columns, for products with them."""
        return ChunkedActive(self, index)

    def times(self, w: FloatArray, index: IntArray) -> Any:
        """Predictor ``Phi[:, index] @ w``."""
        return self.source.predictor(w, index)

    def transposed_times(self, v: Any) -> FloatArray:
        """``Phi' v`` over all columns."""
        return np.asarray(self.source.ask("pulled", v.node)).copy()

    def squares(self, weights: Any = None) -> FloatArray:
        """Diagonal of ``Phi' diag(weights) Phi``; without weights it is asked for to find columns that are the same."""
        asked = [Question("squares", _nodes(weights))]
        return np.asarray(self.source.answers(asked if asked[0].nodes else [*asked, self._probing])[0])

    def gram(self, weights: Any = None) -> FloatArray:
        """``Phi' diag(weights) Phi`` over all columns."""
        return np.asarray(self.source.ask("gram", *_nodes(weights), index=np.arange(self.width))).copy()

    @cached_property
    def probe(self) -> Any:
        """Numbers between -1 and 1 that differ from row to row, made of a few of their columns."""
        w = 3.0 * np.cos(np.arange(1.0, min(self.width, _FEW) + 1))
        predictor: Any = self.source.predictor(w, np.arange(len(w)))
        return np.cos(predictor)

    @property
    def _probing(self) -> Question:
        return Question("pulled", (self.probe.node,))

    def rotated(self, index: IntArray) -> FloatArray:
        """Columns as few rows in the place of all: with the same lengths and products with each other."""
        return np.asarray(self.source.ask("upper", index=index)[:, :-1])

    def along(self, Q: FloatArray) -> ChunkedDesign:
        """Directions (k, M) in the place of the basis functions, the other columns after them."""
        mix = np.zeros((self.width, len(Q) + self.q))
        mix[: self.M, : len(Q)] = Q.T
        mix[self.M :, len(Q) :] = np.eye(self.q)
        return ChunkedDesign(self.source.mixed(mix), len(Q))

    def ordered(self, order: IntArray, M: int) -> ChunkedDesign:
        """The columns in another order, of which so many are basis functions."""
        return ChunkedDesign(self.source.mixed(np.eye(self.width)[:, order]), M)


def _nodes(weights: Any) -> tuple[Node, ...]:
    return () if weights is None else (weights.node,)


class ChunkedActive:
    """Some columns, with the products of `LinearActive`; there are always more rows than columns.

    Parameters
    ----------
    design : ChunkedDesign
        All columns.
    index : int array (k,)
        The active ones.
    """

    def __init__(self, design: ChunkedDesign, index: IntArray) -> None:
        self._design, self._source, self.index = design, design.source, index

    # As a matrix with a column of the design in each row, for the L1 path: w @ rows, rows @ v, rows[some], rows.T.
    __array_ufunc__ = None

    @property
    def T(self) -> ChunkedActive:
        """The same: which side is meant is told by what it is multiplied with."""
        return self

    def __getitem__(self, some: IntArray) -> ChunkedActive:
        return ChunkedActive(self._design, self.index[some])

    def __rmatmul__(self, w: FloatArray) -> Any:
        return self.predictor(w)

    def __matmul__(self, v: Any) -> FloatArray:
        return self.pulled_back(v) if isinstance(v, RowVector) else np.zeros((len(self.index), v.shape[1]))

    def predictor(self, w: FloatArray) -> Any:
        """``Phi w``."""
        return self._source.predictor(w, self.index)

    def pulled_back(self, slopes: Any) -> FloatArray:
        """``Phi' slopes``; of a likelihood's slopes its curvature will be asked for too, and comes in the same pass."""
        node = slopes.node
        everywhere = self._source.known(Question("pulled", (node,)))
        if everywhere is not None:
            return np.asarray(everywhere[self.index])
        asked = [Question("pulled", (node,), self.index)]
        if isinstance(node, Term) and node.order == 1 and self._scanned(bend_of(replace(node, order=2))) is None:
            asked.append(Question("gram", (bend_of(replace(node, order=2)),), self.index))
        return np.asarray(self._source.answers(asked)[0])

    def gram(self, b: Any) -> FloatArray:
        """``Phi' diag(b) Phi``."""
        known = self._scanned(b.node)
        return np.array(self._source.ask("gram", b.node, index=self.index) if known is None else known)

    def _scanned(self, b: Node) -> FloatArray | None:
        """The same from a scan of all columns, of which at most one was not active in it: then no pass is needed."""
        scanned = self._source.scans.get(b.key)
        if scanned is None:
            return None
        before, cross, squares = scanned
        place = {column: at for at, column in enumerate(before.tolist())}
        new = [at for at, column in enumerate(self.index.tolist()) if column not in place]
        if len(new) > 1:
            return None
        old = np.array([at for at in range(len(self.index)) if at not in new], dtype=np.intp)
        H = np.empty((len(self.index), len(self.index)))
        H[:, old] = cross[self.index[:, None], np.array([place[c] for c in self.index[old].tolist()], dtype=np.intp)]
        for at in new:
            H[old, at], H[at, at] = H[at, old], squares[self.index[at]]
        return H

    def steps(self, alpha: FloatArray, terms: Any) -> Primal:
        """With the curvature cut off at zero where the likelihood is not log-concave."""
        return Primal(self.cross_products(terms), alpha)

    def posterior(self, alpha: FloatArray, terms: Any, factor: Primal | Dual | None) -> Primal | Dual:
        """With the true curvature if that can be factorised, with the cut-off one otherwise."""
        factor = self.steps(alpha, terms) if factor is None else factor
        if terms[2].max(initial=0.0) <= 0:
            return factor
        try:
            return Primal(self.gram(-terms[2]), alpha)
        except np.linalg.LinAlgError:
            return factor

    def leverages(self, product: Product) -> Any:
        """The diagonal of ``Phi M Phi'``."""
        return self._source.leverages(self.index, product(np.eye(len(self.index)), slice(None)))

    def turning(self, leverages: Any, terms: Any) -> FloatArray:
        """``-Phi' (l''' diag(Phi M Phi'))``."""
        return -self.pulled_back(terms[3] * leverages)

    def noise(self, terms: Any, rng: np.random.Generator) -> Any:
        """Not asked for: draws are made on the side of the columns."""
        raise NotImplementedError

    def scan(self, terms: Any) -> tuple[FloatArray, FloatArray, FloatArray]:
        """All in one pass."""
        b = bend_of(terms[2].node)
        cross, squares, products = self._source.answers(
            [
                Question("cross", (b,), self.index),
                Question("squares", (b,)),
                Question("pulled", (terms[1].node,)),
            ]
        )
        self._source.scans[b.key] = self.index, cross, squares
        return cross.copy(), squares.copy(), products.copy()

    def cross_products(self, terms: Any) -> FloatArray:
        """``Phi' B Phi`` with the curvature cut off at zero."""
        return self.gram(RowVector(self._source, bend_of(terms[2].node)))


@dataclass(frozen=True)
class ChunkedProblem(Problem):
    """A problem whose rows lie in chunks; targets, offset and weights are what the design's source has.

    Attributes
    ----------
    observations : float
        Number of rows, each as often as its weight says.
    """

    observations: float = 0.0

    def __post_init__(self) -> None:
        source = self.source
        own = {
            "y": source.given("y"),
            "weights": source.given("weights") if source.weighted else None,
            "offset": source.predictor(np.empty(0), _NONE, 1.0),
            "pointwise": partial(source.terms, weighted=False),
        }
        for name, value in own.items():
            object.__setattr__(self, name, value)

    @property
    def source(self) -> RowSource:
        """The rows."""
        design: Any = self.design
        return design.source  # type: ignore[no-any-return]

    @property
    def count(self) -> float:
        """Number of observations, each as often as its weight says."""
        return self.observations

    def active(self, index: NDArray[np.intp], near: Any = None) -> Any:
        """Some columns, ready for products."""
        design: Any = self.design
        return ChunkedActive(design, index)

    def row_predictor(self, w: FloatArray, index: NDArray[np.intp]) -> Any:
        """Predictors of the rows."""
        return self.source.predictor(w, index, 1.0)

    def derivatives(self, eta: Any, theta: FloatArray, count: int = 3) -> Any:
        """The likelihood's terms with the observation weights."""
        return self.source.terms(eta, theta, weighted=True)

    def terms(self, eta: Any, theta: FloatArray) -> Any:
        """The same."""
        return self.source.terms(eta, theta, weighted=True)

    def separates(self, eta: Any) -> bool:
        """Whether a predictor puts every observation of a two-valued target on its own side of zero."""
        if self.theta.size:
            return False
        wrong, others, ones, zeros = self.source.ask("sides", eta.node, beside=(self.trials,))
        return bool(wrong < 0 and not others and ones and zeros)

    def log_joint_at(self, w: FloatArray, index: NDArray[np.intp], theta: FloatArray) -> FloatArray:
        """Log-likelihood of all observations together at draws of some columns' weights (S, k): one pass."""
        theta = np.broadcast_to(theta, (len(w), theta.shape[1]))
        return np.asarray(self.source.ask("joint", index=index, beside=(w, theta)))
