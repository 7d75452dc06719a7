"""Some columns of a design, and what a likelihood's terms along the predictor are over their weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from typing import Any, NamedTuple, Protocol
from weakref import ReferenceType, ref

import numpy as np
from numpy.typing import NDArray

from bayes_sparse.common.types import FloatArray, IntArray
from bayes_sparse.problem.gaussian import Dual, Primal, by_rows, weighted_gram
from bayes_sparse.problem.sparse_design import AnyDesign

__all__ = ["Active", "LinearActive", "Product", "Terms", "columns_counted"]

type Terms = tuple[FloatArray, ...]
# ``product(v, at)`` is ``M[:, at] v`` for a symmetric M over the active weights, which need not be formed.
type Product = Callable[[FloatArray, Any], FloatArray]


class Active(Protocol):
    """Some columns of a design, ready for products."""

    def predictor(self, w: FloatArray) -> FloatArray:
        """Predictors without the offset."""

    def pulled_back(self, slopes: FloatArray) -> FloatArray:
        """Gradient over the weights, from slopes along the predictors."""

    def steps(self, alpha: FloatArray, terms: Terms) -> Any:
        """Factorised ``H + A`` for a Newton step, positive definite."""

    def posterior(self, alpha: FloatArray, terms: Terms, factor: Any) -> Any:
        """Factorised ``H + A`` at a mode, of which ``factor`` is the last step's if that was there, else None."""

    def leverages(self, product: Product) -> FloatArray:
        """``Phi M Phi'`` of each observation by itself: what M makes of its predictors."""

    def turning(self, leverages: FloatArray, terms: Terms) -> FloatArray:
        """Gradient over the weights of ``tr(M H)``, M held fixed: how the curvature changes."""

    def noise(self, terms: Terms, rng: np.random.Generator) -> FloatArray:
        """Random slopes along the predictors; pulled back to the weights their covariance is H, cut off at zero."""

    def scan(self, terms: Terms) -> tuple[FloatArray, FloatArray, FloatArray]:
        """``Phi' B Phi_active``, the diagonal of ``Phi' B Phi`` and the gradient, over all columns of the design."""

    def cross_products(self, terms: Terms) -> FloatArray:
        """``Phi_active' B Phi_active``: the H of `steps`."""


_MANY_FIXED = 20  # columns of known precision that are more than an intercept and what somebody kept


def columns_counted(free: NDArray[np.bool_]) -> int:
    """Number of columns to compare with the rows; many of a known precision, such as effects of rows, are not counted.

    Their prior is a part of the model, however many there are: what may outgrow the rows is what is being found.
    """
    found = int(np.count_nonzero(free))
    return found if len(free) - found > _MANY_FIXED else len(free)


_BLOCK = 2**16  # numbers of a block of rows: half a megabyte
_LARGE = 2000  # columns whose cross-products are made even where there are fewer rows
_TALL = 10_000  # rows, from which on columns are taken out of a design as seldom as can be
_ROOM = 2  # columns more, so that one can come, and another be tried in its place


class _Taken:
    """Columns taken out of a tall design, each of them once for the active sets that follow one another.

    Parameters
    ----------
    design : Design or SparseDesign
        All columns.
    index : int array (k,)
        Those to begin with.
    """

    def __init__(self, design: AnyDesign, index: IntArray) -> None:
        self._design = design
        self._columns = design.columns(np.append(index, np.zeros(_ROOM, dtype=np.intp)))  # what has room is overwritten
        self._place = {column: place for place, column in enumerate(index.tolist())}

    def with_columns(self, index: IntArray) -> _Taken:
        """The same, if these columns are here or have room and few others are here; else a copy with them alone."""
        new = [column for column in index.tolist() if column not in self._place]
        if len(self._place) + len(new) <= min(self._columns.shape[1], len(index) + _ROOM):
            taken = self
        else:
            taken = copy(self)
            taken._columns = np.empty((self._design.n, len(index) + _ROOM), order="F")
            held = [column for column in index.tolist() if column in self._place]
            taken._place = {column: place for place, column in enumerate(held)}
            for column, place in taken._place.items():
                taken._columns[:, place] = self._columns[:, self._place[column]]
        if new:
            first = len(taken._place)
            taken._columns[:, first : first + len(new)] = self._design.columns(np.array(new, dtype=np.intp))
            taken._place.update((column, first + at) for at, column in enumerate(new))
        return taken

    def columns(self, index: IntArray) -> tuple[FloatArray, IntArray | None]:
        """A matrix with these columns, and where in it they are; None if it has no others, and these in order."""
        places = np.array([self._place[column] for column in index.tolist()], dtype=np.intp)
        if np.array_equal(places, np.arange(len(index))):
            return self._columns[:, : len(index)], None
        return self._columns[:, : places.max() + 1], places


class LinearActive:
    """Columns of a design with one predictor an observation.

    Parameters
    ----------
    design : Design or SparseDesign
        All columns.
    index : int array (k,)
        The active ones.
    count : float, optional
        Number of observations, each as often as its weight says; None for the design's rows.
    counted : int, optional
        How many of the columns are compared with the rows (`columns_counted`); None for all of them.
    near : LinearActive, optional
        Other columns of the same design: of a tall one, those that are there are not taken out of it again.
    """

    def __init__(
        self,
        design: AnyDesign,
        index: IntArray,
        count: float | None = None,
        counted: int | None = None,
        near: LinearActive | None = None,
    ) -> None:
        self._design, self._index = design, index
        self._taken: _Taken | None = None
        self._places: IntArray | None = None  # of the columns in Phi, where it has others too
        if design.n < _TALL:
            self._Phi = design.columns(index)
        else:
            known = None if near is None else near._taken
            self._taken = _Taken(design, index) if known is None else known.with_columns(index)
            self._Phi, self._places = self._taken.columns(index)
        self._counted = len(index) if counted is None else counted
        # As many columns as observations may have a true curvature; a weight that stands for many rows, within reason.
        self._most = max(design.n, min(design.n if count is None else count, _LARGE))
        self._rows: tuple[FloatArray, FloatArray] | None = None
        # A search asks for the same again and again: at the end of one step and at the beginning of the next.
        self._curved: tuple[_Same, FloatArray, FloatArray | None] | None = None
        self._scanned: tuple[_Same, tuple[FloatArray, FloatArray, FloatArray]] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_curved": None, "_scanned": None}  # a weak reference cannot be pickled

    def predictor(self, w: FloatArray) -> FloatArray:
        """``Phi w``."""
        if self._places is None:
            return np.asarray(self._Phi @ w)
        full = np.zeros(self._Phi.shape[1])
        full[self._places] = w
        return np.asarray(self._Phi @ full)

    def pulled_back(self, slopes: FloatArray) -> FloatArray:
        """``Phi' slopes``; of a likelihood's slopes it came with its curvature, where there are many rows."""
        if self._curved is not None and self._curved[2] is not None and self._curved[0].slopes() is slopes:
            return self._curved[2]
        return self._own(np.asarray(self._Phi.T @ slopes))

    def steps(self, alpha: FloatArray, terms: Terms) -> Primal | Dual:
        """With the curvature cut off at zero where the likelihood is not log-concave."""
        if self._counted <= len(self._Phi) or not alpha.all():  # on the side of the rows no prior may be flat
            return Primal(self.cross_products(terms), alpha)
        b, Phi = _cut_off(terms[2]), self._Phi if self._places is None else self._Phi[:, self._places]
        if self._rows is None or self._rows[0] is not alpha:  # on the way to a mode the precisions stay
            self._rows = alpha, by_rows(Phi, alpha)
        return Dual(Phi, b, *self._rows)

    def posterior(self, alpha: FloatArray, terms: Terms, factor: Primal | Dual | None) -> Primal | Dual:
        """With the true curvature if that can be factorised, with the cut-off one otherwise."""
        if factor is None:
            factor = self.steps(alpha, terms)
        if terms[2].max(initial=0.0) <= 0 or self._counted > self._most:
            return factor
        try:
            return Primal(self._own(self._own(weighted_gram(self._Phi, -terms[2])).T), alpha)
        except np.linalg.LinAlgError:
            return factor

    def leverages(self, product: Product) -> FloatArray:
        """The diagonal of ``Phi M Phi'``, (n,)."""
        out = np.empty(len(self._Phi))
        for rows in self._blocks():
            some = self._own(self._Phi[rows].T)
            np.einsum("ji,ji->i", some, product(some, slice(None)), out=out[rows])
        return out

    def turning(self, leverages: FloatArray, terms: Terms) -> FloatArray:
        """``-Phi' (l''' diag(Phi M Phi'))``."""
        out = np.zeros(self._Phi.shape[1])
        for rows in self._blocks():
            out -= self._Phi[rows].T @ (terms[3][rows] * leverages[rows])
        return self._own(out)

    def noise(self, terms: Terms, rng: np.random.Generator) -> FloatArray:
        """With the curvature along the predictor as its variance."""
        return np.asarray(np.sqrt(_cut_off(terms[2])) * rng.standard_normal(len(terms[2])))

    def scan(self, terms: Terms) -> tuple[FloatArray, FloatArray, FloatArray]:
        """In one pass over a design that may be streamed."""
        if self._scanned is None or not self._scanned[0].terms(terms):
            cross, squares, products = self._design.scan(self._Phi, _cut_off(terms[2]), terms[1])
            self._scanned = _Same.of(terms), (self._own(cross.T).T, squares, products)
        return self._scanned[1]

    def cross_products(self, terms: Terms) -> FloatArray:
        """``Phi' B Phi`` with the curvature cut off at zero."""
        if self._curved is None or not self._curved[0].terms(terms):
            self._curved = _Same.of(terms), *self._curve(terms)
        return self._curved[1]

    def _curve(self, terms: Terms) -> tuple[FloatArray, FloatArray | None]:
        """The cross-products; of many rows with the gradient, while a block of rows is in the cache."""
        if len(self._Phi) < _TALL:
            return weighted_gram(self._Phi, _cut_off(terms[2])), None
        k = self._Phi.shape[1]
        H, gradient = np.zeros((k, k)), np.zeros(k)
        for rows in self._blocks():
            H += weighted_gram(self._Phi[rows], _cut_off(terms[2][rows]))
            gradient += self._Phi[rows].T @ terms[1][rows]
        return self._own(self._own(H).T), self._own(gradient)

    def _blocks(self) -> Iterator[slice]:
        n, k = self._Phi.shape
        step = max(1024, _BLOCK // max(k, 1))
        return (slice(start, start + step) for start in range(0, n, step))

    def _own(self, products: FloatArray) -> FloatArray:
        """Of products with all columns that are in Phi, those with the active ones."""
        return products if self._places is None else products[self._places]


def _cut_off(bend: FloatArray) -> FloatArray:
    """The curvature ``-l''`` where it is positive, else zero."""
    out = np.negative(bend)
    return np.maximum(out, 0.0, out=out)


class _Same(NamedTuple):
    """Slopes and curvatures that something was computed of, as long as somebody else has them: they may be large."""

    slopes: ReferenceType[FloatArray]
    bends: ReferenceType[FloatArray]

    @classmethod
    def of(cls, terms: Terms) -> _Same:
        """Of a likelihood's terms."""
        return cls(ref(terms[1]), ref(terms[2]))

    def terms(self, terms: Terms) -> bool:
        """Whether these are they."""
        return self.slopes() is terms[1] and self.bends() is terms[2]
